"""The numbers of many results, turned from rows into columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from proctor.history.block import FIRST_NUMBER, LATENCY, MARK_OF, MARKS, OUTCOME, TOKENS, VALUE
from proctor.records.results import NAN, WORTH, Figures, numbers

# The figures of a result as they lie in a block; its sample's id and cluster; what it spent.
Beside = tuple[tuple[Any, ...], str, str | None, Sequence[Any] | None]

_COUNTS = {MARK_OF[outcome]: worth for outcome, worth in WORTH.items()}


def together(evaluators: Sequence[str], rows: Iterable[Beside]) -> Figures:
    """The figures of all results as columns."""
    held: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [(), (), (), ()]
    figures, ids, clusters, spent = held
    columns = list(zip(*figures, strict=True)) or [()] * (FIRST_NUMBER + len(evaluators))
    costs = [each[0] if each else None for each in spent]
    return Figures(
        list(ids),
        bytes(columns[OUTCOME]),
        array("d", columns[VALUE]),
        array("d", columns[LATENCY]),
        array("d", columns[TOKENS]),
        numbers(costs) if any(cost is not None for cost in costs) else None,
        list(clusters) if any(clusters) else None,
        {
            name: array("d", [_COUNTS.get(marks[place], NAN) for marks in columns[MARKS]])
            for place, name in enumerate(evaluators)
        },
        {name: array("d", columns[FIRST_NUMBER + place]) for place, name in enumerate(evaluators)},
    )
