"""Run the evals of the pytest plugin: a target on a dataset, or the body of a test as the target."""

from __future__ import annotations

import ast
import contextlib
import inspect
import shlex
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from proctor.comparison.report import EvalReport
from proctor.core import bridge
from proctor.core.clock import SystemClock
from proctor.datasets.dataset import make_source
from proctor.engine.finish import finish, summarize
from proctor.engine.start import new_run_id
from proctor.errors import UsageError
from proctor.evaluators.score_conversion import NO_ANSWER
from proctor.history.payload import decode_result, encode_result
from proctor.records import codec
from proctor.records.results import ResultList
from proctor.records.run import EvaluatorSpec, RunMetadata, TargetSpec
from proctor.records.sample import CLUSTER, Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Reply
from proctor.testing.assertions import describe_failures, find_problems
from proctor.wiring.evaluate import aevaluate
from proctor.wiring.open_history import open_history
from proctor.wiring.prepare import load_metrics
from proctor.wiring.pytest_markers import (
    ASSERTIONS,
    OWN_ARGUMENTS,
    add_assertions,
    is_one_item_per_sample,
    resolve_path,
)

# The arguments that decide which results are enough; without them, all results must pass.
CONDITIONS = frozenset({"min_passes", "min_pass_rate", "thresholds"})
NO_OUTPUT = "the test failed an assertion, so it returned no output"
_reports = pytest.StashKey[EvalReport]()


def run_target_test(item: pytest.Function, arguments: Mapping[str, Any]) -> None:
    """Run a target on a dataset, then the body of the test, then check the thresholds of the marker."""
    __tracebackhide__ = True
    run_report = item.stash.get(_reports, None) or run_target(item, arguments)
    # A rerun of the test runs the target again.
    del item.stash[_reports]
    values = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    returned = item.obj(**values)
    if inspect.isawaitable(returned):
        _await(returned)
    # Without conditions in the marker, the body decides; a body without `report` has nothing to decide with.
    is_checked = "report" not in values or not CONDITIONS.isdisjoint(arguments)
    if is_checked and (problems := _find_problems(run_report, arguments)):
        text = describe_failures(run_report, problems, max_shown=5, options=history_option(item.config))
        pytest.fail(text, pytrace=False)


def run_target(item: pytest.Function, arguments: Mapping[str, Any]) -> EvalReport:
    """Run the target of a marker on its dataset; the run is stored by the engine."""
    options = {name: value for name, value in arguments.items() if name not in OWN_ARGUMENTS}
    options.setdefault("history", get_history(item.config))
    item.stash[_reports] = _evaluate(item, arguments["target"], arguments.get("dataset"), arguments, options)
    return item.stash[_reports]


def run_body_test(item: pytest.Function, arguments: Mapping[str, Any]) -> None:
    """Run the body of the test as the target: on its sample, or on all samples, once or several times."""
    __tracebackhide__ = True
    samples = _list_samples(item, arguments)
    parameters = _read_parameters(item, arguments)
    originals = {_name_sample(sample, parameters): sample for sample in samples}
    options = {name: value for name, value in arguments.items() if name not in OWN_ARGUMENTS}
    if is_one_item_per_sample(arguments):
        # The collection has applied them.
        options = {name: value for name, value in options.items() if name not in ("limit", "select", "shuffle")}
    options = {"concurrency": 1, **options, "history": False, "progress": False}
    body = _Body(item, originals)
    named_samples = [_rename_sample(sample, parameters) for sample in samples]
    run_report = _evaluate(item, body, named_samples, arguments, options, body.score_assertions)
    if body.skips:
        judged = [result for result in run_report.results if (result.sample_id, result.trial.epoch) not in body.skips]
        if not judged:
            raise next(iter(body.skips.values()))
        run_report = _summarize_results(run_report, judged, arguments)
    if body.has_failures:
        results = [body.explain_skips(result) for result in run_report.results]
        run_report = _summarize_results(run_report, results, arguments)
    if not body.has_assertions:
        run_report = _leave_out_assertions(run_report, arguments)
    encoded = [encode_result(result)[0].decode() for result in run_report.results]
    item.proctor_results = codec.encode(_without_summary_warnings(run_report)).decode(), encoded  # type: ignore[attr-defined]
    has_conditions = not CONDITIONS.isdisjoint(arguments)
    problems = _find_problems(run_report, arguments) if has_conditions else []
    is_failed = bool(problems) if has_conditions else run_report.counts.passed < len(encoded)
    if is_failed and len(encoded) == 1 and body.failure is not None:
        raise body.failure
    if is_failed:
        text = describe_failures(run_report, problems, max_shown=5)
        command = f"proctor show {shlex.quote(run_name(item, arguments))}{history_option(item.config)}"
        hint = "" if get_history(item.config) is False else f"\nLook at it: {command}"
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

    def __init__(self, item: pytest.Function, samples: Mapping[str, Any]) -> None:
        self._item, self._samples = item, samples
        self.has_assertions = _contains_assert(item.function)
        self._failures: dict[tuple[str, int], str] = {}
        self.spec = TargetSpec(item.originalname, "pytest")
        self.failure: BaseException | None = None
        self.skips: dict[tuple[str, int], BaseException] = {}
        self.blocking = not inspect.iscoroutinefunction(item.obj)

    def call(self, sample: Sample[Any, Any], _options: Mapping[str, Any], epoch: int = 0, /) -> Any:
        values = {name: self._item.funcargs[name] for name in self._item._fixtureinfo.argnames}
        if "sample" in values:
            values["sample"] = self._samples[sample.id]
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

    @property
    def has_failures(self) -> bool:
        return bool(self._failures)

    def explain_skips(self, result: EvalResult) -> EvalResult:
        """Give the reason why evaluators skipped the missing output of a failed test; other results are unchanged."""
        if (result.sample_id, result.trial.epoch) not in self._failures:
            return result
        scores = {
            name: Score.skipped(NO_OUTPUT) if score.reason == NO_ANSWER else score
            for name, score in result.scores.items()
        }
        trial = msgspec.structs.replace(result.trial, raw_output=None)
        return msgspec.structs.replace(result, trial=trial, scores=scores)

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
        # Evaluators skip a trial without an answer, which is one with a raw output only.
        self.value: Any = Reply(None, raw_output=NO_OUTPUT)

    def __enter__(self) -> _Guard:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, _traceback: Any) -> bool:
        if isinstance(error, (AssertionError, pytest.fail.Exception)):
            self._body.add_failure(self._sample_id, self._epoch, error)
            return True
        if isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
            self._body.skips[self._sample_id, self._epoch] = error
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
        evaluators = add_assertions(evaluators, score_assertions)
    name = run_name(item, arguments)
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


def _read_parameters(item: pytest.Function, arguments: Mapping[str, Any]) -> str:
    """Return the id of the other parameters of a test with a dataset, such as `en` of `test_price[a-en]`."""
    ids = getattr(getattr(item, "callspec", None), "_idlist", ())
    if "dataset" not in arguments:
        return ""
    # The samples are the first parameter.
    is_first = "target" not in arguments and is_one_item_per_sample(arguments)
    return "-".join(ids[1:] if is_first else ids)


def _name_sample(sample: Sample[Any, Any], parameters: str) -> str:
    return f"{sample.id}[{parameters}]" if parameters else sample.id


def _rename_sample(sample: Sample[Any, Any], parameters: str) -> Sample[Any, Any]:
    """Add the parameters of a test to the id of a sample; the same sample with other parameters is in its cluster."""
    if not parameters:
        return sample
    metadata = {**sample.metadata, CLUSTER: sample.cluster or sample.id}
    return msgspec.structs.replace(sample, id=_name_sample(sample, parameters), metadata=metadata)


def _contains_assert(function: Any) -> bool:
    """True if the source of a function has an assert statement, or cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return True
    return any(isinstance(node, ast.Assert) for node in ast.walk(tree))


def _leave_out_assertions(run_report: EvalReport, arguments: Mapping[str, Any]) -> EvalReport:
    """Remove the score of a body's assertions if none failed and evaluators judge every result."""
    results, run = list(run_report.results), run_report.metadata
    scores = [result.scores for result in results if result.success]
    is_needed = any(metric.startswith(f"{ASSERTIONS}.") for metric in arguments.get("thresholds", ()))
    if (
        is_needed
        or run is None
        or any(len(by_name) < 2 or by_name[ASSERTIONS].passed is not True for by_name in scores)
    ):
        return run_report
    results = [
        msgspec.structs.replace(
            result, scores={name: result.scores[name] for name in result.scores if name != ASSERTIONS}
        )
        for result in results
    ]
    specs = tuple(spec for spec in run.evaluators if spec.name != ASSERTIONS)
    if not specs:
        return run_report
    return _summarize_results(run_report, results, arguments, specs)


def _summarize_results(
    run_report: EvalReport,
    results: list[EvalResult],
    arguments: Mapping[str, Any],
    specs: tuple[EvaluatorSpec, ...] | None = None,
) -> EvalReport:
    """Return the report of other results of the run, or of results without some scores."""
    run = _without_summary_warnings(run_report)
    run = msgspec.structs.replace(run, total=len(results), evaluators=specs or run.evaluators)
    metrics = load_metrics(arguments.get("metrics", ()), run.evaluators, run.fields)
    run, table, by_configuration = summarize(ResultList(results), run, metrics)
    shortened = EvalReport(ResultList(results), run, table, by_configuration)
    vars(shortened).update(is_stored=run_report.is_stored)
    return shortened


def _without_summary_warnings(run_report: EvalReport) -> RunMetadata:
    """Return the run without the warnings that describe its results: they differ if the results do."""
    assert run_report.metadata is not None
    run = run_report.metadata
    summarized, _, _ = summarize(run_report.results, msgspec.structs.replace(run, warnings=()))
    warnings = tuple(warning for warning in run.warnings if warning not in summarized.warnings)
    return msgspec.structs.replace(run, warnings=warnings)


def run_name(item: Any, arguments: Mapping[str, Any]) -> str:
    """Return the name of the run of a test; a target has one run for each set of parameters."""
    name = str(arguments.get("name") or item.nodeid.partition("[")[0])
    parameters = _read_parameters(item, arguments) if "target" in arguments else ""
    return f"{name}[{parameters}]" if parameters else name


def history_option(config: pytest.Config) -> str:
    """Return the option of commands that read the history of these evals; empty for the default history."""
    where = get_history(config)
    return f" --history {shlex.quote(where)}" if where else ""


def get_history(config: pytest.Config) -> Any:
    where = config.getoption("--proctor-history")
    return False if where == "none" else where


def _await(awaitable: Any) -> None:
    async def wait() -> None:
        await awaitable

    bridge.run(wait())


def store_run(name: str, parts: Mapping[str, tuple[int, str, list[str]]], config: pytest.Config) -> None:
    """Store the results of all items of a test as one run; it is interrupted if some items did not run."""
    where = get_history(config)
    runs = [codec.decode(metadata, RunMetadata) for _, metadata, _ in parts.values() if metadata]
    if where is False or not runs:
        return
    results = [decode_result(result.encode()) for _, _, lines in parts.values() for result in lines]
    planned = sum({node_id.partition("[")[0]: count for node_id, (count, _, _) in parts.items()}.values())
    missing = max(planned - len(parts), 0)
    first, now = runs[0], SystemClock().now()
    specs = {spec.name: spec for run in runs for spec in run.evaluators}
    names = {result.sample_id for result in results}
    partial = [f"only {len(parts)} of the {planned} items of this test ran"] if missing else []
    run = msgspec.structs.replace(
        first,
        run_id=new_run_id(first.started_at),
        status="interrupted" if missing else "completed",
        finished_at=now,
        duration_seconds=sum(run.duration_seconds for run in runs),
        total=len(results) + missing * max(len(lines) for _, _, lines in parts.values()),
        dataset=msgspec.structs.replace(first.dataset, name=name, source="pytest", length=len(names), fingerprint=None),
        evaluators=tuple(specs.values()),
        warnings=tuple(dict.fromkeys([*partial, *(warning for run in runs for warning in run.warnings)])),
    )
    with contextlib.closing(open_history(where)) as history:
        history.begin(run)
        with history.claim(run.run_id):
            with history.writer(run.run_id) as writer:
                for position, result in enumerate(results):
                    writer.add(position, result)
            finish(history, run)
