"""What a worker does when a result cannot be delivered."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

from proctor import EvalRequest, EvalResult, InMemoryMailbox, Trial, collect_results, submit_dataset
from proctor.distributed.leased_requests import LeasedRequest, LeasedRequests
from proctor.distributed.outbox import MAX_MAILBOXES, MAX_QUEUED, Outbox
from proctor.errors import MailboxClosed, MailboxError, MailboxFull, MessageTooLarge, ReceiptExpired
from tests.distributed.failing_mailboxes import (
    LONG,
    FailingMailbox,
    HeartbeatMailbox,
    boxes,
    eventually,
    loop_for,
    recording_target,
    request,
    running,
    take_results,
    with_timeout,
)
from tests.support import ManualClock, samples, shout

AWAY = MailboxError("the server is away")


def test_a_request_whose_result_cannot_be_sent_is_delayed() -> None:
    """By a minute for each delivery; there is no result, and at last a dead letter."""
    clock = ManualClock()
    requests, inner = boxes(max_deliveries=3, clock=clock)
    results: Any = FailingMailbox(inner, send_all=itertools.repeat(AWAY))
    calls: list[str] = []
    requests.send(request(0))
    loop = loop_for(recording_target(calls), requests, results, lease_seconds=0.05)
    for delivery in (1, 2, 3):
        summary = with_timeout(LONG, lambda: loop.run(max_iterations=1))
        assert (summary.sent, summary.returned) == (0, 1)
        assert len(calls) == delivery
        clock.seconds += 60 * delivery - 0.5
        assert requests.receive() == []
        clock.seconds += 0.6
    assert take_results(inner) == []
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).returned == 0
    [letter] = requests.dead_letters()
    assert letter.history == tuple(f"delivery {n}: its result could not be sent: the server is away" for n in (1, 2, 3))


def test_a_result_is_sent_again_after_a_short_outage() -> None:
    """The target is not called again."""
    requests, inner = boxes()
    results: Any = FailingMailbox(inner, send_all=[AWAY, AWAY, None])
    calls: list[str] = []
    requests.send(request(0))
    loop = loop_for(recording_target(calls), requests, results)
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).sent == 1
    assert (len(calls), len(take_results(inner))) == (1, 1)
    assert requests.approximate_count() == 0


def test_a_worker_waits_for_a_full_mailbox() -> None:
    """Longer than the lease, which is extended; the result is delivered once."""
    clock = ManualClock()
    mailbox, inner = boxes(clock=clock)
    requests: Any = HeartbeatMailbox(mailbox, clock, lease=0.3)
    has_room = threading.Event()
    results: Any = FailingMailbox(inner, send_all=iter(lambda: None if has_room.is_set() else MailboxFull("full"), 0))
    mailbox.send(request(0))
    loop = loop_for(shout, requests, results, lease_seconds=0.3)
    with running(loop):
        eventually(lambda: requests.extensions >= 4)
        has_room.set()
        eventually(lambda: inner.approximate_count() == 1)
        eventually(lambda: mailbox.approximate_count() == 0)
    [result] = take_results(inner)
    assert result.delivery is not None
    assert result.delivery.count == 1


def test_a_stopping_worker_does_not_wait_for_a_full_mailbox() -> None:
    """It returns the requests whose results it cannot send."""
    requests, inner = boxes(clock=ManualClock())
    results: Any = FailingMailbox(inner, send_all=itertools.repeat(MailboxFull("full")))
    requests.send(request(0))
    loop = loop_for(shout, requests, results, lease_seconds=0.3)
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).returned == 1
    assert requests.approximate_count() == 1


def test_only_the_result_that_is_too_large_is_rejected() -> None:
    """The others are sent; the collector sees a dead letter."""
    requests, inner = boxes()

    class Narrow(FailingMailbox):
        def send_all(self, bodies: list[EvalResult], **how: Any) -> Any:
            if any("3" in body.sample_id for body in bodies):
                raise MessageTooLarge("the body has 900 bytes, and 800 are taken")
            return inner.send_all(bodies, **how)

    results: Any = Narrow(inner)
    submission = submit_dataset(samples(6), requests)
    loop = loop_for(shout, requests, results)
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).sent == 5
    report = collect_results(inner, submission, requests=requests, timeout_seconds=0)
    assert report.total == 6
    [failed] = [found for found in report.results if not found.success]
    assert (failed.sample_id, failed.error) == (
        "s3",
        "DeadLetter: its result cannot be sent: the body has 900 bytes, and 800 are taken",
    )


def test_a_request_with_an_invalid_reply_to_is_rejected() -> None:
    """Other requests are answered, and the worker continues."""
    inner: InMemoryMailbox[Any] = InMemoryMailbox("requests")

    class Misled(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            return inner.open_mailbox("no / name" if name == "bad" else name, body_type)

    requests: Any = Misled(inner, reject=[None, AWAY])
    inner.send(request(0), reply_to="bad")
    inner.send(request(1), reply_to="good")
    inner.send(request(2), reply_to="bad")
    tally = with_timeout(LONG, lambda: loop_for(shout, requests).run(max_iterations=1))
    assert tally.sent == 1
    assert [found.sample_id for found in take_results(inner.open_mailbox("good", EvalResult))] == ["s1"]
    [letter] = inner.dead_letters()
    assert letter.reason.startswith("its result cannot be sent: 'no / name' cannot be the name")


def test_an_expired_receipt_causes_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The lease expired while the sample ran: the result is sent, once for each time that it was received."""
    clock = ManualClock()
    requests, results = boxes(clock=clock)
    requests.send(request(0))

    def slow(text: str) -> str:
        clock.seconds += 31
        return text.upper()

    summary = with_timeout(LONG, lambda: loop_for(slow, requests, results).run(max_iterations=1))
    assert summary.sent >= 1
    assert len(take_results(results)) == summary.sent
    assert caplog.records == []


def test_a_nack_that_fails_never_ends_the_worker() -> None:
    """Neither for a result that cannot be sent, nor for a request for other code."""
    inner, results_inner = boxes()
    requests: Any = FailingMailbox(inner, nack=itertools.repeat(ReceiptExpired("over")))
    results: Any = FailingMailbox(results_inner, send_all=itertools.chain([AWAY] * 3, [None] * 9))
    inner.send_all([request(0), request(1, expects="other")])
    loop = loop_for(shout, requests, results, lease_seconds=0.05, concurrency=1)
    summary = with_timeout(LONG, lambda: loop.run(max_iterations=4))
    assert summary.returned == 0
    inner.send(request(2))
    assert with_timeout(LONG, lambda: loop.run(max_iterations=2)).sent >= 1


def test_an_acknowledgement_that_fails_never_ends_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    """The request comes and is answered again; collectors count it once."""
    inner, results = boxes()
    requests: Any = FailingMailbox(inner, acknowledge_all=[AWAY])
    submission = submit_dataset(samples(1), inner)
    loop = loop_for(shout, requests, results, lease_seconds=0.1)
    summary = with_timeout(LONG, lambda: loop.run(until_empty=True))
    assert summary.sent >= 2
    report = collect_results(results, submission, timeout_seconds=0)
    assert report.total == 1
    assert "requests could not be acknowledged and will be delivered again" in caplog.text


@pytest.mark.parametrize("at", ["receive", "send_all"])
def test_a_closed_mailbox_ends_the_loop(at: str) -> None:
    """At once, whether the mailbox of requests or of results is closed."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results, wait_seconds=600)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    if at == "receive":
        requests.close()
    else:
        results.close()
        requests.send(request(0))
    thread.join(LONG)
    assert not thread.is_alive()


def test_receiving_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    """After three failures of the server, with a warning for each."""
    inner, results = boxes()
    requests: Any = FailingMailbox(inner, receive=[AWAY] * 3)
    inner.send(request(0))
    assert with_timeout(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1)).sent == 1
    assert caplog.text.count("requests cannot be received: the server is away") == 3


def test_stop_finishes_running_samples_and_returns_the_others() -> None:
    """A sample that waits for its retry is returned at once."""
    requests, results = boxes()
    requests.send_all([request(0), request(1)])
    release, entered, failed = threading.Event(), threading.Event(), threading.Event()

    def target(text: str) -> str:
        if text == "word 1":
            failed.set()
            raise ConnectionError("try again later")
        entered.set()
        release.wait(LONG)
        return text.upper()

    loop = loop_for(target, requests, results, retries=3, retry_delay=60.0, timeout=None)
    with running(loop):
        entered.wait(LONG)
        failed.wait(LONG)
        loop.stop()
        another = requests.open_mailbox("requests", EvalRequest)
        [message] = another.receive(wait_time_seconds=10)
        assert message.body.sample.id == "s1"
        assert results.approximate_count() == 0
        release.set()
        eventually(lambda: results.approximate_count() == 1)
    assert [result.output for result in take_results(results)] == ["WORD 0"]
    assert requests.approximate_count() == 1


def test_a_second_stop_drops_running_samples() -> None:
    """The request is returned at once and has no result."""
    requests, results = boxes()
    requests.send(request(0))
    entered = threading.Event()

    async def endless(text: str) -> str:
        entered.set()
        await asyncio.sleep(600)
        return text

    loop = loop_for(endless, requests, results, timeout=None)
    with running(loop):
        entered.wait(LONG)
        loop.stop()
    [message] = requests.receive()
    assert message.body.sample.id == "s0"
    assert results.approximate_count() == 0


def test_a_request_received_during_stop_is_returned() -> None:
    """It does not run."""
    inner, results = boxes()
    inner.send(request(0))
    calls: list[str] = []

    class Late(FailingMailbox):
        def _called(self, name: str, how: dict[str, Any], *args: Any) -> Any:
            found = super()._called(name, how, *args)
            if name == "receive":
                loop.stop()
                stopped.wait(LONG)
            return found

    stopped = threading.Event()
    requests: Any = Late(inner)
    loop = loop_for(recording_target(calls), requests, results)
    worker = threading.Thread(target=loop.run, daemon=True)
    worker.start()
    eventually(lambda: "wake" in requests.calls)
    stopped.set()
    worker.join(LONG)
    assert not worker.is_alive()
    assert calls == []
    [message] = inner.receive()
    # It was no fault of the message, so the delivery does not count.
    assert message.delivery_count == 1


def test_an_outbox_reports_that_it_is_lagging() -> None:
    """So that the worker pool does not run samples whose results cannot be sent."""
    requests, results = boxes()
    with LeasedRequests(30.0, print) as values:
        outbox = Outbox(requests, results, values, "w1", print)
        requests.send(request(0))
        [message] = requests.receive()
        values.add(0, LeasedRequest(message, message.body))
        assert not outbox.is_lagging()
        outbox.cache_output("key", "now", b"{}")
        for _ in range(MAX_QUEUED + 1):
            outbox.add(0, EvalResult(Trial(message.body.sample, "out")))
        assert outbox.is_lagging()


def test_a_mailbox_closed_by_the_server_ends_the_worker_once() -> None:
    """However many results are queued."""
    requests, inner = boxes()
    results: Any = FailingMailbox(inner, send_all=itertools.repeat(MailboxClosed("it was closed")))
    requests.send_all([request(n) for n in range(4)])
    summary = with_timeout(LONG, lambda: loop_for(shout, requests, results, concurrency=1).run())
    assert summary.sent == 0
    assert summary.returned >= 1
    assert requests.approximate_count() == 4


def test_old_reply_mailboxes_are_closed() -> None:
    """A worker that serves many runs does not keep a mailbox open for each."""
    inner, _ = boxes()
    opened: list[Any] = []

    class Counting(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            opened.append(inner.open_mailbox(name, body_type))
            return opened[-1]

    requests: Any = Counting(inner)
    for number in range(MAX_MAILBOXES + 2):
        inner.send(request(number), reply_to=f"run-{number}")
    loop = loop_for(shout, requests, concurrency=1)
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).sent == MAX_MAILBOXES + 2
    assert [box.closed for box in opened].count(True) == 2
