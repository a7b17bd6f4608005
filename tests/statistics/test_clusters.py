"""Clustered means and differences: by hand, against each other, and undefined cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proctor.core.stats.differences import paired_t, welch_t
from proctor.core.stats.effects import clustered_mean_t, clustered_paired_t, clustered_welch_t
from proctor.core.stats.intervals import clustered_mean_interval, find_cluster_problem

SCORES = st.lists(st.integers(0, 20).map(lambda twentieths: twentieths / 20), min_size=6, max_size=24)


def test_a_clustered_mean_by_hand() -> None:
    """Cluster sums .2 0 -.4 .4 -.2: error sqrt(.4) / 10 * sqrt(5/4) = .0707107, 4 df."""
    scores = [0.9, 0.8, 0.7, 0.8, 0.5, 0.6, 0.9, 1.0, 0.6, 0.7]
    result = clustered_mean_t(scores, "aabbccddee")
    assert result is not None
    assert result.difference == pytest.approx(0.75)
    assert result.error == pytest.approx(math.sqrt(0.4) / 10 * math.sqrt(5 / 4))
    assert result.df == 4
    assert result.interval() == clustered_mean_interval(scores, "aabbccddee")


def test_clusters_of_one_pair_give_the_paired_t() -> None:
    first, second = [0.9, 0.4, 0.7, 0.6, 0.1, 1.0], [0.5, 0.5, 0.2, 0.6, 0.0, 0.3]
    clustered, plain = clustered_paired_t(first, second, range(6)), paired_t(first, second)
    assert clustered is not None
    assert plain is not None
    assert tuple(clustered) == pytest.approx(tuple(plain))


def test_copies_of_pairs_add_no_information() -> None:
    """Every pair three times, clustered: the same difference, error and p."""
    first, second = [0.9, 0.4, 0.7, 0.6, 0.1, 1.0], [0.5, 0.5, 0.2, 0.6, 0.0, 0.3]
    once = clustered_paired_t(first, second, range(6))
    thrice = clustered_paired_t(first * 3, second * 3, [*range(6)] * 3)
    assert once is not None
    assert thrice is not None
    assert tuple(thrice) == pytest.approx(tuple(once))


@given(SCORES, SCORES)
def test_clusters_of_one_value_give_welch_t(first: list[float], second: list[float]) -> None:
    """Including the degrees of freedom."""
    plain = welch_t(first, second)
    assume(plain is not None)
    assert plain is not None
    n, m = len(first), len(second)
    names = range(n), range(n, n + m)
    result = clustered_welch_t(first, names[0], second, names[1])
    assert result is not None
    assert tuple(result) == pytest.approx(tuple(plain), rel=1e-6, abs=1e-12)


def test_the_error_is_the_jackknife_over_clusters() -> None:
    """CR3: calculated from all means without one cluster."""
    values = [0.1, 0.9, 0.4, 0.8, 0.3, 0.6, 0.7, 0.2, 1.0, 0.5]
    clusters = "aaabbcdefg"
    result = clustered_mean_t(values, clusters)
    assert result is not None
    left = [np.mean([v for v, c in zip(values, clusters, strict=True) if c != item]) for item in "abcdefg"]
    squares = sum((item - np.mean(values)) ** 2 for item in left)
    assert result.error == pytest.approx(math.sqrt(6 / 7 * squares))
    assert result.df == pytest.approx(10**2 / (9 + 4 + 5) - 1)


def test_the_error_of_a_difference_is_the_jackknife_over_shared_clusters() -> None:
    first, second = [0.1, 0.9, 0.4, 0.8, 0.3, 0.6, 0.7], [0.3, 0.5, 0.9, 0.1, 0.8, 0.2]
    actual, expected = "aabcdef", "abcdef"
    result = clustered_welch_t(first, actual, second, expected)
    assert result is not None
    differences = [
        np.mean([v for v, c in zip(first, actual, strict=True) if c != item])
        - np.mean([v for v, c in zip(second, expected, strict=True) if c != item])
        for item in "abcdef"
    ]
    squares = sum((item - result.difference) ** 2 for item in differences)
    assert result.error == pytest.approx(math.sqrt(5 / 6 * squares))
    assert result.df == pytest.approx(7**2 / 9 - 1)


def test_one_dominant_cluster_has_no_error() -> None:
    """A hundred samples of one document and five of others are not six documents."""
    names = ["big"] * 100 + [*"abcde"]
    values = [float(position % 3) for position in range(105)]
    assert find_cluster_problem(names) == "one cluster has most of the samples"
    assert find_cluster_problem([*"abc" * 30, *"defghi"]) == "a few clusters have most of the samples"
    assert find_cluster_problem("abcd") == "fewer than 5 clusters"
    assert find_cluster_problem("aabbccdde") == ""
    assert clustered_mean_t(values, names) is None
    assert clustered_paired_t(values, values[::-1], names) is None
    assert clustered_welch_t(values, names, [0.0, 1.0, 0.0, 1.0, 0.5], "abcde") is None


def test_variance_shared_by_clusters_is_removed() -> None:
    """Values that differ only by cluster, and a constant difference: almost no error remains."""
    hard = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9]
    result = clustered_welch_t([h + 0.1 for h in hard], "abcdef", [*hard[:5], 0.91], "abcdef")
    differences = clustered_welch_t([h + 0.1 for h in hard], "abcdef", [*hard[:5], 0.91], "uvwxyz")
    assert result is not None
    assert differences is not None
    assert result.difference == differences.difference == pytest.approx(0.1 - 0.01 / 6)
    assert result.error < 0.01 < 0.1 < differences.error


def test_undefined_estimates_are_none() -> None:
    """Four clusters, equal clusters, groups without variance, too few clusters in one group."""
    assert clustered_mean_t([0.1, 0.2, 0.3, 0.4], "abcd") is None
    assert clustered_mean_t([0.5] * 6, "abcdef") is None
    assert clustered_paired_t([0.3] * 5, [0.1] * 5, "abcde") is None
    assert clustered_welch_t([1.0] * 5, "abcde", [0.0] * 5, "abcde") is None
    assert clustered_welch_t([1.0, 0.0, 1.0, 1.0], "abcd", [0.0, 1.0] * 3, "abcdef") is None
