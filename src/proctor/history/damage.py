"""What is read from a history is looked at before it is used: a damaged file is told in words."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from proctor.errors import HistoryError
from proctor.history import block
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES

T = TypeVar("T")

# What decoding damaged bytes raises.
BROKEN = (
    ArithmeticError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
    struct.error,
    zlib.error,
)
# A plan with more trials than this is none: a damaged position must not ask for so much memory.
MOST_POSITIONS = 20_000_000


def damaged(run_id: str, what: str) -> HistoryError:
    """The error for results that cannot be what was written."""
    return HistoryError(
        f"the history is damaged: the results of run {run_id} cannot be read ({what})",
        fix=f"restore the history from a backup, or delete the run: proctor delete {run_id}",
    )


def sound(run_id: str, what: str, read: Callable[[], T]) -> T:
    """What `read` gives; if it fails, the error that says what is damaged."""
    try:
        return read()
    except BROKEN as error:
        raise damaged(run_id, f"{what}: {_said(error)}") from None


def _said(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


class BlockCheck:
    """Checks the columns of a run's blocks as they are read, each by its name."""

    def __init__(self, run: RunMetadata) -> None:
        self._run_id = run.run_id
        self._configurations = len(run.configurations)
        size = block.record_of(len(run.evaluators)).size
        self._size = size
        self._places = struct.Struct(f"<IH{size - 6}x")

    def row(self, columns: Sequence[str], row: Sequence[Any], checksums: Any) -> None:
        """Raise unless the columns of a block are as they were written, and agree."""
        if checksums is not None:
            for name, value in zip(columns, row, strict=True):
                if name != "id":
                    self.intact(checksums, name, value)
            return
        # Older blocks have no checksums: what they hold is looked at instead.
        count: int | None = None
        for name, value in zip(columns, row, strict=True):
            if value is None and name in ("clusters", "error_kinds", "spent"):
                continue
            found = self._count(name, value)
            if found is not None and count is not None and found != count:
                raise damaged(self._run_id, f"{name} has {found} entries, expected {count}")
            count = count if found is None else found

    def intact(self, checksums: Any, name: str, value: Any) -> None:
        """Raise unless a column has the checksum that it was written with."""
        if not sound(self._run_id, name, partial(block.is_intact, checksums, name, value)):
            raise damaged(self._run_id, f"the checksum of its {name.replace('_', ' ')} is wrong")

    def counts(self, rows: Sequence[Sequence[Any]]) -> tuple[int, ...]:
        """The outcomes of all blocks together, from their counts and checksums."""
        totals = [0] * len(OUTCOMES)
        for *counts, checksums in rows:
            stored = sound(self._run_id, "counts", partial(block.counts_as_stored, counts))
            self.intact(checksums, "counts", stored)
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
        if sum(totals) >= MOST_POSITIONS:
            raise damaged(self._run_id, "it counts more results than there can be")
        return tuple(totals)

    def lines(self, stored: bytes, size_of_figures: int) -> list[bytes]:
        """The results of a block as lines of JSON, one for each of its figures."""
        lines = sound(self._run_id, "the results", lambda: block.lines_of(stored))
        count = size_of_figures // self._size
        if len(lines) != count:
            raise damaged(self._run_id, f"a block has {len(lines)} results, not {count}")
        return lines

    def _count(self, name: str, value: Any) -> int | None:
        """How many results a column is about, if it says."""
        if name == "id":
            return None
        if not isinstance(value, bytes):
            raise damaged(self._run_id, f"{name} is no block of bytes")
        if name == "figures":
            return self._figures(value)
        if name == "results":
            return None
        entries = sound(self._run_id, name, lambda: block.listed(value, 0))
        wrong = [entry for entry in entries if not _fits(name, entry)]
        if wrong:
            raise damaged(self._run_id, f"{name} has an entry of another kind")
        return len(entries)

    def _figures(self, figures: bytes) -> int:
        count, rest = divmod(len(figures), self._size)
        if rest:
            raise damaged(self._run_id, "the figures are cut off")
        if max(figures[block.OUTCOME_BYTE :: self._size], default=0) >= len(OUTCOMES):
            raise damaged(self._run_id, "an outcome is none of those there are")
        for position, configuration in self._places.iter_unpack(figures):
            if configuration >= self._configurations or position >= MOST_POSITIONS:
                raise damaged(self._run_id, "a result belongs to no trial of the plan")
        return count


def _fits(name: str, entry: Any) -> bool:
    if name == "sample_ids":
        return isinstance(entry, str)
    if entry is None:
        return True
    if name == "spent":
        numbers = isinstance(entry, list) and len(entry) == 3
        return numbers and all(each is None or _is_number(each) for each in entry)
    return isinstance(entry, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
