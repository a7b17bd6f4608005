"""Denial: which words a negation denies, and whether two texts agree on it."""

from __future__ import annotations

import pytest

from proctor.evaluators.grounding.denials import (
    find_denials,
    find_denied_words,
    find_polarity_changes,
    find_stated_words,
)
from proctor.evaluators.tokenizer import split_words
from tests.tables import each_row


@each_row(
    ("text", "denied"),
    [
        ("He does not eat meat or fish on Fridays.", [["eat", "meat"]]),
        ("It was not destroyed in the flood.", [["destroyed"]]),
        ("Oslo isn't the capital of Norway.", [["capital"]]),
        ("They carry a car never.", [["car"]]),
        ("Never.", [[]]),
        ("Nobody came, and nothing was said.", [["came"], ["said"]]),
        # these deny nothing
        ("It is not only the longest tour.", []),
        ("It was no less than a wonder.", []),
        ("It was the No. 1 hit.", []),
    ],
)
def test_a_negation_denies_the_words_after_it(text: str, denied: list[list[str]]) -> None:
    assert [[word.text for word in one.denied] for one in find_denials(split_words(text))] == denied


def test_what_a_passage_states_cannot_be_denied() -> None:
    (denial,) = find_denials(split_words("It does not contain sugar."))
    assert [word.text for word in find_stated_words(split_words("It contains sugar."), denial)] == ["contain", "sugar"]
    assert find_stated_words(split_words("It is free of sugar."), denial) == []
    assert find_stated_words(split_words("It lacks salt."), denial) == []


@pytest.mark.parametrize(
    ("message", "passage", "wrong"),
    [
        ("It carries cars.", "It does not carry cars.", ["carries", "cars"]),
        ("It does not carry cars.", "It does not carry cars.", []),
        ("It does not carry any big red cars.", "It does not carry cars.", []),
        ("It lacks room for cars.", "It has no room.", []),
        ("It carries cars.", "It carries vans.", []),
        ("Vans are carried.", "Cars are not carried, but vans are carried.", []),
    ],
)
def test_a_negation_that_is_left_out_is_found(message: str, passage: str, wrong: list[str]) -> None:
    assert [word.original.lower() for word in find_denied_words(split_words(message), split_words(passage))] == wrong


@each_row(
    ("message", "passage", "changes"),
    [
        ("The ferry never leaves.", "The ferry leaves.", ["never leaves"]),
        # another form of the verb
        ("The lake did not freeze.", "The lake froze in January.", ["not"]),
        ("It is not approved for children.", "It is approved for adults but not for children.", []),
        ("It is approved for children.", "It is approved for adults but not for children.", ["(not) children"]),
        ("It must not be frozen.", "It must not be frozen.", []),
    ],
)
def test_a_sentence_and_a_passage_must_deny_the_same(message: str, passage: str, changes: list[str]) -> None:
    assert find_polarity_changes(split_words(message), [split_words(passage)]) == changes
