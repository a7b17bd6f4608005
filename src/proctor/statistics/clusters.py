"""Means and differences of values that come in clusters: sessions, documents, epochs of a sample.

The values of one cluster resemble each other, so that they count for less than as many independent
ones. The errors allow for that (`intervals`: the jackknife over clusters, CR3, and Student's t with
the effective number of clusters less one); below five clusters, or where a few of them hold most of
the values, the spread between them cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from proctor.statistics.differences import Student, differences
from proctor.statistics.intervals import (
    ROUNDING,
    clustered_error,
    effective_clusters,
    pulls_of_clusters,
    too_few_clusters,
)
from proctor.statistics.moments import mean


def clustered_mean(values: Sequence[float], clusters: Sequence[Hashable]) -> Student | None:
    """The mean of clustered values; None below five clusters, or where these do not differ.

    >>> found = clustered_mean([0.0, 1.0, 0.0, 1.0, 1.0, 1.0], "abcdde")
    >>> round(found.difference, 3), round(found.error, 3), found.df
    (0.667, 0.24, 3.5)
    """
    found = clustered_error(values, clusters)
    return None if found is None or found[1] == 0 else Student(*found)


def clustered_pairs(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable]
) -> Student | None:
    """How far the first lie above their partners, the pairs coming in clusters.

    None below five clusters, or where these do not differ.

    >>> found = clustered_pairs([1, 1, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1], "aabcde")
    >>> round(found.difference, 3), round(found.p(), 3)
    (0.333, 0.347)
    """
    return clustered_mean(differences(first, second), clusters)


def clustered_groups(
    first: Sequence[float],
    first_clusters: Sequence[Hashable],
    second: Sequence[float],
    second_clusters: Sequence[Hashable],
) -> Student | None:
    """How far the mean of the first group lies above that of the second, without pairs.

    A cluster may have values in both groups: what they share is then taken out. Without any such
    cluster it is Welch's t of clustered means. None below five clusters in either group, or where
    nothing varies.

    >>> found = clustered_groups([1, 1, 0, 1, 1, 1], "aabcde", [0, 1, 0, 1, 0], "abcde")
    >>> round(found.difference, 3), found.df
    (0.433, 3.5)
    """
    one, other = mean(first), mean(second)
    if too_few_clusters(first_clusters) or too_few_clusters(second_clusters):
        return None
    if one is None or other is None:
        return None
    mine = pulls_of_clusters(first, first_clusters)
    theirs = pulls_of_clusters(second, second_clusters)
    error = _length([mine.get(c, 0.0) - theirs.get(c, 0.0) for c in {**mine, **theirs}])
    if error <= ROUNDING:
        return None
    dfs = effective_clusters(first_clusters) - 1, effective_clusters(second_clusters) - 1
    df = min(dfs)
    if not mine.keys() & theirs.keys():
        parts = (_length([*pulls.values()]) / error for pulls in (mine, theirs))
        df = 1 / sum(part**4 / own for part, own in zip(parts, dfs, strict=True))
    return Student(one - other, error, df)


def _length(parts: Sequence[float]) -> float:
    return math.sqrt(math.fsum(part * part for part in parts))
