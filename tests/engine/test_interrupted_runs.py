"""Ctrl-C: running trials finish, results are stored, and the run can be resumed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from proctor import SQLiteHistory
from tests.support import start

SCRIPT = """
import asyncio, os, sys
from proctor import evaluate, exact_match

log = os.open("calls.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def target(text):
    os.write(log, (text + "\\n").encode())
    await asyncio.sleep(float(sys.argv[1]))
    return text.upper()

data = [{"id": f"s{i}", "input": f"word {i}", "expected": f"WORD {i}"} for i in range(200)]
evaluate(target, data, exact_match, history="h.db", concurrency=4, name="exam",
         resume="--resume" in sys.argv)
"""


def calls(folder: Path, at_least: int = 0) -> list[str]:
    """What the target was called with, waited for until there is enough of it."""
    log, until = folder / "calls.log", time.monotonic() + 120
    while time.monotonic() < until:
        result = log.read_text().split("\n")[:-1] if log.exists() else []
        if len(result) >= at_least:
            return result
        time.sleep(0.01)
    raise AssertionError("the target was not called often enough")


def test_ctrl_c_stores_finished_trials_and_resume_continues(tmp_path: Path) -> None:
    """The four running trials finish, and nothing runs twice."""
    process = start(SCRIPT, 0.05, cwd=tmp_path)
    calls(tmp_path, at_least=10)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    called = calls(tmp_path)
    assert process.returncode != 0
    assert "RunInterrupted: interrupted; resume with run id" in err
    report = SQLiteHistory(tmp_path / "h.db").report("exam")
    assert report.metadata is not None
    assert report.metadata.status == "interrupted"
    assert sorted(r.output for r in report.results) == sorted(word.upper() for word in called)

    resumed = start(SCRIPT, 0.0, "--resume", cwd=tmp_path)
    _, err = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, err
    assert not set(calls(tmp_path)[len(called) :]) & set(called)
    assert SQLiteHistory(tmp_path / "h.db").report("exam").total == 200


def test_a_second_ctrl_c_drops_running_trials(tmp_path: Path) -> None:
    """Even if they never end."""
    process = start(SCRIPT, 1000, cwd=tmp_path)
    calls(tmp_path, at_least=4)
    process.send_signal(signal.SIGINT)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert "RunInterrupted" in err
    history = SQLiteHistory(tmp_path / "h.db")
    assert history.report("exam").total == 0
    assert history.find("exam").status == "interrupted"


def test_ctrl_c_does_not_wait_for_another_attempt(tmp_path: Path) -> None:
    """Samples that wait for a retry are dropped at once, and are missing, not failed."""
    script = SCRIPT.replace('name="exam",', 'name="exam", retries=3, retry_delay=50.0,').replace(
        "    await asyncio.sleep(float(sys.argv[1]))\n", "    raise ConnectionError('gone')\n"
    )
    process = start(script, 0, cwd=tmp_path)
    calls(tmp_path, at_least=4)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert "RunInterrupted" in err
    assert SQLiteHistory(tmp_path / "h.db").report("exam").total == 0


def test_a_run_without_a_history_does_not_say_how_to_resume(tmp_path: Path) -> None:
    """With history=False nothing is stored: no run id is offered."""
    process = start(SCRIPT.replace('history="h.db"', "history=False"), 0.05, cwd=tmp_path)
    calls(tmp_path, at_least=10)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert "RunInterrupted: interrupted; nothing was stored (history=False)" in err
    assert "resume with" not in err


def test_sigterm_drops_running_trials(tmp_path: Path) -> None:
    """The progress display says so."""
    (tmp_path / "app.py").write_text(
        "import asyncio\nasync def slow(text):\n    open('calls.log', 'a').write('x\\n')\n"
        "    await asyncio.sleep(600)\n"
    )
    rows = [f'{{"id": "{n}", "input": "a", "expected": "a"}}\n' for n in range(4)]
    (tmp_path / "data.jsonl").write_text("".join(rows))
    run = "import sys; from proctor.cli.main import main; main(sys.argv[1:])"
    options = ("--dataset", "data.jsonl", "--target", "app.py:slow", "-e", "exact_match")
    process = start(run, "run", *options, cwd=tmp_path)
    calls(tmp_path, at_least=4)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "finished first" not in err
    assert "add --resume" in err
