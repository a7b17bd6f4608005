"""A claim of the statistics, and how often it held."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import NamedTuple

SEED, REPLICATES = 20240607, 4000
FALSE_ALARMS = (0.04, 0.06)
AT_MOST = (0.0, 0.05)
COVERED = (0.93, 0.97)
# Chance moves a share this many Monte Carlo errors beyond its true value in less than 1 of 1,000 claims.
CHANCE_ERRORS = 3.1
UNDECIDED = "UNDECIDED: use more replicates"

Chance = random.Random
Trial = Callable[[Chance], float]


class Claim(NamedTuple):
    """A trial that returns 1 or 0 (or a share), and the range in which its mean must lie.

    A slow claim divides the number of replicates by its `cost`.
    """

    name: str
    trial: Trial
    asked: tuple[float, float]
    cost: int = 1


class Found(NamedTuple):
    """The measured share of a claim, its Monte Carlo error, the number of replicates and the duration."""

    claim: Claim
    share: float
    error: float
    replicates: int
    seconds: float

    @property
    def verdict(self) -> str:
        """Say whether the share is in the required range; a share just beyond it may be chance."""
        low, high = self.claim.asked
        if low <= self.share <= high:
            return "holds"
        beyond = max(low - self.share, self.share - high)
        return UNDECIDED if beyond < CHANCE_ERRORS * self.error else "DOES NOT HOLD"


def simulate(claim: Claim, replicates: int = REPLICATES, seed: int = SEED) -> Found:
    """Run the trial of a claim many times."""
    start, chance = time.perf_counter(), random.Random(f"{seed} {claim.name}")
    times = max(min(100, replicates), replicates // claim.cost)
    results = [claim.trial(chance) for _ in range(times)]
    share = math.fsum(results) / times
    spread = math.fsum((result - share) ** 2 for result in results) / (times - 1)
    return Found(claim, share, math.sqrt(spread / times), times, time.perf_counter() - start)
