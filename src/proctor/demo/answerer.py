"""A question-answering program without a model: it finds a passage and quotes one sentence of it.

The ranking "overlap" counts common words; "bm25" ignores stop words, stems the other words, and gives rare words more
weight. The eval file in this folder compares the two with the evaluators below.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import msgspec

from proctor.core import resources
from proctor.errors import TargetError, suggest_name
from proctor.records import codec
from proctor.records.sample import Sample
from proctor.records.score import Score

SATURATION, LENGTH_SHARE = 1.2, 0.75  # The parameters k1 and b of BM25, at their usual values.


class Bm25:
    """An index of documents, each a list of terms.

    Rare terms weigh more, repeated terms count less each time, and long documents are penalized.
    `rarity` may come from a larger set of documents.
    """

    def __init__(self, documents: Sequence[Sequence[str]], rarity: Mapping[str, float] | None = None) -> None:
        self._counts = [Counter(document) for document in documents]
        self._lengths = [len(document) for document in documents]
        self._mean_length = sum(self._lengths) / len(documents)
        self.rarity = _rarity(self._counts) if rarity is None else rarity

    def best(self, query: Sequence[str]) -> int:
        """Return the index of the document that matches best; the first one if several tie."""
        return max(range(len(self._counts)), key=lambda number: self.score(query, number))

    def score(self, query: Sequence[str], number: int) -> float:
        """Score a document: 0 if it contains none of the terms; there is no upper limit."""
        counts, length = self._counts[number], self._lengths[number] / self._mean_length
        dampening = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
        return sum(
            self.rarity[term] * counts[term] * (SATURATION + 1) / (counts[term] + dampening)
            for term in query
            if term in counts
        )

    def coverage(self, query: Sequence[str], number: int) -> float:
        """Return the fraction of the query's weight that a document's terms cover."""
        highest = max(self.rarity.values())
        weights = [self.rarity.get(term, highest) for term in query]
        covered = [weight for weight, term in zip(weights, query, strict=True) if term in self._counts[number]]
        return sum(covered) / sum(weights) if weights else 0.0


def _rarity(counts: Sequence[Counter[str]]) -> dict[str, float]:
    """Return the inverse document frequency of each term."""
    frequencies = Counter(term for count in counts for term in count)
    return {term: math.log(1 + (len(counts) - n + 0.5) / (n + 0.5)) for term, n in frequencies.items()}


ENDINGS = {"ies": "y", "'s": "", "ing": "", "ed": "", "es": "", "s": ""}


def words(text: str) -> list[str]:
    """Return all words and numbers of a text, in lower case."""
    return re.findall(r"[a-z]+(?:'[a-z]+)?|\d+(?:[.,]\d+)*", text.lower())


STOP_WORDS = frozenset(
    words(
        "a about after all an and are as at be been by can could did do does for from had has have "
        "he her his how in into is it its many much of on one only or our so than that the their "
        "them there they this to us was we were what when where which who whom whose why will with"
    )
)


def terms(text: str) -> list[str]:
    """Return the stems of the words that are not stop words."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def stem(word: str) -> str:
    """Return a word without its common endings."""
    if word.endswith("ss"):
        return word
    for ending, replacement in ENDINGS.items():
        if word.endswith(ending) and len(word) >= len(ending) + 3:
            return word.removesuffix(ending) + replacement
    return word.removesuffix("e") if len(word) > 3 else word


UNKNOWN = "I don't know"
TITLE_WEIGHT = 3  # A title counts as much as three mentions in the text.
MIN_COVERAGE = 0.3  # With a lower coverage, a passage is about another subject.


class Passage(msgspec.Struct, frozen=True):
    """A short text about one subject."""

    id: str
    title: str
    text: str

    @property
    def sentences(self) -> list[str]:
        return re.split(r"(?<=[.?!])\s+", self.text)


Match = tuple[Passage, str]


def answer(question: str, *, ranking: str = "overlap") -> str:
    """Answer with the best sentence of the best passage, and cite the passage."""
    rankings: dict[str, Callable[[str], Match | None]] = {"overlap": find_by_overlap, "bm25": find_by_bm25}
    if ranking not in rankings:
        raise TargetError(f"unknown ranking {ranking!r}", fix=suggest_name(ranking, rankings))
    match = rankings[ranking](question)
    if match is None:
        return UNKNOWN
    passage, sentence = match
    return f"{sentence} [{passage.id}]"


def find_by_overlap(question: str) -> Match | None:
    """Return the passage, and its sentence, that share the most words with the question."""
    question_words = set(words(question))

    def count_shared(text: str) -> int:
        return len(question_words.intersection(words(text)))

    passage = max(knowledge(), key=lambda passage: count_shared(passage.text))
    sentence = max(passage.sentences, key=count_shared)
    return (passage, sentence) if count_shared(sentence) else None


def find_by_bm25(question: str) -> Match | None:
    """Return the best passage by BM25, if it covers the question, and its best sentence."""
    index = passage_index()
    query = terms(question)
    best = index.best(query)
    if index.coverage(query, best) < MIN_COVERAGE:
        return None
    passage = knowledge()[best]
    # Words of the title would favor the sentence that repeats them.
    title = terms(passage.title)
    query = [term for term in query if term not in title]
    sentences = Bm25([terms(sentence) for sentence in passage.sentences], index.rarity)
    return passage, passage.sentences[sentences.best(query)]


@cache
def knowledge() -> tuple[Passage, ...]:
    """Return the passages, read once."""
    lines = resources.text("demo", "knowledge.jsonl").splitlines()
    return tuple(codec.decode(line, Passage) for line in lines)


@cache
def passage_index() -> Bm25:
    """Return the BM25 index of the passages, built once."""
    return Bm25([terms(p.title) * TITLE_WEIGHT + terms(p.text) for p in knowledge()])


def cites_source(output: str, sample: Sample[str, str]) -> Score:
    """Passes if the answer cites the right passage, or nothing if there is none."""
    match = re.search(r"\[([^\]]+)\]$", output)
    cited = match[1] if match else None
    if cited == sample.context:
        return Score(1.0, True)
    reason = f"cites {cited or 'nothing'}; the answer is in {sample.context or 'no passage'}"
    return Score(0.0, False, reason)


def brief(output: str, *, limit: int = 20) -> float:
    """Scores brevity: 1 up to `limit` words, 0.5 at twice as many."""
    return min(1.0, limit / max(1, len(output.split())))
