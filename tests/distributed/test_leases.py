"""Leases: a worker extends them while it works, and loses requests whose lease expires."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from proctor import EvalRequest, collect_results, submit_dataset
from proctor.distributed.leased_requests import LeasedRequest, LeasedRequests
from proctor.errors import MailboxError
from tests.distributed.failing_mailboxes import (
    LONG,
    FailingMailbox,
    HeartbeatMailbox,
    boxes,
    eventually,
    loop_for,
    request,
    running,
    take_results,
    with_timeout,
)
from tests.support import ManualClock, samples, shout


def test_a_sample_longer_than_three_leases_is_delivered_once() -> None:
    """The worker extends its lease, so another worker does not receive the request."""
    clock = ManualClock()
    mailbox, results = boxes(clock=clock)
    requests: Any = HeartbeatMailbox(mailbox, clock, lease=0.1)
    submission = submit_dataset(samples(1), mailbox)
    calls: list[str] = []

    def slow(text: str) -> str:
        calls.append(text)
        eventually(lambda: requests.extensions >= 5)
        return text.upper()

    loops = [loop_for(slow, requests, results, lease_seconds=0.1, name=f"w{n}") for n in range(2)]
    with running(*loops):
        report = collect_results(results, submission, timeout_seconds=LONG)
        eventually(lambda: mailbox.approximate_count() == 0)
    assert calls == ["word 0"]
    [result] = report.results
    assert result.delivery is not None
    assert result.delivery.count == 1


class LeaseLosingMailbox(FailingMailbox):
    """A mailbox whose leases cannot be extended and expire."""

    def stumble(self, name: str) -> None:
        if name == "extend_visibility":
            raise MailboxError("the server is away")


def test_a_worker_that_lost_its_lease_sends_its_success() -> None:
    """Collectors count the request once."""
    inner, results = boxes()
    requests: Any = LeaseLosingMailbox(inner)
    submission = submit_dataset(samples(1), inner)
    entered, lost = threading.Event(), threading.Event()

    def slow(text: str) -> str:
        entered.set()
        lost.wait(LONG)
        return text.upper()

    loop = loop_for(slow, requests, results, lease_seconds=0.1, concurrency=1, timeout=None)
    with running(loop):
        entered.wait(LONG)
        [taken] = inner.open_mailbox("requests", EvalRequest).receive(wait_time_seconds=10)
        assert taken.delivery_count == 2
        lost.set()
        report = collect_results(results, submission, timeout_seconds=LONG)
    assert [result.output for result in report.results] == ["WORD 0"]


def test_a_worker_that_lost_its_lease_sends_no_error() -> None:
    """Another worker has the request, and its result may be better."""
    requests, results = boxes()
    submission = submit_dataset(samples(1), requests)
    entered, stolen, done = threading.Event(), threading.Event(), threading.Event()

    def broken(text: str) -> str:
        entered.set()
        stolen.wait(LONG)
        raise ValueError("too late")

    loop = loop_for(broken, requests, results, lease_seconds=0.2, batch_size=1, timeout=None)
    outcome: list[Any] = []

    def work() -> None:
        outcome.append(loop.run(max_iterations=1))
        done.set()

    threading.Thread(target=work, daemon=True).start()
    entered.wait(LONG)
    # Purged and sent anew: the worker's own lease is void, which it learns at the next beat.
    requests.purge()
    submit_dataset(samples(1), requests, run_id=submission.run_id)
    time.sleep(1.0)
    stolen.set()
    done.wait(LONG)
    assert (outcome[0].sent, outcome[0].outdated) == (0, 1)
    assert take_results(results) == []
    with_timeout(LONG, lambda: loop_for(shout, requests, results).run(max_iterations=1))
    report = collect_results(results, submission, timeout_seconds=0)
    assert [result.success for result in report.results] == [True]


def test_leases_that_cannot_be_extended_cause_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """One for each round, however many leases there are."""
    inner, results = boxes()
    inner.send_all([request(n) for n in range(3)])
    requests: Any = LeaseLosingMailbox(inner)

    def slow(text: str) -> str:
        time.sleep(0.25)
        return text.upper()

    loop = loop_for(slow, requests, results, lease_seconds=0.3)
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    count = caplog.text.count("a lease could not be extended: the server is away")
    assert 1 <= count <= 3


def test_an_acknowledged_message_is_not_marked_as_lost() -> None:
    """Even if its lease is extended too late."""
    requests, _ = boxes()
    requests.send(request(0))
    [message] = requests.receive()
    values = LeasedRequests(30.0, print)
    values.add(7, LeasedRequest(message, message.body))
    assert (len(values), values.get(7).message.id) == (1, message.id)
    values.remove(7)
    values._mark_lost(7)
    assert not values.is_lost(7)


def test_requests_that_were_lost_repeatedly_run_alone() -> None:
    """They may kill their workers: from the third delivery on, nothing else runs."""
    requests, results = boxes()
    requests.send_all([request(n) for n in range(4)])
    for _ in range(2):
        for message in requests.receive(max_messages=4):
            message.nack(reason="its worker died")
    # s0 to s3 come for the third time now, the others for the first.
    requests.send_all([request(n) for n in range(4, 8)])
    inside: set[str] = set()
    together: dict[str, int] = {}
    lock = threading.Lock()

    def target(text: str) -> str:
        with lock:
            inside.add(text)
            for item in inside:
                together[item] = max(together.get(item, 0), len(inside))
        time.sleep(0.02)
        with lock:
            inside.discard(text)
        return text.upper()

    with_timeout(LONG, lambda: loop_for(target, requests, results).run(until_empty=True))
    assert len(take_results(results)) == 8
    assert {together[f"word {n}"] for n in range(4)} == {1}
    assert max(together.values()) > 1


def test_a_stopping_worker_returns_a_request_that_waits_to_run_alone() -> None:
    """Another worker can take it at once."""
    requests, results = boxes()
    requests.send(request(1))
    for _ in range(2):
        [message] = requests.receive()
        message.nack()
    release, entered = threading.Event(), threading.Event()

    def slow(text: str) -> str:
        entered.set()
        release.wait(LONG)
        return text.upper()

    [suspect] = requests.receive()
    suspect.nack(0.2)
    requests.send(request(0))
    loop = loop_for(slow, requests, results, timeout=None, wait_seconds=5)
    with running(loop):
        entered.wait(LONG)
        time.sleep(0.3)
        loop.stop()
        another = requests.open_mailbox("requests", EvalRequest)
        [message] = another.receive(wait_time_seconds=10)
        assert message.body.sample.id == "s1"
        release.set()
        eventually(lambda: results.approximate_count() == 1)
    assert [result.sample_id for result in take_results(results)] == ["s0"]
