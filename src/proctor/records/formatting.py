"""Format numbers and differences: rates in percent, their differences in points."""

from __future__ import annotations

from math import floor, log10
from typing import Any, Literal

from proctor.records import codec

# A fraction of samples, a score from 0 to 1, or any other number.
Kind = Literal["rate", "score", "number"]

DASH = "–"
COST_METRICS = ("cost.mean", "cost.total", "judges.cost")
# Spreadsheets read cells with these first characters as formulas; some read the full-width forms too.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Format a number with the singular or plural of a noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_cost(value: float, sign: str = "") -> str:
    """Format an amount in US dollars with at least two significant digits.

    >>> format_cost(0.000312), format_cost(12.5), format_cost(0.002, "+")
    ('$0.00031', '$12.50', '+$0.0020')
    """
    size = abs(value)
    decimals = 2 if size >= 1 or not size else max(4, 1 - floor(log10(size)))
    return f"{'-' if value < 0 else sign if value else ''}${size:,.{decimals}f}"


def is_cost(metric: str) -> bool:
    """True if a metric of a report is an amount in US dollars; a field called `cost` may be anything."""
    return metric in COST_METRICS


def format_value(number: float | None, kind: Kind = "number", metric: str = "") -> str:
    """Format a number with its unit; `metric` is its name."""
    if number is None:
        return DASH
    if kind == "number" and is_cost(metric):
        return format_cost(number)
    if kind == "rate":
        return f"{100 * number:.1f}%"
    return f"{number:.3f}" if kind == "score" else format_plain(number)


def format_range(bounds: tuple[float, float] | None, kind: Kind = "number", metric: str = "") -> str:
    """Format the interval of a number, without the unit."""
    if bounds is None:
        return DASH
    low, high = (format_value(end, kind, metric).removesuffix("%") for end in bounds)
    return f"{low} to {high}" if bounds[0] < 0 else f"{low}–{high}"


def format_change(number: float | None, kind: Kind = "number", *, sign: str = "+", metric: str = "") -> str:
    """Format a difference without its unit; differences of rates are in points (hundredths)."""
    if number is None:
        return DASH
    if kind == "number":
        if is_cost(metric):
            return format_cost(number, sign)
        return format_plain(number, sign) if number else "0"
    digits = f"{100 * number:{sign}.1f}" if kind == "rate" else f"{number:{sign}.3f}"
    # A difference that rounds to 0 has no sign.
    return digits if digits.strip("+-0.") else digits.lstrip("+-")


def format_changes(bounds: tuple[float, float] | None, kind: Kind = "number", metric: str = "") -> str:
    """Format the interval of a difference."""
    return DASH if bounds is None else " to ".join(format_change(end, kind, metric=metric) for end in bounds)


def change_unit(kind: Kind) -> str:
    """Return the unit of a difference with a leading space; empty if there is no unit."""
    return " points" if kind == "rate" else ""


def add_clusters(samples: str, clusters: int | None) -> str:
    """Add the number of clusters to a number of samples."""
    if clusters is None:
        return samples
    return f"{samples} in {format_count(clusters, 'cluster')}"


def format_plain(number: float, sign: str = "") -> str:
    """Format a number with up to four digits."""
    if abs(number) < 1000:
        return f"{number:{sign}.4g}"
    return f"{number:{sign},.0f}" if abs(number) < 1e15 else f"{number:{sign}.4g}"


def format_probability(p: float | None) -> str:
    """Format a p-value."""
    if p is None:
        return DASH
    return "<0.0001" if p < 0.0001 else f"{p:.2g}"


def format_estimate(count: int) -> str:
    """Format an estimated number of samples, rounded up to two digits."""
    step = 10 ** max(0, len(str(count)) - 2)
    return f"{-(-count // step) * step:,}"


def format_confidence(confidence: float) -> str:
    """Format the confidence of an interval: 95%, 99.17%.

    >>> format_confidence(0.95), format_confidence(1 - 0.05 / 6)
    ('95%', '99.17%')
    """
    return f"{100 * confidence:.2f}".rstrip("0").rstrip(".") + "%"


def format_cell(value: Any) -> str:
    """Return a value as a cell that no spreadsheet runs as a formula; numbers stay numbers.

    >>> [format_cell(value) for value in (None, True, -0.5, "=1+1", "-1", ["a"])]
    ['', 'true', '-0.5', "'=1+1", "'-1", '["a"]']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        # A number that Python does not write in decimal is a text.
        return codec.encode_any_text(value).decode().strip('"') if isinstance(value, int) else repr(value)
    text = value if isinstance(value, str) else codec.to_text(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
