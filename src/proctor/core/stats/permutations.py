"""How likely a difference is if it were chance who stands in which group: by rearranging them all.

Nothing is assumed of the shape of the numbers, so that ties, zero variance and tiny groups are
right. Pairs are counted, however small the probability; where there are too many rearrangements
of groups or pairs, a seed draws some (Phipson and Smyth 2010).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Literal, NamedTuple

from proctor.core.stats.descriptive import mean

Direction = Literal["any", "higher", "lower"]

ALL_UP_TO = 20_000
DRAWN, FEWEST_DRAWN = 4_999, 999
# So many values are drawn in all, as far as that leaves enough draws.
DRAWN_VALUES = 100_000
# A difference this small beside the numbers themselves is what rounding left of none.
ROUNDING = 1e-12
# So many pairs are counted on a grid of so many steps; more are drawn.
COUNTED_UP_TO, GRID = 100, 20_000
OPPOSITE: dict[Direction, Direction] = {"any": "any", "higher": "lower", "lower": "higher"}


class Probability(NamedTuple):
    """How likely chance alone gives as much, the least that could have come out, and by what."""

    p: float
    smallest: float
    method: str


def shuffled(
    first: Sequence[float],
    second: Sequence[float],
    direction: Direction = "any",
    seed: int = 0,
    *,
    studentised: bool = False,
) -> Probability:
    """How likely two independent groups differ as much in their means by chance alone.

    Values of two kinds (passed and failed) are counted exactly, however many there are: that is
    Fisher's test. `studentised` divides a difference by its standard error (Janssen 1997), where
    rearrangements are drawn: right also where groups of unequal size have unequal spreads.

    >>> shuffled([3.0, 4.0], [1.0, 2.0]).p == 2 / 6
    True
    """
    pooled = _alike([*first, *second])
    k, n = len(first), len(pooled)
    both = 2 if direction == "any" and 2 * k == n else 1
    ways = math.comb(n, k) if n <= ALL_UP_TO else math.inf
    exact = "exact permutation test"
    if len(set(pooled)) <= 2:
        high = [value > min(pooled) for value in pooled]
        p = _hypergeometric(sum(high[:k]), k, sum(high), n, direction)
        return Probability(p, both * math.exp(-_log_choices(n, k)), exact)
    centre = mean(pooled) or 0.0
    # With the pooled mean taken off, the sum of one group tells the difference of the means.
    moved = [value - centre for value in pooled]
    if ways <= ALL_UP_TO:
        smaller, sign = (k, 1.0) if 2 * k <= n else (n - k, -1.0)
        sums = (sign * math.fsum(chosen) for chosen in combinations(moved, smaller))
        reached = _reached(sums, math.fsum(moved[:k]), direction, _slack(pooled))
        return Probability(reached / ways, both / ways, exact)
    if not studentised and (min(moved[:k]) > max(moved[k:]) or max(moved[:k]) < min(moved[k:])):
        # Nothing lies further out than groups that lie wholly apart.
        return Probability(*_apart(moved, k, n, direction), exact)
    if 2 * k > n:
        moved, k = moved[k:] + moved[:k], n - k
        direction = OPPOSITE[direction]
    p, times = _drawn(moved, k, direction, random.Random(seed), studentised)
    kind = "studentised permutation test" if studentised else "permutation test"
    return Probability(p, 1 / (times + 1), f"{kind} ({times} drawn)")


def _apart(moved: Sequence[float], k: int, n: int, direction: Direction) -> tuple[float, float]:
    """How likely the highest (or lowest) k of n are one group, and the least that can be."""
    one, both = math.exp(-_log_choices(n, k)), 2 if direction == "any" and 2 * k == n else 1
    is_meant = direction == "any" or (moved[0] > moved[-1]) is (direction == "higher")
    return both * one if is_meant else 1.0, both * one


def flipped(differences: Sequence[float], direction: Direction = "any", seed: int = 0) -> Probability:
    """How likely the differences of pairs lie as far to one side by chance alone.

    >>> flipped([1.0, 2.0, 3.0]).p == 2 / 8
    True
    """
    moved = [value for value in differences if value]
    both = 2 if direction == "any" else 1
    smallest = min(1.0, math.ldexp(both, -len(differences)))
    if len({abs(value) for value in moved}) <= 1:
        up = sum(value > 0 for value in moved)
        return Probability(sign_test(up, len(moved) - up, direction), smallest, "exact sign test")
    observed, slack = math.fsum(moved), _slack(moved)
    if 2 ** len(moved) <= ALL_UP_TO:
        flips = product(*((value, -value) for value in moved))
        p = _reached(map(math.fsum, flips), observed, direction, slack) / 2 ** len(moved)
        return Probability(p, smallest, "exact permutation test of pairs")
    if len(moved) <= COUNTED_UP_TO:
        p = counted(moved, direction)
        return Probability(p, smallest, "permutation test of pairs")
    chance, sizes = random.Random(seed), Counter(map(abs, moved))
    sums = (
        # Of as many values of one size, so many come out positive more than negative.
        math.fsum(size * (2 * chance.getrandbits(count).bit_count() - count) for size, count in sizes.items())
        for _ in range(DRAWN)
    )
    p = (_reached(sums, observed, direction, slack) + 1) / (DRAWN + 1)
    return Probability(p, 1 / (DRAWN + 1), f"permutation test of pairs ({DRAWN} drawn)")


def counted(moved: Sequence[float], direction: Direction = "any") -> float:
    """How likely signs drawn by chance sum as far out: all arrangements counted, none drawn.

    >>> counted([0.5, 0.25, 0.75, 0.125]) == 2 / 16
    True

    The numbers, of which none is 0, are rounded to a fine grid, and what rounding may have taken is
    given back, so that the probability is never too small. How many arrangements have each sum
    stands in one long number, a field for each sum: a further value adds the same number moved up
    by it.
    """
    whole = math.fsum(map(abs, moved))
    steps = [round(abs(value) / whole * GRID) for value in moved]
    width, sums = len(moved) + 1, 1
    for step in steps:
        sums += sums << (step * width)
    # A sum of signed values is twice that of the positive ones less the whole.
    observed = math.fsum(moved) / whole
    side = abs(observed) if direction == "any" else observed * (-1 if direction == "lower" else 1)
    slack = (len(moved) + 1) / GRID
    least = math.ceil(((side - slack) * GRID + sum(steps)) / 2)
    # As the fields lie next to each other, the remainder is what they sum to.
    reached = (sums >> (max(0, least) * width)) % ((1 << width) - 1)
    return min(1.0, (2 if direction == "any" else 1) * reached / (1 << len(moved)))


def sign_test(up: int, down: int, direction: Direction = "any") -> float:
    """How likely so many changes of one kind against the other are by chance: McNemar's exact test.

    `up` counts the pairs where only the first holds, `down` those where only the second does.

    >>> round(sign_test(152, 209), 6)
    0.003151
    """
    n = up + down
    least = min(up, down) if direction == "any" else (down if direction == "higher" else up)
    # In whole numbers: floats would overflow from a thousand pairs on.
    tail = ways = 1
    for k in range(least):
        ways = ways * (n - k) // (k + 1)
        tail += ways
    return min(1.0, (2 if direction == "any" else 1) * tail / (1 << n))


def _drawn(
    values: Sequence[float], k: int, direction: Direction, chance: random.Random, studentised: bool
) -> tuple[float, int]:
    """The probability of the first k of the values as a group, and by how many draws."""
    n = len(values)
    [(common, count)] = Counter(values).most_common(1)
    # Where most are the same, it is quicker to draw the places of the few others.
    rest = [value - common for value in values if value != common] if n - count < k else None
    moved = values if rest is None else [value - common for value in values]
    times = max(FEWEST_DRAWN, min(DRAWN, DRAWN_VALUES // min(k, n - count)))
    groups = (
        chance.sample(moved, k)
        if rest is None
        else [v for v, at in zip(rest, chance.sample(range(n), len(rest)), strict=True) if at < k]
        for _ in range(times)
    )
    if studentised:
        total, squares = math.fsum(moved), math.fsum(v * v for v in moved)
        found = (_student(group, k, n, total, squares) for group in groups)
        observed = _student(moved[:k], k, n, total, squares)
        slack = 1e-9 * (1 + abs(observed))
    else:
        expected = k * math.fsum(moved) / n
        found = (math.fsum(group) - expected for group in groups)
        observed, slack = math.fsum(moved[:k]) - expected, _slack(moved)
    return (_reached(found, observed, direction, slack) + 1) / (times + 1), times


def _student(group: Sequence[float], k: int, n: int, total: float, squares: float) -> float:
    """Welch's t of a group of k against the rest of n; zeros of the group may be left out."""
    own, rest = math.fsum(group), n - k
    own_squares = math.fsum([v * v for v in group])
    other, other_squares = total - own, squares - own_squares
    variance = max(0.0, own_squares - own * own / k) / (k * (k - 1))
    variance += max(0.0, other_squares - other * other / rest) / (rest * (rest - 1))
    return (own / k - other / rest) / math.sqrt(variance) if variance else 0.0


def _hypergeometric(held: int, k: int, high: int, n: int, direction: Direction) -> float:
    """How likely a group of k has as many of the high ones, of which there are so many in n."""

    def far(count: int) -> int:
        # How far a count lies above the expected one, in whole numbers.
        above = count * n - k * high
        return {"any": abs(above), "higher": above, "lower": -above}[direction]

    line, whole = far(held), _log_choices(n, k)
    counts = range(max(0, k + high - n), min(k, high) + 1)
    reached = [
        math.exp(_log_choices(high, count) + _log_choices(n - high, k - count) - whole)
        for count in counts
        if far(count) >= line
    ]
    return 1.0 if len(reached) == len(counts) else min(1.0, math.fsum(reached))


def _log_choices(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _alike(values: Sequence[float]) -> list[float]:
    """The values, those that differ by rounding alone made equal."""
    same: dict[float, float] = {}
    last = None
    for value in sorted(set(values)):
        if last is None or value - last > ROUNDING * max(abs(value), abs(last)):
            last = value
        same[value] = last
    return [same[value] for value in values]


def _reached(sums: Iterable[float], observed: float, direction: Direction, slack: float) -> int:
    """How many sums are at least as far out as the observed one, ties counted."""
    if direction == "any":
        line = abs(observed) - slack
        return sum(abs(total) >= line for total in sums)
    side = 1.0 if direction == "higher" else -1.0
    line = side * observed - slack
    return sum(side * total >= line for total in sums)


def _slack(values: Sequence[float]) -> float:
    """How far two sums of the same numbers may lie apart by rounding alone."""
    return 1e-15 * len(values) * max(map(abs, values))
