"""Item analysis: which items of a test separate good from bad systems, and how reliable their sum is.

Values are shares of passed trials from 0 to 1: `matrix[c][i]` of configuration c on item i. Reliability is Cronbach's
alpha (KR-20 for passed and failed) with Feldt's interval (1965); the two-parameter logistic model is fitted by
marginal maximum likelihood with the EM algorithm (Bock and Aitkin 1981).
"""

from __future__ import annotations

import math
import operator
import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from proctor.core.stats.descriptive import mean_and_variance
from proctor.core.stats.distributions import f_quantile
from proctor.core.stats.intervals import Interval

Matrix = Sequence[Sequence[float]]

MAX_ENUMERATED = 13_000
RESAMPLES = 1_999
ROUNDING = 1e-9
NODES, SPREAD = 41, 5.0
# A starting value and limits that keep an item that nobody or everybody passes from diverging.
MAX_SLOPE, MAX_INTERCEPT = 6.0, 12.0


class Association(NamedTuple):
    """The correlation of an item with the rest of the test and, if it is negative, its p-value.

    The p-value is the probability of a correlation this low, given that it is negative, for an item that has nothing to
    do with the rest. Most items correlate positively, so conditioning on the sign leaves few tests to correct for
    (Zhao, Small and Su 2019).
    """

    correlation: float
    p: float | None


class Reliability(NamedTuple):
    """Alpha with its interval, and the smallest real difference between two pass rates."""

    alpha: float
    interval: Interval
    smallest_difference: float


class ItemModel(NamedTuple):
    """The discriminations and difficulties of the two-parameter logistic model, and the log likelihood."""

    discriminations: list[float]
    difficulties: list[float]
    log_likelihood: float


def item_rest_association(item: Sequence[float], rest: Sequence[float], seed: int = 0) -> Association | None:
    """Correlate an item with the mean of the other items; None if one of them does not vary.

    The p-value comes from permutations of the item over the configurations: all of them if they are few.
    """
    observed = correlation(item, rest)
    if observed is None:
        return None
    center = math.fsum(rest) / len(rest)
    deviations = [value - center for value in rest]
    low, high = min(item), max(item)
    highs = item.count(high)
    statistic = math.fsum(map(operator.mul, item, deviations))
    if statistic > -2 * ROUNDING:
        return Association(observed, None)
    if set(item) == {low, high} and math.comb(len(item), highs) <= MAX_ENUMERATED:
        # The deviations sum to 0, so only the items with the high value count.
        sums = [(high - low) * sum(chosen) for chosen in combinations(deviations, highs)]
        counted = 0
    else:
        rng, values, sums, counted = random.Random(seed), list(item), [], 1
        for _ in range(RESAMPLES):
            rng.shuffle(values)
            sums.append(sum(map(operator.mul, values, deviations)))
    negative = counted + sum(value < -ROUNDING for value in sums)
    return Association(observed, (counted + sum(value <= statistic + ROUNDING for value in sums)) / negative)


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Pearson's correlation; None if one of the two does not vary."""
    n = len(first)
    x, y = math.fsum(first) / n, math.fsum(second) / n
    xx, yy = math.fsum((v - x) ** 2 for v in first), math.fsum((v - y) ** 2 for v in second)
    if xx < ROUNDING or yy < ROUNDING:
        return None
    xy = math.fsum((a - x) * (b - y) for a, b in zip(first, second, strict=True))
    return max(-1.0, min(1.0, xy / math.sqrt(xx * yy)))


def reliability(matrix: Matrix, confidence: float = 0.95) -> Reliability | None:
    """Return Cronbach's alpha; None for fewer than two items or configurations, or if all totals are equal.

    The smallest real difference is 1.96 · √2 · SEM, as a difference of pass rates.
    """
    n, k = len(matrix), len(matrix[0]) if matrix else 0
    totals = mean_and_variance([math.fsum(row) for row in matrix])
    if n < 2 or k < 2 or totals is None or totals[1] < ROUNDING:
        return None
    within = math.fsum((mean_and_variance(column) or (0, 0))[1] for column in zip(*matrix, strict=True))
    alpha = k / (k - 1) * (1 - within / totals[1])
    tail = (1 - confidence) / 2
    ends = (f_quantile(p, n - 1, (n - 1) * (k - 1)) for p in (1 - tail, tail))
    low, high = (1 - (1 - alpha) * end for end in ends)
    error = math.sqrt(totals[1] * (1 - min(1.0, alpha)))
    return Reliability(alpha, (low, min(1.0, high)), 1.96 * math.sqrt(2) * error / k)


def select_core(matrix: Matrix, size: int) -> list[int]:
    """Select items that represent the others: one of each of `size` groups of similar difficulty.

    In each group it is the item that is closest to the mean of the group over the configurations.
    """
    columns = list(zip(*matrix, strict=True))
    order = sorted(range(len(columns)), key=lambda i: (math.fsum(columns[i]), i))
    size = min(size, len(columns))
    chosen = []
    for group in range(size):
        members = order[group * len(order) // size : (group + 1) * len(order) // size]
        center = [math.fsum(values) / len(members) for values in zip(*(columns[i] for i in members), strict=True)]
        distances = {i: math.fsum((x - c) ** 2 for x, c in zip(columns[i], center, strict=True)) for i in members}
        chosen.append(min(members, key=distances.__getitem__))
    return sorted(chosen)


class CoreError(NamedTuple):
    """The error of a core set on configurations that did not take part in its selection.

    `random_rmse` is the root mean square error of as many items drawn without replacement, computed from the variance.
    """

    rmse: float
    largest: float
    random_rmse: float


def cross_validate_core(matrix: Matrix, size: int, seed: int = 0, folds: int = 10) -> CoreError:
    """Select the core set without some configurations, predict their pass rates, and compare; repeat for all."""
    n, k = len(matrix), len(matrix[0])
    size = min(size, k)
    order = random.Random(seed).sample(range(n), n)
    errors, random_squares = [], []
    for fold in range(min(folds, n)):
        left_out = order[fold::folds]
        core = select_core([matrix[c] for c in range(n) if c not in set(left_out)], size)
        for c in left_out:
            row, truth = matrix[c], math.fsum(matrix[c]) / k
            errors.append(math.fsum(row[i] for i in core) / size - truth)
            # The variance of the mean of `size` of k values: S² / size · (1 - size / k).
            variance = math.fsum((value - truth) ** 2 for value in row) / max(1, k - 1)
            random_squares.append(variance / size * (1 - size / k))
    rmse, random_rmse = (math.sqrt(math.fsum(v) / n) for v in ([e * e for e in errors], random_squares))
    return CoreError(rmse, max(map(abs, errors)), random_rmse)


def fit_2pl(patterns: Sequence[Sequence[int]], steps: int = 1_000, tolerance: float = 1e-11) -> ItemModel:
    """Fit the two-parameter logistic model to passed (1) and failed (0) items, for a normal ability.

    P(pass) = 1 / (1 + exp(-a (θ - b))). The E step spreads every response pattern over a grid of abilities; the M step
    is a logistic regression per item.
    """
    counts = Counter(tuple(pattern) for pattern in patterns)
    k = len(next(iter(counts)))
    grid = [-SPREAD + 2 * SPREAD * step / (NODES - 1) for step in range(NODES)]
    density = [math.exp(-node * node / 2) for node in grid]
    weights = [value / math.fsum(density) for value in density]
    n = sum(counts.values())
    shares = [sum(c * pattern[i] for pattern, c in counts.items()) / n for i in range(k)]
    lines = [(math.log((share * n + 0.5) / ((1 - share) * n + 0.5)), 1.0) for share in shares]
    likelihood = -math.inf
    for _ in range(steps):
        exposed, passed, new_likelihood = _expect(counts, lines, grid, weights)
        lines = [_regress(lines[i], exposed, passed[i], grid) for i in range(k)]
        if abs(new_likelihood - likelihood) < tolerance * n:
            likelihood = new_likelihood
            break
        likelihood = new_likelihood
    slopes = [slope for _, slope in lines]
    difficulties = [-intercept / slope if slope else math.inf for intercept, slope in lines]
    return ItemModel(slopes, difficulties, likelihood)


def _expect(
    counts: Counter[tuple[int, ...]],
    lines: Sequence[tuple[float, float]],
    grid: Sequence[float],
    weights: Sequence[float],
) -> tuple[list[float], list[list[float]], float]:
    """Return the expected number of respondents per ability, those who passed each item, and the log likelihood."""
    log_pass = [[-_softplus(-(d + a * node)) for node in grid] for d, a in lines]
    log_fail = [[-_softplus(d + a * node) for node in grid] for d, a in lines]
    exposed = [0.0] * len(grid)
    passed = [[0.0] * len(grid) for _ in lines]
    likelihood = 0.0
    for pattern, count in counts.items():
        rows = [log_pass[i] if value else log_fail[i] for i, value in enumerate(pattern)]
        joint = [w * math.exp(math.fsum(logs)) for w, logs in zip(weights, zip(*rows, strict=True), strict=True)]
        total = math.fsum(joint)
        likelihood += count * math.log(total)
        for q, value in enumerate(joint):
            share = count * value / total
            exposed[q] += share
            for i, answer in enumerate(pattern):
                if answer:
                    passed[i][q] += share
    return exposed, passed, likelihood


def _regress(
    line: tuple[float, float], exposed: Sequence[float], passed: Sequence[float], grid: Sequence[float]
) -> tuple[float, float]:
    """Improve the intercept and slope of one item by a few Newton steps."""
    d, a = line
    for _ in range(3):
        shares = [1 / (1 + math.exp(-(d + a * node))) for node in grid]
        gaps = [r - n * p for r, n, p in zip(passed, exposed, shares, strict=True)]
        spread = [n * p * (1 - p) for n, p in zip(exposed, shares, strict=True)]
        g0, g1 = math.fsum(gaps), math.fsum(gap * node for gap, node in zip(gaps, grid, strict=True))
        h00, h01 = math.fsum(spread), math.fsum(s * node for s, node in zip(spread, grid, strict=True))
        h11 = math.fsum(s * node * node for s, node in zip(spread, grid, strict=True))
        determinant = h00 * h11 - h01 * h01
        if determinant < ROUNDING:
            break
        d += (h11 * g0 - h01 * g1) / determinant
        a += (h00 * g1 - h01 * g0) / determinant
        d = max(-MAX_INTERCEPT, min(MAX_INTERCEPT, d))
        a = max(-MAX_SLOPE, min(MAX_SLOPE, a))
    return d, a


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))
