"""SIGKILL at random moments: nothing durable is lost, nothing durable is run again.

A result is durable when it is in the history; what a killed process had called but not yet
committed was in flight. PROCTOR_KILLS sets the number of kills; `make chaos` kills hundreds of runs.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from proctor import SQLiteHistory
from tests.support import start

KILLS = int(os.environ.get("PROCTOR_KILLS", "4"))
SAMPLES = 2_000
CONCURRENCY = 20

SCRIPT = f"""
import asyncio, os, sys
from proctor import SQLiteHistory, evaluate, exact_match

log = os.open("calls.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
calls_left = int(sys.argv[1])

async def target(text):
    global calls_left
    calls_left -= 1
    if calls_left < 0:
        await asyncio.sleep(3600)
    os.write(log, (text + "\\n").encode())
    await asyncio.sleep(0.001 * (int(text) % 5))
    return text

data = [{{"id": f"s{{i}}", "input": str(i), "expected": str(i)}} for i in range({SAMPLES})]
resume = bool(SQLiteHistory("h.db").runs())
evaluate(target, data, [exact_match], history="h.db", concurrency={CONCURRENCY}, name="exam",
         resume="exam" if resume else False)
"""


@pytest.mark.no_cover
def test_killed_at_random_moments_every_sample_has_exactly_one_result(tmp_path: Path) -> None:
    """After many kills and a last resume: all results, once each; only calls in flight twice."""
    chance = random.Random(20260101)
    durable: set[str] = set()
    kills = in_the_middle = 0
    while kills < KILLS:
        logged = calls(tmp_path)
        waits_for_results = kills % 2 == 0
        allowed_calls = SAMPLES // 3 if waits_for_results else SAMPLES
        process = start(SCRIPT, allowed_calls, cwd=tmp_path, traced=False)
        wait_for_calls(tmp_path, process, more_than=len(logged))
        while waits_for_results and len(stored(tmp_path)) == len(durable) and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
        kills += 1
        again = durable & set(calls(tmp_path)[len(logged) :])
        assert not again, f"kill {kills}: durable results were run again: {sorted(again)[:5]}"
        results = stored(tmp_path)
        assert durable <= results, f"kill {kills}: results were lost"
        in_the_middle += len(durable) < len(results) < SAMPLES
        durable = results
        if len(durable) == SAMPLES:
            shutil.rmtree(tmp_path)
            tmp_path.mkdir()
            durable = set()
    assert in_the_middle >= KILLS // 4, f"only {in_the_middle} of {kills} hit a run at work"
    last = start(SCRIPT, SAMPLES, cwd=tmp_path, traced=False)
    _, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors
    report = SQLiteHistory(tmp_path / "h.db").report("exam")
    ids = Counter(result.sample_id for result in report.results)
    assert len(ids) == SAMPLES
    assert set(ids.values()) == {1}
    assert report.pass_rate == 1.0
    assert report.metadata is not None
    assert report.metadata.status == "completed"
    assert list((tmp_path / "h.db.locks").iterdir()) == []


def wait_for_calls(folder: Path, process: subprocess.Popen[str], more_than: int) -> None:
    """Return when the run is at work, or over."""
    while len(calls(folder)) <= more_than and process.poll() is None:
        time.sleep(0.002)


def calls(folder: Path) -> list[str]:
    log = folder / "calls.log"
    return log.read_text().split() if log.exists() else []


def stored(folder: Path) -> set[str]:
    history = SQLiteHistory(folder / "h.db")
    if not history.runs():
        return set()
    results = {result.output for result in history.report("exam").results}
    history.close()
    return results
