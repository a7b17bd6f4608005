"""The percentile bootstrap: agreement with scipy and Student, seeds and clusters."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from proctor.core.stats.bootstrap import bootstrap_interval
from proctor.core.stats.intervals import Interval, mean_interval
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")


def draw_skewed(n: int, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [rng.expovariate(1) for _ in range(n)]


def width(interval: Interval) -> float:
    return interval[1] - interval[0]


def test_the_interval_of_a_standard_deviation_agrees_with_scipy() -> None:
    values = draw_skewed(50, seed=3)
    expected = stats.bootstrap(
        (np.array(values),),
        lambda x, axis: np.std(x, axis=axis, ddof=1),
        n_resamples=4_000,
        method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval
    interval = bootstrap_interval(values, statistics.stdev, seed=5)
    assert interval == pytest.approx((expected.low, expected.high), abs=0.05)


def test_the_interval_of_a_mean_is_close_to_student() -> None:
    values = draw_skewed(200)
    interval, student = bootstrap_interval(values, statistics.fmean), mean_interval(values)
    assert interval is not None
    assert student is not None
    assert interval == pytest.approx(student, abs=0.2 * width(student))


def test_the_same_seed_gives_the_same_interval() -> None:
    values = draw_skewed(40)
    first, again, other = (bootstrap_interval(values, statistics.fmean, seed=seed) for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_clusters_are_resampled_as_a_whole() -> None:
    """Copies of values in the same cluster add no information; without clusters they seem to."""
    values, clusters = draw_skewed(60, seed=2), [*range(60)] * 4
    once = bootstrap_interval(values, statistics.fmean)
    clustered = bootstrap_interval(values * 4, statistics.fmean, clusters=clusters)
    naive = bootstrap_interval(values * 4, statistics.fmean)
    assert once is not None
    assert naive is not None
    assert clustered == pytest.approx(once, abs=0.05 * width(once))
    assert width(naive) == pytest.approx(width(once) / 2, rel=0.1)


def test_clusters_of_unequal_size_are_accepted() -> None:
    values = [1.0, 1.0, 1.0, 0.0, 0.5, 0.2, 0.1, 0.2]
    interval = bootstrap_interval(values, statistics.fmean, clusters="aaabcdef")
    assert interval is not None
    assert interval[0] < 0.5 < interval[1]


def test_too_few_values_or_clusters_have_no_interval() -> None:
    assert bootstrap_interval([0.1] * 3, max) == (0.1, 0.1)
    assert bootstrap_interval([], max) is None
    assert bootstrap_interval([0.4], max) is None
    assert bootstrap_interval([0.1, 0.2, 0.3, 0.4], max, clusters="abcd") is None
    with pytest.raises(ValueError, match="zip"):
        bootstrap_interval([0.1, 0.2], max, clusters="abcdef")


def test_a_ratio_of_sums_has_an_interval() -> None:
    """Tokens for each passed sample, resampled as pairs of (passed, tokens)."""
    pairs = [(1, 120.0), (0, 300.0), (1, 90.0), (1, 150.0), (0, 200.0)] * 20

    def tokens_per_pass(resampled: Sequence[tuple[int, float]]) -> float:
        return sum(tokens for _, tokens in resampled) / max(1, sum(passed for passed, _ in resampled))

    interval = bootstrap_interval(pairs, tokens_per_pass)
    assert interval is not None
    assert 200 < interval[0] < 860 / 3 < interval[1] < 400
