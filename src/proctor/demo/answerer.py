"""A question answerer without a model: it finds a passage and quotes one sentence of it.

It can rank in two ways. "overlap" counts the words that a question and a text have in common, as
one would do at first. "bm25" passes over words that say nothing, brings the others to their stems,
and lets rare words weigh more. The evaluation beside this file tells how much that brings.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import msgspec

from proctor.core import resources
from proctor.errors import TargetError, nearest
from proctor.records import codec

SATURATION, LENGTH_SHARE = 1.2, 0.75  # known as k1 and b, at their usual values


class Bm25:
    """Some documents, each a list of terms, made ready to be compared with questions.

    Rare terms weigh more; a term said again and again counts ever less; long documents, which
    hold more of everything, are held back. `rarity` may come from a greater set of documents.

    >>> index = Bm25([["red", "planet"], ["blue", "planet"]])
    >>> index.best(["blue", "planet"])
    1
    """

    def __init__(self, documents: Sequence[Sequence[str]], rarity: Mapping[str, float] | None = None) -> None:
        self._counts = [Counter(document) for document in documents]
        self._lengths = [len(document) for document in documents]
        self._mean_length = sum(self._lengths) / len(documents)
        self.rarity = _rarity(self._counts) if rarity is None else rarity

    def best(self, asked: Sequence[str]) -> int:
        """The number of the document that fits best; the first of equals."""
        return max(range(len(self._counts)), key=lambda number: self.score(asked, number))

    def score(self, asked: Sequence[str], number: int) -> float:
        """How well one document fits: 0 if it has none of the terms, with no upper end."""
        counts, length = self._counts[number], self._lengths[number] / self._mean_length
        dampening = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
        return sum(
            self.rarity[term] * counts[term] * (SATURATION + 1) / (counts[term] + dampening)
            for term in asked
            if term in counts
        )

    def covered(self, asked: Sequence[str], number: int) -> float:
        """The share of the question, by weight, that one document has terms for.

        >>> Bm25([["red", "planet"], ["blue", "planet"]]).covered(["red", "planet"], 0)
        1.0
        """
        rarest = max(self.rarity.values())
        weights = [self.rarity.get(term, rarest) for term in asked]
        known = [term in self._counts[number] for term in asked]
        met = sum(weight for weight, is_known in zip(weights, known, strict=True) if is_known)
        return met / sum(weights) if weights else 0.0


def _rarity(counts: Sequence[Counter[str]]) -> dict[str, float]:
    """How much each term tells: the fewer documents hold it, the more."""
    holding = Counter(term for count in counts for term in count)
    return {term: math.log(1 + (len(counts) - held + 0.5) / (held + 0.5)) for term, held in holding.items()}


ENDINGS = {"ies": "y", "'s": "", "ing": "", "ed": "", "es": "", "s": ""}


def words(text: str) -> list[str]:
    """All words and numbers of a text, in small letters.

    >>> words("Halley's Comet, 1986")
    ["halley's", 'comet', '1986']
    """
    return re.findall(r"[a-z]+(?:'[a-z]+)?|\d+(?:[.,]\d+)*", text.lower())


STOP_WORDS = frozenset(
    words(
        "a about after all an and are as at be been by can could did do does for from had has have "
        "he her his how in into is it its many much of on one only or our so than that the their "
        "them there they this to us was we were what when where which who whom whose why will with"
    )
)


def terms(text: str) -> list[str]:
    """The words that tell what a text is about, each brought to its stem.

    >>> terms("Who discovered the moons?")
    ['discover', 'moon']
    """
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def stem(word: str) -> str:
    """A word without its common endings, so that its forms meet.

    >>> [stem(word) for word in ("name", "names", "named", "bodies", "body", "mass")]
    ['nam', 'nam', 'nam', 'body', 'body', 'mass']
    """
    if word.endswith("ss"):
        return word
    for ending, instead in ENDINGS.items():
        if word.endswith(ending) and len(word) >= len(ending) + 3:
            return word.removesuffix(ending) + instead
    return word.removesuffix("e") if len(word) > 3 else word


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
    rankings: dict[str, Callable[[str], Finding | None]] = {"overlap": find_by_overlap, "bm25": find_by_bm25}
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
