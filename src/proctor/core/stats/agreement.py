"""Agreement between raters: as a percentage, and corrected for chance.

Fleiss 1971 (the same number of raters for each item) and Krippendorff 2004 (missing ratings allowed).
A coefficient that is undefined is None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

Label = Hashable
Ratings = Iterable[Sequence[Label | None]]


def percent_agreement(ratings: Ratings) -> float | None:
    """Return the fraction of rater pairs, over all items, that chose the same label.

    Each row is one item with one label per rater; None marks a missing rating.
    """
    same = pairs = 0
    for counts in map(_count_labels, ratings):
        same += sum(math.comb(count, 2) for count in counts.values())
        pairs += math.comb(counts.total(), 2)
    return same / pairs if pairs else None


def fleiss_kappa(ratings: Ratings) -> float | None:
    """Return the chance-corrected agreement of several raters, with the same number of raters for each item."""
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


def krippendorff_alpha(ratings: Ratings) -> float | None:
    """Return the chance-corrected agreement of any number of raters on nominal labels; ratings may be missing.

    Items with fewer than two ratings are left out.
    """
    items = [counts for counts in map(_count_labels, ratings) if counts.total() > 1]
    overall: Counter[Label] = sum(items, Counter())
    expected = _count_disagreements(overall)
    if not expected:
        return None
    observed = math.fsum(_count_disagreements(counts) / (counts.total() - 1) for counts in items)
    return 1 - (overall.total() - 1) * observed / expected


def _count_disagreements(counts: Counter[Label]) -> int:
    """Count the ordered pairs of ratings with different labels."""
    return counts.total() ** 2 - sum(n * n for n in counts.values())


def _count_labels(row: Sequence[Label | None]) -> Counter[Label]:
    return Counter(label for label in row if label is not None)
