"""Numbers as people read them: percentages, intervals, what is missing; a dash for none."""

from __future__ import annotations

from proctor.records.metric import MetricValue

DASH = "—"
MENTIONED_FROM = 0.05


def percent(share: float) -> str:
    """A share in percent; only a whole is 100.0 and only nothing is 0.0.

    >>> percent(41 / 60), percent(0.9999), percent(1.0)
    ('68.3 %', '>99.9 %', '100.0 %')
    """
    text = f"{100 * share:.1f} %"
    if text == "100.0 %" and share < 1:
        return ">99.9 %"
    return "<0.1 %" if text == "0.0 %" and share > 0 else text


def count(number: int, noun: str, plural: str = "") -> str:
    """A number of things, with the right form of the word.

    >>> count(1, "error"), count(1200, "sample")
    ('1 error', '1,200 samples')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def figure(metric: MetricValue) -> str:
    """The value of a metric with its unit.

    >>> figure(MetricValue(0.5, 10, kind="rate")), figure(MetricValue(None, 0))
    ('50.0 %', '—')
    """
    if metric.value is None:
        return DASH
    unit = f" {metric.unit}" if metric.unit else ""
    return percent(metric.value) if metric.kind == "rate" else _number(metric.value, metric) + unit


def interval(metric: MetricValue) -> str:
    """The 95 % interval of a metric, or a dash.

    >>> interval(MetricValue(0.683, 60, interval=(0.558, 0.787), kind="rate"))
    '55.8–78.7 %'
    """
    return DASH if metric.interval is None else _span(*metric.interval, metric)


def missing(metric: MetricValue) -> str:
    """What a metric could not use.

    >>> missing(MetricValue(0.5, 10, errors=2, skipped=1))
    '2 errors, 1 skipped'
    """
    parts = [count(metric.errors, "error")] if metric.errors else []
    if metric.skipped:
        parts.append(f"{metric.skipped:,} skipped")
    return ", ".join(parts) or "0"


def bounds(metric: MetricValue) -> str:
    """Where a metric would lie whatever the missing ones are; empty if few are missing.

    >>> bounds(MetricValue(0.5, 8, errors=2, kind="rate"))
    '2 of 10 missing: 40.0–60.0 %, from all of them failing to all passing'
    """
    total = metric.n + metric.missing
    if metric.bounds is None or metric.missing <= MENTIONED_FROM * total:
        return ""
    span = _span(*metric.bounds, metric)
    return (
        f"{metric.missing:,} of {total:,} missing: {span}, from all of them failing to all passing"
    )


def duration(seconds: float) -> str:
    """A length of time.

    >>> duration(45.21), duration(185), duration(7380)
    ('45.2 seconds', '3 min 05 s', '2 h 03 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _span(low: float, high: float, metric: MetricValue) -> str:
    """Two ends with one unit; spelt out where a minus would look like a dash."""
    unit = f" {metric.unit}" if metric.unit else ""
    if metric.kind == "rate":
        unit, ends = " %", [f"{100 * end:.1f}" for end in (low, high)]
    else:
        ends = [_number(end, metric) for end in (low, high)]
    return (" to " if low < 0 else "–").join(ends) + unit


def _number(value: float, metric: MetricValue) -> str:
    """Scores have three decimals; other numbers the digits that matter at their size."""
    if metric.kind in ("mean", "quantile") and not metric.unit:
        return f"{value:.3f}"
    if abs(value) >= 100 or (value == int(value) and metric.kind in ("count", "number")):
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:.1f}" if metric.unit and abs(value) >= 10 else f"{value:.3g}"
