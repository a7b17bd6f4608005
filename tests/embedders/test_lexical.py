"""The comparison of letters: stable, blind to meanings, and open about it."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import ModelError
from proctor.models import connect as connections
from proctor.models.embedders.lexical import BUCKETS, letter_vector


def similarity(left: str, right: str) -> float:
    return sum(a * b for a, b in zip(letter_vector(left), letter_vector(right), strict=True))


@given(st.text())
def test_vectors_are_of_one_length_and_size(text: str) -> None:
    """1 for a text, 0 for one of nothing but blanks; no number is negative."""
    found = letter_vector(text)
    assert len(found) == BUCKETS
    assert min(found) >= 0.0
    size = math.sqrt(sum(x * x for x in found))
    assert size == pytest.approx(1.0 if text.split() else 0.0)


@given(st.text(), st.text())
def test_similarity_is_symmetric_and_greatest_with_itself(left: str, right: str) -> None:
    """From 0 to 1, whatever the texts."""
    found = similarity(left, right)
    assert found == pytest.approx(similarity(right, left))
    assert 0.0 <= found <= 1.0 + 1e-9


def test_a_vector_worked_out_by_hand() -> None:
    """ " ab " has three runs of 2, two of 3 and one of 4: six, each once."""
    found = sorted((x for x in letter_vector("AB") if x), reverse=True)
    assert found == pytest.approx([1 / math.sqrt(6)] * 6)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("The cat sat on the mat.", "A cat was sitting on a mat.", "Stocks fell sharply today."),
        ("colour of the house", "color of the houses", "weight of a truck"),
        ("It opens at 9:30", "opens at 9:30 daily", "It closes at noon"),
    ],
)
def test_forms_of_the_same_words_come_near(text: str, near: str, far: str) -> None:
    assert similarity(text, near) > similarity(text, far) + 0.1


def test_it_says_that_it_is_lexical() -> None:
    embedder = connections.embedder("lexical")
    assert (embedder.name, embedder.method) == ("lexical", "lexical")
    assert len(asyncio.run(embedder.embed(["a", "b"]))) == 2
    with pytest.raises(ModelError, match="'lexical:words' is not an address"):
        connections.embedder("lexical:words")
