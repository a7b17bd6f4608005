"""The number that an answer comes to."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from benchmarks.quality import structure
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.numeric.find_answer import find_answer
from proctor.evaluators.numeric.numbers import numeric_answer
from tests.evaluators.test_structural import folder
from tests.tables import each_row


def test_recorded_verdicts_on_gsm8k_are_reproduced(tmp_path: Path) -> None:
    """Solutions of four models are judged as they were recorded; `make quality` takes all 5,276."""
    data = folder("01_qa_reference/gsm8k") / "example_model_solutions.jsonl"
    rows = data.read_text(encoding="utf-8").splitlines(keepends=True)[::8]
    (tmp_path / "every_eighth.jsonl").write_text("".join(rows), encoding="utf-8")
    assert structure.gsm8k(tmp_path / "every_eighth.jsonl").value == 4 * len(rows) == 660


@each_row(
    ("text", "number"),
    [
        ("42", 42),
        ("It costs $1,234.50.", Fraction(2469, 2)),
        ("-$5", -5),
        ("$-5", -5),
        ("− 3 is wrong, −7 is right", -7),
        ("16 - 3", 3),
        ("3-5", 5),
        ("is -3", -3),
        ("€ 7", 7),
        ("12 000 000 people", 12_000_000),
        ("1.5e3", 1500),
        ("2 × 10^5", 200_000),
        (r"2 \times 10^{-2}", Fraction(1, 50)),
        ("3/4", Fraction(3, 4)),
        ("1 1/2 cups", Fraction(3, 2)),
        ("2½ cups", Fraction(5, 2)),
        (r"$-\frac{3}{4}$", Fraction(-3, 4)),
        (r"1\frac{1}{2}", Fraction(3, 2)),
        (r"10{,}000", 10_000),
        (".5", Fraction(1, 2)),
        ("**18**", 18),
        ("(7)", 7),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, number: Any) -> None:
    answer = find_answer(text).number
    assert answer is not None
    assert answer.value == number


@each_row(
    ("text", "number"),
    [
        ("First 3, then 4, in the end 5.", 5),
        ("3 * 4 = 12\nA: 12\n", 12),
        ("work 1 2 3\n#### 1,000", 1000),
        ("The answer is 12 eggs per 2 days.", 12),
        ("The answer is 3 + 4 = 7, not 12.", 7),
        ("The answer is 7 (which is 3 + 5 - 1 = 7 or so, see line 9).", 7),
        ("Final answer: **$18**. There are 3 checks.", 18),
        ("So the final answer to this question is: 6", 6),
        ("A: 5\nNo, wait.\nA: 6", 6),
        (r"\boxed{18} is it, for the answer is not 19", 18),
        (r"first \boxed{1}, then \boxed{\frac{1}{2}}.", Fraction(1, 2)),
        ("Answer:\n\n42 apples, of 50", 42),
        ("A: x = 5 apples", 5),
    ],
)
def test_the_final_number_is_the_announced_one_or_the_last(text: str, number: Any) -> None:
    answer = find_answer(text).number
    assert answer is not None
    assert answer.value == number


@pytest.mark.parametrize("text", ["", "no number", "A: none", "1/0", "1e999999999", "9" * 1000])
def test_text_that_only_looks_like_a_number_is_not_parsed(text: str) -> None:
    assert find_answer(text).number is None


def test_an_announcement_without_a_number_gives_no_answer() -> None:
    score = numeric_answer("2 + 2 = 4\nA: I do not know", 4)
    assert score.status == "skipped"
    assert score.reason.startswith("'A: I do not know' has no number, and the output has numbers elsewhere")


def test_other_countries_write_decimals_with_a_comma() -> None:
    assert numeric_answer("1.234,5 km", 1234.5, decimal=",").passed
    assert numeric_answer("1,234.5 km", 1234.5).passed


@each_row(
    ("output", "expected", "passed"),
    [
        ("12%", 12, True),
        ("12%", 0.12, True),
        ("0.12", "12%", True),
        ("12", "12%", True),
        ("12%", "0.12%", False),
        ("0.5", "1/2", True),
        (0.1, "1/10", True),
        (7, "#### 7", True),
        ("7.0", 7, True),
        ("7.01", 7, False),
    ],
)
def test_equal_numbers_are_equal_however_they_are_written(output: Any, expected: Any, passed: bool) -> None:
    assert numeric_answer(output, expected).passed is passed


def test_a_tolerance_is_absolute_or_relative() -> None:
    assert numeric_answer("10.1", 10, tolerance=0.1).passed
    assert not numeric_answer("10.11", 10, tolerance=0.1).passed
    assert numeric_answer("-101", -100, tolerance=0.01, relative=True).passed
    assert not numeric_answer("102", 100, tolerance=0.01, relative=True).passed


def test_the_details_hold_both_numbers() -> None:
    score = numeric_answer("A: 1/4", 2**60)
    assert score.details == {"method": "extraction", "expected": str(2**60), "answer": 0.25}


def test_values_that_are_neither_texts_nor_numbers_are_errors() -> None:
    assert numeric_answer(True, 1).status == "error"
    assert numeric_answer(["7"], 7).status == "error"
    assert numeric_answer("7", "many").reason == "the expected value has no number: 'many'"


@pytest.mark.parametrize("tolerance", [-1, float("nan")])
def test_a_tolerance_that_makes_no_sense_is_refused(tolerance: float) -> None:
    with pytest.raises(EvaluatorError, match="tolerance must be a number, 0 or more"):
        attach(numeric_answer, parameters={"tolerance": tolerance})


@given(st.integers(-(10**12), 10**12))
def test_any_whole_number_is_found_with_separators_and_words_around(number: int) -> None:
    assert numeric_answer(f"Well, that makes {number:,} in all.", number).passed
    assert numeric_answer(f"3 + 4\nA: ${number}", str(number)).passed


@given(st.text())
def test_no_text_breaks_the_reading(text: str) -> None:
    assert numeric_answer(text, 1).status in ("ok", "skipped")


@each_row(
    "output, expected, passed",
    [
        ("The answer is 2432902008176640009.", "2432902008176640000", False),
        ("#### 4111111111111112", "4111111111111111", False),
        ("\\boxed{18446744073709551615}", 18446744073709551616, False),
        ("1000000000001", 10**12, False),
        ("1000000000000", 10**12, True),
        (0.1 + 0.2, 0.3, True),
        ("0.3", 0.1 + 0.2, True),
        ("0.30000000000000004", 0.3, False),
        ("0.3", "0.30000000000000004", False),
        ("14/3", 4.666666666666667, True),
        ("4.666666666666667", "14/3", True),
        ("4.666666666666667", "14/3", True),
        ("1234567890123.5", 1234567890123, False),
        ("12345678901.05", "12345678901.06", False),
        ("$1,234,567,890,123.45", "$1,234,567,890,123.99", False),
        ("0.1234567890123", "0.1234567890124", False),
        ("0.3 repeating", "0.3", None),
        ("The answer is unknown; there are 7 items.", 7, None),
        ("Answer: N/A. 3 values are missing.", 3, None),
        ("The answer is undefined (division by 0).", 0, None),
        ("I'm not sure, there are 7 unknowns.", 7, None),
        ("I'm not sure, but the answer is 42.", 42, True),
        ("0.(3)", 0, None),
        ("0.(3)", "1/3", None),
        ("The answer is 0.333...", "1/3", None),
        ("The total is 42...", 42, True),
        ("Answer: I don't know. Possibly 42.", 42, None),
    ],
)
def test_long_integers_are_exact_and_unfinished_decimals_get_no_verdict(
    output: Any, expected: Any, passed: bool | None
) -> None:
    """Only numbers with decimals have a rounding error."""
    assert numeric_answer(output, expected).passed is passed


def test_a_text_that_is_too_long_for_an_answer_is_skipped() -> None:
    """Of more than 100,000 characters, only a last line that labels or marks the answer is read."""
    long = "We note that 42 appears. " * 5_000
    score = numeric_answer(long, 42)
    assert score.status == "skipped"
    assert score.reason.startswith("the output has 125,000 characters, more than the 100,000")
    for last_line in ("Answer: 42", "**Final answer:** 42 rooms", "#### 42", r"So \boxed{42}.", "<answer>42</answer>"):
        assert numeric_answer(f"{long}\n{last_line}\n", 42).passed is True
        assert numeric_answer(f"{long}\n{last_line}\n", 43).passed is False
    for cut_off in (f"{long}\nAnswer: none", f"{long}{'A: 4 ' * 1_000}"):
        assert numeric_answer(cut_off, 42).status == "skipped"
    assert numeric_answer(f"<think>{long}</think>It is 42.", 42).passed is True
    assert numeric_answer(3, long).status == "error"
