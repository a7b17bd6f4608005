"""A difference held against a margin: where it lies, what that says, and how many more it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from proctor.comparison.enough import Held, Part, ahead, more_for_a_verdict
from proctor.comparison.evidence import Evidence
from proctor.comparison.verdicts import PLENTY, has_rare_ones, parts_of, with_rare_ones
from proctor.records.comparison import Interval, MetricDelta
from proctor.records.gate import GateVerdict
from proctor.records.wording import Kind
from proctor.statistics.differences import differences
from proctor.statistics.distributions import normal_quantile
from proctor.statistics.intervals import mean_interval, wilson_interval
from proctor.statistics.moments import mean
from proctor.statistics.non_inferiority import Better, non_inferiority
from proctor.statistics.proportions import difference_interval, paired_interval

LEVEL = 0.05


class Judged(NamedTuple):
    """Where a difference lies, whether it keeps the margin, and about how many more would tell."""

    interval: Interval | None
    verdict: GateVerdict
    more_samples: int | None = None


def judged(delta: MetricDelta, found: Evidence, margin: float, family: int = 1) -> Judged:
    """Hold a difference against a margin in its own unit, as one of a family of checks."""
    better: Better = "higher" if delta.higher_is_better else "lower"
    interval = _interval(delta, found, margin, 1 - LEVEL)
    verdict: GateVerdict = "inconclusive"
    if interval is not None:
        verdict = non_inferiority(interval, margin, better)
    if verdict == "fail" and family > 1:
        surer = _interval(delta, found, margin, 1 - LEVEL / family)
        if surer is None or non_inferiority(surer, margin, better) != "fail":
            verdict = "inconclusive"
    needed = _needed(delta, found, margin, family) if verdict == "inconclusive" else None
    return Judged(interval, verdict, needed)


def bounds_of(found: Evidence, kind: Kind, confidence: float = 1 - LEVEL) -> Interval | None:
    """Where the true difference lies, also where all pairs differ by the same.

    None where the samples cannot tell it: one alone, or clusters that are too few. Of scores it
    reaches as far down as so many samples cannot rule out.
    """
    if found.too_few_clusters:
        return None
    interval, units = found.interval(confidence), found.units
    if interval is None and not found.pairs:
        return _of_groups(found, kind, confidence)
    if interval is not None:
        means = mean(found.first) or 0.0, mean(found.second) or 0.0
        if kind == "number" or (found.is_binary and found.clusters is None):
            return interval
        # What is rare may make it worse than it looks; that it is bad is known by what is seen.
        return with_rare_ones(interval, means, units, confidence)[0], interval[1]
    apart = differences(found.first, found.second)
    if units < 2 or any(differences(apart, apart[:1] * len(apart))):
        return None
    if kind == "number":
        return (apart[0], apart[0]) if units >= PLENTY else None
    # At most so many of all samples differ otherwise, and a score by no more than 1.
    share = wilson_interval(0, units, confidence)
    most = (1 + abs(apart[0])) * (1.0 if share is None else share[1])
    return apart[0] - most, apart[0] + most


def _of_groups(found: Evidence, kind: Kind, confidence: float) -> Interval | None:
    """Where the difference of two groups lies if all scores of one are equal.

    Each mean has its own interval, and the ends of both make those of the difference (Newcombe's
    way). That all are equal is no proof: as many may differ as are not ruled out.
    """
    if kind == "number" or found.clusters is not None or found.n < 2:
        return None
    (a, (low_a, high_a)), (b, (low_b, high_b)) = (
        _of_scores(side, confidence) for side in (found.first, found.second)
    )
    return a - b - math.hypot(a - low_a, high_b - b), a - b + math.hypot(high_a - a, b - low_b)


def _of_scores(values: Sequence[float], confidence: float) -> tuple[float, Interval]:
    centre, known = mean(values) or 0.0, mean_interval(values, confidence)
    if known is None or known[0] == known[1]:
        share = wilson_interval(0, len(values), confidence)
        most = 1.0 if share is None else share[1]
        known = centre - most * centre, centre + most * (1 - centre)
    return centre, (max(0.0, known[0]), min(1.0, known[1]))


def _interval(
    delta: MetricDelta, found: Evidence, margin: float, confidence: float
) -> Interval | None:
    """Where the difference lies, seen from the margin.

    A margin that is a part of the baseline is known no better than the baseline. So the new one is
    held against each sample's number with the margin on it, and the interval moved back by the
    margin that is told.
    """
    plain = bounds_of(found, delta.kind, confidence)
    scaled = _on_margin(delta, found, margin)
    if plain is None or plain[0] == plain[1] or scaled is None:
        return plain
    interval, moved = scaled.interval(confidence), (mean(scaled.second) or 0.0) - (delta.b or 0.0)
    return plain if interval is None else (interval[0] + moved, interval[1] + moved)


def _on_margin(delta: MetricDelta, found: Evidence, margin: float) -> Evidence | None:
    if delta.kind != "number" or not margin or not delta.b:
        return None
    factor = 1 + (-margin if delta.higher_is_better else margin) / delta.b
    worse = [factor * value for value in found.second]
    return Evidence(found.first, worse, found.pairs, found.clusters, found.second_clusters)


def _needed(delta: MetricDelta, found: Evidence, margin: float, family: int) -> int | None:
    """About how many more samples lead to a verdict; None where that cannot be told."""
    if found.n < 2 or delta.absolute is None or found.too_few_clusters:
        return None
    room = (delta.absolute if delta.higher_is_better else -delta.absolute) + margin
    if abs(room) < 1e-12:
        return None
    # To fail takes more certainty than to pass, where there are several metrics.
    passes, fails = LEVEL / 2, LEVEL / 2 / family
    if delta.error or not found.pairs:
        error = delta.error or 0.0
        return _needed_of(delta, found, margin, Held(found.n, room, error, passes, fails))
    if delta.kind == "number":
        return max(1, PLENTY - found.n)
    # No two samples differ: how soon the interval of none in n lies within the margin.
    z = normal_quantile(1 - (passes if room > 0 else fails))
    enough = z * math.sqrt(2) / abs(room) - 2
    if not found.is_binary:
        enough = z * z * ((1 + abs(delta.absolute)) / abs(room) - 1)
    return max(1, math.ceil(enough) - found.n)


def _needed_of(delta: MetricDelta, found: Evidence, margin: float, held: Held) -> int | None:
    """The same where the samples differ, or are two groups."""
    scaled = _on_margin(delta, found, margin)
    error = (scaled.error if scaled is not None else None) or held.error
    parts = parts_of(msgspec.structs.replace(delta, error=error))
    levels = 1 - 2 * held.passes, 1 - 2 * held.fails
    passing, failing = (_spread(delta, found, margin, sure) for sure in levels)
    if parts is None or passing is None or failing is None:
        return None
    centre = delta.absolute or 0.0

    def halves(total: int) -> tuple[float, float]:
        lows, highs = zip(
            _grown(found, delta, passing, parts, total, levels[0]),
            _grown(found, delta, failing, parts, total, levels[1]),
            strict=True,
        )
        if delta.higher_is_better:
            return centre - lows[0], highs[1] - centre
        return highs[0] - centre, centre - lows[1]

    beside = parts[1] if len(parts) > 1 else None
    held = held._replace(error=parts[0].error, beside=beside, halves=halves)
    return more_for_a_verdict(held, tells=held.tells)


def _grown(
    found: Evidence,
    delta: MetricDelta,
    interval: Interval,
    parts: Sequence[Part],
    total: int,
    confidence: float,
) -> Interval:
    """The interval that so many samples would have if all were like these.

    Of yes and no it is the same formula with as many more of each; any other narrows as its error
    does.
    """
    more = total - found.n
    if found.is_binary and found.clusters is None:
        return _grown_rates(found, more, confidence)
    first, *others = parts
    beside = others[0] if others else None
    now, then = (ahead(first.n, first.error, n, beside)[0] for n in (first.n, first.n + more))
    centre = delta.absolute or 0.0
    low, high = (centre + (end - centre) * then / now for end in interval)
    if has_rare_ones(delta):
        means = mean(found.first) or 0.0, mean(found.second) or 0.0
        low = with_rare_ones((low, high), means, total, confidence)[0]
    return low, high


def _spread(
    delta: MetricDelta, found: Evidence, margin: float, confidence: float
) -> Interval | None:
    """The interval as the samples spread, without room for what is rare."""
    if has_rare_ones(delta):
        return found.interval(confidence)
    return _interval(delta, found, margin, confidence)


def _grown_rates(found: Evidence, more: int, confidence: float) -> Interval:
    sides = [(mean(side) or 0.0, len(side) + more) for side in (found.first, found.second)]
    if not found.pairs:
        (a, n), (b, its_n) = sides
        return difference_interval(a * n, n, b * its_n, its_n, confidence) or (-1.0, 1.0)
    n = sides[0][1]
    apart = differences(found.first, found.second)
    up, down = (n * apart.count(way) / len(apart) for way in (1, -1))
    return paired_interval(up, down, n, confidence) or (-1.0, 1.0)
