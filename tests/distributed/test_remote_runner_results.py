"""A run by workers assigns each result to the trial that requested it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor import EvalResult, InMemoryMailbox, Sample, SQLiteHistory, Trial, exact_match
from proctor.distributed.delivery_counts import DeadLetterPoller
from proctor.distributed.remote_runner import MailboxBackend, parse_position
from proctor.distributed.result_collector import ResultReceiver
from proctor.engine.start import RunControls
from proctor.errors import MailboxError, RunStopped
from proctor.records.mail import DeadLetter, EvalRequest, decode_body
from proctor.records.trial import Delivery, Failure
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from tests.distributed.failing_mailboxes import LONG, FailingMailbox, boxes, loop_for, running, with_timeout
from tests.distributed.worker_runs import fast_clock, run_by_workers, warnings
from tests.support import ManualClock, samples

DEEP = '{"sample": {"id": "1", "input": ' + "[" * 100_000 + "]" * 100_000 + "}}"


def upper(text: str) -> str:
    return text.upper()


def answering(requests: Any, *answers: Callable[[EvalRequest[Any, Any]], list[EvalResult]]) -> Any:
    """A worker that sends the given results for a request, with a pause between them."""

    def work() -> None:
        [message] = requests.receive(wait_time_seconds=10)
        for number, answer in enumerate(answers):
            time.sleep(0.2 * bool(number))
            requests.open_mailbox(message.reply_to, EvalResult).send_all(answer(message.body))
        message.acknowledge()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def good(request: EvalRequest[Any, Any], count: int = 1) -> EvalResult:
    delivery = Delivery(request.run_id, request.request_id, "w", count)
    return EvalResult(Trial(request.sample, "good"), delivery=delivery)


def bad(request: EvalRequest[Any, Any], count: int = 1) -> EvalResult:
    delivery = Delivery(request.run_id, request.request_id, "w", count)
    return EvalResult(Trial(request.sample, error=Failure("E", "no")), delivery=delivery)


@pytest.mark.parametrize("answered_before", [True, False])
def test_results_of_a_changed_run_are_not_assigned_to_other_samples(answered_before: bool, tmp_path: Path) -> None:
    """A new first sample shifts every position."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    clock = ManualClock()
    with fast_clock(clock, 4.0), pytest.raises(RunStopped, match="no worker has answered"):
        run_by_workers(upper, 3, MailboxBackend(requests, worker_timeout=1.0, clock=clock), history)
    if answered_before:
        assert loop_for(upper, requests).run(max_iterations=1).sent == 3
    data = [Sample("new", "word new", "WORD NEW"), *samples(3)]
    evaluation = Evaluation(upper, data, exact_match, name="exam")
    how = RunControls(backend=MailboxBackend(requests), allow_changes=True)
    with running(loop_for(upper, requests)):
        report = with_timeout(LONG, lambda: asyncio.run(execute(evaluation, history, how, resume_from=True)))
    arguments = {result.sample_id: result.output for result in report.results}
    assert arguments == {"new": "WORD NEW", "s0": "WORD 0", "s1": "WORD 1", "s2": "WORD 2"}
    assert "workers: 3 results belonged to other runs or samples and were ignored" in warnings(report)


def test_a_success_wins_over_an_error_of_the_same_batch() -> None:
    """In any order."""
    requests, _ = boxes()
    helper = answering(requests, lambda asked: [bad(asked), good(asked)])
    report = run_by_workers(upper, 1, MailboxBackend(requests), SQLiteHistory.temporary())
    helper.join(LONG)
    assert [result.output for result in report.results] == ["good"]
    assert warnings(report) == ("workers: 1 result arrived twice and was not counted again",)


def test_a_success_wins_over_an_earlier_error_of_a_later_delivery() -> None:
    """The first worker may still be about to answer."""
    requests, _ = boxes()
    helper = answering(requests, lambda asked: [bad(asked, 2)], lambda asked: [good(asked)])
    report = run_by_workers(upper, 1, MailboxBackend(requests), SQLiteHistory.temporary())
    helper.join(LONG)
    assert [result.output for result in report.results] == ["good"]
    assert warnings(report) == ("workers: 1 result arrived twice and was not counted again",)


def test_an_error_of_a_later_delivery_counts_if_no_success_follows() -> None:
    """After two checks."""
    requests, _ = boxes()
    helper = answering(requests, lambda asked: [bad(asked, 2)])
    report = run_by_workers(upper, 1, MailboxBackend(requests), SQLiteHistory.temporary())
    helper.join(LONG)
    assert report.errors == 1
    assert warnings(report) == (
        "workers: 1 result came from a repeated delivery, because an earlier one was lost or returned",
    )


def test_results_that_arrive_before_their_requests_are_used() -> None:
    """Workers may still run requests from before a resume."""
    inner, _ = boxes()
    requests: Any = FailingMailbox(inner)

    def three(asked: EvalRequest[Any, Any]) -> list[EvalResult]:
        values = []
        for number, sample in enumerate(samples(3)):
            delivery = Delivery(asked.run_id, f"{asked.run_id}-{number}", "w")
            values.append(EvalResult(Trial(sample, f"early {number}"), delivery=delivery))
        return values[::-1]

    helper = answering(inner, three)
    report = run_by_workers(upper, 3, MailboxBackend(requests, window=1), SQLiteHistory.temporary())
    helper.join(LONG)
    assert [result.output for result in report.results] == ["early 0", "early 1", "early 2"]
    assert requests.calls.count("send_all") == 1
    assert warnings(report) == ()


def test_unprocessed_results_are_not_acknowledged() -> None:
    """They come again, so nothing is lost."""
    box = InMemoryMailbox("results", EvalResult)
    box.send(EvalResult(Trial(Sample("1", "in"), "out")))
    seen: list[EvalResult] = []

    def arrive(results: Sequence[EvalResult]) -> bool:
        seen.extend(results)
        return False

    ResultReceiver(box, arrive, print, print).drain()
    assert (len(seen), box.approximate_count()) == (1, 1)
    fresh = box.open_mailbox("others", EvalResult)
    fresh.send(seen[0])
    ResultReceiver(fresh, lambda _: True, print, print).drain()
    assert fresh.approximate_count() == 0


@pytest.mark.parametrize(
    ("delivery", "position"),
    [
        (None, None),
        (Delivery("other", "other-1"), None),
        (Delivery("r-1", "r-1-12"), 12),
        (Delivery("r-1", "r-1-"), None),
        (Delivery("r-1", "r-1-²"), None),
        (Delivery("r-1", "other-3"), None),
        (Delivery("r-1", "r-1-" + "9" * 5_000), None),
    ],
)
def test_the_position_of_a_result_is_parsed(delivery: Delivery | None, position: int | None) -> None:
    """Invalid ids have no position."""
    assert parse_position("r-1", delivery) == position


def test_a_deeply_nested_dead_letter_is_unreadable() -> None:
    """It does not end the poller or the run."""
    requests, _ = boxes()
    now = ManualClock().now()
    assert decode_body(DeadLetter("1", DEEP, "no", 1, now, now), EvalRequest) is None
    untyped: Any = requests.open_mailbox("requests", None)
    import msgspec

    untyped.send(msgspec.Raw(DEEP.encode()))
    letters = DeadLetterPoller(requests, lambda _: True)
    assert requests.receive() == []
    assert letters.poll() == []
    assert letters.unreadable == 1
    helper = answering(requests, lambda asked: [bad(asked, 2)])
    # The error is told by the watch, which must be alive for that.
    assert run_by_workers(upper, 1, MailboxBackend(requests), SQLiteHistory.temporary()).errors == 1
    helper.join(LONG)


class Broken(FailingMailbox):
    """A mailbox and its mailbox for results that raise an unexpected error."""

    def __init__(self, inner: Any, at: str) -> None:
        fault: list[Any] = [RuntimeError(f"a fault in {at}")]
        super().__init__(inner, **({} if at in ("receive", "remove") else {at: fault}))
        self._beside = {"receive": {"receive": [None, *fault]}}.get(at, {})
        self.opened: list[Any] = []

    def open_mailbox(self, name: str, body_type: Any) -> Any:
        self.opened.append(FailingMailbox(self._mailbox.open_mailbox(name, body_type), **self._beside))
        return self.opened[-1]


@pytest.mark.parametrize("at", ["dead_letters", "send_all", "receive"])
def test_an_unexpected_error_ends_the_run(at: str, tmp_path: Path) -> None:
    """In the watch task, the sender thread or the receiver thread."""
    history = SQLiteHistory(tmp_path / "h.db")
    inner, _ = boxes()
    requests: Any = Broken(inner, at)
    with pytest.raises(RuntimeError, match=f"a fault in {at}"):
        run_by_workers(upper, 2, MailboxBackend(requests), history)
    assert history.find("exam").status == "failed"
    assert requests.opened[0].closed


def test_a_results_mailbox_that_cannot_be_removed_is_a_warning(tmp_path: Path) -> None:
    """All results are stored, so the run is complete."""
    history = SQLiteHistory(tmp_path / "h.db")
    inner, _ = boxes()

    class Stuck(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            opened.append(FailingMailbox(inner.open_mailbox(name, body_type), remove=[MailboxError("away")]))
            return opened[-1]

    opened: list[Any] = []
    requests: Any = Stuck(inner)
    with running(loop_for(upper, inner)):
        report = run_by_workers(upper, 2, MailboxBackend(requests), history)
    assert report.total == 2
    assert history.find("exam").status == "completed"
    [said] = warnings(report)
    assert said.startswith("workers: the mailbox 'requests-")
    assert said.endswith("could not be removed: away")
    assert opened[0].closed
