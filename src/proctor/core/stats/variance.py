"""Variance components: how much of a score's variance comes from samples, epochs and judges.

Var(mean) = (between + within / K + judge / (K J)) / n for n samples, K epochs and J judgings (Miller 2024, arXiv
2411.00640). The components are moment estimates of an analysis of variance, unbiased even for unequal numbers of
epochs; for balanced data they equal REML unless an estimate is negative, which counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.distributions import log_incomplete_beta


class Anova(NamedTuple):
    """A one-way analysis of variance: sums of squares, degrees of freedom, F and its p-value."""

    between: float
    within: float
    df: tuple[int, int]
    f: float
    p: float


class VarianceComponents(NamedTuple):
    """The variance between samples, within samples (between epochs), and of the judge."""

    between: float
    within: float
    judge: float = 0.0

    def variance_of_mean(self, n: int, epochs: int = 1, judgings: int = 1) -> float:
        """Return the variance of the mean of n samples with this many epochs and judgings of each."""
        return (self.between + (self.within + self.judge / judgings) / epochs) / n

    def best_epochs(self, sample_cost: float, epoch_cost: float, judgings: int = 1) -> int | None:
        """Return the number of epochs per sample with the smallest variance for a given cost.

        `sample_cost` is the cost of a new sample without its epochs, `epoch_cost` the cost of one epoch with its
        judgings. Return 1 if new samples are free; None (no limit) if samples do not differ.
        """
        within = self.within + self.judge / judgings
        if not within or not sample_cost:
            return 1
        if not self.between or not epoch_cost:
            return None
        ideal = math.sqrt(within / self.between * sample_cost / epoch_cost)
        return min(
            sorted({max(1, math.floor(ideal)), max(1, math.ceil(ideal))}),
            key=lambda k: (sample_cost + k * epoch_cost) * self.variance_of_mean(1, k, judgings),
        )


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
    if len(sums) < 2:
        return None
    total = SampleSums(*map(math.fsum, zip(*sums, strict=True)))
    n = total.samples
    judge = total.judge_squares / total.judge_df if total.judge_df else None
    within = None
    if total.epoch_df:
        within = max(0.0, (total.epoch_squares - (judge or 0.0) * total.judge_in_epochs) / total.epoch_df)
    noise = ((within or 0.0) * total.per_epoch + (judge or 0.0) * total.judge_per_epoch) / n
    between = max(0.0, (total.square - total.center**2 / n) / (n - 1) - noise)
    return ComponentEstimate(between, within, judge)


def split_variance(samples: Iterable[Sequence[float]]) -> VarianceComponents | None:
    """Split the variance into between and within samples; each row has the epochs of one sample.

    Return None for fewer than two samples, or if no sample has two epochs.
    """
    estimate = estimate_components(summarize_samples([[value] for value in row] for row in samples))
    if estimate is None or estimate.within is None:
        return None
    return VarianceComponents(estimate.between, estimate.within)


def split_judged_variance(samples: Iterable[Iterable[Sequence[float]]]) -> VarianceComponents | None:
    """Split the variance into samples, epochs and judge; samples have epochs, epochs have judgings.

    Return None for fewer than two samples, if no sample has two epochs, or if no epoch is judged twice.
    """
    estimate = estimate_components(summarize_samples(samples))
    if estimate is None or estimate.within is None or estimate.judge is None:
        return None
    return VarianceComponents(estimate.between, estimate.within, estimate.judge)


class CrossedComponents(NamedTuple):
    """The variance between the rows of a table, between its columns, and of what neither explains."""

    rows: float
    columns: float
    residual: float


def split_crossed_variance(table: Sequence[Sequence[float]]) -> CrossedComponents | None:
    """Split the variance of a complete table, such as answers x judges: a row per answer, a column per judge.

    Return None for fewer than two rows or two columns.
    """
    a, b = len(table), len(table[0]) if table else 0
    if a < 2 or b < 2 or any(len(row) != b for row in table):
        return None
    origin = mean([value for row in table for value in row]) or 0.0
    centered = [[value - origin for value in row] for row in table]
    row_means = [math.fsum(row) / b for row in centered]
    column_means = [math.fsum(column) / a for column in zip(*centered, strict=True)]
    rows = b * math.fsum(m * m for m in row_means) / (a - 1)
    columns = a * math.fsum(m * m for m in column_means) / (b - 1)
    residual = math.fsum(
        (value - row_mean - column_mean) ** 2
        for row, row_mean in zip(centered, row_means, strict=True)
        for value, column_mean in zip(row, column_means, strict=True)
    ) / ((a - 1) * (b - 1))
    return CrossedComponents(max(0.0, (rows - residual) / b), max(0.0, (columns - residual) / a), residual)


def anova(groups: Sequence[Sequence[float]]) -> Anova | None:
    """Test with a one-way F test whether the means of groups differ.

    Return None for fewer than two groups, or without variance within them.
    """
    rows = [row for row in groups if row]
    values = [value for row in rows for value in row]
    center, within = mean(values), _pooled_variance(rows)
    if center is None or len(rows) < 2 or not within:
        return None
    df = len(rows) - 1, len(values) - len(rows)
    # Means of deviations preserve the digits in which large numbers differ.
    deviations = [math.fsum(value - center for value in row) / len(row) for row in rows]
    between = math.fsum(len(row) * d * d for row, d in zip(rows, deviations, strict=True))
    f = between / df[0] / within
    log_odds = math.log(df[1]) - math.log(df[0]) - math.log(f) if f else 0.0
    p = math.exp(log_incomplete_beta(log_odds, df[1] / 2, df[0] / 2)) if f else 1.0
    return Anova(between, within * df[1], df, f, p)


def _pooled_variance(rows: Sequence[Sequence[float]]) -> float | None:
    """Return the pooled variance within rows; None if no row has two values."""
    variances = [(moments[1], len(row) - 1) for row in rows if (moments := mean_and_variance(row))]
    total_df = sum(df for _, df in variances)
    return math.fsum(variance * df for variance, df in variances) / total_df if total_df else None
