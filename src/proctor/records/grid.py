"""A grid of results: one row per sample, one cell per configuration and epoch, with the numbers as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

import msgspec

NAN = float("nan")
# The outcome of a cell without a result, as in a run that has not finished.
NO_RESULT = 255
NOWHERE = -1


class Grid(msgspec.Struct, frozen=True):
    """The results of a run by sample, configuration and epoch.

    The cell of a result is `(row * len(configurations) + configuration) * epochs + epoch`; every column has one entry
    per cell. `outcomes` and `marks` (by evaluator) are indexes of OUTCOMES, or NO_RESULT; NaN is a missing number.
    `places` are what `read` of the results takes, or NOWHERE.
    """

    sample_ids: list[str]
    configurations: tuple[str, ...]
    epochs: int
    places: array[int]
    outcomes: bytes
    values: array[float]
    latencies: array[float]
    tokens: array[float]
    costs: array[float] | None
    marks: dict[str, bytes]
    scores: dict[str, array[float]]

    @property
    def width(self) -> int:
        """The number of cells in a row."""
        return len(self.configurations) * self.epochs

    def row_places(self, row: int) -> list[int]:
        """Return the places of the results in one row."""
        cells = self.places[row * self.width : (row + 1) * self.width]
        return [place for place in cells if place != NOWHERE]


class ResultColumns(msgspec.Struct, frozen=True):
    """The columns of results in any order, all of the same length; see `Grid`."""

    sample_ids: Sequence[str]
    positions: Sequence[int]
    configurations: Sequence[int]
    epochs: Sequence[int]
    places: Sequence[int]
    outcomes: bytes
    values: Sequence[float]
    latencies: Sequence[float]
    tokens: Sequence[float]
    costs: Sequence[float] | None
    marks: Mapping[str, bytes]
    scores: Mapping[str, Sequence[float]]


def arrange(columns: ResultColumns, configurations: Sequence[str]) -> Grid:
    """Arrange results in a grid, with the samples in the order of the plan."""
    first: dict[str, int] = {}
    for sample_id, position in zip(columns.sample_ids, columns.positions, strict=True):
        if position < first.get(sample_id, position + 1):
            first[sample_id] = position
    ids = sorted(first, key=first.__getitem__)
    rows = {sample_id: row for row, sample_id in enumerate(ids)}
    epochs = max(columns.epochs, default=0) + 1
    width = len(configurations) * epochs
    cells = [
        rows[sample_id] * width + configuration * epochs + epoch
        for sample_id, configuration, epoch in zip(
            columns.sample_ids, columns.configurations, columns.epochs, strict=True
        )
    ]
    size = len(ids) * width
    places = array("q", [NOWHERE]) * size
    for cell, place in zip(cells, columns.places, strict=True):
        places[cell] = place
    return Grid(
        ids,
        tuple(configurations),
        epochs,
        places,
        _place_marks(cells, columns.outcomes, size),
        _place_numbers(cells, columns.values, size),
        _place_numbers(cells, columns.latencies, size),
        _place_numbers(cells, columns.tokens, size),
        None if columns.costs is None else _place_numbers(cells, columns.costs, size),
        {name: _place_marks(cells, marks, size) for name, marks in columns.marks.items()},
        {name: _place_numbers(cells, numbers, size) for name, numbers in columns.scores.items()},
    )


def _place_marks(cells: Iterable[int], marks: bytes, size: int) -> bytes:
    placed = bytearray([NO_RESULT]) * size
    for cell, mark in zip(cells, marks, strict=True):
        placed[cell] = mark
    return bytes(placed)


def _place_numbers(cells: Iterable[int], numbers: Sequence[float], size: int) -> array[float]:
    placed = array("f", [NAN]) * size
    for cell, number in zip(cells, numbers, strict=True):
        placed[cell] = number
    return placed
