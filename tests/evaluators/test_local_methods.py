"""The functions behind the local methods: one line for each case."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from proctor.evaluators import language, measurements, plain_values, tokenizer
from proctor.evaluators.formats import catalogue, format_error, json_text
from proctor.evaluators.grounding import contradictions
from proctor.evaluators.numeric import ambiguity, find_answer, marks, parse
from proctor.evaluators.safety import bias
from proctor.evaluators.safety.toxicity import model
from proctor.evaluators.structural import load_schema
from proctor.evaluators.text import coherence, similarity
from tests.tables import each_row


def _compare(function: Callable[..., Any], sentence: str, context: str) -> Any:
    found = function(tokenizer.split_words(sentence), tokenizer.split_words(context))
    if isinstance(found, set):
        return {word.text for word in found}
    return [tuple(getattr(word, "text", word) for word in pair) for pair in found]


@pytest.mark.parametrize(
    ("function", "sentence", "context", "differences"),
    [
        (contradictions.find_replaced_words, "turn right", "turn left", [("right", "left")]),
        (contradictions.find_replaced_words, "left or right", "turn left", []),
        (contradictions.find_same_measures, "120 m long", "120 metres long", {"m"}),
        (contradictions.find_opposites, "It is safe.", "It is unsafe.", [("safe", "unsafe")]),
        (contradictions.find_opposites, "It is not safe.", "It is unsafe.", []),
        (contradictions.find_changed_measures, "It cost 5 dollars.", "5 million dollars", [("5", "5 million")]),
        (contradictions.find_changed_measures, "At least 3 days.", "Up to 3 days.", [("at least 3", "up to 3")]),
    ],
)
def test_words_that_contradict_a_context(
    function: Callable[..., Any], sentence: str, context: str, differences: Any
) -> None:
    assert _compare(function, sentence, context) == differences


@each_row(
    ("function", "argument", "result"),
    [
        (coherence.is_prose, "The bridge fell into the sea.", True),
        (coherence.is_prose, "asdf qwer zxcv poiu", False),
        (coherence.is_prose, "42", False),
        (coherence._is_truncated, "The bridge was built in the", True),
        (coherence._is_truncated, "This is what it is made of", False),
        (similarity.index_texts, ["a", "", "b"], {0: "a", 2: "b"}),
        (similarity.index_texts, {"city": "Oslo"}, {0: '{"city":"Oslo"}'}),
        (model.has_words, "hello", True),
        (model.has_words, "ｈｅｌｌｏ", True),
        (model.has_words, "你好, 123", False),
        (model.has_abusive_word, "Shut up, you moron!", True),
        (model.has_abusive_word, "moron", False),
        (model.has_abusive_word, "Salut !", False),
        (model.is_suspect, ["you", "fool"], True),
        (model.is_suspect, ["fool", "the", "eye"], False),
        (model.is_suspect, ["kill", "you"], True),
        (model.is_suspect, ["you", "kill", "the", "process"], False),
        (language.is_english_word, "shipped", True),
        (language.is_english_word, "lyon", False),
        (language.find_symbols, "Done ✅ (5 €)", ["✅"]),
        (language.find_foreign_abuse, "You are a Hurensohn.", "Hurensohn"),
        (tokenizer.fold_case, "Brontë", "bronte"),
        (tokenizer.collect_texts, [{"title": "Oslo", "text": "A city."}, None], ["Oslo", "A city."]),
        (tokenizer.is_complete_sentence, 'She said "no."', True),
        (tokenizer.is_complete_sentence, "She said", False),
        (tokenizer.is_complete_sentence, "[signed]", True),
        (plain_values.list_items, ("a", "b"), ["a", "b"]),
        (plain_values.list_items, "ab", None),
        (plain_values.list_items, {"a": 1}, None),
        (measurements.format_number, 450.0, "450"),
        (measurements.format_number, 0.123456, "0.1235"),
        (format_error.strip_fence, "```json\n[1]\n```", ("[1]", 1)),
        (format_error.strip_fence, "[1]", ("[1]", 0)),
        (json_text.explain_unserializable, {"a": [1, None]}, ""),
        (json_text.explain_unserializable, {"a": float("nan")}, "a: JSON has no nan"),
        (load_schema, '{"type": "integer"}', {"type": "integer"}),
    ],
)
def test_what_a_function_returns(function: Callable[..., Any], argument: Any, result: Any) -> None:
    assert function(argument) == result


def test_passages_are_sentences_and_short_ones_join_the_next() -> None:
    text = "1. Milk. Buy it at the shop on the corner.\n\nGood luck to all of you!"
    assert coherence.split_passages(text) == ["1. Milk. Buy it at the shop on the corner.", "Good luck to all of you!"]


def test_subjects_are_complete_groups() -> None:
    words = ["the", "french", "and", "some", "men", "like", "every", "jew"]
    assert [subject.name for subject in bias.find_subjects(words)] == ["french", "jew"]


def test_numbers_are_equal_by_value_or_spelling() -> None:
    assert plain_values.is_same_number(Decimal("0.1"), 0.1)
    assert plain_values.is_same_number(1, 1.0)
    assert not plain_values.is_same_number(0.1, 0.2)


def test_several_references_become_a_list_for_a_prompt() -> None:
    formatted = plain_values.format_references("It is Paris.", ["Paris", "Paris, France"], str)
    assert formatted == "Any one of these:\n- Paris\n- Paris, France"


def test_options_of_a_format_reach_its_check() -> None:
    assert catalogue.select_formats(["csv"], {"header": False})[1].header is False


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Forty-two, or one hundred and five, says one.", ["42", "105"]),
        ("two point five, one and a half, three quarters", ["5/2", "3/2", "3/4"]),
    ],
)
def test_numbers_in_words(text: str, values: list[str]) -> None:
    assert [str(number.value) for number in parse.parse_word_numbers(text)] == values


@pytest.mark.parametrize(("text", "value"), [(" **one** apple", 1), ("half.", 0.5), ("point five", 0.5)])
def test_a_text_that_begins_with_a_number_in_words(text: str, value: float) -> None:
    number = parse.parse_leading_word_number(text)
    assert number is not None
    assert number.value == value


def test_typographic_notations_become_plain() -> None:
    assert parse.simplify_notation("−5½ or minus 3 or 2 × 10⁵") == "-5 1/2 or -3 or 2 × 10^5"


@pytest.mark.parametrize(
    ("text", "is_denied"), [("It can't be 42.", True), ("42 is wrong.", True), ("It's 42.", False)]
)
def test_a_clause_denies_its_number(text: str, is_denied: bool) -> None:
    assert bool(ambiguity.DenialFinder(text).explain(parse.parse_numbers(text, ".")[0])) is is_denied


def test_neighbouring_numbers_that_belong_together() -> None:
    text = "1 in 6, or 5 dollars and 20 cents"
    pairs = ambiguity.combine_neighbors(text, parse.parse_numbers(text, "."))
    assert [str(pair.result.value) for pair in pairs] == ["1/6", "26/5", "520"]


def test_a_calculation_without_its_result() -> None:
    text = "It is 2 + 3 * 4."
    terms = parse.parse_numbers(text, ".")
    values = [number.value for number in ambiguity.evaluate_calculation(text, terms[0], terms)]
    assert values == [14, 2, 3, 4]


def test_a_ratio_in_words() -> None:
    ratio = ambiguity.parse_word_ratio("The probability is one in six.")
    assert ratio is not None
    assert ratio.value == Fraction(1, 6)


def test_step_labels_are_blanked_and_numbers_are_not() -> None:
    assert ambiguity.blank_step_labels("1. six\n2. seven") == "   six\n   seven"
    assert ambiguity.blank_step_labels("42. It is six times 7.") == "42. It is six times 7."


@pytest.mark.parametrize(
    "text",
    [
        "<answer>42</answer> Tokens: 7",
        '{"answer": 42, "confidence": 0.9}',
        r"\boxed{42} (The book's \boxed{41} is wrong.)",
    ],
)
def test_marked_answers(text: str) -> None:
    assert marks.find_marked_answers(text) == ["42"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I cannot answer that. Call 911.", "the output refuses to answer"),
        ("Rate limit exceeded: 429", "the output is the message of a failed request"),
        ("She needs 3 more.", ""),
    ],
)
def test_texts_without_an_answer(text: str, reason: str) -> None:
    assert find_answer.explain_missing_answer(text) == reason
