"""Who does something to whom: exchanged roles fail, the same roles in another voice pass."""

from __future__ import annotations

import asyncio

from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.grounding.features import find_exchanged_participants
from proctor.evaluators.text.quality import hallucination_detection
from proctor.evaluators.tokenizer import split_words
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial
from tests.tables import each_row

# An output and a context.
EXCHANGED = [
    ("Alice hired Bob.", "Bob hired Alice."),
    ("The dog chased the cat.", "The cat chased the dog."),
    ("Germany beat Brazil in the final.", "Brazil beat Germany in the final."),
    ("The nurse calls the doctor every day.", "The doctor calls the nurse every day."),
    ("Bob was hired by Alice.", "Alice was hired by Bob."),
    ("Bob was hired by Alice.", "Bob hired Alice."),
    ("Alice lent Bob a car.", "Bob lent Alice a car."),
    ("A thief robbed my uncle.", "My uncle robbed a thief."),
    ("Kemira bought Nokia in Espoo.", "Kemira was bought in Espoo by Nokia."),
]
SAME = [
    ("Bob was hired by Alice.", "Alice hired Bob."),
    ("The dog chased the cat.", "The cat was chased by the dog."),
    ("Alice met Bob.", "Bob met Alice."),
    ("Alice hired Bob.", "Bob hired Alice. Later Alice hired Bob."),
    ("The cat chased the mouse.", "The dog chased the cat, and the cat chased the mouse."),
    ("The shop sells plums, cherries, apples.", "The shop sells apples, cherries, plums."),
    ("Kemira was bought in Espoo.", "Kemira was bought in Espoo by Nokia."),
    ("Bob, whom Alice hired, works in Rome.", "Alice hired Bob. Bob works in Rome."),
]


def _check(output: str, context: str) -> Score:
    trial = Trial(Sample("1", None, metadata={"context": context}), output)
    score: Score = asyncio.run(attach(hallucination_detection()).score(trial))
    return score


@each_row(("output", "context"), EXCHANGED)
def test_exchanged_roles_fail(output: str, context: str) -> None:
    score = _check(output, context)
    assert score.passed is False
    assert "(exchanged)" in score.reason


@each_row(("output", "context"), SAME)
def test_the_same_roles_pass(output: str, context: str) -> None:
    assert _check(output, context).passed is True


def test_what_is_no_clear_clause_is_left_alone() -> None:
    """A list, a relative clause and a verb that the context does not use say nothing about roles."""
    for output, context in (
        ("tired, bored, confused", "confused, bored, tired"),
        ("The cat that the dog chased escaped.", "The dog escaped the cat."),
        ("Alice sued Bob.", "Bob hired Alice."),
    ):
        assert find_exchanged_participants(split_words(output), [split_words(context)]) is None
