"""Numbers that are one of several, a part of something, or not an answer: no verdict, or a fail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.numeric.numbers import numeric_answer
from tests.tables import each_row

NUMBERS = st.integers(2, 10**5)
# Two numbers of which neither is the answer alone.
CHOICES = [
    "x = {} or x = {}",
    "x = {}; x = {}",
    "{};{}",
    "{}; {}",
    "({}; {})",
    "x={}, x={}",
    "x_1 = {}, x_2 = {}",
    "x = {} or {}",
    "x = {}, {}",
    "x = {}. Or x = {}.",
    "Answer: {}; {}",
    "The answer is {}; {}.",
    "\\boxed{{{}; {}}}",
    "{} km = {} miles",
    "Answer: {} km = {} miles",
    "{} °F = {} °C",
    "${} = €{}",
    "a) {}\nb) {}",
]
# Two results under different conditions.
CONDITIONS = [
    "The answer is {}, assuming no tax; with tax it's {}",
    "The answer is {} without tax, and {} with tax.",
    "The answer is {} if there is no tax, otherwise {}.",
    "Assuming no tax, the answer is {}. With tax, it is {}.",
    "The answer is ${} (without tips); including tips it would be about ${}.",
]
# The number is a part of these, and the value of the whole is another one or unknown.
PARTS = [
    "sin({})",
    "f({})",
    "g(x, {})",
    "log {}",
    "ln {}",
    "log_2 {}",
    "a[{}]",
    "{}‰",
    "{}₈",
    "±{}",
    "+/- {}",
    "∛{}",
    "the {}th term",
    "{} + 3i",
    "{} - 2x",
    "x + {}",
    "{} + √2",
    "2i + {}",
    "|-{}|",
    "unrelated to {}",
    "based on {}",
    "x^{}",
    "x_{}",
]
REFERENCES = [
    "section {}",
    "equation ({})",
    "Eq. {}",
    "p. {}",
    "Theorem {}",
    "footnote {}",
    "figure {}",
    "row {}",
    "§{}",
    "GPT-{}",
]
CORRECTIONS = [
    "Answer: {}. Edit: {}",
    "Answer: {}. Edit: it's {}.",
    "Answer: {}\nEDIT: the answer is {}",
    "Answer: {}. Update: {}",
    "The answer is {}. Updated: {}.",
    "Answer: {} (edit: {})",
    "Answer: {}. Typo: {}",
    "{}\nCorrection: {}",
    "Answer: {}\nRevised: {}",
]


@given(NUMBERS, NUMBERS, st.sampled_from(CHOICES))
def test_neither_of_two_numbers_gets_a_verdict(first: int, second: int, choice: str) -> None:
    if first == second:
        second += 1
    text = choice.format(first, second)
    for expected in (first, second):
        assert numeric_answer(text, expected).status == "skipped", (text, numeric_answer(text, expected).reason)


@given(NUMBERS, st.sampled_from(PARTS), st.sampled_from(["{}", "The answer is {}", "Answer: {}", "\\boxed{{{}}}"]))
def test_a_part_of_an_expression_never_passes(number: int, part: str, frame: str) -> None:
    text = frame.format(part.format(number))
    for expected in (number, -number):
        if not (expected > 0 and "|" in text):
            assert numeric_answer(text, expected).passed is not True, text


@given(st.integers(0, 999), st.sampled_from(REFERENCES), st.sampled_from(["see {}", "The answer is in {}.", "{}"]))
def test_a_reference_is_no_answer(number: int, reference: str, frame: str) -> None:
    text = frame.format(reference.format(number))
    assert numeric_answer(text, number).status == "skipped", text
    assert numeric_answer(f"{text}\nAnswer: 1234", 1234).passed is True


@given(NUMBERS, NUMBERS, st.sampled_from(CORRECTIONS))
def test_a_later_correction_replaces_the_answer(first: int, second: int, correction: str) -> None:
    if first == second:
        second += 1
    text = correction.format(first, second)
    assert numeric_answer(text, first).passed is not True, text
    assert numeric_answer(text, second).passed is True, (text, numeric_answer(text, second).reason)


@given(st.characters(categories=["Sm", "No", "Me"], min_codepoint=0x80), NUMBERS)
def test_a_sign_that_is_not_known_never_leaves_the_number_before_it_as_it_is(sign: str, number: int) -> None:
    """Arrows, signs of equality, and the typographic minus and slash say nothing about the number before them."""
    if sign not in "≈≃≅≡∼→←↔↑↓⇒⇔⟶⟹⟺↦∴∵−⁄":
        text = f"The answer is {number}{sign}"
        assert numeric_answer(text, number).passed is not True, hex(ord(sign))


def test_a_note_after_the_answer_does_not_take_it_back() -> None:
    assert numeric_answer("Answer: 80\nUpdate: fixed the formatting.", 80).passed is True


@each_row(
    ("text", "expected"),
    [
        ("I don't know", 0),
        ("I do not know.", 0),
        ("Not sure.", 0),
        ("unknown", 0),
        ("N/A", 0),
        ("It cannot be determined.", 0),
        ("As of 2023, my knowledge ends.", 2023),
        ("As of my last update in 2023, there is no data.", 2023),
        ("My training data ends in 2023.", 2023),
        ("As GPT-4, I cannot answer.", 4),
        ("Final answer: five (6)", 5),
        ("Final answer: five (6)", 6),
        ("Final answer: 6 (five)", 6),
        ("5!", 5),
        ("5!", 120),
        ("n = 5!", 5),
        ("2024-05-06", 2024),
        ("The date is 2024-05-06.", 6),
        ("42 ± 2", 42),
        ("<think>5 or 7", 7),
    ],
)
def test_what_is_not_known_or_not_said_gets_no_verdict(text: str, expected: Any) -> None:
    score = numeric_answer(text, expected)
    assert score.status == "skipped", score.reason
    assert score.reason


@pytest.mark.parametrize("text", ["3+4i", "\\boxed{3+4i}", "the answer is 3 + 4i", "3 + x", "x + 3"])
def test_a_term_is_skipped_and_another_number_fails(text: str) -> None:
    assert numeric_answer(text, 3).status == "skipped"
    assert numeric_answer(text, 22).passed is False


def test_a_mapping_is_read_like_its_json() -> None:
    assert numeric_answer({"answer": 5, "confidence": 0.9}, 5).passed is True
    assert numeric_answer({"answer": 5, "confidence": 0.9}, 0.9).passed is False
    assert numeric_answer({"width": 12, "height": 3}, 12).status == "skipped"


@given(NUMBERS, NUMBERS)
def test_results_under_different_conditions_are_skipped(first: int, second: int) -> None:
    """The condition of the question is unknown; any other number is wrong."""
    for template in CONDITIONS if first != second else ():
        output = template.format(first, second)
        for expected in (first, second):
            assert numeric_answer(output, expected).status == "skipped", output
        assert numeric_answer(output, first + second).passed is False, output


@each_row(
    "output",
    [
        "The answer is 12. With tax it would be 13.",
        "The answer is 12, assuming 3 boxes of 4.",
        "The answer is 12, if I am right. I checked it with 3 friends.",
    ],
)
def test_a_plain_answer_beside_a_condition_counts(output: str) -> None:
    assert numeric_answer(output, 12).passed is True


@each_row(
    ("text", "expected", "outcome"),
    [
        ("I count 12. On closer inspection, there are 13 birds.", 13, True),
        ("I count 12. On closer inspection, there are 13 birds.", 12, False),
        ("There are 12 birds. On a second look, I see 13.", 13, True),
        ("I count 2 r's. Let me recount. There are 3 r's.", 3, True),
        ("I see 12 birds in the tree. On closer inspection, there are 13 birds.", 12, False),
        ("I count 12 birds. Let me recount. There are 12 birds.", 12, True),
        ("The answer is 12. On closer inspection, there are 3 typos in the question.", 12, "skipped"),
        ("There are 12 cars. On closer inspection, there are 2 red cars.", 12, "skipped"),
        ("There are 40 people. On closer inspection, there are 30 adults.", 30, "skipped"),
        ("I count 12. On closer inspection, there are 3 geese.", 3, "skipped"),
        ("I count 12. On closer inspection, 3 of them are geese.", 12, "skipped"),
        ("A: 10, B: 20. The correct choice is B.", 20, True),
        ("A: 10, B: 20. The correct choice is B.", 10, False),
        ("A: 10\nB: 20\nThe answer is B.", 10, False),
        ("A: 10, B: 20, C: 30. I choose C.", 30, True),
        ("A: 10, B: 20. The answer is 20.", 20, True),
        ("A: 10, B: 20. The answer is 20.", 10, False),
        ("A: 10, B: 20. The correct choice is C.", 20, "skipped"),
        ("A: 10, B: 20. The answer is B, 25.", 20, "skipped"),
        ("Q: How many?\nA: 42", 42, True),
    ],
)
def test_a_new_count_and_a_chosen_option_decide(text: str, expected: int, outcome: Any) -> None:
    """A second count of the same things replaces the first, and the label A of an option announces no answer."""
    score = numeric_answer(text, expected)
    assert (score.passed if score.status == "ok" else score.status) == outcome
