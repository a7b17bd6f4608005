"""Notations of a number that are easily misread: the right value, or no verdict."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.numeric.find_answer import find_answer
from proctor.evaluators.numeric.numbers import numeric_answer
from tests.tables import each_row

READ = [
    ("three quarters", Fraction(3, 4)),
    ("The answer is three quarters.", Fraction(3, 4)),
    ("two-thirds of the cake", Fraction(2, 3)),
    ("one and a half", Fraction(3, 2)),
    ("It takes one and a half hours.", Fraction(3, 2)),
    ("six and three quarters", Fraction(27, 4)),
    ("two and a half million", 2_500_000),
    ("two point five", Fraction(5, 2)),
    ("The answer is two point five.", Fraction(5, 2)),
    ("zero point two five", Fraction(1, 4)),
    ("minus two point five", Fraction(-5, 2)),
    ("half", Fraction(1, 2)),
    ("The answer is half.", Fraction(1, 2)),
    ("one half", Fraction(1, 2)),
    ("half a million", 500_000),
    ("ſeven", 7),
    ("half a dozen eggs", 6),
    ("twenty-first", 21),
    ("2 + 2 = 4", 4),
    ("2+2=4", 4),
    ("The answer is 2 + 2 = 4.", 4),
    ("It's 4!", 4),
    ("5! = 120", 120),
    ("7²", 49),
    ("The answer is 7².", 49),
    ("5³", 125),
    ("7^2", 49),
    ("The area is 25 m².", 25),
    ("0x1F", 31),
    ("The answer is 0x1F.", 31),
    ("0b101", 5),
    ("0o17", 15),
    ("1 234,56 €", Fraction(123456, 100)),
    ("The total is 1 234,56 €.", Fraction(123456, 100)),
    ("1\u00a0234,56 €", Fraction(123456, 100)),
    ("1\u202f234\u202f567,8", Fraction(12345678, 10)),
    ("1'234,50", Fraction(123450, 100)),
    ("1 234.56", Fraction(123456, 100)),
    ("1_000", 1000),
    ("1_000_000.5", Fraction(2000001, 2)),
    ("3 and 3/4", Fraction(15, 4)),
    ("Vitamin B12: 42 mg", 42),
    ("Version v1.5 has 42 functions.", 42),
    ("x12 = 42", 42),
    ("__42__", 42),
    ("_42_", 42),
    ("Answer: __42__", 42),
    ("The answer is __42__ apples.", 42),
    ("nineteen eighty-four", 1984),
    ("He was born in nineteen eighty-four.", 1984),
    ("twenty twenty-four", 2024),
    ("١٬٠٠٠", 1000),
    ("١٬٢٣٤٬٥٦٧", 1234567),
    ("٣٫٥", Fraction(7, 2)),
    ("42 km²", 42),
    ("42 Ω", 42),
]


@each_row(("text", "number"), READ)
def test_a_notation_is_read_as_it_is_meant(text: str, number: Fraction | int) -> None:
    score = numeric_answer(text, str(Fraction(number)))
    assert (score.status, score.passed) == ("ok", True), score.reason


@each_row(("text", "number"), READ)
@each_row("other", [0, 1, 2, 3, 5, 7, 12, 30, 56, 234, 1000])
def test_a_piece_of_a_notation_never_passes(text: str, number: Fraction | int, other: int) -> None:
    """The 2 of "two point five" is not the answer."""
    if other != number:
        assert numeric_answer(text, other).passed is not True


@each_row(
    ("text", "expected"),
    [
        ("2+2", 4),
        ("2+2", 2),
        ("2 + 2", 2),
        ("2 + 3 * 4", 14),
        ("2 + 3 * 4", 4),
        ("The answer is 2+2.", 2),
        ("The answer is 3 × 4.", 12),
        ("x = 3 + 4", 7),
        ("3 x 4", 12),
        ("3 cm × 4 cm", 12),
        ("10 / 4 apples", 10),
        ("10-4", 6),
        ("10 - 4", 10),
        ("two plus two", 4),
        ("two plus two", 2),
        ("The answer is six times seven.", 6),
        (r"\boxed{2+2}", 4),
        ("(2 + 3) * 4", 20),
        ("2h30", 2),
        ("2h30", 30),
        ("2h30", 150),
        ("It takes 2h30.", 2.5),
        ("5ft6", 5),
        ("1_00", 1),
        ("7²", 7),
        ("4!", 4),
        ("4!", 24),
        ("n = 5!", 120),
        ("three quarters", 3),
        ("3 quarters", 0.75),
        ("1 234,56", 1),
        ("Half of them", 2),
        ("twice", 2),
        ("He came third.", 3),
        ("Chapter XIV", 14),
    ],
)
def test_a_notation_that_may_be_meant_otherwise_gets_no_verdict(text: str, expected: float) -> None:
    score = numeric_answer(text, expected)
    assert score.status == "skipped", score.reason
    assert score.reason


def test_a_calculation_that_cannot_be_the_answer_fails() -> None:
    score = numeric_answer("The answer is 2 + 3 * 4.", 20)
    assert (score.passed, score.reason) == (False, "expected 20, got 2 + 3 * 4")


def test_digits_in_a_name_are_no_number() -> None:
    for name in ("B12", "x12", "F16", "CO20", "v1.5", "A320"):
        assert find_answer(f"It is {name}.").number is None


@given(st.integers(0, 10**9), st.sampled_from(["_{}_", "__{}__", "___{}___", "**{}**", "**__{}__**"]))
def test_emphasis_changes_no_number(number: int, emphasis: str) -> None:
    for frame in ("{}", "Answer: {}", "The answer is {}.", "So there are {} apples."):
        assert numeric_answer(frame.format(emphasis.format(number)), number).passed is True


@given(st.integers(0, 10**12), st.integers(1, 99))
def test_arabic_digits_and_separators_are_read(whole: int, cents: int) -> None:
    signs = str.maketrans("0123456789,.", "٠١٢٣٤٥٦٧٨٩٬٫")
    written = f"{whole:,}.{cents:02}".translate(signs)
    assert numeric_answer(written, f"{whole}.{cents:02}").passed is True
    assert numeric_answer(written, f"{whole},{cents:02}", decimal=",").passed is True


@given(st.integers(2, 10**6), st.integers(2, 10**6), st.sampled_from("+*×·"))
def test_no_term_of_a_calculation_passes(left: int, right: int, sign: str) -> None:
    value = left + right if sign == "+" else left * right
    for expected in (left, right, value):
        assert numeric_answer(f"It is {left} {sign} {right}", expected).status == "skipped"
    assert numeric_answer(f"It is {left} {sign} {right} = {value}", value).passed is True
    assert numeric_answer(f"It is {left} {sign} {right}", value + left + right + 1).passed is False
