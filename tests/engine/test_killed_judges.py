"""SIGKILL while a judge runs: no stored score is paid for again."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from proctor import SQLiteHistory
from tests.support import start

SAMPLES = 300
KILLS = 3
CALLS_BEFORE_A_KILL = 150
OPINIONS = 2

SCRIPT = f"""
import asyncio, os, re, sys
from proctor import SQLiteHistory, evaluate
from proctor.evaluators.llm import llm_judge
from proctor.records.model import ModelResponse
from proctor.records.session import Usage

log = os.open("paid.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
calls_left = int(sys.argv[1])

class Judge:
    model, supports_json_schema = "test:judge", True

    async def complete(self, request, *, timeout=None):
        global calls_left
        calls_left -= 1
        if calls_left < 0:
            await asyncio.sleep(3600)
        text = request.messages[-1].content
        sample = re.search("answer ([0-9]+)", text)[1]
        os.write(log, f"{{sample}}/{{request.opinion}}\\n".encode())
        await asyncio.sleep(0.004 + 0.002 * (int(sample) % 3))
        said = '{{"reason": "fine", "rating": "good"}}'
        return ModelResponse(said, usage=Usage(input_tokens=10, output_tokens=2, cost=0.01))

data = [{{"id": str(i), "input": str(i)}} for i in range({SAMPLES})]
resume = bool(SQLiteHistory("h.db").runs())
evaluate(lambda text: "answer " + text, data,
         [llm_judge(Judge(), "Is it right?", samples={OPINIONS})],
         history="h.db", concurrency=10, name="exam", resume="exam" if resume else False)
"""


@pytest.mark.no_cover
def test_a_killed_judge_is_not_paid_twice_for_finished_samples(tmp_path: Path) -> None:
    """Killed again and again: what was stored before a kill is never asked for after it."""
    chance = random.Random(7)
    finished: set[str] = set()
    for kill in range(KILLS):
        before = len(paid(tmp_path))
        process = start(SCRIPT, CALLS_BEFORE_A_KILL, cwd=tmp_path, traced=False)
        while len(stored(tmp_path)) == len(finished):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.06))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
        requests = {call.partition("/")[0] for call in paid(tmp_path)[before:]}
        assert not requests & finished, f"kill {kill + 1}: finished samples were judged again"
        actual = stored(tmp_path)
        assert finished <= actual, f"kill {kill + 1}: results were lost"
        finished = actual
    assert 0 < len(finished) < SAMPLES, "the kills did not hit a run at work"
    before = len(paid(tmp_path))
    last = start(SCRIPT, SAMPLES * OPINIONS, cwd=tmp_path, traced=False)
    _, errors = last.communicate(timeout=300)
    assert last.returncode == 0, errors
    asked_last = Counter(paid(tmp_path)[before:])
    assert set(asked_last.values()) == {1}
    assert {call.partition("/")[0] for call in asked_last} == set(map(str, range(SAMPLES))) - finished
    report = SQLiteHistory(tmp_path / "h.db").report("exam")
    results = list(report.results)
    assert len({result.sample_id for result in results}) == len(results) == SAMPLES
    assert {result.score.value for result in results} == {0.75}
    assert {result.scores["llm_judge"].details["judge"]["usage"]["cost"] for result in results} == {0.02}


def paid(folder: Path) -> list[str]:
    """The calls that were made, as sample/opinion."""
    log = folder / "paid.log"
    return log.read_text().split() if log.exists() else []


def stored(folder: Path) -> set[str]:
    """The samples whose results are in the history."""
    history = SQLiteHistory(folder / "h.db")
    if not history.runs():
        return set()
    results = {result.sample_id for result in history.report("exam").results}
    history.close()
    return results
