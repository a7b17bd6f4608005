"""What a verdict may be, and what it is worth: words with values, or numbers from a scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from proctor.errors import EvaluatorError
from proctor.evaluators.judges.answers import VerdictForm
from proctor.evaluators.judges.fence import Fence
from proctor.records.numbers import is_number

Rating = Literal["excellent", "good", "fair", "poor", "wrong"]

RATING_VALUES: dict[Rating, float] = {"excellent": 1.0, "good": 0.75, "fair": 0.5, "poor": 0.25, "wrong": 0.0}
PASSING_RATINGS: frozenset[Rating] = frozenset({"excellent", "good"})

# From a number to words there is no sharp line; this one lies below "4 of 5".
PASS_AT = 0.7
# Up to so many whole numbers, each is a verdict whose chances can be told from the others'.
MOST_STEPS = 20


class JudgeOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a judge says: one of the five ratings, and why.

    >>> JudgeOutput("good", "correct, but wordy").rating
    'good'
    """

    rating: Rating
    reason: str


class JudgeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a prompt of your own may name: `MarkdownSection[JudgeParams](…, "$output …")`."""

    criterion: str
    output: str
    expected: str


class Scale(Protocol):
    """How a verdict is asked for, and what it is worth."""

    @property
    def field(self) -> str:
        """What a verdict is called, such as "rating"."""
        ...

    def form(self, fence: Fence) -> VerdictForm:
        """The form of the answer in a call whose texts stand behind this fence."""
        ...

    def worth(self, said: str) -> float:
        """The value of a verdict, from 0 to 1."""
        ...

    def told(self, said: str) -> str | float:
        """The verdict as a score keeps it: a word, or a number."""
        ...

    def passes(self, value: float, said: str | None = None) -> bool:
        """True if a value is enough; `said` is the verdict it comes from, if it is one."""
        ...

    def steps(self) -> Mapping[str, float]:
        """Every verdict there can be, with its value; empty where they cannot be counted."""
        ...

    def details(self, value: float) -> dict[str, Any]:
        """What a score keeps of a value besides the value."""
        ...


class Labels:
    """Words, each with a value; some of them pass.

    Without a threshold a verdict passes if it is one of the passing words, and a mean of several
    verdicts if it is no less than the least of them.

    >>> Labels("rating", RATING_VALUES, passing=PASSING_RATINGS).worth("good")
    0.75
    """

    def __init__(
        self,
        field: str,
        values: Mapping[Any, float],
        *,
        passing: frozenset[Any],
        threshold: float | None = None,
    ) -> None:
        self.field = field
        self._values: dict[str, float] = dict(values)
        self._passing: frozenset[str] = passing
        self._threshold = threshold

    def form(self, fence: Fence) -> VerdictForm:
        """The form of the answer in a call whose texts stand behind this fence."""
        return VerdictForm(
            self.field, list(self._values), mark=fence.mark, quoted=fence.holds, texts=fence.texts
        )

    def worth(self, said: str) -> float:
        """The value of a word."""
        return self._values[said]

    def told(self, said: str) -> str | float:
        """The word itself."""
        return said

    def passes(self, value: float, said: str | None = None) -> bool:
        """True if a value is enough."""
        if self._threshold is not None:
            return value >= self._threshold
        if said is not None:
            return said in self._passing
        return value >= min(self._values[label] for label in self._passing)

    def steps(self) -> Mapping[str, float]:
        """Every word, with its value."""
        return self._values

    def details(self, value: float) -> dict[str, Any]:  # noqa: ARG002 - a word says it all
        """Nothing: the word itself is kept with the judge."""
        return {}


class Numbers(NamedTuple):
    """Numbers from `low` to `high`; the value is how far up a number lies.

    >>> Numbers(1, 5).worth("4"), Numbers(1, 5).details(0.75)["percentage"]
    (0.75, 80.0)
    """

    low: float = 1
    high: float = 5
    threshold: float = PASS_AT
    field: str = "score"

    def form(self, fence: Fence) -> VerdictForm:
        """The form of the answer in a call whose texts stand behind this fence."""
        ends = (self.low, self.high)
        return VerdictForm(self.field, scale=ends, mark=fence.mark, quoted=fence.holds, texts=fence.texts)

    def worth(self, said: str) -> float:
        """How far up the scale a number lies, from 0 to 1."""
        return (float(said) - self.low) / (self.high - self.low)

    def told(self, said: str) -> str | float:
        """The number that was said."""
        return plain_number(said)

    def passes(self, value: float, said: str | None = None) -> bool:  # noqa: ARG002 - see Scale
        """True if a value reaches the threshold."""
        return value >= self.threshold

    def steps(self) -> Mapping[str, float]:
        """The whole numbers of the scale with their values, unless there are too many."""
        whole = float(self.low).is_integer() and float(self.high).is_integer()
        if not whole or self.high - self.low > MOST_STEPS:
            return {}
        said = [str(number) for number in range(int(self.low), int(self.high) + 1)]
        return {one: self.worth(one) for one in said}

    def details(self, value: float) -> dict[str, Any]:
        """The value as a number of the scale, the ends of the scale, and both ways to put it.

        `percentage` is the share of the best score, `normalized` how far up the scale it lies.
        """
        score = plain_number(self.low + value * (self.high - self.low))
        found = {"score": score, "min": plain_number(self.low), "max": plain_number(self.high)}
        # Below zero there is no share of the best.
        share = {"percentage": 100.0 * score / self.high} if self.low >= 0 else {}
        return {**found, **share, "normalized": value}


def numbers(scale: Any, threshold: float | None, where: str) -> Numbers:
    """A scale from its two ends, or what is wrong with them."""
    ends = tuple(scale) if isinstance(scale, list | tuple) else ()
    if len(ends) != 2 or not all(map(is_number, ends)) or not ends[0] < ends[1]:
        raise EvaluatorError(
            f"a scale is its least and its greatest number, got {scale!r}",
            where=where,
            fix="write scale=(1, 5)",
        )
    return Numbers(*ends, PASS_AT if threshold is None else threshold)


def plain_number(number: float | str) -> float | int:
    """A number as people write it: 4 rather than 4.0.

    >>> plain_number("4.0"), plain_number(4.5)
    (4, 4.5)
    """
    # What comes from a sum of fractions is rounded where no person would see the difference.
    found = round(float(number), 9)
    return int(found) if found.is_integer() else found
