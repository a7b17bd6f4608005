"""Run the evals of the pytest plugin: a target on a dataset, or the body of a test as the target."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from proctor.comparison.report import EvalReport
from proctor.core import bridge
from proctor.core.clock import SystemClock
from proctor.datasets.dataset import make_source
from proctor.engine.finish import finish
from proctor.engine.start import new_run_id
from proctor.errors import UsageError
from proctor.history.payload import decode_result, encode_result
from proctor.records import codec
from proctor.records.run import RunMetadata, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.testing.assertions import describe_failures, find_problems
from proctor.wiring.evaluate import aevaluate
from proctor.wiring.open_history import open_history
from proctor.wiring.pytest_markers import (
    OWN_ARGUMENTS,
    is_one_item_per_sample,
    list_evaluators,
    make_assertions,
    resolve_path,
)

# The arguments that decide which results are enough; without them, all results must pass.
CONDITIONS = frozenset({"min_passes", "min_pass_rate", "thresholds"})
_reports = pytest.StashKey[EvalReport]()


def run_target_test(item: pytest.Function, arguments: Mapping[str, Any]) -> None:
    """Run a target on a dataset, then the body of the test, then check the thresholds of the marker."""
    __tracebackhide__ = True
    run_report = item.stash.get(_reports, None) or run_target(item, arguments)
    values = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    returned = item.obj(**values)
    if inspect.isawaitable(returned):
        _await(returned)
    # Without conditions in the marker, the body decides; a body without `report` has nothing to decide with.
    is_checked = "report" not in values or not CONDITIONS.isdisjoint(arguments)
    if is_checked and (problems := _find_problems(run_report, arguments)):
        pytest.fail(describe_failures(run_report, problems, max_shown=5), pytrace=False)


def run_target(item: pytest.Function, arguments: Mapping[str, Any]) -> EvalReport:
    options = {name: value for name, value in arguments.items() if name not in OWN_ARGUMENTS}
    options.setdefault("history", get_history(item.config))
    item.stash[_reports] = _evaluate(item, arguments["target"], arguments.get("dataset"), arguments, options)
    return item.stash[_reports]


def run_body_test(item: pytest.Function, arguments: Mapping[str, Any]) -> None:
    """Run the body of the test as the target: on its sample, or on all samples, once or several times."""
    __tracebackhide__ = True
    samples = _list_samples(item, arguments)
    options = {name: value for name, value in arguments.items() if name not in OWN_ARGUMENTS}
    if is_one_item_per_sample(arguments):
        # The collection has applied them.
        options = {name: value for name, value in options.items() if name not in ("limit", "select", "shuffle")}
    options = {"concurrency": 1, **options, "history": False, "progress": False}
    body = _Body(item)
    run_report = _evaluate(item, body, samples, arguments, options, body.score_assertions)
    if body.skip is not None:
        raise body.skip
    results = [encode_result(result)[0].decode() for result in run_report.results]
    name = _run_name(item.nodeid, arguments)
    item.proctor_results = name, codec.encode(run_report.metadata).decode(), results  # type: ignore[attr-defined]
    has_conditions = not CONDITIONS.isdisjoint(arguments)
    problems = _find_problems(run_report, arguments) if has_conditions else []
    is_failed = bool(problems) if has_conditions else run_report.counts.passed < len(results)
    if is_failed and len(results) == 1 and body.failure is not None:
        raise body.failure
    if is_failed:
        text = describe_failures(run_report, problems, max_shown=5)
        hint = "" if get_history(item.config) is False else f"\nLook at it: proctor show {name!r}"
        pytest.fail(text + hint, pytrace=False)


def _find_problems(run_report: EvalReport, arguments: Mapping[str, Any]) -> list[str]:
    """Describe which conditions of the marker do not hold; every condition counts."""
    passed, total, needed = run_report.counts.passed, run_report.counts.total, arguments.get("min_passes")
    problems = [f"{needed} of {total} must pass"] if needed is not None and passed < needed else []
    checks = {name: arguments[name] for name in ("min_pass_rate", "thresholds") if name in arguments}
    if needed is None:
        return find_problems(run_report, **checks)
    return problems + (find_problems(run_report, **{"min_pass_rate": 0, **checks}) if checks else [])


class _Body:
    """The body of a test as a target; assertions that fail become a score, other exceptions an error."""

    def __init__(self, item: pytest.Function) -> None:

        self._item = item
        self._failures: dict[tuple[str, int], str] = {}
        self.spec = TargetSpec(item.originalname, "pytest")
        self.failure: BaseException | None = None
        self.skip: BaseException | None = None
        self.blocking = not inspect.iscoroutinefunction(item.obj)

    def call(self, sample: Sample[Any, Any], _options: Mapping[str, Any], epoch: int = 0, /) -> Any:
        values = {name: self._item.funcargs[name] for name in self._item._fixtureinfo.argnames}
        if "sample" in values:
            values["sample"] = sample
        if self.blocking:
            with _Guard(self, sample.id, epoch) as guard:
                guard.value = self._item.obj(**values)
            return guard.value
        return self._await(values, sample.id, epoch)

    async def _await(self, values: Mapping[str, Any], sample_id: str, epoch: int) -> Any:
        with _Guard(self, sample_id, epoch) as guard:
            guard.value = await self._item.obj(**values)
        return guard.value

    def add_failure(self, sample_id: str, epoch: int, error: BaseException) -> None:
        self.failure = self.failure or error
        self._failures[sample_id, epoch] = str(error) or type(error).__name__

    def score_assertions(self, trial: Any) -> Any:

        reason = self._failures.get((trial.sample.id, trial.epoch))
        return Score(float(reason is None), reason is None, reason or "")

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        return [f"the body of a test has no option {name!r}" for name in options]

    async def close(self) -> None:
        """Nothing to release: pytest owns the fixtures."""


class _Guard:
    """Catches what a test's body raises: failed assertions, `pytest.fail`, `pytest.skip`; errors pass."""

    def __init__(self, body: _Body, sample_id: str, epoch: int) -> None:
        self._body, self._sample_id, self._epoch = body, sample_id, epoch
        self.value: Any = None

    def __enter__(self) -> _Guard:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _traceback: Any) -> bool:
        if isinstance(error, (AssertionError, pytest.fail.Exception)):
            self._body.add_failure(self._sample_id, self._epoch, error)
            return True
        if isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
            self._body.skip = error
            return True
        if error is not None:
            self._body.failure = self._body.failure or error
        return False


def _evaluate(
    item: pytest.Function,
    target: Any,
    dataset: Any,
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
    score_assertions: Callable[[Any], Any] | None = None,
) -> EvalReport:

    evaluators = arguments.get("evaluators")
    if score_assertions is not None:
        evaluators = [make_assertions(score_assertions), *list_evaluators(evaluators)]
    name = _run_name(item.nodeid, arguments)
    try:
        return bridge.run(aevaluate(target, resolve_path(dataset, item), evaluators, name=name, **options))
    except UsageError as error:
        message = str(error)
    pytest.fail(message, pytrace=False)


def _list_samples(item: pytest.Function, arguments: Mapping[str, Any]) -> list[Any]:

    callspec = getattr(item, "callspec", None)
    if callspec is not None and isinstance(callspec.params.get("sample"), Sample):
        return [callspec.params["sample"]]
    if "dataset" in arguments:
        return list(make_source(resolve_path(arguments["dataset"], item)))
    return [Sample(item.name, "")]


def _run_name(node_id: str, arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("name") or node_id.partition("[")[0])


def get_history(config: pytest.Config) -> Any:
    where = config.getoption("--proctor-history")
    return False if where == "none" else where


def _await(awaitable: Any) -> None:

    async def wait() -> None:
        await awaitable

    bridge.run(wait())


def store_run(name: str, parts: list[tuple[str, list[str]]], config: pytest.Config) -> None:
    """Store the results of all items of a test as one run."""
    where = get_history(config)
    if where is False:
        return

    runs = [codec.decode(metadata, RunMetadata) for metadata, _ in parts]
    results = [decode_result(result.encode()) for _, lines in parts for result in lines]
    first, now = runs[0], SystemClock().now()
    specs = {spec.name: spec for run in runs for spec in run.evaluators}
    names = {result.sample_id for result in results}
    run = msgspec.structs.replace(
        first,
        run_id=new_run_id(first.started_at),
        status="completed",
        finished_at=now,
        duration_seconds=sum(run.duration_seconds for run in runs),
        total=len(results),
        dataset=msgspec.structs.replace(first.dataset, name=name, source="pytest", length=len(names), fingerprint=None),
        evaluators=tuple(specs.values()),
        warnings=tuple(dict.fromkeys(warning for run in runs for warning in run.warnings)),
    )
    with contextlib.closing(open_history(where)) as history:
        history.begin(run)
        with history.claim(run.run_id):
            with history.writer(run.run_id) as writer:
                for position, result in enumerate(results):
                    writer.add(position, result)
            finish(history, run)
