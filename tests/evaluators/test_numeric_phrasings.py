"""Everyday phrasings of a numeric answer: the right verdict, or no verdict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.numeric.numbers import numeric_answer
from tests.tables import each_row

# Each of these says 42.
SAYS_42 = [
    "42",
    "42.",
    "**42**",
    "42!",
    "It's 42.",
    "The total is 42. I hope this answer is helpful!",
    "The total is 42. Let me know if you need help with 2 more problems.",
    "So she has 42 apples. I hope that helps!",
    "The answer is 42.",
    "The answer is **42**.",
    "The final answer is: $42$",
    "The answer to question 3 is 42.",
    "The answer, after 3 steps, is 42.",
    "The answer is 42, since 6 * 7 = 42.",
    "The answer is 42 because 6 times 7 is 42 and not 49.",
    "The answer is 42 (see step 3).",
    "The answer is 42 = 6 × 7.",
    "Answer: 42",
    "**Answer:** 42 apples",
    "**Answer: 42**",
    "Answer = 42",
    "ANSWER: $42.00",
    "Final Answer: 42\n\nI checked it 2 times.",
    "Final answer:\n\n42",
    "Result: 42",
    "A: 42",
    "#### 42",
    "6 * 7 = 42\n#### 42",
    r"\boxed{42}",
    r"Thus, \[\boxed{42 \text{ apples}}\]",
    r"$$x = \boxed{42\text{ cm}^2}$$",
    r"\(6 \times 7 = 42\)",
    "6 × 7 = 42",
    "6 * 7 = 42. So there are 42 apples in total.",
    "1. There are 6 baskets.\n2. Each has 7 apples.\n3. 6 × 7 = 42\n\nSo there are 42 apples.",
    "Step 1: 6 baskets. Step 2: 7 apples each.\nStep 3: the total is 42.",
    "- 6 baskets\n- 7 apples each\n- 42 apples in total",
    "There are 6 baskets with 7 apples each.\n\n42",
    "There are 6 baskets with 7 apples each, so there are 42 apples.",
    "Tom had 50 apples and gave away 8, so he has 42 left.",
    "Therefore, Tom has 42 apples left out of 50.",
    "Hence the number of apples is 42, which is 8 fewer than 50.",
    "How much is 6 times 7? It is 42.",
    "Is it 41? No. The answer is 42.",
    "You might think the answer is 41. But it is 42.",
    "A common wrong answer is 41. The answer is 42.",
    "The answer is not 41 but 42.",
    "42 is the answer.",
    "So 42 is the final answer.",
    "It costs $42.",
    "It costs 42 dollars.",
    "It costs €42,00.",
    "42 km/h",
    "42%",
    "42 percent",
    "42 °C",
    "The temperature is 42 degrees.",
    "approx. 42",
    "About 42 people came.",
    "≈ 42",
    "4.2e1",
    "4.2 × 10^1",
    "4.2 × 10¹",
    "84/2",
    "42.0",
    "042",
    "Forty-two.",
    "The answer is forty-two.",
    "On May 5, 2024 she had 42 apples.",
    "By 2024-05-05 the total was 42.",
    "In step 2 we found x = 42.",
    "It is 42 [1].",
    "6 times 7 is 42",
    "6*7 is 42",
    "6 x 7 is 42.",
    "50 minus 8 equals 42",
    "(B) 42",
    "(c) 42 apples",
    "Answer: **B) 42**",
    "[42]",
    "Answer: [42]",
    "GPT-4 says 42",
    "GPT-4o says 42",
    "Claude-3 says 42",
    "<think>maybe 7</think>42",
    "<think>\n6 or 7\n</think>\n\nThe answer is 42.",
    "forty-two (42)",
    "Final answer: 42 (forty-two)",
    "x + 8 = 50, x = 42",
    "f(7) = 42",
    "log_2(8) * 14 = 42",
    "It is 42 (eq. 7).",
    "She is left with 42 apples.",
    "He finished in 2 hours, so it is equal to 42.",
    "The answer is 42; see section 7.",
    "$42^\\circ$",
    "-> 42",
    "Each tray holds 7 eggs, so 6 trays hold 42 eggs.",
    "If you take 8 from 50 you are left with 42.",
    "42 is the sum of 41 and 1.",
    "42 is the product of 6 and 7",
    "So 42 is the difference between 50 and 8.",
    "42 euros is the total of 41 and 1.",
    "Forty-two is the total of 41 and 1.",
    "Answer: 42 is what you get if you multiply 6 by 7",
    "42 is half the number of seats, 84.",
    "42 is how many remain when 8 of 50 are sold.",
    "Could not find an error in the table. The total is 42.",
    "Cannot find a simpler way. The total is 42.",
    "It's impossible to say how nice this is! The total is 42.",
    "Can't say it in fewer words: 42.",
    "Cannot be determined exactly, approximately 42.",
    "There is insufficient information about Ann, yet the total comes to 42.",
    "6 is the number of boxes and each holds 7, for a total of 42.",
    "7 is the number of rows, with 6 seats each, making 42 seats.",
    "50 is the total price, minus a discount of 8 leaves 42.",
    "8 is the difference, leaving 42 in stock.",
    "84 is twice the answer, i.e. 42.",
    "４２",
]


@each_row("text", SAYS_42)
def test_an_everyday_answer_passes_if_it_is_right(text: str) -> None:
    score = numeric_answer(text, 42)
    assert (score.status, score.passed) == ("ok", True), score.reason


@each_row("text", SAYS_42)
@each_row("expected", [43, 4200, -42])
def test_an_everyday_answer_does_not_pass_if_it_is_wrong(text: str, expected: int) -> None:
    score = numeric_answer(text, expected)
    assert (score.status, score.passed) == ("ok", False), score.reason


@each_row("text", SAYS_42)
@each_row("other", [1, 2, 3, 6, 7, 8, 41, 49, 50, 84, 2024])
def test_a_number_on_the_way_to_the_answer_never_passes(text: str, other: int) -> None:
    assert numeric_answer(text, other).passed is not True


@each_row(
    ("text", "number"),
    [
        ("The total is $1,234.50.", 1234.5),
        ("Total: 1.234,50 €", 1234.5),
        ("Das macht 1.234.567 Euro.", 1234567),
        ("CHF 1'234.50", 1234.5),
        ("₹12,34,567", 1234567),
        ("12 345 678", 12345678),
        ("3,5 km", 3.5),
        ("The answer is -5.", -5),
        ("The answer is minus 5.", -5),
        ("It is negative 5.", -5),
        ("It is 5 degrees below zero.", -5),
        ("x = -5", -5),
        ("The population is 1.5 million.", 1500000),
        ("$2.5M", 2500000),
        ("2 and a half hours", 2.5),
        ("The answer is 1 1/2 cups.", 1.5),
        ("The answer is 3/4.", 0.75),
        (r"\boxed{\frac{3}{4}}", 0.75),
        (r"\boxed{\dfrac12}", 0.5),
        ("The answer is 2^10.", 1024),
        ("It happened in 1945.", 1945),
        ("It ended in May 1945.", 1945),
        ("It ended on May 8, 1945.", 1945),
        ("World War II ended on September 2, 1945.", 1945),
        ("He was born on 4 July 1776.", 1776),
        ("1) 10\n2) 20\nA: 20", 20),
        ("1. 10 apples\n2. 20 pears\n**A:** 30", 30),
        ("a) 10 apples\nb) 20 pears\nA: 30", 30),
        ("Q: Which is bigger? 1) 10 2) 20\nA: 20", 20),
        ("Surface area 24 square meters", 24),
        ("Total catch 12 kg", 12),
        ("The answer is 0.33. It is 1/3.", 0.33),
        ("The answer is 3.14. It is 22/7.", 3.14),
        ("He came 3rd.", 3),
        ("The answer is one.", 1),
        ("One hundred and five people came.", 105),
        ("a dozen eggs", 12),
        ("0.5 or 1/2", 0.5),
        ("The probability is 0.25 (25%).", 0.25),
        ("The CO2 level is 400 ppm.", 400),
        ("The card is 5105 1051 0510 5100.", 5105105105105100),
        ("5105-1051-0510-5100", 5105105105105100),
    ],
)
def test_notations_of_several_countries_and_fields_are_read(text: str, number: float) -> None:
    score = numeric_answer(text, number)
    assert (score.status, score.passed) == ("ok", True), score.reason


@each_row(
    ("text", "expected"),
    [
        ("It takes between 3 and 5 days.", 5),
        ("It takes between 3 and 5 days.", 3),
        ("It takes 3-5 days.", 5),
        ("It takes 3 to 5 days.", 3),
        ("It is 3 or 4.", 4),
        ("The answer is 3 or 4.", 3),
        ("The answer is 40-44.", 40),
        ("x = 3 and y = 4", 4),
        ("The answer is (3, 4).", 3),
        ("The answer is more than 42.", 42),
        ("The answer is at least 42.", 42),
        ("The answer is 5π.", 5),
        ("The answer is 3√2.", 3),
        ("The ratio is 3:2.", 3),
        ("It is 10:30.", 10),
        ("The price is 1.234 Euro.", 1234),
        ("It costs 42 million.", 42),
        ("Tom has 12 and Ann has 15.", 12),
        ("84 is twice the answer.", 84),
        ("3 is the number of cats and 4 is the number of dogs.", 3),
        ("Unable to answer: 3 columns are empty.", 3),
        ("Cannot calculate: 7 of the prices are missing.", 7),
        ("Failed to solve: 404 rows had no value.", 404),
        ("It is not possible to say, since 6 values are unknown.", 6),
        ("There is not enough data; only 2 months were recorded.", 2),
        ("Answer: Option 4", 4),
        ("Answer: Option 4", 42),
        ("Answer: Figure 2", 2),
        ("555 201 3344", 5552013344),
        ("2011 2012 2013 2014", 2014),
        ("四十二", 42),
        ("Die Antwort ist zweiundvierzig, das ist sicher.", 42),
    ],
)
def test_ambiguous_answers_are_skipped(text: str, expected: int) -> None:
    score = numeric_answer(text, expected)
    assert score.status == "skipped"
    assert score.reason


@pytest.mark.parametrize("text", ["I do not know.", "There is no answer.", "Sorry, I can't say."])
def test_an_answer_without_a_number_does_not_pass(text: str) -> None:
    assert numeric_answer(text, 42).value == 0.0


def test_what_is_expected_must_be_one_number() -> None:
    assert numeric_answer("It is 5.", [4, "5"]).passed
    assert numeric_answer("It is 5.", [4, 6]).passed is False
    assert numeric_answer("It is 5.", "3 to 5").status == "error"


DENIES_42 = [
    "42 is not the answer.",
    "No, 42 is incorrect. I cannot solve this.",
    "42 is wrong.",
    "The answer can't be 42.",
    "The answer couldn't possibly be 42",
    "The answer is never 42",
    "The answer isn't 42.",
    "The total is definitely not 42.",
    "It's not the case that the answer is 42.",
    "It is false that x = 42.",
    "It is unlikely that the answer is 42.",
    "The answer is unlikely to be 42.",
    "I don't think the answer is 42.",
    "I don't know. 42 would be wrong.",
    "The answer is not forty-two.",
    "Forty-two is wrong.",
    "Answer: not 42",
    "The answer is 42, which is wrong.",
    "42 is not the answer in 2024.",
]


@each_row("text", DENIES_42)
def test_a_denied_number_is_not_the_answer(text: str) -> None:
    score = numeric_answer(text, 42)
    assert score.status == "skipped", score.reason
    assert score.reason


@pytest.mark.parametrize(
    "text",
    [
        "42 is wrong. The answer is 43.",
        "The answer is 43. 42 is wrong.",
        "The answer can't be 42, it must be 43.",
        "It is not 42. It is 43.",
        "The answer is 43. The answer can't be 42.",
    ],
)
def test_the_number_next_to_a_denied_one_is_the_answer(text: str) -> None:
    assert numeric_answer(text, 43).passed is True
    assert numeric_answer(text, 42).passed is not True


@each_row(
    ("text", "number"),
    [
        ("12 answers are wrong.", 12),
        ("There are 8 incorrect answers.", 8),
        ("He did not sell 5 apples, so he has 42 left.", 42),
        ("If he does not stop, he needs 42 minutes.", 42),
        ("The number of false positives is 42.", 42),
        ("Don't worry: the answer is 42.", 42),
        ("The answer is not obvious, but it is 42.", 42),
        ("She had to wait 42 minutes.", 42),
        ("There are actually 42 apples.", 42),
        ("The answer is 42. Sorry for the wait.", 42),
    ],
)
def test_a_negative_word_elsewhere_denies_nothing(text: str, number: int) -> None:
    score = numeric_answer(text, number)
    assert (score.status, score.passed) == ("ok", True), score.reason


@each_row(
    "text",
    [
        "The answer is 42. Wait, I made a mistake. It should be 43.",
        "The answer is 42. Actually, it is 43.",
        "The answer is 42. Correction: 43.",
        "The answer is 42. Correction: 43",
        "The answer is 42, sorry, I mean 43.",
        "The answer is 42. Scratch that, it's 43.",
        "The answer is 42. Scratch that. The answer is 43.",
        "The answer is 42, no wait, 43.",
        "The answer is 42. No, it's 43.",
        "The answer is 42. That's wrong. It should be 43.",
        "Answer: 42\nCorrection: 43",
        "\\boxed{42}. Wait, I made an error. It should be \\boxed{43}.",
        "#### 42\nOops, it should be 43.",
    ],
)
def test_a_correction_replaces_the_number_before_it(text: str) -> None:
    assert numeric_answer(text, 43).passed is True, numeric_answer(text, 43).reason
    assert numeric_answer(text, 42).passed is not True


@each_row(
    ("text", "expected"),
    [
        ("The answer is 42. Wait, I made a mistake.", 42),
        ("The answer is 42. Scratch that.", 42),
        ("The answer is 42. Actually, this took only 3 steps.", 42),
        ("She walked 3 miles and burned between 1500 and 1600 calories", 1500),
        ("The battery lasts from 1800 to 2000 charges.", 1800),
        ("The battery lasts from 1800 to 2000 charges.", 2000),
        ("The war lasted from 1914 to 1918.", 1914),
        ("She earned $1800 in 2020.", 2020),
        ("The answer is 15 in 2023.", 2023),
        ("The probability is 1 in 6.", "1/6"),
        ("The answer is 1 in 4", 0.25),
        ("The probability is one in six.", "1/6"),
        ("The answer is one in six.", "1/6"),
        ("3 out of 4", 0.75),
        ("Answer: 5 dollars and 20 cents", 5.2),
        ("Answer: 5 dollars and 20 cents", 5),
        ("Answer: $5 and 20 cents", 5.2),
        ("The answer is 3 hours and 20 minutes", 200),
        ("The answer is 3 hours and 20 minutes", 3),
        ("It takes 2 hours 30 minutes.", 2.5),
        ("The answer is 5 feet 6 inches", 66),
        ("The answer is 3/4 of 100, or 75.", 75),
        ("The answer is 3/4 of 100.", 0.75),
        ("No apples remain.", 0),
        ("None of the apples remain.", 0),
        ("Half of them", 0.5),
    ],
)
def test_an_ambiguous_notation_is_skipped(text: str, expected: object) -> None:
    score = numeric_answer(text, expected)
    assert score.status == "skipped", score.reason
    assert score.reason


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The train covers 120 km in 1500 seconds.", 1500),
        ("The car travels 90 miles in 1600 seconds.", 1600),
        ("The population rose by 1900 people.", 1900),
    ],
)
def test_a_number_before_a_unit_is_not_a_year(text: str, number: int) -> None:
    """A noun or a unit behind 1500 to 2099 says what is counted: it never fails with confidence."""
    assert numeric_answer(text, number).passed is not False


def test_the_advice_fits_the_doubt() -> None:
    assert (
        numeric_answer("The answer is 1.234", 1234).reason
        == '1.234 may be 1234 or 1.234; set the decimal separator: decimal=","'
    )
    assert numeric_answer("It costs $5m", 5).reason == "$5m may be 5 or 5000000; write the number in full"


WORDS = st.sampled_from(["apples", "euros", "in total", "people", "km"])
ENDINGS = st.sampled_from(
    ["", " I hope this answer is helpful!", " Let me know if anything is unclear.", "\n\nGood luck!"]
)


@given(st.integers(-(10**9), 10**9), WORDS, ENDINGS)
def test_courtesies_around_a_number_change_nothing(number: int, word: str, ending: str) -> None:
    text = f"The total is {number} {word}.{ending}"
    assert numeric_answer(text, number).passed is True
    assert numeric_answer(text, number + 1).passed is False
