"""Whole results out of their blocks, in any order, with as few blocks unpacked as memory allows."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial

from proctor.errors import HistoryError
from proctor.history import block
from proctor.history.damage import damaged, sound
from proctor.history.database import Ask
from proctor.history.payload import read
from proctor.records.trial import EvalResult

# A place on disk is a block's id and, in its last bits, which of the block's results.
OFFSET_BITS = 16
OFFSET = (1 << OFFSET_BITS) - 1
BLOCKS_AT_HAND = 16
# So many results in a row are looked at to see whether they lie together.
NEAR = BLOCKS_AT_HAND * block.RESULTS_A_BLOCK
# Of results that lie scattered, as in a shuffled run, so many are gathered at a time, and at most
# so many bytes of them.
GATHERED, GATHERED_BYTES = 65_536, 64_000_000


class ResultReader:
    """Reads the results of one run by their places on disk; the last few blocks are at hand."""

    def __init__(self, ask: Ask, run_id: str) -> None:
        self._ask = ask
        self._run_id = run_id
        self._at_hand: OrderedDict[int, list[bytes]] = OrderedDict()

    def read(self, place: int) -> EvalResult:
        """The result at a place."""
        key = place >> OFFSET_BITS
        lines = self._at_hand.get(key)
        if lines is None:
            ((_, lines),) = self._lines([key])
            self._at_hand[key] = lines
            if len(self._at_hand) > BLOCKS_AT_HAND:
                self._at_hand.popitem(last=False)
        return self._result(lines, place)

    def all(self, places: array[int]) -> Iterator[EvalResult]:
        """The results at some places, in that order."""
        start = 0
        while start < len(places):
            part: Sequence[int] = places[start : start + NEAR]
            if not _scattered(part):
                yield from map(self.read, part)
            else:
                found = self._gathered(places[start : start + GATHERED])
                part = list(found)
                for place in part:
                    line = found.pop(place)
                    yield sound(self._run_id, "a result", partial(read, line))
            start += len(part)

    def _gathered(self, places: Sequence[int]) -> dict[int, bytes]:
        """The lines of the first of some places: of as many as there is room for, at least one."""
        wanted: dict[int, list[int]] = {}
        for place in places:
            wanted.setdefault(place >> OFFSET_BITS, []).append(place)
        found: dict[int, bytes] = {}
        size, ranks = 0, {place: rank for rank, place in enumerate(places)}
        end = len(places)
        for key, lines in self._lines(sorted(wanted)):
            for place in wanted[key]:
                if ranks[place] < end:
                    found[place] = self._line(lines, place)
                    size += len(found[place])
            while size > GATHERED_BYTES and end > 1:
                end //= 2
                found = {place: line for place, line in found.items() if ranks[place] < end}
                size = sum(map(len, found.values()))
        return {place: found[place] for place in places[:end]}

    def _lines(self, keys: Sequence[int]) -> Iterator[tuple[int, list[bytes]]]:
        """The blocks of these ids, some at a time, as lines."""
        for start in range(0, len(keys), BLOCKS_AT_HAND):
            part = keys[start : start + BLOCKS_AT_HAND]
            marks = ", ".join("?" * len(part))
            asked = f"SELECT id, results, checksums FROM blocks WHERE id IN ({marks})"
            rows = self._ask(asked, part)
            if len(rows) < len(part):
                raise HistoryError(
                    f"the results of run {self._run_id} have changed while they were read",
                    fix="read them again, if the run has not been deleted",
                )
            for key, stored, checksums in rows:
                if not block.is_intact(checksums, "results", stored):
                    raise damaged(self._run_id, "the checksum of its results is wrong")
                yield key, sound(self._run_id, "the results", partial(block.lines_of, stored))

    def _line(self, lines: list[bytes], place: int) -> bytes:
        offset = place & OFFSET
        if offset >= len(lines):
            raise damaged(self._run_id, f"a block has {len(lines)} results, and needs {offset + 1}")
        return lines[offset]

    def _result(self, lines: list[bytes], place: int) -> EvalResult:
        line = self._line(lines, place)
        return sound(self._run_id, "a result", partial(read, line))


def _scattered(places: Sequence[int]) -> bool:
    """True if read one by one they would have blocks unpacked again and again."""
    at_hand: dict[int, None] = {}
    unpacked, blocks = 0, set()
    for place in places:
        key = place >> OFFSET_BITS
        if key not in at_hand:
            unpacked += 1
            blocks.add(key)
            at_hand[key] = None
            if len(at_hand) > BLOCKS_AT_HAND:
                del at_hand[next(iter(at_hand))]
    return unpacked > 2 * len(blocks)
