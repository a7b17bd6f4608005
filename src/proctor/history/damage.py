"""Check stored data before it is used, and explain damage."""

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

# The errors that decoding damaged bytes raises.
DECODE_ERRORS = (
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
MAX_POSITIONS = 20_000_000


def damage_error(run_id: str, reason: str) -> HistoryError:
    """Return the error for stored results that are damaged."""
    return HistoryError(
        f"the history is damaged: the results of run {run_id} cannot be read ({reason})",
        fix=f"restore the history from a backup, or delete the run: proctor delete {run_id}",
    )


def decode_stored(run_id: str, what: str, decode: Callable[[], T]) -> T:
    """Call `decode`; an error becomes a `HistoryError` that names the damaged part (`what`)."""
    try:
        return decode()
    except DECODE_ERRORS as error:
        raise damage_error(run_id, f"{what}: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]


class BlockChecker:
    """Checks the columns of a run's blocks as they are read."""

    def __init__(self, run: RunMetadata) -> None:
        self._run_id = run.run_id
        self._configurations = len(run.configurations)
        size = block.make_record_layout(len(run.evaluators)).size
        self._size = size
        self._position_record = struct.Struct(f"<IH{size - 6}x")

    def check_row(self, columns: Sequence[str], row: Sequence[Any], checksums: Any) -> None:
        """Raise `HistoryError` unless the columns of a block are intact and consistent."""
        if checksums is not None:
            for name, value in zip(columns, row, strict=True):
                if name != "id":
                    self.check_checksum(checksums, name, value)
            return
        # Older blocks have no checksums, so their content is checked.
        count: int | None = None
        for name, value in zip(columns, row, strict=True):
            if value is None and name in ("clusters", "error_kinds", "spent"):
                continue
            entries = self._count_entries(name, value)
            if entries is not None and count is not None and entries != count:
                raise damage_error(self._run_id, f"{name} has {entries} entries instead of {count}")
            count = count if entries is None else entries

    def check_checksum(self, checksums: Any, name: str, value: Any) -> None:
        """Raise `HistoryError` unless a column has the checksum that was stored with it."""
        if not decode_stored(self._run_id, name, partial(block.is_intact, checksums, name, value)):
            raise damage_error(self._run_id, f"the checksum of its {name.replace('_', ' ')} is wrong")

    def sum_counts(self, rows: Sequence[Sequence[Any]]) -> tuple[int, ...]:
        """Add up the outcomes of all blocks, after checking their checksums."""
        totals = [0] * len(OUTCOMES)
        for *counts, checksums in rows:
            stored = decode_stored(self._run_id, "counts", partial(block.pack_counts, counts))
            self.check_checksum(checksums, "counts", stored)
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
        if sum(totals) >= MAX_POSITIONS:
            raise damage_error(self._run_id, "the number of results is too large")
        return tuple(totals)

    def read_lines(self, stored: bytes, size_of_figures: int) -> list[bytes]:
        """Return the results of a block as lines of JSON, one per record of figures."""
        lines = decode_stored(self._run_id, "the results", lambda: block.split_lines(stored))
        count = size_of_figures // self._size
        if len(lines) != count:
            raise damage_error(self._run_id, f"a block has {len(lines)} results instead of {count}")
        return lines

    def _count_entries(self, name: str, value: Any) -> int | None:
        """Return the number of results in a column; None if it cannot be determined from the column alone."""
        if name == "id":
            return None
        if not isinstance(value, bytes):
            raise damage_error(self._run_id, f"{name} is not a block of bytes")
        if name == "figures":
            return self._count_figures(value)
        if name == "results":
            return None
        entries = decode_stored(self._run_id, name, lambda: block.decode_list(value, 0))
        if not all(_has_valid_type(name, entry) for entry in entries):
            raise damage_error(self._run_id, f"{name} has an entry of the wrong type")
        return len(entries)

    def _count_figures(self, figures: bytes) -> int:
        count, rest = divmod(len(figures), self._size)
        if rest:
            raise damage_error(self._run_id, "the figures are truncated")
        if max(figures[block.OUTCOME_BYTE :: self._size], default=0) >= len(OUTCOMES):
            raise damage_error(self._run_id, "an outcome is unknown")
        for position, configuration in self._position_record.iter_unpack(figures):
            if configuration >= self._configurations or position >= MAX_POSITIONS:
                raise damage_error(self._run_id, "a result is not part of the plan")
        return count


def _has_valid_type(name: str, entry: Any) -> bool:
    if name == "sample_ids":
        return isinstance(entry, str)
    if entry is None:
        return True
    if name == "spent":
        numbers = isinstance(entry, list) and len(entry) == 3
        return numbers and all(number is None or _is_number(number) for number in entry)
    return isinstance(entry, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
