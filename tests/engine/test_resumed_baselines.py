"""Runs with a baseline that are interrupted, killed, resumed or rescored."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from proctor import SQLiteHistory, rescore
from proctor.errors import ResumeRefused
from tests.engine.test_baselines import CONFIGURATIONS, compared, repeats, run, target, told
from tests.support import start

INTERRUPTED = """
import asyncio, sys
from proctor import evaluate, Score

def told(field_context):
    return Score(1.0, True, str(field_context.baseline_value))

async def target(text, *, name):
    print(name, flush=True)
    if name == "base":
        BASE
    return text

evaluate(target, [{"id": "1", "input": "x"}], told, history="h.db", concurrency=4, name="exam",
         configurations={"base": {"name": "base"}, "other": {"name": "other"}}, baseline="base",
         retries=3, retry_delay=60.0)
"""


@pytest.mark.parametrize(("base", "signals"), [("raise ConnectionError('gone')", 1), ("await asyncio.sleep(1000)", 2)])
def test_ctrl_c_while_waiting_for_a_baseline(tmp_path: Path, base: str, signals: int) -> None:
    """Whether the baseline rests before a retry or never ends: no hang, and nothing half scored."""
    process = start(INTERRUPTED.replace("BASE", base), cwd=tmp_path)
    assert process.stdout is not None
    assert {process.stdout.readline().strip() for _ in range(2)} == {"base", "other"}
    time.sleep(0.3)
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
        time.sleep(1.0)
    _, err = process.communicate(timeout=120)
    assert "RunInterrupted" in err
    history = SQLiteHistory(tmp_path / "h.db")
    assert history.find("exam").status == "interrupted"
    assert history.report("exam").total == 0


KILLED = f"""
import asyncio, os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from proctor import SQLiteHistory, evaluate
from tests.engine.test_baselines import CONFIGURATIONS, compared, numbers, repeats

log = os.open("calls.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def target(number, *, shift):
    os.write(log, f"{{number}} {{shift}}\\n".encode())
    await asyncio.sleep(0.002 * (number % 4))
    return number + shift

resume = bool(SQLiteHistory("h.db").runs())
evaluate(target, numbers(300), [compared, repeats], history="h.db", name="exam", concurrency=7,
         configurations=CONFIGURATIONS, baseline="base", epochs=2, resume=resume)
"""


def test_a_killed_run_is_resumed_with_its_baselines(tmp_path: Path) -> None:
    """After real kills every trial is there once, compared with its own baseline, stored or new."""
    killed = 0
    for _ in range(2):
        process = start(KILLED, cwd=tmp_path, traced=False)
        lines = tmp_path / "calls.log"
        before = lines.stat().st_size if lines.exists() else 0
        while process.poll() is None:
            if lines.exists() and lines.stat().st_size > before + 2_000:
                break
            time.sleep(0.005)
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20)
    assert killed, "every run was over before it could be killed"
    last = start(KILLED, cwd=tmp_path, traced=False)
    _, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors
    report = SQLiteHistory(tmp_path / "h.db").report("exam")
    assert report.total == 300 * 3 * 2
    result = told(report)
    assert len(result) == report.total
    for (sample_id, name, _), details in result.items():
        number = 10 * (int(sample_id[1:]) + 1)
        assert details["baseline"] == (None if name == "base" else number)
    for (sample_id, name, epoch), details in told(report, "repeats").items():
        if epoch:
            number = 10 * (int(sample_id[1:]) + 1)
            own = [number + CONFIGURATIONS[name]["shift"]] * 2
            assert details["epochs"] == [own, [] if name == "base" else [number] * 2]


def test_another_baseline_is_another_run(tmp_path: Path) -> None:
    """A run cannot be resumed with another baseline, for its scores were made with the first."""
    history = SQLiteHistory(tmp_path / "h.db")
    run_id = run(history=history, name="exam").run_id
    with pytest.raises(ResumeRefused, match="baseline: was base, is up"):
        run(history=history, name="exam", baseline="up", resume=run_id)


def test_rescoring_uses_stored_baselines(tmp_path: Path) -> None:
    """No target is called."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = run(target, compared, repeats, history=history, name="exam", epochs=2)
    again = rescore(first.run_id, [compared, repeats], history=history)
    assert told(again) == told(first)
    assert told(again, "repeats") == told(first, "repeats")
    assert told(again)["s0", "up", 1]["delta"] == [5, 50.0]
    assert told(again, "repeats")["s1", "up", 1]["epochs"] == [[25, 25], [20, 20]]
    assert again.metadata is not None
    assert again.metadata.baseline == "base"


async def second_fails(number: int, *, shift: int) -> int:
    if number == 20 and shift == 0:
        raise ValueError("no")
    return number + shift


def test_a_failed_baseline_stays_failed_when_rescored(tmp_path: Path) -> None:
    """Evaluators that do not compare need none."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = run(second_fails, history=history, name="exam")
    again = rescore(first.run_id, [compared], history=history)
    assert told(again) == told(first)
    assert told(again)["s1", "up", 0]["baseline"] is None
    assert again.errors == 1

    def plain(output: Any) -> bool:
        return True

    assert rescore(first.run_id, plain, history=history).errors == 1


def test_configurations_may_be_added_to_a_run(tmp_path: Path) -> None:
    """Resumed with another one, only that is run, compared with the stored baseline."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = run(history=history, name="exam", configurations={"base": {"shift": 0}})
    more = run(history=history, name="exam", resume=first.run_id, allow_changes=True, concurrency=1)
    result = told(more)
    assert len(result) == 6
    assert result["s0", "up", 0]["delta"] == [5, 50.0]
    assert result["s1", "down", 0]["baseline"] == 20
