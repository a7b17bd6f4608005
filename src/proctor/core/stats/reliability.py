"""Where the spread of scores comes from: samples that differ, epochs that differ, judges that do.

More epochs only help against the spread within samples, more judgings only against that of the
judge (Miller 2024, arXiv 2411.00640): Var(mean) = (between + within / K + judge / (K J)) / n. The
parts are estimated by the moments of a nested analysis of variance, without bias also where some
samples have fewer epochs; a part that comes out below 0 is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.differences import spread
from proctor.core.stats.distributions import log_incomplete_beta, normal_quantile, student_t_quantile
from proctor.core.stats.intervals import Interval, clustered_error, clustered_mean_interval, mean_interval

Kind = Literal["any", "all"]


class Passes(NamedTuple):
    """A pass@k or pass^k over samples: how many gave it, how many had fewer than k tries.

    `error` and `interval` are None where they cannot be told (one sample, fewer than five
    clusters); where all samples have the same value, their spread is no measure of doubt.
    """

    value: float
    error: float | None
    interval: Interval | None
    n: int
    too_few: int


def pass_at_k(tries: int, passed: int, k: int) -> float | None:
    """How likely at least one of k tries passes, of which `passed` of all `tries` did.

    None where there are fewer than k tries.

    >>> round(pass_at_k(8, 5, 3), 4)
    0.9821
    """
    ways = _ways(tries, passed, k)
    return None if ways is None else 1 - math.comb(tries - passed, k) / ways


def pass_hat_k(tries: int, passed: int, k: int) -> float | None:
    """How likely all of k tries pass, of which `passed` of all `tries` did: pass^k.

    None where there are fewer than k tries.

    >>> round(pass_hat_k(8, 5, 3), 4)
    0.1786
    """
    ways = _ways(tries, passed, k)
    return None if ways is None else math.comb(passed, k) / ways


def passes(
    samples: Iterable[tuple[int, int]],
    k: int,
    kind: Kind = "any",
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Passes | None:
    """pass@k ("any" of k) or pass^k ("all" of k) of samples, each given as (tries, passed).

    Samples with fewer than k tries cannot tell it: they are left out and counted. None of nothing.

    >>> found = passes([(4, 4), (4, 2), (4, 0), (3, 3)], 4, "all")
    >>> round(found.value, 3), found.n, found.too_few
    (0.333, 3, 1)
    """
    measure: Callable[[int, int, int], float | None] = pass_at_k if kind == "any" else pass_hat_k
    all_values = [measure(tries, passed, k) for tries, passed in samples]
    values = [value for value in all_values if value is not None]
    if not values:
        return None
    n, too_few = len(values), len(all_values) - len(values)
    centre, variance = spread(values)
    if clusters is None:
        error = math.sqrt(variance / n) if n > 1 else None
        return Passes(centre, error, mean_interval(values, confidence), n, too_few)
    known = [c for c, value in zip(clusters, all_values, strict=True) if value is not None]
    found = clustered_error(values, known)
    interval = clustered_mean_interval(values, known, confidence)
    return Passes(centre, None if found is None else found[1], interval, n, too_few)


def _ways(tries: int, passed: int, k: int) -> int | None:
    if not 0 <= passed <= tries:
        raise ValueError(f"{passed!r} of {tries!r} tries cannot have passed")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k!r}")
    return math.comb(tries, k) if k <= tries else None


class Calibrated(NamedTuple):
    """A figure with its error and interval, and how much the judge was worth (0 to 1)."""

    value: float
    error: float
    interval: Interval
    weight: float


def prediction_powered(
    labels: Sequence[float], judged: Sequence[float], unlabelled: Sequence[float], confidence: float = 0.95
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
    judged: Sequence[bool], of_good: Sequence[bool], of_bad: Sequence[bool], confidence: float = 0.95
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
            sorted(around), key=lambda k: (sample_cost + k * epoch_cost) * self.of_mean(1, k, judgings)
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
