"""Estimate metric values with their intervals.

Rates get Wilson's interval, means Student's t, quantiles the interval between two values. Clustered values (epochs of
one sample, samples of one document) get a clustered interval, and a note.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence

from proctor.core.stats.descriptive import mean, order_values, quantile
from proctor.core.stats.intervals import (
    TOO_FEW_CLUSTERS,
    Interval,
    clustered_mean_interval,
    clustered_rate_interval,
    effective_clusters,
    find_cluster_problem,
    mean_interval,
    min_quantile_units,
    quantile_ranks,
    wilson_interval,
)
from proctor.errors import FieldMissing
from proctor.records.fields.path import parse_path
from proctor.records.fields.view import view_as_mapping
from proctor.records.metric import MetricValue
from proctor.records.numbers import as_number
from proctor.records.results import Column, Results, find_cluster, list_shared_clusters
from proctor.records.score import SKIPPED_BY_DESIGN, Score, read_parts
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

CLUSTERED = "clustered"
ALL_EQUAL = "all values are equal: no interval"
# The prefix of the metrics of fields.
FIELD_PREFIX = "field"


def estimate_rate(passed: int, n: int, *, errors: int = 0, skipped: int = 0) -> MetricValue:
    """Return the rate of independent results, with Wilson's interval."""
    value = passed / n if n else None
    return MetricValue(value, n, errors, skipped, wilson_interval(passed, n), kind="rate")


def estimate_clustered_rate(flags: Column) -> MetricValue:
    """Return the rate of clustered results, from a column of numbers from 0 to 1."""
    interval, note = _estimate_clustered_interval(flags, is_rate=True)
    n = len(flags.values)
    return MetricValue(mean(flags.values), n, flags.errors, flags.skipped, interval, kind="rate", note=note)


def estimate_mean(column: Column, unit: str = "") -> MetricValue:
    """Return the mean of a column; its interval is limited to numbers of at least 0, and scores of at most 1."""
    interval, note = _estimate_mean_interval(column, is_score=not unit)
    if interval is not None:
        interval = max(0.0, interval[0]), interval[1] if unit else min(1.0, interval[1])
    n = len(column.values)
    estimate_fields = (mean(column.values), n, column.errors, column.skipped, interval)
    return MetricValue(*estimate_fields, kind="mean", unit=unit, note=note)


def estimate_quantiles(column: Column, shares: Sequence[float], unit: str = "") -> list[MetricValue]:
    """Return quantiles of a column, each with the interval between two of its values."""
    values, clusters = column.values, column.clusters
    units = len(values) if clusters is None else int(effective_clusters(clusters))
    ranks = [quantile_ranks(share, len(values), units) for share in shares]
    ordered = order_values(values, shares, [rank for pair in ranks if pair is not None for rank in pair])
    estimates = []
    for share, pair in zip(shares, ranks, strict=True):
        interval = None if pair is None else (ordered[pair[0]], ordered[pair[1]])
        note = "" if clusters is None else CLUSTERED
        if interval is None and values:
            counted = "values" if clusters is None else "clusters"
            note = f"fewer than {min_quantile_units(share)} {counted}: no interval"
        figures = quantile(ordered, share), len(values), column.errors, column.skipped, interval
        estimates.append(MetricValue(*figures, kind="quantile", unit=unit, note=note))
    return estimates


def estimate_unbounded_mean(column: Column) -> MetricValue:
    """Return the mean of a column of any numbers."""
    interval, note = _estimate_mean_interval(column, is_score=False)
    n = len(column.values)
    return MetricValue(mean(column.values), n, column.errors, column.skipped, interval, note=note)


def _estimate_mean_interval(column: Column, *, is_score: bool) -> tuple[Interval | None, str]:
    """Return the interval of a mean, and a note.

    Scores of 0 and 1 are rates and get the interval of rates; equal values of another size have no spread and get no
    interval.
    """
    values, clusters = column.values, column.clusters
    ones = values.count(1.0) if is_score else 0
    is_rate = is_score and len(values) > 1 and (ones == len(values) or ones + values.count(0.0) == len(values))
    if is_rate and clusters is None:
        return wilson_interval(ones, len(values)), ""
    if not is_rate and len(values) > 1 and _are_equal(values):
        return None, ALL_EQUAL
    if clusters is None or not values:
        return mean_interval(values), ""
    return _estimate_clustered_interval(column, is_rate=is_rate)


def _are_equal(values: array[float]) -> bool:
    return values[0] == values[1] == values[-1] and values.count(values[0]) == len(values)


def _estimate_clustered_interval(column: Column, *, is_rate: bool) -> tuple[Interval | None, str]:
    clusters = column.clusters or ()
    if not column.values:
        return None, ""
    estimate = clustered_rate_interval if is_rate else clustered_mean_interval
    interval = estimate(column.values, clusters)
    if interval is not None:
        return interval, CLUSTERED
    problem = find_cluster_problem(clusters)
    return None, f"{CLUSTERED}, {'with ' if problem == TOO_FEW_CLUSTERS else ''}{problem}: no interval"


def compute_outcome_rate(results: Results, counted: Mapping[Outcome, float], *, skipped: int = 0) -> MetricValue:
    """Return the rate of results by outcome; `counted` holds 1 or 0 for each outcome that counts."""
    outcomes, clusters = results.outcomes(), results.clusters()
    by_outcome = [counted.get(outcome) for outcome in OUTCOMES]
    if clusters is None:
        counts = [outcomes.count(index) for index in range(len(OUTCOMES))]
        n = sum(count for count, value in zip(counts, by_outcome, strict=True) if value is not None)
        passed = sum(count for count, value in zip(counts, by_outcome, strict=True) if value)
        return estimate_rate(passed, n, skipped=skipped)
    values = [by_outcome[outcome] for outcome in outcomes]
    flags = Column(
        array("d", (value for value in values if value is not None)),
        skipped=skipped,
        clusters=[c for c, value in zip(clusters, values, strict=True) if value is not None],
    )
    return estimate_clustered_rate(flags)


class FieldsMetric:
    """The mean of every selected field that has numbers, and of each of its evaluators' scores.

    `field.tokens` is the mean of a field, `field.output.coherence` the mean of an evaluator's score. Booleans count as
    0 and 1, so their mean is the fraction that is true. Results without the number count as skipped, failed results as
    errors.
    """

    name = FIELD_PREFIX

    def __init__(self, fields: Mapping[str, str], evaluated: Collection[str] | None = None) -> None:
        self._paths = {name: parse_path(path) for name, path in fields.items()}
        self._evaluated = self._paths if evaluated is None else evaluated

    def compute(self, results: Results) -> dict[str, MetricValue]:
        numbers: dict[str, _Numbers] = {}
        scores: dict[str, _Numbers] = {}
        total, errors = 0, 0
        for result in results:
            total += 1
            errors += not result.success
            cluster = find_cluster(result)
            for name, number in self._read_numbers(result):
                numbers.setdefault(name, _Numbers()).add(number, cluster)
            for name, score in self._read_scores(result):
                scores.setdefault(name, _Numbers()).add_score(score, cluster)
        return {
            **{
                name: estimate_unbounded_mean(field_numbers.column(total, errors))
                for name, field_numbers in numbers.items()
            },
            **{name: estimate_mean(field_numbers.column(total, errors)) for name, field_numbers in scores.items()},
        }

    def _read_numbers(self, result: EvalResult) -> Iterator[tuple[str, float]]:
        if not result.success:
            return
        view = view_as_mapping(result.trial)
        for name, path in self._paths.items():
            with contextlib.suppress(FieldMissing):
                if (number := as_number(path.find(view))) is not None:
                    yield name, number

    def _read_scores(self, result: EvalResult) -> Iterator[tuple[str, Score]]:
        for name in self._evaluated:
            score = result.scores.get(name)
            for part, part_score in read_parts(score).items() if score is not None else ():
                yield f"{name}.{part}", part_score


class _Numbers:
    def __init__(self) -> None:
        self._values = array("d")
        self._clusters: list[str] = []
        self._skipped_by_design = 0

    def add_score(self, score: Score, cluster: str) -> None:
        if score.value is not None:
            self.add(score.value, cluster)
        elif score.reason in SKIPPED_BY_DESIGN:
            self._skipped_by_design += 1

    def add(self, value: float, cluster: str) -> None:
        self._values.append(value)
        self._clusters.append(cluster)

    def column(self, total: int, errors: int) -> Column:
        """Return the numbers as a column; results without a number or an error count as skipped."""
        skipped = max(0, total - errors - len(self._values) - self._skipped_by_design)
        clusters = list_shared_clusters(self._clusters)
        return Column(self._values, errors=errors, skipped=skipped, clusters=clusters)
