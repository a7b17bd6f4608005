"""`EvalLoop`: when it ends, and which requests it takes."""

from __future__ import annotations

import asyncio
import functools
import threading
from pathlib import Path
from typing import Any

import pytest

from proctor import Configuration, collect_results, submit_dataset
from proctor.distributed.worker import Worker, WorkerConfig
from proctor.errors import ConfigError, MailboxError
from proctor.sessions import current as sessions
from proctor.wiring.prepare import prepare_setup
from proctor.wiring.registry import Registry
from tests.distributed.failing_mailboxes import (
    LONG,
    FailingMailbox,
    boxes,
    eventually,
    loop_for,
    request,
    running,
    take_results,
    with_timeout,
)
from tests.support import samples, shout


def test_one_iteration_takes_up_to_batch_size_requests() -> None:
    """Of 25 waiting requests it takes 20, with any concurrency."""
    for concurrency in (1, 7, 30):
        requests, results = boxes()
        submit_dataset(samples(25), requests)
        loop = loop_for(shout, requests, results, batch_size=20, concurrency=concurrency)
        one_poll = functools.partial(loop.run, max_iterations=1)
        assert with_timeout(LONG, one_poll).sent == 20
        assert len(take_results(results)) == 20
        assert requests.approximate_count() == 5
        assert with_timeout(LONG, one_poll).sent == 5


def test_max_iterations_counts_polls() -> None:
    """Two polls of two requests; an empty poll counts and waits for `wait_seconds`."""
    requests, results = boxes()
    submit_dataset(samples(5), requests)
    loop = loop_for(shout, requests, results, batch_size=2, concurrency=1)
    assert with_timeout(LONG, lambda: loop.run(max_iterations=2)).sent == 4
    assert with_timeout(LONG, lambda: loop.run(max_iterations=2)).sent == 1
    with pytest.raises(ConfigError, match="max_iterations must be 1 or more"):
        loop.run(max_iterations=0)


def test_until_empty_waits_for_requests_of_other_workers() -> None:
    """A request that another worker returns is run too."""
    requests, results = boxes()
    submit_dataset(samples(3), requests)
    [values] = requests.receive(visibility_timeout=0.3)
    summary = with_timeout(LONG, lambda: loop_for(shout, requests, results).run(until_empty=True))
    assert summary.sent == 3
    assert requests.approximate_count() == 0
    assert values.delivery_count == 1
    assert sorted(result.delivery.count for result in take_results(results) if result.delivery) == [
        1, 1, 2,
    ]  # fmt: skip


def test_until_empty_ends_with_a_closed_mailbox() -> None:
    """A short outage does not end the loop."""
    requests, results = boxes()
    away: Any = FailingMailbox(requests, approximate_count=[MailboxError("away")])
    requests.send(request(0))
    tally = with_timeout(LONG, lambda: loop_for(shout, away, results).run(until_empty=True))
    assert (tally.sent, away.calls.count("approximate_count")) == (1, 2)

    class Closing(FailingMailbox):
        def stumble(self, name: str) -> None:
            if name == "approximate_count":
                requests.close()

    closing: Any = Closing(requests)
    assert with_timeout(LONG, lambda: loop_for(shout, closing, results).run(until_empty=True)).sent == 0


def test_stop_ends_a_waiting_loop_from_another_thread() -> None:
    """At once, although it would wait for ten minutes; then it can run again."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results, wait_seconds=600)
    with running(loop):
        submission = submit_dataset(samples(2), requests)
        assert collect_results(results, submission, timeout_seconds=LONG).total == 2
    requests.send(request(0))
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).sent == 1
    # Before it began, for a thread may be slow to start: once.
    requests.send(request(1))
    loop.stop()
    assert with_timeout(LONG, loop.run).sent == 0
    assert requests.approximate_count() == 1
    assert with_timeout(LONG, lambda: loop.run(max_iterations=1)).sent == 1


def test_arun_works_in_an_event_loop() -> None:
    """`run` works in a notebook too; `arun` is for async programs."""
    requests, results = boxes()
    loop = loop_for(shout, requests, results)

    async def program() -> None:
        requests.send_all([request(0), request(1)])
        assert (await asyncio.wait_for(loop.arun(max_iterations=1), LONG)).sent == 2
        requests.send(request(2))
        assert loop.run(max_iterations=1).sent == 1

    asyncio.run(program())


def test_concurrency_limits_the_running_samples() -> None:
    """Three of ten samples run at the same time, never four."""
    requests, results = boxes()
    submission = submit_dataset(samples(10), requests)
    inside, most = 0, 0

    async def slow(text: str) -> str:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0.02)
        inside -= 1
        return text.upper()

    with_timeout(LONG, lambda: loop_for(slow, requests, results, concurrency=3).run(until_empty=True))
    assert most == 3
    assert collect_results(results, submission, timeout_seconds=0).pass_rate == 1.0


def test_requests_run_in_the_order_they_were_sent() -> None:
    """With a concurrency of one, results have the same order."""
    requests, results = boxes()
    submit_dataset(samples(12), requests)
    seen: list[str] = []

    def target(text: str) -> str:
        seen.append(text)
        return text

    with_timeout(LONG, lambda: loop_for(target, requests, results, concurrency=1).run(max_iterations=1))
    assert seen == [f"word {n}" for n in range(12)]
    assert [result.sample_id for result in take_results(results)] == [f"s{n}" for n in range(12)]


def test_a_busy_worker_leases_no_more_requests() -> None:
    """A worker with a slow sample leaves the others to another worker."""
    requests, results = boxes()
    submit_dataset(samples(6), requests)
    release = threading.Event()
    entered = threading.Event()

    def slow(text: str) -> str:
        entered.set()
        release.wait(LONG)
        return text.upper()

    with running(loop_for(slow, requests, results, concurrency=1, name="slow", timeout=None)):
        entered.wait(LONG)
        quick = loop_for(shout, requests, results, name="quick", batch_size=100)
        assert with_timeout(LONG, lambda: quick.run(max_iterations=1)).sent == 5
        release.set()
        eventually(lambda: requests.approximate_count() == 0)
    by = [result.delivery.worker for result in take_results(results) if result.delivery]
    assert sorted(by) == ["quick"] * 5 + ["slow"]


def test_loops_share_a_mailbox() -> None:
    """Four loops answer each of 300 requests once."""
    requests, results = boxes()
    submission = submit_dataset(samples(300), requests)
    loops = [loop_for(shout, requests, results, concurrency=5, name=f"w{n}") for n in range(4)]
    with running(*loops):
        report = collect_results(results, submission, timeout_seconds=LONG)
    assert report.total == 300
    assert report.pass_rate == 1.0
    assert report.metadata is not None
    assert report.metadata.warnings == ()
    assert results.approximate_count() == 0


def test_configurations_reach_the_target_as_options() -> None:
    """A request carries its configuration by name and with its options."""
    requests, results = boxes()
    requests.send(request(0, configuration=Configuration("loud", {"suffix": "!"}), epoch=2))
    loop = loop_for(lambda text, suffix="": text + suffix, requests, results)
    with_timeout(LONG, lambda: loop.run(max_iterations=1))
    [result] = take_results(results)
    assert (result.output, result.trial.configuration, result.trial.epoch) == ("word 0!", "loud", 2)


@pytest.mark.parametrize("lease", [0, -1.0, float("nan")])
def test_a_lease_must_be_positive(lease: float) -> None:
    """Without a lease, another worker would receive every request at once."""
    requests, results = boxes()
    with pytest.raises(ConfigError, match="invalid lease"):
        loop_for(shout, requests, results, lease_seconds=lease)


def test_a_loop_cannot_have_a_budget() -> None:
    """It answers requests of any run; each run counts its own usage."""
    requests, results = boxes()
    with pytest.raises(ConfigError, match="a loop cannot have a budget") as refused:
        loop_for(shout, requests, results, budget={"calls": 5})
    assert "pass the budget to the run" in refused.value.fix


def test_a_warning_is_logged_at_once(caplog: pytest.LogCaptureFixture) -> None:
    """Once, while the worker is still running."""
    requests, results = boxes()
    requests.send_all([request(0), request(1)])
    events = threading.Event()

    def target(text: str) -> str:
        sessions.warn("the model is an old one")
        events.wait(LONG)
        return text.upper()

    with running(loop_for(target, requests, results, timeout=None)):
        eventually(lambda: "the model is an old one" in caplog.text)
        events.set()
        eventually(lambda: results.approximate_count() == 2)
    assert caplog.text.count("the model is an old one") == 1


def test_an_alive_file_that_cannot_be_touched_is_retried(tmp_path: Path) -> None:
    """With one warning; the worker continues."""
    requests, results = boxes()
    alive = tmp_path / "not yet" / "alive"
    lines: list[str] = []
    setup = prepare_setup(shout, "exact_match", {}, Registry.standard())
    worker = Worker(setup, WorkerConfig(requests, results, alive=alive, warn=lines.append))
    thread = threading.Thread(target=lambda: asyncio.run(worker.run()), daemon=True)
    thread.start()
    eventually(lambda: lines)
    alive.parent.mkdir()
    eventually(alive.exists)
    worker.stop()
    thread.join(LONG)
    assert not thread.is_alive()
    [text] = lines
    assert text.startswith("the alive file cannot be touched: ")
