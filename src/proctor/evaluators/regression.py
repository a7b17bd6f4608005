"""Regression: nothing got worse than it was in the baseline."""

from __future__ import annotations

from typing import Literal

from proctor.evaluators.marking import evaluator
from proctor.evaluators.measured import (
    NO_BASELINE,
    amount_and_baseline,
    compared,
    falling,
    increase_within,
    limits,
    number,
    within,
)
from proctor.evaluators.plain_values import plain_value
from proctor.evaluators.verdict import shown
from proctor.records import codec
from proctor.records.fields.context import Delta, FieldContext
from proctor.records.fields.numbers import as_number, higher_is_better
from proctor.records.numbers import is_number
from proctor.records.score import Score

Better = Literal["auto", "higher", "lower"]


@evaluator(category="regression", pure=True, check=limits("no_regression", "tolerance"))
def no_regression(
    field_context: FieldContext, *, direction: Better = "auto", tolerance: float = 0.0
) -> Score:
    """Passes if the field is not worse than in the baseline.

    `direction` says which way is better. By itself that is told from the field's name (tokens,
    latency, cost and errors are better lower, scores higher); where the name does not tell,
    or the field is a text, only an unchanged value passes and a changed one is skipped. Booleans
    count as 0 and 1. `tolerance` is the share of the baseline that it may be worse by: 0.05 for
    5 %. The value is 1 while it passes, and then 1 minus the share of the baseline that it is
    worse by; a baseline of 0 has no shares, so that any worsening fails with 0.

    >>> score = {"score": 0.72, "baseline_score": 0.9}
    >>> no_regression(FieldContext("score", score)).reason
    'score 0.9 -> 0.72: 20.0 % worse (higher is better)'
    >>> no_regression(FieldContext("score", score), tolerance=0.25).passed
    True
    """
    value = plain_value(field_context.value)
    baseline = plain_value(field_context.baseline_value)
    name = field_context.field_name
    if baseline is None:
        return Score.skipped(f"{NO_BASELINE}: {name} is {shown(value)}")
    if value is None:
        return Score.skipped(f"{name} is not known")
    now, before = as_number(value), as_number(baseline)
    if now is None or before is None or isinstance(value, bool) is not isinstance(baseline, bool):
        return _unchanged(field_context)
    upward = _upward(field_context, direction)
    delta = Delta.between(now, before)
    if upward is None:
        if not delta.absolute:
            return _unchanged(field_context)
        return Score.skipped(
            f"{name} {number(before)} -> {number(now)}: its name does not tell which way is "
            "better; say direction='higher' or direction='lower'"
        )
    return _not_worse(field_context, delta, upward, tolerance)


@evaluator(
    category="regression", field="usage.total_tokens", pure=True, check=limits("token_regression", "max_pct")
)
def token_regression(field_context: FieldContext, *, max_pct: float = 10) -> Score:
    """Passes if token usage did not rise by more than `max_pct` percent of the baseline.

    The value is 1 while it passes, and then 1 - increase: 0.7 at +30 %, 0 from +100 % on. From a
    baseline of 0 only 0 passes; without a baseline it is skipped.

    >>> tokens = FieldContext("tokens", {"tokens": 650, "baseline_tokens": 500})
    >>> token_regression(tokens).passed, token_regression(tokens).value
    (False, 0.7)
    """
    return increase_within(field_context, max_pct, "percentage of the baseline")


@evaluator(category="regression", field="latency_ms", pure=True, check=limits("latency_regression", "max_ms"))
def latency_regression(field_context: FieldContext, *, max_ms: float = 200) -> Score:
    """Passes if latency did not rise by more than `max_ms` milliseconds over the baseline.

    The value is 1 while it passes, and then the limit's share of the increase: 0.5 where it rose
    by twice as much as it may. Without a baseline it is skipped.

    >>> taken = FieldContext("latency_ms", {"latency_ms": 1400, "baseline_latency_ms": 1000})
    >>> latency_regression(taken).value
    0.5
    """
    read = amount_and_baseline(field_context)
    if isinstance(read, Score):
        return read
    delta = Delta.between(*read)
    details = compared(field_context, delta, "difference from the baseline", max_ms)
    moved = f"{field_context.field_name} {number(read[1])} -> {number(read[0])}"
    reason = f"{moved}: {number(delta.absolute, sign=True)} ms (allowed: +{number(max_ms)} ms)"
    rise = delta.absolute
    return Score(falling(rise, max_ms), within(rise, max_ms), reason, details)


def _upward(context: FieldContext, direction: Better) -> bool | None:
    """Whether more is better: as told, or from the field's path, or from its name."""
    if direction != "auto":
        return direction == "higher"
    told = higher_is_better(context.path)
    return higher_is_better(context.field_name) if told is None else told


def _not_worse(context: FieldContext, delta: Delta, upward: bool, tolerance: float) -> Score:
    worse = -delta.absolute if upward else delta.absolute
    details = compared(context, delta, "not worse than the baseline", tolerance)
    details["higher_is_better"] = upward
    now, before = float(context.value), float(context.baseline_value)
    moved = f"{context.field_name} {number(before)} -> {number(now)}"
    way = "higher" if upward else "lower"
    if worse <= 0:
        told = f"{'better' if worse else 'unchanged'} ({way} is better)"
        return Score(1.0, True, f"{moved}: {told}", details)
    if not before:
        told = f"worse, and of a baseline of 0 any change is too much ({way} is better)"
        return Score(0.0, False, f"{moved}: {told}", details)
    share = worse / abs(before)
    passed = bool(tolerance) and within(share, tolerance)
    reason = f"{moved}: {100 * share:.1f} % worse ({way} is better)"
    return Score(1.0 if passed else max(0.0, 1.0 - share), passed, reason, details)


def _unchanged(context: FieldContext) -> Score:
    """What is no number is neither better nor worse: it is the same, or it cannot be told."""
    value, baseline = plain_value(context.value), plain_value(context.baseline_value)
    name = context.field_name
    for role, one in ((name, value), (f"the baseline of {name}", baseline)):
        if isinstance(one, float) and not is_number(one):
            return Score.error(f"{role} is not a finite number: {one!r}")
    if codec.canonical(value) == codec.canonical(baseline):
        return Score(1.0, True, f"{name} is unchanged", {"method": "equality", "field": name})
    return Score.skipped(
        f"{name} changed from {shown(baseline)} to {shown(value)}: without numbers it cannot be "
        "told whether that is worse"
    )
