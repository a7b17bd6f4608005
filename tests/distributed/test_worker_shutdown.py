"""How a worker ends: with one deadline, and completely."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from typing import Any

import pytest

from proctor import EvalResult, InMemoryMailbox, Trial
from proctor.distributed.leased_requests import LeasedRequest, LeasedRequests
from proctor.distributed.outbox import BATCH_SIZE, MAX_QUEUED, Outbox
from proctor.errors import MailboxError, MailboxGone
from tests.distributed.failing_mailboxes import (
    LONG,
    FailingMailbox,
    boxes,
    eventually,
    loop_for,
    request,
    take_results,
    with_timeout,
)
from tests.support import shout

AWAY = MailboxError("the server is away")


def test_requests_of_a_finished_run_are_acknowledged() -> None:
    """Its mailbox is removed, so no result is sent and nothing is retried."""
    inner, _ = boxes()

    class Left(FailingMailbox):
        def open_mailbox(self, name: str, body_type: Any) -> Any:
            gone = itertools.repeat(MailboxGone("it is gone"))
            return FailingMailbox(inner.open_mailbox(name, body_type), send_all=gone)

    requests: Any = Left(inner)
    inner.send_all([request(n) for n in range(3)], reply_to="old-run")
    tally = with_timeout(LONG, lambda: loop_for(shout, requests).run(max_iterations=1))
    assert (tally.sent, tally.returned, tally.outdated) == (0, 0, 3)
    assert inner.approximate_count() == 0


def test_a_removed_results_mailbox_returns_requests() -> None:
    """If the mailbox of the results is gone, the requests are returned, because their results are still needed."""
    requests, inner = boxes()
    results: Any = FailingMailbox(inner, send_all=[MailboxGone("it is gone")])
    requests.send(request(0))
    summary = with_timeout(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1))
    assert (summary.returned, summary.outdated, requests.approximate_count()) == (1, 0, 1)


def test_stop_works_while_the_results_mailbox_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although hundreds of results are queued."""
    defaults = Outbox.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "last_seconds", 0.5)
    requests, _ = boxes()
    results = InMemoryMailbox("results", EvalResult, capacity=10)
    requests.send_all([request(n) for n in range(MAX_QUEUED + 200)])
    calls: list[str] = []

    async def target(text: str) -> str:
        calls.append(text)
        return text.upper()

    loop = loop_for(target, requests, results, lease_seconds=0.2)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    # A batch of unknown size is being sent, as many wait behind it as may, and no hand is free.
    eventually(lambda: len(calls) > MAX_QUEUED)
    time.sleep(0.1)
    loop.stop()
    thread.join(LONG)
    assert not thread.is_alive()
    assert requests.approximate_count() >= MAX_QUEUED


def add_finished_results(count: int, requests: Any, held: LeasedRequests, outbox: Outbox) -> None:
    """Add `count` leased requests with finished results to an outbox."""
    requests.send_all([request(n) for n in range(count)])
    numbers = itertools.count()
    while messages := requests.receive(max_messages=10):
        for number, message in zip(numbers, messages, strict=False):
            held.add(number, LeasedRequest(message, message.body))
            outbox.add(number, EvalResult(Trial(message.body.sample, "out")))


def test_the_end_of_an_outbox_has_one_deadline() -> None:
    """With three batches and no server, only the first batch is tried until the deadline."""
    requests, inner = boxes()
    results: Any = FailingMailbox(inner, send_all=itertools.repeat(AWAY))
    with LeasedRequests(30.0, print) as values:
        outbox = Outbox(requests, results, values, "w1", print, last_seconds=0.3)
        add_finished_results(3 * BATCH_SIZE, requests, values, outbox)
        with outbox:
            pass
        assert outbox.summary.returned <= BATCH_SIZE
        assert outbox.summary.returned + values.return_all(LONG) == 3 * BATCH_SIZE
    again = requests.receive(max_messages=10)
    assert {message.delivery_count for message in again} == {1}


def test_returning_messages_has_a_deadline() -> None:
    """A slow server does not delay the end of a worker; the leases expire."""
    inner, results = boxes()

    class Slow(FailingMailbox):
        def stumble(self, name: str) -> None:
            if name == "nack":
                time.sleep(0.1)

    requests: Any = Slow(inner)
    with LeasedRequests(30.0, print) as held:
        add_finished_results(40, requests, held, Outbox(requests, results, held, "w1", print))
        assert held.return_all(0.3) < 40


@pytest.mark.parametrize("at", ["outbox", "heartbeat"])
def test_an_error_in_a_thread_ends_the_worker(at: str) -> None:
    """Its requests are returned to other workers."""
    inner, results = boxes()
    fault = RuntimeError(f"a fault in the {at}")
    place = {"outbox": "acknowledge_all", "heartbeat": "extend_visibility"}[at]
    requests: Any = FailingMailbox(inner, **{place: [fault]})
    inner.send_all([request(n) for n in range(3)])

    async def target(text: str) -> str:
        await asyncio.sleep(0.3)
        return text.upper()

    loop = loop_for(target, requests, results, lease_seconds=0.6, wait_seconds=60)
    with pytest.raises(RuntimeError, match=f"a fault in the {at}"):
        with_timeout(LONG, loop.run)
    with_timeout(LONG, lambda: loop_for(shout, inner, results).run(until_empty=True))
    answered = {result.sample_id for result in take_results(results)}
    assert answered == {"s0", "s1", "s2"}
