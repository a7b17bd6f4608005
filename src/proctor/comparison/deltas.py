"""Compute the delta of every metric, score and field between two sides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.evidence import Evidence, estimate_interval
from proctor.comparison.sides import (
    LOWER_IS_BETTER,
    Side,
    ValuesBySample,
    align_numbers,
    find_clusters,
    is_latency,
    is_latency_of_two_runs,
)
from proctor.comparison.statistics import compare_statistic
from proctor.comparison.verdicts import DIFFERENT_MOMENTS, adjust_deltas, count_tests, find_min_difference
from proctor.core.stats.descriptive import mean
from proctor.core.stats.intervals import MIN_CLUSTERS
from proctor.records.comparison import MIN_DIFFERENCE, Interval, MetricDelta, list_aliases
from proctor.records.formatting import Kind
from proctor.records.numbers import higher_is_better

Deltas = dict[str, MetricDelta]
Pair = tuple[Side, Side]


class PairDeltas(NamedTuple):
    """The deltas of two sides by group, and the number of tests that they are corrected for."""

    metrics: Deltas
    scores: Deltas
    fields: Deltas
    tests: int


class _Candidate(NamedTuple):
    """A delta without a verdict, its position, and the numbers that it was computed from."""

    pair: int
    group: str
    delta: MetricDelta
    numbers: tuple[ValuesBySample, ValuesBySample]

    def is_same_test(self, other: _Candidate) -> bool:
        a, b = self.delta, other.delta
        return (a.p, a.n, a.absolute) == (b.p, b.n, b.absolute) and self.numbers == other.numbers


def collect_evidence(a: Side, b: Side, a_numbers: ValuesBySample, b_numbers: ValuesBySample) -> Evidence:
    """Pair the numbers of two sides by sample, or treat them as two groups if no sample is in both."""
    excluded = a.different_samples or ()
    shared = [*a_numbers]
    first: Sequence[Any] = align_numbers(a_numbers, shared)
    second: Sequence[Any] = align_numbers(b_numbers, shared)
    if excluded or (isinstance(second, list) and None in second):
        shared = [name for name in a_numbers if name in b_numbers and name not in excluded]
        first, second = ([numbers[name] for name in shared] for numbers in (a_numbers, b_numbers))
    if shared or not a_numbers or not b_numbers:
        return Evidence(first, second, clusters=find_clusters(shared, a.clusters, b.clusters))
    clusters = find_clusters([*a_numbers], a.clusters), find_clusters([*b_numbers], b.clusters)
    if any(clusters):
        clusters = clusters[0] or [*a_numbers], clusters[1] or [*b_numbers]
    return Evidence([*a_numbers.values()], [*b_numbers.values()], False, *clusters)


class _EvidenceCache:
    """Collects evidence once for metrics with the same numbers, as the pass rate and score of a single evaluator."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Evidence] = {}

    def collect(self, a: Side, b: Side, numbers: tuple[ValuesBySample, ValuesBySample]) -> Evidence:
        key = id(a), id(b), id(numbers[0]), id(numbers[1])
        if key not in self._known:
            self._known[key] = collect_evidence(a, b, *numbers).compact()
        return self._known[key]


def _compute_delta(
    a: Side, b: Side, name: str, numbers: tuple[ValuesBySample, ValuesBySample], kind: Kind, evidence: Evidence
) -> MetricDelta:
    """Compute the delta of one number, without its verdict, which depends on all other deltas."""
    a_numbers, b_numbers = numbers
    a_mean, b_mean = evidence.means
    if not evidence.first or not evidence.second:
        a_mean, b_mean = mean([*a_numbers.values()]), mean([*b_numbers.values()])
    absolute = evidence.difference
    p, method = evidence.probability
    if absolute is not None and is_latency_of_two_runs(name, a, b):
        p, method = None, DIFFERENT_MOMENTS
    b_clusters = evidence.clusters if evidence.second_clusters is None else evidence.second_clusters
    clusters = None if evidence.clusters is None else len({*evidence.clusters, *(b_clusters or ())})
    pairs = evidence.n if evidence.paired else 0
    interval = evidence.interval()
    return MetricDelta(
        name,
        a_mean,
        b_mean,
        absolute,
        100 * absolute / abs(b_mean) if absolute is not None and b_mean else None,
        evidence.n,
        interval,
        _estimate_side_interval(a, name, evidence, 0, b_numbers if evidence.paired else None),
        _estimate_side_interval(b, name, evidence, 1, a_numbers if evidence.paired else None),
        p=p,
        effect=evidence.effect,
        error=evidence.error,
        method=method,
        only_a=len(a_numbers) - pairs,
        only_b=len(b_numbers) - pairs,
        paired=evidence.paired,
        clusters=clusters,
        units=None if clusters is None else evidence.units,
        percentage_interval=evidence.percentage_interval(interval) if kind == "number" else None,
    )


def _estimate_side_interval(
    side: Side, name: str, evidence: Evidence, index: int, others: ValuesBySample | None
) -> Interval | None:
    """Return the interval of one side, by the rule of its own report: the epochs of a sample are a cluster.

    Its samples are those that are also in `others`, or all of them.
    """
    if side.has_epochs and evidence.sizes[index] < MIN_CLUSTERS:
        return None
    trials = side.list_epochs(name)
    if others is not None:
        excluded = side.different_samples or ()
        trials = [(sample, value) for sample, value in trials if sample in others and sample not in excluded]
    clusters = evidence.clusters if index == 0 or evidence.second_clusters is None else evidence.second_clusters
    values = (evidence.first, evidence.second)[index]
    return estimate_interval(values, clusters, trials, side.clusters, evidence.counts)


def compute_all_deltas(
    pairs: Sequence[Pair],
    *,
    siblings: Sequence[Pair] = (),
    better: Mapping[str, bool | None] | None = None,
    min_difference: float = MIN_DIFFERENCE,
) -> list[PairDeltas]:
    """Compute the deltas of every pair of sides, with verdicts corrected for all of them together.

    The correction also covers the tests of `siblings`, pairs whose deltas are not needed.
    """
    # A metric may be requested by the name that reports print.
    better = {
        **{
            alias: is_higher_better for name, is_higher_better in (better or {}).items() for alias in list_aliases(name)
        },
        **(better or {}),
    }
    cache = _EvidenceCache()
    candidates = [
        _Candidate(
            index,
            group,
            _describe_scale(
                _compute_delta(a, b, name, numbers, _find_kind(name, group)[0], cache.collect(a, b, numbers)),
                *_find_kind(name, group),
                better,
                min_difference,
                is_latency=is_latency(name, a, b),
            ),
            numbers,
        )
        for index, (a, b) in enumerate(pairs)
        for group, name, numbers in _list_numbers(a, b)
    ]
    candidates += (
        _Candidate(index, group, _compute_test(a, b, name, cache.collect(a, b, numbers)), numbers)
        for index, (a, b) in enumerate(siblings, len(pairs))
        for group, name, numbers in _list_numbers(a, b)
    )
    candidates += (
        _compute_statistic(index, a, b, name, better, min_difference)
        for index, (a, b) in enumerate([*pairs, *siblings])
        for name in dict.fromkeys([*a.statistics, *b.statistics])
    )
    deltas, tests = [candidate.delta for candidate in candidates], _number_tests(candidates)
    test_count = count_tests(deltas, tests)
    by_pair: list[dict[str, Deltas]] = [{"metric": {}, "score": {}, "field": {}} for _ in [*pairs, *siblings]]
    for candidate, delta in zip(candidates, adjust_deltas(deltas, tests), strict=True):
        by_pair[candidate.pair][candidate.group][delta.name] = delta
    by_pair = by_pair[: len(pairs)]
    return [PairDeltas(groups["metric"], groups["score"], groups["field"], test_count) for groups in by_pair]


def _list_numbers(a: Side, b: Side) -> Iterator[tuple[str, str, tuple[ValuesBySample, ValuesBySample]]]:
    """Yield the group, the name and the numbers of everything that two sides can be compared by."""
    tables = ("metric", a.metrics, b.metrics), ("score", a.scores, b.scores), ("field", a.fields, b.fields)
    for group, a_table, b_table in tables:
        for name in dict.fromkeys([*a_table, *b_table]):
            yield group, name, (a_table.get(name, {}), b_table.get(name, {}))


def _compute_test(a: Side, b: Side, name: str, evidence: Evidence) -> MetricDelta:
    """Compute only what the correction for many tests needs of a delta."""
    absolute, (p, method) = evidence.difference, evidence.probability
    if absolute is not None and is_latency_of_two_runs(name, a, b):
        p, method = None, DIFFERENT_MOMENTS
    error, is_paired = evidence.error, evidence.paired
    return MetricDelta(name, absolute=absolute, n=evidence.n, p=p, error=error, method=method, paired=is_paired)


def _number_tests(candidates: Sequence[_Candidate]) -> list[int]:
    """Number the tests: candidates with the same numbers for the same samples are one test."""
    tests: list[int] = []
    for index, candidate in enumerate(candidates):
        same = (test for test in dict.fromkeys(tests) if candidates[test].is_same_test(candidate))
        tests.append(next(same, index))
    return tests


def _compute_statistic(
    index: int, a: Side, b: Side, name: str, better: Mapping[str, bool | None], min_difference: float
) -> _Candidate:
    delta = compare_statistic(a, b, name).make_delta(name)
    if delta.absolute is not None and is_latency_of_two_runs(name, a, b):
        delta = msgspec.structs.replace(delta, p=None, method=f"{delta.method}; {DIFFERENT_MOMENTS}")
    statistic = a.statistics.get(name) or b.statistics[name]
    scale = statistic.kind, statistic.higher_is_better, better, min_difference
    described_delta = _describe_scale(delta, *scale, is_latency=is_latency(name, a, b))
    # No other test has the same numbers.
    return _Candidate(index, "metric", described_delta, ({name: 0.0}, {}))


def _find_kind(name: str, group: str) -> tuple[Kind, bool | None]:
    is_resource = group == "metric" and name.startswith(LOWER_IS_BETTER)
    if group == "field" or is_resource:
        return "number", False if is_resource else higher_is_better(name)
    is_rate = name.endswith(("_rate", "accuracy")) or "pass_hat_k." in name or "pass_at_k." in name
    return "rate" if is_rate else "score", True


def _describe_scale(
    delta: MetricDelta,
    kind: Kind,
    direction: bool | None,
    better: Mapping[str, bool | None],
    min_difference: float,
    *,
    is_latency: bool,
) -> MetricDelta:
    """Add the kind of a delta, its direction and smallest relevant difference; clip its intervals."""
    # Latencies, tokens and costs cannot be negative; a field may be any number.
    minimum = 0.0 if kind != "number" or delta.name.startswith(LOWER_IS_BETTER) else -math.inf
    limits = minimum, math.inf if kind == "number" else 1.0
    return msgspec.structs.replace(
        delta,
        kind=kind,
        higher_is_better=better.get(delta.name, direction),
        min_difference=find_min_difference(kind, delta.b, min_difference, is_latency=is_latency),
        interval=delta.interval if kind == "number" else clip_interval(delta.interval, -1.0, 1.0),
        a_interval=clip_interval(delta.a_interval, *limits),
        b_interval=clip_interval(delta.b_interval, *limits),
    )


def clip_interval(interval: Interval | None, minimum: float, maximum: float) -> Interval | None:
    """Limit an interval to a range."""
    return interval and (max(minimum, interval[0]), min(maximum, interval[1]))
