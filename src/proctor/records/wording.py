"""Numbers and differences as people read them: shares in percent, their differences in points."""

from __future__ import annotations

from typing import Literal

# What a number is: a share of samples, a score from 0 to 1, or anything else.
Kind = Literal["rate", "score", "number"]

DASH = "–"


def value(number: float | None, kind: Kind = "number") -> str:
    """A number with its unit.

    >>> value(0.8125, "rate"), value(0.8125, "score"), value(None)
    ('81.2 %', '0.812', '–')
    """
    if number is None:
        return DASH
    if kind == "rate":
        return f"{100 * number:.1f} %"
    return f"{number:.3f}" if kind == "score" else plain(number)


def span(ends: tuple[float, float] | None, kind: Kind = "number") -> str:
    """Where a number lies, without its unit.

    >>> span((0.558, 0.787), "rate"), span((-3.0, 1.5)), span(None)
    ('55.8–78.7', '-3 to 1.5', '–')
    """
    if ends is None:
        return DASH
    low, high = (value(end, kind).removesuffix(" %") for end in ends)
    return f"{low} to {high}" if ends[0] < 0 else f"{low}–{high}"


def change(number: float | None, kind: Kind = "number", *, sign: str = "+") -> str:
    """A difference without its unit: of shares in points, each a hundredth.

    >>> change(0.0432, "rate"), change(-0.0432, "score"), change(0.0), change(0.5, sign="")
    ('+4.3', '-0.043', '0', '0.5')
    """
    if number is None:
        return DASH
    if kind == "number":
        return plain(number, sign) if number else "0"
    digits = f"{100 * number:{sign}.1f}" if kind == "rate" else f"{number:{sign}.3f}"
    # What is rounded to nothing has no direction.
    return digits if digits.strip("+-0.") else digits.lstrip("+-")


def changes(ends: tuple[float, float] | None, kind: Kind = "number") -> str:
    """Where a difference lies.

    >>> changes((-0.071, 0.012), "rate")
    '-7.1 to +1.2'
    """
    return DASH if ends is None else " to ".join(change(end, kind) for end in ends)


def unit(kind: Kind) -> str:
    """What a difference is counted in, with a space before it; nothing for what has no unit."""
    return " points" if kind == "rate" else ""


def in_clusters(samples: str, clusters: int | None) -> str:
    """A number of samples, with that of the clusters they belong to, if they do.

    >>> in_clusters("200 samples", 40), in_clusters("1 sample", None)
    ('200 samples in 40 clusters', '1 sample')
    """
    if clusters is None:
        return samples
    return f"{samples} in {clusters:,} cluster{'' if clusters == 1 else 's'}"


def plain(number: float, sign: str = "") -> str:
    """A number in four digits, with no more than it needs.

    >>> plain(0.0123456), plain(12345.6), plain(3, "+")
    ('0.01235', '12,346', '+3')
    """
    if abs(number) < 1000:
        return f"{number:{sign}.4g}"
    return f"{number:{sign},.0f}" if abs(number) < 1e15 else f"{number:{sign}.4g}"


def probability(p: float | None) -> str:
    """A probability.

    >>> probability(0.0312), probability(0.00000012), probability(1.0)
    ('0.031', '<0.0001', '1')
    """
    if p is None:
        return DASH
    return "<0.0001" if p < 0.0001 else f"{p:.2g}"


def about(count: int) -> str:
    """A number of samples that is only about right, rounded up to two digits.

    >>> about(7), about(1234), about(1_999)
    ('7', '1,300', '2,000')
    """
    step = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // step) * step:,}"
