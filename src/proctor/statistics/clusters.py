"""Means and differences of values that come in clusters: sessions, documents, epochs of a sample.

The values of one cluster resemble each other, so that they count for less than as many independent
ones. The errors allow for that (CR1, Student's t with C - 1 degrees of freedom; Miller 2024,
arXiv 2411.00640); below five clusters the spread between them cannot be told.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from proctor.statistics.differences import Student, differences
from proctor.statistics.intervals import FEWEST_CLUSTERS, clustered_error
from proctor.statistics.regression import regression


def clustered_mean(values: Sequence[float], clusters: Sequence[Hashable]) -> Student | None:
    """The mean of clustered values; None below five clusters, or where these do not differ.

    >>> found = clustered_mean([0.0, 1.0, 0.0, 1.0, 1.0, 1.0], "abcdde")
    >>> round(found.difference, 3), round(found.error, 3), found.df
    (0.667, 0.232, 4)
    """
    found = clustered_error(values, clusters)
    if found is None or found[1] == 0:
        return None
    centre, error, count = found
    return Student(centre, error, count - 1)


def clustered_pairs(
    first: Sequence[float], second: Sequence[float], clusters: Sequence[Hashable]
) -> Student | None:
    """How far the first lie above their partners, the pairs coming in clusters.

    None below five clusters, or where these do not differ.

    >>> found = clustered_pairs([1, 1, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1], "aabcde")
    >>> round(found.difference, 3), round(found.p(), 3)
    (0.333, 0.352)
    """
    return clustered_mean(differences(first, second), clusters)


def clustered_groups(
    first: Sequence[float],
    first_clusters: Sequence[Hashable],
    second: Sequence[float],
    second_clusters: Sequence[Hashable],
) -> Student | None:
    """How far the mean of the first group lies above that of the second, without pairs.

    A cluster may have values in both groups: what they share is then taken out. None below five
    clusters in either group, or where nothing varies.

    >>> found = clustered_groups([1, 1, 0, 1, 1, 1], "aabcde", [0, 1, 0, 1, 0], "abcde")
    >>> round(found.difference, 3), found.df
    (0.433, 4)
    """
    if min(len(set(first_clusters)), len(set(second_clusters))) < FEWEST_CLUSTERS:
        return None
    in_first = [1.0] * len(first) + [0.0] * len(second)
    fit = regression([*first, *second], [in_first], [*first_clusters, *second_clusters])
    if fit is None or fit.errors[1] <= 1e-14:
        return None
    return Student(fit.coefficients[1], fit.errors[1], fit.df)
