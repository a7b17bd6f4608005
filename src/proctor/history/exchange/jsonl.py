"""Runs as JSON lines: one for the run, one for each result, one for the metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from proctor.history.exchange.parts import LocatedPart, Part, WholeRun, read_part
from proctor.records import codec

LINES_PER_CHUNK = 100


def encode_runs(runs: Iterable[WholeRun]) -> Iterator[bytes]:
    """Yield the content of the file in chunks."""
    for frame, results in runs:
        pending = [_line(frame.run)]
        for part in results:
            pending.append(_line(part))
            if len(pending) >= LINES_PER_CHUNK:
                yield b"".join(pending)
                pending = []
        yield b"".join([*pending, _line(frame.end)])


def read_parts(path: Path) -> Iterator[LocatedPart]:
    """Yield the parts of every run in a file, in order; blank lines are ignored."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                where = f"{path}:{number}"
                yield LocatedPart(where, read_part(text, Part, where))


def _line(part: Part) -> bytes:
    return codec.encode(part) + b"\n"
