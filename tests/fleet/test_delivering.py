"""Evaluating and delivering are separate: what happens when the second step fails."""

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import Any

import pytest

from proctor import EvalRequest, EvalResult, InMemoryMailbox, Trial, collect_results, submit_dataset
from proctor.distributed.leased_messages import LeasedMessage, LeasedMessages
from proctor.distributed.outbox import MAX_MAILBOXES, MAX_QUEUED, Outbox
from proctor.errors import MailboxClosed, MailboxError, MailboxFull, MessageTooLarge, ReceiptExpired
from tests.fleet.surroundings import (
    LONG,
    Troubled,
    at_work,
    boxes,
    eventually,
    loop_for,
    noting,
    request,
    results_in,
    within,
)
from tests.surroundings import ManualClock, samples, shout

AWAY = MailboxError("the server is away")


def test_a_result_that_cannot_be_sent_returns_its_request_for_longer_and_longer() -> None:
    """A minute times its deliveries; no result is made up, and in the end a dead letter tells."""
    clock = ManualClock()
    requests, inner = boxes(max_deliveries=3, clock=clock)
    results: Any = Troubled(inner, send_all=itertools.repeat(AWAY))
    calls: list[str] = []
    requests.send(request(0))
    loop = loop_for(noting(calls), requests, results, lease_seconds=0.05)
    for delivery in (1, 2, 3):
        tally = within(LONG, lambda: loop.run(max_iterations=1))
        assert (tally.sent, tally.returned) == (0, 1)
        assert len(calls) == delivery
        clock.seconds += 60 * delivery - 0.5
        assert requests.receive() == []
        clock.seconds += 0.6
    assert results_in(inner) == []
    assert within(LONG, lambda: loop.run(max_iterations=1)).returned == 0
    [letter] = requests.dead_letters()
    assert letter.history == tuple(
        f"delivery {n}: its result could not be sent: the server is away" for n in (1, 2, 3)
    )


def test_a_server_that_is_away_for_a_moment_costs_nothing() -> None:
    """The result is sent again, not made again."""
    requests, inner = boxes()
    results: Any = Troubled(inner, send_all=[AWAY, AWAY, None])
    calls: list[str] = []
    requests.send(request(0))
    loop = loop_for(noting(calls), requests, results)
    assert within(LONG, lambda: loop.run(max_iterations=1)).sent == 1
    assert (len(calls), len(results_in(inner))) == (1, 1)
    assert requests.approximate_count() == 0


def test_a_full_mailbox_is_waited_for_longer_than_any_lease() -> None:
    """Whoever collects is slow: the request is kept alive meanwhile and delivered once."""
    requests, inner = boxes()
    results: Any = Troubled(inner, send_all=[MailboxFull("full")] * 4)
    requests.send(request(0))
    loop = loop_for(shout, requests, results, lease_seconds=0.3)
    with at_work(loop):
        eventually(lambda: inner.approximate_count() == 1)
        eventually(lambda: requests.approximate_count() == 0)
    [found] = results_in(inner)
    assert found.delivery is not None
    assert found.delivery.count == 1


def test_a_worker_that_ends_does_not_wait_for_a_full_mailbox_for_ever() -> None:
    """What it cannot deliver is returned."""
    requests, inner = boxes()
    results: Any = Troubled(inner, send_all=itertools.repeat(MailboxFull("full")))
    requests.send(request(0))
    loop = loop_for(shout, requests, results, lease_seconds=0.3)
    assert within(LONG, lambda: loop.run(max_iterations=1)).returned == 1
    assert requests.approximate_count() == 1


def test_one_result_of_many_that_is_too_large_is_set_aside_alone() -> None:
    """The others are sent; the collector learns of it from the dead letter."""
    requests, inner = boxes()

    class Narrow(Troubled):
        def send_all(self, bodies: list[EvalResult], **how: Any) -> Any:
            if any("3" in body.sample_id for body in bodies):
                raise MessageTooLarge("the body has 900 bytes, and 800 are taken")
            return inner.send_all(bodies, **how)

    results: Any = Narrow(inner)
    submission = submit_dataset(samples(6), requests)
    loop = loop_for(shout, requests, results)
    assert within(LONG, lambda: loop.run(max_iterations=1)).sent == 5
    report = collect_results(inner, submission, requests=requests, timeout_seconds=0)
    assert report.total == 6
    [failed] = [found for found in report.results if not found.success]
    assert (failed.sample_id, failed.error) == (
        "s3",
        "DeadLetter: its result cannot be sent: the body has 900 bytes, and 800 are taken",
    )


def test_an_answer_to_a_place_that_cannot_be_sets_its_request_aside() -> None:
    """A name that no mailbox can have: others are answered, the worker lives."""
    inner: InMemoryMailbox[Any] = InMemoryMailbox("requests")

    class Misled(Troubled):
        def beside(self, name: str, body_type: Any) -> Any:
            return inner.beside("no / name" if name == "bad" else name, body_type)

    requests: Any = Misled(inner, reject=[None, AWAY])
    inner.send(request(0), reply_to="bad")
    inner.send(request(1), reply_to="good")
    inner.send(request(2), reply_to="bad")
    tally = within(LONG, lambda: loop_for(shout, requests).run(max_iterations=1))
    assert tally.sent == 1
    assert [found.sample_id for found in results_in(inner.beside("good", EvalResult))] == ["s1"]
    [letter] = inner.dead_letters()
    assert letter.reason.startswith("its result cannot be sent: 'no / name' cannot be the name")


def test_an_expired_receipt_is_dropped_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """The lease was lost while the sample ran: its success is sent, and nobody hears of it."""
    clock = ManualClock()
    requests, results = boxes(clock=clock)
    requests.send(request(0))

    def slow(text: str) -> str:
        clock.seconds += 31
        return text.upper()

    tally = within(LONG, lambda: loop_for(slow, requests, results).run(max_iterations=1))
    assert tally.sent == 1
    assert len(results_in(results)) == 1
    assert caplog.records == []


def test_a_nack_that_fails_never_ends_the_worker() -> None:
    """Neither for what is not delivered, nor for what is meant for others: it goes on."""
    inner, results_inner = boxes()
    requests: Any = Troubled(inner, nack=itertools.repeat(ReceiptExpired("over")))
    results: Any = Troubled(results_inner, send_all=itertools.chain([AWAY] * 3, [None] * 9))
    inner.send_all([request(0), request(1, expects="other")])
    loop = loop_for(shout, requests, results, lease_seconds=0.05, concurrency=1)
    tally = within(LONG, lambda: loop.run(max_iterations=4))
    assert tally.returned == 0
    inner.send(request(2))
    assert within(LONG, lambda: loop.run(max_iterations=2)).sent >= 1


def test_an_acknowledgement_that_fails_never_ends_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    """The request comes again and is answered again: whoever collects counts it once."""
    inner, results = boxes()
    requests: Any = Troubled(inner, acknowledge_all=[AWAY])
    submission = submit_dataset(samples(1), inner)
    loop = loop_for(shout, requests, results, lease_seconds=0.1)
    tally = within(LONG, lambda: loop.run(until_empty=True))
    assert tally.sent == 2
    report = collect_results(results, submission, timeout_seconds=0)
    assert report.total == 1
    assert "requests could not be acknowledged and will come again" in caplog.text


@pytest.mark.parametrize("at", ["receive", "send_all"])
def test_a_closed_mailbox_ends_the_loop(at: str) -> None:
    """The one it takes from or the one it sends to, at once, whatever was to be waited for."""
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


def test_requests_that_cannot_be_received_are_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """A server that was away three times: the worker says so and goes on."""
    inner, results = boxes()
    requests: Any = Troubled(inner, receive=[AWAY] * 3)
    inner.send(request(0))
    assert within(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1)).sent == 1
    assert caplog.text.count("requests cannot be received: the server is away") == 3


def test_shutdown_finishes_what_is_in_hand_and_returns_the_rest_at_once() -> None:
    """One sample is being run, another waits before its next try: that one is another's at once."""
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
    with at_work(loop):
        entered.wait(LONG)
        failed.wait(LONG)
        loop.stop()
        another = requests.beside("requests", EvalRequest)
        [message] = another.receive(wait_time_seconds=10)
        assert message.body.sample.id == "s1"
        assert results.approximate_count() == 0
        release.set()
        eventually(lambda: results.approximate_count() == 1)
    assert [found.output for found in results_in(results)] == ["WORD 0"]
    assert requests.approximate_count() == 1


def test_a_second_stop_drops_what_is_being_run() -> None:
    """It is returned at once, and no result is made up for it."""
    requests, results = boxes()
    requests.send(request(0))
    entered = threading.Event()

    async def endless(text: str) -> str:
        entered.set()
        await asyncio.sleep(600)
        return text

    loop = loop_for(endless, requests, results, timeout=None)
    with at_work(loop):
        entered.wait(LONG)
        loop.stop()
    [message] = requests.receive()
    assert message.body.sample.id == "s0"
    assert results.approximate_count() == 0


def test_what_was_taken_while_it_was_told_to_stop_goes_back_unrun() -> None:
    """A message that arrives in the last moment is not begun."""
    inner, results = boxes()
    inner.send(request(0))
    calls: list[str] = []

    class Late(Troubled):
        def _called(self, name: str, how: dict[str, Any], *args: Any) -> Any:
            found = super()._called(name, how, *args)
            if name == "receive":
                loop.stop()
                stopped.wait(LONG)
            return found

    stopped = threading.Event()
    requests: Any = Late(inner)
    loop = loop_for(noting(calls), requests, results)
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


def test_a_writer_that_is_behind_says_so() -> None:
    """So that a crew does not run what cannot be sent for long."""
    requests, results = boxes()
    with LeasedMessages(30.0, print) as held:
        outbox = Outbox(requests, results, held, "w1", print)
        requests.send(request(0))
        [message] = requests.receive()
        held.add(0, LeasedMessage(message, message.body))
        assert not outbox.behind()
        outbox.keep("key", "now", b"{}")
        for _ in range(MAX_QUEUED + 1):
            outbox.add(0, EvalResult(Trial(message.body.sample, "out")))
        assert outbox.behind()


def test_errors_after_a_close_are_told_once() -> None:
    """`MailboxClosed` from a server side closes once, however many results are under way."""
    requests, inner = boxes()
    results: Any = Troubled(inner, send_all=itertools.repeat(MailboxClosed("it was closed")))
    requests.send_all([request(n) for n in range(4)])
    tally = within(LONG, lambda: loop_for(shout, requests, results, concurrency=1).run())
    assert tally.sent == 0
    assert tally.returned >= 1
    assert requests.approximate_count() == 4


def test_the_way_back_to_old_runs_is_closed_in_time() -> None:
    """A worker that serves many runs does not keep a mailbox open for each for ever."""
    inner, _ = boxes()
    opened: list[Any] = []

    class Counting(Troubled):
        def beside(self, name: str, body_type: Any) -> Any:
            opened.append(inner.beside(name, body_type))
            return opened[-1]

    requests: Any = Counting(inner)
    for number in range(MAX_MAILBOXES + 2):
        inner.send(request(number), reply_to=f"run-{number}")
    loop = loop_for(shout, requests, concurrency=1)
    assert within(LONG, lambda: loop.run(max_iterations=1)).sent == MAX_MAILBOXES + 2
    assert [box.closed for box in opened].count(True) == 2
