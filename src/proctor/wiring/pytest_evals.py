"""Run the evals of the pytest plugin: a target on a dataset, or the body of a test as the target."""

from __future__ import annotations

import contextlib
import inspect
import shlex
from collections.abc import Callable, Mapping
from difflib import get_close_matches
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
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.history.payload import decode_result, encode_result
from proctor.records import codec
from proctor.records.run import EvaluatorSpec, RunMetadata, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.testing.assertions import assert_passes, describe_failures
from proctor.wiring.evaluate import aevaluate
from proctor.wiring.open_history import open_history

# The name of the score of a test's own assertions.
ASSERTIONS = "assertions"
# Arguments of the marker; all others are arguments of `evaluate`.
OWN_ARGUMENTS = ("target", "dataset", "evaluators", "samples_as", "min_passes", "min_pass_rate", "thresholds", "name")
_reports = pytest.StashKey[EvalReport]()


def run_target_test(item: pytest.Function, arguments: Mapping[str, Any]) -> None:
    """Run a target on a dataset, then the body of the test, then check the thresholds of the marker."""
    __tracebackhide__ = True
    run_report = item.stash.get(_reports, None) or run_target(item, arguments)
    values = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    returned = item.obj(**values)
    if inspect.isawaitable(returned):
        _await(returned)
    checks = {name: arguments[name] for name in ("min_pass_rate", "thresholds") if name in arguments}
    # Without thresholds in the marker, the body decides; a body without `report` has nothing to decide with.
    if (checks or "report" not in values) and (failure := _find_shortfall(run_report, checks)):
        pytest.fail(failure, pytrace=False)


def run_target(item: pytest.Function, arguments: Mapping[str, Any]) -> EvalReport:
    """Run the target of a marker on its dataset; the run is stored by the engine."""
    options = {name: value for name, value in arguments.items() if name not in OWN_ARGUMENTS}
    options.setdefault("history", _get_history(item.config))
    item.stash[_reports] = _evaluate(item, arguments["target"], arguments.get("dataset"), arguments, options)
    return item.stash[_reports]


def run_body_test(item: pytest.Function, arguments: Mapping[str, Any]) -> None:
    """Run the body of the test as the target: on its sample, or on all samples, once or several times."""
    __tracebackhide__ = True
    samples = _list_samples(item, arguments)
    options = {name: value for name, value in arguments.items() if name not in OWN_ARGUMENTS}
    options = {"concurrency": 1, **options, "history": False, "progress": False}
    body = _Body(item)
    run_report = _evaluate(item, body, samples, arguments, options, body.score_assertions)
    if body.skip is not None:
        raise body.skip
    results = [encode_result(result)[0].decode() for result in run_report.results]
    name = _run_name(item.nodeid, arguments)
    item.proctor_results = name, codec.encode(run_report.metadata).decode(), results  # type: ignore[attr-defined]
    problem = _find_problem(run_report, arguments)
    if problem and len(results) == 1 and body.failure is not None:
        raise body.failure
    if problem:
        text = describe_failures(run_report, [] if problem == "failed" else [problem], max_shown=5)
        history = _get_history(item.config)
        option = f" --history {shlex.quote(history)}" if history else ""
        hint = "" if history is False else f"\nLook at it: proctor show {name!r}{option}"
        pytest.fail(text + hint, pytrace=False)


def _find_problem(run_report: EvalReport, arguments: Mapping[str, Any]) -> str:
    """Describe why the results of a test's body do not pass; empty if they do."""
    counts = run_report.counts
    needed = arguments.get("min_passes")
    if needed is not None:
        return "" if counts.passed >= needed else f"{needed} of {counts.total} must pass"
    rates = {name: arguments[name] for name in ("min_pass_rate", "thresholds") if name in arguments}
    if not rates:
        return "" if counts.passed == counts.total else "failed"
    failure = _find_shortfall(run_report, rates)
    return failure.splitlines()[1] if failure else ""


def _find_shortfall(run_report: EvalReport, checks: Mapping[str, Any]) -> str:
    """Return the message of `assert_passes`; empty if it passes."""
    try:
        assert_passes(run_report, **checks)
    except AssertionError as error:
        return str(error)
    return ""


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
        assertions = BoundEvaluator(EvaluatorSpec(ASSERTIONS, ASSERTIONS), "inline", score_assertions)
        # Errors count the evaluators as the marker does, so this one comes last.
        evaluators = [*_as_list(evaluators), assertions]
    for option in options:
        if similar := get_close_matches(option, OWN_ARGUMENTS, n=1, cutoff=0.8):
            pytest.fail(f"unknown argument {option!r}\nFix: did you mean {similar[0]!r}?", pytrace=False)
    name = _run_name(item.nodeid, arguments)
    try:
        return bridge.run(aevaluate(target, _resolve(dataset, item), evaluators, name=name, **options))
    except UsageError as error:
        message = str(error)
    pytest.fail(message, pytrace=False)


def _as_list(evaluators: Any) -> list[Any]:
    return list(evaluators) if isinstance(evaluators, list | tuple) else [] if evaluators is None else [evaluators]


def _resolve(dataset: Any, item: pytest.Item) -> Any:
    """Resolve a path relative to the test file, or else to the current folder."""
    if isinstance(dataset, str):
        path = item.path.parent / dataset
        return path if path.exists() else dataset
    return dataset


def _list_samples(item: pytest.Function, arguments: Mapping[str, Any]) -> list[Any]:
    callspec = getattr(item, "callspec", None)
    if callspec is not None and isinstance(callspec.params.get("sample"), Sample):
        return [callspec.params["sample"]]
    if "dataset" in arguments:
        return load_samples(arguments["dataset"], item)
    return [Sample(item.name, "")]


def load_samples(dataset: Any, item: Any) -> list[Any]:
    """Return the samples of a marker's dataset; a wrong dataset is an error of the collection."""
    try:
        return list(make_source(_resolve(dataset, item)))
    except UsageError as error:
        raise pytest.Collector.CollectError(f"{item.nodeid}: {error}") from None


def _run_name(node_id: str, arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("name") or node_id.partition("[")[0])


def _get_history(config: pytest.Config) -> Any:
    """Return the address of the history, None for the default, False for none."""
    address = config.getoption("--proctor-history")
    return False if address == "none" else address


def _await(awaitable: Any) -> None:
    async def wait() -> None:
        await awaitable

    bridge.run(wait())


def store_run(name: str, parts: list[tuple[str, list[str]]], config: pytest.Config) -> None:
    """Store the results of all items of a test as one run."""
    where = _get_history(config)
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
