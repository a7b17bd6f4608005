"""Many tests at once: some look striking by chance alone, unless that is allowed for.

Holm (1979) keeps the chance of even one false alarm at the level, whatever the tests have to do
with each other. Benjamini and Hochberg (1995) keep the share of false alarms among the alarms at
it: more is found, for tests that are independent or go the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Corrected(NamedTuple):
    """A probability after correction, and whether it is still at or below the level."""

    p: float
    rejected: bool


def holm(probabilities: Sequence[float], level: float = 0.05) -> list[Corrected]:
    """Probabilities that may be read as if each had been the only one, in the order given.

    >>> [round(one.p, 3) for one in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order, m = _ascending(probabilities, level), len(probabilities)
    adjusted, highest = [0.0] * m, 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (m - rank) * probabilities[place]))
        adjusted[place] = highest
    return [Corrected(p, p <= level) for p in adjusted]


def benjamini_hochberg(probabilities: Sequence[float], level: float = 0.05) -> list[Corrected]:
    """The share of false alarms if all that are as striking were called, in the order given.

    >>> [round(one.p, 3) for one in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    order, m = _ascending(probabilities, level), len(probabilities)
    adjusted, lowest = [0.0] * m, 1.0
    for rank, place in reversed(list(enumerate(order, start=1))):
        lowest = min(lowest, m * probabilities[place] / rank)
        adjusted[place] = lowest
    return [Corrected(p, p <= level) for p in adjusted]


def _ascending(probabilities: Sequence[float], level: float) -> list[int]:
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, got {level!r}")
    if not all(0 <= p <= 1 for p in probabilities):
        raise ValueError(f"probabilities lie within 0 and 1, got {list(probabilities)!r}")
    return sorted(range(len(probabilities)), key=lambda place: probabilities[place])
