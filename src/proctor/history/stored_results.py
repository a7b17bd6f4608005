"""Results that lie in a history file and are read as they are asked for."""

from __future__ import annotations

import sqlite3
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import compress
from typing import Any, TypeVar, overload

import msgspec

from proctor.errors import HistoryError
from proctor.history import block
from proctor.history.block import (
    CONFIGURATION,
    EPOCH,
    FIRST_NUMBER,
    LATENCY,
    MARKS,
    OUTCOME,
    POSITION,
    TOKENS,
    VALUE,
)
from proctor.history.payload import read
from proctor.records.results import Column, Counts, Spent, count_outcomes, shared_clusters
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

# Up to this many results, what was read once is kept for the next question.
KEPT_UP_TO = 100_000
BLOCKS_AT_HAND = 16
# What is kept of a run however large it is, for it is small in itself.
SMALL = ("small", "outcomes")
OFFSET_BITS = 16
NO_CONFIGURATION = -1

MARK_OF: dict[Outcome, int] = {
    "passed": ord(block.PASSED),
    "failed": ord(block.FAILED),
    "error": ord(block.NO_OUTPUT),
    "unscored": ord(block.ERROR),
    "skipped": ord(block.SKIPPED),
}
# What the marks of whole results are, by their place in OUTCOMES; and those of an evaluator that
# the run did not have.
WHOLE = bytes(MARK_OF[outcome] for outcome in OUTCOMES)
STRANGER = bytes(MARK_OF["error" if o == "error" else "skipped"] for o in OUTCOMES)
MISSING = bytes(MARK_OF[outcome] for outcome in ("error", "unscored", "skipped"))
PASSES = bytes.maketrans(bytes([MARK_OF["passed"], MARK_OF["failed"]]), bytes([1, 0]))

T = TypeVar("T")


class StoredResults:
    """A run's results on disk: a sequence in the order of the plan, and its columns as numbers.

    Columns are in the order in which the results were finished, the same for all of them.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        run_key: int,
        run: RunMetadata,
        configuration: int | None = None,
        keep_alive: object = None,
    ) -> None:
        self._connection = connection
        # A temporary history goes away with its last user, and that may be these results.
        self._keep_alive = keep_alive
        self._run_key = run_key
        self._run = run
        self._configuration = configuration
        self._record = block.record_of(len(run.evaluators))
        self._known: dict[Any, Any] = {}
        # All answers are of the moment these results were asked for, also while the run goes on.
        newest = "SELECT coalesce(max(id), 0) FROM blocks WHERE run = ?"
        self._last: int = connection.execute(newest, (run_key,)).fetchone()[0]
        self._at_hand: OrderedDict[int, list[bytes]] = OrderedDict()

    def __len__(self) -> int:
        return self.counts().total

    def __iter__(self) -> Iterator[EvalResult]:
        return map(self._read, self._places())

    @overload
    def __getitem__(self, index: int) -> EvalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EvalResult]: ...
    def __getitem__(self, index: int | slice) -> EvalResult | Sequence[EvalResult]:
        places = self._places()
        if isinstance(index, slice):
            return [self._read(place) for place in places[index]]
        try:
            return self._read(places[index])
        except IndexError:
            raise IndexError(f"result {index} of {len(places)}") from None

    def only(self, configuration: str) -> StoredResults:
        names = [c.name for c in self._run.configurations]
        which = names.index(configuration) if configuration in names else NO_CONFIGURATION
        return StoredResults(self._connection, self._run_key, self._run, which, self._keep_alive)

    def counts(self) -> Counts:
        if self._configuration is not None:
            return count_outcomes(self.outcomes())
        sums = ", ".join(f"coalesce(sum({outcome}), 0)" for outcome in OUTCOMES)
        return Counts(*next(iter(self._query(sums))))

    def outcomes(self) -> bytes:
        def read() -> bytes:
            return bytes(figure[OUTCOME] for figure in self._figures())

        return self._kept("outcomes", read, however_large=True)

    def clusters(self) -> list[str] | None:
        return self._kept("clusters", self._read_clusters)

    def column(self, evaluator: str | None = None) -> Column:
        name = ("column", evaluator)
        if name not in self._known:
            self._forget_large()
        # Several metrics ask for the same column in a row: of a large run, the last is kept.
        return self._kept(name, lambda: self._read_column(evaluator), however_large=True)

    def _read_column(self, evaluator: str | None) -> Column:
        marks, numbers = self._scores(evaluator)
        clusters = self.clusters()
        passes = marks.translate(PASSES, MISSING)
        if len(passes) < len(marks):
            numbers = array("d", (number for number in numbers if number == number))
            if clusters is not None:
                clusters = list(compress(clusters, [mark not in MISSING for mark in marks]))
        return Column(
            numbers,
            passes,
            errors=marks.count(MARK_OF["error"]) + marks.count(MARK_OF["unscored"]),
            skipped=marks.count(MARK_OF["skipped"]),
            clusters=clusters,
        )

    def latencies(self) -> Column:
        self._forget_large()
        return self._told(LATENCY)

    def tokens(self) -> Column:
        self._forget_large()
        return self._told(TOKENS)

    def _told(self, place: int) -> Column:
        """A number of each trial, where it is known; the others are counted as skipped."""
        told, clusters = array("d", (f[place] for f in self._figures())), self.clusters()
        known = bytes(number == number for number in told)
        return Column(
            array("d", compress(told, known)),
            skipped=known.count(0),
            clusters=None if clusters is None else list(compress(clusters, known)),
        )

    def spent(self) -> list[Spent | None] | None:
        if next(iter(self._query("1", "spent IS NOT NULL", " LIMIT 1")), None) is None:
            return None
        found = [
            each and Spent(*each)
            for figures, ids, spent in self._query("figures, sample_ids, spent")
            for figure, each in zip(
                self._unpacked(figures), block.listed(spent, len(_list(ids))), strict=True
            )
            if self._is_mine(figure)
        ]
        return found if any(found) else None

    def error_kinds(self) -> dict[str, int]:
        tally: dict[str, int] = {}
        for figures, kinds in self._query("figures, error_kinds", "error_kinds IS NOT NULL"):
            for figure, kind in zip(self._unpacked(figures), _list(kinds), strict=True):
                if kind is not None and self._is_mine(figure):
                    tally[kind] = tally.get(kind, 0) + 1
        return dict(sorted(tally.items(), key=lambda item: (-item[1], item[0])))

    def page(
        self,
        *,
        outcome: Outcome | None = None,
        evaluator: str | None = None,
        offset: int = 0,
        limit: int = 50,
    ) -> Sequence[EvalResult]:
        wanted = self._chooser(outcome, evaluator)
        first, last = max(0, offset), max(0, offset) + max(0, limit)
        # Results without a score come first, as worse than any with one.
        found = nsmallest(
            last,
            (
                (figure[VALUE] if figure[VALUE] == figure[VALUE] else -1.0, figure[POSITION], place)
                for place, figure in self._placed()
                if wanted(figure)
            ),
        )
        return [self._read(place) for _, _, place in found[first:]]

    def of_sample(self, sample_id: str) -> Sequence[EvalResult]:
        needle = msgspec.json.encode(sample_id)
        found = []
        for key, figures, ids in self._query("id, figures, sample_ids"):
            if needle not in ids:
                continue
            for offset, (figure, name) in enumerate(
                zip(self._unpacked(figures), _list(ids), strict=True)
            ):
                if name == sample_id and self._is_mine(figure):
                    found.append((figure[POSITION], key << OFFSET_BITS | offset))
        return [self._read(place) for _, place in sorted(found)]

    def done(self) -> Iterator[tuple[int, str, str, int]]:
        """What is finished: position, sample id, configuration, epoch."""
        names = [c.name for c in self._run.configurations]
        for figures, ids in self._query("figures, sample_ids"):
            for figure, sample_id in zip(self._unpacked(figures), _list(ids), strict=True):
                yield figure[POSITION], sample_id, names[figure[CONFIGURATION]], figure[EPOCH]

    def _chooser(
        self, outcome: Outcome | None, evaluator: str | None
    ) -> Callable[[tuple[Any, ...]], bool]:
        """Which figures belong to results of an outcome, as a whole or for one evaluator."""
        if outcome is None:
            return lambda _figure: True
        if evaluator is None:
            place = OUTCOMES.index(outcome)
            return lambda figure: figure[OUTCOME] == place
        mark, names = MARK_OF[outcome], [spec.name for spec in self._run.evaluators]
        if evaluator not in names:
            return lambda figure: STRANGER[figure[OUTCOME]] == mark
        which = names.index(evaluator)
        return lambda figure: figure[MARKS][which] == mark

    def _scores(self, evaluator: str | None) -> tuple[bytes, array[float]]:
        """The marks and numbers of an evaluator, or of whole results; NaN where there is none."""
        names = [spec.name for spec in self._run.evaluators]
        numbers, marks = array("d"), bytearray()
        if evaluator is None:
            for figure in self._figures():
                marks.append(WHOLE[figure[OUTCOME]])
                numbers.append(figure[VALUE])
        elif evaluator in names:
            which = names.index(evaluator)
            place = FIRST_NUMBER + which
            for figure in self._figures():
                marks.append(figure[MARKS][which])
                numbers.append(figure[place])
        else:
            marks.extend(STRANGER[outcome] for outcome in self.outcomes())
        return bytes(marks), numbers

    def _figures(self) -> Iterator[tuple[Any, ...]]:
        """The figures of every result."""
        return (figure for _, figure in self._placed())

    def _placed(self) -> Iterable[tuple[int, tuple[Any, ...]]]:
        """Every result's place on disk (block and offset) and its figures."""
        if self._may_keep():
            return self._kept("placed", lambda: list(self._read_figures()))
        return self._read_figures()

    def _read_figures(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for key, figures in self._query("id, figures"):
            first = key << OFFSET_BITS
            for offset, figure in enumerate(self._unpacked(figures)):
                if self._is_mine(figure):
                    yield first | offset, figure

    def _unpacked(self, figures: bytes) -> Iterator[tuple[Any, ...]]:
        return self._record.iter_unpack(figures)

    def _is_mine(self, figure: tuple[Any, ...]) -> bool:
        return self._configuration is None or figure[CONFIGURATION] == self._configuration

    def _places(self) -> array[int]:
        """Where each result lies, in the order of the plan."""
        return self._kept("places", self._read_places)

    def _read_places(self) -> array[int]:
        by_position = array("q")
        for place, figure in self._placed():
            missing = figure[POSITION] + 1 - len(by_position)
            if missing > 0:
                by_position.frombytes(bytes(8 * missing))
            by_position[figure[POSITION]] = place
        return array("q", [place for place in by_position if place])

    def _read_clusters(self) -> list[str] | None:
        named = next(iter(self._query("1", "clusters IS NOT NULL", " LIMIT 1")), None)
        repeated = self._run.options.epochs > 1 or (
            self._configuration is None and len(self._run.configurations) > 1
        )
        if not (named or repeated):
            return None
        found = []
        for figures, ids, clusters in self._query("figures, sample_ids, clusters"):
            names = _list(ids)
            for figure, name, cluster in zip(
                self._unpacked(figures), names, block.listed(clusters, len(names)), strict=True
            ):
                if self._is_mine(figure):
                    found.append(cluster or name)
        return shared_clusters(found)

    def _read(self, place: int) -> EvalResult:
        """The result at a place on disk; the last few blocks are kept at hand."""
        key = place >> OFFSET_BITS
        lines = self._at_hand.get(key)
        if lines is None:
            row = self._connection.execute(
                "SELECT results FROM blocks WHERE id = ?", (key,)
            ).fetchone()
            if row is None:
                raise HistoryError(
                    f"the results of run {self._run.run_id} have changed while they were read",
                    fix="read them again, if the run has not been deleted",
                )
            lines = self._at_hand[key] = row[0].split(b"\n")
            if len(self._at_hand) > BLOCKS_AT_HAND:
                self._at_hand.popitem(last=False)
        return read(lines[place & ((1 << OFFSET_BITS) - 1)])

    def _query(self, columns: str, condition: str = "1", rest: str = "") -> sqlite3.Cursor:
        return self._connection.execute(
            f"SELECT {columns} FROM blocks WHERE run = ? AND {condition}"
            + (rest or " ORDER BY id"),
            (self._run_key,),
        )

    def _kept(self, name: object, read: Callable[[], T], *, however_large: bool = False) -> T:
        """What was read is kept for the next question, if the run is over and not too large."""
        if name in self._known:
            found: T = self._known[name]
            return found
        found = read()
        if self._may_keep() or (however_large and self._run.status != "running"):
            self._known[name] = found
        return found

    def _forget_large(self) -> None:
        """Make room: of a large run only one column is in memory at a time."""
        if not self._may_keep():
            self._known = {key: kept for key, kept in self._known.items() if key in SMALL}

    def _may_keep(self) -> bool:
        if self._run.status == "running":
            return False
        if "small" not in self._known:
            (sums,) = self._query("coalesce(sum(" + " + ".join(OUTCOMES) + "), 0)")
            self._known["small"] = sums[0] <= KEPT_UP_TO
        return bool(self._known["small"])


def _list(data: bytes) -> list[Any]:
    return block.listed(data, 0)
