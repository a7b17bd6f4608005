"""What it costs to score sessions by rubrics beside what the engine itself costs.

    python benchmarks/rubrics.py [--sessions 1000] [--rounds 3]

1,000 sessions by 5 rubrics, with a scripted judge that answers at once: a session is rendered and
fenced once, and every judgement makes its prompt, asks, reads the verdict, and is kept with its
whole exchange, which is looked through for secrets before. Beside it the plain engine on the same
sessions, in two readings, for "plain" may mean either:

- five evaluators that ask the same model through the same door (`aask`) a question of the same
  length that is always the same, and look at nothing. What an exchange costs the engine, to ask, to
  look through and to keep, is in it; what is left is the work of a rubric.
- five evaluators that do nothing at all. Nothing is asked and nothing kept but a number, so this is
  the engine's overhead at its barest, and no judge that keeps what was said comes near it.

The first is held to three times (docs/decisions/013), and both are printed. Each side runs in a process of its own;
figures are CPU time of all threads, the best of the rounds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIDES = {"nothing": "an evaluator that does nothing", "asking": "an evaluator that only asks", "rubrics": "a rubric"}
MOST_RATIO = 3.0
RUBRICS = 5


def sessions(count: int) -> list[dict[str, Any]]:
    """Sessions of eight turns with two tool calls, about 2,000 characters each."""
    return [session(number) for number in range(count)]


def session(number: int) -> dict[str, Any]:
    """One recorded session, as a sample without a target holds it."""
    said = "The invoice lists three positions, of which the second was delivered twice. " * 3
    events = [
        {"type": "message", "role": "system", "content": "You are a careful assistant."},
        {"type": "message", "role": "user", "content": f"Please check invoice {number}."},
        {"type": "message", "role": "assistant", "content": "I look it up."},
        tool("find_invoice", {"number": number}, said, "1"),
        {"type": "message", "role": "assistant", "content": said},
        {"type": "message", "role": "user", "content": "Is the sum right?"},
        tool("add_up", {"positions": [10, 20, 20]}, "50", "2"),
        {"type": "message", "role": "assistant", "content": f"Yes: {said}"},
    ]
    return {
        "id": f"session-{number}",
        "input": f"Please check invoice {number}.",
        "metadata": {"output": said, "session": {"events": events}},
    }


def tool(name: str, arguments: dict[str, Any], result: str, call_id: str) -> dict[str, Any]:
    """A call with its result."""
    return {"type": "tool_call", "name": name, "arguments": arguments, "result": result, "call_id": call_id}


class Scripted:
    """A judge that answers at once, with the line that it is told to write."""

    model, supports_json_schema = "scripted:judge", False

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, request: Any, *, timeout: float | None = None) -> Any:
        """The last line of the question up to its choices, and a 4."""
        from proctor.records.model import ModelResponse
        from proctor.records.session import Usage

        del timeout
        self.calls += 1
        line = request.messages[-1].content.rpartition("\n")[2].partition("<")[0]
        return ModelResponse(f"Turn 7 shows it.\n{line}4", self.model, usage=Usage(900, 20))


def evaluation(side: str, judge: Scripted, count: int) -> Any:
    """What one side runs."""
    from proctor.evaluators.rubric_files import load_rubrics
    from proctor.targets.recorded import RecordedTarget
    from proctor.wiring.prepare import Evaluation
    from proctor.wiring.scoring.manifest import Scoring, build_scoring

    if side == "rubrics":
        starter = load_rubrics("starter")
        five = load_rubrics(list(starter)[:RUBRICS])
        return build_scoring(sessions(count), five, judge, Scoring(concurrency=20, max_concurrent=100, cache=False))
    evaluators = {f"e{number}": plain(side, judge, number) for number in range(RUBRICS)}
    options = {"concurrency": 20, "evaluator_timeout": None}
    return Evaluation(RecordedTarget(), sessions(count), evaluators, name="plain", options=options)


def plain(side: str, judge: Scripted, number: int) -> Callable[..., Any]:
    """An evaluator that looks at nothing."""
    from proctor.models.model_calls import aask
    from proctor.records.score import Score
    from proctor.records.session import Message

    async def nothing(output: Any) -> Score:
        del output
        return Score(0.75, True)

    question = [
        Message("system", "You are a judge. " * 32),
        Message("user", f"Question {number}: " + "How good is it, and what speaks for it? " * 85),
    ]

    async def asking(output: Any) -> Score:
        del output
        answer = await aask(judge, question)
        return Score(0.75, bool(answer.text))

    return nothing if side == "nothing" else asking


def measured(side: str, count: int) -> dict[str, float]:
    """One side, in this process: CPU seconds and calls."""
    from proctor.core import bridge
    from proctor.engine.start import RunControls
    from proctor.wiring.evaluate import execute
    from proctor.wiring.open_history import open_history

    def run(samples: int, folder: str) -> float:
        judge = Scripted()
        told = evaluation(side, judge, samples)
        history = open_history(Path(folder) / f"{samples}.db")
        cpu = time.process_time()
        report = bridge.run(execute(told, history, RunControls()))
        spent = time.process_time() - cpu
        assert (report.total, report.errors) == (samples, 0), report.counts
        assert judge.calls == (0 if side == "nothing" else samples * RUBRICS)
        return spent

    with tempfile.TemporaryDirectory() as folder:
        run(20, folder)
        return {"cpu": run(count, folder)}


def main() -> None:
    """Measure all sides in turn, or one for the parent process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(measured(given.side, given.sessions)))
        return
    best = dict.fromkeys(SIDES, float("inf"))
    for _ in range(given.rounds):
        for side in SIDES:
            command = [sys.executable, __file__, "--side", side, "--sessions", str(given.sessions)]
            told = subprocess.run(command, capture_output=True, check=True, timeout=600)
            best[side] = min(best[side], json.loads(told.stdout)["cpu"])
    judgements = given.sessions * RUBRICS
    print(f"{given.sessions:,} sessions × {RUBRICS} rubrics, best of {given.rounds}")
    for side, name in SIDES.items():
        print(f"{name:<32}{best[side] / judgements * 1e6:>8.0f} µs CPU a judgement")
    ratios = {side: best["rubrics"] / best[side] for side in ("asking", "nothing")}
    for side, ratio in ratios.items():
        verdict = "met" if ratio <= MOST_RATIO else "missed"
        print(f"a rubric is {ratio:.2f}x {SIDES[side]} ({MOST_RATIO:g}x: {verdict})")
    if ratios["asking"] > MOST_RATIO:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
