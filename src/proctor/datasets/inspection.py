"""Inspect a dataset in one pass: count and fingerprint its samples and collect all problems."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from proctor.datasets.problems import InvalidRecord, Locate, Rows, dataset_error
from proctor.datasets.record import Fingerprint, RecordReader
from proctor.errors import Problem
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

# Segments grow one at a time, so that growing never doubles the memory of the table.
SEGMENTS = 64
SEGMENT_BITS = 6
MIN_SEGMENT_SIZE = 16
MASK_64 = (1 << 64) - 1
MAX_PROBLEMS = 1000


class IdTable:
    """A set of id hashes: a million take about 17 MB, while a set of strings takes 100 MB."""

    def __init__(self) -> None:
        self._segments = [array("Q", bytes(8 * MIN_SEGMENT_SIZE)) for _ in range(SEGMENTS)]
        self._free = [_capacity(MIN_SEGMENT_SIZE)] * SEGMENTS
        # An empty slot holds 0, so this flag stores the number 0.
        self._has_zero = False

    def add(self, number: int) -> bool:
        """Add a number; return False if the table has it already."""
        number &= MASK_64
        if not number:
            is_new, self._has_zero = not self._has_zero, True
            return is_new
        index = number & (SEGMENTS - 1)
        segment = self._segments[index]
        slot = _find_slot(segment, number)
        if segment[slot]:
            return False
        segment[slot] = number
        self._free[index] -= 1
        if not self._free[index]:
            self._grow(index)
        return True

    @property
    def nbytes(self) -> int:
        """The memory of the table in bytes."""
        return sum(segment.itemsize * len(segment) for segment in self._segments)

    def _grow(self, index: int) -> None:
        old = self._segments[index]
        new = array("Q", bytes(2 * len(old) * old.itemsize))
        for number in old:
            if number:
                new[_find_slot(new, number)] = number
        self._segments[index] = new
        self._free[index] = _capacity(len(new)) - _capacity(len(old))


def _capacity(size: int) -> int:
    return size * 3 // 4


def _find_slot(segment: array[int], number: int) -> int:
    """Return the slot that has the number, or the empty slot where it belongs."""
    mask = len(segment) - 1
    slot = (number >> SEGMENT_BITS) & mask
    while segment[slot] not in (0, number):
        slot = (slot + 1) & mask
    return slot


class DatasetInspection:
    """Reads all samples once, checks them, and counts them.

    Only hashes of ids are stored. If a hash occurs twice, a second pass compares the ids and reports both positions.
    """

    def __init__(self, rows: Rows, reader: RecordReader, hash_id: Callable[[str], int] = hash) -> None:
        self._rows = rows
        self._reader = reader
        self._hash_id = hash_id
        self._problems: list[tuple[int, Problem]] = []
        self._checked_samples = 0
        self._repeated_hashes: set[int] = set()

    def run(self, info: DatasetInfo, locate: Locate, samples: list[Sample[Any, Any]] | None = None) -> DatasetInfo:
        """Return `info` with length and fingerprint, or raise one error with all problems.

        Every sample is appended to `samples`, if there is one.
        """
        fingerprint = Fingerprint()
        length, stopped = 0, False
        try:
            length = self._read(fingerprint, samples)
            if self._repeated_hashes:
                self._find_duplicates(locate)
        except _TooManyProblems:
            stopped = True
        if self._problems:
            problems = [(locate(n), problem) for n, problem in sorted(self._problems, key=lambda f: f[0])]
            raise dataset_error(info.name, problems, stopped=stopped)
        digest = fingerprint.hexdigest()
        return DatasetInfo(info.name, info.source, length, digest, info.details, self._checked_samples)

    def _read(self, fingerprint: Fingerprint, samples: list[Sample[Any, Any]] | None) -> int:
        length = 0
        ids = IdTable()
        has_types = self._reader.has_types
        for position, sample in self._rows(self._add_problems):
            length += 1
            id_hash = self._hash_id(sample.id)
            if not ids.add(id_hash):
                self._repeated_hashes.add(id_hash)
                if len(self._repeated_hashes) == MAX_PROBLEMS:
                    break
            try:
                fingerprint.add(sample)
                converted = self._reader.convert_types(sample) if has_types else sample
            except InvalidRecord as invalid:
                self._add_problems(position, invalid.problems)
                continue
            if sample.evaluators:
                self._checked_samples += 1
            if samples is not None:
                samples.append(converted)
        return length

    def _add_problems(self, position: int, problems: Sequence[Problem]) -> None:
        self._problems += [(position, problem) for problem in problems]
        if len(self._problems) >= MAX_PROBLEMS:
            raise _TooManyProblems

    def _find_duplicates(self, locate: Locate) -> None:
        first_positions: dict[str, int] = {}
        # The first pass has reported all other problems.
        for position, sample in self._rows(lambda _position, _problems: None):
            if self._hash_id(sample.id) not in self._repeated_hashes:
                continue
            # Positions on a shared line are equal, so the id decides.
            if sample.id in first_positions:
                earlier_location = locate(first_positions[sample.id])
                self._add_problems(position, [duplicate_id_problem(sample.id, earlier_location)])
            else:
                first_positions[sample.id] = position


def duplicate_id_problem(sample_id: str, earlier_location: str) -> Problem:
    """Return the problem for an id that an earlier sample has."""
    fix = "give every sample a unique id"
    if sample_id.startswith("auto-"):
        fix = "give samples with equal inputs different ids, or remove the repetition"
    return Problem("id", f"{sample_id!r} is already used at {earlier_location}", fix)


class _TooManyProblems(Exception):
    """Raised to stop reading after many problems."""
