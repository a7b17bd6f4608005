"""Format numbers and differences: rates in percent, their differences in points."""

from __future__ import annotations

from typing import Literal

# A share of samples, a score from 0 to 1, or any other number.
Kind = Literal["rate", "score", "number"]

DASH = "–"


def format_value(number: float | None, kind: Kind = "number") -> str:
    """Format a number with its unit.

    >>> format_value(0.8125, "rate"), format_value(0.8125, "score"), format_value(None)
    ('81.2 %', '0.812', '–')
    """
    if number is None:
        return DASH
    if kind == "rate":
        return f"{100 * number:.1f} %"
    return f"{number:.3f}" if kind == "score" else format_plain(number)


def format_range(ends: tuple[float, float] | None, kind: Kind = "number") -> str:
    """Format the interval of a number, without its unit.

    >>> format_range((0.558, 0.787), "rate"), format_range((-3.0, 1.5)), format_range(None)
    ('55.8–78.7', '-3 to 1.5', '–')
    """
    if ends is None:
        return DASH
    low, high = (format_value(end, kind).removesuffix(" %") for end in ends)
    return f"{low} to {high}" if ends[0] < 0 else f"{low}–{high}"


def format_change(number: float | None, kind: Kind = "number", *, sign: str = "+") -> str:
    """Format a difference without its unit; differences of rates are in points (hundredths).

    >>> format_change(0.0432, "rate"), format_change(-0.0432, "score")
    ('+4.3', '-0.043')
    >>> format_change(0.0), format_change(0.5, sign="")
    ('0', '0.5')
    """
    if number is None:
        return DASH
    if kind == "number":
        return format_plain(number, sign) if number else "0"
    digits = f"{100 * number:{sign}.1f}" if kind == "rate" else f"{number:{sign}.3f}"
    # A difference that rounds to 0 has no sign.
    return digits if digits.strip("+-0.") else digits.lstrip("+-")


def format_changes(ends: tuple[float, float] | None, kind: Kind = "number") -> str:
    """Format the interval of a difference.

    >>> format_changes((-0.071, 0.012), "rate")
    '-7.1 to +1.2'
    """
    return DASH if ends is None else " to ".join(format_change(end, kind) for end in ends)


def change_unit(kind: Kind) -> str:
    """Return the unit of a difference with a space before it; empty if it has none."""
    return " points" if kind == "rate" else ""


def add_clusters(samples: str, clusters: int | None) -> str:
    """Add the number of clusters to a number of samples.

    >>> add_clusters("200 samples", 40), add_clusters("1 sample", None)
    ('200 samples in 40 clusters', '1 sample')
    """
    if clusters is None:
        return samples
    return f"{samples} in {clusters:,} cluster{'' if clusters == 1 else 's'}"


def format_plain(number: float, sign: str = "") -> str:
    """Format a number with up to four digits.

    >>> format_plain(0.0123456), format_plain(12345.6), format_plain(3, "+")
    ('0.01235', '12,346', '+3')
    """
    if abs(number) < 1000:
        return f"{number:{sign}.4g}"
    return f"{number:{sign},.0f}" if abs(number) < 1e15 else f"{number:{sign}.4g}"


def format_probability(p: float | None) -> str:
    """Format a p-value.

    >>> format_probability(0.0312), format_probability(0.00000012), format_probability(1.0)
    ('0.031', '<0.0001', '1')
    """
    if p is None:
        return DASH
    return "<0.0001" if p < 0.0001 else f"{p:.2g}"


def format_estimate(count: int) -> str:
    """Format an estimated number of samples, rounded up to two digits.

    >>> format_estimate(7), format_estimate(1234), format_estimate(1_999)
    ('7', '1,300', '2,000')
    """
    step = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // step) * step:,}"
