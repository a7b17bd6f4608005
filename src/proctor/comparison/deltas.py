"""Two sides beside each other, number by number: what the first is beside the second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from proctor.comparison.evidence import Evidence, interval_of
from proctor.comparison.sides import LOWER_IS_BETTER, Numbers, Side, are_times_apart, clusters_of
from proctor.comparison.verdicts import TIMES_APART, WORTH, adjusted, in_family, smallest_worth
from proctor.core.stats.descriptive import mean
from proctor.records.comparison import Interval, MetricDelta
from proctor.records.fields.numbers import higher_is_better
from proctor.records.wording import Kind

Deltas = dict[str, MetricDelta]
Pair = tuple[Side, Side]


class Compared(NamedTuple):
    """The deltas of two sides by what they are of, and for how many tests they are corrected."""

    metrics: Deltas
    scores: Deltas
    fields: Deltas
    tests: int


class _Found(NamedTuple):
    """A delta without its verdict, where it belongs, and the numbers that it was made of."""

    pair: int
    group: str
    delta: MetricDelta
    numbers: tuple[Numbers, Numbers]


def evidence_of(a: Side, b: Side, mine: Numbers, theirs: Numbers) -> Evidence:
    """The numbers of two sides, paired by sample; as two groups where no sample is in both."""
    apart = a.apart or ()
    shared = [name for name in mine if name in theirs and name not in apart]
    if shared or not mine or not theirs:
        first, second = ([side[name] for name in shared] for side in (mine, theirs))
        return Evidence(first, second, clusters=clusters_of(shared, a.clusters, b.clusters))
    groups = clusters_of([*mine], a.clusters), clusters_of([*theirs], b.clusters)
    if any(groups):
        groups = groups[0] or [*mine], groups[1] or [*theirs]
    return Evidence([*mine.values()], [*theirs.values()], False, *groups)


def delta_of(a: Side, b: Side, name: str, mine: Numbers, theirs: Numbers) -> MetricDelta:
    """What one number is on side a beside side b; its verdict is not known before all are."""
    found = evidence_of(a, b, mine, theirs)
    one, other = mean(found.first), mean(found.second)
    if not found.first or not found.second:
        one, other = mean([*mine.values()]), mean([*theirs.values()])
    absolute = found.difference
    p, method = found.probability()
    of_b = found.clusters if found.second_clusters is None else found.second_clusters
    clusters = None if found.clusters is None else len({*found.clusters, *(of_b or ())})
    pairs = found.n if found.pairs else 0
    return MetricDelta(
        name,
        one,
        other,
        absolute,
        100 * absolute / abs(other) if absolute is not None and other else None,
        found.n,
        found.interval(),
        interval_of(found.first, found.clusters),
        interval_of(found.second, of_b),
        p=p,
        effect=found.effect,
        error=found.error,
        method=method,
        only_a=len(mine) - pairs,
        only_b=len(theirs) - pairs,
        paired=found.pairs,
        clusters=clusters,
        units=None if clusters is None else found.units,
    )


def all_deltas(
    pairs: Sequence[Pair], *, better: Mapping[str, bool | None] | None = None, worth: float = WORTH
) -> list[Compared]:
    """The deltas of every pair of sides, their verdicts corrected for how many there are in all."""
    found = [
        _Found(
            place,
            group,
            _described(_timed(a, b, delta_of(a, b, name, *held)), group, better or {}, worth),
            held,
        )
        for place, (a, b) in enumerate(pairs)
        for group, mine, theirs in _tables(a, b)
        for name in dict.fromkeys([*mine, *theirs])
        for held in [(mine.get(name, {}), theirs.get(name, {}))]
    ]
    deltas, tests = [one.delta for one in found], _tests(found)
    family = in_family(deltas, tests)
    together: list[dict[str, Deltas]] = [{"metric": {}, "score": {}, "field": {}} for _ in pairs]
    for one, delta in zip(found, adjusted(deltas, tests), strict=True):
        together[one.pair][one.group][delta.name] = delta
    return [Compared(of["metric"], of["score"], of["field"], family) for of in together]


def _timed(a: Side, b: Side, delta: MetricDelta) -> MetricDelta:
    """Times of two runs without a probability: what a moment gave is no sample of moments."""
    if not are_times_apart(delta.name, a, b):
        return delta
    return msgspec.structs.replace(delta, p=None, method=TIMES_APART)


def _tests(found: Sequence[_Found]) -> list[int]:
    """Which test each is: the first that has the same numbers for the same samples."""
    first: list[int] = []
    for place, one in enumerate(found):
        twins = (t for t in dict.fromkeys(first) if _are_twins(found[t], one))
        first.append(next(twins, place))
    return first


def _are_twins(one: _Found, other: _Found) -> bool:
    same = (one.delta.p, one.delta.n, one.delta.absolute)
    if same != (other.delta.p, other.delta.n, other.delta.absolute):
        return False
    return one.numbers == other.numbers


def _tables(a: Side, b: Side) -> tuple[tuple[str, Mapping[str, Numbers], Mapping[str, Numbers]], ...]:
    return (("metric", a.metrics, b.metrics), ("score", a.scores, b.scores), ("field", a.fields, b.fields))


def _direction(name: str, group: str, told: Mapping[str, bool | None]) -> bool | None:
    if name in told:
        return told[name]
    if group == "field":
        return higher_is_better(name)
    return name not in LOWER_IS_BETTER


def _described(delta: MetricDelta, group: str, told: Mapping[str, bool | None], worth: float) -> MetricDelta:
    kind: Kind = "number"
    if group == "score" or (group == "metric" and delta.name not in LOWER_IS_BETTER):
        kind = "rate" if delta.name.endswith("pass_rate") else "score"
    return msgspec.structs.replace(
        delta,
        kind=kind,
        higher_is_better=_direction(delta.name, group, told),
        worth=smallest_worth(kind, delta.b, worth),
        interval=_within(delta.interval, kind, -1.0),
        a_interval=_within(delta.a_interval, kind, 0.0),
        b_interval=_within(delta.b_interval, kind, 0.0),
    )


def _within(interval: Interval | None, kind: Kind, least: float) -> Interval | None:
    """An interval as far as there can be such a number: no rate lies above 1."""
    if interval is None or kind == "number":
        return interval
    return max(least, interval[0]), min(1.0, interval[1])
