"""The question evaluators check form: start, end, and that it is one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError
from proctor.evaluators.questions import question_format, starter_phrase
from tests.tables import each_row

STARTERS = ["Would you like", "Interested in", "How", "What's"]


@each_row(
    "question",
    [
        "Would you like an example?",
        "would  YOU like\nan example?",
        "  Interested in more?",
        "“How so?”",
        "How?",
        "How",
        "What’s next?",
        "¿How so?",
    ],
)
def test_an_approved_start_passes(question: str) -> None:
    """Capitals, quotation marks and spaces do not matter."""
    assert starter_phrase(STARTERS)(question).value == 1.0


@pytest.mark.parametrize("question", ["However, why?", "And how?", "Would you care?", "", "What?"])
def test_another_start_does_not(question: str) -> None:
    """The phrase must be whole and end where a word ends."""
    assert starter_phrase(STARTERS)(question).value == 0.0


def test_a_starter_may_end_in_a_sign() -> None:
    """Then a word may follow at once."""
    assert starter_phrase(["Q:"])("Q:why?").passed


def test_of_several_questions_the_share_counts() -> None:
    """It passes only if all start well; the details name those that do not."""
    score = starter_phrase(["How"])(["How so?", "Why?", "How far?", "When?"])
    assert (score.value, score.passed) == (0.5, False)
    assert score.reason == "2 of 4 break a rule: starter"
    assert [fault["item"] for fault in score.details["faults"]] == [1, 3]


@pytest.mark.parametrize("starters", [[], "How", ["How", ""], ["How", 3]])
def test_starters_are_a_list_of_phrases(starters: Any) -> None:
    """It is checked when the evaluator is made."""
    with pytest.raises(EvaluatorError, match="starters must be a list of phrases"):
        starter_phrase(starters)


@pytest.mark.parametrize("output", [3, None, {"a": "b"}, ["Why?", 3]])
def test_other_outputs_than_texts_are_errors(output: Any) -> None:
    """Ruling 1: an error, not 0."""
    assert question_format(output).status == "error"
    assert starter_phrase(["How"])(output).status == "error"


def test_an_empty_list_of_questions_does_not_pass() -> None:
    assert question_format([]).value == 0.0


@each_row(
    "question",
    [
        "Why?",
        "Would you like to see an example?",
        "  Would you like to see an example?  ",
        "“Why?”",
        "(Is it?)",
        "¿Por qué?",
        "为什么？",
        "هل تريد المزيد؟",
        "Τι είναι αυτό;",
        "Τι είναι αυτό\u037e",
        "iPhone or Android?",
        "2 or 3 of them?",
        "Did Dr. Who meet J. Doe at 3.5 km, e.g. by chance?",
        "Would you like (a) red, (b) green or (c) blue?",
    ],
)
def test_well_formed_questions_pass(question: str) -> None:
    """In all scripts with a known question mark."""
    score = question_format(question)
    assert (score.value, score.reason) == (1.0, "")


@each_row(
    ("text", "rule"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("Tell me more.", "question_mark"),
        ("Why", "question_mark"),
        ("Why??", "question_mark"),
        ("Why?!", "question_mark"),
        ("Why!?", "question_mark"),
        ("Is it so;", "question_mark"),
        ("?", "words"),
        ("…?", "words"),
        ("- Why?", "beginning"),
        ("why not?", "capital"),
        ("That is good. Why is it?", "one_sentence"),
        ("Really? Are you sure?", "one_sentence"),
        ("Great! Why?", "one_sentence"),
        ("Why\nnot?", "one_sentence"),
        ("“Really?” he asked, why?", "one_sentence"),
    ],
)
def test_the_broken_rule_is_named(text: str, rule: str) -> None:
    """The details have the rule and the item."""
    score = question_format(["Why?", text])
    assert (score.value, score.passed) == (0.5, False)
    assert score.details["faults"] == [{"item": 1, "text": text, "rule": rule}]


def test_rules_can_be_set() -> None:
    """Small letters may be allowed, and long questions refused."""
    assert question_format("why not?", require_capital=False).passed
    assert question_format("Why not now?", max_words=3).passed
    assert question_format("Why not now?", max_words=2).reason == "1 of 1 break a rule: max_words"


@given(st.one_of(st.text(), st.lists(st.text(), max_size=5)))
def test_any_text_gets_a_verdict(output: Any) -> None:
    """Property: any texts give a value, and nothing is raised."""
    for score in (question_format(output), starter_phrase(["How"])(output)):
        assert score.ok
        assert score.passed is (score.value == 1.0)
