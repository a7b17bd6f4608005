"""Control charts: published run lengths, and a self-starting CUSUM by hand and by simulation."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from proctor.core.stats.control_chart import average_run_length, chart, find_limit
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")


@pytest.mark.parametrize(
    ("limit", "shift", "published"),
    [(4, 0, 168), (4, 1, 8.38), (4, 2, 3.34), (5, 0, 465), (5, 1, 10.4), (5, 2, 4.01), (4, 0.5, 26.6), (5, 0.5, 38.0)],
)
def test_run_lengths_of_montgomery(limit: float, shift: float, published: float) -> None:
    """The table of the two-sided CUSUM with k = 1/2 (Montgomery, Introduction to Statistical Quality Control)."""
    assert average_run_length(limit, shift) == pytest.approx(published, rel=0.005)


def test_run_lengths_agree_with_siegmund() -> None:
    """(exp(-2Δb) + 2Δb - 1) / (2Δ²) with Δ = -1/2, b = h + 1.166 is the one-sided approximation: within 2%."""
    delta, b = -0.5, 5 + 1.166
    one_sided = (math.exp(-2 * delta * b) + 2 * delta * b - 1) / (2 * delta**2)
    assert average_run_length(5) == pytest.approx(one_sided / 2, rel=0.02)


def test_the_limit_of_a_run_length() -> None:
    """The inverse of the run length."""
    assert find_limit(average_run_length(4)) == pytest.approx(4, abs=1e-4)
    assert average_run_length(find_limit(200)) == pytest.approx(200, rel=1e-3)


def test_a_chart_by_hand() -> None:
    """1, 3, then 5: t = (5 - 2) / (√2 · √1.5) = 1.732 with 1 df is the probability 5/6, so the score .9674."""
    first, second, third = chart([1, 3, 5])
    assert (first, second) == ((None, 0, 0), (None, 0, 0))
    assert third.score == pytest.approx(stats.norm.ppf(5 / 6))
    assert (third.high, third.low) == pytest.approx((stats.norm.ppf(5 / 6) - 0.5, 0))


def test_weights_are_relative_variances() -> None:
    """A value of four times the variance counts a quarter: center (1/1 + 4/4) / (1.25), t with 1 df."""
    score = chart([1, 4, 3], weights=[1, 4, 1])[2].score
    center = (1 + 4 / 4) / 1.25
    variance = (1 - center) ** 2 + (4 - center) ** 2 / 4
    t = (3 - center) / math.sqrt(variance * (1 + 1 / 1.25))
    assert score == pytest.approx(stats.norm.ppf(stats.t.cdf(t, 1)))


def test_equal_values_do_not_show_that_nothing_varies() -> None:
    """Without a floor a tiny step is as extreme as it gets; with a floor of one result it is not."""
    values = [0.8] * 10 + [0.81]
    assert chart(values)[-1].high > 5
    assert chart(values, floor=0.01)[-1].score == pytest.approx(stats.norm.ppf(stats.t.cdf(1 / math.sqrt(1.1), 9)))
    assert chart([0.8] * 10)[-1] == (0.0, 0.0, 0.0)


def test_the_scores_of_healthy_values_are_standard_normal() -> None:
    """Even of short charts: 200 charts of 8 values have scores with the mean 0 and the variance 1, and few alarms."""
    rng = random.Random(5)
    scores = [
        point.score
        for _ in range(200)
        for point in chart([rng.gauss(7, 3) for _ in range(8)])
        if point.score is not None
    ]
    assert stats.kstest(scores, "norm").pvalue > 0.01
    assert stats.pearsonr(scores[:-1], scores[1:]).pvalue > 0.01


def test_half_of_a_run_length_passes_before_most_false_alarms() -> None:
    """40 charts of 84 healthy values, half of 168: about 1 - exp(-1/2) = 39% raise an alarm."""
    rng = random.Random(6)
    alarms = sum(any(max(p.high, p.low) > 4 for p in chart([rng.gauss(0, 1) for _ in range(84)])) for _ in range(40))
    assert alarms / 40 == pytest.approx(0.39, abs=4 * math.sqrt(0.39 * 0.61 / 40))
