"""Scales of verdicts: words with values, or numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.errors import EvaluatorError, suggest_name
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.verdict_form import VerdictForm
from proctor.records.numbers import is_number

Rating = Literal["excellent", "good", "fair", "poor", "wrong"]

RATING_VALUES: dict[Rating, float] = {"excellent": 1.0, "good": 0.75, "fair": 0.5, "poor": 0.25, "wrong": 0.0}
PASSING_RATINGS: frozenset[Rating] = frozenset({"excellent", "good"})

# The default threshold lies below "4 of 5".
DEFAULT_THRESHOLD = 0.7
# With more steps, the probabilities of the verdicts cannot be distinguished.
MAX_STEPS = 20


class JudgeOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A judge's answer: one of the five ratings, and the reason.

    >>> JudgeOutput("good", "correct, but wordy").rating
    'good'
    """

    rating: Rating
    reason: str


class JudgeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The placeholders of a custom prompt: `MarkdownSection[JudgeParams](…, "$output …")`."""

    criterion: str
    output: str
    expected: str


class LabelScale(NamedTuple):
    """Words with values, some of which pass.

    Without a threshold, a verdict passes if it is one of the passing words, and the mean of several verdicts passes if
    it is at least the lowest passing value.
    """

    field: str
    values: Mapping[Any, float]
    passing: frozenset[Any]
    threshold: float | None = None

    def answer_format(self, fence: Fence) -> VerdictForm:
        """Return the answer format for a call with this fence."""
        choices = list(self.values)
        return VerdictForm(self.field, choices, delimiter=fence.delimiter, is_quoted=fence.contains, texts=fence.texts)

    def value_of(self, verdict: str) -> float:
        """Return the value of a verdict, from 0 to 1."""
        return self.values[verdict]

    def to_data(self, verdict: str) -> str | float:
        """Return the verdict as a score stores it: a word or a number."""
        return verdict

    def passes(self, value: float, verdict: str | None = None) -> bool:
        """Return whether a value passes; `verdict` is its verdict, if there is a single one."""
        if self.threshold is not None:
            return value >= self.threshold
        if verdict is not None:
            return verdict in self.passing
        return value >= min(self.values[label] for label in self.passing)

    def steps(self) -> Mapping[str, float]:
        """Return every possible verdict with its value; empty if there are too many."""
        return self.values

    def details(self, value: float) -> dict[str, Any]:  # noqa: ARG002 - the judge's details have the word
        """Return the details that a score stores in addition to the value."""
        return {}


class NumberScale(NamedTuple):
    """Numbers from `low` to `high`; the value is the relative position on the scale. See `LabelScale`."""

    low: float = 1
    high: float = 5
    threshold: float = DEFAULT_THRESHOLD
    field: str = "score"

    def answer_format(self, fence: Fence) -> VerdictForm:
        scale = (self.low, self.high)
        return VerdictForm(
            self.field, scale=scale, delimiter=fence.delimiter, is_quoted=fence.contains, texts=fence.texts
        )

    def value_of(self, verdict: str) -> float:
        return (float(verdict) - self.low) / (self.high - self.low)

    def to_data(self, verdict: str) -> str | float:
        return simplify_number(verdict)

    def passes(self, value: float, verdict: str | None = None) -> bool:  # noqa: ARG002 - see Scale
        return value >= self.threshold

    def steps(self) -> Mapping[str, float]:
        has_integers = float(self.low).is_integer() and float(self.high).is_integer()
        if not has_integers or self.high - self.low > MAX_STEPS:
            return {}
        verdicts = map(str, range(int(self.low), int(self.high) + 1))
        return {verdict: self.value_of(verdict) for verdict in verdicts}

    def details(self, value: float) -> dict[str, Any]:
        """Return the value on the scale, as a percentage of the maximum, and normalized to 0 to 1."""
        score = simplify_number(self.low + value * (self.high - self.low))
        details = {"score": score, "min": simplify_number(self.low), "max": simplify_number(self.high)}
        if self.low >= 0:
            # A scale with negative numbers has no percentage.
            details["percentage"] = 100.0 * score / self.high
        return {**details, "normalized": value}


Scale = LabelScale | NumberScale

# The scales that `llm_judge(…, scale="NAME")` accepts.
LABEL_SCALES: dict[str, tuple[str, LabelScale]] = {
    # Name -> (key of the prompt in prompts/, scale).
    "rating": ("llm-judge", LabelScale("rating", RATING_VALUES, PASSING_RATINGS))
}


def is_scale(bounds: Any) -> bool:
    """Return True for a pair of numbers in ascending order."""
    is_pair = isinstance(bounds, list | tuple) and len(bounds) == 2 and all(map(is_number, bounds))
    return is_pair and bool(bounds[0] < bounds[1])


def find_label_scale(name: str, threshold: float | None, where: str) -> tuple[str, LabelScale]:
    """Return the prompt and the scale with this name."""
    if name not in LABEL_SCALES:
        raise EvaluatorError(f"unknown scale {name!r}", where=where, fix=suggest_name(name, LABEL_SCALES))
    prompt, scale = LABEL_SCALES[name]
    return prompt, scale._replace(threshold=threshold)


def create_number_scale(scale: Any, threshold: float | None, where: str) -> NumberScale:
    """Create a scale from its minimum and maximum; raise an error if they are invalid."""
    if not is_scale(scale):
        what = f"scale must be two different numbers, the lowest score first, got {scale!r}"
        raise EvaluatorError(what, where=where, fix="write scale=(1, 5)")
    low, high = scale
    return NumberScale(low, high, DEFAULT_THRESHOLD if threshold is None else threshold)


def simplify_number(number: float | str) -> float | int:
    """Return an integer for a whole number."""
    # Removes the rounding error of a sum of fractions.
    rounded = round(float(number), 9)
    return int(rounded) if rounded.is_integer() else rounded
