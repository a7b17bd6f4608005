"""Results in a history, which are read on demand."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain, compress
from typing import Any, NamedTuple, TypeVar, overload

import msgspec

from proctor.errors import HistoryError
from proctor.history import block
from proctor.history.damage import BlockChecker, damage_error, decode_stored
from proctor.history.database import Query
from proctor.history.payload import decode_result, decode_sample
from proctor.records.grid import Grid, ResultColumns, arrange
from proctor.records.results import (
    NAN,
    PASS_VALUES,
    Column,
    Counts,
    Figures,
    ModelUsage,
    count_outcomes,
    list_shared_clusters,
    make_number_column,
    sort_counts,
    to_array,
)
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

# The value of each outcome letter in a pass rate.
_VALUES_BY_MARK = {block.MARKS_BY_OUTCOME[outcome]: value for outcome, value in PASS_VALUES.items()}
_MARK_VALUES = [_VALUES_BY_MARK.get(mark, NAN) for mark in range(256)]

# A location on disk is the id of a block and, in the last bits, the index of a result in the block.
OFFSET_BITS = 16
OFFSET = (1 << OFFSET_BITS) - 1
MAX_CACHED_BLOCKS = 16
# The number of consecutive results examined to see whether they are stored close together.
WINDOW = MAX_CACHED_BLOCKS * block.RESULTS_PER_BLOCK
# Scattered results, as in a shuffled run, are read in groups of at most this many results and bytes.
MAX_GATHERED_RESULTS, MAX_GATHERED_BYTES = 65_536, 64_000_000


class ResultReader:
    """Reads the results of one run by their locations on disk; the last blocks are cached."""

    def __init__(self, query: Query, run_id: str) -> None:
        self._query = query
        self._run_id = run_id
        self._cached_blocks: OrderedDict[int, list[bytes]] = OrderedDict()

    def read(self, place: int) -> EvalResult:
        """Return the result at a location."""
        key = place >> OFFSET_BITS
        lines = self._cached_blocks.get(key)
        if lines is None:
            ((_, lines),) = self._lines([key])
            self._cached_blocks[key] = lines
            if len(self._cached_blocks) > MAX_CACHED_BLOCKS:
                self._cached_blocks.popitem(last=False)
        return self._decode(self._line(lines, place))

    def all(self, places: array[int]) -> Iterator[EvalResult]:
        """Yield the results at some locations, in the same order."""
        start = 0
        while start < len(places):
            part: Sequence[int] = places[start : start + WINDOW]
            if not _is_scattered(part):
                yield from map(self.read, part)
            else:
                lines = self._gather_lines(places[start : start + MAX_GATHERED_RESULTS])
                part = list(lines)
                for place in part:
                    yield self._decode(lines.pop(place))
            start += len(part)

    def _gather_lines(self, places: Sequence[int]) -> dict[int, bytes]:
        """Return the lines of the first locations: as many as fit in memory, and at least one."""
        by_block: dict[int, list[int]] = {}
        for place in places:
            by_block.setdefault(place >> OFFSET_BITS, []).append(place)
        lines_by_place: dict[int, bytes] = {}
        size, ranks = 0, {place: rank for rank, place in enumerate(places)}
        end = len(places)
        for key, lines in self._lines(sorted(by_block)):
            for place in by_block[key]:
                if ranks[place] < end:
                    lines_by_place[place] = self._line(lines, place)
                    size += len(lines_by_place[place])
            while size > MAX_GATHERED_BYTES and end > 1:
                end //= 2
                lines_by_place = {place: line for place, line in lines_by_place.items() if ranks[place] < end}
                size = sum(map(len, lines_by_place.values()))
        return {place: lines_by_place[place] for place in places[:end]}

    def _lines(self, keys: Sequence[int]) -> Iterator[tuple[int, list[bytes]]]:
        for start in range(0, len(keys), MAX_CACHED_BLOCKS):
            part = keys[start : start + MAX_CACHED_BLOCKS]
            placeholders = ", ".join("?" * len(part))
            sql = f"SELECT id, results, checksums FROM blocks WHERE id IN ({placeholders})"
            rows = self._query(sql, part)
            if len(rows) < len(part):
                raise HistoryError(
                    f"the results of run {self._run_id} have changed while they were read",
                    fix="read them again, if the run has not been deleted",
                )
            for key, stored, checksums in rows:
                if not block.is_intact(checksums, "results", stored):
                    raise damage_error(self._run_id, "the checksum of its results is wrong")
                yield key, decode_stored(self._run_id, "the results", partial(block.split_lines, stored))

    def _line(self, lines: list[bytes], place: int) -> bytes:
        offset = place & OFFSET
        if offset >= len(lines):
            raise damage_error(self._run_id, f"a block has {len(lines)} results, but needs {offset + 1}")
        return lines[offset]

    def _decode(self, line: bytes) -> EvalResult:
        return decode_stored(self._run_id, "a result", partial(decode_result, line))


def _is_scattered(places: Sequence[int]) -> bool:
    """Return whether reading the locations one by one would decompress blocks repeatedly."""
    cached: dict[int, None] = {}
    unpacked_count, blocks = 0, set()
    for place in places:
        key = place >> OFFSET_BITS
        if key not in cached:
            unpacked_count += 1
            blocks.add(key)
            cached[key] = None
            if len(cached) > MAX_CACHED_BLOCKS:
                del cached[next(iter(cached))]
    return unpacked_count > 2 * len(blocks)


# Up to this many results, columns stay in memory after the first read.
MAX_CACHED_RESULTS = 100_000
# The figures of the configurations of smaller runs are read together.
MAX_SPLIT_RESULTS = 400_000
BLOCKS_PER_QUERY = 64
BLOCKS_SEARCHED = 4
# These values stay in memory for runs of any size, because they are small.
ALWAYS_CACHED = ("small", "outcomes", "sums")
NO_CONFIGURATION = -1

# The letters of outcomes by their index in OUTCOMES, and the letters for an evaluator that the run lacks.
OUTCOME_MARKS = bytes(block.MARKS_BY_OUTCOME[outcome] for outcome in OUTCOMES).ljust(256)
UNKNOWN_EVALUATOR = bytes(block.MARKS_BY_OUTCOME["error" if o == "error" else "skipped"] for o in OUTCOMES)
MARKS_WITHOUT_VERDICT = "".join((block.NO_OUTPUT, block.ERROR, block.SKIPPED, block.ABSENT)).encode()
PASS_TABLE = bytes.maketrans(bytes([block.MARKS_BY_OUTCOME["passed"], block.MARKS_BY_OUTCOME["failed"]]), bytes([1, 0]))

# The outcome of each letter of an evaluator, as an index of OUTCOMES.
MARK_OUTCOMES = bytes.maketrans(
    bytes([*(block.MARKS_BY_OUTCOME[outcome] for outcome in OUTCOMES), ord(block.ABSENT)]),
    bytes([*range(len(OUTCOMES)), OUTCOMES.index("skipped")]),
)

# 1 for the letter of an evaluator that a sample does not have, else 0.
ABSENT_MARK = block.ABSENT.encode()
ABSENT_TABLE = bytes(mark == ABSENT_MARK[0] for mark in range(256))

T = TypeVar("T")


class _FigureColumns(NamedTuple):
    """What figures are made of: a packed record for each result, and what it does not contain."""

    sample_ids: list[str]
    clusters: list[str | None]
    costs: list[float | None]
    records: list[bytes]


class StoredResults:
    """A run's results on disk: a sequence in the order of the plan, and columns of numbers.

    All columns are in the order in which the results finished.
    """

    def __init__(
        self,
        query: Query,
        run_key: int,
        run: RunMetadata,
        configuration: int | None = None,
        whole: StoredResults | None = None,
    ) -> None:
        # The bound method keeps the history alive; a temporary history is deleted with its last reference.
        self._query = query
        self._run_key = run_key
        self._run = run
        self._configuration = configuration
        self._whole = whole
        self._evaluators = [spec.name for spec in run.evaluators]
        self._record = block.make_record_layout(len(run.evaluators))
        self._cache: dict[Any, Any] = {}
        self._check = BlockChecker(run)
        self._reader = ResultReader(query, run.run_id)

    def __len__(self) -> int:
        return self.counts().total

    def __iter__(self) -> Iterator[EvalResult]:
        return self._reader.all(self._places())

    @overload
    def __getitem__(self, index: int) -> EvalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EvalResult]: ...
    def __getitem__(self, index: int | slice) -> EvalResult | Sequence[EvalResult]:
        places = self._places()
        if isinstance(index, slice):
            return list(self._reader.all(places[index]))
        try:
            return self._reader.read(places[index])
        except IndexError:
            raise IndexError(f"result {index} of {len(places)}") from None

    def for_configuration(self, configuration: str) -> StoredResults:
        names = [c.name for c in self._run.configurations]
        index = names.index(configuration) if configuration in names else NO_CONFIGURATION
        whole = self if self._whole is None else self._whole
        return StoredResults(self._query, self._run_key, self._run, index, whole)

    def counts(self) -> Counts:
        if self._configuration is not None:
            return count_outcomes(self.outcomes())
        return Counts(*self._sums())

    def outcomes(self) -> bytes:
        marks = chain.from_iterable(map(self._marks, self._packed()))
        return self._cached("outcomes", lambda: bytes(marks), any_size=True)

    def clusters(self) -> list[str] | None:
        return self._cached("clusters", self._read_clusters)

    def column(self, evaluator: str | None = None) -> Column:
        name = ("column", evaluator)
        if name not in self._cache:
            self._forget_large()
        # Several metrics use the same column in succession, so the last column stays in memory.
        return self._cached(name, lambda: self._read_column(evaluator), any_size=True)

    def _read_column(self, evaluator: str | None) -> Column:
        marks, numbers = self._scores(evaluator)
        clusters = self.clusters()
        passes = marks.translate(PASS_TABLE, MARKS_WITHOUT_VERDICT)
        if len(passes) < len(marks):
            numbers = array("d", (number for number in numbers if number == number))
            if clusters is not None:
                clusters = list(compress(clusters, [mark not in MARKS_WITHOUT_VERDICT for mark in marks]))
        return Column(
            numbers,
            passes,
            errors=marks.count(block.MARKS_BY_OUTCOME["error"]) + marks.count(block.MARKS_BY_OUTCOME["unscored"]),
            skipped=marks.count(block.MARKS_BY_OUTCOME["skipped"]),
            clusters=clusters,
            no_output=marks.count(block.MARKS_BY_OUTCOME["error"]),
        )

    def latencies(self) -> Column:
        return self._number_column(block.LATENCY)

    def tokens(self) -> Column:
        return self._number_column(block.TOKENS)

    def _number_column(self, place: int) -> Column:
        """Return a number for each trial; trials without the number count as skipped."""
        self._forget_large()
        numbers = array("d")
        for figures in self._packed():
            numbers.extend(self._numbers(figures, place))
        return make_number_column(numbers, self.clusters())

    def model_usage(self) -> list[ModelUsage | None] | None:
        if not self._has("spent"):
            return None
        usages = [usage and ModelUsage(*usage) for _, _, usage in self._entries("spent")]
        return usages if any(usages) else None

    def figures(self) -> Figures:
        whole, index = self._whole, self._configuration
        if whole is None or index is None or index == NO_CONFIGURATION or not whole._may_split():
            return self._make_figures(self._read_columns())
        return whole._cached("figures", whole._split_figures, any_size=True)[index]

    def _may_split(self) -> bool:
        """True if the figures of all configurations together fit in memory, so that one of them reads all."""
        if self._run.status == "running" or len(self._run.configurations) < 2:
            return False
        return sum(self._sums()) <= MAX_SPLIT_RESULTS

    def _split_figures(self) -> list[Figures]:
        """Read the figures of every configuration; reading them one by one would decode all blocks for each."""
        columns = self._read_columns()
        count, packed = len(self._run.configurations), b"".join(columns.records)
        indexes = block.read_integers(packed, len(self._evaluators), *block.CONFIGURATION_BYTES)
        # Bytes are selected ten times as fast.
        codes = bytes(indexes.tolist()) if count <= 256 else None
        # Equal ids become one string, which is found faster in the tables of another configuration.
        known: dict[str, str] = {}
        ids = list(map(known.setdefault, columns.sample_ids, columns.sample_ids))
        parts = []
        for index in range(count):
            if codes is None:
                mask = bytes(map(index.__eq__, indexes))
            else:
                mask = codes.translate(bytes(code == index for code in range(256)))
            own = _FigureColumns(
                list(compress(ids, mask)),
                list(compress(columns.clusters, mask)),
                list(compress(columns.costs, mask)),
                list(compress(columns.records, mask)),
            )
            parts.append(self._make_figures(own))
        return parts

    def _read_columns(self) -> _FigureColumns:
        columns, size = _FigureColumns([], [], [], []), self._record.size
        for figures, *lists in self._blocks("figures, sample_ids, clusters, spent"):
            # Records are selected here once, not again for each column.
            rows = list(self._select(figures, range(len(figures) // size)))
            columns.records.extend([figures[row * size : (row + 1) * size] for row in rows])
            names, groups, spent = (_decode_entries(data, rows) for data in lists)
            columns.sample_ids.extend(names)
            columns.clusters.extend(groups)
            columns.costs.extend([usage[0] if usage else None for usage in spent])
        return columns

    def _make_figures(self, columns: _FigureColumns) -> Figures:
        ids, clusters, costs, records = columns
        packed, size, evaluators = b"".join(records), self._record.size, len(self._evaluators)
        marks = {name: packed[block.FIRST_MARK + n :: size] for n, name in enumerate(self._evaluators)}
        values, latencies, tokens, *numbers = (
            block.read_numbers(packed, evaluators, place)
            for place in range(block.VALUE, block.FIRST_NUMBER + evaluators)
        )
        return Figures(
            ids,
            packed[block.OUTCOME_BYTE :: size],
            values,
            latencies,
            tokens,
            to_array(costs) if any(cost is not None for cost in costs) else None,
            clusters if any(clusters) else None,
            {name: array("d", map(_MARK_VALUES.__getitem__, codes)) for name, codes in marks.items()},
            dict(zip(self._evaluators, numbers, strict=True)),
            {name: codes.translate(MARK_OUTCOMES) for name, codes in marks.items()},
            {name: codes.translate(ABSENT_TABLE) for name, codes in marks.items() if ABSENT_MARK in codes},
        )

    def samples(self) -> Iterator[Sample[Any, Any]]:
        for figures, stored in self._blocks("figures, results"):
            lines = self._check.read_lines(stored, len(figures))
            samples = map(decode_sample, self._select(figures, lines))
            yield from decode_stored(self._run.run_id, "a sample", partial(list, samples))

    def error_kinds(self) -> dict[str, int]:
        entries = self._entries("error_kinds", "error_kinds IS NOT NULL")
        return sort_counts(Counter(kind for _, _, kind in entries if kind is not None))

    def page(
        self, *, outcome: Outcome | None = None, evaluator: str | None = None, offset: int = 0, limit: int = 50
    ) -> Sequence[EvalResult]:
        matches = self._outcome_filter(outcome, evaluator)
        first, last = max(0, offset), max(0, offset) + max(0, limit)
        # Results without a score come first.
        worst = nsmallest(last, (_worst_first(*entry) for entry in self._placed() if matches(entry[1])))
        return [self._reader.read(place) for _, _, place in worst[first:]]

    def for_sample(self, sample_id: str) -> Sequence[EvalResult]:
        needle = msgspec.json.encode(sample_id)
        matches = []
        for key, figures, ids in self._blocks("id, figures, sample_ids"):
            if needle not in ids:
                continue
            names = enumerate(zip(self._unpacked(figures), block.decode_list(ids, 0), strict=True))
            for offset, (figure, name) in names:
                if name == sample_id and self._is_selected(figure):
                    matches.append((figure[block.POSITION], key << OFFSET_BITS | offset))
        return [self._reader.read(place) for _, place in sorted(matches)]

    def grid(self) -> Grid:
        return self._cached("grid", self._read_grid, any_size=True)

    def _read_grid(self) -> Grid:
        ids: list[str] = []
        costs, places = array("d"), array("q")
        parts: list[bytes] = []
        for key, figures, names, spent in self._blocks("id, figures, sample_ids, spent"):
            first, count = key << OFFSET_BITS, len(figures) // self._record.size
            ids.extend(self._select(figures, block.decode_list(names, count)))
            usages = self._select(figures, block.decode_list(spent, count))
            costs.extend([NAN if usage is None or usage[0] is None else usage[0] for usage in usages])
            places.extend(self._select(figures, range(first, first + count)))
            parts.append(figures)
        packed = b"".join(parts)
        evaluators = len(self._evaluators)

        def integers(offset: int, width: int) -> list[int]:
            return list(self._select(packed, block.read_integers(packed, evaluators, offset, width)))

        marks = (bytes(self._marks(packed, block.FIRST_MARK + index)) for index in range(evaluators))
        columns = ResultColumns(
            ids,
            integers(*block.POSITION_BYTES),
            integers(*block.CONFIGURATION_BYTES),
            integers(*block.EPOCH_BYTES),
            places,
            bytes(self._marks(packed)),
            self._numbers(packed, block.VALUE),
            self._numbers(packed, block.LATENCY),
            self._numbers(packed, block.TOKENS),
            costs if any(cost == cost for cost in costs) else None,
            {name: codes.translate(MARK_OUTCOMES) for name, codes in zip(self._evaluators, marks, strict=True)},
            {name: self._numbers(packed, block.FIRST_NUMBER + n) for n, name in enumerate(self._evaluators)},
        )
        return arrange(columns, [configuration.name for configuration in self._run.configurations])

    def read(self, places: Sequence[int]) -> list[EvalResult]:
        return list(self._reader.all(array("q", places)))

    def search(self, text: str, after: int = 0) -> Iterator[tuple[int, list[int], float]]:
        needle = msgspec.json.encode(text)[1:-1].decode().lower()
        ids = [row[0] for row in self._query("SELECT id FROM blocks WHERE run = ? ORDER BY id", (self._run_key,))]
        first = bisect_right(ids, after)
        for start in range(first, len(ids), BLOCKS_SEARCHED):
            places = []
            for key, stored in self._read_stored(ids[start : start + BLOCKS_SEARCHED]):
                content = block.decompress(stored).decode(errors="replace").lower()
                if needle in content:
                    lines = enumerate(content.split("\n"))
                    places += [key << OFFSET_BITS | offset for offset, line in lines if needle in line]
            end = min(len(ids), start + BLOCKS_SEARCHED)
            yield ids[end - 1], places, end / len(ids)

    def _read_stored(self, keys: Sequence[int]) -> Iterable[tuple[int, bytes]]:
        placeholders = ", ".join("?" * len(keys))
        return self._query(f"SELECT id, results FROM blocks WHERE id IN ({placeholders}) ORDER BY id", keys)

    def finished_trials(self) -> Iterator[tuple[int, str, str, int]]:
        """Yield the finished trials: position, sample id, configuration, epoch."""
        names = [c.name for c in self._run.configurations]
        for _, figure, sample_id in self._entries("sample_ids"):
            yield figure[block.POSITION], sample_id, names[figure[block.CONFIGURATION]], figure[block.EPOCH]

    def _outcome_filter(self, outcome: Outcome | None, evaluator: str | None) -> Callable[[tuple[Any, ...]], bool]:
        if outcome is None:
            return lambda _figure: True
        if evaluator is None:
            place = OUTCOMES.index(outcome)
            return lambda figure: figure[block.OUTCOME] == place
        mark = block.MARKS_BY_OUTCOME[outcome]
        if evaluator not in self._evaluators:
            return lambda figure: UNKNOWN_EVALUATOR[figure[block.OUTCOME]] == mark
        index = self._evaluators.index(evaluator)
        return lambda figure: figure[block.MARKS][index] == mark

    def _scores(self, evaluator: str | None) -> tuple[bytes, array[float]]:
        """Return the outcome letters and numbers of an evaluator, or of the results; NaN for missing numbers."""
        if evaluator is not None and evaluator not in self._evaluators:
            return bytes(UNKNOWN_EVALUATOR[outcome] for outcome in self.outcomes()), array("d")
        mark_offset, place = block.OUTCOME_BYTE, block.VALUE
        if evaluator is not None:
            index = self._evaluators.index(evaluator)
            mark_offset, place = block.FIRST_MARK + index, block.FIRST_NUMBER + index
        numbers, marks = array("d"), bytearray()
        for figures in self._packed():
            marks.extend(self._marks(figures, mark_offset))
            numbers.extend(self._numbers(figures, place))
        return bytes(marks if evaluator is not None else marks.translate(OUTCOME_MARKS)), numbers

    def _marks(self, figures: bytes, mark_offset: int = block.OUTCOME_BYTE) -> Iterable[int]:
        return self._select(figures, figures[mark_offset :: self._record.size])

    def _numbers(self, figures: bytes, place: int) -> array[float]:
        numbers = block.read_numbers(figures, len(self._evaluators), place)
        return numbers if self._configuration is None else array("d", self._select(figures, numbers))

    def _select(self, figures: bytes, column: Iterable[T]) -> Iterable[T]:
        """Select the entries of a column that belong to the selected configuration."""
        if self._configuration is None:
            return column
        numbers = block.read_integers(figures, len(self._evaluators), *block.CONFIGURATION_BYTES)
        return compress(column, map(self._configuration.__eq__, numbers))

    def _packed(self) -> Iterable[bytes]:
        parts = (figures for (figures,) in self._blocks("figures"))
        return (self._cached("packed", lambda: b"".join(parts)),) if self._may_cache() else parts

    def _placed(self) -> Iterable[tuple[int, tuple[Any, ...]]]:
        """Return every result's location on disk (block and offset) and its figures."""
        if self._may_cache():
            return self._cached("placed", lambda: list(self._entries()))
        return self._entries()

    def _entries(self, columns: str = "", condition: str = "TRUE") -> Iterator[Any]:
        """Yield the location, the figures and other columns of each selected result."""
        names = ("id, figures, " + columns).removesuffix(", ")
        for key, figures, *stored in self._blocks(names, condition):
            first, count = key << OFFSET_BITS, len(figures) // self._record.size
            lists = [block.decode_list(data, count) for data in stored]
            for entry in zip(range(first, first + count), self._unpacked(figures), *lists, strict=True):
                if self._is_selected(entry[1]):
                    yield entry

    def _unpacked(self, figures: bytes) -> Iterator[tuple[Any, ...]]:
        return self._record.iter_unpack(figures)

    def _is_selected(self, figure: tuple[Any, ...]) -> bool:
        return self._configuration is None or figure[block.CONFIGURATION] == self._configuration

    def _places(self) -> array[int]:
        return self._cached("places", self._read_places)

    def _read_places(self) -> array[int]:
        by_position = array("q")
        for place, figure in self._placed():
            missing = figure[block.POSITION] + 1 - len(by_position)
            if missing > 0:
                by_position.frombytes(bytes(8 * missing))
            by_position[figure[block.POSITION]] = place
        return array("q", [place for place in by_position if place])

    def _read_clusters(self) -> list[str] | None:
        repeated = self._run.options.epochs > 1 or (self._configuration is None and len(self._run.configurations) > 1)
        if not (repeated or self._has("clusters")):
            return None
        return list_shared_clusters(cluster or name for _, _, name, cluster in self._entries("sample_ids, clusters"))

    def _blocks(self, columns: str, condition: str = "TRUE") -> Iterator[tuple[Any, ...]]:
        """Yield the run's blocks in order; they are read in groups to limit memory."""
        last, names = 0, columns.split(", ")
        sql = f"SELECT id, checksums, {columns} FROM blocks WHERE run = ? AND id > ? AND {condition}"
        while True:
            rows = self._query(f"{sql} ORDER BY id LIMIT {BLOCKS_PER_QUERY}", (self._run_key, last))
            for row in rows:
                self._check.check_row(names, row[2:], row[1])
                yield row[2:]
            if len(rows) < BLOCKS_PER_QUERY:
                return
            last = rows[-1][0]

    def _has(self, column: str) -> bool:
        sql = f"SELECT 1 FROM blocks WHERE run = ? AND {column} IS NOT NULL LIMIT 1"
        return bool(self._query(sql, (self._run_key,)))

    def _sums(self) -> tuple[int, ...]:
        columns = ", ".join(OUTCOMES)
        sql = f"SELECT {columns}, checksums FROM blocks WHERE run = ?"
        return self._cached("sums", lambda: self._check.sum_counts(self._query(sql, (self._run_key,))), any_size=True)

    def _cached(self, name: object, read: Callable[[], T], *, any_size: bool = False) -> T:
        """Return a cached value, or read it; cache it if the run has ended and is not too large."""
        if name in self._cache:
            cached: T = self._cache[name]
            return cached
        value = read()
        if (any_size and self._run.status != "running") or self._may_cache():
            self._cache[name] = value
        return value

    def _forget_large(self) -> None:
        """Free memory: only one column of a large run is in memory at a time."""
        if not self._may_cache():
            self._cache = {key: value for key, value in self._cache.items() if key in ALWAYS_CACHED}

    def _may_cache(self) -> bool:
        if self._run.status == "running":
            return False
        if "small" not in self._cache:
            self._cache["small"] = sum(self._sums()) <= MAX_CACHED_RESULTS
        return bool(self._cache["small"])


def _decode_entries(data: bytes | None, rows: Sequence[int]) -> list[Any]:
    """Decode the entries of some rows of a stored list; None for each row if nothing was stored."""
    if data is None:
        return [None] * len(rows)
    entries = block.decode_list(data, 0)
    return entries if len(rows) == len(entries) else [entries[row] for row in rows]


def _worst_first(place: int, figure: tuple[Any, ...]) -> tuple[float, int, int]:
    value = figure[block.VALUE]
    return (value if value == value else -1.0), figure[block.POSITION], place
