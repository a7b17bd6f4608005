"""A grid of results: one row per sample, one cell per configuration and epoch, with the numbers as columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from operator import add, le
from typing import TypeVar

import msgspec

NAN = float("nan")
# The outcome of a cell without a result, as in a run that has not finished.
NO_RESULT = 255
NOWHERE = -1

T = TypeVar("T")


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

    def cells_of(self, configuration: int) -> Iterator[slice]:
        """Yield the cells of a configuration, one slice of the columns for each epoch."""
        first = configuration * self.epochs
        return (slice(start, None, self.width) for start in range(first, first + self.epochs))

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
    positions = columns.positions
    ids = columns.sample_ids
    if not all(map(le, positions, islice(positions, 1, None))):
        ids = list(map(ids.__getitem__, sorted(range(len(positions)), key=positions.__getitem__)))
    ids = list(dict.fromkeys(ids))
    epochs = max(columns.epochs, default=0) + 1
    width = len(configurations) * epochs
    # Plain functions instead of a loop: a large run has a million cells.
    first_cells = dict(zip(ids, count(0, width), strict=False))
    groups = map(add, map(epochs.__mul__, columns.configurations), columns.epochs)
    cells = list(map(add, map(first_cells.__getitem__, columns.sample_ids), groups))
    order = _order_results(cells, len(ids) * width)
    return Grid(
        ids,
        tuple(configurations),
        epochs,
        array("q", _place(order, columns.places, NOWHERE)),
        bytes(_place(order, columns.outcomes, NO_RESULT)),
        array("f", _place(order, columns.values, NAN)),
        array("f", _place(order, columns.latencies, NAN)),
        array("f", _place(order, columns.tokens, NAN)),
        None if columns.costs is None else array("f", _place(order, columns.costs, NAN)),
        {name: bytes(_place(order, marks, NO_RESULT)) for name, marks in columns.marks.items()},
        {name: array("f", _place(order, numbers, NAN)) for name, numbers in columns.scores.items()},
    )


def _order_results(cells: Sequence[int], size: int) -> Sequence[int] | None:
    """Return the index of the result in each cell, or their number for an empty cell; None if all are in order."""
    if len(cells) == size and cells == list(range(size)):
        return None
    order = array("q", [len(cells)]) * size
    for index, cell in enumerate(cells):
        order[cell] = index
    return order


def _place(order: Sequence[int] | None, column: Sequence[T], missing: T) -> Iterable[T]:
    """Return a column in the order of the cells."""
    return column if order is None else map([*column, missing].__getitem__, order)
