"""The demonstration's answerer: what it says, and how it says that it does not know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.demo.answerer import UNKNOWN, Passage, answer, knowledge
from proctor.errors import TargetError

RANKINGS = ("overlap", "bm25")
every_ranking = pytest.mark.parametrize("ranking", RANKINGS)


@every_ranking
def test_a_question_in_the_words_of_a_passage_is_answered_and_cited(ranking: str) -> None:
    """Both rankings find an answer whose words the question uses, and name its passage."""
    assert answer("What are the clouds of Venus made of?", ranking=ranking) == (
        "Its clouds are made of sulphuric acid. [venus]"
    )


def test_common_words_mislead_the_overlap_but_not_bm25() -> None:
    """The two rankings differ where only the rare word of a question matters."""
    question = "In which year was Ariel discovered?"
    assert answer(question, ranking="overlap") == snapshot("Asaph Hall discovered it in Washington in 1877. [phobos]")
    assert answer(question, ranking="bm25") == snapshot(
        "William Lassell discovered it in 1851, together with Umbriel. [ariel]"
    )


def test_overlap_is_the_ranking_unless_another_is_named() -> None:
    """The first thing one would try is the default."""
    question = "In which year was Ariel discovered?"
    assert answer(question) == answer(question, ranking="overlap")


def test_bm25_does_not_know_what_no_passage_is_about() -> None:
    """A question from elsewhere gets no answer, although it shares small words with passages."""
    question = "Which river flows through Vienna?"
    assert answer(question, ranking="bm25") == UNKNOWN
    assert answer(question, ranking="overlap") != UNKNOWN


@every_ranking
@pytest.mark.parametrize("question", ["", "???", "Xyzzy plugh"])
def test_a_question_without_a_known_word_is_not_answered(question: str, ranking: str) -> None:
    """Where nothing is shared, neither ranking makes something up."""
    assert answer(question, ranking=ranking) == UNKNOWN


def test_a_question_of_small_words_says_nothing_to_bm25() -> None:
    """Words that are passed over do not make a question."""
    assert answer("What is it, and why?", ranking="bm25") == UNKNOWN


def test_an_unknown_ranking_is_refused_with_the_nearest_name() -> None:
    """A misspelt ranking says which one was probably meant."""
    with pytest.raises(TargetError) as caught:
        answer("Who discovered Titan?", ranking="bm2")
    assert str(caught.value) == snapshot("""\
unknown ranking 'bm2'
Fix: did you mean 'bm25'?\
""")


@given(question=st.text(), ranking=st.sampled_from(RANKINGS))
def test_every_answer_is_a_quotation_or_unknown(question: str, ranking: str) -> None:
    """Every answer is one sentence of the passage that it cites, or says that it is none."""
    quotations = {f"{sentence} [{p.id}]" for p in knowledge() for sentence in p.sentences}
    assert answer(question, ranking=ranking) in quotations | {UNKNOWN}


@given(passage=st.sampled_from(knowledge()), extra=st.text("aeiou xyz"), ranking=st.sampled_from(RANKINGS))
def test_the_same_question_gets_the_same_answer(passage: Passage, extra: str, ranking: str) -> None:
    """Nothing is left to chance."""
    question = f"{passage.title} {extra}?"
    assert answer(question, ranking=ranking) == answer(question, ranking=ranking)
