"""Whether two orders agree: Kendall's tau-b (1945), which allows for ties.

Counted in n log n steps (Knight 1966).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from proctor.statistics.bootstrap import bootstrap
from proctor.statistics.distributions import normal_cdf
from proctor.statistics.intervals import Interval

EXACT_UP_TO = 50
FEWEST_WITH_TIES = 10


class Kendall(NamedTuple):
    """Tau from -1 (reversed) to 1 (the same order), and how likely chance alone gives as much.

    `p` is exact up to fifty items without ties, else by the normal distribution; with ties and
    fewer than ten items it is None, as neither would be right.
    """

    tau: float
    p: float | None
    n: int


def kendall_tau(first: Sequence[Any], second: Sequence[Any]) -> Kendall | None:
    """How far two rankings of the same items agree; None where one of them ranks nothing.

    >>> found = kendall_tau([1, 2, 3, 4, 5], [1, 3, 2, 4, 5])
    >>> round(found.tau, 3), round(found.p, 4)
    (0.8, 0.0833)
    """
    pairs = sorted(zip(first, second, strict=True))
    n = len(pairs)
    all_pairs = n * (n - 1) // 2
    ties, its_ties = _tied(first), _tied(second)
    if all_pairs in (_pairs(ties), _pairs(its_ties)):
        return None
    untied, its_untied = all_pairs - _pairs(ties), all_pairs - _pairs(its_ties)
    score = _score(pairs)
    tau = score / math.sqrt(untied) / math.sqrt(its_untied)
    return Kendall(max(-1.0, min(1.0, tau)), _p(score, n, ties, its_ties), n)


def kendall_interval(
    first: Sequence[Any],
    second: Sequence[Any],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Where tau truly lies, by drawing the items again and again; whole clusters, if given.

    None below ten items or five clusters, or where one of the rankings ranks nothing. Below some
    thirty items it is too narrow. A draw in which one side ranks nothing counts as 0.

    >>> low, high = kendall_interval(range(12), [1, 0, 2, 3, 5, 4, 6, 7, 9, 8, 10, 11])
    >>> 0.5 < low < high <= 1.0
    True
    """
    pairs = list(zip(first, second, strict=True))
    if len(pairs) < FEWEST_WITH_TIES or kendall_tau(first, second) is None:
        return None

    def tau(drawn: Sequence[tuple[Any, Any]]) -> float:
        found = kendall_tau([one for one, _ in drawn], [other for _, other in drawn])
        return 0.0 if found is None else found.tau

    found = bootstrap(
        pairs, tau, clusters=clusters, method="percentile", confidence=confidence, seed=seed
    )
    return None if found is None else found.interval


def _score(pairs: Sequence[tuple[Any, Any]]) -> int:
    """Pairs of items in the same order less those in the opposite order.

    The items come by the first ranking; of those before it, each looks up how many lie below it
    and above it in the second. Items tied in the first are looked up before any of them is added.
    """
    seen: list[Any] = []
    waiting: list[Any] = []
    score, last = 0, None
    for one, other in pairs:
        if waiting and one != last:
            for earlier in waiting:
                insort(seen, earlier)
            waiting = []
        last = one
        score += bisect_left(seen, other) - (len(seen) - bisect_right(seen, other))
        waiting.append(other)
    return score


def _tied(values: Sequence[Any]) -> list[int]:
    return [count for count in Counter(values).values() if count > 1]


def _pairs(ties: Sequence[int]) -> int:
    return sum(count * (count - 1) // 2 for count in ties)


def _p(score: int, n: int, ties: Sequence[int], its_ties: Sequence[int]) -> float | None:
    if not ties and not its_ties and n <= EXACT_UP_TO:
        return _exact(score, n)
    if n < FEWEST_WITH_TIES:
        return None
    variance = _variance(n, ties, its_ties)
    return 2 * normal_cdf(-abs(score) / math.sqrt(variance))


def _exact(score: int, n: int) -> float:
    """Of all orders of n items, the share with as many or more pairs one way round."""
    ways = [1]
    for size in range(2, n + 1):
        # One more item stands in front of 0 to size - 1 of the others.
        added = [0] * (len(ways) + size - 1)
        for place, count in enumerate(ways):
            added[place] += count
            if place + size < len(added):
                added[place + size] -= count
        running = 0
        for place, count in enumerate(added):
            running += count
            added[place] = running
        ways = added
    fewest = (n * (n - 1) // 2 - abs(score)) // 2
    return min(1.0, 2 * sum(ways[: fewest + 1]) / math.factorial(n))


def _variance(n: int, ties: Sequence[int], its_ties: Sequence[int]) -> float:
    """The variance of the score if chance alone ordered the items (Kendall 1970)."""
    m = n * (n - 1)
    base = m * (2 * n + 5) - sum(
        t * (t - 1) * (2 * t + 5) for side in (ties, its_ties) for t in side
    )
    twos = [sum(t * (t - 1) for t in side) for side in (ties, its_ties)]
    threes = [sum(t * (t - 1) * (t - 2) for t in side) for side in (ties, its_ties)]
    return base / 18 + twos[0] * twos[1] / (2 * m) + threes[0] * threes[1] / (9 * m * (n - 2))
