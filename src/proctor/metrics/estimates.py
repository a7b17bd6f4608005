"""From a column of numbers to a metric value with its interval.

Rates get Wilson's interval and means Student's t. Where values come in clusters (epochs of one
sample, samples of one document) both get the clustered interval, and the note says so.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from proctor.core.stats.descriptive import mean
from proctor.core.stats.intervals import (
    TOO_FEW_CLUSTERS,
    Interval,
    clustered_mean_interval,
    effective_clusters,
    mean_interval,
    too_few_clusters,
    wilson_interval,
)
from proctor.errors import FieldMissing
from proctor.records.fields.numbers import as_number
from proctor.records.fields.path import Path, compiled
from proctor.records.fields.view import result_of
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results, cluster_of, shared_clusters
from proctor.records.score import NOT_ASKED, Score, parts_of
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

CLUSTERED = "clustered"
ALL_EQUAL = "all values are equal: no interval"


def rate_of(passed: int, n: int, *, errors: int = 0, skipped: int = 0) -> MetricValue:
    """A share of independent results, with Wilson's interval.

    >>> rate_of(3, 4).value
    0.75
    """
    value = passed / n if n else None
    interval = wilson_interval(passed, n)
    return MetricValue(value, n, errors, skipped, interval, kind="rate")


def clustered_rate_of(flags: Column) -> MetricValue:
    """A share of clustered results, from a column of 1 (yes) and 0 (no).

    Where the clusters do not differ at all, the spread between them says nothing; each cluster
    then counts as one result in Wilson's interval.
    """
    interval, note = _clustered_interval(flags)
    share = mean(flags.values)
    if interval is not None and share is not None and interval[0] == interval[1]:
        clusters = effective_clusters(flags.clusters or ())
        interval = wilson_interval(min(1.0, share) * clusters, clusters)
    n, clipped = len(flags.values), _within_scores(interval)
    return MetricValue(share, n, flags.errors, flags.skipped, clipped, kind="rate", note=note)


def mean_of(column: Column, unit: str = "") -> MetricValue:
    """The mean of a column. Nothing that is measured here is under 0, and no score over 1.

    >>> mean_of(Column(array("d", [0.5, 1.0]))).interval
    (0.0, 1.0)
    """
    interval, note = _mean_interval(column, is_score=not unit)
    if interval is not None:
        interval = max(0.0, interval[0]), interval[1] if unit else min(1.0, interval[1])
    return MetricValue(
        mean(column.values),
        len(column.values),
        column.errors,
        column.skipped,
        interval,
        kind="mean",
        unit=unit,
        note=note,
    )


def any_mean_of(column: Column) -> MetricValue:
    """The mean of a column of any numbers, which may lie anywhere.

    >>> any_mean_of(Column(array("d", [-2.0, 4.0]))).value
    1.0
    """
    interval, note = _mean_interval(column, is_score=False)
    return MetricValue(
        mean(column.values),
        len(column.values),
        column.errors,
        column.skipped,
        interval,
        kind="number",
        note=note,
    )


def _mean_interval(column: Column, *, is_score: bool) -> tuple[Interval | None, str]:
    """The interval of a mean, and what is to be noted of it.

    Where all values are equal, their spread is no measure of doubt. Scores that are all 0 or all 1
    are yes-or-no scores, and Wilson's interval knows what n of n is worth; else there is none.
    """
    values, clusters = column.values, column.clusters
    if len(set(values)) == 1 and len(values) > 1:
        n = len(values) if clusters is None else effective_clusters(clusters)
        note = CLUSTERED if clusters is not None else ""
        if is_score and values[0] in (0.0, 1.0):
            return wilson_interval(n * values[0], n), note
        return None, ALL_EQUAL
    if clusters is None or not values:
        return mean_interval(values), ""
    return _clustered_interval(column)


def rate_over(
    results: Results, counted: Mapping[Outcome, float], *, errors: int = 0, skipped: int = 0
) -> MetricValue:
    """A share of results by how they came out: 1 or 0 for each outcome that counts.

    >>> from proctor.records.results import ResultList
    >>> rate_over(ResultList([]), {"passed": 1.0, "failed": 0.0}).value is None
    True
    """
    outcomes, clusters = results.outcomes(), results.clusters()
    worth = [counted.get(outcome) for outcome in OUTCOMES]
    if clusters is None:
        counts = [outcomes.count(index) for index in range(len(OUTCOMES))]
        n = sum(count for count, share in zip(counts, worth, strict=True) if share is not None)
        passed = sum(count for count, share in zip(counts, worth, strict=True) if share)
        return rate_of(passed, n, errors=errors, skipped=skipped)
    counts_of = [worth[outcome] for outcome in outcomes]
    flags = Column(
        array("d", (share for share in counts_of if share is not None)),
        errors=errors,
        skipped=skipped,
        clusters=[c for c, share in zip(clusters, counts_of, strict=True) if share is not None],
    )
    return clustered_rate_of(flags)


def _clustered_interval(column: Column) -> tuple[Interval | None, str]:
    clusters = column.clusters or ()
    interval = clustered_mean_interval(column.values, clusters)
    if interval is not None:
        return interval, CLUSTERED
    few = too_few_clusters(clusters)
    return None, f"{CLUSTERED}, {'with ' if few == TOO_FEW_CLUSTERS else ''}{few}: no interval"


def _within_scores(interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    return max(0.0, interval[0]), min(1.0, interval[1])


FIELD = "field"


class FieldsMetric:
    """The mean of every selected field that has numbers, and of each of its evaluators' scores.

    `field.tokens` is the mean of a field, `field.output.coherence` that of an evaluator's score.
    Booleans count as 0 and 1: their mean is the share that is true. Results that have no such
    number are counted as skipped, failed ones as errors.
    """

    name = FIELD

    def __init__(self, fields: Mapping[str, str], evaluated: Collection[str] | None = None) -> None:
        self._paths = {name: compiled(path) for name, path in fields.items()}
        self._evaluated = self._paths if evaluated is None else evaluated

    def compute(self, results: Results) -> dict[str, MetricValue]:
        numbers: dict[str, _Numbers] = {}
        scores: dict[str, _Numbers] = {}
        total, errors = 0, 0
        for result in results:
            total += 1
            errors += not result.success
            cluster = cluster_of(result)
            for name, number in self._values(result):
                numbers.setdefault(name, _Numbers()).add(number, cluster)
            for name, score in self._parts(result):
                scores.setdefault(name, _Numbers()).hear(score, cluster)
        return {
            **{name: any_mean_of(held.column(total, errors)) for name, held in numbers.items()},
            **{name: mean_of(held.column(total, errors)) for name, held in scores.items()},
        }

    def _values(self, result: EvalResult) -> Iterator[tuple[str, float]]:
        if not result.success:
            return
        whole = result_of(result.trial)
        for name, path in self._paths.items():
            value = _number(path, whole)
            if value is not None:
                yield name, value

    def _parts(self, result: EvalResult) -> Iterator[tuple[str, Score]]:
        """The scores that a field's score is made of."""
        for name in self._evaluated:
            score = result.scores.get(name)
            for part, one in parts_of(score).items() if score is not None else ():
                yield f"{name}.{part}", one


class _Numbers:
    """Numbers of some results, and the cluster of each."""

    def __init__(self) -> None:
        self._values = array("d")
        self._clusters: list[str] = []
        self._not_asked = 0

    def hear(self, score: Score, cluster: str) -> None:
        """A score's value; where it is told only of another epoch, it is not missing here."""
        if score.value is not None:
            self.add(score.value, cluster)
        elif score.reason in NOT_ASKED:
            self._not_asked += 1

    def add(self, value: float, cluster: str) -> None:
        self._values.append(value)
        self._clusters.append(cluster)

    def column(self, total: int, errors: int) -> Column:
        """The numbers as a column: who has none, and did not fail, was skipped."""
        skipped = max(0, total - errors - len(self._values) - self._not_asked)
        clusters = shared_clusters(self._clusters)
        return Column(self._values, errors=errors, skipped=skipped, clusters=clusters)


def _number(path: Path, whole: Mapping[str, Any]) -> float | None:
    try:
        return as_number(path.find(whole))
    except FieldMissing:
        return None
