"""Statistical: a field's values over all epochs of a sample, and against those of the baseline.

They look at the epochs of the sample's trials in one configuration and in the baseline one; where
there is one epoch and the field is itself a list, at the items of the list. Nulls are values that
were not measured, and stand for epochs that failed: they are left out and counted, and of pairs
the whole pair is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from proctor.core.stats.differences import Difference, TestMethod, difference_of, differences, spread
from proctor.core.stats.effects import effect_of, effect_of_pairs
from proctor.core.stats.permutations import Direction
from proctor.errors import EvaluatorError
from proctor.evaluators.marking import evaluator
from proctor.evaluators.measured import NO_BASELINE, falling, limits, number, within
from proctor.evaluators.plain_values import plain_value
from proctor.evaluators.verdict import shown
from proctor.records import codec
from proctor.records.fields.context import FieldContext
from proctor.records.numbers import is_fraction, is_number
from proctor.records.score import Score


class Numbers(NamedTuple):
    """A field's numbers and its baseline's."""

    field: str
    values: list[float]
    baseline: list[float]
    details: dict[str, Any]


def _check_p(options: Mapping[str, Any]) -> None:
    p = options.get("p_value", 0.05)
    if not is_fraction(p) or p in (0, 1):
        raise EvaluatorError(
            f"p_value is a number between 0 and 1, got {p!r}", where="statistical_significance"
        )


@evaluator(category="statistical", needs=("epochs",), pure=True, check=limits("consistency", "std_dev"))
def consistency(field_context: FieldContext, *, std_dev: float = 0.1) -> Score:
    """Passes if the field hardly varies from epoch to epoch.

    Numbers, and booleans as 0 and 1, by their standard deviation (divided by n - 1); any other
    values by the share of all pairs of epochs that differ. The value is 1 up to `std_dev`, and
    then its share of what was found: 0.5 where it varies twice as much. One epoch is skipped.

    >>> consistency(FieldContext("score", {}, epochs=[0.8, 0.9, 0.85])).reason
    'standard deviation 0.05 over 3 values (allowed: 0.1)'
    >>> consistency(FieldContext("output", {}, epochs=["yes", "yes", "no"])).value
    0.15
    """
    found = _values(field_context)
    values = [value for value in found if value is not None]
    details: dict[str, Any] = {"field": field_context.field_name, "n": len(values)}
    if len(values) < len(found):
        details["missing"] = len(found) - len(values)
    if len(values) < 2:
        return Score.skipped(f"{len(values)} of 2 values: one cannot tell how it varies", details)
    numbers = _as_numbers(values)
    if any(isinstance(value, float) and not is_number(value) for value in values):
        return Score.error(f"{field_context.field_name}: {numbers}", details)
    if isinstance(numbers, str):
        varied, what = _differing(values), "share of pairs that differ"
    else:
        centre, variance = spread(numbers)
        varied, what = math.sqrt(variance), "standard deviation"
        details["mean"] = centre
    details |= {"method": what, "varied": varied, "limit": std_dev}
    reason = f"{what} {number(varied)} over {len(values)} values (allowed: {number(std_dev)})"
    return Score(falling(varied, std_dev), within(varied, std_dev), reason, details)


@evaluator(category="statistical", needs=("epochs",), check=_check_p)
def statistical_significance(
    field_context: FieldContext,
    *,
    p_value: float = 0.05,
    direction: Direction = "any",
    paired: bool = False,
    method: TestMethod = "auto",
    seed: int = 0,
) -> Score:
    """Passes if the field differs from the baseline by more than chance would give.

    It passes if p <= `p_value`, where p is how likely chance alone gives such a difference; the
    value is 1 - p. `direction` asks only for "higher" or "lower" than the baseline; `paired`
    takes epochs (or items) of equal place for pairs. With thirty values a side (or differences of
    pairs) beside the commonest one and sizes that are alike it is Welch's (the paired) t-test;
    below, and with rare values or very unequal sizes, it is by rearrangements: all of them are
    counted, or up to 4,999 drawn with `seed`. `method` "t" or "permutation" insists on one. So
    few values that no outcome could pass (three against three at 0.05) are skipped and not
    failed. The interval in the details is of 95 %, whichever the method: Newcombe's (of pairs
    Bonett and Price's) where all values are 0 or 1, else Student's; None without spread.

    >>> epochs = FieldContext(
    ...     "score", {}, epochs=[0.9, 0.8, 0.9, 0.85], baseline_epochs=[0.6, 0.7, 0.65, 0.6]
    ... )
    >>> statistical_significance(epochs).reason
    'difference 0.225 from the baseline, p = 0.0286 (exact permutation test; wanted: 0.05)'
    """
    read = _numbers(field_context, paired)
    if isinstance(read, Score):
        return read
    found = difference_of(
        read.values, read.baseline, pairs=paired, direction=direction, method=method, seed=seed
    )
    if found is None:
        return Score.skipped(_too_little(read, paired), read.details)
    details = read.details | _told(found, p_value)
    if found.smallest_p > p_value:
        return Score.skipped(
            f"{_sizes(read)} cannot show it: the least p they can give is "
            f"{number(found.smallest_p)}, wanted is {number(p_value)}; run more epochs",
            details,
        )
    reason = (
        f"difference {number(found.difference)} from the baseline, "
        f"p = {found.p:.3g} ({found.method}; wanted: {number(p_value)})"
    )
    return Score(1 - found.p, found.p <= p_value, reason, details)


@evaluator(
    category="statistical",
    needs=("epochs",),
    pure=True,
    check=limits("effect_size", "cohen_d", above_zero=True),
)
def effect_size(
    field_context: FieldContext, *, cohen_d: float = 0.5, direction: Direction = "any", paired: bool = False
) -> Score:
    """Passes if the difference from the baseline is large beside the spread of the values.

    The effect is Cohen's d with Hedges' correction for small groups: the difference of the means
    in pooled standard deviations or, if `paired`, in standard deviations of the differences. It
    passes if it is at least `cohen_d` either way, or in the `direction` asked for; the value is
    the share of `cohen_d` that was reached, at most 1. The details hold d, its corrected form g
    and a 95 % interval. Values that do not vary and equal the baseline have no effect; if they
    differ from it there is no spread to measure by, and the score is skipped.

    >>> epochs = FieldContext("score", {}, epochs=[4, 5, 6], baseline_epochs=[1, 2, 3])
    >>> effect_size(epochs).reason
    'effect 2.394 standard deviations from the baseline (wanted: 0.5)'
    """
    read = _numbers(field_context, paired)
    if isinstance(read, Score):
        return read
    found = (effect_of_pairs if paired else effect_of)(read.values, read.baseline)
    if found is None:
        return Score.skipped(_too_little(read, paired), read.details)
    size = {"any": abs(found.g), "higher": found.g, "lower": -found.g}[direction]
    details = read.details | {
        "method": "Hedges' g of pairs" if paired else "Hedges' g, pooled",
        "d": found.d,
        "g": found.g,
        "interval": list(found.interval),
        "limit": cohen_d,
    }
    wanted = number(cohen_d) if direction == "any" else f"{number(cohen_d)} {direction}"
    reason = f"effect {number(found.g)} standard deviations from the baseline (wanted: {wanted})"
    passed = within(cohen_d, size)
    return Score(1.0 if passed else max(0.0, size / cohen_d), passed, reason, details)


def _values(context: FieldContext) -> list[Any]:
    """The values of all epochs; of a single one that is a list, its items."""
    epochs = list(map(plain_value, context.epochs))
    if len(epochs) > 1:
        return epochs
    return _items(epochs[0] if epochs else context.value)


def _baseline(context: FieldContext) -> list[Any]:
    epochs = list(map(plain_value, context.baseline_epochs))
    if len(epochs) > 1:
        return epochs
    return _items(epochs[0] if epochs else context.baseline_value)


def _items(value: Any) -> list[Any]:
    value = plain_value(value)
    return list(map(plain_value, value)) if isinstance(value, list | tuple) else [value]


def _as_numbers(values: Sequence[Any]) -> list[float] | str:
    """All as finite numbers, or all booleans as 0 and 1; else what is in the way."""
    if all(isinstance(value, bool) for value in values):
        return [float(value) for value in values]
    odd = next((value for value in values if not is_number(value)), None)
    return [float(value) for value in values] if odd is None else f"{shown(odd)} is not a number"


def _differing(values: Sequence[Any]) -> float:
    """Of all pairs, the share whose two values are not the same as JSON."""
    n = len(values)
    same = sum(count * (count - 1) for count in Counter(map(codec.canonical, values)).values())
    return 1 - same / (n * (n - 1))


def _numbers(context: FieldContext, paired: bool) -> Numbers | Score:
    """The numbers of a field and its baseline, or the score of what cannot be compared."""
    name = context.field_name
    sides, missing = [_values(context), _baseline(context)], 0
    if all(value is None for value in sides[1]):
        return Score.skipped(NO_BASELINE)
    if paired and len(sides[0]) != len(sides[1]):
        told = f"{len(sides[0])} values and {len(sides[1])} of the baseline"
        return Score.error(f"{told} are not pairs; say paired=False")
    if paired:
        pairs = [pair for pair in zip(*sides, strict=True) if not any(v is None for v in pair)]
        missing = len(sides[0]) - len(pairs)
        sides = [[one for one, _ in pairs], [other for _, other in pairs]]
    else:
        kept = [[value for value in side if value is not None] for side in sides]
        missing = sum(map(len, sides)) - sum(map(len, kept))
        sides = kept
    if not all(sides):
        return Score.skipped(f"{name} is not known" + " in any pair" * paired)
    numbers = [_as_numbers(side) for side in sides]
    for role, found in zip((name, f"the baseline of {name}"), numbers, strict=True):
        if isinstance(found, str):
            return Score.error(f"{role}: {found}")
    values, baseline = (list(map(float, found)) for found in numbers)
    details: dict[str, Any] = {"field": name, "n": [len(values), len(baseline)]}
    if missing:
        details["missing"] = missing
    return Numbers(name, values, baseline, details)


def _too_little(read: Numbers, paired: bool) -> str:
    """Why nothing can be told of these numbers."""
    sides = [differences(read.values, read.baseline)] if paired else [read.values, read.baseline]
    if len(read.values) + len(read.baseline) > 3 and not any(spread(side)[1] for side in sides):
        return f"{_sizes(read)} differ by the same throughout: there is no spread to measure by"
    return f"{_sizes(read)}: too few to tell a difference"


def _sizes(read: Numbers) -> str:
    count = len(read.values)
    values = "value" if count == 1 else "values"
    return f"{count} {values} against {len(read.baseline)} of the baseline"


def _told(found: Difference, p_value: float) -> dict[str, Any]:
    return {
        "method": found.method,
        "means": list(found.means),
        "difference": found.difference,
        "interval": None if found.interval is None else list(found.interval),
        "p": found.p,
        "limit": p_value,
    }
