"""Runs as lines of JSON: one for the run, one for each result, one for what they amount to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from proctor.history.exchange.parts import Part, Placed, WholeRun, read_part
from proctor.records import codec

LINES_AT_ONCE = 100


def written(runs: Iterable[WholeRun]) -> Iterator[bytes]:
    """The file, in pieces."""
    for frame, results in runs:
        pending = [_line(frame.run)]
        for part in results:
            pending.append(_line(part))
            if len(pending) >= LINES_AT_ONCE:
                yield b"".join(pending)
                pending = []
        yield b"".join([*pending, _line(frame.end)])


def read(path: Path) -> Iterator[Placed]:
    """The parts of every run in a file, in order; lines without anything are passed over."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                where = f"{path}:{number}"
                yield Placed(where, read_part(text, Part, where))


def _line(part: Part) -> bytes:
    return codec.encode(part) + b"\n"
