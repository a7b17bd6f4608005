"""Real differences: whether they are detected as often as predicted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from benchmarks.simulations.claim import Chance, Claim
from benchmarks.simulations.equal import mcnemar_alarm
from benchmarks.simulations.made_up import coin, flips
from benchmarks.simulations.power import (
    StudyDesign,
    flips_needed,
    power_of_test,
    rates_needed,
    samples_needed,
    variance_of_flips,
    variance_with_epochs,
)
from proctor.core.stats.differences import paired_t, welch_t


def power() -> Iterator[Claim]:
    """Differences are detected as often as predicted, within 3 points."""
    variance = variance_of_flips(0.125, 0.075)
    n = samples_needed(0.05, variance) or 0
    yield Claim(f"power .80, 5 points of pairs, t, n = {n}", partial(pairs_found, n=n, up=0.125, down=0.075), near(0.8))
    yield Claim(
        "power of the same with n = 300",
        partial(pairs_found, n=300, up=0.125, down=0.075),
        near(power_of_test(0.05, variance, 300)),
    )
    n = flips_needed(0.125, 0.075) or 0
    yield Claim(
        f"power .80, the same by McNemar, n = {n}", partial(mcnemar_alarm, n=n, up=0.125, down=0.075), near(0.8)
    )
    n = flips_needed(0.2, 0.05, StudyDesign(power=0.9)) or 0
    yield Claim(
        f"power .90, 20% up 5% down by McNemar, n = {n}", partial(mcnemar_alarm, n=n, up=0.2, down=0.05), near(0.9)
    )
    n = rates_needed(0.6, 0.7) or 0
    yield Claim(
        f"power .80, .6 against .7 independent, n = {n} each", partial(rates_found, n=n, p=0.6, q=0.7), near(0.8)
    )
    variance = variance_with_epochs(0.04, (0.09, 0.09), (4, 4))
    n = samples_needed(0.05, variance) or 0
    yield Claim(f"power .80, 4 epochs a sample, n = {n}", partial(epochs_found, n=n, epochs=4, gap=0.05), near(0.8))


def pairs_found(chance: Chance, n: int, up: float, down: float) -> float:
    result = paired_t(*flips(chance, n, up, down))
    return float(result is not None and result.p() <= 0.05)


def rates_found(chance: Chance, n: int, p: float, q: float) -> float:
    result = welch_t(coin(chance, n, p), coin(chance, n, q))
    return float(result is not None and result.p() <= 0.05)


def epochs_found(chance: Chance, n: int, epochs: int, gap: float) -> float:
    """Return 1 if a difference is detected; each side is the mean of several epochs, and the gap varies by sample."""
    differences = []
    for _ in range(n):
        noise = chance.gauss(0, 0.3 / math.sqrt(epochs)) - chance.gauss(0, 0.3 / math.sqrt(epochs))
        differences.append(chance.gauss(gap, 0.2) + noise)
    result = paired_t(differences, [0.0] * n)
    return float(result is not None and result.p() <= 0.05)


def near(expected: float, by: float = 0.03) -> tuple[float, float]:
    return expected - by, min(1.0, expected + by)
