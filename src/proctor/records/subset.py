"""Some samples of a run: the same results and columns, restricted to a set of sample ids."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import compress
from operator import eq
from typing import Any, overload

from proctor.records.grid import NOWHERE, Grid
from proctor.records.results import (
    PASS_VALUES,
    Column,
    Counts,
    Figures,
    ModelUsage,
    Results,
    count_outcomes,
    list_shared_clusters,
    make_number_column,
    sort_counts,
)
from proctor.records.sample import Sample
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

# How many results are read at a time.
CHUNK = 500
_JUDGED = bytes(outcome in PASS_VALUES for outcome in OUTCOMES).ljust(256)
_PASSED, _ERROR, _UNSCORED, _SKIPPED = map(OUTCOMES.index, ("passed", "error", "unscored", "skipped"))


class WholeResults:
    """All results of a run or configuration, whose columns several subsets read only once."""

    def __init__(self, results: Results) -> None:
        self.results = results

    @cached_property
    def figures(self) -> Figures:
        return self.results.figures()

    @cached_property
    def usage(self) -> list[ModelUsage | None]:
        return self.results.model_usage() or []


class ResultSubset:
    """The results of some samples, read from the results of the whole run when they are needed."""

    def __init__(self, results: Results | WholeResults, sample_ids: Collection[str]) -> None:
        self._shared = results if isinstance(results, WholeResults) else WholeResults(results)
        self._results = self._shared.results
        self._ids = sample_ids if isinstance(sample_ids, frozenset) else frozenset(sample_ids)

    @property
    def _all_figures(self) -> Figures:
        return self._shared.figures

    @cached_property
    def _mask(self) -> bytes:
        return bytes(map(self._ids.__contains__, self._all_figures.sample_ids))

    def __len__(self) -> int:
        return sum(self._mask)

    def __iter__(self) -> Iterator[EvalResult]:
        for start in range(0, len(self._places), CHUNK):
            yield from self._results.read(self._places[start : start + CHUNK])

    @overload
    def __getitem__(self, index: int) -> EvalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EvalResult]: ...
    def __getitem__(self, index: int | slice) -> EvalResult | Sequence[EvalResult]:
        if isinstance(index, slice):
            return self._results.read(self._places[index])
        return self._results.read([self._places[index]])[0]

    @cached_property
    def _places(self) -> list[int]:
        return [place for place in self.grid().places if place != NOWHERE]

    def for_configuration(self, configuration: str) -> ResultSubset:
        return ResultSubset(self._results.for_configuration(configuration), self._ids)

    def counts(self) -> Counts:
        return count_outcomes(self.outcomes())

    def outcomes(self) -> bytes:
        return bytes(compress(self._all_figures.outcomes, self._mask))

    def clusters(self) -> list[str] | None:
        return self._clusters

    @cached_property
    def _clusters(self) -> list[str] | None:
        ids, clusters = self._all_figures.sample_ids, self._all_figures.clusters
        names = ids if clusters is None else [c or sample_id for c, sample_id in zip(clusters, ids, strict=True)]
        return list_shared_clusters(compress(names, self._mask))

    def column(self, evaluator: str | None = None) -> Column:
        marks, numbers = self.outcomes(), self._select_numbers(self._all_figures.values)
        if evaluator is not None:
            # Without an evaluator of this name, every answer counts as skipped.
            skipped = bytes(mark if mark == _ERROR else _SKIPPED for mark in marks)
            has_evaluator = evaluator in self._all_figures.marks
            marks = bytes(compress(self._all_figures.marks[evaluator], self._mask)) if has_evaluator else skipped
            numbers = self._select_numbers(self._all_figures.scores[evaluator]) if has_evaluator else array("d")
        is_judged, clusters = marks.translate(_JUDGED), self.clusters()
        return Column(
            array("d", compress(numbers, map(eq, numbers, numbers))),
            bytes(map(_PASSED.__eq__, compress(marks, is_judged))),
            errors=marks.count(_ERROR) + marks.count(_UNSCORED),
            skipped=marks.count(_SKIPPED)
            - sum(compress(self._all_figures.absent.get(evaluator or "", b""), self._mask)),
            clusters=None if clusters is None else list(compress(clusters, is_judged)),
            no_output=marks.count(_ERROR),
        )

    def latencies(self) -> Column:
        return make_number_column(self._select_numbers(self._all_figures.latencies), self.clusters())

    def tokens(self) -> Column:
        return make_number_column(self._select_numbers(self._all_figures.tokens), self.clusters())

    def model_usage(self) -> list[ModelUsage | None] | None:
        usages = list(compress(self._shared.usage, self._mask))
        return usages if any(usages) else None

    def figures(self) -> Figures:
        figures = self._all_figures
        costs = None if figures.costs is None else self._select_numbers(figures.costs)
        clusters = None if figures.clusters is None else list(compress(figures.clusters, self._mask))
        return Figures(
            list(compress(figures.sample_ids, self._mask)),
            self.outcomes(),
            self._select_numbers(figures.values),
            self._select_numbers(figures.latencies),
            self._select_numbers(figures.tokens),
            costs if costs is not None and any(cost == cost for cost in costs) else None,
            clusters if clusters is not None and any(clusters) else None,
            {name: self._select_numbers(numbers) for name, numbers in figures.passes.items()},
            {name: self._select_numbers(numbers) for name, numbers in figures.scores.items()},
            {name: bytes(compress(marks, self._mask)) for name, marks in figures.marks.items()},
            {name: bytes(compress(marks, self._mask)) for name, marks in figures.absent.items()},
        )

    def _select_numbers(self, numbers: array[float]) -> array[float]:
        return array("d", compress(numbers, self._mask))

    def samples(self) -> Iterator[Sample[Any, Any]]:
        return compress(self._results.samples(), self._mask)

    def error_kinds(self) -> dict[str, int]:
        failures = (result.trial.error for result in self.page(outcome="error", limit=len(self)))
        return sort_counts(Counter(failure.kind for failure in failures if failure is not None))

    def page(
        self, *, outcome: Outcome | None = None, evaluator: str | None = None, offset: int = 0, limit: int = 50
    ) -> Sequence[EvalResult]:
        grid = self.grid()
        marks = grid.outcomes if evaluator is None else grid.marks.get(evaluator)
        if marks is None:
            marks = bytes(mark if mark == _ERROR else _SKIPPED for mark in grid.outcomes)
        mark = None if outcome is None else OUTCOMES.index(outcome)
        cells = [
            cell for cell, place in enumerate(grid.places) if place != NOWHERE and (mark is None or marks[cell] == mark)
        ]
        # Results without a value come first.
        cells.sort(key=lambda cell: value if (value := grid.values[cell]) == value else -1.0)
        first = max(0, offset)
        return self._results.read([grid.places[cell] for cell in cells[first : first + max(0, limit)]])

    def for_sample(self, sample_id: str) -> Sequence[EvalResult]:
        return self._results.for_sample(sample_id) if sample_id in self._ids else []

    def grid(self) -> Grid:
        return self._grid

    @cached_property
    def _grid(self) -> Grid:
        grid = self._results.grid()
        rows = bytes(map(self._ids.__contains__, grid.sample_ids))
        cells = bytes(flag for flag in rows for _ in range(grid.width))

        def numbers(column: array[float]) -> array[float]:
            return array(column.typecode, compress(column, cells))

        return Grid(
            list(compress(grid.sample_ids, rows)),
            grid.configurations,
            grid.epochs,
            array("q", compress(grid.places, cells)),
            bytes(compress(grid.outcomes, cells)),
            numbers(grid.values),
            numbers(grid.latencies),
            numbers(grid.tokens),
            None if grid.costs is None else numbers(grid.costs),
            {name: bytes(compress(marks, cells)) for name, marks in grid.marks.items()},
            {name: numbers(scores) for name, scores in grid.scores.items()},
        )

    def read(self, places: Sequence[int]) -> list[EvalResult]:
        return self._results.read(places)

    def search(self, text: str, after: int = 0) -> Iterator[tuple[int, list[int], float]]:
        own_places = frozenset(self.grid().places)
        for cursor, places, share in self._results.search(text, after):
            yield cursor, [place for place in places if place in own_places], share
