"""What could not be read, counted by file: a damaged file is one thing to tell, however long."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from proctor.errors import Problem

PROBLEMS_KEPT = 1000


class _OfFile(NamedTuple):
    """How many parts of a file could not be read, of what kind they are, and the first of them."""

    number: int
    kind: str
    first: Problem
    such_as: str


class Damage:
    """What could not be read of files, in the order in which they were read.

    >>> damage = Damage()
    >>> for line in (3, 4):
    ...     damage.note(Path("notes.json"), "it is not JSON", line)
    >>> [str(problem) for problem in damage.by_file]
    ['notes.json: 2 lines that cannot be read as they are, such as line 3: it is not JSON']
    """

    def __init__(self) -> None:
        self.count = 0
        self.files = 0
        self.problems: list[Problem] = []
        self._last: Path | None = None
        self._of_files: dict[Path, _OfFile] = {}

    def note(self, file: Path, what: str, place: int | None = None, kind: str = "line") -> None:
        """Something could not be read: the whole file, or a line or session of it."""
        self.count += 1
        problem = Problem(str(file) if place is None else f"{file}:{place}", what)
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)
        if file != self._last:
            self._last = file
            self.files += 1
        if file in self._of_files:
            before = self._of_files[file]
            same = kind if kind == before.kind and place is not None else "part"
            self._of_files[file] = before._replace(number=before.number + 1, kind=same)
        elif self.files <= PROBLEMS_KEPT:
            such_as = what if place is None else f"{kind} {place}: {what}"
            kind = "part" if place is None else kind
            self._of_files[file] = _OfFile(1, kind, problem, such_as)

    @property
    def by_file(self) -> list[Problem]:
        """One problem for each file; of several the first stands for all."""
        return [_summed_up(file, found) for file, found in self._of_files.items()]

    @property
    def alike(self) -> list[Problem]:
        """One problem for all files of which the same is to be told, by the name of the first."""
        whats: dict[str, list[Problem]] = {}
        for problem in self.by_file:
            whats.setdefault(problem.what, []).append(problem)
        return [_of_all(files) for files in whats.values()]

    def names(self, under: Path) -> list[str]:
        """Which files these are, as they are called in their folder."""
        return [
            file.relative_to(under).as_posix() if file != under else file.name
            for file in self._of_files
        ]


def _summed_up(file: Path, found: _OfFile) -> Problem:
    if found.number == 1:
        return found.first
    what = f"{found.number:,} {found.kind}s that cannot be read as they are"
    return Problem(str(file), f"{what}, such as {found.such_as}")


def _of_all(files: list[Problem]) -> Problem:
    first, others = files[0], len(files) - 1
    if not others:
        return first
    more = f"{others:,} other file{'s' if others > 1 else ''}"
    return Problem(first.where, f"{first.what}; the same of {more}")
