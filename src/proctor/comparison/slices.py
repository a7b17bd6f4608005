"""Slices of samples by metadata or tag: their metrics, and their comparisons with corrections for many slices."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.coverage import compute_coverage
from proctor.comparison.deltas import Pair, PairDeltas, clip_interval, collect_evidence, compute_all_deltas
from proctor.comparison.sides import Side
from proctor.comparison.totals import delta_to_scale, find_total_scale
from proctor.comparison.verdicts import LEVEL
from proctor.errors import ConfigError
from proctor.metrics.builtin import RubricTotalMetric
from proctor.metrics.registry import MetricRegistry, compute_metric
from proctor.records.comparison import NOT_COMPARABLE, ComparedSlice, ComparedSlices, Comparison, MetricDelta
from proctor.records.formatting import change_unit, format_change, format_changes, format_confidence
from proctor.records.metric import Metric, MetricValue
from proctor.records.numbers import is_number
from proctor.records.results import Results
from proctor.records.rubric import read_run_columns
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.selection import MISSING, label_value, list_values, unknown_key_problem
from proctor.records.slices import Slice, Slices, Tables
from proctor.records.subset import ResultSubset, WholeResults

# More different numbers than this are grouped into bins.
MAX_NUMBERS = 12
MAX_BINS = 5
# With more slices than this, a key does not form groups.
MAX_SLICES = 50


class Slicing(NamedTuple):
    """The sample ids of each slice by its label."""

    key: str
    groups: dict[str, frozenset[str]]
    overlapping: bool = False
    binned: bool = False


def slice_samples(samples: Iterable[Sample[Any, Any]], key: str) -> Slicing:
    """Group samples by the values of a metadata key; lists, such as tags, put a sample into several groups.

    More than 12 different numbers become at most 5 ranges with about the same number of samples. The first of several
    samples with the same id counts.
    """
    # Samples are first grouped by the representation of their values, so that each value is labelled once.
    by_text: dict[str, tuple[list[Any], list[str]]] = {}
    seen: set[str] = set()
    unusable: list[Sample[Any, Any]] = []
    for sample in samples:
        if sample.id in seen:
            continue
        seen.add(sample.id)
        own_values = list_values(sample.metadata, key)
        _, ids = by_text.setdefault(repr(own_values), (own_values, []))
        ids.append(sample.id)
        is_new = len(ids) == 1
        if (not own_values and len(by_text) == 1) or (is_new and any(isinstance(v, Mapping) for v in own_values)):
            unusable.append(sample)
    known_values = [value for values, _ in by_text.values() for value in values]
    if not known_values or any(isinstance(value, Mapping) for value in known_values):
        problem = unknown_key_problem(key, unusable)
        raise ConfigError(problem.what, where="by", fix=problem.fix)
    is_overlapping = any(len(values) > 1 for values, _ in by_text.values())
    numbers = [as_finite(value) for value in known_values]
    bins: dict[float | None, str] = {}
    if None not in numbers and len({*numbers}) > MAX_NUMBERS and not is_overlapping:
        counted = ((as_finite(value), len(ids)) for values, ids in by_text.values() for value in values)
        bins = _label_bins([number for number, count in counted if number is not None for _ in range(count)])
    groups: dict[str, set[str]] = {}
    for values, ids in by_text.values():
        for name in [bins[as_finite(value)] if bins else label_value(value) for value in values] or [MISSING]:
            groups.setdefault(name, set()).update(ids)
    if len(groups) > MAX_SLICES:
        raise ConfigError(
            f"{key!r} has {len(groups):,} different values in {len(seen):,} samples, and slices need at most "
            f"{MAX_SLICES}",
            where="by",
            fix="choose a key with fewer values",
        )
    order = list(dict.fromkeys(bins.values())) or sorted(groups, key=lambda name: _sort_key(name, groups[name]))
    names = [name for name in order if name != MISSING] + [MISSING] * (MISSING in groups)
    return Slicing(key, {name: frozenset(groups[name]) for name in names}, is_overlapping, bool(bins))


def as_finite(value: Any) -> float | None:
    """Return a number, or a string that is one, as in a CSV file; None for anything else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if is_number(value) else None


def _label_bins(numbers: Sequence[float]) -> dict[float | None, str]:
    """Return the label of each number: the lowest and highest number of its bin, in ascending order."""
    ordered = sorted(numbers)
    # Equal numbers are always in the same bin, so there may be fewer bins.
    ends = sorted({ordered[(len(ordered) * (index + 1) - 1) // MAX_BINS] for index in range(MAX_BINS)})
    bins: dict[int, list[float]] = {}
    for number in sorted(set(ordered)):
        bins.setdefault(bisect_left(ends, number), []).append(number)
    return {
        number: f"{label_value(members[0])} to {label_value(members[-1])}" if len(members) > 1 else label_value(number)
        for members in bins.values()
        for number in members
    }


def _sort_key(label: str, ids: Collection[str]) -> tuple[int, float, str]:
    number = as_finite(label)
    return (0, number, label) if number is not None else (1, -len(ids), label)


def slice_results(
    results: Results,
    run: RunMetadata | None,
    configurations: Sequence[str],
    key: str,
    total: Tables,
    *,
    metric: Metric | None = None,
    samples: Iterable[Sample[Any, Any]] | None = None,
) -> Slices:
    """Compute all metrics, or one, of each slice and configuration; `samples` are those of the results, if known."""
    wholes = {name: WholeResults(results.for_configuration(name)) for name in configurations}
    slicing = slice_samples(_list_samples_once(wholes.values()) if samples is None else samples, key)
    tables: dict[str, dict[str, dict[str, MetricValue]]] = {label: {} for label in slicing.groups}
    for configuration, whole in wholes.items():
        registry = _make_registry(run, whole)
        for label, ids in slicing.groups.items():
            subset = ResultSubset(whole, ids)
            tables[label][configuration] = (
                registry.compute_all(subset) if metric is None else compute_metric(metric, subset)
            )
    slices = tuple(Slice(label, len(ids), tables[label]) for label, ids in slicing.groups.items())
    return Slices(key, slices, total, slicing.overlapping, slicing.binned)


def _list_samples_once(wholes: Iterable[WholeResults]) -> Iterator[Sample[Any, Any]]:
    """Yield the samples of each configuration that has samples which those before it lack: most often, of the first."""
    known: set[str] = set()
    for whole in wholes:
        if not known.issuperset(whole.figures.sample_ids):
            known.update(whole.figures.sample_ids)
            yield from whole.results.samples()


def _make_registry(run: RunMetadata | None, whole: WholeResults) -> MetricRegistry:
    if run is None:
        return MetricRegistry.standard(whole.figures.scores)
    registry = MetricRegistry.of_run(run.evaluators, run.fields, run.options.epochs)
    if (columns := read_run_columns(run)).columns:
        registry.register(RubricTotalMetric(columns))
    return registry


def restrict_side(side: Side, ids: Collection[str], whole: WholeResults | None = None) -> Side:
    """Return a side with only some of its samples, and only with metrics that have a number per sample.

    `whole` are the results of the side, whose columns several slices share.
    """
    if whole is None and side.results is not None:
        whole = WholeResults(side.results)
    names = ("metrics", "scores", "fields")
    tables = {
        name: {
            metric: restricted
            for metric, numbers in getattr(side, name).items()
            if (restricted := {sample: value for sample, value in numbers.items() if sample in ids})
        }
        for name in names
    }
    different = side.different_samples
    return msgspec.structs.replace(
        side,
        **tables,
        samples=tuple(sample for sample in side.samples if sample in ids),
        different_samples=None if different is None else different & frozenset(ids),
        results=None if whole is None else ResultSubset(whole, ids),
        figures=None,
        statistics={},
        stored={},
    )


def compare_slices(
    pairs: Sequence[Pair],
    totals: Sequence[Comparison],
    key: str,
    *,
    better: Mapping[str, bool | None] | None = None,
    min_difference: float,
    accept_changes: bool = False,
    is_restricted: bool = False,
) -> list[ComparedSlices]:
    """Compare every slice of every pair of sides, with corrections for all of them together.

    Rates and scores are compared, and other numbers if the metrics are `is_restricted` to named ones. Metrics that are
    not comparable in total are left out.
    """
    slicings, sliced, owners = [], [], []
    for index, ((a, b), total) in enumerate(zip(pairs, totals, strict=True)):
        slicing = slice_samples(chain.from_iterable(_list_samples(side) for side in (a, b)), key)
        slicings.append(slicing)
        names = {delta.name for delta in _list_sliced_deltas(total, is_restricted)}
        first, second = (_keep_metrics(side, names) for side in (a, b))
        wholes = [None if side.results is None else WholeResults(side.results) for side in (a, b)]
        for label, ids in slicing.groups.items():
            sliced.append((restrict_side(first, ids, wholes[0]), restrict_side(second, ids, wholes[1])))
            owners.append((index, label))
    deltas = compute_all_deltas(sliced, better=better, min_difference=min_difference)
    tests = deltas[0].tests if deltas else 0
    confidence = 1 - LEVEL / max(1, _count_intervals(deltas))
    slices: list[list[ComparedSlice]] = [[] for _ in pairs]
    for (index, label), pair, pair_deltas in zip(owners, sliced, deltas, strict=True):
        slices[index].append(_compare_slice(label, pair, pair_deltas, totals[index], confidence, accept_changes))
    return [
        ComparedSlices(
            key,
            tuple(found),
            tests,
            confidence,
            slicing.overlapping,
            slicing.binned,
            tuple(_describe_reversals(slicing, found, total, confidence)),
        )
        for slicing, found, total in zip(slicings, slices, totals, strict=True)
    ]


def _count_intervals(deltas: Iterable[PairDeltas]) -> int:
    """Count the intervals of all slices; metrics with the same numbers have the same interval."""
    return len(
        {
            (index, delta.n, delta.a, delta.b, delta.interval)
            for index, groups in enumerate(deltas)
            for table in (groups.metrics, groups.scores, groups.fields)
            for delta in table.values()
            if delta.interval is not None
        }
    )


def _list_samples(side: Side) -> Iterator[Sample[Any, Any]]:
    if side.results is None:
        raise ConfigError(f"{side.name} has no results to slice", where="by", fix="compare runs that have results")
    return side.results.samples()


def _list_sliced_deltas(total: Comparison, is_restricted: bool) -> list[MetricDelta]:
    deltas = list(total.all_deltas()) if is_restricted else total.essential()
    return [d for d in deltas if d.verdict != NOT_COMPARABLE and (is_restricted or d.kind != "number")]


def _keep_metrics(side: Side, names: Collection[str]) -> Side:
    tables = {
        table: {name: numbers for name, numbers in getattr(side, table).items() if name in names}
        for table in ("metrics", "scores", "fields")
    }
    return msgspec.structs.replace(side, **tables)


def _compare_slice(
    label: str, pair: Pair, deltas: PairDeltas, total: Comparison, confidence: float, accept_changes: bool
) -> ComparedSlice:
    a, b = pair
    coverage = [] if accept_changes else compute_coverage(a, b)
    is_uneven = len(coverage) > 1 and any(entry.is_uneven for entry in coverage)
    compared: dict[str, MetricDelta] = {}
    for table in (deltas.metrics, deltas.scores, deltas.fields):
        for name, delta in table.items():
            corrected = _correct_interval(delta, pair, confidence)
            # These combine all evaluators, as in the total.
            if is_uneven and name in ("pass_rate", "strict_pass_rate", "mean_score", "total_score"):
                corrected = msgspec.structs.replace(corrected, verdict=NOT_COMPARABLE, p=None, p_adjusted=None)
            compared[name] = delta_to_scale(corrected, find_total_scale(a.run), find_total_scale(b.run))
    shared = (set(a.samples) & set(b.samples)) - (a.different_samples or frozenset())
    reversed_names = tuple(name for name, delta in compared.items() if _is_reversed(delta, total.find(name)))
    return ComparedSlice(label, len(shared), compared, reversed_names)


def _correct_interval(delta: MetricDelta, pair: Pair, confidence: float) -> MetricDelta:
    """Widen the interval of a delta to the confidence of all slices; withdraw "no relevant difference" if need be."""
    tables = zip(*((side.metrics, side.scores, side.fields) for side in pair), strict=True)
    numbers = next((a.get(delta.name, {}), b.get(delta.name, {})) for a, b in tables if delta.name in {**a, **b})
    evidence = collect_evidence(*pair, *numbers).compact()
    interval = None if delta.interval is None else evidence.interval(confidence)
    percentage_interval = evidence.percentage_interval(interval) if delta.kind == "number" else None
    if delta.kind != "number":
        interval = clip_interval(interval, -1.0, 1.0)
    is_equal = delta.verdict == "no relevant difference"
    if is_equal and interval is not None and max(-interval[0], interval[1]) > delta.min_difference:
        delta = msgspec.structs.replace(delta, verdict="not enough evidence")
    return msgspec.structs.replace(delta, interval=interval, percentage_interval=percentage_interval)


def _is_reversed(delta: MetricDelta, total: MetricDelta | None) -> bool:
    if total is None or not total.absolute or not delta.absolute or delta.interval is None:
        return False
    is_significant = delta.p_adjusted is not None and delta.p_adjusted <= LEVEL
    excludes_zero = delta.interval[0] > 0 or delta.interval[1] < 0
    return (delta.absolute > 0) is not (total.absolute > 0) and is_significant and excludes_zero


def _describe_reversals(
    slicing: Slicing, slices: Iterable[ComparedSlice], total: Comparison, confidence: float
) -> Iterator[str]:
    for each in slices:
        described: list[MetricDelta] = []
        for name in each.reversed:
            delta, whole = each.deltas[name], total.find(name)
            if whole is None or any(delta.has_same_numbers(other) for other in described):
                continue
            described.append(delta)
            unit = change_unit(delta.kind)
            yield (
                f"{slicing.key} {each.label} says the opposite of the total: {name} "
                f"{format_change(delta.absolute, delta.kind)}{unit} ({format_confidence(confidence)} "
                f"{format_changes(delta.interval, delta.kind)}, n = {delta.n:,}), total "
                f"{format_change(whole.absolute, whole.kind)}{unit} ({whole.verdict})"
            )
