"""Distribution functions and quantiles of the normal distribution, of Student's t, and of beta and F distributions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist

_TINY = 1e-300
_STIRLING_FROM = 10.0
_STIRLING_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_LOG_HALF = math.log(0.5)
_NEARLY_NORMAL_DF = 1e5
_LARGEST_LOG = 709.0
_NORMAL = NormalDist()


def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the beta function B(a, b), accurate even for huge arguments."""
    small, large = min(a, b), max(a, b)
    if large < _STIRLING_FROM:
        return math.lgamma(small) + math.lgamma(large) - math.lgamma(small + large)
    # lgamma(large) - lgamma(small + large) would cancel their leading digits.
    total = small + large
    difference = (
        small
        - (large - 0.5) * math.log1p(small / large)
        - small * math.log(total)
        + (_stirling_correction(large) - _stirling_correction(total))
    )
    return math.lgamma(small) + difference


def log_incomplete_beta(log_odds: float, a: float, b: float) -> float:
    """Return the logarithm of the regularized incomplete beta function I_x(a, b).

    `log_odds` is log(x / (1 - x)), which represents both x and 1 - x to full precision.
    """
    log_x, log_complement = _log_logistic(log_odds), _log_logistic(-log_odds)
    log_factor = a * log_x + b * log_complement - log_beta(a, b)
    x = math.exp(log_x)
    if x < (a + 1) / (a + b + 2):
        return log_factor - math.log(a) + math.log(_continued_fraction(x, a, b))
    upper_tail = math.exp(log_factor) / b * _continued_fraction(math.exp(log_complement), b, a)
    return math.log1p(-upper_tail)


@functools.lru_cache(maxsize=4096)
def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution.

    >>> round(beta_quantile(0.975, 0.5, 30.5), 4)
    0.0797
    """
    return math.exp(_log_logistic(_beta_log_odds(p, a, b)))


def f_quantile(p: float, df1: float, df2: float) -> float:
    """Return the quantile of the F distribution.

    >>> round(f_quantile(0.95, 5, 10), 3)
    3.326
    """
    return df2 / df1 * math.exp(_beta_log_odds(p, df1 / 2, df2 / 2))


def _beta_log_odds(p: float, a: float, b: float) -> float:
    """Return log(x / (1 - x)) of the quantile x, by Newton's method, or bisection where that leaves the known range."""
    _check_probability(p)
    low, high, log_odds, norm = -60.0, 60.0, math.log(a / b), log_beta(a, b)
    for _ in range(100):
        error = math.exp(log_incomplete_beta(log_odds, a, b)) - p
        low, high = (log_odds, high) if error < 0 else (low, log_odds)
        density = math.exp(a * _log_logistic(log_odds) + b * _log_logistic(-log_odds) - norm)
        step = error / density if density else math.inf
        if abs(step) < 1e-11:
            break
        log_odds = log_odds - step if low < log_odds - step < high else (low + high) / 2
    return log_odds


def _log_logistic(log_odds: float) -> float:
    """Return log(1 / (1 + exp(-log_odds))) without overflow."""
    if log_odds > 0:
        return -math.log1p(math.exp(-log_odds))
    return log_odds - math.log1p(math.exp(log_odds))


def _stirling_correction(x: float) -> float:
    """Return lgamma(x) minus Stirling's formula."""
    power, total = 1 / x, 0.0
    for coefficient in _STIRLING_SERIES:
        total += coefficient * power
        power /= x * x
    return total


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of I_x(a, b) by Lentz's method; it is fast for x below the mean."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value, m, change = d, 0, 0.0
    while abs(change - 1) > 1e-16:
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            change *= c * d
        value *= change
    return value


def _away_from_zero(number: float) -> float:
    return number if abs(number) > _TINY else _TINY


def normal_cdf(z: float) -> float:
    """Return the standard normal distribution function at z."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """Return the standard normal quantile of probability p."""
    _check_probability(p)
    return _NORMAL.inv_cdf(p)


def student_t_cdf(t: float, df: float) -> float:
    """Return the distribution function of Student's t with `df` degrees of freedom at t."""
    _check_df(df)
    if t == 0:
        return 0.5
    if df > _NEARLY_NORMAL_DF:
        w = math.sqrt((df - 0.5) * math.log1p(t * t / df))
        return normal_cdf(math.copysign(w + _hill_correction(w, df), t))
    tail = math.exp(_log_tail(math.log(abs(t)), df))
    return tail if t < 0 else 1 - tail


@functools.lru_cache(maxsize=1024)
def student_t_quantile(p: float, df: float) -> float:
    """Return the quantile of Student's t with `df` degrees of freedom."""
    _check_probability(p)
    _check_df(df)
    distance = abs(p - 0.5)
    if distance == 0:
        return 0.0
    if df > _NEARLY_NORMAL_DF:
        z = abs(normal_quantile(p))
        size = math.sqrt(df * math.expm1((z - _hill_correction(z, df)) ** 2 / (df - 0.5)))
    elif distance < 0.25:
        start = math.log(distance) - _log_density(-math.inf, df)
        size = _solve(_log_center, df, math.log(distance), start)
    else:
        tail = min(p, 1 - p)
        size = _solve(_log_tail, df, math.log(tail), math.log(-normal_quantile(tail)))
    return math.copysign(size, p - 0.5)


def _solve(log_probability: Callable[[float, float], float], df: float, target: float, log_t: float) -> float:
    """Find the t > 0 with the log-probability `target`, by Newton's method on log t.

    Both log-probabilities are concave in log t, so the method converges from any start.
    """
    sign = 1 if log_probability is _log_center else -1
    step = 1.0
    # Convergence is quadratic: after a step of 1e-8 the error is below rounding.
    while abs(step) > 1e-8:
        value = log_probability(log_t, df)
        step = sign * (value - target) / math.exp(log_t + _log_density(log_t, df) - value)
        log_t -= step
    return math.exp(log_t) if log_t < _LARGEST_LOG else math.inf


def _log_tail(log_t: float, df: float) -> float:
    """Return log P(T > t)."""
    return _LOG_HALF + log_incomplete_beta(math.log(df) - 2 * log_t, df / 2, 0.5)


def _log_center(log_t: float, df: float) -> float:
    """Return log P(0 < T < t)."""
    return _LOG_HALF + log_incomplete_beta(2 * log_t - math.log(df), 0.5, df / 2)


def _log_density(log_t: float, df: float) -> float:
    log_ratio = 2 * log_t - math.log(df)
    log_growth = math.log1p(math.exp(log_ratio)) if log_ratio < 50 else log_ratio
    return -log_beta(df / 2, 0.5) - math.log(df) / 2 - (df + 1) / 2 * log_growth


def _hill_correction(w: float, df: float) -> float:
    """Return the correction to the normal approximation of t: Hill, Algorithm 395 (1970).

    Above 100,000 degrees of freedom the remaining error is below rounding.
    """
    return (w**3 + 3 * w) / (48 * (df - 0.5) ** 2)


def _check_probability(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"a probability must be strictly between 0 and 1, got {p!r}")


def _check_df(df: float) -> None:
    if not 0 < df < math.inf:
        raise ValueError(f"degrees of freedom must be positive and finite, got {df!r}")
