"""hallucination_detection: one changed fact is found, however many words are shared."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.evaluators.quality import hallucination_detection
from proctor.fields.context import FieldContext
from proctor.records.score import Score


def score(output: str, context: Any, **options: Any) -> Score:
    """What the local method says of an output on its context."""
    check = hallucination_detection(**({"embedder": "lexical"} | options))
    found: Score = check(output, None, FieldContext("output", {"context": context}))
    return found


# A context, a sentence that rests on it, and one that changes a single fact.
CHANGED = [
    ("It was -5 degrees in Oslo at noon.", "At noon it was -5 degrees.", "It was 5 degrees."),
    ("It was 5 degrees in Oslo at noon.", "At noon it was 5 degrees.", "It was −5 degrees."),
    ("The bridge opened in May.", "In May the bridge opened.", "The bridge opened in June."),
    ("The bridge opened in June.", "In June the bridge opened.", "The bridge opened in May."),
    ("The hall is shut on Monday.", "On Monday it is shut.", "The hall is shut on Friday."),
    ("The EU approved the vaccine.", "The EU approved it.", "The WHO approved the vaccine."),
    ("The WHO approved the vaccine.", "The WHO approved it.", "The EU approved the vaccine."),
    ("It earned 5 million dollars.", "It earned 5 million.", "It earned 5 billion dollars."),
    ("Turn left at the church.", "At the church turn left.", "Turn right at the church."),
    ("The shop opens at 9 am.", "It opens at 9 a.m.", "The shop opens at 9 pm."),
    ("A ticket costs $12.", "A ticket costs 12 dollars.", "A ticket costs €12."),
    ("Sales rose by 3 percent.", "Sales rose by 3%.", "Sales fell by 3 percent."),
    ("The rate rose by 2 percentage points.", "It rose by 2 percentage points.", "It rose by 2%."),
    ("The tower is 300 metres tall.", "It is 300 metres tall.", "It is 300 feet tall."),
    ("He finished first in Rome.", "In Rome he finished first.", "He finished third in Rome."),
    ("She founded the school in 1950.", "In 1950 she founded it.", "He founded the school."),
    ("It lies in the north of Spain.", "It lies in the north.", "It lies in the south of Spain."),
    ("The trip took 3 hours by car.", "It took 3 hours.", "The trip took 3 days by car."),
    (
        "His wife wrote the book.",
        "The book was written by his wife.",
        "His husband wrote the book.",
    ),
    (
        "The lake is the largest in Asia.",
        "It is the largest in Asia.",
        "It is the smallest in Asia.",
    ),
]


@pytest.mark.parametrize(("context", "same", "changed"), CHANGED)
def test_a_changed_sign_unit_month_name_or_opposite_does_not_pass(
    context: str, same: str, changed: str
) -> None:
    """And the sentence that keeps the fact is worth more."""
    wrong = score(changed, context)
    assert (wrong.status, wrong.passed) == ("ok", False)
    kept = score(same, context)
    assert kept.value is not None
    assert wrong.value is not None
    assert kept.value > wrong.value


def test_a_comparison_may_name_both_words_of_a_pair() -> None:
    """Who says "left, not right" has not exchanged them."""
    compared = score("Left, rather than right, at the church.", "Turn left at the church.")
    assert compared.details["sentences"][0]["wrong"] is False
    assert score("She may open it.", "She may open it on Monday.").passed is True
