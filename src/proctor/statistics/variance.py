"""Where the spread of scores comes from: samples that differ, epochs that differ, judges that do.

More epochs only help against the spread within samples, more judgings only against that of the
judge (Miller 2024, arXiv 2411.00640): Var(mean) = (between + within / K + judge / (K J)) / n. The
parts are estimated by the moments of a nested analysis of variance, without bias also where some
samples have fewer epochs; a part that comes out below 0 is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proctor.statistics.beta import log_incomplete_beta
from proctor.statistics.moments import mean, mean_and_variance


class Anova(NamedTuple):
    """The analysis of variance of groups: sums of squares, degrees of freedom, F and its p."""

    between: float
    within: float
    df: tuple[int, int]
    f: float
    p: float


class Split(NamedTuple):
    """The variance between samples, within them (between epochs), and of the judge."""

    between: float
    within: float
    judge: float = 0.0

    def of_mean(self, n: int, epochs: int = 1, judgings: int = 1) -> float:
        """The variance of the mean of n samples, with so many epochs and judgings of each.

        >>> round(Split(0.1, 0.06, judge=0.04).of_mean(100, epochs=2, judgings=2), 6)
        0.0014
        """
        return (self.between + (self.within + self.judge / judgings) / epochs) / n

    def best_epochs(self, sample_cost: float, epoch_cost: float, judgings: int = 1) -> int | None:
        """How many epochs of each sample tell most for the money; None if never enough.

        `sample_cost` is what a new sample costs beside its epochs, `epoch_cost` what one more
        epoch does, its judgings included. Where new samples cost nothing it is always 1; where
        samples do not differ, no number of epochs is too many.

        >>> Split(between=0.05, within=0.2).best_epochs(sample_cost=4, epoch_cost=1)
        4
        """
        repeated = self.within + self.judge / judgings
        if not repeated or not sample_cost:
            return 1
        if not self.between or not epoch_cost:
            return None
        ideal = math.sqrt(repeated / self.between * sample_cost / epoch_cost)
        around = {max(1, math.floor(ideal)), max(1, math.ceil(ideal))}
        return min(
            sorted(around),
            key=lambda k: (sample_cost + k * epoch_cost) * self.of_mean(1, k, judgings),
        )


def split_variance(samples: Iterable[Sequence[float]]) -> Split | None:
    """How much samples differ and how much the epochs of one sample do, one row for each sample.

    None where it cannot be told: fewer than two samples, or no sample with two epochs.

    >>> split = split_variance([[0.8, 1.0], [0.2, 0.0], [0.5, 0.7]])
    >>> round(split.between, 4), round(split.within, 4)
    (0.1533, 0.02)
    """
    rows = [row for row in samples if row]
    within = _pooled(rows)
    if within is None or len(rows) < 2:
        return None
    return Split(_between(rows, [within / len(row) for row in rows]), within)


def split_judged_variance(samples: Iterable[Iterable[Sequence[float]]]) -> Split | None:
    """The same with the judge: samples, their epochs, and the judgings of each epoch.

    None where it cannot be told: no two samples, no sample with two epochs, no epoch judged twice.

    >>> split = split_judged_variance([[[0.9, 0.7], [0.5, 0.5]], [[0.1, 0.1], [0.2, 0.0]]])
    >>> round(split.between, 4), round(split.within, 4), round(split.judge, 4)
    (0.14, 0.0175, 0.01)
    """
    rows = [[epoch for epoch in sample if epoch] for sample in samples]
    rows = [row for row in rows if row]
    judge = _pooled([epoch for row in rows for epoch in row])
    means = [[mean(epoch) or 0.0 for epoch in row] for row in rows]
    spread = _pooled(means)
    if judge is None or spread is None or len(rows) < 2:
        return None
    # What the judge adds to the spread of a sample's epochs, each judged so many times.
    shares = [mean([1 / len(epoch) for epoch in row]) or 0.0 for row in rows]
    freedom = [len(row) - 1 for row in rows]
    added = sum(share * df for share, df in zip(shares, freedom, strict=True)) / sum(freedom)
    within = max(0.0, spread - judge * added)
    noise = [(within + judge * share) / len(row) for row, share in zip(rows, shares, strict=True)]
    return Split(_between(means, noise), within, judge)


def anova(groups: Sequence[Sequence[float]]) -> Anova | None:
    """Whether groups differ in their means by more than chance would give: one-way F.

    None with fewer than two groups, or nothing that varies within them.

    >>> found = anova([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [5.0, 6.0, 7.0]])
    >>> round(found.f, 6), round(found.p, 6)
    (13.0, 0.006592)
    """
    rows = [row for row in groups if row]
    values = [value for row in rows for value in row]
    centre, within = mean(values), _pooled(rows)
    if centre is None or len(rows) < 2 or not within:
        return None
    df = len(rows) - 1, len(values) - len(rows)
    # The means of deviations, so that large numbers lose no digit of their differences.
    apart = [math.fsum(value - centre for value in row) / len(row) for row in rows]
    total = math.fsum(len(row) * gap * gap for row, gap in zip(rows, apart, strict=True))
    f = total / df[0] / within
    return Anova(total, within * df[1], df, f, _f_tail(f, df))


def _f_tail(f: float, df: tuple[int, int]) -> float:
    """How likely F is at least f."""
    if f == 0:
        return 1.0
    log_odds = math.log(df[1]) - math.log(df[0]) - math.log(f)
    return math.exp(log_incomplete_beta(log_odds, df[1] / 2, df[0] / 2))


def _pooled(rows: Sequence[Sequence[float]]) -> float | None:
    """The variance within rows, all of them together; None if no row has two values."""
    found = [(moments[1], len(row) - 1) for row in rows if (moments := mean_and_variance(row))]
    freedom = sum(df for _, df in found)
    return math.fsum(variance * df for variance, df in found) / freedom if freedom else None


def _between(rows: Sequence[Sequence[float]], noise: Sequence[float]) -> float:
    """The variance of the rows' true means: that of their means, less what noise adds to it."""
    moments = mean_and_variance([mean(row) or 0.0 for row in rows])
    return max(0.0, (moments or (0.0, 0.0))[1] - (mean(noise) or 0.0))
