"""The regularized incomplete beta function, in logarithms so that far tails keep their digits."""

from __future__ import annotations

import math

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
