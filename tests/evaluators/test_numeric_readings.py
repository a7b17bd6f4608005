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
def test_a_phrase_that_states_a_number_decides(text: str, answer: int, other: int) -> None:
    assert numeric_answer(text, answer).passed is True, numeric_answer(text, answer).reason
    assert numeric_answer(text, other).passed is not True, numeric_answer(text, other).reason


@each_row(("text", "one", "other"), OPEN)
def test_of_several_unmarked_numbers_none_decides(text: str, one: int, other: int) -> None:
    assert numeric_answer(text, one).status == "skipped"
    assert numeric_answer(text, other).status == "skipped"
    assert numeric_answer(text, 1000).passed is False


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
        "{} is the answer.", "1. {} cats",
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
