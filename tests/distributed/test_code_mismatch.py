"""Workers that run other code than the run: the run gets a notice and does not wait for them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import EvalRequest, EvalResult, InMemoryMailbox, Sample, SQLiteHistory, Trial, contains, exact_match
from proctor.distributed import notices
from proctor.distributed import remote_runner as errands
from proctor.distributed.expected_results import describe_difference
from proctor.distributed.notices import WorkerNotice, notice_id
from proctor.distributed.remote_runner import MailboxBackend, results_name
from proctor.engine.start import RunControls
from proctor.errors import RunStopped
from proctor.records.trial import Delivery
from proctor.wiring.dispatch import collect, submit
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from tests.distributed.failing_mailboxes import LONG, eventually, loop_for, running, with_timeout
from tests.distributed.worker_runs import fast_clock, loud, warnings, workers
from tests.support import ManualClock, samples

WAY = [
    ("t@00000001 e@00000002", "t@00000001 e@00000002", "its evaluators are in another order"),
    ("t@00000001", "u@00000001", "its target is 'u', not 't'"),
    ("t@00000001", "t@0000000f", "its target 't' is another version"),
    ("t@00000001 e@00000002", "t@00000001", "it does not have the evaluator 'e'"),
    ("t@00000001", "t@00000001 e@00000002", "it has the evaluator 'e', which the run does not use"),
    (
        "t@00000001 an e@00000002",
        "t@00000001 an e@0000000f",
        "its evaluator 'an e' is another version or has other parameters",
    ),
    ("t@00000001", "", "it runs '', not 't@00000001'"),
]


@pytest.mark.parametrize(("wanted", "runs", "said"), WAY)
def test_the_part_that_differs_is_named(wanted: str, runs: str, said: str) -> None:
    """The target, its version or an evaluator."""
    assert describe_difference(wanted, runs) == said


def other(text: str) -> str:
    """A target that is not the run's."""
    return text.lower()


@contextlib.contextmanager
def recording_display(seen: list[str]) -> Iterator[Any]:
    """A display that records notices."""

    @contextlib.contextmanager
    def watch(view: Any) -> Iterator[None]:
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.002):
                if view.notice not in seen:
                    seen.append(view.notice)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        yield
        over.set()
        thread.join()

    yield watch


def test_a_run_stops_if_all_workers_run_other_code(tmp_path: Path) -> None:
    """After a minute, not after its patience; it names the difference and can be resumed."""
    clock = ManualClock()
    seen: list[str] = []
    history = SQLiteHistory(tmp_path / "h.db")
    evaluation = Evaluation(loud, samples(3), exact_match, name="exam")
    with workers(other, [exact_match, contains]) as requests, recording_display(seen) as watch:
        how = RunControls(backend=MailboxBackend(requests, clock=clock), watch=watch)
        with fast_clock(clock, 5.0), pytest.raises(RunStopped) as caught:
            with_timeout(LONG, lambda: asyncio.run(execute(evaluation, history, how)))
    difference = "w0: its target is 'other', not 'loud'; it has the evaluator 'contains', which the run does not use"
    assert f"all workers run different code from this run: {difference}" in caught.value.what
    assert "then resume the run" in caught.value.fix
    assert f"workers run different code from this run: {difference}" in seen
    run = history.find("exam")
    assert run.status != "completed"
    assert any(f"workers: {difference.replace(':', ' could not run requests of this run:', 1)}" == warning
               for warning in run.warnings)  # fmt: skip


def test_a_run_waits_for_a_worker_with_the_right_code(tmp_path: Path) -> None:
    """It sent a notice with its first request, so a slow sample does not stop the run."""
    clock = ManualClock()
    may_go_on = threading.Event()

    def slow(text: str) -> str:
        assert may_go_on.wait(LONG)
        return text.upper()

    requests: InMemoryMailbox[Any] = InMemoryMailbox("evals", EvalRequest)
    history = SQLiteHistory(tmp_path / "h.db")
    evaluation = Evaluation(slow, samples(2), exact_match, name="exam")
    how = RunControls(backend=MailboxBackend(requests, clock=clock))
    right = loop_for(slow, requests, concurrency=1, timeout=None, name="right")
    wrong = loop_for(other, requests, name="wrong")

    def let_time_pass() -> None:
        eventually(lambda: clock.seconds > 10 * errands.MISMATCH_SECONDS)
        may_go_on.set()

    helper = threading.Thread(target=let_time_pass, daemon=True)
    with running(right, wrong), fast_clock(clock, 20.0):
        helper.start()
        report = with_timeout(LONG, lambda: asyncio.run(execute(evaluation, history, how)))
    assert (report.total, report.pass_rate) == (2, 1.0)
    assert warnings(report) == ("workers: wrong could not run requests of this run: its target is 'other', not 'slow'",)


def test_another_version_of_proctor_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The report names both versions."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests: InMemoryMailbox[Any] = InMemoryMailbox("evals", EvalRequest)
    run = submit(Evaluation(loud, samples(1), exact_match, name="exam"), requests, history)
    with_timeout(LONG, lambda: loop_for(loud, requests).run(max_iterations=1))
    monkeypatch.setattr(notices, "VERSION", "99.0")
    report = collect(run.run_id, requests, history, timeout=5)
    [text] = warnings(report)
    assert text.startswith("workers: w1 used another version: Proctor ")
    assert text.endswith("this run has 99.0")


def test_collect_says_that_workers_run_other_code(tmp_path: Path) -> None:
    """It explains why results are missing."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests: InMemoryMailbox[Any] = InMemoryMailbox("evals", EvalRequest)
    submit(Evaluation(loud, samples(1), exact_match, name="exam"), requests, history)
    with_timeout(LONG, lambda: loop_for(other, requests).run(max_iterations=1))
    report = collect("exam", requests, history, timeout=0)
    assert report.metadata is not None
    assert report.metadata.status == "submitted"
    assert warnings(report) == (
        "workers: w1 could not run requests of this run: its target is 'other', not 'loud'",
        "1 of 1 results are missing: s0; they can be collected later",
    )


def test_a_run_gets_one_notice_per_start() -> None:
    """A thousand requests do not fill the mailbox of the run with notices."""
    requests: InMemoryMailbox[Any] = InMemoryMailbox("evals", EvalRequest)
    sample: Sample[Any, Any] = Sample("1", "a")
    first = EvalRequest(sample, request_id="r-0", run_id="r", expects="t@00000001")
    later = msgspec.structs.replace(first, created_at=first.created_at + notices.REPEAT_AFTER * 2)
    requests.send_all([first] * 50, reply_to="answers")
    loop = loop_for(other, requests)
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    answers = requests.open_mailbox("answers", EvalResult)
    assert answers.approximate_count() == 1
    requests.purge()
    requests.send_all([later] * 2, reply_to="answers")
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    # A loop that is run again is a new worker: one notice for its start, none for the second.
    assert answers.approximate_count() == 2


def test_a_result_that_cannot_be_read_is_an_error_of_its_sample(tmp_path: Path) -> None:
    """A worker of another version may send an unknown format; the run does not hang."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests: InMemoryMailbox[Any] = InMemoryMailbox("evals", EvalRequest)

    def answer_strangely() -> None:
        [message] = requests.receive(wait_time_seconds=LONG)
        delivery = {"run_id": message.body.run_id, "request_id": message.body.request_id}
        message.reply({"trial": {"colour": "blue"}, "delivery": delivery})
        message.acknowledge()
        message.reply("garbage")

    helper = threading.Thread(target=answer_strangely, daemon=True)
    helper.start()
    evaluation = Evaluation(loud, samples(1), exact_match, name="exam")
    how = RunControls(backend=MailboxBackend(requests))
    report = with_timeout(LONG, lambda: asyncio.run(execute(evaluation, history, how)))
    helper.join(LONG)
    [result] = report.results
    assert result.error is not None
    assert result.error.startswith("UnreadableResult: it cannot be read: ")
    assert "workers: 1 request has no readable result (s0)" in warnings(report)


def test_collect_counts_unreadable_results(tmp_path: Path) -> None:
    """Missing results may be among them."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests: InMemoryMailbox[Any] = InMemoryMailbox("evals", EvalRequest)
    run = submit(Evaluation(loud, samples(1), exact_match, name="exam"), requests, history)
    results = requests.open_mailbox(results_name("evals", run.run_id), EvalResult)
    results.send("garbage")
    report = collect("exam", requests, history, timeout=0)
    assert warnings(report) == (
        "workers: 1 result could not be read and became a dead letter",
        "1 of 1 results are missing: s0; they can be collected later",
    )


def test_a_notice_is_not_a_result() -> None:
    """Not even for a collector that only knows a number."""
    from proctor import collect_results

    results: InMemoryMailbox[Any] = InMemoryMailbox("results", EvalResult)
    notice = msgspec.to_builtins(WorkerNotice("t@00000001", "t@00000002"))
    delivery = Delivery("r", notice_id("r"), "w")
    results.send(EvalResult(Trial(Sample("x", None), notice), delivery=delivery))
    report = collect_results(results, 1, timeout_seconds=0)
    assert report.total == 0
    assert warnings(report)[-1] == "1 of 1 results are missing"
