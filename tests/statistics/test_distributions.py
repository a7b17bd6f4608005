"""The normal distribution, Student's t, beta and F: agreement with scipy and with closed forms."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.distributions import (
    beta_quantile,
    f_quantile,
    log_beta,
    log_incomplete_beta,
    normal_cdf,
    normal_quantile,
    student_t_cdf,
    student_t_quantile,
)
from tests.support import LazyModule
from tests.tables import each_row

stats: Any = LazyModule("scipy.stats")
special: Any = LazyModule("scipy.special")

PROBABILITIES = [1e-300, 1e-100, 1e-30, 1e-10, 1e-4, 0.025, 0.1, 0.2499, 0.25, 0.31, 0.45]
DEGREES = [1, 1.5, 2, 3, 4, 9, 19, 20, 21, 59, 100, 1e3, 1e4, 1e5, 1.001e5, 1e6, 1e9]
UPPER = [1 - p for p in PROBABILITIES if p > 1e-17]


@each_row("p", [*PROBABILITIES, *UPPER, 0.5 - 1e-12, 0.5 + 1e-12])
def test_normal_quantiles_agree_with_scipy(p: float) -> None:
    """From the centre to the far tail, exact up to rounding."""
    assert normal_quantile(p) == pytest.approx(float(stats.norm.ppf(p)), rel=1e-14)


@each_row("df", DEGREES)
@each_row("p", [p for p in (*PROBABILITIES, *UPPER) if p > 1e-101])
def test_student_quantiles_agree_with_scipy(p: float, df: float) -> None:
    """From 1 degree of freedom to very many."""
    expected = float(stats.t.ppf(p, df))
    assert student_t_quantile(p, df) == pytest.approx(expected, rel=1e-10)


@each_row("df", DEGREES)
@each_row("t", [-1e20, -1e3, -37.0, -10.0, -2.0, -0.7, -1e-3, 0.0, 0.3, 1.96, 8.0])
def test_student_probabilities_agree_with_scipy(t: float, df: float) -> None:
    """In the centre and in the far tail."""
    expected = float(stats.t.cdf(t, df))
    assert student_t_cdf(t, df) == pytest.approx(expected, rel=1e-10, abs=1e-290)


@each_row("p", [1e-300, 1e-20, 0.01, 0.25, 0.5 - 1e-9, 0.5, 0.5 + 1e-9, 0.99])
def test_one_degree_of_freedom_is_the_cauchy_distribution(p: float) -> None:
    """With df = 1 the quantile has the closed form tan(π(p - ½))."""
    exact = -1 / math.tan(math.pi * p) if p < 0.25 else math.tan(math.pi * (p - 0.5))
    assert student_t_quantile(p, 1) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("p", [1e-280, 1e-20, 0.01, 0.3, 0.45, 0.9])
def test_two_degrees_of_freedom_have_a_closed_form(p: float) -> None:
    """With df = 2 the quantile is (2p - 1) / sqrt(2p(1 - p))."""
    exact = (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    assert student_t_quantile(p, 2) == pytest.approx(exact, rel=1e-12)


def test_a_quantile_too_large_for_a_float_is_infinite() -> None:
    assert student_t_quantile(1e-300, 0.5) == -math.inf


@given(st.floats(1e-12, 1 - 1e-12), st.floats(1, 1e7))
def test_the_distribution_function_inverts_the_quantile(p: float, df: float) -> None:
    assert student_t_cdf(student_t_quantile(p, df), df) == pytest.approx(p, rel=1e-9)


@given(st.floats(1e-12, 0.5), st.floats(1, 1e7))
def test_quantiles_are_symmetric(p: float, df: float) -> None:
    mirrored = student_t_quantile(1 - p, df)
    assert student_t_quantile(1 - (1 - p), df) == pytest.approx(-mirrored, rel=1e-12)


@given(st.floats(-30, 5))
def test_the_normal_quantile_inverts_the_distribution_function(z: float) -> None:
    assert normal_quantile(normal_cdf(z)) == pytest.approx(z, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("b", [0.5, 3.0, 9.0, 11.0, 5e5, 1e12])
def test_the_beta_function_has_its_closed_forms(b: float) -> None:
    """B(1, b) = 1/b and B(2, b) = 1/(b(b + 1)), for small arguments and for huge ones."""
    assert log_beta(1, b) == pytest.approx(-math.log(b), rel=1e-14)
    assert log_beta(b, 2) == pytest.approx(-math.log(b) - math.log(b + 1), rel=1e-14)


def test_the_beta_function_is_accurate_for_huge_arguments() -> None:
    """ln B(½, 500000) = ½ ln π - ½ ln 500000 + 1/4000000, to the sixteenth digit."""
    expected = 0.5 * math.log(math.pi) - 0.5 * math.log(5e5) + 1 / 4e6
    assert log_beta(0.5, 5e5) == pytest.approx(expected, rel=1e-15)


@each_row(("a", "b"), [(0.5, 0.5), (3.0, 8.0), (40.0, 60.0), (0.5, 5e3)])
@each_row("log_odds", [-40.0, -3.0, 0.0, 3.0])
def test_the_incomplete_beta_function_agrees_with_scipy(a: float, b: float, log_odds: float) -> None:
    """On both sides of its mean."""
    x = 1 / (1 + math.exp(-log_odds))
    result = math.exp(log_incomplete_beta(log_odds, a, b))
    assert result == pytest.approx(float(special.betainc(a, b, x)), rel=1e-10)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_impossible_probabilities_are_refused(p: float) -> None:
    """A quantile needs a probability strictly between 0 and 1."""
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        normal_quantile(p)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        student_t_quantile(p, 3)


@pytest.mark.parametrize("df", [0.0, -1.0, math.inf, math.nan])
def test_impossible_degrees_of_freedom_are_refused(df: float) -> None:
    """Degrees of freedom are positive and finite."""
    with pytest.raises(ValueError, match="degrees of freedom"):
        student_t_cdf(1.0, df)


def test_f_quantiles_agree_with_scipy() -> None:
    """From tiny to large degrees of freedom."""
    for p, a, b in ((0.025, 7, 413), (0.975, 7, 413), (0.5, 1, 1), (0.99, 40, 2)):
        assert f_quantile(p, a, b) == pytest.approx(stats.f.ppf(p, a, b), rel=1e-9)


@each_row("a, b", [(0.3, 0.3), (0.3, 30.3), (30.3, 0.3), (2.3, 7.3), (400.5, 80.5), (1e6, 3e5), (1.0, 1.0)])
@each_row("p", [0.005, 0.025, 0.3, 0.975, 0.995])
def test_beta_quantiles_agree_with_scipy(p: float, a: float, b: float) -> None:
    assert beta_quantile(p, a, b) == pytest.approx(float(stats.beta.ppf(p, a, b)), rel=1e-8)
