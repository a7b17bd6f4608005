"""Find which of several texts is closest in meaning, comparing whole texts or excerpts."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.evaluators.data_files import load_patterns
from proctor.evaluators.embeddings import TextEmbedder, cosine, run_off_loop
from proctor.evaluators.grounding.denials import find_denials
from proctor.evaluators.language import EMBEDDER_OR_JUDGE_HINT, JUDGE_HINT, explain_unreadable, find_symbols, is_code
from proctor.evaluators.plain_values import to_plain
from proctor.evaluators.readable_languages import ENGLISH, identify_language, is_plainly_english
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.text.differences import (
    DOUBT,
    UNCLEAR,
    Difference,
    find_difference,
    find_other_digits,
    find_other_exception,
    find_other_number,
    find_other_sentence,
)
from proctor.evaluators.text.embedder_choice import EmbedderChoice
from proctor.evaluators.text.negations import ONLY_LISTED, explain_other_negation, find_other_name, find_other_word
from proctor.evaluators.text.opposites import find_replaced_phrase, mean_same
from proctor.evaluators.text.similarity_value import (
    MINILM,
    SimilarityValue,
    are_synonyms,
    get_ngrams,
    is_phrase,
    measure_similarity,
)
from proctor.evaluators.tokenizer import (
    are_related,
    collect_texts,
    fold_case,
    load_english,
    split_sentences,
    split_words,
)
from proctor.records import codec
from proctor.records.score import Score

# Longer references are compared only with the complete text.
MAX_REFERENCE_WORDS = 12
# Excerpts are taken from texts with at least this multiple of the words of the reference.
MIN_LENGTH_RATIO = 1.5
# Excerpts come from the start of a text only.
MAX_CHARACTERS = 200_000
# An excerpt may have this many words fewer or more than the reference.
_FEWER_WORDS, _MORE_WORDS = 1, 2
# A negation denies this many words after it, in the same clause.
_NEGATION_REACH = 4
# Words that deny a reference are at most this many characters away.
_DOUBT_REACH = 80
_CLAUSE_END = re.compile(r"[.!?;:,\n]+(?=\s|\Z)")
_NEGATION_ENDS = frozenset({"but", "only"})
# With more references, embed only those most similar to the answer.
MAX_REFERENCES = 8
# The maximum fraction of words unknown to the embedder: in both texts, or in only one.
MAX_UNKNOWN, MAX_UNKNOWN_ON_ONE_SIDE = 0.05, 0.4
SAME_VECTOR = 1 - 1e-6
# A changed fact multiplies the value, so that it stays below the default threshold and pairs keep their order.
CHANGED_FACT_FACTOR = 0.75
# Of phrases that replace each other in a sentence and are not listed, those with a lower cosine by `local:minilm` are
# rarely synonyms: of 40 everyday paraphrases and 40 opposites written after the lists, 6 and 16 are skipped at this
# mark, and 3 and 6 at 0.34, so that a lower mark lets three opposites pass for each paraphrase.
MIN_SYNONYM_COSINE = 0.42
# Changed facts are looked for in texts up to this length.
MAX_FACT_CHARACTERS = 5_000
NOTHING_EXPECTED = "there is nothing to compare with: the expected value is empty"

Match = Literal["any"]
# A reference with its index in the list of references.
IndexedText = tuple[int, str]


class Excerpt(NamedTuple):
    """Some words of a text, the index of the reference that they resemble, and their similarity."""

    similarity: float
    text: str
    reference: int


def find_excerpts(text: str, references: Iterable[IndexedText], limit: int = 2) -> list[Excerpt]:
    """Return the excerpts of a text that are spelled most like one of the references.

    Words after a negation ("not Paris") are not an excerpt, unless the reference has a negation.
    """
    text_words, negated = _split_and_find_negated(text)
    excerpts = []
    for index, reference in references:
        reference_words = [word.text for word in split_words(reference)]
        excluded_indexes = frozenset[int]() if _has_negation(reference_words) else negated
        similarity, excerpt = _find_best_window(text_words, reference_words, excluded_indexes)
        if similarity > 0:
            excerpts.append(Excerpt(similarity, excerpt, index))
    return sorted(excerpts, key=lambda excerpt: -excerpt.similarity)[:limit]


def is_denied(answer: str, reference: str) -> bool:
    """Return True if a short answer denies a word of a reference without negation: "It does not work", "It works"."""
    words, reference_words = split_words(answer), split_words(reference)
    if len(words) > MAX_REFERENCE_WORDS or any(word.kind == "negation" for word in reference_words):
        return False
    content = [word.text for word in reference_words if word.kind == "content"]
    denied = [word.text for denial in find_denials(words) for word in denial.denied if word.kind == "content"]
    return any(are_related(text, other) for text in denied for other in content)


def is_negated(text: str, reference: str) -> bool:
    """Return True if a text contains a reference, but only after negations."""
    text_words, negated = _split_and_find_negated(text)
    reference_words = [word.text for word in split_words(reference)]
    if not negated or not reference_words or _has_negation(reference_words):
        return False
    size = len(reference_words)
    starts = [
        start
        for start, word in enumerate(text_words)
        if word == reference_words[0] and text_words[start : start + size] == reference_words
    ]
    return bool(starts) and negated.issuperset(starts)


def is_doubted(text: str, excerpt: str) -> bool:
    """Return True if every sentence of a text with an excerpt denies it, or leaves it open: "Paris? No, Lyon."."""
    patterns = load_patterns("text", "denied_references.yaml")
    words = r"\W+".join(map(re.escape, excerpt.split()))
    spelling = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
    text = text[:MAX_CHARACTERS].replace("’", "'")
    doubts = []
    for match in spelling.finditer(text):
        before = re.split(r"[.!?;\n]\s", text[max(0, match.start() - _DOUBT_REACH) : match.start()])[-1]
        after = text[match.end() : match.end() + _DOUBT_REACH]
        is_belief = patterns["belief"].search(before) and patterns["contrast"].match(after)
        doubts.append(bool(patterns["before"].search(before) or patterns["after"].match(after) or is_belief))
    return bool(doubts) and all(doubts)


def _split_and_find_negated(text: str) -> tuple[list[str], frozenset[int]]:
    """Return the words of a text, and the indexes of words after a negation in their clause."""
    text_words: list[str] = []
    negated: set[int] = set()
    for clause in _CLAUSE_END.split(text[:MAX_CHARACTERS]):
        remaining = 0
        for word in split_words(clause):
            if word.text in _NEGATION_ENDS:
                remaining = 0
            if remaining:
                negated.add(len(text_words))
                remaining -= 1
            if word.kind == "negation":
                remaining = _NEGATION_REACH
            text_words.append(word.text)
    return text_words, frozenset(negated)


def _has_negation(words: Iterable[str]) -> bool:
    return not load_english().negation.isdisjoint(words)


def select_short_references(text: str, references: Iterable[IndexedText]) -> list[IndexedText]:
    """Return the references that are short compared with a text."""
    length = len(split_words(text[:MAX_CHARACTERS]))
    sizes = [(len(split_words(reference)), index, reference) for index, reference in references]
    return [
        (index, reference)
        for size, index, reference in sizes
        if 0 < size <= MAX_REFERENCE_WORDS and length >= MIN_LENGTH_RATIO * size
    ]


def _find_best_window(
    text_words: Sequence[str], reference_words: Sequence[str], negated: frozenset[int]
) -> tuple[float, str]:
    """Return the spelling similarity of the best excerpt to the reference, and the excerpt."""
    ngrams = frozenset[str]().union(*map(get_ngrams, reference_words))
    best, excerpt = 0.0, ""
    # The most promising windows first, so that the loop can stop early.
    windows = sorted(_list_windows(text_words, ngrams, len(reference_words)))
    for negative_bound, size, start in windows:
        if -negative_bound <= best:
            break
        if start in negated:
            continue
        window = text_words[start : start + size]
        window_ngrams = frozenset[str]().union(*map(get_ngrams, window))
        similarity = len(window_ngrams & ngrams) / math.sqrt(len(window_ngrams) * len(ngrams))
        if similarity > best:
            best, excerpt = similarity, " ".join(window)
    return best, excerpt


def _list_windows(
    text_words: Sequence[str], ngrams: frozenset[str], reference_size: int
) -> Iterator[tuple[float, int, int]]:
    """Yield the windows to compare: minus the highest possible similarity, size, start."""
    shared_by_word = {word: len(get_ngrams(word) & ngrams) for word in set(text_words)}
    shared = [shared_by_word[word] for word in text_words]
    for size in range(max(1, reference_size - _FEWER_WORDS), reference_size + _MORE_WORDS + 1):
        for start in range(len(text_words) - size + 1):
            end = start + size
            # Without a shared n-gram at both ends, a shorter window is as good.
            if shared[start] and shared[end - 1]:
                bound = min(len(ngrams), sum(shared[start:end]))
                yield -math.sqrt(bound / len(ngrams)), size, start


class SimilarityMatch(NamedTuple):
    """The nearest answer and reference by index, and the excerpt if it is nearer than the whole text."""

    similarity: SimilarityValue
    answer: int
    reference: int
    excerpt: str = ""


class SimilarityScorer:
    """Compares the output with references by the cosine of their embeddings."""

    def __init__(
        self, choice: EmbedderChoice, threshold: float, use_excerpts: bool | None, match: Match | None = None
    ) -> None:
        self._choice, self._threshold, self._use_excerpts = choice, threshold, use_excerpts
        self._match = match
        self.options = choice.default.options

    async def score(self, output: Any, reference: Any = None) -> Score:
        """Score the cosine of the nearest two texts; lists of texts are compared item by item."""
        outputs = None if self._match == "any" else list_texts(output)
        if outputs is None:
            return await self._score_nearest(output, reference)
        references = list_texts(reference)
        if references is None:
            return await self._score_nearest("\n".join(outputs), reference)
        if len(outputs) != len(references):
            reason = f"{len(outputs)} texts, expected {len(references)}"
            return Score(0.0, False, reason, self._choice.default.details)
        if not references:
            return Score.skipped(NOTHING_EXPECTED)
        # Together, so that their texts share a batch.
        scores = await asyncio.gather(*map(self._score_nearest, outputs, references))
        undecided_score = next((score for score in scores if not score.ok), None)
        # A failed item decides, even if other items could not be compared.
        if undecided_score is not None and all(score.passed for score in scores if score.ok):
            return undecided_score
        _, index = min((score.value or 0.0, index) for index, score in enumerate(scores) if score.ok)
        return msgspec.structs.replace(scores[index], reason=f"item {index}: {scores[index].reason}")

    async def _score_nearest(self, output: Any, reference: Any) -> Score:
        answers, references = index_texts(output), index_texts(reference)
        if not references:
            return Score.skipped(NOTHING_EXPECTED)
        if not answers:
            return Score(0.0, False, "the output is empty", self._choice.default.details)
        if same := set(answers.values()) & set(references.values()):
            details = self._choice.default.details | {"cosine": 1.0}
            return Score(1.0, True, f"identical to {preview(min(same))}", details)
        size = sum(map(len, (*answers.values(), *references.values())))
        contents = find_texts_in_data(output), find_texts_in_data(reference)
        embedder = await run_off_loop(size, self._choice.select, *contents)
        details = embedder.details
        problem, partial_problem = self._drop_unreadable_texts(embedder, answers, references, output, reference)
        if problem:
            return Score.skipped(problem, details)
        match = await find_nearest(answers, references, embedder, self._use_excerpts)
        answer, nearest = answers[match.answer], references[match.reference]
        self._describe(details, match, answers, references)
        problem = self._explain_indistinct(embedder, match.similarity, match.excerpt or answer, nearest)
        if problem:
            return Score.skipped(problem, details)
        score = self._make_score(embedder, match, answer, nearest, details)
        if score.passed and (is_negated(answer, nearest) or (match.excerpt and is_denied(answer, nearest))):
            return Score.skipped(f"the output has {preview(nearest)} only after a negation", details)
        if score.passed and match.excerpt and is_doubted(answer, match.excerpt):
            return Score.skipped(f"the output may deny {preview(nearest)}, or leave it open", details)
        is_excerpt = bool(match.excerpt)
        if score.passed and (problem := explain_other_negation(answer, nearest, is_excerpt=is_excerpt)):
            return Score.skipped(problem, details)
        if score.passed and not match.excerpt and (problem := await _explain_replaced(embedder, answer, nearest)):
            return Score.skipped(problem, details)
        # An unreadable text might have matched.
        return Score.skipped(partial_problem, details) if partial_problem and not score.passed else score

    def _describe(
        self, details: dict[str, Any], match: SimilarityMatch, answers: Mapping[int, str], references: Mapping[int, str]
    ) -> None:
        details["cosine"] = match.similarity.cosine
        if match.similarity.words is not None:
            details["words"] = match.similarity.words
        if len(answers) > 1:
            details["answer"] = match.answer
        longest = max(map(len, answers.values()))
        if self._use_excerpts is not False and longest > MAX_CHARACTERS:
            details["characters_without_excerpts"] = longest - MAX_CHARACTERS
        if len(references) > 1:
            details["reference"] = match.reference

    def _make_score(
        self, embedder: TextEmbedder, match: SimilarityMatch, answer: str, reference: str, details: dict[str, Any]
    ) -> Score:
        excerpt = ""
        if match.excerpt:
            details["excerpt"] = match.excerpt
            excerpt = f" of {preview(match.excerpt)} in it"
        method = "letters only: cosine" if embedder.method == "lexical" else "cosine"
        similarity = match.similarity
        reason = f"{method} {similarity.cosine:.3f}{excerpt} with {preview(reference)}"
        if similarity.words is not None:
            reason += f", {similarity.words:.0%} of its words"
        value = similarity.value
        if value >= CHANGED_FACT_FACTOR * self._threshold and (change := _find_change(match, answer, reference)):
            details["difference"] = change._asdict()
            if change.kind in (DOUBT, UNCLEAR) and value >= self._threshold:
                return Score.skipped(f"cannot tell: {change}; {EMBEDDER_OR_JUDGE_HINT}", details)
            value *= CHANGED_FACT_FACTOR
            reason = f"{change}; {reason}"
        elif value >= self._threshold and not _are_english(answer, reference):
            reason += f"; {ONLY_LISTED}"
        return Score(value, value >= self._threshold, reason, details)

    def _drop_unreadable_texts(
        self, embedder: TextEmbedder, answers: dict[int, str], references: dict[int, str], output: Any, reference: Any
    ) -> tuple[str, str]:
        """Remove texts that the embedder cannot read.

        Return the problem if no text is left, and the first problem of the removed texts.
        """
        first_problem = ""
        for texts, value in ((answers, output), (references, reference)):
            is_list = list_texts(value) is not None
            for index in list(texts):
                contents = [texts[index]] if is_list else find_texts_in_data(value)
                problem = self._choice.explain_unreadable(embedder, contents)
                if problem:
                    first_problem = first_problem or problem
                    del texts[index]
            if not texts:
                return first_problem, first_problem
        return "", first_problem

    def _explain_indistinct(
        self, embedder: TextEmbedder, similarity: SimilarityValue, text: str, reference: str
    ) -> str:
        """Return why the embedder cannot distinguish two different texts; "" if it can."""
        if similarity.value < self._threshold:
            return ""
        name = embedder.embedder.name
        left, right = map(embedder.unknown_words, (text, reference))
        if left != right:
            share = max(_share_of_words(left, text), _share_of_words(right, reference))
            if share >= (MAX_UNKNOWN if left and right else MAX_UNKNOWN_ON_ONE_SIDE):
                unknown_words = ", ".join(sorted(left ^ right)[:5])
                return f"{name} does not know {unknown_words}; {EMBEDDER_OR_JUDGE_HINT}"
        if similarity.cosine > SAME_VECTOR and _list_tokens(text) != _list_tokens(reference):
            return f"{name} gives these different texts the same vector; {EMBEDDER_OR_JUDGE_HINT}"
        return ""


async def _explain_replaced(embedder: TextEmbedder, answer: str, reference: str) -> str:
    """Return why one phrase that replaces another may not mean the same; "" if it may, or more is different."""
    if embedder.embedder.name != MINILM or max(len(answer), len(reference)) > MAX_FACT_CHARACTERS:
        return ""
    # A phrase may name the same thing with another word.
    if is_phrase(reference) or any(len(split_sentences(text)) != 1 for text in (answer, reference)):
        return ""
    phrases = find_replaced_phrase(split_words(answer), split_words(reference))
    if phrases is None or are_synonyms(*phrases) or mean_same(fold_case(phrases[0]), fold_case(phrases[1])):
        return ""
    vectors = await embedder.vectors(phrases)
    if cosine(*(vectors[phrase] for phrase in phrases)) >= MIN_SYNONYM_COSINE:
        return ""
    return f"cannot tell whether {phrases[0]!r} means the same as {phrases[1]!r}; {JUDGE_HINT}"


def _are_english(answer: str, reference: str) -> bool:
    sides = [side[:MAX_FACT_CHARACTERS] for side in (answer, reference)]
    text = "\n".join(sides)
    if not explain_unreadable(text):
        return True
    # Words of short English sentences are also words of other languages, and count twice here: "ten" is Polish.
    is_english = is_plainly_english(text) or not any(map(explain_unreadable, sides))
    return is_english and not is_code(text) and {*map(identify_language, sides)} == {ENGLISH}


def _find_change(match: SimilarityMatch, answer: str, reference: str) -> Difference | None:
    """Return the fact in which two texts differ; in other languages than English, a number or a listed word."""
    if max(len(answer), len(reference)) > MAX_FACT_CHARACTERS:
        return None
    if _are_english(answer, reference):
        change = _find_english_change(match, answer, reference)
    else:
        change = find_other_digits(match.excerpt or answer, reference)
        if change is None and not match.excerpt and (name := find_other_name(answer, reference)):
            change = Difference("name" if name.is_certain else UNCLEAR, name.output, name.reference)
    if change is None and (other := find_other_word(answer, reference, is_excerpt=bool(match.excerpt))):
        change = Difference("word" if other.is_certain else UNCLEAR, other.output, other.reference)
    return change


def _find_english_change(match: SimilarityMatch, answer: str, reference: str) -> Difference | None:
    if not match.excerpt:
        return find_difference(answer, reference)
    # "All of them but Saturn" contains "all of them"; in a longer text, an exception may be to something else.
    is_sentence = len(split_sentences(answer)) == 1
    change = (
        (find_other_exception(answer, reference) or find_other_sentence(answer, reference)) if is_sentence else None
    )
    return change or find_other_number(answer, reference)


def _share_of_words(unknown_words: Collection[str], text: str) -> float:
    return len(unknown_words) / max(1, len(text.split()))


def _list_tokens(text: str) -> list[str]:
    return sorted([*re.findall(r"\w+", fold_case(text)), *find_symbols(text)])


def list_texts(value: Any) -> list[str] | None:
    """Return a list of strings; None for any other value."""
    value = to_plain(value)
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return list(value)
    return None


def find_texts_in_data(value: Any) -> list[str]:
    """Return the strings in a value, including those inside mappings and JSON."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return [value]
    texts = list_texts(value)
    return ["\n".join(collect_texts(codec.to_plain(value)))] if texts is None else texts


def index_texts(value: Any) -> dict[int, str]:
    """Return the texts in a value by index: a string, each string of a list, or other values as JSON.

    Empty strings are left out, because they have no meaning and endpoints reject them.
    """
    if value is None:
        return {}
    texts = list_texts(value)
    if texts is None:
        value = to_plain(value)
        texts = [value if isinstance(value, str) else codec.encode_canonical(value).decode()]
    return {index: text for index, text in enumerate(texts) if text.strip()}


async def find_nearest(
    answers: Mapping[int, str], references: Mapping[int, str], embedder: TextEmbedder, use_excerpts: bool | None = None
) -> SimilarityMatch:
    """Compare every answer with the references that are spelled most like it.

    `use_excerpts` compares excerpts of the answers too: always, never, or (None) only for short
    references in longer answers.
    """
    pairs: list[tuple[int, str, int]] = []
    for index, text in answers.items():
        size = len(text) + sum(map(len, references.values()))
        pairs += await run_off_loop(size, _list_pairs, index, text, references, use_excerpts)
    compared = {excerpt or answers[index] for index, excerpt, _ in pairs}
    vectors = await embedder.vectors([*compared, *(references[reference] for *_, reference in pairs)])
    matches = []
    for index, excerpt, reference in pairs:
        text = references[reference]
        similarity = cosine(vectors[excerpt or answers[index]], vectors[text])
        value = measure_similarity(embedder.embedder.name, similarity, answers[index], text)
        matches.append(SimilarityMatch(value, index, reference, excerpt))
    # The cosine decides between pairs of the same value.
    return max(matches, key=lambda match: match.similarity[:2])


def _list_pairs(
    index: int, text: str, references: Mapping[int, str], use_excerpts: bool | None
) -> list[tuple[int, str, int]]:
    """Return the pairs to compare: the index of the answer, an excerpt or "", the index of the reference."""
    selected = list(references)
    if len(references) > MAX_REFERENCES:
        similar = [excerpt.reference for excerpt in find_excerpts(text, references.items(), MAX_REFERENCES)]
        selected = list(dict.fromkeys([*similar, *references]))[:MAX_REFERENCES]
    candidates = [(reference, references[reference]) for reference in selected]
    if use_excerpts is None:
        candidates = select_short_references(text, candidates)
    excerpts = [] if use_excerpts is False else find_excerpts(text, candidates)
    pairs = [(index, "", reference) for reference in selected]
    return pairs + [(index, excerpt.text, excerpt.reference) for excerpt in excerpts]
