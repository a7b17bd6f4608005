"""Equal systems that are compared once: how often they are called different."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks.simulations.claim import FALSE_ALARMS, Chance, Claim
from benchmarks.simulations.made_up import UNEQUAL, coin, flips, graded, in_clusters, named
from proctor.core.stats.differences import compare_groups, paired_t
from proctor.core.stats.effects import clustered_paired_t, holm
from proctor.core.stats.permutations import sign_test

# Leaving out whole clusters may be conservative.
ALARMS = (0.02, 0.06)


def equal_systems() -> Iterator[Claim]:
    """Equal systems are called different in 4 to 6%, and in at most 5% by exact and family-wise tests."""
    yield Claim("A/A, scores of pairs, n = 200", partial(paired_alarm, n=200), FALSE_ALARMS)
    yield Claim("A/A, yes/no of pairs, 10% + 10% flip, n = 400", partial(flips_alarm, n=400, share=0.1), FALSE_ALARMS)
    yield Claim("A/A, exact McNemar, the same", partial(mcnemar_alarm, n=400, up=0.1, down=0.1), (0.02, 0.05))
    yield Claim("A/A, independent yes/no, n = 200 and 150", partial(welch_alarm, n=200, m=150), FALSE_ALARMS)
    yield Claim("A/A, pairs in 20 clusters of 5", partial(clustered_alarm, sizes=[5] * 20), FALSE_ALARMS)
    yield Claim("A/A, pairs in 27 clusters of 2 to 60", partial(clustered_alarm, sizes=UNEQUAL), ALARMS)
    yield Claim(
        "A/A, pairs in 8 clusters, one of 30, the others of 10", partial(clustered_alarm, sizes=[30, *[10] * 7]), ALARMS
    )
    yield Claim("A/A, any of 10 metrics, Holm", partial(family_alarm, metrics=10), FALSE_ALARMS)
    yield from unequal_groups()


def unequal_groups() -> Iterator[Claim]:
    """Groups of unequal size with rare failures, ties, skew or unequal variance."""
    for name, draw, sizes, cost in (
        ("1 of 20 fails", draw_rare_failure, (8, 60), 1),
        ("1 of 20 fails", draw_rare_failure, (20, 200), 1),
        ("grades", draw_grade, (7, 40), 20),
        ("mostly zero", draw_mostly_zero, (20, 200), 20),
        ("exponential", draw_exponential, (8, 40), 20),
        ("lognormal", draw_lognormal, (40, 80), 2),
    ):
        trial = partial(groups_alarm, draw=draw, sizes=sizes)
        # Few replicates have a larger Monte Carlo error.
        limit = 0.065 if cost < 20 else 0.1
        yield Claim(f"A/A, {name}, n = {sizes[0]} and {sizes[1]}", trial, (0.0, limit), cost)
    yield Claim("A/A, 10 that vary three times as much as 40", unequal_variance_alarm, (0.0, 0.1), 20)


def draw_rare_failure(chance: Chance) -> float:
    return float(chance.random() < 0.95)


def draw_grade(chance: Chance) -> float:
    return chance.choice([1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0])


def draw_mostly_zero(chance: Chance) -> float:
    return chance.expovariate(1) if chance.random() < 0.05 else 0.0


def draw_exponential(chance: Chance) -> float:
    return chance.expovariate(1)


def draw_lognormal(chance: Chance) -> float:
    return chance.lognormvariate(0, 1)


def groups_alarm(chance: Chance, draw: Callable[[Chance], float], sizes: tuple[int, int]) -> float:
    first, second = ([draw(chance) for _ in range(size)] for size in sizes)
    test = compare_groups(first, second, seed=chance.getrandbits(32))
    return float(test is not None and test.p <= 0.05)


def unequal_variance_alarm(chance: Chance) -> float:
    first, second = [chance.gauss(0, 3) for _ in range(10)], [chance.gauss(0, 1) for _ in range(40)]
    test = compare_groups(first, second, seed=chance.getrandbits(32))
    return float(test is not None and test.p <= 0.05)


def paired_alarm(chance: Chance, n: int) -> float:
    comparison = compare_groups(*graded(chance, n), paired=True)
    return float(comparison is not None and comparison.p <= 0.05)


def flips_alarm(chance: Chance, n: int, share: float) -> float:
    comparison = compare_groups(*flips(chance, n, share, share), paired=True)
    return float(comparison is not None and comparison.p <= 0.05)


def mcnemar_p(new: Sequence[float], old: Sequence[float]) -> float:
    up = sum(a > b for a, b in zip(new, old, strict=True))
    down = sum(a < b for a, b in zip(new, old, strict=True))
    return sign_test(up, down)


def mcnemar_alarm(chance: Chance, n: int, up: float, down: float) -> float:
    return float(mcnemar_p(*flips(chance, n, up, down)) <= 0.05)


def welch_alarm(chance: Chance, n: int, m: int) -> float:
    comparison = compare_groups(coin(chance, n, 0.7), coin(chance, m, 0.7))
    return float(comparison is not None and comparison.p <= 0.05)


def clustered_alarm(chance: Chance, sizes: Sequence[int]) -> float:
    first, second = in_clusters(chance, sizes), in_clusters(chance, sizes)
    result = clustered_paired_t(first, second, named(sizes))
    return float(result is not None and result.p() <= 0.05)


def family_alarm(chance: Chance, metrics: int) -> float:
    ps = [paired_p(chance) for _ in range(metrics)]
    return float(any(item.rejected for item in holm(ps)))


def paired_p(chance: Chance) -> float:
    result = paired_t(*graded(chance, 60))
    return 1.0 if result is None else result.p()
