"""Mailboxes smaller than a batch: work continues, or ends with an error that explains it."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

from proctor import EvalRequest, EvalResult, InMemoryMailbox, collect_results, evaluate, exact_match, submit_dataset
from proctor.distributed import worker
from proctor.errors import MailboxFull
from tests.distributed.failing_mailboxes import LONG, FailingMailbox, boxes, eventually, loop_for, running, with_timeout
from tests.support import ManualClock, samples


def loud(text: str) -> str:
    return text.upper()


def broken(text: str) -> str:
    raise ValueError(f"no {text}")


@pytest.mark.parametrize("capacity", [1, 2, 5])
@pytest.mark.parametrize("target", [loud, broken])
def test_results_pass_through_a_small_mailbox(target: Any, capacity: int) -> None:
    """Successes and errors arrive once, in as many parts as necessary."""
    requests, _ = boxes()
    results = InMemoryMailbox("results", EvalResult, capacity=capacity)
    submission = submit_dataset(samples(30), requests)
    with running(loop_for(target, requests, results, batch_size=10)):
        report = with_timeout(LONG, lambda: collect_results(results, submission, timeout_seconds=LONG))
        eventually(lambda: requests.approximate_count() == 0)
    assert [result.sample_id for result in report.results] == [f"s{n}" for n in range(30)]
    assert report.errors == (30 if target is broken else 0)
    assert report.metadata is not None
    assert (report.metadata.status, report.metadata.warnings) == ("completed", ())


def test_requests_pass_through_a_small_mailbox() -> None:
    """The run sends as many requests as fit."""
    requests = InMemoryMailbox("evals", EvalRequest, capacity=3)
    with running(loop_for(loud, requests)):
        report = with_timeout(
            LONG, lambda: evaluate(loud, samples(30), exact_match, workers=requests, history=False, progress=False)
        )
    assert (report.total, report.pass_rate) == (30, 1.0)


def test_a_partly_sent_batch_is_acknowledged_in_part() -> None:
    """Sent results are not sent again."""
    requests, _ = boxes(clock=ManualClock())
    results = InMemoryMailbox("results", EvalResult, capacity=5)
    submit_dataset(samples(10), requests)
    loop = loop_for(loud, requests, results, lease_seconds=0.5)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    eventually(lambda: results.approximate_count() == 5)
    eventually(lambda: requests.approximate_count() == 5)
    loop.stop()
    thread.join(LONG)
    assert not thread.is_alive()
    assert (results.approximate_count(), requests.approximate_count()) == (5, 5)


def test_until_empty_fails_if_results_are_not_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the mailbox, the sent results and the fix."""
    monkeypatch.setattr(worker, "FULL_SECONDS", 0.2)
    requests, _ = boxes(clock=ManualClock())
    results = InMemoryMailbox("results", EvalResult, capacity=5)
    submission = submit_dataset(samples(10), requests)
    loop = loop_for(loud, requests, results, lease_seconds=0.5)
    with pytest.raises(MailboxFull, match=r"5 results sent, [45] requests returned") as caught:
        with_timeout(LONG, lambda: loop.run(until_empty=True))
    assert caught.value.where == "results"
    assert "increase the capacity" in caught.value.fix
    report = collect_results(results, submission, timeout_seconds=0)
    assert report.total == 5


def test_a_full_mailbox_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """The log of the worker explains why it waits."""
    requests, inner = boxes()
    results: Any = FailingMailbox(inner, send_all=itertools.repeat(MailboxFull("full"), 3))
    submit_dataset(samples(1), requests)
    with_timeout(LONG, lambda: loop_for(loud, requests, results).run(max_iterations=1))
    texts = [record.message for record in caplog.records]
    assert texts == ["the mailbox 'results' is full; results wait until it has room"]


def test_submitting_to_a_full_mailbox_reports_what_was_sent() -> None:
    """The run can be submitted again with the same id."""
    requests = InMemoryMailbox("requests", EvalRequest, capacity=150)
    with pytest.raises(MailboxFull, match="sent 100 requests of run 'r1'") as caught:
        submit_dataset(samples(200), requests, run_id="r1")
    assert "run_id='r1'" in caught.value.fix
    assert requests.approximate_count() == 100
