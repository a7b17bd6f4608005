"""Early stopping and gates: how often equal systems are called different or fail."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.simulations.claim import AT_MOST, Chance, Claim
from benchmarks.simulations.made_up import flips
from proctor.core.stats.differences import paired_t
from proctor.core.stats.intervals import mean_interval
from proctor.core.stats.sequential import Betting, non_inferiority


def early() -> Iterator[Claim]:
    """False alarms stay below 5% if the result is checked after every sample."""
    yield Claim(
        "A/A, t interval at 50 looks of 1000 (a warning)",
        partial(naive_alarm, n=1000, every=20, share=0.1),
        (0.2, 0.45),
        4,
    )
    yield Claim("A/A, betting, 600 looks, 10% + 10% flip", partial(early_alarm, n=600, share=0.1), AT_MOST, 4)
    yield Claim("A/A, betting, 600 looks, 40% + 40% flip", partial(early_alarm, n=600, share=0.4), AT_MOST, 4)


def gates() -> Iterator[Claim]:
    """Gates on equal systems fail in at most 2%."""
    yield Claim("gate red, equal, margin 2%, n = 500", partial(falsely_red, n=500, margin=0.02, share=0.1), (0.0, 0.02))
    yield Claim(
        "gate red, equal, margin 1%, n = 1000", partial(falsely_red, n=1000, margin=0.01, share=0.1), (0.0, 0.02), 2
    )
    yield Claim(
        "gate red, equal, margin 2%, n = 500, one-sided 5%",
        partial(falsely_red, n=500, margin=0.02, share=0.1, confidence=0.9),
        (0.0, 0.02),
    )
    yield Claim(
        "gate red, equal, margin 0, n = 500 (2.5% by design)",
        partial(falsely_red, n=500, margin=0.0, share=0.1),
        (0.015, 0.035),
    )
    yield Claim(
        "gate green, worse by the margin, n = 500", partial(falsely_green, n=500, margin=0.02, share=0.1), (0.0, 0.035)
    )
    yield Claim(
        "gate red, equal, margin 2%, stops when decided",
        partial(early_red, n=600, margin=0.02, share=0.1),
        (0.0, 0.02),
        4,
    )


def early_alarm(chance: Chance, n: int, share: float) -> float:
    """Return 1 if equal systems are called different at any of n looks."""
    sequence = Betting(-1.0, 1.0)
    for _ in range(n):
        draw = chance.random()
        low, high = sequence.add(float(draw < share) - float(draw > 1 - share))
        if not low <= 0 <= high:
            return 1.0
    return 0.0


def naive_alarm(chance: Chance, n: int, every: int, share: float) -> float:
    """Return the same for a fixed-sample interval, which does not correct for repeated looks."""
    seen: list[float] = []
    for _ in range(n // every):
        for _ in range(every):
            draw = chance.random()
            seen.append(float(draw < share) - float(draw > 1 - share))
        interval = mean_interval(seen)
        if interval is not None and not interval[0] <= 0 <= interval[1]:
            return 1.0
    return 0.0


def falsely_red(chance: Chance, n: int, margin: float, share: float, confidence: float = 0.95) -> float:
    result = paired_t(*flips(chance, n, share, share))
    if result is None:
        return 0.0
    return float(non_inferiority(result.interval(confidence), margin) == "fail")


def falsely_green(chance: Chance, n: int, margin: float, share: float) -> float:
    """Return 1 if a system that is worse by exactly the margin passes."""
    result = paired_t(*flips(chance, n, share - margin / 2, share + margin / 2))
    return float(result is not None and non_inferiority(result.interval(), margin) == "pass")


def early_red(chance: Chance, n: int, margin: float, share: float) -> float:
    """Return 1 if a gate that checks equal systems after every sample fails."""
    sequence = Betting(-1.0, 1.0)
    for _ in range(n):
        draw = chance.random()
        interval = sequence.add(float(draw < share) - float(draw > 1 - share))
        verdict = non_inferiority(interval, margin)
        if verdict != "inconclusive":
            return float(verdict == "fail")
    return 0.0
