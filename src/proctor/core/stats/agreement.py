"""Agreement between raters: as a percentage, and corrected for chance.

Cohen 1960 and 1968 (two raters, optionally weighted), Fleiss 1971 (equally many raters per item) and
Krippendorff 2004 (missing ratings allowed). A coefficient that is undefined is None.
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
    """Return the share of rater pairs, over all items, that chose the same label.

    Each row is one item with one label per rater; None marks a missing rating.
    """
    same = pairs = 0
    for counts in map(_count_labels, ratings):
        same += sum(math.comb(count, 2) for count in counts.values())
        pairs += math.comb(counts.total(), 2)
    return same / pairs if pairs else None


def cohen_kappa(
    first: Sequence[Label | None],
    second: Sequence[Label | None],
    *,
    weights: Weights | None = None,
    categories: Sequence[Any] | None = None,
) -> float | None:
    """Return the chance-corrected agreement of two raters: 1 is perfect, 0 is chance level.

    Items that either rater skipped are left out. With weights, a disagreement counts by the distance
    of the labels in `categories`, or in their sorted order.
    """
    rated = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    rows, columns = Counter(a for a, _ in rated), Counter(b for _, b in rated)
    cost = _disagreement_cost(weights, categories, {*rows, *columns})
    observed = sum(cost(a, b) for a, b in rated)
    expected = sum(cost(a, b) * rows[a] * columns[b] for a in rows for b in columns)
    return 1 - len(rated) * observed / expected if expected else None


def fleiss_kappa(ratings: Ratings) -> float | None:
    """Return the chance-corrected agreement of several raters, equally many for every item."""
    items = [_count_labels(row) for row in ratings]
    totals = {counts.total() for counts in items}
    if len(totals) > 1:
        raise ValueError(
            "Fleiss' kappa needs the same number of ratings for every item. "
            "Fix: use krippendorff_alpha, which accepts missing ratings"
        )
    pairs = len(items) * math.comb(max(totals, default=0), 2)
    if not pairs:
        return None
    observed = sum(math.comb(count, 2) for counts in items for count in counts.values()) / pairs
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
    """Return the chance-corrected agreement of any number of raters; ratings may be missing.

    Items with fewer than two ratings are left out. "nominal" labels are equal or not; "ordinal" labels
    differ by the number of ratings between them (ordered by `categories`, or sorted); "interval"
    labels are numbers and differ by their distance.
    """
    items = [counts for counts in map(_count_labels, ratings) if counts.total() > 1]
    overall: Counter[Label] = sum(items, Counter())
    disagreement = _disagreement(level, categories, overall)
    expected = disagreement(overall) if items else 0
    if not expected:
        return None
    observed = math.fsum(disagreement(counts) / (counts.total() - 1) for counts in items)
    return 1 - (overall.total() - 1) * observed / expected


def _disagreement(
    level: Level, categories: Sequence[Any] | None, overall: Counter[Label]
) -> Callable[[Counter[Label]], float]:
    """Return a function that sums the disagreement of all ordered pairs of ratings."""
    if level == "nominal":
        return lambda counts: counts.total() ** 2 - sum(n * n for n in counts.values())
    if level == "interval":
        position: dict[Any, float] = {label: label for label in overall}  # type: ignore[misc]
    elif level == "ordinal":
        position, before = {}, 0
        for label in _order_labels(categories, set(overall)):
            position[label] = before + overall[label] / 2
            before += overall[label]
    else:
        raise ValueError(f"level must be 'nominal', 'ordinal' or 'interval', got {level!r}")

    def sum_squares(counts: Counter[Label]) -> float:
        n = counts.total()
        centre = math.fsum(count * position[label] for label, count in counts.items()) / n
        squares = math.fsum(count * (position[label] - centre) ** 2 for label, count in counts.items())
        return 2 * n * squares

    return sum_squares


def _count_labels(row: Sequence[Label | None]) -> Counter[Label]:
    return Counter(label for label in row if label is not None)


def _disagreement_cost(weights: Weights | None, categories: Sequence[Any] | None, labels: set[Any]) -> Any:
    if weights is None:
        return lambda a, b: int(a != b)
    if weights not in ("linear", "quadratic"):
        raise ValueError(f"weights must be 'linear' or 'quadratic', got {weights!r}")
    position = {label: i for i, label in enumerate(_order_labels(categories, labels))}
    exponent = 1 if weights == "linear" else 2
    return lambda a, b: abs(position[a] - position[b]) ** exponent


def _order_labels(categories: Sequence[Any] | None, labels: set[Any]) -> list[Any]:
    order = sorted(labels) if categories is None else list(categories)
    unknown = labels - set(order)
    if unknown:
        raise ValueError(f"labels that are not among the categories: {sorted(map(repr, unknown))}")
    return order
