"""A small project on disk, and the command line run inside this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.cli.main import run_cli

TARGET = '''
def shout(text, *, suffix=""):
    if text == "word 3":
        raise ValueError("no threes")
    return text.upper() + suffix

def long_enough(output, *, least=5):
    """Passes if the output has at least so many characters."""
    return len(output) >= least

class Words:
    name = "words"
    def compute(self, results):
        return {"mean": sum(len(str(r.output).split()) for r in results) / len(results)}
'''
EVAL = """
name: exam
dataset: data.jsonl
target: app.py:shout
evaluators:
  - exact_match
  - contains: {case_sensitive: false}
"""


# The files of histories, by the commands that wrote them and the files of their project.
_HISTORIES: dict[tuple[tuple[tuple[str, ...], ...], frozenset[tuple[str, bytes]]], dict[str, bytes]] = {}


class CommandResult(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Project:
    """A folder with a target, a dataset of five samples (one fails) and an eval file."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture
        self.write("app.py", TARGET)
        self.write("eval.yaml", EVAL)
        rows = [{"id": f"s{i}", "input": f"word {i}", "expected": f"WORD {i}"} for i in range(5)]
        self.write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def proctor(self, *args: str) -> CommandResult:
        self._capture.readouterr()
        code = run_cli(list(args))
        captured = self._capture.readouterr()
        return CommandResult(code, captured.out, captured.err)

    def make_baseline(self) -> None:
        """Run eval.yaml and make the run the baseline `main`."""
        self.prepare_history(("run", "eval.yaml", "-q"), ("baseline", "set", "main", "latest"))

    def prepare_history(self, *commands: tuple[str, ...]) -> None:
        """Run commands that only write the history; equal projects share what they stored."""
        files = frozenset((name, (self.folder / name).read_bytes()) for name in self.files() if "." in name)
        key = (commands, files)
        if key not in _HISTORIES:
            for command in commands:
                assert self.proctor(*command).code == 0
            history = self.folder / ".proctor"
            _HISTORIES[key] = {path.name: path.read_bytes() for path in history.iterdir() if path.is_file()}
            return
        (self.folder / ".proctor").mkdir()
        for name, content in _HISTORIES[key].items():
            (self.folder / ".proctor" / name).write_bytes(content)

    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if "__pycache__" not in path.parts
        }
