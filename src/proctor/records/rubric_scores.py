"""What a session came to by several rubrics: the weighted total, read off what a run keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from proctor.records.rubric import USUAL_SCALE, Rubric, scale_of
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.score import Score

# The evaluator that scores by a rubric, and the tag that tells the version of the rubrics.
RUBRIC, RUBRICS_VERSION = "rubric", "rubrics_version"
# The metric that tells the mean of the sessions' totals.
TOTAL_SCORE = "total_score"
# Of a total; a float has three or four more, which sums of fractions fill with noise.
DIGITS = 12

Ends = tuple[float, float]


class Column(NamedTuple):
    """A rubric of a run: the name under which its scores are kept, and its scale."""

    name: str
    rubric: Rubric
    scale: Ends


class Columns(NamedTuple):
    """The rubrics of a run in order, the scale of the total, and their version."""

    columns: tuple[Column, ...]
    scale: Ends
    version: str


class Total(NamedTuple):
    """What a session came to: where its total lies on the scale from 0 to 1, and as a score."""

    normalized: float
    score: float


def columns_in(run: RunMetadata | None) -> Columns:
    """The rubrics that a run was scored by, as they are kept with it."""
    if run is None:
        return columns_of((), "")
    return columns_of(run.evaluators, run.tags.get(RUBRICS_VERSION, ""))


def columns_of(evaluators: Iterable[EvaluatorSpec], version: str) -> Columns:
    """The rubrics among some evaluators."""
    specs = [spec for spec in evaluators if _is_rubric(spec)]
    columns = []
    for spec in specs:
        rubric = msgspec.convert(spec.parameters["rubric"], Rubric, strict=False)
        columns.append(Column(spec.name, rubric, scale_of(rubric, _usual(spec))))
    shared = {column.scale for column in columns}
    scale = shared.pop() if len(shared) == 1 else _usual(specs[0]) if specs else USUAL_SCALE
    return Columns(tuple(columns), scale, version)


def _is_rubric(spec: EvaluatorSpec) -> bool:
    return spec.uses == RUBRIC and isinstance(spec.parameters.get("rubric"), Mapping)


def _usual(spec: EvaluatorSpec) -> Ends:
    low, high = spec.parameters.get("scale", USUAL_SCALE)
    return low, high


def weighted_mean(weighted: Sequence[tuple[float, float]]) -> float:
    """The mean of pairs of weight and value.

    >>> weighted_mean([(1.0, 0.25), (3.0, 0.75)])
    0.625
    """
    weight = math.fsum(weight for weight, _ in weighted)
    return math.fsum(weight * value for weight, value in weighted) / weight


def is_partial(scores: Mapping[str, Score], columns: Columns) -> bool:
    """True if one of the rubrics has no score, because it failed or was skipped."""
    said = (scores.get(column.name) for column in columns.columns)
    return any(score is not None and not score.ok for score in said)


def has_failed(scores: Mapping[str, Score], columns: Columns) -> bool:
    """True if one of the rubrics failed."""
    said = (scores.get(column.name) for column in columns.columns)
    return any(score is not None and score.status == "error" for score in said)


def total_of(scores: Mapping[str, Score], columns: Columns) -> Total | None:
    """The weighted mean over the rubrics that were scored, on the scale of the total.

    Rubrics without a score are left out; None if none has one. Totals that are equal on paper are
    equal: what sums of fractions leave in the last places would be taken for an order.
    """
    told = [
        (column.rubric.weight, value)
        for column in columns.columns
        if (score := scores.get(column.name)) is not None and (value := score.value) is not None
    ]
    if not told:
        return None
    normalized = weighted_mean(told)
    low, high = columns.scale
    places = DIGITS - math.ceil(math.log10(max(abs(low), abs(high))))
    return Total(normalized, round(low + normalized * (high - low), places))
