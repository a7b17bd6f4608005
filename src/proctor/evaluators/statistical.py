"""Evaluate the values of a field over all epochs of a sample, alone or against the baseline.

With a single epoch whose value is a list, the items of the list are used instead. Null values mean failed epochs: they
are left out and counted; in paired tests the whole pair is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from proctor.core.stats.differences import TestMethod, compare_groups, paired_differences, sample_moments
from proctor.core.stats.effects import measure_effect, measure_paired_effect
from proctor.core.stats.permutations import Direction
from proctor.errors import EvaluatorError
from proctor.evaluators.decorator import evaluator
from proctor.evaluators.measurements import NO_BASELINE, format_number, is_within, make_limit_check, score_against_limit
from proctor.evaluators.plain_values import to_plain
from proctor.evaluators.score_conversion import preview
from proctor.records import codec
from proctor.records.fields.context import FieldContext
from proctor.records.numbers import is_fraction, is_number
from proctor.records.score import Score


class Groups(NamedTuple):
    """The numbers of a field and of its baseline."""

    values: list[float]
    baseline: list[float]
    details: dict[str, Any]

    def __str__(self) -> str:
        noun = "value" if len(self.values) == 1 else "values"
        return f"{len(self.values)} {noun} against {len(self.baseline)} of the baseline"


def _check_p_value(options: Mapping[str, Any]) -> None:
    p = options.get("p_value", 0.05)
    if not is_fraction(p) or p in (0, 1):
        what = f"p_value must be a number between 0 and 1, got {p!r}"
        raise EvaluatorError(what, where="statistical_significance", fix="write p_value=0.05, for example")


@evaluator(category="statistical", needs=("epochs",), pure=True, check=make_limit_check("consistency", "std_dev"))
def consistency(field_context: FieldContext, *, std_dev: float = 0.1) -> Score:
    """Passes if the field varies little from epoch to epoch.

    Numbers, and booleans as 0 and 1, are measured by their standard deviation (divided by n - 1);
    other values by the fraction of pairs of epochs that differ. The value is 1 up to `std_dev`, then
    the ratio of `std_dev` and the variation. A single epoch is skipped.

    >>> consistency(FieldContext("score", {}, epochs=[0.8, 0.9, 0.85])).reason
    'standard deviation 0.05 over 3 values (allowed: 0.1)'
    >>> consistency(FieldContext("output", {}, epochs=["yes", "yes", "no"])).value
    0.15
    """
    all_values = _list_values(field_context.epochs, lambda: field_context.value)
    values = [value for value in all_values if value is not None]
    details: dict[str, Any] = {"field": field_context.field_name, "n": len(values)}
    if len(values) < len(all_values):
        details["missing"] = len(all_values) - len(values)
    if len(values) < 2:
        return Score.skipped(f"{len(values)} of 2 values: variation needs at least two", details)
    numbers = _to_numbers(values)
    if any(isinstance(value, float) and not is_number(value) for value in values):
        return Score.error(f"{field_context.field_name}: {numbers}", details)
    if isinstance(numbers, str):
        variation, method = _compute_share_of_differing_pairs(values), "share of pairs that differ"
    else:
        details["mean"], variance = sample_moments(numbers)
        variation, method = math.sqrt(variance), "standard deviation"
    details |= {"method": method, "varied": variation, "limit": std_dev}
    measured, allowed = format_number(variation), format_number(std_dev)
    reason = f"{method} {measured} over {len(values)} values (allowed: {allowed})"
    return Score(score_against_limit(variation, std_dev), is_within(variation, std_dev), reason, details)


@evaluator(category="statistical", needs=("epochs",), check=_check_p_value)
def statistical_significance(
    field_context: FieldContext,
    *,
    p_value: float = 0.05,
    direction: Direction = "any",
    paired: bool = False,
    method: TestMethod = "auto",
    seed: int = 0,
) -> Score:
    """Passes if the field differs from the baseline by more than chance would explain.

    It passes if p <= `p_value`, where p is the probability of a difference of this size by chance; the value is 1 - p.
    `direction` tests only for "higher" or "lower" than the baseline; `paired` pairs the epochs (or items) by position.
    With at least thirty values per side (or differences of pairs) besides the most common one, and similar sizes, it is
    Welch's (or the paired) t-test; otherwise a permutation test, exact or with up to 4,999 random permutations from
    `seed`. `method` "t" or "permutation" selects one. The score is skipped if there are too few values for any outcome
    to pass (three against three at 0.05). The details contain a 95% interval: Newcombe's (for pairs Bonett and Price's)
    if all values are 0 or 1, otherwise Student's; None without spread.

    >>> runs = FieldContext("score", {}, epochs=[0.9, 0.8, 0.9, 0.85], baseline_epochs=[0.6, 0.7, 0.65, 0.6])
    >>> statistical_significance(runs).reason
    'difference 0.225 from the baseline, p = 0.0286 (exact permutation test; required: 0.05)'
    """
    groups = _read_groups(field_context, paired)
    if isinstance(groups, Score):
        return groups
    result = compare_groups(
        groups.values, groups.baseline, paired=paired, direction=direction, method=method, seed=seed
    )
    if result is None:
        return Score.skipped(_explain_no_result(groups, paired), groups.details)
    details = groups.details | {
        "method": result.method,
        "means": list(result.means),
        "difference": result.difference,
        "interval": None if result.interval is None else list(result.interval),
        "p": result.p,
        "limit": p_value,
    }
    if result.smallest_p > p_value:
        return Score.skipped(
            f"{groups} are too few: their smallest possible p is {format_number(result.smallest_p)}, "
            f"required is {format_number(p_value)}; run more epochs",
            details,
        )
    reason = (
        f"difference {format_number(result.difference)} from the baseline, "
        f"p = {result.p:.3g} ({result.method}; required: {format_number(p_value)})"
    )
    return Score(1 - result.p, result.p <= p_value, reason, details)


@evaluator(
    category="statistical",
    needs=("epochs",),
    pure=True,
    check=make_limit_check("effect_size", "cohen_d", above_zero=True),
)
def effect_size(
    field_context: FieldContext, *, cohen_d: float = 0.5, direction: Direction = "any", paired: bool = False
) -> Score:
    """Passes if the difference from the baseline is large compared with the spread of the values.

    The effect is Cohen's d with Hedges' correction for small groups: the difference of the means in pooled standard
    deviations or, if `paired`, in standard deviations of the differences. It passes if it is at least `cohen_d` in
    either direction, or in the given `direction`; the value is the fraction of `cohen_d` that it reaches, at most 1.
    The details contain d, its corrected form g and a 95% interval. Values without spread that equal the baseline have
    no effect; if they differ from it, the score is skipped.

    >>> epochs = FieldContext("score", {}, epochs=[4, 5, 6], baseline_epochs=[1, 2, 3])
    >>> effect_size(epochs).reason
    'effect 2.394 standard deviations from the baseline (required: 0.5)'
    """
    groups = _read_groups(field_context, paired)
    if isinstance(groups, Score):
        return groups
    effect = (measure_paired_effect if paired else measure_effect)(groups.values, groups.baseline)
    if effect is None:
        return Score.skipped(_explain_no_result(groups, paired), groups.details)
    size = {"any": abs(effect.g), "higher": effect.g, "lower": -effect.g}[direction]
    details = groups.details | {
        "method": "Hedges' g of pairs" if paired else "Hedges' g, pooled",
        "d": effect.d,
        "g": effect.g,
        "interval": list(effect.interval),
        "limit": cohen_d,
    }
    limit = format_number(cohen_d) + (f" {direction}" if direction != "any" else "")
    reason = f"effect {format_number(effect.g)} standard deviations from the baseline (required: {limit})"
    passed = is_within(cohen_d, size)
    return Score(1.0 if passed else max(0.0, size / cohen_d), passed, reason, details)


def _list_values(epochs: Sequence[Any], read_value: Callable[[], Any]) -> list[Any]:
    """Return the values of all epochs, or the items of a single value that is a list.

    `read_value` is called only if there are no epochs: the result may lack the field.
    """
    values = list(map(to_plain, epochs))
    if len(values) > 1:
        return values
    value = to_plain(values[0] if values else read_value())
    return list(map(to_plain, value)) if isinstance(value, list | tuple) else [value]


def _to_numbers(values: Sequence[Any]) -> list[float] | str:
    """Return finite numbers, or booleans as 0 and 1; otherwise the reason why there are none."""
    if all(isinstance(value, bool) for value in values):
        return [float(value) for value in values]
    other = next((value for value in values if not is_number(value)), None)
    return [float(value) for value in values] if other is None else f"{preview(other)} is not a number"


def _compute_share_of_differing_pairs(values: Sequence[Any]) -> float:
    n = len(values)
    equal = sum(count * (count - 1) for count in Counter(map(codec.encode_canonical, values)).values())
    return 1 - equal / (n * (n - 1))


def _read_groups(context: FieldContext, paired: bool) -> Groups | Score:
    """Return the numbers of a field and its baseline, or a score if they cannot be compared."""
    name = context.field_name
    values = _list_values(context.epochs, lambda: context.value)
    baseline = _list_values(context.baseline_epochs, lambda: context.baseline_value)
    total = len(values) + len(baseline)
    if all(value is None for value in baseline):
        return Score.skipped(NO_BASELINE)
    if paired:
        if len(values) != len(baseline):
            counts = f"{len(values)} values and {len(baseline)} of the baseline"
            return Score.error(f"{counts} are not pairs; set paired=False")
        pairs = [pair for pair in zip(values, baseline, strict=True) if None not in pair]
        values, baseline = [value for value, _ in pairs], [other for _, other in pairs]
        missing = total // 2 - len(pairs)
    else:
        values, baseline = ([value for value in side if value is not None] for side in (values, baseline))
        missing = total - len(values) - len(baseline)
    if not values or not baseline:
        return Score.skipped(f"{name} is not known" + " in any pair" * paired)
    numbers, baseline_numbers = _to_numbers(values), _to_numbers(baseline)
    if isinstance(numbers, str):
        return Score.error(f"{name}: {numbers}")
    if isinstance(baseline_numbers, str):
        return Score.error(f"the baseline of {name}: {baseline_numbers}")
    details: dict[str, Any] = {"field": name, "n": [len(values), len(baseline)]}
    if missing:
        details["missing"] = missing
    return Groups(numbers, baseline_numbers, details)


def _explain_no_result(groups: Groups, paired: bool) -> str:
    sides = [groups.values, groups.baseline]
    if paired:
        sides = [paired_differences(groups.values, groups.baseline)]
    if len(groups.values) + len(groups.baseline) > 3 and not any(sample_moments(side)[1] for side in sides):
        return f"{groups} have no spread to measure a difference by"
    return f"{groups}: too few to measure a difference"
