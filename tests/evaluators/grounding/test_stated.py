"""What a sentence states: marks, numbers of lists and courtesies do not count."""

from __future__ import annotations

import pytest

from proctor.evaluators.grounding.statements import find_statement_words
from tests.tables import each_row


@each_row(
    ("sentence", "words"),
    [
        ("It fell in 1879 [3].", ["it", "fell", "in", "1879"]),
        ("It fell [1,2] in 1879 [3-5] .", ["it", "fell", "in", "1879"]),
        ("It fell¹ in the sea[^2].", ["it", "fell", "in", "the", "sea"]),
        ("2. It fell.", ["it", "fell"]),
        ("(3) It fell.", ["it", "fell"]),
        ("42.", ["42"]),
        ("1879. The year is well known.", ["1879", "the", "year", "is", "well", "known"]),
        ("Sure! The bridge fell.", ["the", "bridge", "fell"]),
        ("No, the bridge fell.", ["the", "bridge", "fell"]),
        ("I'm not sure, but the bridge fell.", ["the", "bridge", "fell"]),
        ("No bridge fell.", ["no", "bridge", "fell"]),
    ],
)
def test_list_numbers_citations_and_openings_are_removed_from_a_sentence(sentence: str, words: list[str]) -> None:
    assert [word.text for word in find_statement_words(sentence)] == words


@each_row(
    "sentence",
    [
        "Here is what I found:",
        "Here's a short summary.",
        "I don’t know.",
        "I do n't know .",
        "I hope this helps!",
        "Let me know if you have any other questions.",
        "Yes, it is.",
        "I do.",
        "Sure!",
        "...",
    ],
)
def test_a_courtesy_states_nothing(sentence: str) -> None:
    assert find_statement_words(sentence) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Here is Oslo, the capital.",
        "Here are 3 facts.",
        "I don't know that the bridge fell.",
        "Thank you for the letter in which you told me how the old bridge fell into the deep sea.",
    ],
)
def test_a_courtesy_followed_by_a_statement_counts_as_a_statement(sentence: str) -> None:
    assert find_statement_words(sentence)


def test_capitals_do_not_mark_names_in_headings() -> None:
    for sentence in ("# The Key Points", "THE BRIDGE FELL INTO THE SEA"):
        assert {word.kind for word in find_statement_words(sentence)} == {"function", "content"}
