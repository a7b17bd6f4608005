"""The number that is read from an output depends on the output, never on what is expected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.numeric.numbers import numeric_answer
from tests.tables import each_row

# Outputs that mark one number as the answer, that number, and another one they have.
MARKED = [
    ("Final answer: 42. Previously I said the answer is 41.", 42, 41),
    ("Final answer: 42. At first I thought the answer was 41.", 42, 41),
    ("The answer is 41. Let me check. Final answer: 42", 42, 41),
    ("\\boxed{42}\n(The book's answer \\boxed{41} is wrong.)", 42, 41),
    ("At first I had \\boxed{41}. Now I get \\boxed{42}.", 42, 41),
    ("My answer: 40. The correct answer is 42? No.", 40, 42),
    ("Answer: 42. I needed 3 attempts.", 42, 3),
    ("Answer: 7) because of 3 reasons", 7, 3),
    ("<answer>42</answer> tokens: 7", 42, 7),
    ("<think>6 times 8 is 48</think><answer> 42 apples", 42, 48),
    ("<final_answer>1,042</final_answer>\nconfidence 3", 1042, 3),
    ('{"answer": 42, "confidence": 0.9}', 42, 0.9),
    ('{"confidence": 0.9, "answer": "42"}', 42, 0.9),
    ('Here it is:\n```json\n{"steps": 3, "result": {"value": 42, "unit": "kg"}}\n```', 42, 3),
    ("{'final_answer': '1,042', 'tokens': 7}", 1042, 7),
]
# Sums, roundings, recounts, chosen letters and differences: the number that a phrase states, and another one.
PHRASES = [
    ("The parts add up to 12.", 12, 11),
    ("5 and 7 adds up to 12", 12, 5),
    ("It sums up to 12.", 12, 13),
    ("The bill comes up to $12.", 12, 13),
    ("That brings the total up to 12.", 12, 13),
    ("Rounded up to the nearest ten it is 130.", 130, 10),
    ("Rounded to the nearest 10, it is 130.", 130, 10),
    ("We round it up to 13 buses.", 13, 12),
    ("The answer is 144. Let me recount: 132.", 132, 144),
    ("That gives 144. Hmm, let me recount: 12 rows of 11, so it is 132.", 132, 144),
    ("144. Counting again: 132.", 132, 144),
    ("The answer is 42. I will count again tomorrow with 3 friends.", 42, 3),
    ("The answer is 12. On closer inspection, the 3 boxes are identical.", 12, 3),
    ("Answer: 12. Let me recompute to double check: 5+7 gives the same.", 12, 5),
    ("The answer is 12. Let me count again. The total is 11.", 11, 12),
    ("The answer is 12. Let me redo this with the 3 boxes: the answer is 13.", 13, 12),
    ("It should be 43. I'll count again to be sure: yes.", 43, 42),
    ("She bought 8 packs of 6 and gave some away. All told, 57.", 57, 6),
    ("A is 20, B is 10, C is 30, so the correct choice is B", 10, 30),
    ("Option A is 10 and option B is 20. The correct answer is B.", 20, 10),
    ("A is 10, B is 20, so A + B = 30.", 30, 20),
    ("There are 5 students taller than Tom.", 5, 6),
    ("So Ann has 5 more apples than Bob.", 5, 12),
    ("Ann has 12 - 7 = 5 more apples than Bob.", 5, 12),
    ("She has 12 apples, 5 more than Ida.", 12, 5),
    ("She needs 5 more apples.", 5, 6),
    ("There were 36 birds - 30 birds = 6 more pink birds than white birds.", 6, 30),
    ("Sam saves $15 a week. In 10 weeks that adds up to $150.", 150, 15),
    ("The answer is 42. Hmm, I misread the question, it is 40.", 40, 42),
    ("The answer is 42. No, I misread it: it's 40.", 40, 42),
    ("The answer is 42. On reflection it is 40.", 40, 42),
    ("The answer is 42... Apologies, 40.", 40, 42),
    ("Answer: 42. Hmm, I misread it, it is 40.", 40, 42),
    ("I misread the problem at first. The answer is 42.", 42, 41),
    ("The answer is 42. I apologize for the confusion.", 42, 40),
    ("The answer is 42. Per person it is 6.", 42, 6),
    ("The answer is 42. In minutes it is 2520.", 42, 2520),
    ("The answer is 42. Confidence: 9", 42, 9),
    ("The answer is 42. It is 6 more than 36.", 42, 6),
    ("The answer is 42.\n\n1. 6 * 7 = 42", 42, 1),
    ("The answer is 42 km. It is 26 miles.", 42, 26),
    ("It is 3 tenths.", 0.3, 3),
    ("42 hundredths", 0.42, 42),
    ("2 thirds", 2 / 3, 2),
    ("The digit in the tenths place is 5.", 5, 0.5),
    ("We walked past 12 shops.", 12, 3),
    ("He took the flight 3 times.", 3, 4),
    ("Route 66 is 2448 miles long.", 2448, 66),
    ("The area is 42 (base times height).", 42, 8),
    ("42 (in base 10)", 42, 10),
    ("The cost is 30, the tip is 6, the total is 36.", 36, 6),
    ("In 1969, the club had 3 members.", 3, 1969),
    ("pi is 3.142", 3.142, 3),
    ("It should be 42.", 42, 41),
    ("42 has been confirmed.", 42, 41),
]
# Outputs with two numbers of which neither is marked.
OPEN = [
    ("La réponse est 12. C'est 3 de plus.", 12, 3),
    ("Die Antwort ist 12. Das sind 3 mehr.", 12, 3),
    ("La respuesta es 12. Son 3 más.", 12, 3),
    ("Ответ 12. Это на 3 больше.", 12, 3),
    ("The answer is 42. The answer is 41.", 42, 41),
    ("Answer: 42\nAnswer: 41", 42, 41),
    ("\\boxed{42} or \\boxed{41}", 42, 41),
    ("She has 12 apples. He has 3.", 12, 3),
    ("So there are 12 apples. Ann has 3.", 12, 3),
    ("42. It is 6 more.", 42, 6),
    ('{"width": 12, "height": 3}', 12, 3),
    ('{"answer": [12, 3]}', 12, 3),
    ("The answer is 12 eggs per 3 days.", 12, 3),
    ("**Answer: 42** Let me recount the 3 groups to be sure: they match.", 42, 3),
    ("The answer is 144. Let me recount. 12 rows of 11 are 132.", 144, 132),
    ("The answer is 12. Let me recount: thirteen.", 12, 13),
    ("Point A is 3 and B is 4. The distance is 1. B is right.", 1, 4),
    ("Option A is 3 and option B is 4. So the distance is 1. B is right.", 1, 4),
    ("The sum is 42, the product is 400.", 42, 400),
    ("Her age is 12, his age is 24.", 12, 24),
    ("The answer is 42 apples. It is 40 apples.", 42, 40),
    ("The answer is 18. Oh, I forgot one group: it's 24.", 18, 24),
    ("The answer is 30. Hmm. 36.", 30, 36),
    ("The solution is 64. I'm sorry, 46.", 64, 46),
]
# Outputs that state none of their numbers, or one of two that only the question could tell apart.
UNSTATED = [
    ("42 can be ruled out.", 42, 40),
    ("42 should be discarded.", 42, 40),
    ("The textbook says 42 but that's a typo.", 42, 40),
    ("The manual gives 42, but there is a misprint.", 42, 40),
    ("It should have been 42.", 42, 40),
    ("Nobody would say 42.", 42, 40),
    ("No serious person would answer 42.", 42, 40),
    ("There are none left out of 5.", 5, 0),
    ("It's half past 3.", 3, 30),
    ("quarter to 4", 4, 15),
    ("January 5", 5, 1),
    ("March 5th", 5, 3),
    ("5 January", 5, 1),
    ("42 (base 8)", 42, 34),
    ("101 in binary", 101, 5),
    ("Das macht 1.500 Euro.", 1500, 1.5),
    ("Il prezzo è 1.250 euro.", 1250, 1.25),
    ("1.500 €", 1500, 1.5),
    ("It was founded in 1969 by 3 people.", 1969, 3),
    ("It could be 42.", 42, 40),
    ("Unknown, maybe 42", 42, 40),
    ("Highway 42", 42, 40),
    ("Apollo 13", 13, 11),
]
# Refusals and messages of failed requests, and the number that they have.
WITHOUT_ANSWER = [
    ("There is no answer; I tried 3 times.", 3),
    ("I cannot answer that. Call 911.", 911),
    ("I'm sorry, but I can't help with that. See section 12.", 12),
    ("I don't know. There are 5 unknowns.", 5),
    ("We are unable to determine it from 4 measurements.", 4),
    ("Rate limit exceeded: 429", 429),
    ("429 Too Many Requests", 429),
    ("Error 503: service unavailable", 503),
    ("HTTP status 404", 404),
    ("ValueError: 12 is not a valid size", 12),
    ("The request timed out after 30 seconds.", 30),
]


@each_row(("text", "answer", "other"), MARKED)
def test_a_marked_number_decides_whatever_is_expected(text: str, answer: int, other: float) -> None:
    assert numeric_answer(text, answer).passed is True, numeric_answer(text, answer).reason
    assert numeric_answer(text, other).passed is False, numeric_answer(text, other).reason


@each_row(("text", "answer", "other"), PHRASES)
def test_a_phrase_that_states_a_number_decides(text: str, answer: float, other: float) -> None:
    assert numeric_answer(text, answer).passed is True, numeric_answer(text, answer).reason
    assert numeric_answer(text, other).passed is not True, numeric_answer(text, other).reason


@each_row(("text", "one", "other"), OPEN)
def test_of_several_unmarked_numbers_none_decides(text: str, one: int, other: int) -> None:
    assert numeric_answer(text, one).status == "skipped"
    assert numeric_answer(text, other).status == "skipped"
    assert numeric_answer(text, 1000).passed is False


@each_row(("text", "one", "other"), UNSTATED)
def test_a_number_that_is_not_stated_gets_no_verdict_whatever_is_expected(text: str, one: float, other: float) -> None:
    assert numeric_answer(text, one).status == "skipped"
    assert numeric_answer(text, other).status == "skipped"


@each_row(("text", "number"), WITHOUT_ANSWER)
def test_refusals_and_failed_requests_hold_no_answer(text: str, number: int) -> None:
    score = numeric_answer(text, number)
    assert score.status == "skipped"
    assert "refuses" in score.reason or "failed request" in score.reason


@pytest.mark.parametrize("text", ["I can't believe it: the answer is 42.", "I don't know why, but \\boxed{42}"])
def test_a_marked_answer_counts_even_with_words_of_a_refusal(text: str) -> None:
    assert numeric_answer(text, 42).passed is True


_SENTENCES = st.sampled_from(
    [
        "She has {} apples.", "The answer is {}.", "So there are {} left.", "Answer: {}",
        "It took {} minutes.", "Das sind {}.", "I first said {}.", "In total {}.", "{} * {} = {}",
        "\\boxed{{{}}}", "#### {}", "{}.", "Is it {}?", "It is not {}.", "Wait, it is {}.",
        "<answer>{}</answer>", '"answer": {},', '"confidence": {}',
        "{} is the answer.", "1. {} cats", "It is {}.", "On reflection it is {}.", "Hmm, {}.", "It could be {}.",
        "The sum is {}, the product is {}.", "It's half past {}.", "It was founded in 1969 by {} people.",
    ]
)  # fmt: skip


@given(st.lists(st.tuples(_SENTENCES, st.sampled_from("\n ")), min_size=1, max_size=4))
def test_at_most_one_number_is_read_and_the_reading_is_one(parts: list[tuple[str, str]]) -> None:
    places = sum(sentence.count("{}") for sentence, _ in parts)
    numbers = [13 + 10 * place for place in range(places)]
    values = iter(numbers)
    text = "".join(
        sentence.format(*(next(values) for _ in range(sentence.count("{}")))) + end for sentence, end in parts
    )
    scores = {number: numeric_answer(text, number) for number in numbers}
    passed = [number for number, score in scores.items() if score.passed is True]
    skipped = [number for number, score in scores.items() if score.status == "skipped"]
    assert len(passed) <= 1, text
    assert not (passed and skipped), text
