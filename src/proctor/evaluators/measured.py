"""Numbers that were measured: read from a field, held against a limit, beside a baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from proctor.errors import EvaluatorError
from proctor.evaluators.plain_values import plain_value
from proctor.evaluators.verdict import shown
from proctor.records.fields.context import Delta, FieldContext
from proctor.records.numbers import is_number
from proctor.records.score import Score

NO_BASELINE = "there is no baseline to compare with"
# 110 is 10 % more than 100 to people, if not to the last binary digit.
_ROUNDING = 1e-9


def limits(where: str, *names: str, above_zero: bool = False) -> Callable[[Mapping[str, Any]], None]:
    """A check of options: those named are numbers from 0 up, or above 0."""

    def check(options: Mapping[str, Any]) -> None:
        for name in names:
            limit = options.get(name, 1)
            if not is_number(limit) or limit < 0 or (above_zero and not limit):
                wanted = "above 0" if above_zero else "from 0 up"
                raise EvaluatorError(f"{name} is a number {wanted}, got {limit!r}", where=where)

    return check


def amount(value: Any, what: str) -> float | Score:
    """A number that cannot be negative; a skipped score if it is not known, else an error."""
    value = plain_value(value)
    if value is None:
        return Score.skipped(f"{what} is not known")
    if not is_number(value) or value < 0:
        return Score.error(f"{what} is not a number from 0 up: {shown(value)}")
    return float(value)


def amount_and_baseline(context: FieldContext) -> tuple[float, float] | Score:
    """A field's amount and its baseline's, or the score of what cannot be compared."""
    value = amount(context.value, context.field_name)
    if isinstance(value, Score):
        return value
    if context.baseline_value is None:
        return Score.skipped(f"{NO_BASELINE}: {context.field_name} is {number(value)}")
    baseline = amount(context.baseline_value, f"the baseline of {context.field_name}")
    return baseline if isinstance(baseline, Score) else (value, baseline)


def within(measured: float, limit: float) -> bool:
    """True if a number is at most the limit, rounding aside."""
    return measured <= limit or math.isclose(measured, limit, rel_tol=_ROUNDING)


def falling(measured: float, limit: float) -> float:
    """1 up to the limit, then the limit's share of what was measured: twice too much is 0.5.

    >>> falling(1500, 2000), falling(4000, 2000)
    (1.0, 0.5)
    """
    return 1.0 if within(measured, limit) else limit / measured


def increase_within(context: FieldContext, max_pct: float, method: str) -> Score:
    """Passes if an amount is at most some percent above its baseline.

    The value is 1 while it passes, and then 1 - increase: at +30 % it is 0.7, from +100 % on 0.
    A baseline of 0 has no percentage: then nothing passes but 0.
    """
    read = amount_and_baseline(context)
    if isinstance(read, Score):
        return read
    value, baseline = read
    delta = Delta.between(value, baseline)
    details = compared(context, delta, method, max_pct)
    moved = f"{context.field_name} {number(baseline)} -> {number(value)}"
    if delta.percentage is None:
        passed = value == 0
        told = "both are 0" if passed else "the baseline is 0, so any increase is too much"
        return Score(float(passed), passed, f"{moved}: {told}", details)
    passed = within(delta.percentage, max_pct)
    left = 1.0 if passed else max(0.0, 1.0 - delta.percentage / 100)
    told = f"{moved}: {delta.percentage:+.1f} % (allowed: {number(max_pct, sign=True)} %)"
    return Score(left, passed, told, details)


def compared(context: FieldContext, delta: Delta, method: str, limit: float) -> dict[str, Any]:
    """What a score that compares with a baseline keeps of the comparison."""
    return {
        "method": method,
        "field": context.field_name,
        "value": context.value,
        "baseline": context.baseline_value,
        "delta": {"absolute": delta.absolute, "percentage": delta.percentage},
        "limit": limit,
    }


def number(value: float, *, sign: bool = False) -> str:
    """A number as people write it: whole ones whole, others to four digits.

    >>> number(450.0), number(0.123456), number(1234567.0), number(-3, sign=True)
    ('450', '0.1235', '1234567', '-3')
    """
    plus = "+" if sign and value >= 0 else ""
    if value == int(value) and abs(value) < 1e15:
        return f"{plus}{int(value)}"
    return f"{plus}{value:.1f}" if abs(value) >= 1000 else f"{plus}{value:.4g}"
