"""Variance components: how much of a score's variance comes from samples, epochs and judges.

Var(mean) = (between + within / K + judge / (K J)) / n for n samples, K epochs and J judgings (Miller 2024, arXiv
2411.00640). The components are moment estimates of an analysis of variance, unbiased even for unequal numbers of
epochs; for balanced data they equal REML unless an estimate is negative, which counts as 0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from proctor.core.stats.descriptive import mean
from proctor.core.stats.distributions import student_t_quantile
from proctor.core.stats.intervals import Interval, wilson_interval

# Kurtosis of fewer units than this is hardly measured, so the interval is not widened any further.
MIN_DEGREES = 5.0


class SampleSums(NamedTuple):
    """What the components need to know of one sample; the sums of several samples are added up by position.

    `center` and `square` are the sample's mean and its square, measured from a common origin.
    """

    samples: float
    center: float
    square: float
    per_epoch: float
    judge_per_epoch: float
    epoch_squares: float
    epoch_df: float
    judge_squares: float
    judge_df: float
    judge_in_epochs: float


class ComponentEstimate(NamedTuple):
    """Variance components; None for a level without repeats, whose variance is then part of the level above it."""

    between: float
    within: float | None
    judge: float | None


def summarize_samples(samples: Iterable[Iterable[Sequence[float]]]) -> list[SampleSums]:
    """Summarize samples of epochs of judgings; samples without any number are left out."""
    rows = [[epoch for epoch in sample if epoch] for sample in samples]
    rows = [row for row in rows if row]
    origin = mean([value for row in rows for epoch in row for value in epoch]) or 0.0
    return [_summarize(row, origin) for row in rows]


def _summarize(row: Sequence[Sequence[float]], origin: float) -> SampleSums:
    means = [math.fsum(value - origin for value in epoch) / len(epoch) for epoch in row]
    center, epochs = math.fsum(means) / len(means), len(means)
    # The judge contributes 1 / judgings, averaged, to the variance between the sample's epochs.
    share = math.fsum(1 / len(epoch) for epoch in row) / epochs
    judge_squares = math.fsum(
        (value - origin - m) ** 2 for epoch, m in zip(row, means, strict=True) if len(epoch) > 1 for value in epoch
    )
    return SampleSums(
        1.0,
        center,
        center * center,
        1 / epochs,
        share / epochs,
        math.fsum((m - center) ** 2 for m in means) if epochs > 1 else 0.0,
        epochs - 1,
        judge_squares,
        sum(len(epoch) - 1 for epoch in row),
        share * (epochs - 1),
    )


def estimate_components(sums: Sequence[SampleSums]) -> ComponentEstimate | None:
    """Estimate the components from the summaries of samples; None for fewer than two samples."""
    return None if len(sums) < 2 else _split(_add_up(sums), lowest=0.0)


def _add_up(sums: Iterable[SampleSums]) -> SampleSums:
    return SampleSums(*map(math.fsum, zip(*sums, strict=True)))


def _split(total: SampleSums, lowest: float = -math.inf) -> ComponentEstimate:
    """Estimate the components from sums over all samples; an estimate below `lowest` is replaced by it."""
    n = total.samples
    judge = total.judge_squares / total.judge_df if total.judge_df else None
    within = None
    if total.epoch_df:
        within = max(lowest, (total.epoch_squares - (judge or 0.0) * total.judge_in_epochs) / total.epoch_df)
    noise = ((within or 0.0) * total.per_epoch + (judge or 0.0) * total.judge_per_epoch) / n
    between = max(lowest, (total.square - total.center**2 / n) / (n - 1) - noise)
    return ComponentEstimate(between, within, judge)


def share_intervals(
    units: Sequence[SampleSums], parts: Callable[[ComponentEstimate], Sequence[float]], confidence: float = 0.95
) -> list[Interval]:
    """Return the intervals of the shares of some parts in their sum; `parts` is linear in the components.

    The units are samples, or sums over clusters of samples. A share is a ratio of two numbers with correlated errors:
    the interval has all shares s for which part - s * sum is not significant (Fieller 1954), with the errors of a
    jackknife over the units, and Student's t. Components are not cut at 0, because estimates of 0 would have no error.
    If no verdicts, or no epochs, differ at all, the interval allows for flips in as many units as the data do not rule
    out.
    """
    total = _add_up(units)
    whole = parts(_split(total))
    others = [parts(_split(SampleSums(*map(operator.sub, total, unit)))) for unit in units]
    most = _count_effective(units) - 1
    unseen = list(_list_unseen(total, len(units), parts, confidence))
    intervals = []
    for index, part in enumerate(whole):
        deviations = _center([(each[index], math.fsum(each)) for each in others])
        degrees = _count_degrees(deviations, part, math.fsum(whole))
        quantile = student_t_quantile((1 + confidence) / 2, min(most, max(MIN_DEGREES, degrees)))
        low, high = _solve_share(part, math.fsum(whole), _measure_errors(deviations), quantile)
        possible = [shares[index] for shares in unseen]
        intervals.append((min([low, *possible]), max([high, *possible])))
    return intervals


def _count_effective(units: Sequence[SampleSums]) -> float:
    """Return the number of units of equal size that are as precise."""
    return math.fsum(unit.samples for unit in units) ** 2 / math.fsum(unit.samples**2 for unit in units)


def _center(others: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a part and the sum without each unit, as differences from their means."""
    parts, sums = ([value - math.fsum(side) / len(others) for value in side] for side in zip(*others, strict=True))
    return list(zip(parts, sums, strict=True))


def _measure_errors(deviations: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Return the variance of a part, its covariance with the sum, and the variance of the sum, by the jackknife."""
    factor = (len(deviations) - 1) / len(deviations)
    return (
        factor * math.fsum(part * part for part, _ in deviations),
        factor * math.fsum(part * total for part, total in deviations),
        factor * math.fsum(total * total for _, total in deviations),
    )


def _count_degrees(deviations: Sequence[tuple[float, float]], part: float, total: float) -> float:
    """Return the degrees of freedom of the error of a share (Satterthwaite): few if a few units cause most of it."""
    share = min(1.0, max(0.0, part / total)) if total else 0.0
    squares = [(own - share * whole) ** 2 for own, whole in deviations]
    summed = math.fsum(squares)
    spread = math.fsum(square * square for square in squares) - summed * summed / len(squares)
    return 2 * summed * summed / spread if spread > 0 else math.inf


def _solve_share(part: float, total: float, errors: tuple[float, float, float], quantile: float) -> Interval:
    """Return the shares from 0 to 1 for which (part - share * total)² <= quantile² * variance."""
    variance, covariance, total_variance = (quantile * quantile * error for error in errors)
    a, b, c = total * total - total_variance, part * total - covariance, part * part - variance
    root = math.sqrt(max(0.0, b * b - a * c))
    if a <= 0:
        # The sum may be 0, so the set has no ends of its own.
        ends = [share for share in (0.0, 1.0) if a * share * share - 2 * b * share + c <= 0]
        ends += [share for share in ((b - root) / a, (b + root) / a) if a and 0 <= share <= 1] if b * b > a * c else []
        return (min(ends), max(ends)) if ends else (0.0, 1.0)
    low, high = (min(1.0, max(0.0, (b + sign * root) / a)) for sign in (-1, 1))
    return low, high


def _list_unseen(
    total: SampleSums, units: int, parts: Callable[[ComponentEstimate], Sequence[float]], confidence: float
) -> Iterator[list[float]]:
    """Yield the shares that are still possible if no verdicts, or no epochs, of any unit differ."""
    share = wilson_interval(0, units, confidence)
    flips = units * (1.0 if share is None else share[1])
    # A flip moves one verdict, or one epoch, from 0 to 1.
    squares = {"epoch_squares": 1 - total.per_epoch / total.samples, "judge_squares": 0.5}
    for level, flip in squares.items():
        if not getattr(total, level):
            possible = parts(_split(total._replace(**{level: flips * flip}), lowest=0.0))
            yield [part / (math.fsum(possible) or 1.0) for part in possible]
