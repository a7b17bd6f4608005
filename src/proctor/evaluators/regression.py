"""Compare fields with their baseline and fail if they got worse."""

from __future__ import annotations

from typing import Any, Literal

from proctor.evaluators.decorator import evaluator
from proctor.evaluators.measurements import (
    NO_BASELINE,
    describe_comparison,
    format_number,
    is_within,
    make_limit_check,
    read_amount_and_baseline,
    score_against_limit,
    score_increase,
)
from proctor.evaluators.plain_values import to_plain
from proctor.evaluators.score_conversion import preview
from proctor.records import codec
from proctor.records.fields.context import Delta, FieldContext
from proctor.records.numbers import as_number, higher_is_better, is_number
from proctor.records.score import Score

Direction = Literal["auto", "higher", "lower"]


@evaluator(category="regression", pure=True, check=make_limit_check("no_regression", "tolerance"))
def no_regression(field_context: FieldContext, *, direction: Direction = "auto", tolerance: float = 0.0) -> Score:
    """Passes if the field is not worse than in the baseline.

    `direction` sets whether higher or lower is better. By default the field's name decides (tokens, latency, cost and
    errors are better lower, scores higher); for other names and for strings, an unchanged value passes and a changed
    value is skipped. Booleans count as 0 and 1. `tolerance` is the allowed worsening as a fraction of the baseline:
    0.05 for 5%. The value is 1 while it passes, then 1 minus the worsening; with a baseline of 0, any worsening scores
    0.

    >>> score = {"score": 0.72, "baseline_score": 0.9}
    >>> no_regression(FieldContext("score", score)).reason
    'score 0.9 -> 0.72: 20.0% worse (higher is better)'
    >>> no_regression(FieldContext("score", score), tolerance=0.25).passed
    True
    """
    value = to_plain(field_context.value)
    baseline = to_plain(field_context.baseline_value)
    name = field_context.field_name
    if baseline is None:
        return Score.skipped(f"{NO_BASELINE}: {name} is {preview(value)}")
    if value is None:
        return Score.skipped(f"{name} is not known")
    current, previous = as_number(value), as_number(baseline)
    if current is None or previous is None or isinstance(value, bool) is not isinstance(baseline, bool):
        return _score_unchanged(name, value, baseline)
    if direction == "auto":
        is_higher_better = higher_is_better(field_context.path)
        if is_higher_better is None:
            is_higher_better = higher_is_better(name)
    else:
        is_higher_better = direction == "higher"
    delta = Delta.between(current, previous)
    if is_higher_better is None:
        if not delta.absolute:
            return _score_unchanged(name, value, baseline)
        return Score.skipped(
            f"{name} {format_number(previous)} -> {format_number(current)}: its name does not say which way is "
            "better; set direction='higher' or direction='lower'"
        )
    return _score_change(field_context, delta, is_higher_better, tolerance)


@evaluator(
    category="regression", field="usage.total_tokens", pure=True, check=make_limit_check("token_regression", "max_pct")
)
def token_regression(field_context: FieldContext, *, max_pct: float = 10) -> Score:
    """Passes if token usage did not rise by more than `max_pct` percent of the baseline.

    The value is 1 while it passes, then 1 - increase: 0.7 at +30%, 0 at +100% or more. With a
    baseline of 0 only 0 passes; without a baseline it is skipped.

    >>> tokens = FieldContext("tokens", {"tokens": 650, "baseline_tokens": 500})
    >>> token_regression(tokens).passed, token_regression(tokens).value
    (False, 0.7)
    """
    return score_increase(field_context, max_pct, "percentage of the baseline")


@evaluator(category="regression", field="latency_ms", pure=True, check=make_limit_check("latency_regression", "max_ms"))
def latency_regression(field_context: FieldContext, *, max_ms: float = 200) -> Score:
    """Passes if latency did not rise by more than `max_ms` milliseconds over the baseline.

    The value is 1 while it passes, then the ratio of limit and increase: twice the limit is 0.5.
    Without a baseline it is skipped.

    >>> context = FieldContext("latency_ms", {"latency_ms": 1400, "baseline_latency_ms": 1000})
    >>> latency_regression(context).value
    0.5
    """
    amounts = read_amount_and_baseline(field_context)
    if isinstance(amounts, Score):
        return amounts
    current, previous = amounts
    delta = Delta.between(current, previous)
    rise = delta.absolute
    details = describe_comparison(field_context, delta, "difference from the baseline", max_ms)
    change = f"{field_context.field_name} {format_number(previous)} -> {format_number(current)}"
    reason = f"{change}: {format_number(rise, sign=True)} ms (allowed: +{format_number(max_ms)} ms)"
    return Score(score_against_limit(rise, max_ms), is_within(rise, max_ms), reason, details)


def _score_change(context: FieldContext, delta: Delta, is_higher_better: bool, tolerance: float) -> Score:
    worsening = -delta.absolute if is_higher_better else delta.absolute
    details = describe_comparison(context, delta, "not worse than the baseline", tolerance)
    details["higher_is_better"] = is_higher_better
    current, previous = float(context.value), float(context.baseline_value)
    change = f"{context.field_name} {format_number(previous)} -> {format_number(current)}"
    note = f"({'higher' if is_higher_better else 'lower'} is better)"
    if worsening <= 0:
        return Score(1.0, True, f"{change}: {'better' if worsening else 'unchanged'} {note}", details)
    if not previous:
        return Score(0.0, False, f"{change}: worse; from a baseline of 0 any change fails {note}", details)
    share = worsening / abs(previous)
    passed = bool(tolerance) and is_within(share, tolerance)
    reason = f"{change}: {100 * share:.1f}% worse {note}"
    return Score(1.0 if passed else max(0.0, 1.0 - share), passed, reason, details)


def _score_unchanged(name: str, value: Any, baseline: Any) -> Score:
    for role, item in ((name, value), (f"the baseline of {name}", baseline)):
        if isinstance(item, float) and not is_number(item):
            return Score.error(f"{role} is not a finite number: {item!r}")
    if codec.encode_canonical(value) == codec.encode_canonical(baseline):
        return Score(1.0, True, f"{name} is unchanged", {"method": "equality", "field": name})
    return Score.skipped(
        f"{name} changed from {preview(baseline)} to {preview(value)}: only numbers can be better or worse"
    )
