"""The demonstration's own evaluators."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.demo.answerer import brief, cites_source
from proctor.records.sample import Sample

ANSWERABLE = Sample("1", "Who discovered Rhea?", "Cassini", metadata={"context": "rhea"})
UNANSWERABLE = Sample("2", "Who wrote Fidelio?", "I don't know")


def test_the_right_citation_passes() -> None:
    """The passage that holds the answer is the one to cite."""
    assert cites_source("Giovanni Cassini discovered it in 1672. [rhea]", ANSWERABLE).passed


def test_silence_passes_where_no_passage_holds_the_answer() -> None:
    """Without a source there is nothing to cite."""
    assert cites_source("I don't know", UNANSWERABLE).passed


def test_a_wrong_or_missing_citation_fails_and_says_what_was_wanted() -> None:
    """The reason names both the passage cited and the one that holds the answer."""
    scores = [
        cites_source("Titan is the largest. [titan]", ANSWERABLE),
        cites_source("[rhea] is not at the end", ANSWERABLE),
        cites_source("Titan is the largest. [titan]", UNANSWERABLE),
    ]
    assert [score.value for score in scores] == [0.0, 0.0, 0.0]
    assert [score.reason for score in scores] == snapshot(
        [
            "cites titan; the answer is in rhea",
            "cites nothing; the answer is in rhea",
            "cites titan; the answer is in no passage",
        ]
    )


@pytest.mark.parametrize(("count", "expected"), [(0, 1.0), (20, 1.0), (25, 0.8), (80, 0.25)])
def test_brevity_falls_with_the_words_beyond_the_limit(count: int, expected: float) -> None:
    """Up to twenty words are as brief as can be."""
    assert brief("word " * count) == expected


@given(output=st.text(), limit=st.integers(1, 50))
def test_brevity_is_a_value_that_a_score_can_have(output: str, limit: int) -> None:
    """It is more than 0 and at most 1, whatever the output."""
    assert 0 < brief(output, limit=limit) <= 1
