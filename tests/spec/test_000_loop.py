"""The loop spec: EvalLoop, submitting and collecting."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from proctor import (
    Dataset,
    EvalLoop,
    EvalRequest,
    EvalResult,
    InMemoryMailbox,
    Mailbox,
    Sample,
    Score,
    Session,
    collect_results,
    exact_match,
    submit_dataset,
)
from proctor.errors import MailboxFull
from tests.spec.clauses import clause, not_applicable

DATASET = Dataset(samples=tuple(Sample(str(n), f"q{n}", f"Q{n}") for n in range(3)))

not_applicable(
    "000.LIMIT.1",
    "Limitations",
    "Sequential execution, no caching, no checkpoints and a single loop are limitations.",
    reason="they limit the program of the specification; Proctor has concurrency, cache and resume",
)


class Boxes:
    """A pair of mailboxes, and a loop between them."""

    def __init__(self, target: Any = str.upper, evaluator: Any = exact_match, **options: Any):
        self.requests: Mailbox[EvalRequest[str, str]] = InMemoryMailbox(name="requests")
        self.results: Mailbox[EvalResult] = options.pop("results", InMemoryMailbox(name="results"))
        self.loop: EvalLoop[str, str, str] = EvalLoop(
            loop=target, evaluator=evaluator, requests=self.requests, results=self.results, wait_seconds=0, **options
        )


@clause("000.LOOP.1", "EvalLoop")
def test_a_loop_answers_requests_with_results() -> None:
    """A loop takes requests from one mailbox and sends results to the other."""
    boxes = Boxes()
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    report = collect_results(boxes.results, expected_count=3)
    assert sorted(r.sample_id for r in report.results) == ["0", "1", "2"]
    assert report.pass_rate == 1.0


@clause("000.LOOP.2", "EvalLoop", ruling="a poll takes as many messages as are waiting")
def test_one_iteration_answers_all_waiting_requests() -> None:
    """`run(max_iterations=1)` handles the waiting requests once, up to the batch size."""
    boxes = Boxes(batch_size=2)
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    assert boxes.results.approximate_count() == 2
    boxes.loop.run(max_iterations=1)
    assert boxes.results.approximate_count() == 3


@clause("000.LOOP.3", "EvalLoop", ruling="there is a run-until-empty")
def test_a_loop_runs_until_the_mailbox_is_empty() -> None:
    """`run(until_empty=True)` ends when no request is waiting."""
    boxes = Boxes(batch_size=1)
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(until_empty=True)
    assert boxes.requests.approximate_count() == 0
    assert boxes.results.approximate_count() == 3


@clause("000.LOOP.4", "EvalLoop")
def test_a_handled_request_is_acknowledged() -> None:
    """After its result was sent, a request is no longer in its mailbox."""
    boxes = Boxes()
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    assert boxes.requests.approximate_count() == 0


@clause("000.LOOP.5", "EvalLoop")
def test_a_loop_wraps_a_main_loop() -> None:
    """An object with `execute(input)` that returns output and session is a target."""

    class Loop:
        def execute(self, question: str) -> tuple[str, Session]:
            return question.upper(), Session()

    boxes = Boxes(Loop())
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    assert collect_results(boxes.results, expected_count=3).pass_rate == 1.0


@clause("000.LOOP.6", "EvalLoop")
def test_the_latency_of_each_sample_is_measured() -> None:
    """Each result has the time that its target took."""

    async def slow(text: str) -> str:
        await asyncio.sleep(0.02)
        return text.upper()

    boxes = Boxes(slow)
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    report = collect_results(boxes.results, expected_count=3)
    assert all(r.latency_ms is not None and r.latency_ms >= 19 for r in report.results)


@clause("000.FAILURE.1", "EvalLoop", ruling="failures of the target give an error result, no retry")
def test_a_failing_target_gives_an_error_result() -> None:
    """The failure of a target is sent as a result with an error, and the request is done."""
    calls = []

    def fails(text: str) -> str:
        calls.append(text)
        raise KeyError(text)

    boxes = Boxes(fails)
    submit_dataset(Dataset(samples=DATASET.samples[:1]), boxes.requests)
    boxes.loop.run(max_iterations=1)
    (result,) = collect_results(boxes.results, expected_count=1).results
    assert "KeyError" in str(result.error)
    assert boxes.requests.approximate_count() == 0
    assert calls == ["q0"]


@clause("000.FAILURE.2", "EvalLoop", ruling="latency is measured also for failures")
def test_the_latency_of_a_failure_is_measured() -> None:
    """An error result has a latency, and its score has no value."""

    def fails(text: str) -> str:
        time.sleep(0.01)
        raise RuntimeError("no")

    boxes = Boxes(fails)
    submit_dataset(Dataset(samples=DATASET.samples[:1]), boxes.requests)
    boxes.loop.run(max_iterations=1)
    (result,) = collect_results(boxes.results, expected_count=1).results
    assert result.latency_ms is not None
    assert result.latency_ms >= 9
    assert result.score.value is None


@clause("000.FAILURE.3", "EvalLoop", ruling="a bad trial is data")
def test_one_failing_sample_does_not_stop_the_others() -> None:
    """The other samples of a poll are evaluated as if it were not there."""

    def moody(text: str) -> str:
        if text == "q1":
            raise RuntimeError("no")
        return text.upper()

    boxes = Boxes(moody)
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    report = collect_results(boxes.results, expected_count=3)
    assert {r.sample_id: r.success for r in report.results} == {"0": True, "1": False, "2": True}


@clause("000.FAILURE.4", "EvalLoop", ruling="a failed delivery returns the message")
def test_a_result_that_cannot_be_sent_returns_the_request() -> None:
    """If sending a result fails, the request is returned and no other result is sent."""

    class Full(InMemoryMailbox[EvalResult]):
        def send(self, *args: Any, **options: Any) -> str:
            raise MailboxFull("the mailbox is full")

        def send_all(self, *args: Any, **options: Any) -> Any:
            raise MailboxFull("the mailbox is full")

    boxes = Boxes(results=Full(name="results"), lease_seconds=1.0)
    submit_dataset(Dataset(samples=DATASET.samples[:1]), boxes.requests)
    boxes.loop.run(max_iterations=1)
    assert boxes.requests.approximate_count() == 1
    assert boxes.results.approximate_count() == 0


@clause("000.FAILURE.5", "EvalLoop")
def test_an_evaluator_that_raises_gives_an_error_score() -> None:
    """The failure of an evaluator is a score without a value, not the failure of the target."""

    def broken(output: str, expected: str) -> Score:
        raise RuntimeError("judge is down")

    boxes = Boxes(evaluator=broken)
    submit_dataset(Dataset(samples=DATASET.samples[:1]), boxes.requests)
    boxes.loop.run(max_iterations=1)
    (result,) = collect_results(boxes.results, expected_count=1).results
    assert result.error is None
    assert (result.score.status, result.score.value) == ("error", None)
    assert "judge is down" in result.score.reason


@clause("000.SUBMIT.1", "Submitting Samples")
def test_submitting_sends_one_request_for_each_sample() -> None:
    """`submit_dataset` sends a request for each sample, in order."""
    requests: Mailbox[EvalRequest[str, str]] = InMemoryMailbox(name="requests")
    submit_dataset(DATASET, requests)
    messages = requests.receive(max_messages=10)
    assert [message.body.sample.id for message in messages] == ["0", "1", "2"]


@clause("000.COLLECT.1", "Collecting Results")
def test_collecting_waits_for_the_expected_count() -> None:
    """`collect_results` returns as soon as it has as many results as expected."""
    boxes = Boxes()
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    report = collect_results(boxes.results, expected_count=3, timeout_seconds=300)
    assert report.total == 3


@clause("000.COLLECT.2", "Collecting Results", ruling="a partial report on time-out")
def test_a_time_out_gives_a_partial_report_that_says_what_is_missing() -> None:
    """After the timeout, the report contains the results received and names the missing samples."""
    boxes = Boxes()
    submission = submit_dataset(DATASET, boxes.requests)
    EvalLoop(
        loop=str.upper,
        evaluator=exact_match,
        requests=boxes.requests,
        results=boxes.results,
        batch_size=2,
        wait_seconds=0,
    ).run(max_iterations=1)
    report = collect_results(boxes.results, submission, timeout_seconds=0.2)
    assert report.total == 2
    assert report.metadata is not None
    assert any("2" in warning for warning in report.metadata.warnings)


@clause("000.COLLECT.3", "Collecting Results", ruling="at least once, counted once")
def test_a_result_that_comes_twice_counts_once() -> None:
    """A duplicate result is dropped, and a success wins over an error."""
    boxes = Boxes()
    submission = submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    (first,) = boxes.results.receive(max_messages=1)
    boxes.results.send(first.body)
    boxes.results.send(first.body)
    first.acknowledge()
    report = collect_results(boxes.results, submission, timeout_seconds=5)
    assert sorted(r.sample_id for r in report.results) == ["0", "1", "2"]


@clause("000.COLLECT.4", "Collecting Results", ruling="collecting ignores other runs")
def test_results_of_another_run_are_ignored() -> None:
    """Results of an earlier submission are not counted as those of this one."""
    boxes = Boxes()
    submit_dataset(Dataset(samples=(Sample("other", "x", "X"),)), boxes.requests)
    boxes.loop.run(max_iterations=1)
    submission = submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    report = collect_results(boxes.results, submission, timeout_seconds=5)
    assert sorted(r.sample_id for r in report.results) == ["0", "1", "2"]


@clause("000.TYPES.1", "EvalLoop", ruling="generic types can be written as in the specs")
def test_a_loop_takes_the_types_of_the_spec() -> None:
    """`EvalLoop[str, str, str]` can be written with three type parameters."""
    assert EvalLoop[str, str, str].__args__ == (str, str, str)  # type: ignore[attr-defined]


@clause("000.EXAMPLE.1", "Usage Examples")
def test_the_numbers_of_the_example_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The basic example prints pass rate, mean score, mean latency and each failure."""
    boxes = Boxes(lambda text: "Q0")
    submit_dataset(DATASET, boxes.requests)
    boxes.loop.run(max_iterations=1)
    report = collect_results(boxes.results, expected_count=len(DATASET))
    print(f"Pass rate: {report.pass_rate:.1%}")
    print(f"Mean score: {report.mean_score:.2f}")
    print(f"Mean latency: {report.mean_latency_ms:.0f}ms")
    for result in report.failed_samples():
        print(f"Failed: {result.sample_id} - {result.score.reason}")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Pass rate: 33.3%", "Mean score: 0.33"]
    assert sorted(line[:11] for line in lines[3:]) == ["Failed: 1 -", "Failed: 2 -"]
