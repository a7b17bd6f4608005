"""Reliability: pass@k and pass^k, and judge calibration."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.differences import sample_moments
from proctor.core.stats.distributions import normal_quantile, student_t_quantile
from proctor.core.stats.intervals import Interval, clustered_mean_interval, clustered_standard_error, mean_interval

PassRule = Literal["any", "all"]


class PassProbability(NamedTuple):
    """A pass@k or pass^k over n samples; `too_few` samples had fewer than k trials.

    `error` and `interval` are None if they cannot be estimated (one sample, too few clusters). If all
    samples have the same value, the interval understates the uncertainty.
    """

    value: float
    error: float | None
    interval: Interval | None
    n: int
    too_few: int


def pass_at_k(trials: int, passed: int, k: int) -> float | None:
    """Return the probability that at least one of k trials passes; None for fewer than k trials."""
    ways = _count_ways(trials, passed, k)
    return None if ways is None else 1 - math.comb(trials - passed, k) / ways


def pass_hat_k(trials: int, passed: int, k: int) -> float | None:
    """Return the probability that all of k trials pass (pass^k); None for fewer than k trials."""
    ways = _count_ways(trials, passed, k)
    return None if ways is None else math.comb(passed, k) / ways


def pass_probability(
    samples: Iterable[tuple[int, int]],
    k: int,
    require: PassRule = "any",
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> PassProbability | None:
    """Return pass@k ("any" of k) or pass^k ("all" of k) over samples of the form (trials, passed).

    Samples with fewer than k trials are left out and counted. None without samples.
    """
    measure = pass_at_k if require == "any" else pass_hat_k
    all_values = [measure(trials, passed, k) for trials, passed in samples]
    values = [value for value in all_values if value is not None]
    if not values:
        return None
    n, too_few = len(values), len(all_values) - len(values)
    center, variance = sample_moments(values)
    if clusters is None:
        error = math.sqrt(variance / n) if n > 1 else None
        return PassProbability(center, error, mean_interval(values, confidence), n, too_few)
    clusters = [c for c, value in zip(clusters, all_values, strict=True) if value is not None]
    estimate = clustered_standard_error(values, clusters)
    interval = clustered_mean_interval(values, clusters, confidence)
    return PassProbability(center, None if estimate is None else estimate[1], interval, n, too_few)


def _count_ways(trials: int, passed: int, k: int) -> int | None:
    if not 0 <= passed <= trials:
        raise ValueError(f"{passed!r} of {trials!r} trials cannot have passed")
    if k < 1:
        raise ValueError(f"k must be 1 or more, got {k!r}")
    return math.comb(trials, k) if k <= trials else None


class CalibratedEstimate(NamedTuple):
    """An estimate with its standard error and interval, and the weight of the judge (0 to 1)."""

    value: float
    error: float
    interval: Interval
    weight: float


def prediction_powered(
    labels: Sequence[float], judge_scores: Sequence[float], unlabeled: Sequence[float], confidence: float = 0.95
) -> CalibratedEstimate | None:
    """Estimate the mean human score of all items from human labels of some items and judge scores of all.

    `judge_scores` are the scores of the labeled items, `unlabeled` the scores of the others. The judge's
    weight depends on its agreement with people (PPI++). Return None for fewer than two labels or two unlabeled items.
    """
    n, m = len(labels), len(unlabeled)
    pairs = list(zip(labels, judge_scores, strict=True))
    people, judge, others = map(mean_and_variance, (labels, judge_scores, unlabeled))
    if people is None or judge is None or others is None:
        return None
    covariance = math.fsum((y - people[0]) * (f - judge[0]) for y, f in pairs) / (n - 1)
    weight = covariance / ((1 + n / m) * judge[1]) if judge[1] else 0.0
    weight = min(1.0, max(0.0, weight))
    residual = mean_and_variance([y - weight * f for y, f in pairs]) or (0.0, 0.0)
    value = weight * others[0] + residual[0]
    error = math.sqrt(weight**2 * others[1] / m + residual[1] / n)
    half = student_t_quantile((1 + confidence) / 2, n - 1) * error
    return CalibratedEstimate(value, error, (value - half, value + half), weight)


def rogan_gladen(
    verdicts: Sequence[bool],
    verdicts_on_good: Sequence[bool],
    verdicts_on_bad: Sequence[bool],
    confidence: float = 0.95,
) -> CalibratedEstimate | None:
    """Estimate the true rate of good items from a judge with measured sensitivity and specificity.

    `verdicts` are the judge's verdicts on the items of interest, `verdicts_on_good` and `verdicts_on_bad` its verdicts
    on other items that people labeled good and bad. The interval is for small numbers of labels (Lee et al. 2025, arXiv
    2511.21140). None without items of each group, or if the judge is no better than chance.
    """
    rate, sensitivity, false_positives = map(mean, (verdicts, verdicts_on_good, verdicts_on_bad))
    if rate is None or sensitivity is None or false_positives is None:
        return None
    youden = sensitivity - false_positives
    z = normal_quantile((1 + confidence) / 2)
    n, good, bad = len(verdicts) + z * z, len(verdicts_on_good) + 2, len(verdicts_on_bad) + 2
    p = (sum(verdicts) + z * z / 2) / n
    q1, q0 = (sum(verdicts_on_good) + 1) / good, 1 - (sum(verdicts_on_bad) + 1) / bad
    adjusted_youden = q0 + q1 - 1
    if youden <= 0 or adjusted_youden <= 0:
        return None
    center = (p + q0 - 1) / adjusted_youden
    variance0, variance1 = q0 * (1 - q0) / bad, q1 * (1 - q1) / good
    variance = p * (1 - p) / n + (1 - center) ** 2 * variance0 + center**2 * variance1
    error = math.sqrt(variance) / adjusted_youden
    center += 2 * z * z * (center * variance1 - (1 - center) * variance0)
    value = min(1.0, max(0.0, (rate - false_positives) / youden))
    interval = max(0.0, center - z * error), min(1.0, center + z * error)
    return CalibratedEstimate(value, error, interval, min(1.0, youden))
