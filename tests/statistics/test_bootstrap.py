"""The bootstrap: scipy agrees, seeds hold, clusters stay together, and it is quick."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from proctor.core.stats.intervals import mean_interval
from proctor.core.stats.ranks import Method, bootstrap, bootstrap_mean, resamples_for

METHODS: tuple[Method, ...] = ("percentile", "bca")


def skewed(n: int, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [chance.expovariate(1) for _ in range(n)]


@pytest.mark.parametrize("method", METHODS)
def test_intervals_of_a_mean_are_scipys(method: Method) -> None:
    """Of 60 lopsided values both ends are scipy's, but for the chance of the draws."""
    values = skewed(60)
    theirs = stats.bootstrap(
        (np.array(values),),
        np.mean,
        n_resamples=20_000,
        method="BCa" if method == "bca" else "percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval
    found = bootstrap_mean(values, method=method, resamples=20_000, seed=5)
    assert found is not None
    assert found.interval == pytest.approx((theirs.low, theirs.high), abs=0.012)
    assert found.value == pytest.approx(statistics.fmean(values))


@pytest.mark.parametrize("method", METHODS)
def test_any_figure_is_scipys(method: Method) -> None:
    """A standard deviation of 50 values."""
    values = skewed(50, seed=3)
    theirs = stats.bootstrap(
        (np.array(values),),
        lambda x, axis: np.std(x, axis=axis, ddof=1),
        n_resamples=9_999,
        method="BCa" if method == "bca" else "percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval
    found = bootstrap(values, statistics.stdev, method=method, resamples=4_000, seed=5)
    assert found is not None
    assert found.interval == pytest.approx((theirs.low, theirs.high), abs=0.05)


def test_the_two_ways_to_a_mean_agree() -> None:
    """Draws of values, of counts of few kinds, and of any figure have the same interval."""
    values = [0.0, 0.5, 1.0, 1.0] * 60
    plain = bootstrap(values, statistics.fmean, resamples=3_000)
    counted = bootstrap_mean(values, resamples=3_000)
    drawn = bootstrap_mean([value + place * 1e-9 for place, value in enumerate(values)])
    assert plain is not None
    assert counted is not None
    assert drawn is not None
    assert counted.interval == pytest.approx(plain.interval, abs=0.008)
    assert drawn.interval == pytest.approx(plain.interval, abs=0.008)


def test_the_seed_is_the_interval() -> None:
    """The same seed gives the same interval and is told; another gives another."""
    values = skewed(40)
    first, again = bootstrap_mean(values, seed=7), bootstrap_mean(values, seed=7)
    other = bootstrap_mean(values, seed=8)
    assert first == again
    assert first is not None
    assert other is not None
    assert (first.seed, first.method, first.resamples) == (7, "bca", 4_000)
    assert first.interval != other.interval


@pytest.mark.parametrize("distinct", [True, False])
def test_clusters_are_drawn_whole(distinct: bool) -> None:
    """Every value ten times over, clustered: as wide as once. Without clusters: far narrower."""
    chance = random.Random(2)
    values = [chance.random() if distinct else float(chance.random() < 0.5) for _ in range(120)]
    names = [*range(120)] * 10
    once, clustered = bootstrap_mean(values), bootstrap_mean(values * 10, clusters=names)
    naive = bootstrap_mean(values * 10)
    general = bootstrap(values * 10, statistics.fmean, clusters=names, resamples=1_000)
    assert once is not None
    assert clustered is not None
    assert naive is not None
    assert general is not None
    assert clustered.interval == pytest.approx(once.interval, abs=0.012)
    assert general.interval == pytest.approx(once.interval, abs=0.02)
    assert width(naive.interval) == pytest.approx(width(once.interval) / 10**0.5, rel=0.1)


def test_clusters_of_different_sizes_weigh_by_their_values() -> None:
    """The figure is the mean of all values, also where clusters differ in size."""
    found = bootstrap_mean([1.0, 1.0, 1.0, 0.0, 0.5, 0.2, 0.1, 0.2], clusters="aaabcdef")
    assert found is not None
    assert found.value == pytest.approx(4.0 / 8)
    assert found.interval[0] < found.value < found.interval[1]


@given(st.lists(st.integers(0, 20).map(float), min_size=30, max_size=60), st.sampled_from(METHODS))
@settings(max_examples=25, deadline=None)
def test_near_student_and_within_the_data(values: list[float], method: Method) -> None:
    """The ends lie within the values, and for a mean not far from Student's."""
    found = bootstrap_mean(values, method=method, resamples=500)
    student = mean_interval(values)
    assert found is not None
    assert student is not None
    low, high = found.interval
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    room = width(student) / 2 + 1e-9
    assert abs(low - student[0]) <= room
    assert abs(high - student[1]) <= room


def test_values_that_do_not_vary_and_too_few() -> None:
    """All equal: a point. One value, four clusters, nothing: None."""
    for values in ([0.3] * 50, [0.1] * 3):
        found = bootstrap_mean(values)
        assert found is not None
        assert found.interval == pytest.approx((values[0], values[0]))
    assert bootstrap_mean([]) is None
    assert bootstrap_mean([0.4]) is None
    assert bootstrap([0.4], max) is None
    assert bootstrap_mean([0.1, 0.2, 0.3, 0.4], clusters="abcd") is None
    with pytest.raises(ValueError, match="zip"):
        bootstrap_mean([0.1, 0.2], clusters="a")


def test_a_figure_at_the_edge_stays_finite() -> None:
    """No draw has a larger maximum: the bias has no end, the interval does."""
    found = bootstrap(skewed(30), max)
    assert found is not None
    assert found.interval[1] == found.value


def test_anything_can_be_drawn() -> None:
    """Pairs of (passed, tokens): tokens for each pass, a ratio of two sums."""
    pairs = [(1, 120.0), (0, 300.0), (1, 90.0), (1, 150.0), (0, 200.0)] * 20

    def tokens_a_pass(some: Sequence[tuple[int, float]]) -> float:
        return sum(tokens for _, tokens in some) / max(1, sum(passed for passed, _ in some))

    found = bootstrap(pairs, tokens_a_pass, resamples=1_000)
    assert found is not None
    assert found.value == pytest.approx(860 / 3)
    assert 200 < found.interval[0] < 860 / 3 < found.interval[1] < 400


def test_counted_draws_have_the_right_spread() -> None:
    """The mean of 400 yes and no: draws spread by sqrt(p (1 - p) / n), 1.96 of them each way."""
    values = [1.0] * 280 + [0.0] * 120
    assert len(Counter(values)) == 2
    found = bootstrap_mean(values, method="percentile", resamples=20_000)
    assert found is not None
    half = 1.96 * (0.7 * 0.3 / 400) ** 0.5
    assert found.interval == pytest.approx((0.7 - half, 0.7 + half), abs=0.003)


def test_ten_thousand_values_take_about_a_second() -> None:
    """1,000 draws of 10,000 different values, in less CPU time than five seconds anywhere."""
    assert resamples_for(10_000) == 1_000
    values = skewed(10_000)
    began = time.process_time()
    found = bootstrap_mean(values)
    assert time.process_time() - began < 5
    assert found is not None
    assert found.interval == pytest.approx(mean_interval(values), abs=0.004)


def width(interval: tuple[float, float]) -> float:
    return interval[1] - interval[0]
