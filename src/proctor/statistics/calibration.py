"""A judge over everything and people over a little of it, put together into one honest figure.

The judge alone is biased, the few labels alone are wide. Prediction-powered inference (Angelopoulos
et al. 2023, arXiv 2301.09633 and 2311.01453) corrects the judge by what the labels show of its
errors; Rogan and Gladen (1978) by its rates of being right, measured on other items. The first
wants labelled items that were chosen at random among all; the second only that the judge is right
as often there as here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from proctor.statistics.distributions import normal_quantile, student_t_quantile
from proctor.statistics.intervals import Interval
from proctor.statistics.moments import mean, mean_and_variance


class Calibrated(NamedTuple):
    """A figure with its error and interval, and how much the judge was worth (0 to 1)."""

    value: float
    error: float
    interval: Interval
    weight: float


def prediction_powered(
    labels: Sequence[float],
    judged: Sequence[float],
    unlabelled: Sequence[float],
    confidence: float = 0.95,
) -> Calibrated | None:
    """The mean that people would give all items, from their labels of some and the judge of all.

    `judged` are the judge's scores of the labelled items, `unlabelled` those of all others. The
    judge weighs as much as it agrees with people: a useless one changes nothing (PPI++). None
    below two labels or two unlabelled items.

    >>> found = prediction_powered([1, 0, 1, 1, 0], [1, 0, 1, 1, 1], [1, 1, 0, 1, 1, 1, 0, 1, 1, 1])
    >>> round(found.value, 3), round(found.weight, 3)
    (0.6, 0.5)
    """
    n, rest = len(labels), len(unlabelled)
    pairs = list(zip(labels, judged, strict=True))
    people, judge, others = map(mean_and_variance, (labels, judged, unlabelled))
    if people is None or judge is None or others is None:
        return None
    together = math.fsum((y - people[0]) * (f - judge[0]) for y, f in pairs) / (n - 1)
    weight = together / ((1 + n / rest) * judge[1]) if judge[1] else 0.0
    weight = min(1.0, max(0.0, weight))
    left = mean_and_variance([y - weight * f for y, f in pairs]) or (0.0, 0.0)
    value = weight * others[0] + left[0]
    error = math.sqrt(weight**2 * others[1] / rest + left[1] / n)
    half = student_t_quantile((1 + confidence) / 2, n - 1) * error
    return Calibrated(value, error, (value - half, value + half), weight)


def rogan_gladen(
    judged: Sequence[bool],
    of_good: Sequence[bool],
    of_bad: Sequence[bool],
    confidence: float = 0.95,
) -> Calibrated | None:
    """The true rate of good items, from a judge of whom it is known how often it is right.

    `judged` are its verdicts on the items in question, `of_good` and `of_bad` those on other items
    that people called good and bad. The interval is the one for small numbers of labels (Lee et
    al. 2025, arXiv 2511.21140), kept within 0 and 1. None without items of each kind, or where
    the judge does not tell good from bad: there is nothing to correct by.

    >>> found = rogan_gladen([True] * 60 + [False] * 40, [True] * 45 + [False] * 5,
    ...                      [True] * 10 + [False] * 40)
    >>> round(found.value, 3), [round(end, 2) for end in found.interval]
    (0.571, [0.4, 0.74])
    """
    share, right_on_good, passed_bad = map(mean, (judged, of_good, of_bad))
    if share is None or right_on_good is None or passed_bad is None:
        return None
    told = right_on_good - passed_bad
    z = normal_quantile((1 + confidence) / 2)
    n, good, bad = len(judged) + z * z, len(of_good) + 2, len(of_bad) + 2
    p = (sum(judged) + z * z / 2) / n
    q1, q0 = (sum(of_good) + 1) / good, 1 - (sum(of_bad) + 1) / bad
    told_for_sure = q0 + q1 - 1
    if told <= 0 or told_for_sure <= 0:
        return None
    centre = (p + q0 - 1) / told_for_sure
    doubt, its_doubt = q0 * (1 - q0) / bad, q1 * (1 - q1) / good
    variance = p * (1 - p) / n + (1 - centre) ** 2 * doubt + centre**2 * its_doubt
    error = math.sqrt(variance) / told_for_sure
    centre += 2 * z * z * (centre * its_doubt - (1 - centre) * doubt)
    value = min(1.0, max(0.0, (share - passed_bad) / told))
    interval = max(0.0, centre - z * error), min(1.0, centre + z * error)
    return Calibrated(value, error, interval, min(1.0, told))
