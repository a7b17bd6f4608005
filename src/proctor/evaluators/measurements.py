"""Score measured numbers against a limit or a baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from proctor.errors import EvaluatorError
from proctor.evaluators.plain_values import to_plain
from proctor.evaluators.score_conversion import preview
from proctor.records.fields.context import Delta, FieldContext
from proctor.records.numbers import is_fraction, is_number
from proctor.records.score import Score

NO_BASELINE = "there is no baseline to compare with"
# 110 is 10% more than 100, but not to the last binary digit.
_ROUNDING = 1e-9


def make_limit_check(where: str, *names: str, above_zero: bool = False) -> Callable[[Mapping[str, Any]], None]:
    """Return a check that the options are numbers, 0 or more, or greater than 0."""

    def check(options: Mapping[str, Any]) -> None:
        for name in names:
            limit = options.get(name, 1)
            if not is_number(limit) or limit < 0 or (above_zero and not limit):
                allowed = " greater than 0" if above_zero else ", 0 or more"
                what = f"{name} must be a number{allowed}, got {limit!r}"
                raise EvaluatorError(what, where=where, fix=f"write {name}=0.5, for example")

    return check


def check_fraction(where: str, name: str, value: Any) -> None:
    """Raise an error if an option is not a number from 0 to 1."""
    if not is_fraction(value):
        what = f"{name} must be between 0 and 1, got {preview(value)}"
        raise EvaluatorError(what, where=where, fix=f"write {name}=0.8, for example")


def read_amount(value: Any, label: str) -> float | Score:
    """Return a number, 0 or more, a skipped score if it is unknown, or an error score."""
    value = to_plain(value)
    if value is None:
        return Score.skipped(f"{label} is not known")
    if not is_number(value) or value < 0:
        return Score.error(f"{label} is not a number, 0 or more: {preview(value)}")
    return float(value)


def read_amount_and_baseline(context: FieldContext) -> tuple[float, float] | Score:
    """Return the amounts of a field and its baseline, or a score if they cannot be compared."""
    value = read_amount(context.value, context.field_name)
    if isinstance(value, Score):
        return value
    if context.baseline_value is None:
        return Score.skipped(f"{NO_BASELINE}: {context.field_name} is {format_number(value)}")
    baseline = read_amount(context.baseline_value, f"the baseline of {context.field_name}")
    return baseline if isinstance(baseline, Score) else (value, baseline)


def is_within(value: float, limit: float) -> bool:
    """Return True if a number is at most the limit, up to rounding."""
    return value <= limit or math.isclose(value, limit, rel_tol=_ROUNDING)


def score_against_limit(value: float, limit: float) -> float:
    """Return 1 up to the limit, then the ratio of limit and value: twice the limit is 0.5."""
    return 1.0 if is_within(value, limit) else limit / value


def score_increase(context: FieldContext, max_pct: float, method: str) -> Score:
    """Pass if an amount is at most `max_pct` percent above its baseline.

    The value is 1 while it passes, then 1 - increase: 0.7 at +30%, 0 at +100% or more. A baseline of
    0 has no percentage, so only 0 passes.
    """
    amounts = read_amount_and_baseline(context)
    if isinstance(amounts, Score):
        return amounts
    value, baseline = amounts
    delta = Delta.between(value, baseline)
    details = describe_comparison(context, delta, method, max_pct)
    change = f"{context.field_name} {format_number(baseline)} -> {format_number(value)}"
    if delta.percentage is None:
        passed = value == 0
        note = "both are 0" if passed else "the baseline is 0, so any increase fails"
        return Score(float(passed), passed, f"{change}: {note}", details)
    passed = is_within(delta.percentage, max_pct)
    reason = f"{change}: {delta.percentage:+.1f}% (allowed: {format_number(max_pct, sign=True)}%)"
    return Score(1.0 if passed else max(0.0, 1.0 - delta.percentage / 100), passed, reason, details)


def describe_comparison(context: FieldContext, delta: Delta, method: str, limit: float) -> dict[str, Any]:
    """Return the details of a score that compares a field with its baseline."""
    return {
        "method": method,
        "field": context.field_name,
        "value": context.value,
        "baseline": context.baseline_value,
        "delta": {"absolute": delta.absolute, "percentage": delta.percentage},
        "limit": limit,
    }


def format_number(value: float, *, sign: bool = False) -> str:
    """Format a number: whole numbers without decimals, others with four digits."""
    plus = "+" if sign and value >= 0 else ""
    if value == int(value) and abs(value) < 1e15:
        return f"{plus}{int(value)}"
    return f"{plus}{value:.1f}" if abs(value) >= 1000 else f"{plus}{value:.4g}"
