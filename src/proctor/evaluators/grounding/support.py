"""Measure how much of each sentence of a text a context supports.

A word is supported if it, or another form of it, is in the passages of the context that match the sentence best.
A few features of the words, their order, numbers, names and negations are combined with fixed weights, with the logit
of a cross-encoder for the weakest sentences if its weights are installed. A sentence that has most words of a passage,
but another number, name, unit, polarity or roles, fails.
"""

from __future__ import annotations

import functools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any, NamedTuple

from proctor.evaluators.embeddings import UNRELATED_WORDS, TextEmbedder, VectorSimilarity, run_off_loop
from proctor.evaluators.grounding.clauses import find_added_clause
from proctor.evaluators.grounding.contradictions import (
    are_converse,
    find_changed_measures,
    find_exchanged_comparison,
    find_exchanged_numbers,
    find_moved_numbers,
    find_operands,
    find_opposites,
    find_replaced_words,
    find_same_measures,
    find_units,
)
from proctor.evaluators.grounding.denials import find_polarity_changes
from proctor.evaluators.grounding.doubts import find_doubts
from proctor.evaluators.grounding.features import (
    Features,
    complete_times,
    compute_logit,
    find_added_names,
    find_antonyms,
    find_changed_entities,
    find_exchanged_heads,
    find_exchanged_participants,
    find_exchanged_roles,
    has_same_roles,
    join_split_numbers,
    measure_ending,
    measure_names,
    measure_numbers,
    measure_overlap,
    measure_pairs,
    select_near,
    to_value,
)
from proctor.evaluators.grounding.measures import (
    find_base_words,
    find_changed_bases,
    find_changed_frequencies,
    find_changed_limits,
    find_changed_prices,
    find_changed_rates,
    find_changed_shares,
    find_frequency_words,
)
from proctor.evaluators.grounding.periods import find_exchanged_periods
from proctor.evaluators.grounding.statements import find_statement_words, mark_names
from proctor.evaluators.language import JUDGE_HINT, explain_first_unreadable
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.text.relevance import find_cross_encoder
from proctor.evaluators.tokenizer import Word, WordKind, are_related, collect_texts, split_sentences, split_words
from proctor.models.cross_encoder import CrossEncoder
from proctor.records.score import Score

DEFAULT_THRESHOLD = 0.5
# For texts with more sentences, the details list only the weakest ones.
MAX_LISTED = 100
MAX_SENTENCES = 2000
MAX_SENTENCE_WORDS = 80
MAX_SENTENCE_LENGTH = 1_000
# The method and, without an embedder or a cross-encoder, the model in the details of a score.
METHOD, WORDS = "overlap", "none"
# A cross-encoder scores only the weakest sentences, each with the best passages of up to this many words.
MAX_SCORED_SENTENCES, MAX_EVIDENCE_WORDS = 2, 50
NO_EVIDENCE_LOGIT = -12.0
# A sentence may combine statements from this many passages of the context.
MAX_PASSAGES = 3
# A word in more passages than this does not distinguish them.
COMMON_WORD_PASSAGES = 200
WEIGHTS: Mapping[WordKind, float] = {
    "function": 0.5, "content": 1.0, "number": 2.0, "name": 2.0, "speaker": 2.0, "negation": 2.0,
}  # fmt: skip
# The similarities at which a word gets some credit, and full credit.
MIN_SIMILARITY, FULL_SIMILARITY = 0.25, 0.75
# From this credit on, a word counts as supported; two objects may be the same thing from the second similarity.
MIN_CREDIT, MIN_ALIKE = 0.5, 0.4
# From this share of common content words on, a sentence and its passages are about the same fact.
MIN_OVERLAP = 0.6
# In a context of more passages another one may state the fact as the sentence does: facts are compared only with the
# passage that matches best and its neighbors, and only if it has these shares of the content words.
SHORT_CONTEXT = 6
MIN_LONG_OVERLAP, MIN_JOINT_OVERLAP, MIN_NAME_OVERLAP = 0.7, 0.8, 0.9
# Keeps a sentence with a changed fact below the default threshold.
CHANGED_FACTOR = 0.49

_RANGE_END = re.compile(r"(?<=[0-9]{4}[–/-])[0-9]{2}(?![0-9])")
_VERB_ENDINGS = ("en", "ing", "ings", "ed")
_PREFIX_LETTERS, _MAX_ACRONYM_LETTERS = 3, 6


class GroundingScorer:
    """Scores the support that a context gives to the weakest sentence of the output."""

    def __init__(self, embedder: TextEmbedder | None, threshold: float) -> None:
        self._embedder, self._threshold = embedder, threshold
        self.options = embedder.options if embedder else {}

    async def score(self, output: Any, reference: Sequence[str] = ()) -> Score:
        """Score the support of the weakest sentence; skip an output without statements."""
        text = "\n\n".join(collect_texts(output))
        # The weights were fitted without an embedder.
        encoder = None if self._embedder else find_cross_encoder()
        model = self._embedder.embedder if self._embedder else encoder
        details: dict[str, Any] = {"method": METHOD, "model": model.name if model else WORDS}
        if not text:
            return Score.skipped("there is no text to check", details)
        texts = [text, "\n".join(reference)]
        problem = await run_off_loop(len(text), explain_first_unreadable, texts)
        if problem:
            return Score.skipped(f"{problem}, and the local method reads only English; {JUDGE_HINT}", details)
        grounding = await check_grounding(text, reference, self._embedder, encoder)
        if grounding is None:
            return Score.skipped("the output makes no statement to check", details)
        details["overall"] = round(grounding.overall, 4)
        if grounding.left_out:
            details["sentences_left_out"] = grounding.left_out
        sentences = grounding.sentences
        if len(sentences) > MAX_LISTED:
            sentences = sorted(sentences, key=lambda sentence: sentence.support)[:MAX_LISTED]
        details["sentences"] = [sentence.describe() for sentence in sentences]
        doubts = list(dict.fromkeys(doubt for sentence in grounding.sentences for doubt in sentence.doubts))
        if doubts and grounding.value >= self._threshold:
            return Score.skipped(f"cannot tell: {', and '.join(doubts)}; {JUDGE_HINT}", details)
        return Score(grounding.value, grounding.value >= self._threshold, grounding.explain(), details)


class Sentence(NamedTuple):
    """A sentence of the text: its features, the unsupported words, and the changed facts."""

    text: str
    features: Features
    size: int
    unsupported: tuple[str, ...]
    changes: tuple[str, ...]
    passages: tuple[str, ...]
    # Why its value may be too high: computed numbers, names from passages about something else, what may be unstated.
    doubts: tuple[str, ...] = ()

    @property
    def support(self) -> float:
        """The value of this sentence alone."""
        value = to_value(compute_logit(self.features))
        return value * CHANGED_FACTOR if self.changes else value

    def describe(self) -> dict[str, Any]:
        """Return the sentence for the details of a score."""
        return {
            "text": self.text,
            "support": round(self.support, 4),
            "wrong": bool(self.changes),
            "unsupported": list(dict.fromkeys((*self.unsupported, *self.changes))),
            "passages": list(self.passages),
        }


class Grounding(NamedTuple):
    """The sentences of a text, and how many sentences were left out."""

    sentences: Sequence[Sentence]
    left_out: int = 0

    @property
    def weakest(self) -> Sentence:
        """The sentence with the lowest value."""
        return min(self.sentences, key=lambda sentence: sentence.support)

    @property
    def overall(self) -> float:
        """The value of the mean sentence, by the number of words."""
        size = sum(sentence.size for sentence in self.sentences)
        return to_value(sum(compute_logit(item.features) * item.size for item in self.sentences) / size)

    @property
    def value(self) -> float:
        """The mean of the weakest sentence and of the complete text, reduced if a fact is changed."""
        value = (to_value(min(compute_logit(item.features) for item in self.sentences)) + self.overall) / 2
        return value * CHANGED_FACTOR if any(item.changes for item in self.sentences) else value

    def explain(self) -> str:
        """Return the reason for the score."""
        weakest = self.weakest
        reason = f"support {self.value:.2f}"
        words = dict.fromkeys((*weakest.unsupported, *weakest.changes))
        if words:
            reason += f", least in {preview(weakest.text)}: not in the context: {', '.join(words)}"
        if self.left_out:
            reason += f"; {self.left_out:,} further sentences were not checked"
        return reason


class Passage:
    """One sentence of the context."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = mark_names(split_words(text))
        self.length = len(text.split())

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
        self.passages = [Passage(part) for text in texts for part in _split_text(text)]
        self._passages_by_word: dict[str, set[int]] = defaultdict(set)
        self._words_by_prefix: dict[str, set[str]] = defaultdict(set)
        for index, passage in enumerate(self.passages):
            for word in passage.words:
                self._passages_by_word[word.text].add(index)
                if word.kind in ("content", "name"):
                    self._words_by_prefix[word.text[:_PREFIX_LETTERS]].add(word.text)
        words = [word for passage in self.passages for word in passage.words]
        self._names = {word.text for word in words if word.kind == "name"}
        self._names -= {word.text for word in words if word.kind != "name"}
        self._cache: dict[Word, Set[int]] = {}

    def find_passages(self, word: Word) -> Set[int]:
        """Return the indexes of the passages that contain a word or another form of it."""
        indexes = self._cache.get(word)
        if indexes is None:
            indexes = set(self._passages_by_word.get(word.text, ()))
            if word.kind in ("content", "name"):
                for other in self._words_by_prefix.get(word.text[:_PREFIX_LETTERS], ()):
                    # Bergen is no form of Berg, as "taken" is of "take".
                    is_other_name = word.kind == "name" and other in self._names and _is_inflected(word.text, other)
                    if are_related(word.text, other) and not is_other_name:
                        indexes |= self._passages_by_word[other]
            self._cache[word] = indexes
        return indexes

    def find_common(self, first: Word, second: Word) -> list[int]:
        """Return the indexes of the first passages that contain both words."""
        return sorted(self.find_passages(first) & self.find_passages(second))[:COMMON_WORD_PASSAGES]

    def find_words(self, word: Word) -> list[Sequence[Word]]:
        """Return the words of each passage that has a word."""
        return [self.passages[place].words for place in self.find_passages(word)]

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

    def find_window(self, words: Iterable[Word]) -> Sequence[Passage]:
        """Return the passage that shares the rarest words with a sentence, and its neighbors."""
        counts = {word: len(self.find_passages(word)) for word in words if word.kind in ("content", "name", "number")}
        gains = self._compute_gains({word: math.log1p(len(self.passages) / n) for word, n in counts.items() if n})
        if not gains:
            return []
        best = max(gains, key=lambda index: (gains[index], -len(self.passages[index].words), -index))
        return [self.passages[best], *self.passages[max(0, best - 1) : best], *self.passages[best + 1 : best + 2]]

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


def _is_inflected(name: str, other: str) -> bool:
    short, long = sorted((name, other), key=len)
    return long[len(short) :] in _VERB_ENDINGS


class _Lookup(NamedTuple):
    """A sentence, its passages, and its words that are missing there."""

    text: str
    words: list[Word]
    passages: Sequence[Passage]
    missing: list[Word]
    context_index: ContextIndex
    computed: tuple[str, ...] = ()

    @property
    def replaceable(self) -> list[Word]:
        """The missing words that a synonym in the passages may replace."""
        return [word for word in self.missing if word.kind == "content"]

    @property
    def evidence(self) -> str:
        """A short context, or the best passages in their order up to a number of words."""
        context = self.context_index.passages
        if sum(passage.length for passage in context) <= MAX_EVIDENCE_WORDS:
            return " ".join(passage.text for passage in context)
        selected: list[Passage] = []
        for passage in self.passages:
            if not selected or sum(item.length for item in selected) + passage.length <= MAX_EVIDENCE_WORDS:
                selected.append(passage)
        return " ".join(passage.text for passage in sorted(selected, key=context.index))

    @property
    def candidates(self) -> set[str]:
        """The words of the passages that may replace missing words."""
        return {text for passage in self.passages for text in passage.content}


async def check_grounding(
    text: str, context: Sequence[str], embedder: TextEmbedder | None = None, encoder: CrossEncoder | None = None
) -> Grounding | None:
    """Check the statements of a text against a context; return None if there are none."""
    size = len(text) + sum(map(len, context))
    lookups, left_out = await run_off_loop(size, _look_up_sentences, text, context)
    if all(word.kind == "function" for lookup in lookups for word in lookup.words):
        return None
    similarity = await _embed_words(lookups, embedder, size) if embedder else None
    result = await run_off_loop(size, lambda: [_check_sentence(lookup, similarity) for lookup in lookups])
    if encoder:
        await _add_relations(lookups, result, encoder)
    return Grounding(result, left_out)


async def _add_relations(lookups: Sequence[_Lookup], sentences: list[Sentence], encoder: CrossEncoder) -> None:
    """Score the weakest sentences with their passages by a cross-encoder."""
    weakest = sorted(range(len(sentences)), key=lambda index: sentences[index].support)[:MAX_SCORED_SENTENCES]
    evidence = {index: lookups[index].evidence for index in weakest}
    pairs = {index: (lookups[index].text, text) for index, text in evidence.items() if text}
    logits = dict(zip(pairs, await encoder.score(list(pairs.values())), strict=True))
    for index in weakest:
        features = sentences[index].features.add_relation(logits.get(index, NO_EVIDENCE_LOGIT))
        sentences[index] = sentences[index]._replace(features=features)


def _split_text(text: str) -> list[str]:
    """Split a text into sentences, and longer ones into parts: every word is compared with those of its passages."""
    parts = []
    for sentence in split_sentences(text):
        words = sentence.split()
        if len(words) <= MAX_SENTENCE_WORDS:
            texts = [sentence]
        else:
            starts = range(0, len(words), MAX_SENTENCE_WORDS)
            texts = [" ".join(words[start : start + MAX_SENTENCE_WORDS]) for start in starts]
        # "%2%2%2" has no spaces, but many words.
        parts += [
            text[start : start + MAX_SENTENCE_LENGTH]
            for text in texts
            for start in range(0, len(text), MAX_SENTENCE_LENGTH)
        ]
    return parts


def _look_up_sentences(text: str, context: Iterable[str]) -> tuple[list[_Lookup], int]:
    passages = [join_split_numbers(part) for part in context]
    sentences = _split_text(complete_times(join_split_numbers(text), passages))
    index = ContextIndex(passages)
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
    # Whether the numbers that are computed from others are right is left open, and the rest is compared.
    units = {word: unit.text for word, unit in pairwise(words)}
    operands = {
        word: find_operands(word, passage_words, units.get(word, "")) for word in missing if word.kind == "number"
    }
    computed = tuple(f"{word.original} from {' and '.join(pair)}" for word, pair in operands.items() if pair)
    return _Lookup(text, words, passages, [word for word in missing if not operands.get(word)], index, computed)


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


async def _embed_words(lookups: Sequence[_Lookup], embedder: TextEmbedder, size: int) -> VectorSimilarity | None:
    texts = {word.text for lookup in lookups for word in lookup.replaceable if lookup.candidates}
    # Other forms of the words were found before, so spelling adds nothing.
    if embedder.method == "lexical" or not texts:
        return None
    texts |= {text for lookup in lookups if lookup.replaceable for text in lookup.candidates}
    vectors, floor = await embedder.vectors(texts), await embedder.floor(UNRELATED_WORDS)
    return await run_off_loop(size, VectorSimilarity, vectors, floor)


def _check_sentence(lookup: _Lookup, similarity: VectorSimilarity | None) -> Sentence:
    words, missing = lookup.words, lookup.missing
    near_words = [word for part in select_near(words, [item.words for item in lookup.passages]) for word in part]
    clashes, changed_entities = _compare_facts(lookup)
    credit = _credit_synonyms(lookup, similarity)
    weight = sum(WEIGHTS[word.kind] for word in words)
    unsupported = [word for word in missing if credit.get(word, 0.0) < MIN_CREDIT]
    features = Features(
        coverage=1.0 - sum(WEIGHTS[word.kind] * (1.0 - credit.get(word, 0.0)) for word in missing) / weight,
        ending=measure_ending(words, unsupported),
        precision=sum(bool(lookup.context_index.find_passages(word)) for word in words) / len(words),
        pairs=measure_pairs(words, [passage.words for passage in lookup.passages]),
        speaker=float(any(word.kind == "speaker" for word in missing)),
        number=measure_numbers(missing, near_words),
        name=measure_names(words, missing),
        clash=float(bool(clashes)),
    )
    listed = tuple(dict.fromkeys(word.original for word in unsupported if word.kind != "function"))
    # A context without any of these words says nothing about the clause, however well it supports the others.
    new = [word for word in unsupported if not lookup.context_index.find_passages(word)]
    added = find_added_clause(lookup.text, words, new)
    invented = [word.original for word in added.new_words] if added and added.is_invented else []
    changes = tuple(dict.fromkeys(clashes + changed_entities + invented))
    passages = tuple(passage.text for passage in lookup.passages)
    places = [(passage.text, passage.words) for passage in lookup.passages]
    is_short = len(lookup.context_index.passages) <= SHORT_CONTEXT
    doubts = [f"a number may be computed ({', '.join(lookup.computed)})"] if lookup.computed else []
    are_alike = functools.partial(_are_alike, lookup, similarity) if is_short else None
    doubts += find_doubts(words, new, places, lookup.context_index.find_words, are_alike)
    doubts += [f"the context does not say {preview(added.text)}"] if added else []
    return Sentence(lookup.text, features, len(words), listed, changes, passages, tuple(doubts))


def _compare_facts(lookup: _Lookup) -> tuple[list[str], list[str]]:
    """Describe the contradictions, and list the changed numbers and names, of a sentence and its passages."""
    words, missing = lookup.words, lookup.missing
    if len(lookup.context_index.passages) <= SHORT_CONTEXT:
        near = select_near(words, [passage.words for passage in lookup.passages])
        is_near = measure_overlap(words, [word for part in near for word in part]) >= MIN_OVERLAP
        # The changed word may be the only one that differs.
        is_nearly_same = sum(word.kind == "content" for word in missing) <= 1
        clashes = _find_clashes(lookup, near) if is_near or is_nearly_same else find_exchanged_numbers(words, near)
        new = [word for word in missing if not lookup.context_index.find_passages(word)]
        changed = [*find_changed_entities(words, missing, near), *find_added_names(words, new, near, is_certain=True)]
        return clashes, changed if is_near or _is_bare(words) else []
    near = [passage.words for passage in lookup.context_index.find_window(words)]
    replaceable = find_units(words) | ((find_frequency_words(words) | find_base_words(words)) & set(missing))
    compared = [word for word in words if word not in replaceable]
    overlap = measure_overlap(compared, near[0]) if near else 0.0
    # A sentence may join the facts of neighbors.
    joint_overlap = measure_overlap(compared, [word for part in near for word in part])
    if overlap < MIN_LONG_OVERLAP and joint_overlap < MIN_JOINT_OVERLAP:
        return [], []
    is_close = overlap >= MIN_NAME_OVERLAP or joint_overlap >= MIN_NAME_OVERLAP
    kinds = ("number", "name") if is_close else ("number",)
    # Initials, and the second year of "2018–19", are not facts of their own.
    parts = set(_RANGE_END.findall(lookup.text))
    absent = [
        word
        for word in missing
        if word.kind in kinds
        and not lookup.context_index.find_passages(word)
        and not (word.kind == "name" and len(word.text) == 1)
        and word.original not in parts
    ]
    return _find_clashes(lookup, near), find_changed_entities(words, absent, near)


def _is_bare(words: Sequence[Word]) -> bool:
    """Return True if a sentence has only names and numbers besides function words: "Lyon is in France"."""
    return not any(word.kind == "content" for word in words)


def _credit_synonyms(lookup: _Lookup, similarity: VectorSimilarity | None) -> dict[Word, float]:
    """Return how close each missing word is to a word of the passages."""
    if similarity is None or not lookup.candidates:
        return {}
    nearest = similarity.nearest([word.text for word in lookup.replaceable], sorted(lookup.candidates))
    room = FULL_SIMILARITY - MIN_SIMILARITY
    shares = (min(1.0, max(0.0, (value - MIN_SIMILARITY) / room)) for value in nearest)
    return dict(zip(lookup.replaceable, shares, strict=True))


def _are_alike(lookup: _Lookup, similarity: VectorSimilarity | None, *sides: Sequence[Word]) -> bool:
    """Return True if a word of one side may name the same thing as one of the other: "footwear" and "shoes"."""
    known = ({word.text for word in lookup.replaceable}, lookup.candidates)
    words, others = (sorted({word.text for word in side} & texts) for side, texts in zip(sides, known, strict=True))
    return similarity is not None and max(similarity.nearest(words, others), default=0.0) >= MIN_ALIKE


def _find_clashes(lookup: _Lookup, near: Sequence[Sequence[Word]]) -> list[str]:
    """Describe what passages state otherwise: an opposite, another unit or bound, a negation, other roles."""
    words, index = lookup.words, lookup.context_index
    passage = [word for part in near for word in part]
    pairs = [*find_replaced_words(words, passage), *find_opposites(words, passage), *find_antonyms(words, passage)]
    pairs = [pair for pair in pairs if not any(are_converse(words, part, *pair) for part in near)]
    clashes = [f"{word.original} (not {other.original})" for word, other in pairs]
    measures = [*find_changed_measures(words, passage), *find_changed_rates(words, passage)]
    measures += [*find_changed_limits(words, near), *find_changed_shares(words, passage)]
    passages = [part.words for part in lookup.passages]
    measures += [*find_changed_bases(words, passage), *find_changed_prices(words, [*near, *passages])]
    measures += find_changed_frequencies(words, near, passages)
    clashes += [f"{measure} (not {other})" for measure, other in measures]
    # A passage about something else may have the number.
    clashes += [f"{amount} (not {other})" for amount, other, certain in find_moved_numbers(words, passages) if certain]
    clashes += find_exchanged_periods(words, [*passages, *near], index.find_words)
    # A negation in a neighbor about something else says nothing about the sentence.
    clashes += find_polarity_changes(words, [*near[:1], *select_near(words, near[1:])])
    exchanges = [*(find_exchanged_roles(words, part) for part in near), find_exchanged_participants(words, near)]
    exchanges += [find_exchanged_heads(words, near)]
    pairs_of_words = [
        (left.original, right.original)
        for left, right in dict.fromkeys(filter(None, exchanges))
        # Another passage may say it as the sentence does.
        if not has_same_roles(words, [index.passages[i].words for i in index.find_common(left, right)])
    ]
    numbers = find_exchanged_numbers(words, near)
    if not pairs_of_words and not numbers:
        pairs_of_words += filter(None, (find_exchanged_comparison(words, part) for part in near))
    return clashes + [f"{left} and {right} (exchanged)" for left, right in pairs_of_words] + numbers
