"""Measure how much of each sentence of a text a context supports.

A word is supported if it, or another form of it, is in the passages of the context that match the sentence best, or if
it is close in meaning to one of their words. Numbers, names, negations and first-person words need an exact match and
have a higher weight.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from proctor.evaluators.embeddings import UNRELATED_WORDS, TextEmbedder, VectorSimilarity, run_off_loop
from proctor.evaluators.grounding.contradictions import (
    find_changed_measures,
    find_opposites,
    find_replaced_words,
    find_same_measures,
)
from proctor.evaluators.language import JUDGE_HINT, explain_first_unreadable, is_english_word
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.tokenizer import (
    Word,
    WordKind,
    are_related,
    collect_texts,
    fold_case,
    load_english,
    split_sentences,
    split_words,
)
from proctor.records.score import Score

DEFAULT_THRESHOLD = 0.75
# For texts with more sentences, the details list only the weakest ones.
MAX_LISTED = 100
MAX_SENTENCES = 2000
# A sentence may combine statements from this many passages of the context.
MAX_PASSAGES = 3
# A word in more passages than this does not distinguish them.
COMMON_WORD_PASSAGES = 200
WEIGHTS: Mapping[WordKind, float] = {
    "function": 0.5, "content": 1.0, "number": 2.0, "name": 2.0, "speaker": 2.0, "negation": 2.0,
}  # fmt: skip
# The similarities at which a word gets some credit, and full credit.
MIN_SIMILARITY, FULL_SIMILARITY = 0.25, 0.75
# The highest support of a sentence that contradicts the context.
CONTRADICTED_SUPPORT = 0.5
# Keeps a contradicting sentence below the default threshold.
WRONG_FACTOR = 0.7
# The support of a sentence includes the complete text with this weight, so that short sentences do not decide alone.
SURROUNDING_WEIGHT = 10.0

_NEGATION_REACH = 5
_MAX_DENIED_WORDS = 2
_MEANINGFUL = ("content", "name", "number")
# [1], [2, 3], [4-6], [^1], 【1】, and superscript digits.
_CITATION = re.compile(r"\[\^?[0-9]{1,3}(?:\s*[,;–-]\s*[0-9]{1,3})*\]|【[^】]*】|[⁰¹²³⁴-⁹]+")
_LIST_NUMBER = re.compile(r"^\W*\(?[0-9]{1,2}[.)]\s+(?=\S)")
_HEADING = re.compile(r"^\s*#")
_MAX_COURTESY_WORDS = 14
# Sentences that consist only of these words ("Yes, it is", "I do") state nothing.
_EMPTY_KINDS = ("function", "speaker")
_MIN_NAME_LETTERS = 3
_ORDINARY_END = re.compile(r"(?:(?<![suia])s|\w{3}(?:ing|ed|ly))\Z")
_CONTINUATIONS = frozenset({"but", "that", "because", "however"})
_PREFIX_LETTERS = 3
_MAX_ACRONYM_LETTERS = 6


class GroundingScorer:
    """Scores the support that a context gives to the weakest sentence of the output."""

    def __init__(self, embedder: TextEmbedder, threshold: float) -> None:
        self._embedder, self._threshold = embedder, threshold
        self.options = embedder.options

    async def score(self, output: Any, reference: Sequence[str] = ()) -> Score:
        """Score the support of the weakest sentence; skip an output without statements."""
        text, details = "\n\n".join(collect_texts(output)), self._embedder.details
        if not text:
            return Score.skipped("there is no text to check", details)
        texts = [text, "\n".join(reference)]
        problem = await run_off_loop(len(text), explain_first_unreadable, texts)
        if problem:
            return Score.skipped(f"{problem}, and the local method reads only English; {JUDGE_HINT}", details)
        grounding = await check_grounding(text, reference, self._embedder)
        if grounding is None:
            return Score.skipped("the output makes no statement to check", details)
        details["overall"] = round(grounding.overall, 4)
        if grounding.left_out:
            details["sentences_left_out"] = grounding.left_out
        sentences = grounding.sentences
        if len(sentences) > MAX_LISTED:
            sentences = sorted(sentences, key=grounding.get_value)[:MAX_LISTED]
        details["sentences"] = [sentence.describe() for sentence in sentences]
        return Score(grounding.value, grounding.value >= self._threshold, grounding.explain(), details)


class Sentence(NamedTuple):
    """A sentence of the text: the weight of its words, the supported weight, and the unsupported words."""

    text: str
    weight: float
    supported: float
    unsupported: tuple[str, ...]
    passages: tuple[str, ...]
    is_contradiction: bool = False

    @property
    def support(self) -> float:
        """The fraction of its weight that is supported."""
        return self.supported / self.weight

    def describe(self) -> dict[str, Any]:
        """Return the sentence for the details of a score."""
        return {
            "text": self.text,
            "support": round(self.support, 4),
            "wrong": self.is_contradiction,
            "unsupported": list(self.unsupported),
            "passages": list(self.passages),
        }


class Grounding(NamedTuple):
    """The sentences of a text, its supported fraction, and how many sentences were left out."""

    sentences: Sequence[Sentence]
    overall: float
    left_out: int = 0

    @property
    def weakest(self) -> Sentence:
        """The sentence with the lowest value."""
        return min(self.sentences, key=self.get_value)

    @property
    def value(self) -> float:
        """The value of the weakest sentence."""
        return min(1.0, max(0.0, self.get_value(self.weakest)))

    def get_value(self, sentence: Sentence) -> float:
        """Return the support of a sentence and its surroundings, reduced if it contradicts the context."""
        supported = sentence.supported + SURROUNDING_WEIGHT * self.overall
        value = supported / (sentence.weight + SURROUNDING_WEIGHT)
        return value * WRONG_FACTOR if sentence.is_contradiction else value

    def explain(self) -> str:
        """Return the reason for the score."""
        reason = f"least support {self.value:.2f}"
        if self.weakest.unsupported:
            unsupported_words = ", ".join(self.weakest.unsupported)
            reason += f", in {preview(self.weakest.text)}: not in the context: {unsupported_words}"
        if self.left_out:
            reason += f"; {self.left_out:,} further sentences were not checked"
        return reason


class Denial(NamedTuple):
    """A negation and the words that it denies."""

    word: Word
    denied: tuple[Word, ...]


def find_denials(sentence: Sequence[Word]) -> list[Denial]:
    """Return every negation in a sentence with the words it most likely denies.

    These are the next one or two meaningful words before a function word, or else the last
    meaningful word before the negation.
    """
    denials = []
    for index, word in enumerate(sentence):
        if word.kind != "negation":
            continue
        following = sentence[index + 1 : index + 1 + _NEGATION_REACH]
        # "not only" and "No. 5" deny nothing.
        if following and (
            following[0].text in load_english().not_a_negation_before
            or (word.text == "no" and following[0].kind == "number")
        ):
            continue
        preceding = [other for other in sentence[:index] if other.kind in _MEANINGFUL][-1:]
        denials.append(Denial(word, tuple(_find_denied_after(following) or preceding)))
    return denials


def _find_denied_after(following: Sequence[Word]) -> list[Word]:
    denied: list[Word] = []
    for word in following:
        if word.kind in _MEANINGFUL:
            denied.append(word)
        elif denied and word.text not in load_english().articles:
            break
    return denied[:_MAX_DENIED_WORDS]


def _is_confirmed(denial: Denial, others: Iterable[Denial]) -> bool:
    return any(
        _is_same_word(word, other_word) for other in others for word in denial.denied for other_word in other.denied
    )


def find_stated_words(passage: Sequence[Word], denial: Denial) -> list[Word]:
    """Return the denied words that a passage contains without denying them."""
    return [
        word
        for word in denial.denied
        if any(
            _is_same_word(word, other) and not _may_deny(passage[max(0, index - _NEGATION_REACH) : index])
            for index, other in enumerate(passage)
        )
    ]


def find_denied_words(sentence: Sequence[Word], passage: Sequence[Word]) -> list[Word]:
    """Return the words that a sentence states while a passage only denies them."""
    denials = find_denials(passage)
    if not denials or _may_deny(sentence):
        return []
    if any(_is_confirmed(denial, denials) for denial in find_denials(sentence)):
        return []
    denied = [word for denial in denials for word in denial.denied]
    # A word that occurs twice may be stated in one half of the passage and denied in the other.
    unique = [word for word in denied if sum(_is_same_word(word, other) for other in passage) == 1]
    return [
        word for word in sentence if word.kind in _MEANINGFUL and any(_is_same_word(word, other) for other in unique)
    ]


def _may_deny(words: Iterable[Word]) -> bool:
    return any(word.text in load_english().denial_verbs for word in words)


def _is_same_word(word: Word, other: Word) -> bool:
    return other.kind in _MEANINGFUL and are_related(word.text, other.text)


def find_statement_words(sentence: str) -> list[Word]:
    """Return the words of a sentence, or none if it states nothing."""
    statement = _LIST_NUMBER.sub("", _CITATION.sub(" ", sentence))
    statement = _compile_openings().sub("", statement)
    words = split_words(statement)
    if _is_courtesy(statement, words) or all(word.kind in _EMPTY_KINDS for word in words):
        return []
    if _HEADING.match(sentence) or sentence.isupper():
        # Capitals in headings do not mark names.
        return [word._replace(kind="content") if word.kind == "name" else word for word in words]
    return [word._replace(kind="name") if _is_name(word) else word for word in words]


def _is_name(word: Word) -> bool:
    """Return True for a capitalized word at the start that is not an ordinary English word."""
    if word.kind != "content" or not word.original[0].isupper() or len(word.text) < _MIN_NAME_LETTERS:
        return False
    if word.text in load_english().proper_names:
        return True
    # A rare plural or verb form is not a name: "Felines", "Ferreting".
    return _ORDINARY_END.search(word.text) is None and not is_english_word(word.text)


def _is_courtesy(sentence: str, words: list[Word]) -> bool:
    if len(words) > _MAX_COURTESY_WORDS or any(
        word.kind in ("name", "number") or word.text in _CONTINUATIONS for word in words
    ):
        return False
    plain = fold_case(sentence).replace("’", "'").replace(" n't", "n't")
    start = " ".join([*re.findall(r"[^\W_]+", plain), ""])
    return any(start.startswith(f"{phrase} ") for phrase in load_english().courtesies)


@functools.cache
def _compile_openings() -> re.Pattern[str]:
    alternatives = "|".join(phrase.replace(" ", r"[\s'’]+") for phrase in load_english().openings)
    punctuation = r"(?:[,.!:;–—-]+\s*|$|(?=but\b))(?:but\b)?"
    return re.compile(rf"^\W*(?:(?:{alternatives})\s*{punctuation}\s*)+", re.IGNORECASE)


class Passage:
    """One sentence of the context."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = split_words(text)

    @functools.cached_property
    def content(self) -> frozenset[str]:
        """The content words and names."""
        return frozenset(word.text for word in self.words if word.kind in ("content", "name"))

    @functools.cached_property
    def acronyms(self) -> frozenset[str]:
        """The possible acronyms of its words: "us" for "United States"."""
        initials = [word[0] for word in re.findall(r"\w+", self.text)]
        return frozenset(
            "".join(initials[start : start + length]).lower()
            for length in range(2, _MAX_ACRONYM_LETTERS + 1)
            for start in range(len(initials) - length + 1)
            if initials[start].isupper() and initials[start + length - 1].isupper()
        )


class ContextIndex:
    """The sentences of a context, indexed by their words."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.passages = [Passage(sentence) for text in texts for sentence in split_sentences(text)]
        self._passages_by_word: dict[str, set[int]] = defaultdict(set)
        self._words_by_prefix: dict[str, set[str]] = defaultdict(set)
        for index, passage in enumerate(self.passages):
            for word in passage.words:
                self._passages_by_word[word.text].add(index)
                if word.kind in ("content", "name"):
                    self._words_by_prefix[word.text[:_PREFIX_LETTERS]].add(word.text)
        self._cache: dict[Word, Set[int]] = {}

    def find_passages(self, word: Word) -> Set[int]:
        """Return the indexes of the passages that contain a word or another form of it."""
        indexes = self._cache.get(word)
        if indexes is None:
            indexes = set(self._passages_by_word.get(word.text, ()))
            if word.kind in ("content", "name"):
                for other in self._words_by_prefix.get(word.text[:_PREFIX_LETTERS], ()):
                    if are_related(word.text, other):
                        indexes |= self._passages_by_word[other]
            self._cache[word] = indexes
        return indexes

    def find_best(self, weights: Mapping[Word, float]) -> Sequence[int]:
        """Return the indexes of the few passages that together contain most words, best first."""
        missing, selected = dict(weights), list[int]()
        while missing and len(selected) < MAX_PASSAGES:
            gains = self._compute_gains(missing)
            if not gains:
                break
            # Prefer the shortest of equal passages.
            best = max(gains, key=lambda index: (gains[index], -len(self.passages[index].words), -index))
            selected.append(best)
            missing = {word: weight for word, weight in missing.items() if best not in self.find_passages(word)}
        return selected

    def _compute_gains(self, missing: Mapping[Word, float]) -> Mapping[int, float]:
        """Return the weight of the words in each passage with a distinguishing word."""
        gains: dict[int, float] = defaultdict(float)
        common = []
        for word, weight in missing.items():
            indexes = self.find_passages(word)
            if len(indexes) > COMMON_WORD_PASSAGES:
                common.append((indexes, weight))
                continue
            for index in indexes:
                gains[index] += weight
        if common and not gains:
            # All words are common: take the passages with the rarest word.
            rarest = min((indexes for indexes, _ in common), key=len)
            gains.update(dict.fromkeys(sorted(rarest), 0.0))
        for indexes, weight in common:
            for index in gains.keys() & indexes:
                gains[index] += weight
        return gains


class _Lookup(NamedTuple):
    """A sentence, its passages, and its words that are missing there or contradict them."""

    text: str
    words: list[Word]
    passages: Sequence[Passage]
    missing: list[Word]
    contradictions: list[str]

    @property
    def replaceable(self) -> list[Word]:
        """The missing words that a synonym in the passages may replace."""
        return [word for word in self.missing if word.kind == "content"]

    @property
    def candidates(self) -> set[str]:
        """The words of the passages that may replace missing words."""
        return {text for passage in self.passages for text in passage.content}


async def check_grounding(text: str, context: Sequence[str], embedder: TextEmbedder) -> Grounding | None:
    """Check the statements of a text against a context; return None if there are none."""
    size = len(text) + sum(map(len, context))
    lookups, left_out = await run_off_loop(size, _look_up_sentences, text, context)
    if all(word.kind == "function" for lookup in lookups for word in lookup.words):
        return None
    similarity = await _embed_words(lookups, embedder, size)
    result = await run_off_loop(size, lambda: [_score_sentence(lookup, similarity) for lookup in lookups])
    overall = sum(item.supported for item in result) / sum(item.weight for item in result)
    return Grounding(result, overall, left_out)


def _look_up_sentences(text: str, context: Iterable[str]) -> tuple[list[_Lookup], int]:
    sentences, index = split_sentences(text), ContextIndex(context)
    statements = [(sentence, find_statement_words(sentence)) for sentence in sentences[:MAX_SENTENCES]]
    lookups = [_look_up(sentence, words, index) for sentence, words in statements if words]
    return lookups, max(0, len(sentences) - MAX_SENTENCES)


def _look_up(text: str, words: list[Word], index: ContextIndex) -> _Lookup:
    indexes = index.find_best({word: WEIGHTS[word.kind] for word in words})
    passages = [index.passages[i] for i in indexes]
    passage_words = [word for passage in passages for word in passage.words]
    passage_texts = {word.text for word in passage_words}
    acronyms = {acronym for passage in passages for acronym in passage.acronyms}
    matched = _find_spelled_out(words, passage_words) | find_same_measures(words, passage_words)
    missing = [
        word
        for word in words
        if word.text not in passage_texts
        and not (word.original.isupper() and word.text.lower() in acronyms)
        and word not in matched
        and index.find_passages(word).isdisjoint(indexes)
    ]
    negations, contradictions = _compare_denials(words, passages)
    replaced = [*find_replaced_words(words, passage_words), *find_opposites(words, passage_words)]
    contradictions += [f"{word.original} (not {other.original})" for word, other in replaced]
    changes = find_changed_measures(words, passage_words)
    contradictions += [f"{measure} (not {other})" for measure, other in changes]
    return _Lookup(text, words, passages, missing + negations, contradictions)


def _find_spelled_out(words: Sequence[Word], passage_words: Sequence[Word]) -> set[Word]:
    """Return words that the passages abbreviate: "National Football League" as "NFL"."""
    acronyms = {word.text for word in passage_words if word.original.isupper() and len(word.text) > 1}
    return {
        word
        for acronym in acronyms
        for start in range(len(words) - len(acronym) + 1)
        if "".join(word.text[0] for word in words[start : start + len(acronym)]) == acronym
        for word in words[start : start + len(acronym)]
    }


def _compare_denials(words: Sequence[Word], passages: Sequence[Passage]) -> tuple[list[Word], list[str]]:
    """Return negations that the passages do not confirm, and the contradictions."""
    if not passages:
        return [], []
    passage_denials = [denial for passage in passages for denial in find_denials(passage.words)]
    unconfirmed, contradictions = [], []
    for denial in find_denials(words):
        if _is_confirmed(denial, passage_denials):
            continue
        # A negation that is in no passage already counts as missing.
        if any(denial.word.text == word.text for passage in passages for word in passage.words):
            unconfirmed.append(denial.word)
        stated_words = [word for passage in passages for word in find_stated_words(passage.words, denial)]
        contradictions += [f"{denial.word.original} {word.original}" for word in stated_words]
    contradictions += [f"(not) {word.original}" for word in find_denied_words(words, passages[0].words)]
    return unconfirmed, contradictions


async def _embed_words(lookups: Sequence[_Lookup], embedder: TextEmbedder, size: int) -> VectorSimilarity | None:
    texts = {word.text for lookup in lookups for word in lookup.replaceable if lookup.candidates}
    if embedder.method == "lexical":
        # Warns if there is no embedder. Other forms of the words were found before.
        await embedder.vectors(())
        return None
    if not texts:
        return None
    texts |= {text for lookup in lookups if lookup.replaceable for text in lookup.candidates}
    vectors, floor = await embedder.vectors(texts), await embedder.floor(UNRELATED_WORDS)
    return await run_off_loop(size, VectorSimilarity, vectors, floor)


def _score_sentence(lookup: _Lookup, similarity: VectorSimilarity | None) -> Sentence:
    weight = sum(WEIGHTS[word.kind] for word in lookup.words)
    supported = weight - sum(WEIGHTS[word.kind] for word in lookup.missing)
    unsupported = [word.original for word in lookup.missing if word.kind != "function"]
    candidates = lookup.candidates
    if similarity is not None and candidates:
        replaceable = lookup.replaceable
        nearest = similarity.nearest([word.text for word in replaceable], sorted(candidates))
        for word, word_similarity in zip(replaceable, nearest, strict=True):
            credit = min(1.0, max(0.0, (word_similarity - MIN_SIMILARITY) / (FULL_SIMILARITY - MIN_SIMILARITY)))
            supported += credit * WEIGHTS[word.kind]
            if credit >= 0.5:
                unsupported.remove(word.original)
    if lookup.contradictions:
        supported = min(supported, weight * CONTRADICTED_SUPPORT)
        unsupported += lookup.contradictions
    is_wrong = bool(lookup.contradictions) or any(word.kind in ("number", "name") for word in lookup.missing)
    passages = tuple(passage.text for passage in lookup.passages)
    return Sentence(lookup.text, weight, supported, tuple(dict.fromkeys(unsupported)), passages, is_wrong)
