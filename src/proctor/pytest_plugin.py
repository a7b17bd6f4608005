"""The pytest plugin: evals as tests, with `@pytest.mark.proctor`.

Importing this module imports nothing else of Proctor. The rest is loaded when the first eval runs.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from proctor.comparison.report import EvalReport

MARKER = "proctor"
# The attribute of items and reports with the results of an eval.
RESULTS = "proctor_results"
MARKER_HELP = (
    "proctor(target, dataset, evaluators, samples_as='items', epochs=1, min_passes, min_pass_rate, thresholds, name, "
    "…): an eval, which runs only with --proctor or -m proctor; see docs/pytest.md"
)
_deselected = pytest.StashKey[int]()
_stored_runs = pytest.StashKey["dict[str, list[tuple[str, list[str]]]]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("proctor", "evals of Proctor")
    group.addoption("--proctor", action="store_true", help="Run the evals: tests marked with @pytest.mark.proctor.")
    group.addoption(
        "--proctor-history",
        metavar="FILE|URL",
        help="Store evals in this history. Default: $PROCTOR_HISTORY, else .proctor/history.db. `none` stores none.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER_HELP)
    config.stash[_deselected] = 0
    config.stash[_stored_runs] = {}
    config.pluginmanager.register(_ResultCollector(config), "proctor-results")


def is_selected(config: pytest.Config, node_id: str) -> bool:
    """True if evals run: with --proctor, with `proctor` in -m, or if the test is named on the command line."""
    if config.getoption("--proctor") or MARKER in (config.getoption("-m") or ""):
        return True
    named = [_short_node_id(argument) for argument in config.args if "::" in argument]
    return any(f"{_short_node_id(node_id)}::".startswith(f"{name}::") for name in named)


def _short_node_id(node_id: str) -> str:
    """Return a node id without its folder, which may be relative to another one, and without parameters."""
    file, *names = node_id.partition("[")[0].split("::")
    return "::".join([file.replace("\\", "/").rpartition("/")[2], *names])


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None or not is_selected(metafunc.config, metafunc.definition.nodeid):
        return
    from proctor.wiring import pytest_evals, pytest_markers

    history = pytest_evals.get_history(metafunc.config)
    samples = pytest_markers.check_marker(metafunc.definition, marker, metafunc.fixturenames, history)
    if samples and pytest_markers.is_one_item_per_sample(marker.kwargs):
        metafunc.parametrize("sample", samples, ids=[sample.id for sample in samples])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    evals = [
        item for item in items if item.get_closest_marker(MARKER) is not None and not is_selected(config, item.nodeid)
    ]
    if not evals:
        return
    config.stash[_deselected] += len(evals)
    left_out = set(evals)
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=evals)


@pytest.fixture
def sample() -> Any:
    """The sample of an eval: `@pytest.mark.proctor(dataset=…)` passes one after another."""
    return None


@pytest.fixture
def report(request: pytest.FixtureRequest) -> EvalReport:
    """The report of the run of `@pytest.mark.proctor(target=…, dataset=…, evaluators=…)`."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None or "target" not in marker.kwargs:
        raise _usage_error(request.node, "uses `report` without a target", "@pytest.mark.proctor(target=…, dataset=…)")
    from proctor.wiring.pytest_evals import run_target

    return run_target(request.node, marker.kwargs)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    marker = pyfuncitem.get_closest_marker(MARKER)
    if marker is None:
        return None
    from proctor.wiring import pytest_evals

    if "target" in marker.kwargs:
        pytest_evals.run_target_test(pyfuncitem, marker.kwargs)
    else:
        pytest_evals.run_body_test(pyfuncitem, marker.kwargs)
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    results = getattr(item, RESULTS, None)
    if results is not None and outcome.get_result().when == "call":
        # Attributes of a report travel to the process that prints it, which stores one run for each test.
        setattr(outcome.get_result(), RESULTS, list(results))


class _ResultCollector:
    """Collects the results of the evals, from the workers of xdist too."""

    def __init__(self, config: pytest.Config) -> None:
        self._runs = config.stash[_stored_runs]

    def pytest_runtest_logreport(self, report: Any) -> None:
        name, *part = getattr(report, RESULTS, ("",))
        if name:
            self._runs.setdefault(name, []).append((part[0], part[1]))


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["proctor_deselected"] = config.stash[_deselected]
        return
    for name, parts in config.stash[_stored_runs].items():
        from proctor.wiring.pytest_evals import store_run

        store_run(name, parts, config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # Every worker of xdist collects all tests.
    count = getattr(node, "workeroutput", {}).get("proctor_deselected", 0)
    node.config.stash[_deselected] = max(node.config.stash[_deselected], count)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if count := config.stash[_deselected]:
        terminalreporter.write_line(
            f"{count} eval{'s' * (count > 1)} deselected; run {'them' if count > 1 else 'it'} with --proctor"
        )
    if config.stash[_stored_runs] and config.getoption("--proctor-history") != "none":
        terminalreporter.write_line("the evals are stored; look at them with: proctor view")


def _usage_error(item: Any, what: str, fix: str) -> Exception:
    return pytest.Collector.CollectError(f"{item.nodeid} {what}. Fix: write {fix}")
