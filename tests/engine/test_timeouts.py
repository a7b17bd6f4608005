"""Timeouts of async targets, blocking targets, and targets that ignore cancellation."""

from __future__ import annotations

import asyncio
import dataclasses
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from proctor import evaluate, exact_match
from proctor.engine import timeouts as limits
from tests.support import samples


def test_an_async_target_is_cancelled_in_time() -> None:
    """A sample that hangs ends after its time as an error; its neighbours are not touched."""
    cancelled = []

    async def target(text: str) -> str:
        if text == "word 1":
            try:
                await asyncio.sleep(60)
            finally:
                cancelled.append(text)
        return text.upper()

    report = evaluate(target, samples(5), exact_match, timeout=0.2, history=False)
    assert cancelled == ["word 1"]
    assert [r.outcome for r in report.results] == ["passed", "error", "passed", "passed", "passed"]
    assert report.results[1].error == "TimeoutError: the target took longer than 0.2 s"
    assert (report.results[1].latency_ms or 0) >= 190


def test_a_worker_continues_after_a_timeout() -> None:
    """Every sample runs, and each timeout is counted once."""

    async def target(text: str) -> str:
        if int(text.split()[1]) % 2:
            await asyncio.sleep(60)
        await asyncio.sleep(0.001)
        return text.upper()

    report = evaluate(target, samples(8), exact_match, timeout=0.2, concurrency=1, history=False)
    assert [r.outcome for r in report.results] == ["passed", "error"] * 4


def test_a_blocking_target_is_left_in_its_thread() -> None:
    """A sync target that hangs times out; its thread is given up, and the report says so."""
    release = threading.Event()

    def target(text: str) -> str:
        if text == "word 0":
            release.wait(20)
        return text.upper()

    report = evaluate(target, samples(6), exact_match, timeout=0.5, concurrency=2, history=False)
    release.set()
    assert [r.outcome for r in report.results] == ["error"] + ["passed"] * 5
    assert report.metadata is not None
    (warning,) = report.metadata.warnings
    assert warning.startswith("calls that timed out or were interrupted in a thread: 1. Python cannot stop")


def test_hung_threads_do_not_hold_up_the_exit(tmp_path: Path) -> None:
    """A process whose target hangs in a thread for ever still ends by itself."""
    script = """
import time
from proctor import evaluate, exact_match
report = evaluate(lambda x: time.sleep(1000), [{"id": "a", "input": "x", "expected": "y"}],
                  exact_match, timeout=0.1, history=False)
print(report.errors)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert (done.stdout, done.returncode) == ("1\n", 0)


def test_a_target_that_ignores_its_cancellation_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot hang the run."""
    monkeypatch.setattr(limits, "GRACE_SECONDS", 0.1)

    async def target(text: str) -> str:
        while text == "word 0":
            try:
                await asyncio.sleep(60)
                break
            except asyncio.CancelledError:
                pass
        return text.upper()

    report = evaluate(target, samples(4), exact_match, timeout=0.2, concurrency=1, history=False)
    assert [r.outcome for r in report.results] == ["error", "passed", "passed", "passed"]
    assert "it kept running after it was cancelled" in (report.results[0].error or "")


def test_a_target_that_swallows_the_cancellation_but_ends_is_still_a_time_out() -> None:
    """What comes back after the time is over does not count."""

    async def target(text: str) -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            return text.upper()
        return text

    report = evaluate(target, samples(2), exact_match, timeout=0.05, history=False)
    assert [r.outcome for r in report.results] == ["error", "error"]


def test_an_async_target_that_blocks_the_loop_is_reported_as_such() -> None:
    """It cannot be stopped, but it is not counted as in time."""

    async def target(text: str) -> str:
        time.sleep(0.1)
        return text.upper()

    report = evaluate(target, samples(1), exact_match, timeout=0.05, history=False)
    assert "(it blocked the event loop past its timeout)" in (report.results[0].error or "")


def test_an_evaluator_that_hangs_gives_an_error_score() -> None:
    """Evaluators have a time of their own, async and blocking alike."""
    release = threading.Event()

    async def waits(output: str) -> bool:
        await asyncio.sleep(60)
        return True

    def blocks(output: str) -> bool:
        return release.wait(20)

    async def target(text: str) -> str:
        return text.upper()

    report = evaluate(target, samples(1), [exact_match, waits, blocks], evaluator_timeout=0.1, history=False)
    release.set()
    scores = report.results[0].scores
    assert scores["exact_match"].passed
    for name in ("waits", "blocks"):
        assert scores[name].status == "error"
        assert scores[name].reason == "TimeoutError: no verdict within 0.1 s"


def test_no_time_out_means_none() -> None:
    """timeout=None lets a call take as long as it likes."""

    async def target(text: str) -> str:
        await asyncio.sleep(0.05)
        return text.upper()

    assert evaluate(target, samples(3), exact_match, timeout=None, history=False).pass_rate == 1.0


@pytest.mark.parametrize("is_first_step", [True, False])
def test_an_evaluator_that_blocks_the_loop_gets_the_error_and_not_its_neighbours(is_first_step: bool) -> None:
    """The async evaluator that holds the loop past its time fails; those that waited do not."""

    async def check(output: str, expected: str) -> bool:
        if output == "word 1":
            if not is_first_step:
                await asyncio.sleep(0.01)
            time.sleep(0.9)
        else:
            await asyncio.sleep(0.2)
        return True

    async def target(text: str) -> str:
        return text

    report = evaluate(target, samples(4), check, evaluator_timeout=0.5, history=False)
    assert [r.outcome for r in report.results] == ["passed", "unscored", "passed", "passed"]
    assert report.results[1].scores["check"].reason == (
        "TimeoutError: no verdict within 0.5 s (it blocked the event loop past its timeout)"
    )


def test_an_evaluator_that_is_ready_again_does_not_pay_for_the_first_step_of_the_next() -> None:
    """It continues right after the block, before the loop was checked."""

    async def check_again(output: str) -> bool:
        await asyncio.sleep(0)
        return True

    async def block(output: str) -> bool:
        time.sleep(0.9)
        return True

    report = evaluate(lambda text: text, samples(1), [check_again, block], evaluator_timeout=0.5, history=False)
    assert [score.status for score in report.results[0].scores.values()] == ["ok", "error"]


@pytest.mark.parametrize("is_first_step", [True, False])
def test_a_target_that_blocks_the_loop_gets_the_error_and_not_its_neighbours(is_first_step: bool) -> None:
    """The async target that holds the loop past its time fails; those that waited do not."""

    async def target(text: str) -> str:
        if text == "word 1":
            if not is_first_step:
                await asyncio.sleep(0.01)
            time.sleep(0.9)
        else:
            await asyncio.sleep(0.2)
        return text.upper()

    report = evaluate(target, samples(4), exact_match, timeout=0.5, history=False)
    assert [r.outcome for r in report.results] == ["passed", "error", "passed", "passed"]
    assert "(it blocked the event loop past its timeout)" in (report.results[1].error or "")


def test_a_call_that_hangs_expires_although_others_block_the_loop() -> None:
    """The time that a blocked loop gives back is bounded: a call that never ends still expires."""

    async def target(text: str) -> str:
        if text == "word 0":
            await asyncio.sleep(60)
        time.sleep(0.15)
        return text.upper()

    report = evaluate(target, samples(8), exact_match, timeout=0.3, concurrency=2, history=False)
    assert [r.outcome for r in report.results] == ["error"] + ["passed"] * 7
    assert report.results[0].error == "TimeoutError: the target took longer than 0.3 s"


def test_messages_of_an_object_are_read_within_the_time_of_the_call() -> None:
    """A `messages` property that hangs holds up neither the run nor its neighbours."""
    release = threading.Event()

    @dataclasses.dataclass
    class Out:
        number: int = 1

        @property
        def messages(self) -> None:
            release.wait(20)

    async def target(text: str) -> object:
        return Out() if text == "word 0" else text.upper()

    report = evaluate(target, samples(3), exact_match, timeout=0.3, history=False)
    release.set()
    assert [r.outcome for r in report.results] == ["failed", "passed", "passed"]
    assert report.results[0].output == {"number": 1}
    assert report.metadata is not None
    assert any(
        warning.startswith("the messages in an output could not be read within 0.3 s")
        for warning in report.metadata.warnings
    )


STUBBORN = """
import asyncio
from proctor import {name}, exact_match

async def stubborn(question):
    while question == "b":
        try:
            await asyncio.sleep(100)
        except BaseException:
            pass
    return question

samples = [{{"id": word, "input": word, "expected": word}} for word in "abc"]
call = {name}(stubborn, samples, exact_match, timeout=0.1, history=False)
report = {call}
print([result.outcome for result in report.results], *report.metadata.warnings)
"""


@pytest.mark.parametrize(("name", "call"), [("evaluate", "call"), ("aevaluate", "asyncio.run(call)")])
def test_a_coroutine_that_catches_everything_does_not_keep_the_process_alive(name: str, call: str) -> None:
    """It is an error of its sample and a warning; closing it would run its loop forever."""
    script = STUBBORN.format(name=name, call=call)
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("['passed', 'error', 'passed'] calls that continued after they were cancelled: 1;")
