"""A question answerer without a model: it finds a passage and quotes one sentence of it.

It can rank in two ways. "overlap" counts the words that a question and a text have in common, as
one would do at first. "bm25" passes over words that say nothing, brings the others to their stems,
and lets rare words weigh more. The evaluation beside this file tells how much that brings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import msgspec

from proctor import codec, resources
from proctor.demo.bm25 import Bm25
from proctor.demo.terms import terms, words
from proctor.errors import TargetError, nearest

UNKNOWN = "I don't know"
TITLE_WEIGHT = 3  # a title counts as if the text said it three times more
LEAST_COVERED = 0.3  # with less of the question in it, a passage is about something else


class Passage(msgspec.Struct, frozen=True):
    """A short text about one thing."""

    id: str
    title: str
    text: str

    @property
    def sentences(self) -> list[str]:
        """The text, sentence by sentence."""
        return re.split(r"(?<=[.?!])\s+", self.text)


Finding = tuple[Passage, str]


def answer(question: str, *, ranking: str = "overlap") -> str:
    """Answer with the best sentence of the best passage, and cite the passage.

    >>> answer("Which metal was named after Pallas?", ranking="bm25")
    'The metal palladium was named after it. [pallas]'
    >>> answer("Who painted the ceiling of the Sistine Chapel?", ranking="bm25")
    "I don't know"
    """
    rankings: dict[str, Callable[[str], Finding | None]] = {
        "overlap": find_by_overlap,
        "bm25": find_by_bm25,
    }
    if ranking not in rankings:
        raise TargetError(f"there is no ranking {ranking!r}", fix=nearest(ranking, rankings))
    found = rankings[ranking](question)
    if found is None:
        return UNKNOWN
    passage, sentence = found
    return f"{sentence} [{passage.id}]"


def find_by_overlap(question: str) -> Finding | None:
    """The passage, and in it the sentence, that shares most words with the question."""
    asked = set(words(question))

    def shared(text: str) -> int:
        return len(asked.intersection(words(text)))

    passage = max(knowledge(), key=lambda passage: shared(passage.text))
    sentence = max(passage.sentences, key=shared)
    return (passage, sentence) if shared(sentence) else None


def find_by_bm25(question: str) -> Finding | None:
    """The passage that fits best by BM25, if it fits at all, and in it the best sentence."""
    index = passage_index()
    asked = terms(question)
    best = index.best(asked)
    if index.covered(asked, best) < LEAST_COVERED:
        return None
    passage = knowledge()[best]
    # The title has done its work: now it would only favour the sentence that repeats it.
    title = terms(passage.title)
    asked = [term for term in asked if term not in title]
    inside = Bm25([terms(sentence) for sentence in passage.sentences], index.rarity)
    return passage, passage.sentences[inside.best(asked)]


@cache
def knowledge() -> tuple[Passage, ...]:
    """The passages that answers are taken from, read once."""
    lines = resources.text("demo", "knowledge.jsonl").splitlines()
    return tuple(codec.decode(line, Passage) for line in lines)


@cache
def passage_index() -> Bm25:
    """The passages made ready for BM25, once."""
    return Bm25([terms(p.title) * TITLE_WEIGHT + terms(p.text) for p in knowledge()])
