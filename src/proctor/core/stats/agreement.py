"""How far raters agree: by count, and beyond what chance alone would give.

The formulas: Cohen 1960 and 1968 (two raters, also weighted), Fleiss 1971 (as many raters for every
item), Krippendorff 2004 (raters may be missing). A figure that is not defined, because
there is nothing to compare or because everybody always says the same, is None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Literal

Label = Hashable
Ratings = Iterable[Sequence[Label | None]]
Weights = Literal["linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]


def percent_agreement(ratings: Ratings) -> float | None:
    """Of all pairs of raters of one item, the share that says the same.

    One row for each item, one label for each rater, None where a rater said nothing.

    >>> percent_agreement([("yes", "yes"), ("yes", "no"), ("no", None)])
    0.5
    """
    same = pairs = 0
    for counts in map(_counted, ratings):
        same += sum(_pairs(count) for count in counts.values())
        pairs += _pairs(counts.total())
    return same / pairs if pairs else None


def cohen_kappa(
    first: Sequence[Label | None],
    second: Sequence[Label | None],
    *,
    weights: Weights | None = None,
    categories: Sequence[Any] | None = None,
) -> float | None:
    """How far two raters agree beyond chance: 1 is always, 0 as often as by chance.

    Items that one of them did not rate are left out. With weights, near misses count less than far
    ones; how far is told by the place in `categories`, else by the order of the labels themselves.

    >>> round(cohen_kappa([1, 1, 1, 0, 0], [1, 1, 0, 0, 0]), 3)
    0.615
    """
    rated = [
        (one, other)
        for one, other in zip(first, second, strict=True)
        if one is not None and other is not None
    ]
    rows, columns = Counter(one for one, _ in rated), Counter(other for _, other in rated)
    cost = _cost(weights, categories, {*rows, *columns})
    observed = sum(cost(one, other) for one, other in rated)
    expected = sum(cost(one, other) * rows[one] * columns[other] for one in rows for other in columns)
    return 1 - len(rated) * observed / expected if expected else None


def fleiss_kappa(ratings: Ratings) -> float | None:
    """How far several raters agree beyond chance, every item rated by as many of them.

    >>> round(fleiss_kappa([("a", "a", "b"), ("b", "b", "b"), ("a", "b", "b")]), 3)
    0.0
    """
    items = [_counted(row) for row in ratings]
    totals = {counts.total() for counts in items}
    if len(totals) > 1:
        raise ValueError(
            "Fleiss' kappa wants as many ratings for every item; "
            "krippendorff_alpha takes items that some raters left out"
        )
    raters = max(totals, default=0)
    pairs = len(items) * _pairs(raters)
    if not pairs:
        return None
    observed = sum(_pairs(count) for counts in items for count in counts.values()) / pairs
    overall: Counter[Label] = sum(items, Counter())
    n = overall.total()
    squares = sum(count * count for count in overall.values())
    if squares == n * n:
        return None
    by_chance = squares / (n * n)
    return (observed - by_chance) / (1 - by_chance)


def krippendorff_alpha(
    ratings: Ratings, *, level: Level = "nominal", categories: Sequence[Any] | None = None
) -> float | None:
    """How far any number of raters agree beyond chance, some of them missing.

    Items with fewer than two ratings say nothing and are left out. Bare labels ("nominal") are the
    same or not; of "ordinal" ones it counts how many ratings lie between (their order is that of
    `categories`, else that of the labels), of "interval" ones, which are numbers, how far apart.

    >>> krippendorff_alpha([("a", "a", None), ("b", "b", "b"), ("a", None, None)])
    1.0
    >>> round(krippendorff_alpha([(1, 2), (3, 3), (4, 5), (1, 1)], level="interval"), 3)
    0.891
    """
    items = [counts for counts in map(_counted, ratings) if counts.total() > 1]
    overall: Counter[Label] = sum(items, Counter())
    disagreement = _disagreement(level, categories, overall)
    expected = disagreement(overall)
    if not expected:
        return None
    observed = math.fsum(disagreement(counts) / (counts.total() - 1) for counts in items)
    return 1 - (overall.total() - 1) * observed / expected


def _disagreement(
    level: Level, categories: Sequence[Any] | None, overall: Counter[Label]
) -> Callable[[Counter[Label]], float]:
    """How far all ordered pairs of some ratings disagree, summed."""
    if level == "nominal":
        return lambda counts: counts.total() ** 2 - sum(n * n for n in counts.values())
    if level == "interval":
        place: dict[Any, float] = {label: label for label in overall}  # type: ignore[misc]
    elif level == "ordinal":
        place, before = {}, 0
        for label in _in_order(categories, set(overall)):
            place[label] = before + overall[label] / 2
            before += overall[label]
    else:
        raise ValueError(f"the level is 'nominal', 'ordinal' or 'interval', got {level!r}")

    def squares(counts: Counter[Label]) -> float:
        n = counts.total()
        centre = math.fsum(count * place[label] for label, count in counts.items()) / n
        return 2 * n * math.fsum(count * (place[label] - centre) ** 2 for label, count in counts.items())

    return squares


def _counted(row: Sequence[Label | None]) -> Counter[Label]:
    return Counter(label for label in row if label is not None)


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _cost(weights: Weights | None, categories: Sequence[Any] | None, labels: set[Any]) -> Any:
    """How much a pair of labels disagrees: all or nothing, or by how far they lie apart."""
    if weights is None:
        return lambda one, other: int(one != other)
    if weights not in ("linear", "quadratic"):
        raise ValueError(f"weights are 'linear' or 'quadratic', got {weights!r}")
    place = {label: position for position, label in enumerate(_in_order(categories, labels))}
    power = 1 if weights == "linear" else 2
    return lambda one, other: abs(place[one] - place[other]) ** power


def _in_order(categories: Sequence[Any] | None, labels: set[Any]) -> list[Any]:
    order = sorted(labels) if categories is None else list(categories)
    unknown = labels - set(order)
    if unknown:
        raise ValueError(f"labels that are not among the categories: {sorted(map(repr, unknown))}")
    return order
