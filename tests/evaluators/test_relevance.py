"""relevance: answers to the question are told from answers to another one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from benchmarks.quality import relevance as benchmark
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.embeddings import TextEmbedder, VectorSimilarity
from proctor.evaluators.text.quality import relevance
from proctor.evaluators.text.relevance import (
    TopicMatch,
    explain_echo,
    explain_other_year,
    is_elliptical,
    select_likely_pieces,
    split_pieces,
)
from proctor.evaluators.text.request_kind import classify_request
from proctor.models import weights
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial
from tests.evaluators.judging.rehearsed import scores
from tests.evaluators.test_recorded_judges import DATA, folder

QUESTION = "When was the old bridge in Mostar built?"
ANSWER = "The old bridge in Mostar was built in 1566."
ELSEWHERE = "Penguins feed their young with fish from cold seas."


def score(output: Any, question: Any = QUESTION, **options: Any) -> Score:
    options = {"embedder": "lexical"} | options
    found: Score = asyncio.run(attach(relevance(**options)).score(Trial(Sample("1", question), output)))
    return found


def test_an_answer_is_near_its_question_and_another_one_is_not() -> None:
    own, other = score(ANSWER), score(ELSEWHERE)
    assert own.passed
    assert not other.passed
    assert own.reason == f"nearness {own.details['nearness']:.2f} to the input, by letters only"


@pytest.mark.parametrize(
    ("nearness", "value"), [(0.0, 0.0), (0.14, 0.35), (0.28, 0.7), (0.54, 0.85), (0.8, 1.0), (1.0, 1.0)]
)
def test_the_value_is_a_straight_line_below_and_above_the_mark(nearness: float, value: float) -> None:
    """By hand: 0.7 at 0.28, 1 from 0.8 on."""
    assert TopicMatch(nearness, "").value == pytest.approx(value)


def test_of_very_long_texts_the_start_is_compared() -> None:
    answer = " ".join(f"This is sentence {n} of a very long text." for n in range(2000))
    found = score(answer)
    # Sixteen sentences of nine words make a piece, so there are 125.
    assert found.details["pieces_left_out"] == 25
    assert "pieces_left_out" not in score(ANSWER).details


class Raised:
    """An embedder whose cosines begin at 0.8, as those of some models do."""

    name, method = "raised", "embeddings"

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        width = 12
        known: list[Sequence[float]] = []
        for text in texts:
            place = 0 if "bridge" in text else 1 + sum(map(ord, text)) % (width - 1)
            known.append([2.0] + [float(at == place) for at in range(width)])
        return known


def test_the_floor_of_an_embedder_is_taken_off() -> None:
    """Cosines of 0.8 mean nothing where all texts have them."""
    other, own = score(ELSEWHERE, embedder=Raised()), score(ANSWER, embedder=Raised())
    assert not other.passed
    assert (other.value or 0.0) < 0.2
    assert (own.value, own.passed) == (1.0, True)


def test_short_outputs_are_skipped_and_empty_ones_score_0() -> None:
    short = score("In 1566.")
    assert short.status == "skipped"
    assert short.reason == "2 words are too few to compare with the input; a judge can do it"
    empty = score(" ")
    assert (empty.value, empty.passed, empty.reason) == (0.0, False, "the output is empty")


@pytest.mark.parametrize("question", [None, "", [], {}])
def test_without_an_input_it_is_skipped(question: Any) -> None:
    assert score(ANSWER, question).status == "skipped"


def test_called_directly_it_has_no_input() -> None:
    found: Score = attach(relevance(embedder="lexical"))(ANSWER)
    assert "there is no input" in found.reason


def test_of_long_texts_the_nearest_pieces_count() -> None:
    long = f"{ELSEWHERE} " * 40 + "\n\n" + f"{ANSWER} " * 8
    found = score(long, [{"role": "user", "content": QUESTION}])
    assert found.passed
    assert ", by 'The old bridge" in found.reason or ", by 'Penguins" in found.reason
    assert len(split_pieces(long)) > 2
    assert " ".join(" ".join(split_pieces(long)).split()) == " ".join(long.split())


def test_a_judge_scores_relevance_out_of_ten() -> None:
    judge = scores(9)
    found = score("In 1566.", judge=judge)
    assert (found.value, found.passed, found.details["method"]) == (0.9, True, "judge")
    assert judge.asked[0].part("INPUT") == QUESTION
    assert attach(relevance(model=judge)).spec.parameters == {"model": "test:judge", "threshold": 0.7}


def test_a_pass_mark_that_is_none_is_refused() -> None:
    with pytest.raises(EvaluatorError, match="threshold must be between 0 and 1"):
        relevance(threshold=-1)


@given(st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=60))
def test_the_value_is_sound_whatever_the_texts(question: str, output: str) -> None:
    """From 0 to 1, or skipped."""
    found = score(output, question)
    assert found.value is None or 0.0 <= found.value <= 1.0


def test_an_embedder_with_a_floor_of_1_finds_nothing_similar() -> None:
    assert VectorSimilarity({"a": [1.0]}, 1.0)("a", "a") == 0.0
    assert TextEmbedder("lexical", "relevance").details["embedder"] == "lexical"


def _need(*names: str) -> None:
    pytest.importorskip("numpy", reason="the extra `local` is not installed")
    missing = [name for name in names if weights.find(name) is None]
    if missing:
        pytest.skip(f"the weights are not installed: proctor models pull {' '.join(missing)}")


def test_a_cross_encoder_tells_answers_from_texts_on_the_same_subject() -> None:
    _need("minilm", "ms-marco")
    answer = score(ANSWER, embedder=None)
    assert answer.passed
    assert (answer.details["method"], answer.details["model"]) == ("cross-encoder", "local:ms-marco")
    other = score("Many tourists visit Mostar every summer to see young men dive into the river.", embedder=None)
    assert other.passed is not True
    off_topic = score(ELSEWHERE, embedder=None)
    assert off_topic.passed is False
    assert off_topic.reason.startswith("it is off the topic of the question by local:ms-marco (logit -1")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "How do I get a wine stain out of a tablecloth?",
            "Rub in some salt, wait ten minutes, then rinse with cold water.",
        ),
        ("Can I run the dishwasher without rinse aid?", "Not for long. Glasses dry with spots, and lime builds up."),
        ("Why does my bread not rise?", "Old yeast is the usual cause. Warm milk that is too hot also kills it."),
        ("Should I fix the roof before I sell?", "Get two quotes first. Buyers subtract more than repairs cost."),
    ],
)
def test_direct_advice_that_does_not_repeat_the_question_never_fails(question: str, answer: str) -> None:
    _need("minilm", "ms-marco")
    result = score(answer, question, embedder=None)
    assert result.passed is not False


@pytest.mark.parametrize(
    ("question", "answer", "is_echo"),
    [
        ("How long should I boil a duck egg?", "How long to boil a duck egg is an excellent question.", True),
        ("What causes rust on iron gates?", "Many owners wonder what causes rust on iron gates.", True),
        ("How long should I boil a duck egg?", "You should boil a duck egg for nine minutes.", False),
        ("What are window panes made of?", "Window panes are made of glass.", False),
        ("Who wrote Emma?", "A common question: Emma was written by Austen.", False),
        ("Is the old bridge open?", "Yes, the old bridge is open.", False),
        ("Which is larger, the sun or the moon?", "The sun is larger than the moon.", False),
        ("How do I remove wine stains?", "People often ask how to remove wine stains: use salt and water.", False),
    ],
)
def test_an_answer_that_only_repeats_the_question_is_found(question: str, answer: str, is_echo: bool) -> None:
    assert bool(explain_echo(question, answer)) is is_echo


def test_an_echo_is_skipped_although_the_cross_encoder_rates_it_high() -> None:
    _need("minilm", "ms-marco")
    question = "How long should I boil a duck egg?"
    result = score("How long you should boil a duck egg is an excellent question.", question, embedder=None)
    assert (result.status, result.details["logit"] > 0) == ("skipped", True)
    assert result.reason == "it only repeats the question; a judge can do it"


def test_an_answer_that_needs_its_question_is_skipped_if_the_cross_encoder_rates_it_low() -> None:
    _need("minilm", "ms-marco")
    question = "Which musical has the song On the Street Where You Live?"
    found = score("The musical is My Fair Lady.", question, embedder=None)
    assert found.passed or found.status == "skipped"


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Which song did she write in 2009?", "The song is called Not Fair.", True),
        ("What do you call the beam over a door?", "It is called a lintel.", True),
        ("Who fought in 1931?", "Len Harvey and Jock McAvoy", True),
        (QUESTION, ELSEWHERE, False),
        (QUESTION, "The town is popular with tourists.", False),
    ],
)
def test_elliptical_answers_leave_their_subject_to_the_question(question: str, answer: str, expected: bool) -> None:
    assert is_elliptical(question, answer) is expected


@pytest.mark.parametrize(
    ("question", "answer", "is_other"),
    [
        ("Where was the cup held in 1987?", "The cup was held in Rome in 1989.", True),
        ("Where was the cup held in 1987?", "After Oslo (1986), the cup of 1987 was held in Rome.", False),
        ("Where was the cup held in 1987?", "The cup was held in Rome.", False),
        ("Where was the cup held?", "The cup was held in Rome in 1989.", False),
        ("In which year of the 1930s was it held?", "It was held in 1934.", False),
        ("In which year of the 1930's was it held?", "It was held in 1934.", False),
        ("Who won in 1987?", "She won by 1,950.50 points in 2000m.", False),
    ],
)
def test_years_of_another_event_are_found(question: str, answer: str, is_other: bool) -> None:
    assert bool(explain_other_year(question, answer)) is is_other


def test_an_answer_about_another_year_is_skipped_although_the_cross_encoder_rates_it_high() -> None:
    _need("minilm", "ms-marco")
    question = "Where was the world cup of rowing held in 1987?"
    found = score("The world cup of rowing was held in Rome in 1989.", question, embedder=None)
    assert (found.status, found.details["logit"] > 0) == ("skipped", True)
    assert "1987, the output about 1989" in found.reason


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (QUESTION, "question"),
        ("term limits for the senate", "question"),
        ("Could you please write a poem about rain?", "request"),
        ("Summarize this text: it rained all day.", "request"),
        ("I feel sad today.", "statement"),
        ("What is new? " + "It was a long day. " * 10, "request"),
    ],
)
def test_questions_are_told_from_requests_and_statements(text: str, kind: str) -> None:
    assert classify_request(text) == kind


def test_requests_are_compared_by_nearness() -> None:
    _need("minilm", "ms-marco")
    found = score("Soft rain falls on roofs and fields in spring.", "Describe the rain in spring.", embedder=None)
    assert (found.details["method"], found.details["embedder"]) == ("embeddings", "local:minilm")


@pytest.mark.parametrize(
    ("request_text", "output"),
    [
        ("Tell me a joke.", "Why did the scarecrow win a prize? He was outstanding in his field."),
        (
            "Write a haiku about autumn.",
            "Red leaves drift slowly / the pond holds a paler sky / geese call and are gone",
        ),
        ("Could you please write a short funny poem about rain?", "Drip, drop, the gutter sings, and so do I."),
    ],
)
def test_requests_for_creative_text_are_skipped(request_text: str, output: str) -> None:
    found = score(output, request_text, embedder=None)
    assert (found.status, "creative text" in found.reason) == ("skipped", True)


def test_without_the_cross_encoder_texts_on_the_subject_are_skipped() -> None:
    _need("minilm")
    related = score("Tourists like to see the old town of Mostar in summer.", embedder="local:minilm")
    assert related.status == "skipped"
    assert "proctor models pull ms-marco" in related.reason
    assert score(ANSWER, embedder="local:minilm").passed
    assert score(ELSEWHERE, embedder="local:minilm").passed is False


def test_of_a_long_answer_the_first_piece_and_the_most_likely_ones_are_scored() -> None:
    pieces = [f"piece {number}" for number in range(8)] + [ANSWER]
    likely = select_likely_pieces(QUESTION, pieces)
    assert len(likely) == 4
    assert likely[:2] == ["piece 0", ANSWER]


def test_own_answers_pass_and_those_of_other_questions_do_not() -> None:
    folder("01_qa_reference/evouna_tq")
    _need("minilm", "ms-marco")
    name, pairs = next(benchmark.sets(DATA))
    own, other = asyncio.run(benchmark.told(attach(relevance()), pairs[:20]))
    assert name == "EVOUNA TQ, gpt4"
    assert sum(one.passed is True for one in own) >= 0.95 * len(own)
    assert sum(one.passed is True for one in other) <= 0.05 * len(other)
