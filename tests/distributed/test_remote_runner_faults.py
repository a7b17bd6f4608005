"""A run by workers counts each trial once, despite faults of mailboxes and workers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import EvalResult, InMemoryMailbox, Sample, SQLiteHistory, exact_match
from proctor.distributed.delivery_counts import DeliveryCounts
from proctor.distributed.remote_runner import RESEND_SECONDS, MailboxBackend
from proctor.engine.start import RunControls
from proctor.errors import ConfigError, MailboxError, MailboxFull, MessageTooLarge, RunStopped
from proctor.records.trial import Delivery, Trial
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from tests.distributed.failing_mailboxes import LONG, FailingMailbox, boxes, eventually, loop_for, running, with_timeout
from tests.distributed.worker_runs import loud, run_by_workers, warnings, workers
from tests.support import ManualClock, samples


def test_requests_that_vanished_are_sent_again(tmp_path: Path) -> None:
    """After the mailbox was purged during the run, with a warning."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    clock = ManualClock()

    def purge() -> None:
        eventually(lambda: requests.approximate_count() == 4)
        requests.purge()
        clock.seconds += RESEND_SECONDS + 1
        eventually(lambda: requests.approximate_count() == 4)
        loop_for(loud, requests).run(max_iterations=1)

    helper = threading.Thread(target=purge, daemon=True)
    helper.start()
    report = run_by_workers(loud, 4, MailboxBackend(requests, clock=clock), history)
    helper.join(LONG)
    assert (report.total, report.errors) == (4, 1)
    assert warnings(report) == ("workers: 4 requests had disappeared from the mailbox and were sent again",)


def test_dead_letters_become_errors_of_their_samples(tmp_path: Path) -> None:
    """One request kills every worker; the run ends and names it."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes(max_deliveries=2)

    def die() -> None:
        eventually(lambda: requests.approximate_count() == 3)
        innocent, doomed = requests.receive(max_messages=10)
        for _ in range(2):
            doomed.nack(reason="the worker died")
            [doomed] = requests.receive() or [doomed]
        innocent.nack()
        with running(loop_for(loud, requests)):
            over.wait(LONG)

    over = threading.Event()
    helper = threading.Thread(target=die, daemon=True)
    helper.start()
    requests.send("garbage")  # type: ignore[arg-type]
    report = run_by_workers(loud, 2, MailboxBackend(requests), history)
    over.set()
    helper.join(LONG)
    results = {result.sample_id: result for result in report.results}
    assert results["s0"].passed
    assert results["s1"].error == (
        "DeadLetter: it was delivered 2 times and never acknowledged; "
        "delivery 1: the worker died; delivery 2: the worker died"
    )
    assert "workers: 1 request ended as a dead letter: delivered too often, or rejected (s1)" in warnings(report)
    assert "workers: 1 message in the mailbox could not be read and became a dead letter" in warnings(report)


def test_an_old_dead_letter_does_not_answer_a_new_request(tmp_path: Path) -> None:
    """Failed samples run again after a resume."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes(max_deliveries=1)

    def reject() -> None:
        for message in requests.receive(wait_time_seconds=10):
            message.reject("no memory")

    helper = threading.Thread(target=reject, daemon=True)
    helper.start()
    assert run_by_workers(loud, 1, MailboxBackend(requests), history).errors == 1
    helper.join(LONG)
    evaluation = Evaluation(loud, samples(1), exact_match, name="exam")
    run_id = history.find("exam").run_id
    how = RunControls(backend=MailboxBackend(requests), retry_errors=True)

    def later() -> None:
        # Long enough for two looks at the letters.
        threading.Event().wait(2.5)
        loop_for(loud, requests).run(max_iterations=1)

    late = threading.Thread(target=later, daemon=True)
    late.start()
    report = with_timeout(LONG, lambda: asyncio.run(execute(evaluation, history, how, resume_from=run_id)))
    late.join(LONG)
    assert report.errors == 0


def test_duplicates_are_counted_once_and_reported(tmp_path: Path) -> None:
    """A worker that could not acknowledge answers twice."""
    requests, _ = boxes()

    def answer() -> None:
        for copies in (2, 1):
            [message] = requests.receive(wait_time_seconds=10)
            body = message.body
            delivery = Delivery(body.run_id, body.request_id, "w")
            result = EvalResult(Trial(body.sample, "out"), delivery=delivery)
            requests.open_mailbox(message.reply_to or "", EvalResult).send_all([result] * copies)
            message.acknowledge()

    helper = threading.Thread(target=answer, daemon=True)
    helper.start()
    history = SQLiteHistory(tmp_path / "h.db")
    report = run_by_workers(loud, 2, MailboxBackend(requests, window=1), history)
    helper.join(LONG)
    assert report.total == 2
    assert warnings(report) == ("workers: 1 result arrived twice and was not counted again",)


def test_requests_that_cannot_be_sent_are_errors_of_their_samples() -> None:
    """Only the one that is too large; the rest of its batch runs."""

    class Narrow(FailingMailbox):
        def send_all(self, bodies: Any, **how: Any) -> Any:
            if any(body.sample.id == "s2" for body in bodies):
                raise MessageTooLarge("the body has 900 bytes, and 800 are taken")
            return self._mailbox.send_all(bodies, **how)

    with workers() as requests:
        narrow: Any = Narrow(requests)
        report = run_by_workers(loud, 5, MailboxBackend(narrow), SQLiteHistory.temporary())
    results = {result.sample_id: result for result in report.results}
    assert results["s1"].passed
    assert results["s2"].error == "MessageTooLarge: the body has 900 bytes, and 800 are taken"
    assert report.total == 5


def test_a_run_waits_for_a_full_or_unreachable_mailbox(tmp_path: Path) -> None:
    """For requests and for results; the notice says which, and disappears."""
    notices: list[str] = []
    inner, _ = boxes()

    class Flaky(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            return FailingMailbox(inner.open_mailbox(name, body_type), receive=[None, *[MailboxError("away")] * 2])

    requests: Any = Flaky(inner, send_all=[*[MailboxFull("full")] * 2, MailboxError("away"), None])

    @contextlib.contextmanager
    def watch(view: Any) -> Iterator[None]:
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.002):
                if view.notice not in notices:
                    notices.append(view.notice)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        yield
        over.set()
        thread.join()
        assert view.notice == ""

    evaluation = Evaluation(loud, samples(3), exact_match, name="exam")
    how = RunControls(backend=MailboxBackend(requests), watch=watch)
    with running(loop_for(loud, inner)):
        report = with_timeout(LONG, lambda: asyncio.run(execute(evaluation, SQLiteHistory(tmp_path / "h.db"), how)))
    assert report.total == 3
    assert "the mailbox is full; waiting for workers to make room" in notices
    assert {"requests cannot be sent: away", "results cannot be received: away"} & set(notices)


def test_a_closed_mailbox_ends_the_run(tmp_path: Path) -> None:
    """No result can arrive any more."""
    requests, _ = boxes()

    def close_once_used() -> None:
        eventually(lambda: requests.approximate_count() == 2)
        requests.close()

    closing = threading.Thread(target=close_once_used)
    closing.start()
    with pytest.raises(RunStopped, match="the mailbox is closed"):
        run_by_workers(loud, 2, MailboxBackend(requests), SQLiteHistory(tmp_path / "h.db"))
    closing.join()


def test_the_cache_is_refused(tmp_path: Path) -> None:
    """Workers do not cache outputs."""
    requests, _ = boxes()
    with pytest.raises(ConfigError, match="workers do not cache outputs"):
        run_by_workers(loud, 2, MailboxBackend(requests), SQLiteHistory(tmp_path / "h.db"), cache=True)


def test_an_invalid_result_is_rejected() -> None:
    """Whatever is sent to the mailbox of a run, the run continues."""
    requests: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    history = SQLiteHistory.temporary()

    def disturb() -> None:
        [message] = requests.receive(wait_time_seconds=10)
        requests.open_mailbox(message.reply_to or "", None).send("garbage")
        stranger = EvalResult(Trial(Sample("s0", "")))
        requests.open_mailbox(message.reply_to or "", None).send(stranger)
        message.nack()
        loop_for(loud, requests).run(until_empty=True)

    helper = threading.Thread(target=disturb, daemon=True)
    helper.start()
    report = run_by_workers(loud, 1, MailboxBackend(requests), history)
    helper.join(LONG)
    assert report.total == 1
    assert warnings(report)[:2] == (
        "workers: 1 result came from a repeated delivery, because an earlier one was lost or returned",
        "workers: 1 result belonged to another run or sample and was ignored",
    )
    # Unreadable results are counted every second, so a quick run may end before that.
    assert warnings(report)[2:] in ((), ("workers: 1 result could not be read and became a dead letter",))


def test_delivery_warnings_name_only_what_happened() -> None:
    """None for a normal run, otherwise one sentence for each kind."""
    account = DeliveryCounts()
    trial = Trial(Sample("1", "in"), "out")
    account.add(EvalResult(trial, delivery=Delivery("r", "r-0", "w1", 1)))
    account.add(EvalResult(trial))
    assert account.warnings() == []
    account.add(EvalResult(trial, delivery=Delivery("r", "r-1", "w1", 3)))
    assert account.warnings() == [
        "workers: 1 result came from a repeated delivery, because an earlier one was lost or returned"
    ]


def test_a_leased_request_is_not_sent_again() -> None:
    """A long-running sample has not vanished."""
    requests, _ = boxes()
    clock = ManualClock()
    sent: Any = FailingMailbox(requests)

    def work() -> None:
        [message] = requests.receive(wait_time_seconds=10)
        clock.seconds += 2 * RESEND_SECONDS
        threading.Event().wait(1.5)
        message.nack()
        loop_for(loud, requests).run(max_iterations=1)

    helper = threading.Thread(target=work, daemon=True)
    helper.start()
    report = run_by_workers(loud, 1, MailboxBackend(sent, clock=clock), SQLiteHistory.temporary())
    helper.join(LONG)
    assert sent.calls.count("send_all") == 1
    assert report.total == 1


def test_a_mailbox_that_cannot_be_counted_is_not_empty(tmp_path: Path) -> None:
    """Nothing is sent again; a closed mailbox of results ends the run."""
    inner, _ = boxes()
    clock = ManualClock()
    opened: list[Any] = []

    class Uncounted(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            opened.append(inner.open_mailbox(name, body_type))
            return opened[-1]

    away = itertools.repeat(MailboxError("away"))
    requests: Any = Uncounted(inner, approximate_count=away)

    def close() -> None:
        eventually(lambda: inner.approximate_count() == 2)
        inner.purge()
        clock.seconds += 2 * RESEND_SECONDS
        eventually(lambda: "approximate_count" in requests.calls)
        opened[0].close()

    helper = threading.Thread(target=close, daemon=True)
    helper.start()
    with pytest.raises(RunStopped, match="the mailbox is closed"):
        run_by_workers(loud, 2, MailboxBackend(requests, clock=clock), SQLiteHistory(tmp_path / "h.db"))
    helper.join(LONG)
    assert requests.calls.count("send_all") == 1
