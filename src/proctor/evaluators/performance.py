"""Performance: how many tokens, how long, how fast."""

from __future__ import annotations

from typing import Any

from proctor.evaluators.marking import evaluator
from proctor.evaluators.measured import amount, falling, increase_within, limits, number, within
from proctor.records.fields.context import FieldContext
from proctor.records.score import Score


@evaluator(
    category="performance",
    field="usage.total_tokens",
    pure=True,
    check=limits("token_efficiency", "max_increase_pct"),
)
def token_efficiency(field_context: FieldContext, *, max_increase_pct: float = 10) -> Score:
    """Passes if not many more tokens were used than in the baseline.

    The value is 1 while the increase is allowed, and then 1 - increase: 0.7 at +30 %, 0 from
    +100 % on. From a baseline of 0 only 0 passes; without a baseline it is skipped.

    >>> tokens = FieldContext("tokens", {"tokens": 540, "baseline_tokens": 500})
    >>> token_efficiency(tokens).reason
    'tokens 500 -> 540: +8.0 % (allowed: +10 %)'
    """
    return increase_within(field_context, max_increase_pct, "percentage of the baseline")


@evaluator(category="performance", field="latency_ms", pure=True, check=limits("latency", "max_ms"))
def latency(field_context: FieldContext, *, max_ms: float = 2000) -> Score:
    """Passes if the answer came within `max_ms` milliseconds.

    The value is 1 within the limit, and then the limit's share of the time: twice too slow is 0.5.

    >>> latency(FieldContext("latency_ms", {"latency_ms": 2500}), max_ms=2000).value
    0.8
    """
    taken = amount(field_context.value, field_context.field_name)
    if isinstance(taken, Score):
        return taken
    details = _limited(field_context, taken, max_ms)
    reason = f"{number(taken)} ms (allowed: {number(max_ms)} ms)"
    return Score(falling(taken, max_ms), within(taken, max_ms), reason, details)


@evaluator(category="performance", field="usage", pure=True, check=limits("throughput", "min_tps"))
def throughput(field_context: FieldContext, *, min_tps: float = 10) -> Score:
    """Passes if at least `min_tps` tokens came out a second.

    They are the result's `usage.output_tokens` (where those are not known, `usage.total_tokens`)
    over its `latency_ms`, whichever field it stands at; the details say which were counted. The
    value is 1 from the limit on, and below it the share of the limit that was reached.

    >>> result = {"usage": {"output_tokens": 30}, "latency_ms": 2000.0}
    >>> throughput(FieldContext("usage", result), min_tps=20).reason
    '15 tokens a second (wanted: 20)'
    """
    name = "output_tokens"
    if field_context.get(f"usage.{name}") is None:
        name = "total_tokens"
    tokens = amount(field_context.get(f"usage.{name}"), f"usage.{name}")
    if isinstance(tokens, Score):
        return tokens
    taken = amount(field_context.latency_ms, "latency_ms")
    if isinstance(taken, Score):
        return taken
    if not taken:
        return Score.skipped("latency_ms is 0: how fast it was cannot be told")
    speed = tokens / taken * 1000
    details = {**_limited(field_context, speed, min_tps), "tokens": tokens, "counted": name}
    reason = f"{number(speed)} tokens a second (wanted: {number(min_tps)})"
    fast = within(min_tps, speed)
    return Score(1.0 if fast else speed / min_tps, fast, reason, details)


def _limited(context: FieldContext, measured: float, limit: float) -> dict[str, Any]:
    return {"method": "limit", "field": context.field_name, "value": measured, "limit": limit}
