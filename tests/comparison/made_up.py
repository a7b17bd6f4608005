"""Sides of comparisons, made of plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.comparison.compare import compare
from proctor.comparison.sides import Side, ValuesBySample
from proctor.records.comparison import Comparison, MetricDelta


def numbers(*values: float | None) -> ValuesBySample:
    """One number for each sample s0, s1 …; None is left out."""
    return {f"s{index}": float(v) for index, v in enumerate(values) if v is not None}


def of_field(
    first: ValuesBySample, second: ValuesBySample, name: str = "tokens", clusters: Sequence[str] | None = None
) -> MetricDelta:
    """The delta of a field between two sides that have nothing else."""
    return sides_of_field(first, second, name, clusters).fields[name]


def sides_of_field(
    first: ValuesBySample, second: ValuesBySample, name: str = "tokens", clusters: Sequence[str] | None = None
) -> Comparison:
    """Two sides that have nothing but a field; the clusters are those of the first samples."""
    named = None if clusters is None else {f"s{at}": item for at, item in enumerate(clusters)}
    low, high = (
        Side(side, fields={name: values}, clusters=named, samples=tuple(values))
        for side, values in (("low", first), ("high", second))
    )
    return compare(low, high)


def of_score(first: Sequence[float], second: Sequence[float], min_difference: float = 0.01) -> MetricDelta:
    """The delta of an evaluator's scores of the same samples."""
    new, old = (Side(side, scores={"judge": numbers(*values)}) for side, values in (("new", first), ("old", second)))
    return compare(new, old, min_difference=min_difference).scores["judge"]
