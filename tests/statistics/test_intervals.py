"""Confidence intervals: known values, limits and coverage."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.intervals import (
    clustered_mean_interval,
    clustered_rate_interval,
    find_cluster_problem,
    mean_interval,
    min_quantile_units,
    quantile_ranks,
    skew_adjusted_interval,
    wilson_interval,
)
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")

SCORE = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000)
SCORES = st.lists(SCORE, min_size=2, max_size=40)


def test_wilson_of_41_of_60() -> None:
    """41 of 60: centre (41 + 1.9207) / 63.8415 = 0.6723, half width 0.1146."""
    assert wilson_interval(41, 60) == pytest.approx((0.5577, 0.7869), abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(counts: tuple[int, int]) -> None:
    """For every count."""
    passed, n = counts
    expected = stats.binomtest(passed, n).proportion_ci(method="wilson")
    assert wilson_interval(passed, n) == pytest.approx(
        (float(expected.low), float(expected.high)), rel=1e-12, abs=1e-15
    )


def test_wilson_ends_exactly_at_0_and_1() -> None:
    """For none of n and all of n; neither is a single point."""
    none, every = wilson_interval(0, 7), wilson_interval(7, 7)
    assert none is not None
    assert every is not None
    assert none[0] == 0.0 < none[1]
    assert every[0] < every[1] == 1.0


def test_a_higher_confidence_gives_a_wider_interval() -> None:
    wide, narrow = wilson_interval(5, 10, confidence=0.99), wilson_interval(5, 10)
    assert wide is not None
    assert narrow is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_wilson_needs_possible_counts() -> None:
    """0 of 0 is None; 3 of 2 is refused."""
    assert wilson_interval(0, 0) is None
    with pytest.raises(ValueError, match="cannot be a rate"):
        wilson_interval(3, 2)


def test_wilson_covers_as_often_as_it_claims() -> None:
    """With n = 20 and p = 0.9 the exact coverage is 95.7%."""
    covering = [k for k in range(21) if _contains(wilson_interval(k, 20), 0.9)]
    coverage = sum(float(stats.binom.pmf(k, 20, 0.9)) for k in covering)
    assert covering == [16, 17, 18, 19, 20]
    assert coverage == pytest.approx(0.9568, abs=5e-5)


def test_a_mean_of_four_scores() -> None:
    """0.2 … 0.8: mean 0.5, SE 0.12910, t(3) = 3.18245, so 0.5 ± 0.41085."""
    assert mean_interval([0.2, 0.4, 0.6, 0.8]) == pytest.approx((0.08915, 0.91085), abs=1e-5)


@given(SCORES)
def test_mean_intervals_agree_with_scipy(values: list[float]) -> None:
    """Constant values give a single point."""
    result = mean_interval(values)
    assert result is not None
    if len(set(values)) == 1:
        assert result == pytest.approx((values[0], values[0]), rel=1e-12)
    else:
        expected = stats.t.interval(0.95, len(values) - 1, loc=sum(values) / len(values), scale=stats.sem(values))
        assert result == pytest.approx(tuple(map(float, expected)), rel=1e-7, abs=1e-9)


def test_one_value_has_no_interval() -> None:
    assert mean_interval([0.5]) is None
    assert mean_interval([]) is None


def test_a_clustered_mean_by_hand() -> None:
    """Cluster sums .2 0 -.4 .4 -.2 give SE = √.4 / 10 · √(5/4) = .070711, times t(4) = 2.77645."""
    scores = [0.9, 0.8, 0.7, 0.8, 0.5, 0.6, 0.9, 1.0, 0.6, 0.7]
    result = clustered_mean_interval(scores, "aabbccddee")
    assert result == pytest.approx((0.75 - 0.196324, 0.75 + 0.196324), abs=1e-6)


@given(st.lists(SCORE, min_size=5, max_size=40))
def test_clusters_of_one_value_give_students_interval(values: list[float]) -> None:
    clustered = clustered_mean_interval(values, range(len(values)))
    assert clustered == pytest.approx(mean_interval(values), rel=1e-6, abs=1e-9)


@given(st.lists(SCORE, min_size=5, max_size=20, unique=True), st.integers(2, 4))
def test_clustered_copies_do_not_change_the_interval(values: list[float], times: int) -> None:
    copies = clustered_mean_interval(values * times, list(range(len(values))) * times)
    assert copies == pytest.approx(mean_interval(values), rel=1e-6, abs=1e-9)


def test_too_few_clusters_have_no_interval() -> None:
    """Four clusters have none, five have one."""
    assert clustered_mean_interval([0.1, 0.2, 0.3, 0.4], "abcd") is None
    assert clustered_mean_interval([0.1, 0.2, 0.3, 0.4, 0.5], "abcde") is not None
    assert clustered_mean_interval([], []) is None


def test_every_value_needs_a_cluster() -> None:
    with pytest.raises(ValueError, match="2 values have 1 clusters"):
        clustered_mean_interval([0.1, 0.2], "a")


def test_clustered_intervals_cover_where_naive_ones_do_not() -> None:
    """10 clusters of 5 with ICC 0.4: about 95%; far less if clusters are ignored."""
    rng = random.Random(20240127)
    clusters = [index // 5 for index in range(50)]
    naive = clustered = 0
    for _ in range(300):
        shared = [rng.gauss(0, 0.4**0.5) for _ in range(10)]
        values = [shared[cluster] + rng.gauss(0, 0.6**0.5) for cluster in clusters]
        naive += _contains(mean_interval(values), 0.0)
        clustered += _contains(clustered_mean_interval(values, clusters), 0.0)
    assert naive / 300 == pytest.approx(0.754, abs=0.06)
    assert clustered / 300 == pytest.approx(0.957, abs=0.03)


def _contains(interval: tuple[float, float] | None, truth: float) -> bool:
    return interval is not None and interval[0] <= truth <= interval[1]


@given(st.lists(st.integers(-20, 20).map(lambda tenths: tenths / 10), min_size=3, max_size=40))
def test_the_skew_adjustment_only_widens_the_interval(values: list[float]) -> None:
    """It contains Student's interval, equals it for symmetric values, and mirrors with the sign."""
    result, student = skew_adjusted_interval(values), mean_interval(values)
    if len(set(values)) == 1:
        assert result is None
        return
    assert result is not None
    assert student is not None
    assert result[0] <= student[0] + 1e-9
    assert result[1] >= student[1] - 1e-9
    turned = skew_adjusted_interval([-value for value in values])
    assert turned == pytest.approx((-result[1], -result[0]))
    even = skew_adjusted_interval([*values, *(-value for value in values)])
    assert even == pytest.approx(mean_interval([*values, *(-value for value in values)]))


def test_the_skew_adjusted_interval_of_rare_failures_is_close_to_wilsons() -> None:
    """2 of 200: up to 3.6%, where Student ends at 2.4%."""
    low, _ = skew_adjusted_interval([0.0] * 198 + [-1.0] * 2) or (0.0, 0.0)
    wilson = wilson_interval(2, 200)
    assert wilson is not None
    assert low == pytest.approx(-wilson[1], abs=0.002)


def test_wilson_accepts_effective_counts_despite_rounding() -> None:
    result = wilson_interval(58.06451612903226, 58.064516129032256)
    assert result is not None
    assert result[1] == 1.0


@st.composite
def clustered_flags(draw: st.DrawFn) -> tuple[list[float], list[int]]:
    """Passes and failures of 5 to 20 clusters of 1 to 5 values, with at least one failure."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=5, max_size=20))
    clusters = [cluster for cluster, size in enumerate(sizes) for _ in range(size)]
    flags = draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(clusters), max_size=len(clusters)))
    flags[draw(st.integers(0, len(flags) - 1))] = 0.0
    return flags, clusters


@given(clustered_flags(), st.data())
def test_one_more_pass_never_lowers_a_clustered_limit(case: tuple[list[float], list[int]], data: st.DataObject) -> None:
    """The limits of k + 1 of n are not a point below those of k of n, whichever failure becomes a pass.

    They may be a little below: the measured design effect of both differs.
    """
    flags, clusters = case
    better = list(flags)
    better[data.draw(st.sampled_from([i for i, flag in enumerate(flags) if not flag]))] = 1.0
    before, after = (clustered_rate_interval(values, clusters) for values in (flags, better))
    if before is None or after is None:
        assert find_cluster_problem(clusters)
        return
    assert before[0] <= after[0] + 0.01
    assert before[1] <= after[1] + 0.01
    assert 0 <= before[0] <= sum(flags) / len(flags) <= before[1] <= 1


def test_a_clustered_rate_near_one_is_not_too_sure() -> None:
    """25 pairs: 50 of 50 is Wilson's 25 of 25, from 86.7%; 49 of 50 begins lower, not higher."""
    clusters = [i // 2 for i in range(50)]
    full, almost = [1.0] * 50, [0.0] + [1.0] * 49
    assert clustered_rate_interval(full, clusters) == pytest.approx(wilson_interval(25, 25))
    interval = clustered_rate_interval(almost, clusters)
    # One failure leaves a design effect of about (1 × 1 + 4 × 2) / 5 = 1.8: Wilson's interval of 27.8 values.
    assert interval == pytest.approx(wilson_interval(49 / 1.8, 50 / 1.8), abs=0.004)
    assert interval is not None
    assert interval[0] < 0.867


def test_the_median_of_100_values_lies_between_the_40th_and_the_61st() -> None:
    """P(B <= 39) = 0.018 and P(B <= 60) = 0.982 for B binomial with n = 100 and p = 0.5; ranks count from 0."""
    assert quantile_ranks(0.5, 100, 100) == (39, 60)


@given(st.integers(1, 400), st.sampled_from([0.25, 0.5, 0.75, 0.95]))
def test_quantile_intervals_cover_exactly_and_are_as_short_as_possible(n: int, share: float) -> None:
    """Each tail has at most 2.5%, and more than 2.5% if one value is left out; too few values have no interval."""
    ranks = quantile_ranks(share, n, n)
    below = stats.binom(n, share).cdf
    if n < min_quantile_units(share):
        assert ranks is None
        assert max(below(0), 1 - below(n - 1)) > 0.025
        return
    assert ranks is not None
    low, high = ranks
    assert below(low) <= 0.025 + 1e-12
    assert below(low + 1) > 0.025 - 1e-12
    assert 1 - below(high) <= 0.025 + 1e-12
    assert 1 - below(high - 1) > 0.025 - 1e-12


def test_copies_in_clusters_do_not_change_a_quantile_interval() -> None:
    """A hundred clusters of five equal values have the interval of a hundred values: ranks 39 and 60 of clusters."""
    assert quantile_ranks(0.5, 500, 100) == (39 * 5, 60 * 5 + 4)


def test_quantile_ranks_of_a_million_values() -> None:
    """The sums begin near the quantile: the ranks agree with SciPy's."""
    below = stats.binom(1_000_000, 0.95)
    assert quantile_ranks(0.95, 1_000_000, 1_000_000) == (int(below.ppf(0.025)) - 1, int(below.ppf(0.975)))
