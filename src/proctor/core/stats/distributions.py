"""The normal distribution and Student's t: how likely, and beyond which point."""

from __future__ import annotations

import math
from collections.abc import Callable

_TINY = 1e-300
_STIRLING_FROM = 10.0
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def log_beta(a: float, b: float) -> float:
    """The logarithm of the beta function B(a, b), exact to rounding also when one is huge.

    >>> round(math.exp(log_beta(2, 3)), 12)
    0.083333333333
    """
    small, large = min(a, b), max(a, b)
    if large < _STIRLING_FROM:
        return math.lgamma(small) + math.lgamma(large) - math.lgamma(small + large)
    # lgamma(large) - lgamma(small + large) would lose every digit that the two have in common.
    total = small + large
    difference = (
        small
        - (large - 0.5) * math.log1p(small / large)
        - small * math.log(total)
        + (_stirling_rest(large) - _stirling_rest(total))
    )
    return math.lgamma(small) + difference


def log_incomplete_beta(log_odds: float, a: float, b: float) -> float:
    """The logarithm of I_x(a, b), where x is given as log(x / (1 - x)).

    Log-odds hold both x and 1 - x to full precision, however near to 0 either is.

    >>> round(math.exp(log_incomplete_beta(0.0, 1, 1)), 12)
    0.5
    """
    log_x, log_rest = _log_logistic(log_odds), _log_logistic(-log_odds)
    log_front = a * log_x + b * log_rest - log_beta(a, b)
    x = math.exp(log_x)
    if x < (a + 1) / (a + b + 2):
        return log_front - math.log(a) + math.log(_continued_fraction(x, a, b))
    other_side = math.exp(log_front) / b * _continued_fraction(math.exp(log_rest), b, a)
    return math.log1p(-other_side)


def _log_logistic(log_odds: float) -> float:
    """log(1 / (1 + exp(-log_odds))), without overflow on either side."""
    if log_odds > 0:
        return -math.log1p(math.exp(-log_odds))
    return log_odds - math.log1p(math.exp(log_odds))


def _stirling_rest(x: float) -> float:
    """What Stirling's formula leaves out of lgamma(x)."""
    power, total = 1 / x, 0.0
    for coefficient in _SERIES:
        total += coefficient * power
        power /= x * x
    return total


def _continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b), by Lentz's method; quick for x below its mean."""
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


_LOG_HALF = math.log(0.5)
_NEARLY_NORMAL = 1e5
_LARGEST_LOG = 709.0


def normal_cdf(z: float) -> float:
    """The probability that a standard normal number is at most z.

    >>> round(normal_cdf(1.96), 4)
    0.975
    """
    return 0.5 * math.erfc(-z / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """The number that a standard normal number stays below with probability p.

    >>> round(normal_quantile(0.975), 4)
    1.96
    """
    _check_probability(p)
    if p > 0.5:
        return -normal_quantile(1 - p)
    # Abramowitz and Stegun 26.2.23 is good to three digits; two steps of Halley do the rest.
    t = math.sqrt(-2 * math.log(p))
    above = 2.515517 + t * (0.802853 + t * 0.010328)
    below = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    z = above / below - t
    for _ in range(2):
        # Near the centre cdf and p agree in most digits; what lies between z and 0 does not.
        excess = normal_cdf(z) - p if p < 0.25 else math.erf(z / math.sqrt(2)) / 2 - (p - 0.5)
        step = excess * math.sqrt(2 * math.pi) * math.exp(z * z / 2)
        z -= step / (1 + z * step / 2)
    return z


def student_t_cdf(t: float, df: float) -> float:
    """The probability that Student's t with `df` degrees of freedom is at most t.

    >>> round(student_t_cdf(1.0, df=1), 12)
    0.75
    """
    _check_df(df)
    if t == 0:
        return 0.5
    if df > _NEARLY_NORMAL:
        w = math.sqrt((df - 0.5) * math.log1p(t * t / df))
        return normal_cdf(math.copysign(w + _hill(w, df), t))
    tail = math.exp(_log_tail(math.log(abs(t)), df))
    return tail if t < 0 else 1 - tail


def student_t_quantile(p: float, df: float) -> float:
    """The number that Student's t with `df` degrees of freedom stays below with probability p.

    >>> round(student_t_quantile(0.975, df=9), 4)
    2.2622
    """
    _check_probability(p)
    _check_df(df)
    from_centre = abs(p - 0.5)
    if from_centre == 0:
        return 0.0
    if df > _NEARLY_NORMAL:
        z = abs(normal_quantile(p))
        size = math.sqrt(df * math.expm1((z - _hill(z, df)) ** 2 / (df - 0.5)))
    elif from_centre < 0.25:
        start = math.log(from_centre) - _log_density(-math.inf, df)
        size = _solve(_log_centre, df, math.log(from_centre), start)
    else:
        tail = min(p, 1 - p)
        size = _solve(_log_tail, df, math.log(tail), math.log(-normal_quantile(tail)))
    return math.copysign(size, p - 0.5)


def _solve(log_probability: Callable[[float, float], float], df: float, target: float, log_t: float) -> float:
    """The t > 0 at which a log-probability is `target`, by Newton's method on log t.

    Both log-probabilities are concave in log t, so that Newton's method finds the one solution
    from any start, and is quick even where t is astronomical.
    """
    sign = 1 if log_probability is _log_centre else -1
    step = 1.0
    # Each step squares the error: after one of 1e-8 nothing is left of it.
    while abs(step) > 1e-8:
        found = log_probability(log_t, df)
        step = sign * (found - target) / math.exp(log_t + _log_density(log_t, df) - found)
        log_t -= step
    return math.exp(log_t) if log_t < _LARGEST_LOG else math.inf


def _log_tail(log_t: float, df: float) -> float:
    """log P(T > t)."""
    return _LOG_HALF + log_incomplete_beta(math.log(df) - 2 * log_t, df / 2, 0.5)


def _log_centre(log_t: float, df: float) -> float:
    """log P(0 < T < t)."""
    return _LOG_HALF + log_incomplete_beta(2 * log_t - math.log(df), 0.5, df / 2)


def _log_density(log_t: float, df: float) -> float:
    log_ratio = 2 * log_t - math.log(df)
    log_growth = math.log1p(math.exp(log_ratio)) if log_ratio < 50 else log_ratio
    return -log_beta(df / 2, 0.5) - math.log(df) / 2 - (df + 1) / 2 * log_growth


def _hill(w: float, df: float) -> float:
    """How far a t of many degrees of freedom is from normal, once put on the scale of w.

    Hill, Algorithm 395 (1970): past 100,000 degrees of freedom nothing is left after this term.
    """
    return (w**3 + 3 * w) / (48 * (df - 0.5) ** 2)


def _check_probability(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"a probability strictly between 0 and 1 is needed, got {p!r}")


def _check_df(df: float) -> None:
    if not 0 < df < math.inf:
        raise ValueError(f"degrees of freedom must be positive and finite, got {df!r}")
