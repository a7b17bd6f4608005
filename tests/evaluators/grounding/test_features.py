"""Features: the numbers that the value of a sentence is computed from, worked out by hand."""

from __future__ import annotations

import math

import pytest

from proctor.evaluators.grounding.features import (
    Features,
    compute_logit,
    find_antonyms,
    find_changed_entities,
    find_exchanged_roles,
    join_split_numbers,
    load_models,
    measure_ending,
    measure_names,
    measure_numbers,
    measure_overlap,
    measure_pairs,
    to_value,
)
from proctor.evaluators.tokenizer import Word, split_words
from tests.tables import each_row


def find_missing(words: list[Word], passage: list[Word]) -> list[Word]:
    texts = {word.text for word in passage}
    return [word for word in words if word.text not in texts]


@each_row(
    ("text", "joined"),
    [
        ("735 , 000 people", "735,000 people"),
        ("22 500 seats", "22,500 seats"),
        ("3 . 5 million", "3.5 million"),
        ("the 1970 's", "the 1970s"),
        ("in 2003 , 500 people", "in 2003 , 500 people"),
        ("In 1990 . 5 people", "In 1990 . 5 people"),
    ],
)
def test_numbers_that_a_tokenizer_split_are_joined(text: str, joined: str) -> None:
    assert join_split_numbers(text) == joined


def test_pairs_count_the_order_of_words() -> None:
    """Of the pairs dog-bit, bit-man, the passage "man bit dog" has none."""
    passage = [split_words("dog bit man")]
    assert measure_pairs(split_words("dog bit man"), passage) == 1.0
    assert measure_pairs(split_words("man bit dog"), passage) == 0.0
    assert measure_pairs(split_words("dogs"), passage) == 1.0


def test_later_words_count_more_in_the_ending() -> None:
    """The weights of three words are 1, 2 and 3 of 6."""
    words = split_words("cats eat fish")
    assert measure_ending(words, words[2:]) == pytest.approx(3 / 6)
    assert measure_ending(words, words[:1]) == pytest.approx(5 / 6)
    assert measure_ending(split_words("it is"), ()) == 1.0


def test_a_missing_number_counts_fully_if_there_is_another_of_its_kind() -> None:
    missing = split_words("1954")
    assert measure_numbers([], split_words("in 1945")) == 0.0
    assert measure_numbers(missing, split_words("in 1945")) == 1.0
    assert measure_numbers(missing, split_words("3 daughters")) == 0.5


def test_a_name_at_the_start_may_be_a_pronoun_in_the_passage() -> None:
    words = split_words("There Anna met Bob and Cato")
    assert measure_names(words, [word for word in words if word.text == "anna"]) == 0.0
    assert measure_names(words, [word for word in words if word.text == "bob"]) == 0.5


def test_names_and_numbers_may_differ_between_sentences_on_the_same_fact() -> None:
    assert measure_overlap(split_words("He paid Bob 5 euros"), split_words("He paid Eve 7 euros")) == 1.0
    assert measure_overlap(split_words("He paid"), split_words("She sleeps")) == 0.0


@each_row(
    ("sentence", "passage", "changes"),
    [
        ("It was sold to Bob Hale in 1990.", "It was sold to Bob Hale in 1980.", ["1990"]),
        ("It was sold to Bob Hale.", "It was sold to Bob Crane.", ["Hale"]),
        # a shorter or longer name of the same person
        ("It was sold to Bob Hale.", "It was sold to Hale in Oslo.", []),
        ("It was sold to Tim.", "It was sold to Timothy in Oslo.", []),
        # the passage has no other name
        ("It was sold to Bob Hale.", "It was sold to the mayor.", []),
    ],
)
def test_another_name_or_number_is_a_changed_fact(sentence: str, passage: str, changes: list[str]) -> None:
    words, others = split_words(sentence), split_words(passage)
    assert find_changed_entities(words, find_missing(words, others), [others]) == changes


@each_row(
    ("sentence", "passage", "is_exchanged"),
    [
        ("Then Anna paid Bob.", "Then Bob paid Anna.", True),
        ("Then Anna was paid by Bob.", "Then Bob paid Anna.", False),
        ("Then Anna was paid by Bob.", "Then Anna paid Bob.", True),
        ("Then Anna paid Bob.", "Then Anna paid Bob and left.", False),
        ("It flies from Lisbon to Accra.", "It flies from Accra to Lisbon.", True),
        ("It flies from Lisbon to Accra.", "It flies from Lisbon to Accra.", False),
        ("Then Anna paid Bob.", "Then Anna saw Bob.", False),
    ],
)
def test_exchanged_roles_are_found(sentence: str, passage: str, is_exchanged: bool) -> None:
    exchange = find_exchanged_roles(split_words(sentence), split_words(passage))
    assert (exchange is not None) is is_exchanged


def test_an_antonym_counts_only_if_the_passage_lacks_the_word() -> None:
    (pair,) = find_antonyms(split_words("a good dog"), split_words("a bad dog"))
    assert [word.text for word in pair] == ["good", "bad"]
    assert find_antonyms(split_words("a good dog"), split_words("a good or bad dog")) == []


@pytest.mark.parametrize("logit", [None, 7.0])
def test_the_value_is_the_logistic_of_the_weighted_sum(logit: float | None) -> None:
    """A logit of 7 is at the end of the low range and in the middle of the high one."""
    model = load_models()[logit is not None]
    assert list(model.weights) == list(Features._fields)[: len(model.weights)]
    features = Features(1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0)
    names = ["coverage", "ending", "precision"]
    expected = model.bias + model.weights["pairs"] / 2
    if logit is not None:
        features = features.add_relation(logit)
        names.append("related")
        expected += model.weights["same"] / 2
    expected += sum(model.weights[name] for name in names)
    assert compute_logit(features) == pytest.approx(expected)
    assert to_value(expected) == pytest.approx(1 / (1 + math.exp(-expected)))
    differences = ("speaker", "number", "name", "clash")
    assert all(weight <= 0 if name in differences else weight >= 0 for name, weight in model.weights.items())
