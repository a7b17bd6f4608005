"""Evaluate token usage, latency and throughput."""

from __future__ import annotations

from typing import Any

from proctor.evaluators.decorator import evaluator
from proctor.evaluators.measurements import (
    format_number,
    is_within,
    make_limit_check,
    read_amount,
    score_against_limit,
    score_increase,
)
from proctor.records.fields.context import FieldContext
from proctor.records.score import Score


@evaluator(
    category="performance",
    field="usage.total_tokens",
    pure=True,
    check=make_limit_check("token_efficiency", "max_increase_pct"),
)
def token_efficiency(field_context: FieldContext, *, max_increase_pct: float = 10) -> Score:
    """Passes if token usage is at most `max_increase_pct` percent above the baseline.

    The value is 1 while the increase is allowed, then 1 - increase: 0.7 at +30%, 0 at +100% or more.
    With a baseline of 0 only 0 passes; without a baseline it is skipped.

    >>> tokens = FieldContext("tokens", {"tokens": 540, "baseline_tokens": 500})
    >>> token_efficiency(tokens).reason
    'tokens 500 -> 540: +8.0% (allowed: +10%)'
    """
    return score_increase(field_context, max_increase_pct, "percentage of the baseline")


@evaluator(category="performance", field="latency_ms", pure=True, check=make_limit_check("latency", "max_ms"))
def latency(field_context: FieldContext, *, max_ms: float = 2000) -> Score:
    """Passes if the latency is at most `max_ms` milliseconds.

    The value is 1 within the limit, then the ratio of limit and latency: twice the limit is 0.5.

    >>> latency(FieldContext("latency_ms", {"latency_ms": 2500}), max_ms=2000).value
    0.8
    """
    milliseconds = read_amount(field_context.value, field_context.field_name)
    if isinstance(milliseconds, Score):
        return milliseconds
    details = _describe_limit(field_context, milliseconds, max_ms)
    reason = f"{format_number(milliseconds)} ms (allowed: {format_number(max_ms)} ms)"
    value = score_against_limit(milliseconds, max_ms)
    return Score(value, is_within(milliseconds, max_ms), reason, details)


@evaluator(category="performance", field="usage", pure=True, check=make_limit_check("throughput", "min_tps"))
def throughput(field_context: FieldContext, *, min_tps: float = 10) -> Score:
    """Passes if the target produced at least `min_tps` tokens per second.

    It divides the result's `usage.output_tokens` (`usage.total_tokens` if those are unknown) by its `latency_ms`, for
    any field; the details show which tokens were counted. The value is 1 at the limit or above, and otherwise the
    fraction of the limit.

    >>> result = {"usage": {"output_tokens": 30}, "latency_ms": 2000.0}
    >>> throughput(FieldContext("usage", result), min_tps=20).reason
    '15 tokens per second (required: 20)'
    """
    name = "total_tokens" if field_context.get("usage.output_tokens") is None else "output_tokens"
    tokens = read_amount(field_context.get(f"usage.{name}"), f"usage.{name}")
    if isinstance(tokens, Score):
        return tokens
    milliseconds = read_amount(field_context.latency_ms, "latency_ms")
    if isinstance(milliseconds, Score):
        return milliseconds
    if not milliseconds:
        return Score.skipped("latency_ms is 0, so the throughput is unknown")
    speed = tokens / milliseconds * 1000
    details = {**_describe_limit(field_context, speed, min_tps), "tokens": tokens, "counted": name}
    reason = f"{format_number(speed)} tokens per second (required: {format_number(min_tps)})"
    passed = is_within(min_tps, speed)
    return Score(1.0 if passed else speed / min_tps, passed, reason, details)


def _describe_limit(context: FieldContext, value: float, limit: float) -> dict[str, Any]:
    return {"method": "limit", "field": context.field_name, "value": value, "limit": limit}
