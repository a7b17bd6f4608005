"""Lines through points whose errors resemble each other within a cluster.

Least squares by orthogonal columns, and standard errors that hold when the values of one cluster
belong together (Liang and Zeger 1986), with the correction C/(C-1) * (n-1)/(n-k) for few clusters.
For a mean alone it is the clustered error of `intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from proctor.core.stats.intervals import FEWEST_CLUSTERS

# A column that lies this near to the ones before it tells nothing that they do not.
PARALLEL = 1e-10

Column = Sequence[float]


class Fit(NamedTuple):
    """A line: the level first, then one slope for each column; their errors; degrees of freedom."""

    coefficients: tuple[float, ...]
    errors: tuple[float, ...]
    df: int


def regression(outcomes: Column, columns: Sequence[Column], clusters: Sequence[Hashable]) -> Fit | None:
    """How the outcomes go up with each column, the others held, with clustered errors.

    None below five clusters, with no more values than unknowns, or where one column is told by
    the others.

    >>> fit = regression([1.0, 3.0, 5.0, 7.0, 9.0, 12.0], [[0, 1, 2, 3, 4, 5]], "abcdef")
    >>> [round(number, 3) for number in fit.coefficients]
    [0.81, 2.143]
    """
    n, groups = len(outcomes), _places(clusters)
    if any(len(column) != n for column in (*columns, clusters)):
        raise ValueError("every column, and the clusters, must have one entry for each outcome")
    unknowns = len(columns) + 1
    if len(groups) < FEWEST_CLUSTERS or n <= unknowns:
        return None
    found = _orthogonal([[1.0] * n, *columns])
    if found is None:
        return None
    directions, triangle = found
    shares = [_dot(direction, outcomes) for direction in directions]
    rest = list(outcomes)
    for direction, share in zip(directions, shares, strict=True):
        rest = [value - share * part for value, part in zip(rest, direction, strict=True)]
    # What each cluster's leftovers pull at each coefficient.
    pulls = [
        _back(triangle, [math.fsum(direction[i] * rest[i] for i in group) for direction in directions])
        for group in groups
    ]
    count = len(groups)
    factor = count / (count - 1) * (n - 1) / (n - unknowns)
    errors = tuple(math.sqrt(factor * math.fsum(pull[k] ** 2 for pull in pulls)) for k in range(unknowns))
    return Fit(tuple(_back(triangle, shares)), errors, count - 1)


def _places(clusters: Sequence[Hashable]) -> list[list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        groups.setdefault(cluster, []).append(place)
    return list(groups.values())


def _orthogonal(columns: Sequence[Column]) -> tuple[list[list[float]], list[list[float]]] | None:
    """Columns of length 1 at right angles, and the triangle that makes the given ones of them.

    Gram and Schmidt, each column cleared twice: once leaves what rounding brought back.
    """
    directions: list[list[float]] = []
    triangle: list[list[float]] = []
    for column in columns:
        left, row = list(column), [0.0] * len(columns)
        for _ in range(2):
            for k, direction in enumerate(directions):
                share = _dot(direction, left)
                row[k] += share
                left = [value - share * part for value, part in zip(left, direction, strict=True)]
        length = math.sqrt(_dot(left, left))
        if length <= PARALLEL * math.sqrt(_dot(column, column)):
            return None
        row[len(directions)] = length
        directions.append([value / length for value in left])
        triangle.append(row)
    return directions, triangle


def _back(triangle: Sequence[Sequence[float]], shares: Sequence[float]) -> list[float]:
    """The coefficients of the given columns, from the shares of the orthogonal ones."""
    solved = [0.0] * len(shares)
    for k in reversed(range(len(shares))):
        later = math.fsum(triangle[j][k] * solved[j] for j in range(k + 1, len(shares)))
        solved[k] = (shares[k] - later) / triangle[k][k]
    return solved


def _dot(one: Column, other: Column) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))
