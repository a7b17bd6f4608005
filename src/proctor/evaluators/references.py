"""Several references: which expected values an output may match, and the best of their scores.

A single text against a list of expected texts means "any of these references", in every evaluator
that takes an expected value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any

from proctor.evaluators.plain_values import plain_value
from proctor.records.score import Score

NO_REFERENCES = "there is nothing to compare with: the expected list is empty"


def items_of(value: Any) -> list[Any] | None:
    """The items of a list, tuple, set or array; None for a value that is none of these.

    >>> items_of(("a", "b")), items_of("ab"), items_of({"a": 1})
    (['a', 'b'], None, None)
    """
    value = plain_value(value)
    if isinstance(value, list | tuple):
        return list(value)
    return sorted(value, key=repr) if isinstance(value, Set) else None


def text_references(output: Any, expected: Any) -> list[str] | None:
    """The references that a single text may match; None if these are not alternatives.

    >>> text_references("Paris", ["Paris", "paris"]), text_references(["Paris"], ["Paris"])
    (['Paris', 'paris'], None)
    """
    if not isinstance(output, str):
        return None
    items = items_of(expected)
    return items if items and all(isinstance(item, str) for item in items) else None


def best_score(score: Callable[[Any], Score], references: Iterable[Any]) -> Score:
    """The score against the reference that fits best.

    A pass decides. Without one, a reference that could not be compared leaves the whole undecided:
    it might have been the one that matches.

    >>> best_score(lambda wanted: Score(float(wanted == "b"), wanted == "b"), ["a", "b"]).passed
    True
    """
    scores = []
    for reference in references:
        found = score(reference)
        if found.passed is True and found.value == 1.0:
            return found
        scores.append(found)
    if not scores:
        return Score.skipped(NO_REFERENCES)
    passed = [one for one in scores if one.passed is True]
    undecided = [one for one in scores if not one.ok]
    if undecided and not passed:
        return undecided[0]
    return max(passed or scores, key=lambda one: one.value or 0.0)


def reference_text(output: Any, expected: Any, as_text: Callable[[Any], str]) -> str:
    """What a model reads as the expected answer; several references are marked as alternatives.

    >>> print(reference_text("It is Paris.", ["Paris", "Paris, France"], str))
    Any one of these:
    - Paris
    - Paris, France
    """
    references = text_references(output, expected)
    if references is None:
        return as_text(expected)
    if len(references) == 1:
        return references[0]
    return "\n".join(["Any one of these:", *(f"- {text}" for text in references)])
