"""The pytest plugin: evals as tests, with `@pytest.mark.proctor`.

Importing this module imports nothing else of Proctor. The rest is loaded when the first eval runs.
"""

from __future__ import annotations

import unittest
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from proctor.comparison.report import EvalReport

MARKER = "proctor"
# The attribute of items and reports with the results of an eval.
RESULTS = "proctor_results"
# The attribute of items with the number of items of their test.
PLANNED = "proctor_planned"
MARKER_HELP = (
    "proctor(target, dataset, evaluators, samples_as='items', epochs=1, min_passes, min_pass_rate, thresholds, name, "
    "…): an eval, which runs only with --proctor or -m proctor; see docs/pytest.md"
)
_deselected = pytest.StashKey[int]()
_stored_runs = pytest.StashKey["dict[str, dict[str, tuple[int, str, list[str]]]]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("proctor", "evals of Proctor")
    group.addoption(
        "--proctor", action="store_true", help="Also run the evals: tests marked with @pytest.mark.proctor."
    )
    group.addoption(
        "--proctor-history",
        metavar="FILE|URL",
        help="Store evals in this history; `none` stores nothing. Default: $PROCTOR_HISTORY, else .proctor/history.db.",
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
    requested = [_shorten_node_id(argument) for argument in config.args if "::" in argument]
    return any(f"{_shorten_node_id(node_id)}::".startswith(f"{prefix}::") for prefix in requested)


def _shorten_node_id(node_id: str) -> str:
    """Return a node id without its folder, which may be relative to another one, and without parameters."""
    file, *names = node_id.partition("[")[0].split("::")
    return "::".join([file.replace("\\", "/").rpartition("/")[2], *names])


class _MarkerError(pytest.Collector.CollectError):
    """A test has a wrong marker."""


class _InvalidEval(pytest.Collector):
    """A test with a wrong marker, which is an error of the collection."""

    def __init__(self, *, error: _MarkerError, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._error = error

    def collect(self) -> NoReturn:
        raise self._error


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None or not is_selected(metafunc.config, metafunc.definition.nodeid):
        return
    from proctor.errors import UsageError
    from proctor.wiring import pytest_evals, pytest_markers

    history = pytest_evals.get_history(metafunc.config)
    try:
        samples = pytest_markers.check_marker(metafunc.definition, marker, metafunc.fixturenames, history)
    except UsageError as error:
        raise _MarkerError(f"{metafunc.definition.nodeid}: {error}") from None
    if samples and pytest_markers.is_one_item_per_sample(marker.kwargs):
        metafunc.parametrize("sample", samples, ids=[sample.id for sample in samples])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    evals = {item for item in items if item.get_closest_marker(MARKER) and not is_selected(config, item.nodeid)}
    if evals:
        config.stash[_deselected] += len(evals)
        config.hook.pytest_deselected(items=[item for item in items if item in evals])
        items[:] = [item for item in items if item not in evals]


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str) -> Generator[None, Any, Any]:
    try:
        items = yield
    except _MarkerError as error:
        test = _shorten_node_id(f"{collector.nodeid}::{name}")
        if any("[" in argument and _shorten_node_id(argument) == test for argument in collector.config.args):
            # pytest looks for an item with parameters, and would only say that there is none.
            raise
        # An error of the module would hide the wrong markers of its other tests.
        return _InvalidEval.from_parent(collector, name=name, error=error)
    for item in items if isinstance(items, list) else ():
        # Node ids and options such as --lf select some of the items later.
        setattr(item, PLANNED, len(items))
    return items


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    owner = getattr(item, "cls", None)
    if item.get_closest_marker(MARKER) is not None and owner is not None and issubclass(owner, unittest.TestCase):
        _refuse(
            item, "is a method of a unittest.TestCase, but the marker needs a function or a plain class", "class …:"
        )


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Any:
    """The sample of an eval: `@pytest.mark.proctor(dataset=…)` passes one after another."""
    if request.node.get_closest_marker(MARKER) is None:
        _refuse(request.node, "uses `sample` and needs @pytest.mark.proctor", "@pytest.mark.proctor(dataset=…)")


@pytest.fixture
def report(request: pytest.FixtureRequest) -> EvalReport:
    """The report of the run of `@pytest.mark.proctor(target=…, dataset=…, evaluators=…)`."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None or "target" not in marker.kwargs:
        fix = "@pytest.mark.proctor(target=…, dataset=…)"
        _refuse(request.node, "uses `report` and needs @pytest.mark.proctor with a target", fix)
    from proctor.wiring.pytest_evals import run_target

    return run_target(request.node, marker.kwargs)


def _refuse(item: Any, what: str, fix: str) -> NoReturn:
    pytest.fail(f"{item.nodeid} {what}. Fix: write {fix}", pytrace=False)


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
    report, marker = outcome.get_result(), item.get_closest_marker(MARKER)
    results = vars(item).pop(RESULTS, None) if report.when == "call" else None
    if marker is None or "target" in marker.kwargs or (results is None and not report.skipped):
        return
    from proctor.wiring.pytest_evals import run_name

    # Attributes of a report travel to the process that prints it, which stores one run for each test.
    name, planned = run_name(item, marker.kwargs), getattr(item, PLANNED, 1)
    setattr(report, RESULTS, [name, item.nodeid, planned, *(results or ("", []))])


class _ResultCollector:
    """Collects the results of the evals, from the workers of xdist too."""

    def __init__(self, config: pytest.Config) -> None:
        self._runs = config.stash[_stored_runs]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if part := getattr(report, RESULTS, None):
            name, node_id, planned, metadata, results = part
            # A rerun replaces the earlier attempt.
            self._runs.setdefault(name, {})[node_id] = planned, metadata, results


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
        from proctor.wiring.pytest_evals import history_option

        terminalreporter.write_line(f"the evals are stored; look at them with: proctor view{history_option(config)}")
