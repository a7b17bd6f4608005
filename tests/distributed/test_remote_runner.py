"""A run by workers is stored, resumed and stopped like a local one."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import (
    Budget,
    EvalRequest,
    EvalResult,
    InMemoryMailbox,
    ProgressEvent,
    Sample,
    SQLiteHistory,
    contains,
    evaluate,
    exact_match,
)
from proctor.distributed.remote_runner import MailboxBackend, results_name
from proctor.engine.start import RunControls
from proctor.errors import RunInterrupted, RunStopped
from proctor.records.trial import Delivery, Trial
from proctor.wiring.evaluate import execute
from proctor.wiring.prepare import Evaluation
from tests.distributed.failing_mailboxes import LONG, FailingMailbox, boxes, eventually, loop_for, running, with_timeout
from tests.distributed.worker_runs import QUIET, comparable_report, fast_clock, loud, run_by_workers, warnings, workers
from tests.support import ManualClock, samples


def test_a_run_by_workers_equals_a_local_run(tmp_path: Path) -> None:
    """The same history, metrics, configurations, errors and report."""
    how: Any = {
        "configurations": {"plain": {}, "loud": {"suffix": "!"}},
        "epochs": 2,
        "name": "exam",
        "tags": {"branch": "main"},
        **QUIET,
    }
    evaluators = [exact_match, contains]
    local = evaluate(loud, samples(6), evaluators, history=tmp_path / "local.db", **how)
    with workers(loud, evaluators, count=3) as requests:
        away = with_timeout(
            LONG, lambda: evaluate(loud, samples(6), evaluators, history=tmp_path / "away.db", workers=requests, **how)
        )
        eventually(lambda: requests.approximate_count() == 0)
    assert comparable_report(away, tmp_path) == comparable_report(local, tmp_path)
    assert (away.total, away.errors) == (24, 4)
    stored = SQLiteHistory(tmp_path / "away.db").report("exam")
    assert comparable_report(stored, tmp_path) == comparable_report(local, tmp_path)
    assert {r.delivery.worker for r in stored.results if r.delivery} <= {"w0", "w1", "w2"}
    assert warnings(away) == ()


@dataclass(frozen=True)
class Problem:
    """Two numbers to add."""

    a: int
    b: int


def add(problem: Problem) -> int:
    """A target that takes a dataclass and nothing else."""
    assert isinstance(problem, Problem)
    return problem.a + problem.b


def test_typed_samples_keep_their_types(tmp_path: Path) -> None:
    """With a typed mailbox, targets receive objects, and the report equals that of a local run."""
    data = [Sample("1", Problem(3, 4), 7), Sample("2", Problem(1, 1), 3)]
    kind: Any = EvalRequest[Problem, int]
    requests: InMemoryMailbox[Any] = InMemoryMailbox("evals", kind)
    events: list[ProgressEvent] = []
    how: Any = {"history": False, "name": "sums", **QUIET}
    local = evaluate(add, data, exact_match, **how)
    with running(loop_for(add, requests)):
        away = with_timeout(
            LONG, lambda: evaluate(add, data, exact_match, workers=requests, on_progress=events.append, **how)
        )
    assert comparable_report(away, tmp_path) == comparable_report(local, tmp_path)
    assert [result.passed for result in away.results] == [True, False]
    assert away.results[0].trial.sample == local.results[0].trial.sample


def test_progress_equals_that_of_a_local_run() -> None:
    """The same events; percentages never fall and end at 100."""
    events: list[ProgressEvent] = []
    with workers(loud, [exact_match, contains]) as requests:
        with_timeout(
            LONG,
            lambda: evaluate(
                loud, samples(4), [exact_match, contains], history=False, workers=requests,
                on_progress=events.append, **QUIET,
            ),
        )  # fmt: skip
    kinds = [event.kind for event in events]
    assert (kinds[0], kinds[1], kinds[-2], kinds[-1]) == (
        "start", "config_start", "config_end", "end",
    )  # fmt: skip
    assert kinds.count("evaluator_end") == 6
    shares = [event.progress for event in events]
    assert shares == sorted(shares)
    assert shares[-1] == 100.0


def test_a_resumed_run_requests_only_the_missing_trials(tmp_path: Path) -> None:
    """Two of five were answered before the resume, so three requests are sent."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    clock = ManualClock()
    place = MailboxBackend(requests, worker_timeout=1.0, clock=clock)
    impatient = fast_clock(clock, 4.0)
    with impatient, pytest.raises(RunStopped, match="no worker has answered"):
        run_by_workers(loud, 5, place, history)
    run = history.find("exam")
    loop = loop_for(loud, requests, batch_size=2)
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).sent == 2
    # A copy of one of them, as an error: the success counts.
    results = requests.open_mailbox(results_name("requests", run.run_id), EvalResult)
    results.send(EvalResult(Trial(Sample("s0", "")), delivery=Delivery("other", "other-0")))
    requests.purge()
    sent = FailingMailbox(requests)
    with running(loop_for(loud, requests)):
        report = run_by_workers(loud, 5, MailboxBackend(sent), history, resume=True)
    assert (report.total, report.errors) == (5, 1)
    assert sent.calls.count("send_all") >= 1
    counts = [r.delivery.count for r in report.results if r.delivery]
    assert counts == [1] * 5
    assert "workers: 1 result belonged to another run or sample and was ignored" in warnings(report)


def test_a_resume_uses_one_early_result_per_request(tmp_path: Path) -> None:
    """The mailbox may contain two for a request; a success is preferred."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    clock = ManualClock()
    with fast_clock(clock, 4.0), pytest.raises(RunStopped):
        run_by_workers(loud, 2, MailboxBackend(requests, worker_timeout=1.0, clock=clock), history)
    requests.purge()
    run_id = history.find("exam").run_id
    results = requests.open_mailbox(results_name("requests", run_id), EvalResult)
    from proctor.records.trial import Failure

    for number, good in ((0, False), (0, True), (1, True), (1, False)):
        trial = Trial(Sample(f"s{number}", ""), "out" if good else None, None if good else Failure("E", "no"))
        results.send(EvalResult(trial, delivery=Delivery(run_id, f"{run_id}-{number}", "w")))
    report = run_by_workers(loud, 2, MailboxBackend(requests), history, resume=True)
    assert [result.success for result in report.results] == [True, True]
    assert warnings(report)[-1] == "workers: 2 results arrived twice and were not counted again"
    # Nothing was asked for, and the results' mailbox is gone.
    assert requests.approximate_count() == 0
    assert results.approximate_count() == 0


def test_ctrl_c_does_not_wait_for_workers(tmp_path: Path) -> None:
    """The run can be resumed."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    evaluation = Evaluation(loud, samples(3), exact_match, name="exam")

    def interrupt() -> None:
        # Only when all is sent does the run surely listen to Ctrl-C.
        while requests.approximate_count() < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(RunInterrupted) as interrupted:
        asyncio.run(execute(evaluation, history, RunControls(backend=MailboxBackend(requests))))
    assert history.find("exam").status == "interrupted"
    assert interrupted.value.run_id == history.find("exam").run_id
    assert requests.approximate_count() == 3
    with running(loop_for(loud, requests)):
        report = run_by_workers(loud, 3, MailboxBackend(requests), history, resume=True)
    assert report.total == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_errors": 2}, "stopped after 2 errors; the last: sample"),
        ({"on_error": "raise"}, "failed: ValueError: no"),
    ],
)
def test_max_errors_stops_a_run_with_open_requests(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    """It does not wait for hundreds of open requests."""

    def broken(text: str) -> str:
        if text in ("word 0", "word 1", "word 2"):
            raise ValueError("no")
        never.wait(LONG)
        return text

    never = threading.Event()
    history = SQLiteHistory(tmp_path / "h.db")
    with workers(broken, concurrency=4, timeout=None) as requests:
        with pytest.raises(RunStopped, match=said):
            run_by_workers(broken, 300, MailboxBackend(requests), history, **options)
        never.set()
    assert history.find("exam").status == "failed"


def test_the_budget_is_counted_from_results(tmp_path: Path) -> None:
    """Each result reports one call: after three, no request is sent; a resume continues."""
    history = SQLiteHistory(tmp_path / "h.db")
    with workers() as requests:
        place = MailboxBackend(requests, window=1)
        with pytest.raises(RunStopped, match="the budget is spent: 3 of 3 calls"):
            run_by_workers(loud, 9, place, history, budget=Budget(calls=3))
        run = history.find("exam")
        assert run.spent is not None
        assert (run.spent.calls, run.spent.tokens, run.spent.cost) == (3, 12, 1.5)
        report = run_by_workers(loud, 9, place, history, resume=True, budget=Budget(calls=20))
        assert report.total == 9


def test_a_run_without_workers_ends_after_its_patience(tmp_path: Path) -> None:
    """The error says what to do, and a notice appears before."""
    notices: set[str] = set()

    @contextlib.contextmanager
    def watch(view: Any) -> Iterator[None]:
        over = threading.Event()

        def look() -> None:
            while not over.wait(0.01):
                notices.add(view.notice)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        yield
        over.set()
        thread.join()

    requests, _ = boxes()
    clock = ManualClock()
    place = MailboxBackend(requests, worker_timeout=12.0, clock=clock)
    history = SQLiteHistory(tmp_path / "h.db")
    evaluation = Evaluation(loud, samples(3), exact_match, name="exam")
    how = RunControls(backend=place, watch=watch)
    with fast_clock(clock, 0.5), pytest.raises(RunStopped) as stopped:
        with_timeout(LONG, lambda: asyncio.run(execute(evaluation, history, how)))
    assert stopped.value.what.startswith("no worker has answered for ")
    assert "start workers on 'requests' and resume the run" in stopped.value.fix
    assert any(
        notice.startswith("no worker has answered for") and "3 requests are waiting" in notice for notice in notices
    )


def test_caches_on_a_class_do_not_change_an_identity() -> None:
    """`copy` and msgspec cache data on the classes of samples."""

    @dataclass(frozen=True)
    class Fresh:
        a: int

    def target(problem: Any) -> int:
        return Fresh(problem).a

    how: Any = {"history": False, **QUIET}
    before = evaluate(target, samples(1), exact_match, **how).metadata
    assert copy.deepcopy(Fresh(1)) == msgspec.json.decode(b'{"a": 1}', type=Fresh)
    assert {"__slotnames__", "__msgspec_cache__"} <= vars(Fresh).keys()
    after = evaluate(target, samples(1), exact_match, **how).metadata
    assert before is not None
    assert after is not None
    assert before.target == after.target
