"""Decide the verdict of each difference, corrected for all differences of a comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import msgspec

from proctor.comparison.evidence import MCNEMAR
from proctor.core.stats.distributions import normal_cdf, normal_quantile
from proctor.core.stats.effects import holm
from proctor.core.stats.intervals import wilson_interval
from proctor.records.comparison import BOOTSTRAP, MIN_DIFFERENCE, NOT_COMPARABLE, Interval, MetricDelta, Verdict
from proctor.records.formatting import Kind

CONFIDENCE = 0.95
# The highest p-value of a difference.
LEVEL = 0.05
# The estimated number of samples leads to a verdict with this probability.
POWER = 0.8
# The search for a number of samples ends at this multiple of the known samples.
_MAX_FACTOR = 10**9
# The smallest relevant difference of numbers that are neither rates nor scores.
_MIN_RELATIVE_DIFFERENCE = 0.05
# A smaller difference of latencies may come from the scheduling of threads.
_MIN_LATENCY_DIFFERENCE_MS = 1.0
DIFFERENT_MOMENTS = (
    "the latencies of two runs were measured at different times: the difference may come from the machine or "
    "the time of day"
)
# With at least this many samples, all of them equal, there is no difference.
MIN_EQUAL_SAMPLES = 30
_Z = normal_quantile((1 + CONFIDENCE) / 2)


class SampleGroup(NamedTuple):
    """A group of samples, and the standard error of its mean."""

    n: int
    error: float


class DifferenceEvidence(NamedTuple):
    """The difference of n samples, its standard error, and the smallest relevant difference.

    `level` is the highest p-value of a difference. `exact_test_correction` is how many more samples an exact binary
    test needs than Student's t. `max_single_effect` is how far one sample that differs from all others may move the
    difference. For two groups, n and the error describe the smaller group and `other_group` the larger; both grow by
    the same number of samples.
    """

    n: int
    difference: float
    error: float
    min_difference: float
    level: float
    exact_test_correction: float = 0.0
    max_single_effect: float = 0.0
    other_group: SampleGroup | None = None

    def verdict_probability(self, total: int) -> float:
        """Return the probability of a verdict after `total` samples, including the known ones."""
        error, deviation = project_error(self.n, self.error, total, self.other_group)
        different = normal_quantile(1 - self.level / 2) * error + self.exact_test_correction / total
        # Rare samples that are missing among `total` may move the mean this far (Wilson).
        unseen_effect = self.max_single_effect * _Z * _Z / (total + _Z * _Z)
        equal = self.min_difference - max(_Z * error, unseen_effect)
        if equal >= different:
            return 1.0
        return 1 - self._chance_within(different, deviation) + self._chance_within(equal, deviation)

    def _chance_within(self, limit: float, deviation: float) -> float:
        if limit <= 0:
            return 0.0
        return _chance_below(limit, self.difference, deviation) - _chance_below(-limit, self.difference, deviation)


class MarginEvidence(NamedTuple):
    """The distance of n samples from a margin (above 0 is better), and its standard error.

    `passes` and `fails` are the allowed error rates of each verdict, `other_group` is as in `DifferenceEvidence`.
    `half_widths` returns how far the interval of a number of samples extends to the worse and to the better side,
    assuming the same distribution; the default assumes a normal mean.
    """

    n: int
    distance_to_margin: float
    error: float
    passes: float
    fails: float
    other_group: SampleGroup | None = None
    half_widths: Callable[[int], tuple[float, float]] | None = None

    def verdict_probability(self, total: int) -> float:
        """Return the probability of a verdict after `total` samples, including the known ones."""
        worse, better = self._half_widths(total)
        _, deviation = project_error(self.n, self.error, total, self.other_group)
        return (
            1
            - _chance_below(worse, self.distance_to_margin, deviation)
            + _chance_below(-better, self.distance_to_margin, deviation)
        )

    def is_decided(self, total: int) -> bool:
        """True if `total` samples would lead to a verdict, assuming the same distribution."""
        worse, better = self._half_widths(total)
        return self.distance_to_margin > worse or self.distance_to_margin < -better

    def _half_widths(self, total: int) -> tuple[float, float]:
        if self.half_widths is not None:
            return self.half_widths(total)
        error, _ = project_error(self.n, self.error, total, self.other_group)
        return normal_quantile(1 - self.passes) * error, normal_quantile(1 - self.fails) * error


def estimate_more_samples(
    evidence: DifferenceEvidence | MarginEvidence, is_decided: Callable[[int], bool] | None = None
) -> int:
    """Estimate how many more samples lead to a verdict in four of five cases.

    The estimate does not assume that the true difference is the observed one: the mean of all
    samples will lie around it. `is_decided` returns whether a total number of samples would lead to a
    verdict, assuming the same distribution; fewer samples are never enough.
    """

    def is_enough(total: int) -> bool:
        return evidence.verdict_probability(total) >= POWER and (is_decided is None or is_decided(total))

    n = upper_bound = evidence.n
    while upper_bound < _MAX_FACTOR * n and not is_enough(upper_bound):
        upper_bound *= 2
    low = max(n, upper_bound // 2)
    while low + 1 < upper_bound:
        middle = (low + upper_bound) // 2
        low, upper_bound = (low, middle) if is_enough(middle) else (middle, upper_bound)
    return max(1, upper_bound - n)


def project_error(n: int, error: float, total: int, other_group: SampleGroup | None = None) -> tuple[float, float]:
    """Return the error of the mean of `total` samples, and how far it may lie from the mean of n."""
    groups = [SampleGroup(n, error), *([] if other_group is None else [other_group])]
    now = math.fsum(group.error**2 for group in groups)
    projected_variance = math.fsum(group.error**2 * group.n / (group.n + total - n) for group in groups)
    return math.sqrt(projected_variance), math.sqrt(max(0.0, now - projected_variance))


def _chance_below(limit: float, center: float, deviation: float) -> float:
    return normal_cdf((limit - center) / deviation) if deviation else float(center <= limit)


def find_min_difference(
    kind: Kind, b: float | None, min_difference: float = MIN_DIFFERENCE, *, is_latency: bool = False
) -> float:
    """Return the smallest relevant difference: in points of a rate or score, else relative to b."""
    if kind != "number":
        return min_difference
    minimum = _MIN_LATENCY_DIFFERENCE_MS if is_latency else 0.0
    return max(minimum, _MIN_RELATIVE_DIFFERENCE * abs(b or 0.0))


def adjust_deltas(deltas: Sequence[MetricDelta], tests: Sequence[Hashable]) -> list[MetricDelta]:
    """Add corrected p-values and verdicts to deltas.

    `tests` identifies the deltas that are the same test. Equal deltas are one test, and a test of pairs that
    all agree cannot find a difference (Tarone 1990); the correction covers all other tests.
    """
    p_values: dict[Hashable, float] = {}
    for delta, test in zip(deltas, tests, strict=True):
        if delta.p is not None and not _cannot_differ(delta):
            p_values.setdefault(test, delta.p)
    corrected = dict(zip(p_values, holm([*p_values.values()], LEVEL), strict=True))
    adjusted = []
    for delta, test in zip(deltas, tests, strict=True):
        p = corrected[test].p if test in corrected else delta.p
        verdict = _decide(delta, p)
        more = _estimate_more(delta, len(p_values)) if verdict == "not enough evidence" else None
        adjusted.append(msgspec.structs.replace(delta, p_adjusted=p, verdict=verdict, more_samples=more))
    return adjusted


def count_tests(deltas: Sequence[MetricDelta], tests: Sequence[Hashable]) -> int:
    """Count the tests that p-values are corrected for."""
    pairs = zip(deltas, tests, strict=True)
    return len({test for delta, test in pairs if delta.p is not None and not _cannot_differ(delta)})


def _cannot_differ(delta: MetricDelta) -> bool:
    return delta.paired and delta.absolute == 0 and delta.error is None


def has_different_moments(delta: MetricDelta) -> bool:
    """True for a latency of two runs."""
    return delta.method.endswith(DIFFERENT_MOMENTS)


def _decide(delta: MetricDelta, p: float | None) -> Verdict:
    if has_different_moments(delta):
        return NOT_COMPARABLE
    bounds = _find_bounds(delta)
    if bounds is not None and max(abs(bounds[0]), abs(bounds[1])) <= delta.min_difference:
        return "no relevant difference"
    if p is None or p > LEVEL or not delta.absolute:
        return "not enough evidence"
    if delta.higher_is_better is None:
        return "different"
    return "better" if (delta.absolute > 0) is delta.higher_is_better else "worse"


def _find_bounds(delta: MetricDelta) -> Interval | None:
    """Return the bounds of the difference, even if all samples are equal."""
    units = _count_units(delta)
    if delta.interval is not None:
        if delta.a is None or delta.b is None or not needs_rare_allowance(delta):
            return delta.interval
        return widen_for_rare_samples(delta.interval, (delta.a, delta.b), units)
    has_reason = delta.p is None and (delta.method or delta.clusters is not None)
    if has_reason or delta.absolute != 0 or units < 2 or not delta.paired:
        return None
    if delta.kind == "number":
        return (0.0, 0.0) if units >= MIN_EQUAL_SAMPLES else None
    # At most this fraction of all samples differs, and no score differs by more than 1.
    share = _max_unseen_share(units)
    return -share, share


def widen_for_rare_samples(
    interval: Interval, means: tuple[float, float], n: float, confidence: float = CONFIDENCE
) -> Interval:
    """Widen the interval of a score difference to at least the interval of n binary samples.

    Similar scores in a sample do not rule out rare scores of 0.
    """
    (a, b), share = means, _max_unseen_share(n, confidence)
    return (min(interval[0], a - b - share * max(a, 1 - b)), max(interval[1], a - b + share * max(b, 1 - a)))


def needs_rare_allowance(delta: MetricDelta) -> bool:
    """True for scores whose interval depends on their spread; exact intervals cover rare samples."""
    return delta.kind != "number" and delta.paired and not delta.method.startswith((MCNEMAR, BOOTSTRAP))


def _count_units(delta: MetricDelta) -> float:
    return delta.n if delta.units is None else delta.units


def _max_unseen_share(n: float, confidence: float = CONFIDENCE) -> float:
    interval = wilson_interval(0, n, confidence)
    return 1.0 if interval is None else interval[1]


def _estimate_more(delta: MetricDelta, tests: int) -> int | None:
    if delta.n < 2 or delta.absolute is None or (delta.p is None and delta.method):
        return None
    level = LEVEL / max(1, tests)
    if delta.error:
        return _estimate_from_error(delta, delta.absolute, level)
    units = _count_units(delta)
    equal_pairs = _estimate_equal_pairs(delta, level) if delta.paired else None
    return None if equal_pairs is None else max(1, math.ceil((equal_pairs - units) * delta.n / units))


def _estimate_from_error(delta: MetricDelta, difference: float, level: float) -> int | None:
    groups = split_groups(delta)
    if groups is None or delta.interval is None:
        return None
    group, other = groups[0], groups[1] if len(groups) > 1 else None
    exact_test_correction = 1.0 if delta.method == MCNEMAR else 0.0
    a, b = delta.a or 0.0, delta.b or 0.0
    max_single_effect = max(a, b, 1 - a, 1 - b) if needs_rare_allowance(delta) else 0.0
    evidence = DifferenceEvidence(
        delta.n, difference, group.error, delta.min_difference, level, exact_test_correction, max_single_effect, other
    )
    min_pairs = min_agreeing_pairs(level) - delta.n if delta.paired else 0
    # The normal approximation claims a verdict that the exact test did not find.
    if min_pairs <= 0 and evidence.verdict_probability(delta.n) >= POWER:
        return None
    low, high = difference - delta.interval[0], delta.interval[1] - difference
    z = normal_quantile(1 - level / 2) / normal_quantile(0.975)

    def is_decided(total: int) -> bool:
        current_error, projected_error = (project_error(group.n, group.error, n, other)[0] for n in (delta.n, total))
        new_low, new_high = low * projected_error / current_error, high * projected_error / current_error
        is_equal = max(new_low - difference, new_high + difference) <= delta.min_difference
        return is_equal or difference > z * new_low or difference < -z * new_high

    return max(min_pairs, estimate_more_samples(evidence, is_decided))


def split_groups(delta: MetricDelta) -> tuple[SampleGroup, ...] | None:
    """Return the pairs of a delta as one group, or its two groups, the smaller first.

    A group of equal numbers gets the largest error that its size does not rule out. None if the error is unknown.
    """
    if delta.paired:
        return None if delta.error is None else (SampleGroup(delta.n, delta.error),)
    a = _estimate_error(delta.only_a, delta.a, delta.a_interval, delta.kind)
    b = _estimate_error(delta.only_b, delta.b, delta.b_interval, delta.kind)
    if a is None or b is None:
        return None
    both = math.hypot(a, b)
    # Not smaller than the error of the difference, if the groups have clusters in common.
    factor = max(1.0, (delta.error or 0.0) / both) if both else 1.0
    return tuple(sorted((SampleGroup(delta.only_a, factor * a), SampleGroup(delta.only_b, factor * b))))


def _estimate_error(n: int, mean: float | None, interval: Interval | None, kind: Kind) -> float | None:
    if mean is None or (interval is None and kind == "number"):
        return None
    width = _max_unseen_share(n) * max(mean, 1 - mean) if interval is None else interval[1] - interval[0]
    return width / 2 / normal_quantile(0.975)


def min_agreeing_pairs(level: float) -> int:
    """Return how many pairs must all differ in the same direction for a p-value below the level."""
    return math.ceil(1 - math.log2(level))


def _estimate_equal_pairs(delta: MetricDelta, level: float) -> float | None:
    """Estimate how many independent pairs lead to a verdict if all differ by the same number."""
    if delta.absolute:
        return min_agreeing_pairs(level)
    if delta.kind == "number":
        return MIN_EQUAL_SAMPLES
    if not delta.min_difference:
        return None
    z = normal_quantile(0.975)
    # The bounds of Bonett and Price's interval, and of Wilson's, if nothing differs.
    return z * math.sqrt(2) / delta.min_difference - 2 if delta.interval else z * z / delta.min_difference - z * z
