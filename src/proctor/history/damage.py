"""Check what is read from a history before it is used, and explain what is damaged."""

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
# No plan has more trials than this: a damaged position must not allocate a lot of memory.
MOST_POSITIONS = 20_000_000


def damaged(run_id: str, what: str) -> HistoryError:
    """Make the error for stored results that differ from what was written."""
    return HistoryError(
        f"the history is damaged: the results of run {run_id} cannot be read ({what})",
        fix=f"restore the history from a backup, or delete the run: proctor delete {run_id}",
    )


def sound(run_id: str, what: str, read: Callable[[], T]) -> T:
    """Return what `read` returns; raise `HistoryError` with what is damaged if it fails."""
    try:
        return read()
    except BROKEN as error:
        raise damaged(run_id, f"{what}: {_said(error)}") from None


def _said(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


class BlockCheck:
    """Check the columns of a run's blocks as they are read."""

    def __init__(self, run: RunMetadata) -> None:
        self._run_id = run.run_id
        self._configurations = len(run.configurations)
        size = block.record_of(len(run.evaluators)).size
        self._size = size
        self._places = struct.Struct(f"<IH{size - 6}x")

    def row(self, columns: Sequence[str], row: Sequence[Any], checksums: Any) -> None:
        """Raise `HistoryError` unless the columns of a block are intact and consistent."""
        if checksums is not None:
            for name, value in zip(columns, row, strict=True):
                if name != "id":
                    self.intact(checksums, name, value)
            return
        # Older blocks have no checksums, so their content is checked.
        count: int | None = None
        for name, value in zip(columns, row, strict=True):
            if value is None and name in ("clusters", "error_kinds", "spent"):
                continue
            found = self._count(name, value)
            if found is not None and count is not None and found != count:
                raise damaged(self._run_id, f"{name} has {found} entries instead of {count}")
            count = count if found is None else found

    def intact(self, checksums: Any, name: str, value: Any) -> None:
        """Raise `HistoryError` unless a column has the checksum that was stored with it."""
        if not sound(self._run_id, name, partial(block.is_intact, checksums, name, value)):
            raise damaged(self._run_id, f"the checksum of its {name.replace('_', ' ')} is wrong")

    def counts(self, rows: Sequence[Sequence[Any]]) -> tuple[int, ...]:
        """Add up the outcomes of all blocks, after checking their checksums."""
        totals = [0] * len(OUTCOMES)
        for *counts, checksums in rows:
            stored = sound(self._run_id, "counts", partial(block.counts_as_stored, counts))
            self.intact(checksums, "counts", stored)
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
        if sum(totals) >= MOST_POSITIONS:
            raise damaged(self._run_id, "the number of results is too large")
        return tuple(totals)

    def lines(self, stored: bytes, size_of_figures: int) -> list[bytes]:
        """Return the results of a block as lines of JSON, one per record of figures."""
        lines = sound(self._run_id, "the results", lambda: block.lines_of(stored))
        count = size_of_figures // self._size
        if len(lines) != count:
            raise damaged(self._run_id, f"a block has {len(lines)} results instead of {count}")
        return lines

    def _count(self, name: str, value: Any) -> int | None:
        """Count the results that a column describes; None if it does not tell."""
        if name == "id":
            return None
        if not isinstance(value, bytes):
            raise damaged(self._run_id, f"{name} is not a block of bytes")
        if name == "figures":
            return self._figures(value)
        if name == "results":
            return None
        entries = sound(self._run_id, name, lambda: block.listed(value, 0))
        wrong = [entry for entry in entries if not _fits(name, entry)]
        if wrong:
            raise damaged(self._run_id, f"{name} has an entry of the wrong type")
        return len(entries)

    def _figures(self, figures: bytes) -> int:
        count, rest = divmod(len(figures), self._size)
        if rest:
            raise damaged(self._run_id, "the figures are truncated")
        if max(figures[block.OUTCOME_BYTE :: self._size], default=0) >= len(OUTCOMES):
            raise damaged(self._run_id, "an outcome is unknown")
        for position, configuration in self._places.iter_unpack(figures):
            if configuration >= self._configurations or position >= MOST_POSITIONS:
                raise damaged(self._run_id, "a result is not part of the plan")
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
