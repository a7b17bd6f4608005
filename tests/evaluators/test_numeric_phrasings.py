"""Everyday phrasings of a numeric answer: the right verdict, or no verdict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.numbers import numeric_answer

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
    "４２",
]


@pytest.mark.parametrize("text", SAYS_42)
def test_an_everyday_answer_passes_if_it_is_right(text: str) -> None:
    """The number that the sentence gives is found, whatever stands around it."""
    score = numeric_answer(text, 42)
    assert (score.status, score.passed) == ("ok", True), score.reason


@pytest.mark.parametrize("text", SAYS_42)
@pytest.mark.parametrize("expected", [43, 4200, -42])
def test_an_everyday_answer_does_not_pass_if_it_is_wrong(text: str, expected: int) -> None:
    """A number that the text does not give is never found in it."""
    score = numeric_answer(text, expected)
    assert (score.status, score.passed) == ("ok", False), score.reason


@pytest.mark.parametrize("text", SAYS_42)
@pytest.mark.parametrize("other", [1, 2, 3, 6, 7, 8, 41, 49, 50, 2024])
def test_a_number_on_the_way_to_the_answer_never_passes(text: str, other: int) -> None:
    """It fails, or there is no verdict: the working is not the answer."""
    assert numeric_answer(text, other).passed is not True


@pytest.mark.parametrize(
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
        ("It ended on May 8, 1945.", 1945),
        ("He came 3rd.", 3),
        ("The answer is one.", 1),
        ("One hundred and five people came.", 105),
        ("a dozen eggs", 12),
        ("0.5 or 1/2", 0.5),
        ("The probability is 0.25 (25%).", 0.25),
        ("The CO2 level is 400 ppm.", 400),
    ],
)
def test_notations_of_several_countries_and_fields_are_read(text: str, number: float) -> None:
    """Separators, signs, magnitudes, fractions, powers and words."""
    score = numeric_answer(text, number)
    assert (score.status, score.passed) == ("ok", True), score.reason


@pytest.mark.parametrize(
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
        ("四十二", 42),
        ("Die Antwort ist zweiundvierzig, das ist sicher.", 42),
    ],
)
def test_where_the_answer_is_open_there_is_no_verdict(text: str, expected: int) -> None:
    """Ranges, choices, bounds, terms, and words that cannot be read: skipped, with the reason."""
    score = numeric_answer(text, expected)
    assert score.status == "skipped"
    assert score.reason


@pytest.mark.parametrize("text", ["I do not know.", "There is no answer.", "Sorry, I can't say."])
def test_an_answer_without_a_number_does_not_pass(text: str) -> None:
    """English without a number has no number."""
    assert numeric_answer(text, 42).value == 0.0


def test_what_is_expected_must_be_one_number() -> None:
    """Several numbers are given as a list; a range is a fault of the data."""
    assert numeric_answer("It is 5.", [4, "5"]).passed
    assert numeric_answer("It is 5.", [4, 6]).passed is False
    assert numeric_answer("It is 5.", "3 to 5").status == "error"


WORDS = st.sampled_from(["apples", "euros", "in total", "people", "km"])
ENDINGS = st.sampled_from(
    [
        "",
        " I hope this answer is helpful!",
        " Let me know if anything is unclear.",
        "\n\nGood luck!",
    ]
)


@given(st.integers(-(10**9), 10**9), WORDS, ENDINGS)
def test_courtesies_around_a_number_change_nothing(number: int, word: str, ending: str) -> None:
    """Property: a sentence with one number gives that number, whatever is added politely."""
    text = f"The total is {number} {word}.{ending}"
    assert numeric_answer(text, number).passed is True
    assert numeric_answer(text, number + 1).passed is False
