"""The runner spec: the runner, its time-outs and its error policy."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from proctor import EvalRunner, ProctorError, Sample, exact_match
from tests.spec.clauses import clause, not_applicable
from tests.spec.runner_examples import FRANCE, GOOD, LIGHT, double

not_applicable(
    "003.RUNNER.9",
    "5. Eval Runner",
    "A runner has the private methods _invoke_compass and _evaluate_example.",
    reason="private names of another program; their behaviour is proved by the other clauses",
)


@clause("003.RUNNER.1", "5. Eval Runner")
def test_a_runner_takes_a_target_and_evaluators() -> None:
    """A runner is set up with a target and a list of evaluators, and run on datasets."""
    runner = EvalRunner(GOOD, [exact_match])
    assert runner.run([FRANCE], history=False).total == 1
    assert runner.run([FRANCE, LIGHT], history=False).total == 2


@clause("003.RUNNER.2", "5. Eval Runner")
def test_every_evaluator_scores_every_output() -> None:
    """All evaluators of a runner are run on the output of each sample."""
    evaluators = {"same": exact_match, "short": lambda output: len(output) < 3}
    report = EvalRunner(double, evaluators).run([Sample("1", "a", "aa"), Sample("2", "bb", "bbbb")], history=False)
    assert [{n: s.value for n, s in r.scores.items()} for r in report.results] == [
        {"same": 1.0, "short": 1.0}, {"same": 1.0, "short": 0.0},
    ]  # fmt: skip


@clause("003.RUNNER.3", "5. Eval Runner")
def test_a_runner_computes_the_default_metrics() -> None:
    """Without metrics a runner computes the built-in ones."""
    report = EvalRunner(double, exact_match).run([Sample("1", "a", "aa")], history=False)
    assert report.metrics["success_rate"].value == 1.0
    assert report.metrics["exact_match.mean"].value == 1.0


@clause("003.RUNNER.4", "5. Eval Runner")
def test_a_runner_computes_the_metrics_it_is_given() -> None:
    """Custom metrics are computed in addition to the built-in ones."""

    def silent(results: Any) -> float:
        return float(sum(not result.output for result in results))

    report = EvalRunner(double, exact_match, [silent]).run([Sample("1", "", "")], history=False)
    assert report.metrics["silent"].value == 1.0
    assert report.metrics["pass_rate"].value == 1.0


@clause("003.RUNNER.5", "5. Eval Runner")
def test_the_timeout_of_a_runner_is_30_seconds() -> None:
    """A sample may take 30 seconds unless `timeout_seconds` says otherwise."""
    data = [Sample("1", "a", "aa")]
    usual = EvalRunner(double, exact_match).run(data, history=False).metadata
    own = EvalRunner(double, exact_match, timeout_seconds=2.5).run(data, history=False).metadata
    assert usual is not None
    assert own is not None
    assert (usual.options.timeout, own.options.timeout) == (30.0, 2.5)


@clause("003.RUNNER.6", "5. Eval Runner", ruling="runner: time-outs are real")
def test_an_async_target_is_cancelled_at_its_timeout() -> None:
    """An async target that takes too long is cancelled, and its result is a TimeoutError."""
    cancelled: list[str] = []

    async def stuck(text: str) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(text)
            raise
        return text

    report = EvalRunner(stuck, exact_match, timeout_seconds=0.05).run([Sample("1", "a")], history=False)
    (result,) = report.results
    assert result.error is not None
    assert result.error.startswith("TimeoutError: the target took longer than 0.05 s")
    assert cancelled == ["a"]


@clause("003.RUNNER.7", "5. Eval Runner", ruling="runner: time-outs are real")
def test_a_sync_target_is_left_at_its_timeout() -> None:
    """A sync target that takes too long is left in its thread, and the other samples go on."""
    release = threading.Event()

    def target(text: str) -> str:
        if text == "stuck":
            release.wait(60)
        return text

    try:
        report = EvalRunner(target, exact_match, timeout_seconds=0.2, concurrency=2).run(
            [Sample("1", "stuck", "stuck"), Sample("2", "b", "b")], history=False
        )
    finally:
        release.set()
    first, second = report.results
    assert first.error is not None
    assert first.error.startswith("TimeoutError")
    assert (second.error, second.passed) == (None, True)


@clause("003.RUNNER.8", "5. Eval Runner", ruling="runner: config is a configuration")
def test_a_run_takes_a_configuration_for_the_target() -> None:
    """The options of a configuration reach the target as keyword arguments."""

    def answer(text: str, *, temperature: float = 0.0) -> str:
        return f"{text} at {temperature}"

    report = EvalRunner(answer, exact_match).run(
        [Sample("1", "a", "a at 0.7")], {"warm": {"temperature": 0.7}}, history=False
    )
    assert report.pass_rate == 1.0


@clause("003.ERROR.1", "Error Handling")
def test_an_error_is_captured_with_its_sample() -> None:
    """A target that raises gives a result with the kind and message of the error."""
    report = EvalRunner(double, exact_match).run([Sample("1", "bad", "x")], history=False)
    (result,) = report.results
    assert (result.sample_id, result.error) == ("1", "ValueError: no such word")


@clause("003.ERROR.2", "Error Handling")
def test_a_failed_sample_has_no_output_and_no_scores() -> None:
    """A result with an error has neither an output nor scores."""
    report = EvalRunner(double, exact_match).run([Sample("1", "bad", "x")], history=False)
    (result,) = report.results
    assert (result.output, result.scores) == (None, {})


@clause("003.ERROR.3", "Error Handling", ruling="latency is measured also for failures")
def test_a_timeout_has_the_duration_that_it_took() -> None:
    """The latency of a sample that timed out is at least its time limit."""

    async def stuck(text: str) -> str:
        await asyncio.Event().wait()
        return text

    report = EvalRunner(stuck, exact_match, timeout_seconds=0.05).run([Sample("1", "a")], history=False)
    (result,) = report.results
    assert result.latency_ms is not None
    assert result.latency_ms >= 50.0


@clause("003.ERROR.4", "Error Handling", ruling="a bad trial is data")
def test_a_run_goes_on_after_an_error() -> None:
    """By default one failing sample neither stops nor alters its neighbours."""
    report = EvalRunner(double, exact_match).run(
        [Sample("1", "a", "aa"), Sample("2", "bad", "x"), Sample("3", "c", "cc")], history=False
    )
    assert [(r.sample_id, r.outcome) for r in report.results] == [
        ("1", "passed"), ("2", "error"), ("3", "passed"),
    ]  # fmt: skip


@clause("003.ERROR.5", "Error Handling", ruling="runner: on_error raise stops")
def test_a_run_stops_at_an_error_if_asked_to() -> None:
    """With `continue_on_error=False` the first error ends the run with an exception."""
    calls: list[str] = []

    def target(text: str) -> str:
        calls.append(text)
        return double(text)

    runner = EvalRunner(target, exact_match, continue_on_error=False, concurrency=1)
    with pytest.raises(ProctorError, match="no such word"):
        runner.run([Sample("1", "bad", "x"), Sample("2", "b", "bb")], history=False)
    assert calls == ["bad"]


@clause("003.ERROR.6", "Error Handling", ruling="runner: an evaluator's error is its own")
def test_the_error_of_an_evaluator_is_its_own() -> None:
    """An evaluator that raises has an error score; the other evaluators keep theirs."""

    def broken(output: str) -> bool:
        raise RuntimeError("no")

    report = EvalRunner(double, {"broken": broken, "same": exact_match}).run([Sample("1", "a", "aa")], history=False)
    (result,) = report.results
    assert (result.scores["broken"].status, result.scores["same"].value) == ("error", 1.0)
    assert "RuntimeError: no" in result.scores["broken"].reason


@clause("003.ERROR.7", "Error Handling", ruling="runner: no expected value is skipped")
def test_a_sample_without_expected_value_is_skipped_not_failed() -> None:
    """A sample that an evaluator has nothing to compare with is skipped and counted as such."""
    report = EvalRunner(double, exact_match).run([Sample("1", "a", "aa"), Sample("2", "b")], history=False)
    assert (report.pass_rate, report.counts.skipped) == (1.0, 1)
