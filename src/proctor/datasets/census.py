"""One reading of a dataset from end to end: how many, which content, and all that is wrong."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from proctor.datasets.faults import Fault, Place, Rows, Unfit, many_bad
from proctor.datasets.record import Fingerprint, RecordReader
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

# Segments grow one at a time, so that growing never holds the whole table twice.
SEGMENTS = 64
SEGMENT_BITS = 6
SMALLEST = 16
MASK_64 = (1 << 64) - 1


class IdTable:
    """Remembers hashes of ids: a million cost about 17 MB, where a set of strings costs 100.

    >>> table = IdTable()
    >>> table.add(hash("a")), table.add(hash("b")), table.add(hash("a"))
    (True, True, False)
    """

    def __init__(self) -> None:
        self._segments = [array("Q", bytes(8 * SMALLEST)) for _ in range(SEGMENTS)]
        self._free = [_room(SMALLEST)] * SEGMENTS
        # A slot that holds 0 is free, so the number 0 is remembered here.
        self._has_zero = False

    def add(self, number: int) -> bool:
        """Remember a number; False if it was there already."""
        number &= MASK_64
        if not number:
            new, self._has_zero = not self._has_zero, True
            return new
        which = number & (SEGMENTS - 1)
        segment = self._segments[which]
        slot = _slot(segment, number)
        if segment[slot]:
            return False
        segment[slot] = number
        self._free[which] -= 1
        if not self._free[which]:
            self._grow(which)
        return True

    @property
    def nbytes(self) -> int:
        """How much memory the table takes."""
        return sum(segment.itemsize * len(segment) for segment in self._segments)

    def _grow(self, which: int) -> None:
        old = self._segments[which]
        new = array("Q", bytes(2 * len(old) * old.itemsize))
        for number in old:
            if number:
                new[_slot(new, number)] = number
        self._segments[which] = new
        self._free[which] = _room(len(new)) - _room(len(old))


def _room(size: int) -> int:
    """How many numbers a segment holds before it grows: three quarters of its slots."""
    return size * 3 // 4


def _slot(segment: array[int], number: int) -> int:
    """Where the number is, or the free slot where it belongs."""
    mask = len(segment) - 1
    slot = (number >> SEGMENT_BITS) & mask
    while segment[slot] not in (0, number):
        slot = (slot + 1) & mask
    return slot


MOST_PROBLEMS = 1000


class Census:
    """Reads all samples once, checks them, and counts; `keep` also gathers them.

    Of ids only hashes are remembered. Where one comes twice a second reading tells for certain,
    and names both places.
    """

    def __init__(self, rows: Rows, reader: RecordReader, hash_of: Callable[[str], int] = hash) -> None:
        self._rows = rows
        self._reader = reader
        self._hash_of = hash_of
        self._faults: list[tuple[int, Fault]] = []
        self._stopped = False
        self._suspects: set[int] = set()

    def take(
        self, info: DatasetInfo, place: Place, keep: list[Sample[Any, Any]] | None = None
    ) -> DatasetInfo:
        """The description with length and fingerprint filled in, or one error with all faults."""
        fingerprint = Fingerprint()
        length = 0
        try:
            length = self._read(fingerprint, keep)
            if self._suspects:
                self._name_duplicates(place)
        except _EnoughSeen:
            self._stopped = True
        if self._faults:
            told = [(place(n), fault) for n, fault in sorted(self._faults, key=lambda f: f[0])]
            raise many_bad(info.name, told, stopped=self._stopped)
        return DatasetInfo(info.name, info.source, length, fingerprint.hexdigest(), details=info.details)

    def _read(self, fingerprint: Fingerprint, keep: list[Sample[Any, Any]] | None) -> int:
        length = 0
        ids = IdTable()
        types_declared = self._reader.types_declared
        for position, sample in self._rows(self._note):
            length += 1
            number = self._hash_of(sample.id)
            if not ids.add(number):
                self._suspects.add(number)
                if len(self._suspects) == MOST_PROBLEMS:
                    break
            try:
                fingerprint.add(sample)
                made = self._reader.typed(sample) if types_declared else sample
            except Unfit as unfit:
                self._note(position, unfit.faults)
                continue
            if keep is not None:
                keep.append(made)
        return length

    def _note(self, position: int, faults: Sequence[Fault]) -> None:
        self._faults += [(position, fault) for fault in faults]
        if len(self._faults) >= MOST_PROBLEMS:
            raise _EnoughSeen

    def _name_duplicates(self, place: Place) -> None:
        """Read again, and look closely at the ids whose hashes came twice."""
        first_at: dict[str, int] = {}
        for position, sample in self._rows(_overlook):
            if self._hash_of(sample.id) not in self._suspects:
                continue
            if sample.id in first_at:
                earlier = place(first_at[sample.id])
                self._note(position, [duplicate_id(sample.id, earlier)])
            else:
                first_at[sample.id] = position


def duplicate_id(name: str, earlier: str) -> Fault:
    """The fault of an id that was used before."""
    if name.startswith("auto-"):
        fix = "give samples with equal inputs ids of their own, or leave out the repetition"
    else:
        fix = "give every sample an id of its own"
    return Fault("id", f"{name!r} is used already at {earlier}", fix)


class _EnoughSeen(Exception):
    """Raised to stop reading when more problems would help nobody."""


def _overlook(position: int, faults: Sequence[Fault]) -> None:
    """On a second reading, what is wrong is known already."""
