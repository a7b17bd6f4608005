"""The follow-up generator of the runner spec: samples, targets and one report."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from proctor import EvalReport, Sample, evaluate, exact_match
from tests.support import run_command

FRANCE: Sample[Any, Any] = Sample(
    "ex-1",
    {"query": "What is the capital of France?", "response": "Paris."},
    ["Interested in learning about Paris landmarks?"],
)
LIGHT: Sample[Any, Any] = Sample(
    "ex-2", {"query": "What is light?", "response": "A wave."}, ["Interested in its speed?"]
)


class FollowUps:
    """A target with `invoke`: one follow-up question for each query."""

    def __init__(self, questions: dict[str, str]) -> None:
        self.questions = questions

    def invoke(self, turn: dict[str, str]) -> list[str]:
        """The questions for one turn; an unknown query is an error."""
        return [self.questions[turn["query"]]]


GOOD = FollowUps(
    {
        "What is the capital of France?": "Interested in learning about Paris landmarks?",
        "What is light?": "Interested in its speed?",
    }
)


def double(text: str) -> str:
    """A target that repeats its input, fails on "bad", and takes too long on "slow"."""
    if text == "bad":
        raise ValueError("no such word")
    return text * 2


def report_of(rows: list[tuple[str, str, Any]], evaluators: Any = exact_match) -> EvalReport:
    """A report of `double` over rows of id, input and expected value."""
    data = [{"id": name, "input": text, "expected": wanted} for name, text, wanted in rows]
    return evaluate(double, data, evaluators, history=False)


class Project:
    """A folder with a target and a dataset, and commands that run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write(
            "app.py",
            "import time\n\n\ndef answer(text, *, suffix=''):\n"
            "    if text == 'bad':\n        raise ValueError('no such word')\n"
            "    if text == 'slow':\n        time.sleep(30)\n"
            "    return text.upper() + suffix\n",
        )
        self.write(
            "data.jsonl", '{"id": "1", "input": "a", "expected": "A"}\n{"id": "2", "input": "b", "expected": "x"}\n'
        )

    def write(self, name: str, text: str) -> None:
        """Write a file into the folder."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def proctor(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command in the folder."""
        return run_command(*arguments, cwd=self.folder)
