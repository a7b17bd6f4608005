"""Turn the cosine of two texts into a value from 0 to 1, for which 0.8 means the same with every local embedder.

With `local:minilm`, which reads English, the value also counts how many words of the reference the
output contains: one vector says little about a name or a number, and about the details of a long text.
The details of the scale were chosen with benchmarks/quality; other embedders keep their cosine.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.text.opposites import inflect_noun, inflect_verb, load_irregular_verbs
from proctor.evaluators.tokenizer import split_words

MINILM, MULTILINGUAL = "local:minilm", "local:multilingual"
PASSING_VALUE = 0.8
# The cosine of `local:multilingual` that at most one in a hundred pairs of sentences on one subject reach, in
# benchmarks/quality/graded_pairs.yaml. Chosen on all of its languages but one, it is from 0.71 to 0.74.
MULTILINGUAL_MARK = 0.72
# The weight of the words beside the cosine: in sentences, which can say the same in other words; and in phrases (at
# most five words without a full stop) and texts of more than forty words, for which one vector says little.
SENTENCE_WEIGHT, OTHER_WEIGHT = 0.25, 0.5
MAX_PHRASE, MAX_SENTENCE = 5, 40
# The sum of both from which texts pass: paraphrases with a cosine of 0.8 reach it (similarity_near_misses.yaml).
MINILM_MARK = 0.7
# The same for phrases. Of 0.6, 0.65, 0.7 and 0.75 it has the best mean agreement with people over the answers of NQ301
# and of five systems of EVOUNA, whichever of these six sets is left out.
PHRASE_MARK = 0.65
# A word of a phrase may be written in another way, if it shares this much of its runs of letters.
MIN_LIKENESS = 0.5
_MAX_WORDS = 2_000
NGRAM_SIZES = (2, 3, 4)
_WEIGHTS = {"function": 0.25, "speaker": 0.5}
_ARTICLES = frozenset({"a", "an", "the"})


class SimilarityValue(NamedTuple):
    """The value of a pair of texts, its cosine, and the share of the reference's words in the output, if it counts."""

    value: float
    cosine: float
    words: float | None = None


def measure_similarity(embedder: str, cosine: float, output: str, reference: str) -> SimilarityValue:
    """Return the value of a pair whose vectors by the named embedder have this cosine."""
    positive = max(0.0, cosine)
    if embedder == MULTILINGUAL:
        return SimilarityValue(_rescale(positive, MULTILINGUAL_MARK), cosine)
    if embedder != MINILM:
        return SimilarityValue(positive, cosine)
    reference_words = _weigh_words(reference)
    is_short = is_phrase(reference)
    weight = OTHER_WEIGHT if is_short or len(reference_words) > MAX_SENTENCE else SENTENCE_WEIGHT
    words = _measure_recall(output, reference_words, by_letters=is_short)
    if len(_weigh_words(output)) <= MAX_PHRASE:
        # "Canberra" for "The capital is Canberra."
        words = max(words, _measure_recall(reference, _weigh_words(output)))
    mark = PHRASE_MARK if is_short else MINILM_MARK
    return SimilarityValue(_rescale((1.0 - weight) * positive + weight * words, mark), cosine, words)


def is_phrase(text: str) -> bool:
    """Return True if a text has at most five words and no full stop."""
    return len(_weigh_words(text)) <= MAX_PHRASE and text.rstrip()[-1:] not in (".", "!", "?")


def _rescale(number: float, mark: float) -> float:
    """Return the number on a scale on which the mark is 0.8; 0 and 1 stay."""
    if number < mark:
        return PASSING_VALUE * number / mark
    return PASSING_VALUE + (1.0 - PASSING_VALUE) * (number - mark) / (1.0 - mark)


def _measure_recall(output: str, reference_words: dict[str, float], *, by_letters: bool = False) -> float:
    """Return the share of the reference's words that the output contains; with `by_letters`, also in part.

    In sentences, a synonym is enough; phrases may be names.
    """
    output_words, synonyms = _weigh_words(output), {} if by_letters or is_phrase(output) else _load_synonyms()
    meanings = frozenset[int]().union(*(synonyms.get(word, ()) for word in output_words))
    total = sum(reference_words.values())
    shared = 0.0
    for word, weight in reference_words.items():
        if word in output_words or not meanings.isdisjoint(synonyms.get(word, ())):
            shared += weight
        elif by_letters and word.isalpha():
            likeness = max((_measure_likeness(word, other) for other in output_words), default=0.0)
            shared += weight * likeness if likeness >= MIN_LIKENESS else 0.0
    return shared / total if total else 0.0


def _measure_likeness(left: str, right: str) -> float:
    ours, theirs = get_ngrams(left), get_ngrams(right)
    return len(ours & theirs) / math.sqrt(len(ours) * len(theirs))


@functools.lru_cache(maxsize=65536)
def get_ngrams(word: str) -> frozenset[str]:
    """Return the runs of two to four letters of a word and its limits."""
    framed = f" {word} "
    return frozenset(framed[start : start + size] for size in NGRAM_SIZES for start in range(len(framed) - size + 1))


@functools.lru_cache(maxsize=256)
def _weigh_words(text: str) -> dict[str, float]:
    words = [word for word in split_words(text) if word.text not in _ARTICLES] or split_words(text)
    return {word.text: _WEIGHTS.get(word.kind, 1.0) for word in words[:_MAX_WORDS]}


def are_synonyms(left: str, right: str) -> bool:
    """Return True if two phrases have words of the same meaning."""
    synonyms = _load_synonyms()
    texts = ([word.text for word in split_words(text)] for text in (left, right))
    meanings = [[synonyms.get(word, frozenset()) for word in (*words, "_".join(words))] for words in texts]
    return not frozenset[int]().union(*meanings[0]).isdisjoint(frozenset[int]().union(*meanings[1]))


def _inflect_phrase(phrase: str) -> list[str]:
    verb, separator, rest = phrase.partition("_")
    return [f"{form}{separator}{rest}" for form in inflect_verb(verb, load_irregular_verbs())]


@functools.cache
def _load_synonyms() -> dict[str, frozenset[int]]:
    """Return the groups of synonyms of each word, by their index."""
    data = load_data("text", "synonyms.yaml")
    groups = [[inflect_noun(word) for word in line.split()] for line in data["nouns and adjectives"].splitlines()]
    groups += [[_inflect_phrase(verb) for verb in line.split()] for line in data["verbs"].splitlines()]
    synonyms: dict[str, frozenset[int]] = {}
    for index, group in enumerate(groups):
        for word in (form for forms in group for form in forms):
            synonyms[word] = synonyms.get(word, frozenset()) | {index}
    return synonyms
