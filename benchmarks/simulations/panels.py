"""Panels of judges: the interval of the error correlation contains the truth, also if no output has both errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from benchmarks.simulations.claim import Chance, Claim
from proctor.core.stats.intervals import Interval
from proctor.validity.panels import PanelRow, estimate_correlation

# Correlations at the end of their range give too wide an interval, never too narrow a one.
WIDE = (0.93, 0.99)
REPEATS = 3


def correlated_judges() -> Iterator[Claim]:
    """Every replicate has its own error rates and correlation, so each claim is about 800 settings."""
    for n in (30, 60, 120, 300):
        yield Claim(f"panel: error correlation of 2 judges, {n} labels", partial(covers, n=n), WIDE, 5)
        yield Claim(f"panel: rare errors of 2 judges, {n} labels", partial(covers, n=n, highest=0.1), WIDE, 5)
    yield Claim("panel: error correlation of 3 judges, 60 labels", partial(covers_three, n=60), WIDE, 5)
    yield Claim("panel: error correlation, 40 clusters of 3 labels", partial(covers, n=40, repeats=REPEATS), WIDE, 5)


def covers(chance: Chance, *, n: int, highest: float = 0.4, repeats: int = 1) -> float:
    """Return 1 if the interval contains the correlation; settings without two judges that err are drawn again.

    With `repeats` every output is in the labels that many times, as epochs of a deterministic target are.
    """
    while True:
        a, b = (chance.uniform(0.03, highest) for _ in range(2))
        spread = math.sqrt(a * (1 - a) * b * (1 - b))
        most = (min(a, b) - a * b) / spread
        truth = chance.uniform(max(-a * b / spread, -0.1), most)
        both = min(min(a, b), max(0.0, a * b + truth * spread))
        errors = chance.choices([(1, 1), (1, 0), (0, 1), (0, 0)], [both, a - both, b - both, 1 - a - b + both], k=n)
        interval = _measure(chance, [pair for pair in errors for _ in range(repeats)], n, repeats)
        if interval is not None:
            return float(interval[0] <= truth <= interval[1])


def covers_three(chance: Chance, *, n: int) -> float:
    """Return 1 if the interval contains the mean correlation of three judges that share a cause of errors."""
    while True:
        cause, alone = chance.uniform(0.05, 0.2), [chance.uniform(0.03, 0.2) for _ in range(3)]
        given = [chance.uniform(0.2, 0.9) for _ in range(3)]
        rates = [cause * (1 - (1 - g) * (1 - p)) + (1 - cause) * p for g, p in zip(given, alone, strict=True)]
        total = 0.0
        for i, j in ((0, 1), (0, 2), (1, 2)):
            pair = [1 - (1 - given[k]) * (1 - alone[k]) for k in (i, j)]
            both = cause * pair[0] * pair[1] + (1 - cause) * alone[i] * alone[j]
            spread = math.sqrt(rates[i] * (1 - rates[i]) * rates[j] * (1 - rates[j]))
            total += (both - rates[i] * rates[j]) / spread
        rows = []
        for _ in range(n):
            hit = chance.random() < cause
            rows.append(
                tuple(
                    int(chance.random() < p or (hit and chance.random() < g)) for p, g in zip(alone, given, strict=True)
                )
            )
        interval = _measure(chance, rows, n, 1)
        # A judge without errors leaves the mean of other pairs.
        if interval is not None and all(any(column) for column in zip(*rows, strict=True)):
            return float(interval[0] <= total / 3 <= interval[1])


def _measure(chance: Chance, rows: list[tuple[int, ...]], n: int, repeats: int) -> Interval | None:
    units: list[list[PanelRow]] = [[] for _ in range(n)]
    for index, errors in enumerate(rows):
        truth = chance.random() < 0.6
        units[index // repeats].append(PanelRow(truth, tuple(truth != bool(error) for error in errors), 1.0, None))
    correlation = estimate_correlation(units)
    return None if correlation is None else correlation.interval
