"""How likely each of several is the best, if other samples of the same kind had been drawn."""

from __future__ import annotations

import random
from collections.abc import Sequence

# Of more than twice as many, samples are put together in so many batches, which keeps their spread
# and makes the time independent of their number.
MOST_UNITS = 500


def chances_of_best(
    columns: Sequence[Sequence[float]],
    *,
    highest: bool = True,
    resamples: int = 1000,
    seed: int = 0,
) -> list[float]:
    """For each column of numbers, in how many resamples its mean is the best of all.

    The columns have one number for each sample, in the same order. Samples are drawn with
    replacement, the same for all columns, so that what they have in common is no difference
    (Efron's bootstrap). Equals share.

    >>> chances_of_best([[1.0, 1.0, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]])
    [1.0, 0.0]
    """
    chance = random.Random(seed)
    units = _batched(columns, chance)
    best = [0.0] * len(columns)
    if not units or not columns:
        return best
    pick = max if highest else min
    for _ in range(resamples):
        totals = [sum(column) for column in zip(*chance.choices(units, k=len(units)), strict=True)]
        top = pick(totals)
        first = [place for place, total in enumerate(totals) if total == top]
        for place in first:
            best[place] += 1 / len(first)
    return [share / resamples for share in best]


def _batched(columns: Sequence[Sequence[float]], chance: random.Random) -> list[tuple[float, ...]]:
    """One row a sample, or the sums of random batches of about one size where there are many."""
    rows = list(zip(*columns, strict=True))
    if len(rows) <= 2 * MOST_UNITS:
        return rows
    chance.shuffle(rows)
    batches = [rows[start::MOST_UNITS] for start in range(MOST_UNITS)]
    return [tuple(map(sum, zip(*batch, strict=True))) for batch in batches]
