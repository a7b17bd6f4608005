"""Variance components: by hand, against published fits, and with known truth."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proctor.core.stats.descriptive import mean, mean_and_variance
from proctor.core.stats.variance import (
    ComponentEstimate,
    _count_degrees,
    estimate_components,
    share_intervals,
    summarize_samples,
)


def split(rows: Iterable[Sequence[float]]) -> ComponentEstimate | None:
    """Return the components of samples whose epochs are judged once."""
    return estimate_components(summarize_samples([[value] for value in row] for row in rows))


def test_a_split_by_hand() -> None:
    """Means .9 .1 .6 have the variance .16333, epochs .02 each: between = .16333 - .02 / 2."""
    estimate = split([[0.8, 1.0], [0.2, 0.0], [0.5, 0.7]])
    assert estimate is not None
    assert estimate.within == pytest.approx(0.02)
    assert estimate.between == pytest.approx(0.49 / 3 - 0.01)
    assert estimate.judge is None


@given(st.lists(st.lists(st.integers(0, 8).map(float), min_size=3, max_size=3), min_size=2))
def test_the_components_add_up_to_the_variance_of_the_mean(rows: list[list[float]]) -> None:
    """Between + within / K equals the variance of the sample means, unless it is cut at 0."""
    estimate = split(rows)
    assert estimate is not None
    assume(estimate.between > 0)
    moments = mean_and_variance([mean(row) or 0.0 for row in rows])
    assert moments is not None
    assert estimate.between + (estimate.within or 0.0) / 3 == pytest.approx(moments[1])


def test_equal_samples_have_no_variance_between_them() -> None:
    """A negative estimate counts as 0."""
    assert split([[0.0, 1.0], [1.0, 0.0]]) == (0.0, 0.5, None)


def test_components_are_estimated_from_unbalanced_data() -> None:
    """2,000 samples with 1 to 4 epochs judged 1 to 3 times: between .04, within .09, judge .01."""
    rng = random.Random(11)
    samples = []
    for _ in range(2000):
        centre = rng.gauss(0.5, 0.2)
        epochs = [rng.gauss(centre, 0.3) for _ in range(rng.randint(1, 4))]
        samples.append([[rng.gauss(e, 0.1) for _ in range(rng.randint(1, 3))] for e in epochs])
    estimate = estimate_components(summarize_samples(samples))
    assert estimate is not None
    assert estimate.between == pytest.approx(0.04, abs=0.005)
    assert estimate.within == pytest.approx(0.09, abs=0.008)
    assert estimate.judge == pytest.approx(0.01, abs=0.001)
    # Without repeated judgings, the variance of the judge belongs to the epochs.
    merged = split([[epoch[0] for epoch in sample] for sample in samples])
    assert merged is not None
    assert merged.within == pytest.approx(0.1, abs=0.01)


def test_variance_that_cannot_be_split() -> None:
    """No sample or one sample: None. No sample with two epochs: no variance within samples."""
    assert split([]) is None
    assert split([[0.1, 0.2], []]) is None
    estimate = split([[0.1], [0.2]])
    assert estimate is not None
    assert estimate.within is None


def test_dyestuff_is_reproduced() -> None:
    """Six batches of five yields (Davies 1947): lme4's REML fit has 1764.05 between batches and 2451.25 within."""
    yields = """1545 1440 1440 1520 1580 / 1540 1555 1490 1560 1495 / 1595 1550 1605 1510 1560
        / 1445 1440 1595 1465 1545 / 1595 1630 1515 1635 1625 / 1520 1455 1450 1480 1445"""
    estimate = split([[float(number) for number in batch.split()] for batch in yields.split("/")])
    assert estimate is not None
    assert estimate[:2] == pytest.approx((1764.05, 2451.25))


def test_a_level_without_repeats_belongs_to_the_level_above() -> None:
    """One epoch judged twice: means .5 and 1 have the variance .125, of which the judge's .25 / 2 is taken away."""
    estimate = estimate_components(summarize_samples([[[0.0, 1.0]], [[1.0, 1.0]]]))
    assert estimate == (0.0, None, 0.25)
    assert estimate_components(summarize_samples([[[0.0]], [[1.0]]])) == (0.5, None, None)
    assert estimate_components(summarize_samples([[[0.0]], [[]]])) is None


def split_parts(estimate: ComponentEstimate) -> list[float]:
    """Return the parts of the variance of a mean with three epochs and two judgings."""
    return [estimate.between, (estimate.within or 0.0) / 3, (estimate.judge or 0.0) / 6]


def test_the_shares_have_intervals_that_contain_them() -> None:
    """With one verdict on each epoch, the shares of samples and epochs add up to 1, and so do the ends."""
    rng = random.Random(3)
    rows = [[[rng.gauss(center, 0.3)] for _ in range(3)] for center in (rng.gauss(0.5, 0.3) for _ in range(60))]
    units = summarize_samples(rows)
    estimate = estimate_components(units)
    assert estimate is not None
    samples, epochs, _ = share_intervals(units, split_parts)
    share = estimate.between / (estimate.between + (estimate.within or 0.0) / 3)
    assert 0 < samples[0] < share < samples[1] < 1
    assert epochs == pytest.approx((1 - samples[1], 1 - samples[0]))


def test_few_samples_that_cause_the_error_leave_few_degrees_of_freedom() -> None:
    """Equal squares give no limit; k of n equal squares, the others 0, give 2 / (1 / k - 1 / n)."""
    assert _count_degrees([(0.5, 0.0), (-0.5, 0.0)] * 10, 0.2, 1.0) == math.inf
    assert _count_degrees([(1.0, 0.0)] * 4 + [(0.0, 0.0)] * 16, 0.2, 1.0) == pytest.approx(2 / (1 / 4 - 1 / 20))
    # At a share of 1/2, twice as large a change of the sum cancels that of the part.
    assert _count_degrees([(1.0, 2.0)] * 3 + [(1.0, 0.0)] * 17, 0.5, 1.0) == pytest.approx(2 / (1 / 17 - 1 / 20))


def test_verdicts_that_never_differ_may_differ_elsewhere() -> None:
    """Of 40 samples without a flip, up to 9% may have one: a judge's share of 0% to 1%, not of exactly 0%."""
    units = summarize_samples([[[float(n % 2)] * 2] * 3 for n in range(40)])
    samples, epochs, judge = share_intervals(units, split_parts)
    assert samples == pytest.approx((0.962, 1.0), abs=0.001)
    assert epochs == pytest.approx((0.0, 0.038), abs=0.001)
    assert judge == pytest.approx((0.0, 0.0095), abs=0.001)


def test_scores_that_do_not_vary_have_any_share() -> None:
    """Without variance, nothing is known of its parts."""
    assert share_intervals(summarize_samples([[[1.0, 1.0]] * 3] * 10), split_parts) == [(0.0, 1.0)] * 3


@given(st.lists(st.lists(st.integers(0, 2).map(float), min_size=2, max_size=2), min_size=3, max_size=30))
def test_intervals_of_shares_are_shares(rows: list[list[float]]) -> None:
    """Also if the variance may be 0, or a component is negative."""
    for low, high in share_intervals(summarize_samples([[value] for value in row] for row in rows), split_parts):
        assert 0 <= low <= high <= 1
