"""Confidence intervals: how often they contain the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import NormalDist, fmean

from benchmarks.simulations.claim import AT_MOST, COVERED, Chance, Claim
from benchmarks.simulations.made_up import UNEQUAL, coin, epochs, flips, graded, holds, in_clusters, named
from proctor.comparison.evidence import Evidence, estimate_interval
from proctor.comparison.sides import Side
from proctor.comparison.statistics import BootstrapEvidence, Quantile, Statistic
from proctor.core.stats.bootstrap import bootstrap_interval
from proctor.core.stats.differences import paired_t, welch_t
from proctor.core.stats.effects import clustered_paired_t, clustered_welch_t, measure_effect, measure_paired_effect
from proctor.core.stats.intervals import (
    clustered_mean_interval,
    clustered_rate_interval,
    mean_interval,
    wilson_interval,
)
from proctor.records.metric import MetricValue


def covered() -> Iterator[Claim]:
    """95% intervals contain the truth in 93 to 97%."""
    yield Claim("Wilson, n = 20, p = .9", partial(wilson_covers, n=20, p=0.9), COVERED)
    yield Claim("Wilson, n = 100, p = .5", partial(wilson_covers, n=100, p=0.5), COVERED)
    yield Claim("Wilson, n = 300, p = .98", partial(wilson_covers, n=300, p=0.98), COVERED)
    yield Claim("t, uniform, n = 10", partial(mean_covers, n=10), COVERED)
    yield Claim("t of pairs, 12% up 8% down, n = 200", partial(pairs_cover, n=200, up=0.12, down=0.08), COVERED)
    yield Claim("Welch, yes/no, n = 80 and 120", partial(welch_covers, n=80, m=120), COVERED)
    yield Claim("clustered mean, 10 x 5, ICC .4", partial(clusters_cover, sizes=[5] * 10), COVERED)
    yield Claim("clustered mean, 27 of 2 to 60", partial(clusters_cover, sizes=UNEQUAL), COVERED)
    yield Claim("clustered rate, 27 of 2 to 60", partial(clustered_rate_covers, sizes=UNEQUAL), COVERED)
    yield Claim("clustered pairs, 10 x 5", partial(clustered_pairs_cover, sizes=[5] * 10), COVERED)
    yield Claim(
        "clustered groups, 15 + 15 clusters of 4",
        partial(clustered_groups_cover, sizes=[4] * 15, shared=False),
        COVERED,
    )
    yield Claim(
        "clustered groups, 30 clusters in both", partial(clustered_groups_cover, sizes=[4] * 15, shared=True), COVERED
    )
    for shared in (False, True):
        yield Claim(
            f"clustered groups, clusters of 2 to 60{', in both' if shared else ''}",
            partial(clustered_groups_cover, sizes=UNEQUAL, shared=shared),
            COVERED,
        )
    for n, of, p, q in ((30, 3, 0.99, 0.95), (20, 3, 0.95, 0.9), (60, 3, 0.8, 0.7)):
        yield Claim(
            f"pairs of {of} epochs each, {p} and {q}, n = {n}", partial(epochs_cover, n=n, of=of, p=p, q=q), COVERED
        )
    yield Claim("bootstrap, uniform, n = 50", partial(bootstrap_covers, n=50), (0.91, 0.97), 8)
    yield Claim("bootstrap, 40 clusters of 5", partial(bootstrap_covers, n=40, size=5), (0.91, 0.97), 8)
    for n, share in ((30, 0.5), (40, 0.25), (200, 0.95)):
        yield Claim(
            f"bootstrap of pairs, quantile {share}, n = {n}", partial(quantile_covers, n=n, share=share), (0.93, 1.0), 8
        )
        yield Claim(
            f"bootstrap of one side, quantile {share}, n = {n}",
            partial(quantile_covers, n=n, share=share, is_difference=False),
            (0.90, 0.98),
            8,
        )
    yield Claim("bootstrap of pairs, median, 30 clusters of 4", partial(quantile_covers, n=30, size=4), (0.93, 1.0), 8)
    # Measured once with 4,000 replicates: .949 ± .0035.
    yield Claim("bootstrap of pairs, ratio of sums, n = 60", partial(ratio_covers, n=60), COVERED, 8)
    for ratio, paired in ((1.0, True), (2.0, True), (2.0, False)):
        name = f"percentage, skewed, ratio {ratio:g}, n = 30{'' if paired else ' each'}"
        yield Claim(name, partial(percentage_covers, n=30, ratio=ratio, paired=paired), (0.93, 0.98), 2)
    yield Claim("A/A, quantile 0.95 by bootstrap, n = 200", partial(quantile_alarms, n=200, share=0.95), AT_MOST, 8)
    for rate in (0.9, 0.95, 0.98):
        for clusters in (8, 30):
            for alike in (0.0, 0.3, 0.8):
                name = f"rate {rate}, {clusters} clusters of 1 to 5, ICC {alike}"
                trial = partial(edge_rate_covers, rate=rate, clusters=clusters, alike=alike)
                yield Claim(name, trial, (0.93, 1.0), 4)
    yield Claim("Hedges' g of pairs, n = 40", partial(effect_covers, n=40), COVERED)
    for n in (5, 8, 20):
        yield Claim(f"Hedges' g, n = {n} each", partial(group_effect_covers, n=n), (0.93, 0.98))


def wilson_covers(chance: Chance, n: int, p: float) -> float:
    return holds(wilson_interval(sum(coin(chance, n, p)), n), p)


def mean_covers(chance: Chance, n: int) -> float:
    return holds(mean_interval([chance.random() for _ in range(n)]), 0.5)


def clusters_cover(chance: Chance, sizes: Sequence[int]) -> float:
    return holds(clustered_mean_interval(in_clusters(chance, sizes), named(sizes)), 0.0)


def clustered_rate_covers(chance: Chance, sizes: Sequence[int]) -> float:
    """Check passes whose rate differs by cluster, around 0.6."""
    passed = []
    for size in sizes:
        passed += coin(chance, size, chance.uniform(0.3, 0.9))
    return holds(estimate_interval(passed, named(sizes)), 0.6)


def edge_rate_covers(chance: Chance, rate: float, clusters: int, alike: float) -> float:
    """Check a rate near 1 with the product's interval; `alike` is the correlation within clusters."""
    passed: list[float] = []
    sizes = [chance.randint(1, 5) for _ in range(clusters)]
    for size in sizes:
        total = 1 / alike - 1 if alike else 0.0
        own = chance.betavariate(rate * total, (1 - rate) * total) if alike else rate
        passed += coin(chance, size, own)
    interval = clustered_rate_interval(passed, named(sizes))
    return holds(interval, rate) if interval is not None else edge_rate_covers(chance, rate, clusters, alike)


def epochs_cover(chance: Chance, n: int, of: int, p: float, q: float) -> float:
    """Check pairs that differ; if all are the same, there is no interval."""
    while True:
        found = Evidence(epochs(chance, n, of, p), epochs(chance, n, of, q)).interval()
        if found is not None:
            return holds(found, p - q)


def pairs_cover(chance: Chance, n: int, up: float, down: float) -> float:
    found = paired_t(*flips(chance, n, up, down))
    return holds(found and found.interval(), up - down)


def welch_covers(chance: Chance, n: int, m: int) -> float:
    found = welch_t(coin(chance, n, 0.8), coin(chance, m, 0.6))
    return holds(found and found.interval(), 0.2)


def clustered_pairs_cover(chance: Chance, sizes: Sequence[int]) -> float:
    first, second = in_clusters(chance, sizes), in_clusters(chance, sizes)
    found = clustered_paired_t(first, second, named(sizes))
    return holds(found and found.interval(), 0.0)


def clustered_groups_cover(chance: Chance, sizes: Sequence[int], shared: bool) -> float:
    """Check two groups of clusters, or clusters that have values in both groups."""
    values = in_clusters(chance, [*sizes, *sizes])
    names = named([*sizes, *sizes])
    half = sum(sizes)
    cut = (slice(0, None, 2), slice(1, None, 2)) if shared else (slice(half), slice(half, None))
    found = clustered_welch_t(values[cut[0]], names[cut[0]], values[cut[1]], names[cut[1]])
    return holds(found and found.interval(), 0.0)


def bootstrap_covers(chance: Chance, n: int, size: int = 1) -> float:
    """Check the mean of n values, or of n clusters of several values each."""
    values = [chance.uniform(-1, 1) for _ in range(n)] if size == 1 else in_clusters(chance, [size] * n)
    clusters = [place // size for place in range(n * size)]
    return holds(bootstrap_interval(values, fmean, clusters=clusters, seed=chance.getrandbits(32)), 0.0)


def paired_evidence(
    chance: Chance, n: int, size: int, compute: Callable[[Mapping[str, float]], Callable[[Sequence[str]], float | None]]
) -> BootstrapEvidence:
    """Return evidence of two equal systems with skewed numbers, whose samples (in clusters of `size`) are paired."""
    common = [each for each in (chance.gauss(0, 0.5) for _ in range(n)) for _ in range(size)]
    sides = [{f"s{i}": math.exp(hard + chance.gauss(0, 0.5)) for i, hard in enumerate(common)} for _ in range(2)]
    clusters = {f"s{i}": str(i // size) for i in range(n * size)} if size > 1 else None
    first, second = (Statistic(MetricValue(None, n), side, compute(side)) for side in sides)
    return BootstrapEvidence(first, second, Side("a", clusters=clusters), Side("b", clusters=clusters))


def quantile_evidence(chance: Chance, n: int, share: float, size: int) -> BootstrapEvidence:
    return paired_evidence(
        chance, n, size, lambda side: Quantile(((value, name) for name, value in side.items()), share)
    )


def quantile_covers(chance: Chance, n: int, share: float = 0.5, size: int = 1, is_difference: bool = True) -> float:
    """Check the difference of equal systems, which is 0, or the quantile of one system, exp(z / sqrt 2)."""
    evidence = quantile_evidence(chance, n, share, size)
    if is_difference:
        return holds(evidence.interval(), 0.0)
    return holds(evidence.make_delta("q").a_interval, math.exp(NormalDist().inv_cdf(share) * math.sqrt(0.5)))


def quantile_alarms(chance: Chance, n: int, share: float) -> float:
    p = quantile_evidence(chance, n, share, 1).make_delta("q").p
    return float(p is not None and p <= 0.05)


def ratio_covers(chance: Chance, n: int) -> float:
    """Check the ratio of a sum to the number of samples above 1, of two equal systems."""

    def compute(side: Mapping[str, float]) -> Callable[[Sequence[str]], float | None]:
        def ratio(samples: Sequence[str]) -> float | None:
            passed = sum(side[name] > 1 for name in samples)
            return sum(side[name] for name in samples) / passed if passed else None

        return ratio

    return holds(paired_evidence(chance, n, 1, compute).interval(), 0.0)


def percentage_covers(chance: Chance, n: int, ratio: float, paired: bool) -> float:
    """Check the percentage by which skewed numbers differ, such as costs; the samples are as hard for both."""
    hard = [chance.gauss(0, 0.5) for _ in range(n)]
    first = [ratio * math.exp(each + chance.gauss(0, 0.7)) for each in hard]
    second = [math.exp((each if paired else chance.gauss(0, 0.5)) + chance.gauss(0, 0.7)) for each in hard]
    evidence = Evidence(first, second, paired)
    return holds(evidence.percentage_interval(evidence.interval()), 100 * (ratio - 1))


def effect_covers(chance: Chance, n: int) -> float:
    """Check Hedges' g of pairs: a difference of .1 with a standard deviation of .2 * sqrt 2."""
    found = measure_paired_effect(*graded(chance, n, 0.1))
    return holds(found and found.interval, 0.1 / (0.2 * math.sqrt(2)))


def group_effect_covers(chance: Chance, n: int) -> float:
    """Check Hedges' g of two groups that differ by 0.8 standard deviations."""
    found = measure_effect([chance.gauss(0.8, 1) for _ in range(n)], [chance.gauss(0, 1) for _ in range(n)])
    return holds(found and found.interval, 0.8)
