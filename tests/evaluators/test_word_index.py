"""An index of words answers as a comparison with every word, in less time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.tokenizer import WordIndex, are_related

WORDS = st.one_of(
    st.text("abs", min_size=1, max_size=7),
    st.sampled_from(
        ["run", "runs", "stop", "stopped", "happy", "happily", "organ", "organic", "a", "as", "12", "12s", "Paris"]
    ),
)


@given(st.lists(WORDS, max_size=6), WORDS)
def test_an_index_finds_exactly_the_words_that_are_related_to_one_of_its_words(texts: list[str], word: str) -> None:
    assert (word in WordIndex(texts)) == any(word == text or are_related(word, text) for text in texts)
