"""BM25 and its terms, against figures worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.demo.answerer import Bm25, stem, terms, words
from tests.tables import each_row

a_term = st.sampled_from("abcdef")
documents = st.lists(st.lists(a_term, min_size=1, max_size=8), min_size=1, max_size=6)


def test_a_score_is_what_the_formula_gives() -> None:
    """Two documents of one length, a term said twice in one: idf ln 2, times 2 * 2.2 / 3.2."""
    index = Bm25([["moon", "moon"], ["sun", "star"]])
    assert index.score(["moon"], 0) == pytest.approx(math.log(2) * 4.4 / 3.2)
    assert index.score(["moon"], 1) == 0


def test_a_rare_term_weighs_more_than_a_common_one() -> None:
    """What one document in three says tells more than what all three say."""
    index = Bm25([["moon", "ring"], ["moon", "ice"], ["moon", "dust"]])
    assert index.rarity["ring"] == pytest.approx(math.log(1 + 2.5 / 1.5))
    assert index.rarity["moon"] == pytest.approx(math.log(1 + 0.5 / 3.5))


def test_of_two_documents_that_say_the_same_the_shorter_fits_better() -> None:
    """Length counts against a document."""
    assert Bm25([["moon", "a", "b", "c"], ["moon"]]).best(["moon"]) == 1


def test_the_first_of_equals_is_the_best() -> None:
    """Ties go to the document that comes first."""
    assert Bm25([["sun"], ["moon"], ["moon"]]).best(["moon"]) == 1


def test_words_that_no_document_has_count_against_coverage() -> None:
    """An unheard-of term weighs as much as the rarest one known."""
    index = Bm25([["moon"], ["sun"]])
    assert index.coverage(["moon", "opera"], 0) == 0.5
    assert index.coverage([], 0) == 0.0


@given(documents=documents, options=st.lists(a_term))
def test_scores_are_never_negative_and_coverage_is_a_share(documents: list[list[str]], options: list[str]) -> None:
    """For any documents and question."""
    index = Bm25(documents)
    for number in range(len(documents)):
        assert index.score(options, number) >= 0
        assert 0 <= index.coverage(options, number) <= 1


def test_numbers_and_apostrophes_stay_whole() -> None:
    """A figure with a separator is one word, and so is a genitive."""
    assert words("Halley's 4,000 or 3.8.") == ["halley's", "4,000", "or", "3.8"]


@each_row(
    ("word", "expected"),
    [
        ("moons", "moon"),
        ("bodies", "body"),
        ("halley's", "halley"),
        ("circling", "circl"),
        ("circled", "circl"),
        ("circle", "circl"),
        ("ice", "ice"),
        ("gas", "gas"),
        ("mass", "mass"),
        ("io", "io"),
    ],
)
def test_the_forms_of_a_word_meet_in_its_stem(word: str, expected: str) -> None:
    """Common endings go; short words are left alone."""
    assert stem(word) == expected


def test_terms_leave_out_what_says_nothing() -> None:
    """Question words and small words are not compared."""
    assert terms("Which of the planets is the hottest?") == ["planet", "hottest"]
