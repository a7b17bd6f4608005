"""Variance components: how much of a score's variance comes from samples, epochs and judges.

Var(mean) = (between + within / K + judge / (K J)) / n for n samples, K epochs and J judgings (Miller 2024, arXiv
2411.00640). The components are moment estimates of an analysis of variance, unbiased even for unequal numbers of
epochs; for balanced data they equal REML unless an estimate is negative, which counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proctor.core.stats.descriptive import mean


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
