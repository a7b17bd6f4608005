"""How good a judge is, from a table of its verdicts against people's, and the pass rate that it leads to.

Intervals add a part of an item to cells of the table: without it, a judge without errors in 30 labels would have an
interval of no width. `benchmarks/simulations/judging.py` measures the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proctor.core.stats.distributions import beta_quantile, normal_quantile, student_t_quantile
from proctor.core.stats.intervals import Interval, wilson_interval

# The part of an item that is added to cells for the interval of kappa.
SMOOTHING = 0.5
# The same for corrected rates. Half an item makes intervals of a judge with few mistakes too wide (coverage 98 to 99%),
# a quarter too narrow if all its mistakes are of one kind (below 93%).
RATE_SMOOTHING = 0.28
# With fewer mistakes the width comes from what was added rather than from a measured spread; t would widen it twice.
MISTAKES_FOR_T = 4


class Confusion(NamedTuple):
    """The number of items by verdict: of people first, then of the judge. Weighted items are not integers."""

    both_passed: float
    only_people: float
    only_judge: float
    both_failed: float

    @property
    def n(self) -> float:
        return math.fsum(self)

    @property
    def agreement(self) -> float | None:
        """The share of items with the same verdict."""
        return (self.both_passed + self.both_failed) / self.n if self.n else None

    @property
    def correlation(self) -> float | None:
        """The correlation of the verdicts (phi); None if one side always says the same."""
        people, judge = self.people_passed, self.both_passed + self.only_judge
        spread = people * (self.n - people) * judge * (self.n - judge)
        is_defined = spread > 0 and not self.list_constant_sides()
        return (self.both_passed * self.n - people * judge) / math.sqrt(spread) if is_defined else None

    @property
    def people_passed(self) -> float:
        return self.both_passed + self.only_people

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: 1 is perfect agreement, 0 the agreement of chance; None if a side gives only one verdict.

        If one side is constant, kappa is 0 whatever the other side does, so it says nothing about their agreement.
        """
        chance = _chance_agreement(self)
        if chance is None or self.list_constant_sides():
            return None
        return ((self.agreement or 0.0) - chance) / (1 - chance)

    def list_constant_sides(self) -> list[tuple[int, bool]]:
        """List the sides that give only one verdict: 0 for people, 1 for the judge, each with that verdict."""
        shares = (self.people_passed, self.both_passed + self.only_judge)
        failures = (self.only_judge + self.both_failed, self.only_people + self.both_failed)
        return [(side, bool(shares[side])) for side in (0, 1) if not shares[side] or not failures[side]]

    def add(self, both_passed: float, only_people: float, only_judge: float, both_failed: float) -> Confusion:
        """Return the table with more items in its cells."""
        more = (both_passed, only_people, only_judge, both_failed)
        return Confusion(*(count + extra for count, extra in zip(self, more, strict=True)))

    def scale(self, factor: float) -> Confusion:
        """Return the table for `factor` times as many items."""
        return Confusion(*(count * factor for count in self))


def tabulate(pairs: Iterable[tuple[bool, bool, float]]) -> Confusion:
    """Count verdicts: (people, judge, weight) of each item."""
    cells = {(True, True): 0.0, (True, False): 0.0, (False, True): 0.0, (False, False): 0.0}
    for person, judge, weight in pairs:
        cells[person, judge] += weight
    return Confusion(*cells.values())


def _chance_agreement(table: Confusion) -> float | None:
    if not table.n:
        return None
    people, judge = table.people_passed / table.n, (table.both_passed + table.only_judge) / table.n
    chance = people * judge + (1 - people) * (1 - judge)
    return None if chance >= 1 else chance


def kappa_interval(table: Confusion, confidence: float = 0.95) -> Interval | None:
    """Return the interval of kappa; None for fewer than two items, or if kappa is undefined.

    Both limits use the large-sample error of Fleiss, Cohen and Everitt (1969): the lower one on the scale of kappa,
    with half an item added to each cell; the upper one on Fisher's scale, with half an item added to equal verdicts.
    """
    value = table.kappa
    if table.n < 2 or value is None:
        return None
    smooth = table.add(SMOOTHING, SMOOTHING, SMOOTHING, SMOOTHING)
    kappa, error = smooth.kappa, kappa_error(smooth)
    if kappa is None or error is None:
        return None
    low = kappa - student_t_quantile((1 + confidence) / 2, table.n - 1) * error
    return max(-1.0, low), max(value, _limit_kappa(table.add(SMOOTHING, 0, 0, SMOOTHING), confidence))


def _limit_kappa(table: Confusion, confidence: float) -> float:
    """Return the upper limit of kappa on Fisher's scale, which ends at 1: without it good judges are covered in 99%."""
    kappa, error = table.kappa, kappa_error(table)
    if kappa is None or error is None or kappa >= 1:
        return 1.0
    half = normal_quantile((1 + confidence) / 2) * error / (1 - kappa**2)
    return math.tanh(math.atanh(kappa) + half)


def kappa_error(table: Confusion) -> float | None:
    """Return the large-sample standard error of kappa (Fleiss, Cohen and Everitt 1969); None if it is undefined."""
    chance = _chance_agreement(table)
    if chance is None:
        return None
    a, b, c, d = (count / table.n for count in table)
    people, judge, observed = a + b, a + c, a + d
    same = a * (1 - chance - (people + judge) * (1 - observed)) ** 2
    same += d * (1 - chance - (2 - people - judge) * (1 - observed)) ** 2
    different = (1 - observed) ** 2 * (b * (judge + 1 - people) ** 2 + c * (1 - judge + people) ** 2)
    variance = same + different - (observed * chance - 2 * chance + observed) ** 2
    return math.sqrt(max(0.0, variance) / table.n) / (1 - chance) ** 2


class CorrectedRate(NamedTuple):
    """The pass rate that people would give, from labels of some items and a judge's verdicts on all.

    `helps` is False if the judge adds nothing: `value` and `interval` are then those of the labels alone, which are
    also `labels_value` and `labels_interval`. `effective_labels` is the number of labels whose own interval would be
    as wide as `interval`.
    """

    value: float
    interval: Interval
    helps: bool
    labels_value: float
    labels_interval: Interval
    effective_labels: float
    n: float


def corrected_rate(table: Confusion, judge_passed: float, others: float, confidence: float = 0.95) -> CorrectedRate:
    """Correct a judge's pass rate with the labels of items that were drawn at random (PPI++).

    `judge_passed` of the `others` items, those without a label, passed according to the judge. The rule of when the
    judge helps is fixed in advance: if the interval of kappa is above 0.
    """
    n, labels_value = table.n, table.people_passed / table.n
    labels_interval = wilson_interval(table.people_passed, n, confidence) or (0.0, 1.0)
    kappa = kappa_interval(table, confidence)
    if others < 2 or kappa is None or kappa[0] <= 0:
        return CorrectedRate(labels_value, labels_interval, False, labels_value, labels_interval, n, n)
    judged = judge_passed + table.both_passed + table.only_judge
    value, interval = _combine_strata(table, judged, n + others, confidence)
    effective = count_labels(value, interval, confidence)
    return CorrectedRate(value, interval, True, labels_value, labels_interval, effective, n)


def count_labels(rate: float, interval: Interval, confidence: float = 0.95) -> float:
    """Return how many labels with this pass rate have an interval (Wilson) as wide as `interval`."""
    low, high, width = 1e-3, 1e9, interval[1] - interval[0]
    for _ in range(100):
        middle = math.sqrt(low * high)
        start, end = wilson_interval(rate * middle, middle, confidence) or (0.0, 1.0)
        low, high = (middle, high) if end - start > width else (low, middle)
    return low


def stratified_rate(table: Confusion, judge_passed: float, total: float, confidence: float = 0.95) -> CorrectedRate:
    """Estimate the pass rate from labels that were drawn separately among the items that the judge passed and failed.

    `judge_passed` of all `total` items passed. Stratified PPI with the judge's verdict as stratum: its verdicts are
    equal within a stratum, so each stratum's estimate is the mean of its labels.
    """
    value, interval = _combine_strata(table, judge_passed, total, confidence)
    return CorrectedRate(value, interval, True, value, interval, count_labels(value, interval, confidence), table.n)


def _combine_strata(table: Confusion, judge_passed: float, total: float, confidence: float) -> tuple[float, Interval]:
    """Return the pass rate of `total` items from the labels' rates among those that the judge passed and failed.

    For labels drawn at random this is the PPI++ estimate with its best weight, the difference of the two rates times
    others / (n + others). The interval combines the limits of each rate (MOVER, Zou and Donner 2008).
    """
    share = judge_passed / total
    quantile = normal_quantile((1 + confidence) / 2)
    cells = [(table.both_passed, table.only_judge, share), (table.only_people, table.both_failed, 1 - share)]
    mistakes = math.fsum(min(good, bad) for good, bad, _ in cells)
    strength = min(1.0, max(0.0, mistakes - MISTAKES_FOR_T + 1))
    rates, below, above = [], 0.0, 0.0
    for good, bad, weight in cells:
        rate = good / (good + bad) if good + bad else 0.5
        low, high = _limit_rate(good, bad, confidence)
        t = student_t_quantile((1 + confidence) / 2, max(1.0, good + bad - 1))
        widening = 1 + strength * (t / quantile - 1)
        below += (weight * min(rate, widening * max(0.0, rate - low))) ** 2
        above += (weight * min(1 - rate, widening * max(0.0, high - rate))) ** 2
        rates.append(rate)
    value = share * rates[0] + (1 - share) * rates[1]
    judge_error = quantile**2 * (rates[0] - rates[1]) ** 2 * share * (1 - share) / total
    low, high = value - math.sqrt(below + judge_error), value + math.sqrt(above + judge_error)
    return _clip(value), (_clip(low), _clip(high))


def _limit_rate(good: float, bad: float, confidence: float) -> Interval:
    tail = (1 - confidence) / 2
    a, b = good + RATE_SMOOTHING, bad + RATE_SMOOTHING
    return beta_quantile(tail, a, b), beta_quantile(1 - tail, a, b)


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))


class Correlation(NamedTuple):
    """A correlation of n pairs with its interval."""

    value: float
    interval: Interval
    n: int


def correlate(first: Sequence[float], second: Sequence[float], confidence: float = 0.95) -> Correlation | None:
    """Return Pearson's correlation with Fisher's interval; None for fewer than four pairs or a constant side."""
    n = len(first)
    if n < 4:
        return None
    a, b = math.fsum(first) / n, math.fsum(second) / n
    pairs = [(x - a, y - b) for x, y in zip(first, second, strict=True)]
    spread = math.sqrt(math.fsum(x * x for x, _ in pairs) * math.fsum(y * y for _, y in pairs))
    if not spread:
        return None
    value = min(1.0, max(-1.0, math.fsum(x * y for x, y in pairs) / spread))
    interval = correlation_interval(value, n, confidence)
    return None if interval is None else Correlation(value, interval, n)


def correlation_interval(value: float, n: int, confidence: float = 0.95) -> Interval | None:
    """Return Fisher's interval of a correlation of n pairs; None for fewer than four pairs.

    >>> low, high = correlation_interval(0.5, 28)
    >>> round(low, 3), round(high, 3)
    (0.156, 0.736)
    """
    if n < 4:
        return None
    inner = math.atanh(min(1 - 1e-12, max(-1 + 1e-12, value)))
    half = normal_quantile((1 + confidence) / 2) / math.sqrt(n - 3)
    return math.tanh(inner - half), math.tanh(inner + half)
