"""Score how coherent a text is, by signs that need no language model.

Each sign is a number from 0 to 1, where 1 is typical of ordinary texts. The worst sign decides.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.embeddings import UNRELATED_TEXTS, TextEmbedder, VectorSimilarity, run_off_loop
from proctor.evaluators.language import JUDGE_HINT, explain_structured
from proctor.evaluators.readable_languages import ENGLISH, explain_unread
from proctor.evaluators.tokenizer import (
    collect_texts,
    fold_case,
    is_complete_sentence,
    load_english,
    split_sentences,
    split_words,
)
from proctor.records.score import Score

# The mean similarity of neighboring sentences in ordinary texts.
ORDINARY_SIMILARITY = 0.22
# Lists, letters and songs repeat up to the first fraction of their words; at the second fraction the sign is 0.
REPETITION_RANGE = (0.25, 0.75)
_REPEATED_WORDS = 4
# The same for sentences that are repeated directly.
STUCK_RANGE = (0.1, 0.5)
# The value of a text that stops or starts in the middle of a sentence.
INCOMPLETE_VALUE = 0.75
# The same for function words before a word that cannot follow them.
STRAY_RANGE = (0.1, 0.35)
# In a text with fewer words, one of them may be all that shows shuffled words.
MIN_ORDERED_WORDS = 150
# With fewer sentences, only a connection below this one is certain: pronouns and causes also connect sentences.
MIN_CONNECTED_SENTENCES, MIN_UNCERTAIN_CONNECTION = 8, 0.25
# Shorter sentences are headings, list numbers or greetings.
_MIN_WORDS = 4
# One stray word may be a quotation or a typing error.
_MIN_STRAYS = 2
# Fewer numbered points in a short text may be no list.
_MIN_POINTS = 3
MAX_COMPARED_SENTENCES = 300
# Prose has more than this fraction of function words.
MIN_FUNCTION_WORDS = 0.05
_POINT_NUMBER = re.compile(r"([0-9]{1,2})[.)](?:\s|\Z)")
_LIST_POINT = re.compile(r"[-*•#>|+]|[0-9A-Za-z]{1,3}[.)]\s")
# "Thank you and best wishes," ends a letter.
_MIN_WORDS_BEFORE_COMMA = 6
_NAMES_A_LETTER = re.compile(
    r"\b(?:answer|option|choice|letter|grade|vitamin|variable|column|point|case)\b", re.IGNORECASE
)
# Hashtags and the closings of letters need no full stop.
_UNPUNCTUATED = re.compile(
    r"#\w+\W*$|\b(?:regards|wishes|sincerely|faithfully|yours|thanks|cheers|love),$", re.IGNORECASE
)

EXPLANATIONS = {
    "connection": "its sentences have little to do with each other",
    "freshness": "it repeats itself",
    "order": "its words are out of order",
    "sequence": "its sentences are out of order",
    "completeness": "it breaks off in the last sentence",
}


class CoherenceSigns(NamedTuple):
    """The signs of coherence; `connection` is None if there is nothing to compare.

    `adjacent_similarities` is the similarity of each sentence to the next, `isolated_sentences` are sentences unlike
    all others, `left_out` counts the sentences at the end that were not compared.
    """

    connection: float | None
    freshness: float
    order: float
    sequence: float
    completeness: float
    adjacent_similarities: tuple[float, ...] = ()
    isolated_sentences: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def signs(self) -> dict[str, float]:
        """The known signs by name."""
        values = {name: getattr(self, name) for name in EXPLANATIONS}
        return {name: value for name, value in values.items() if value is not None}

    def explain(self, threshold: float) -> str:
        """Return the signs below a threshold, the worst first, or all signs if there are none."""
        failed = sorted((value, name) for name, value in self.signs.items() if value < threshold)
        if failed:
            return "; ".join(f"{name} {value:.2f}: {EXPLANATIONS[name]}" for value, name in failed)
        checked = ", ".join(f"{name} {value:.2f}" for name, value in self.signs.items())
        return f"no sign of a problem: {checked}; logic and the order of events are not checked"

    def explain_doubt(self, text: str, threshold: float) -> str:
        """Return why a text is too short to be judged by these signs; "" if it is not."""
        if any(value < threshold for name, value in self.signs.items() if name != "connection"):
            return ""
        is_short = len(self.adjacent_similarities) + 1 < MIN_CONNECTED_SENTENCES
        if is_short and MIN_UNCERTAIN_CONNECTION <= (self.connection or 0.0) < threshold:
            return f"{len(self.adjacent_similarities) + 1} sentences are too few to tell whether they belong together"
        words = len(split_words(text))
        if words < MIN_ORDERED_WORDS and _count_stray_words(split_sentences(text))[1]:
            return f"{words} words are too few to tell whether their order is wrong or only unusual"
        return ""


class CoherenceScorer:
    """Scores how coherent the output is."""

    def __init__(self, embedder: TextEmbedder, threshold: float) -> None:
        self._embedder, self._threshold = embedder, threshold
        self.options = embedder.options

    async def score(self, output: Any) -> Score:
        """Score the worst sign; skip texts that are not prose."""
        text, details = "\n\n".join(collect_texts(output)), self._embedder.details
        if not text:
            return Score(0.0, False, "the output is empty", details)
        # The signs know only English, whatever the embedder reads. A word of another language counts once, however
        # often its sentence is repeated.
        problem = await run_off_loop(len(text), lambda: explain_unread([_drop_repeated(text)], (ENGLISH,)))
        if problem:
            return Score.skipped(f"{problem}, and the local method reads only English; {JUDGE_HINT}", details)
        if problem := await run_off_loop(len(text), explain_not_prose, text):
            return Score.skipped(problem, details)
        result = await find_signs(text, self._embedder)
        details["signs"] = result.signs
        if result.adjacent_similarities:
            details["neighbours"] = [round(similarity, 3) for similarity in result.adjacent_similarities]
        if result.isolated_sentences:
            details["strangers"] = list(result.isolated_sentences)
        if problem := await run_off_loop(len(text), result.explain_doubt, text, self._threshold):
            return Score.skipped(f"{problem}; {JUDGE_HINT}", details)
        reason = result.explain(self._threshold)
        if result.left_out:
            details["sentences_left_out"] = result.left_out
            reason += f"; the last {result.left_out:,} sentences were not compared"
        value = min(result.signs.values())
        return Score(value, value >= self._threshold, reason, details)


def _drop_repeated(text: str) -> str:
    sentences = split_sentences(text)
    distinct = dict.fromkeys(sentences)
    # Sentences have lost the layout, which shows that a text is code.
    return text if len(distinct) == len(sentences) else "\n".join(distinct)


def explain_not_prose(text: str) -> str:
    """Return why a text is not prose: it is data or markup, or it has too few function words."""
    return explain_structured(text) or ("" if is_prose(text) else "it is not prose")


def is_prose(text: str) -> bool:
    """Return True if a text has as many function words as prose."""
    english = load_english()
    text_words = [word.text for word in split_words(text) if word.kind != "number"]
    function_words = english.function | english.negation | english.speaker | english.deferral_words
    return sum(word in function_words for word in text_words) > MIN_FUNCTION_WORDS * len(text_words)


async def find_signs(text: str, embedder: TextEmbedder) -> CoherenceSigns:
    """Find the signs of coherence in a text; the connection needs an embedder."""
    result, passages = await run_off_loop(len(text), _find_lexical_signs, text)
    if embedder.method == "lexical" or len(passages) < 2:
        # Warns if there is no embedder.
        await embedder.vectors(())
        return result
    compared = passages[:MAX_COMPARED_SENTENCES]
    vectors, floor = await embedder.vectors(compared), await embedder.floor(UNRELATED_TEXTS)
    similarity = await run_off_loop(len(text), VectorSimilarity, vectors, floor)
    adjacent_similarities = tuple(similarity(*pair) for pair in pairwise(compared))
    distinct = list(dict.fromkeys(compared))
    nearest = await run_off_loop(len(text), similarity.nearest_other, distinct)
    isolated_passages = {
        passage for passage, nearest_similarity in zip(distinct, nearest, strict=True) if not nearest_similarity
    }
    return result._replace(
        connection=min(1.0, sum(adjacent_similarities) / len(adjacent_similarities) / ORDINARY_SIMILARITY),
        adjacent_similarities=adjacent_similarities,
        isolated_sentences=tuple(passage for passage in compared if passage in isolated_passages),
        left_out=len(passages) - len(compared),
    )


def _find_lexical_signs(text: str) -> tuple[CoherenceSigns, list[str]]:
    sentences, passages = split_sentences(text), split_passages(text)
    freshness, order = _score_freshness(text, sentences), _score_order(sentences)
    sequence, completeness = _score_sequence(text, passages), _score_completeness(sentences)
    return CoherenceSigns(None, freshness, order, sequence, completeness), passages


def split_passages(text: str) -> list[str]:
    """Split a text into sentences; very short sentences are joined with the next."""
    passages: list[str] = []
    pending = ""
    for sentence in split_sentences(text):
        pending = f"{pending} {sentence}".strip()
        if len(split_words(pending)) >= _MIN_WORDS:
            passages.append(pending)
            pending = ""
    if pending:
        passages[-1:] = [f"{passages[-1]} {pending}"] if passages else [pending]
    return passages


def _score_freshness(text: str, sentences: Sequence[str]) -> float:
    """Return less than 1 if the same words, or the same sentence in a row, are repeated again and again."""
    text_words = [word.text for word in split_words(text)]
    runs = Counter(zip(*(text_words[start:] for start in range(_REPEATED_WORDS)), strict=False))
    if not runs:
        return 1.0
    repeated_fraction = sum(a == b for a, b in pairwise(sentences)) / len(sentences)
    repeated = 1.0 - len(runs) / runs.total()
    return min(_interpolate(repeated, *REPETITION_RANGE), _interpolate(repeated_fraction, *STUCK_RANGE))


def _count_stray_words(sentences: Sequence[str]) -> tuple[int, int]:
    """Count the words after which some words cannot follow, and those that one of them follows."""
    count, strays, never_after = 0, 0, _load_word_order()
    for sentence in sentences:
        # Punctuation separates words, so it stays a token.
        originals = re.findall(r"\w+|[^\w\s]", sentence)
        tokens = [*map(fold_case, originals), "."]
        for place, (word, following) in enumerate(pairwise(tokens)):
            if word in never_after:
                count += 1
                # "The if statement", "the WHERE part".
                is_keyword = _is_keyword(*originals[place + 1 : place + 3])
                strays += following in never_after[word] and not is_keyword
    return count, strays


def _is_keyword(word: str = "", following: str = "") -> bool:
    """Return True if a word is the name of a part of a program: "the WHERE part", "an if statement"."""
    keywords = _load_keywords()
    return word in keywords["capitals"] or (word in keywords["words"] and fold_case(following) in keywords["parts"])


@functools.cache
def _load_keywords() -> dict[str, frozenset[str]]:
    return {name: frozenset(text.split()) for name, text in load_data("text", "keywords.yaml").items()}


@functools.cache
def _load_word_order() -> dict[str, frozenset[str]]:
    groups = load_data("text", "word_order.yaml")
    return {
        word: frozenset([*group["never"].split(), *group.get("punctuation", "")])
        for group in groups
        for word in group["after"].split()
    }


def _score_order(sentences: Sequence[str]) -> float:
    """Return less than 1 if words precede others that cannot follow them, as in shuffled text."""
    count, strays = _count_stray_words(sentences)
    return 1.0 if strays < _MIN_STRAYS else _interpolate(strays / count, *STRAY_RANGE)


def _score_sequence(text: str, passages: Sequence[str]) -> float:
    """Return less than 1 if a count runs backwards, or the text starts with its conclusion."""
    lists = _list_points(text)
    is_long = len(passages) >= _MIN_WORDS
    if (is_long or sum(map(len, lists)) >= _MIN_POINTS) and any(map(is_out_of_order, lists)):
        return INCOMPLETE_VALUE
    if not is_long:
        return 1.0
    english = load_english()
    first_half = passages[: len(passages) // 2]
    is_concluded = any(_starts_with(passage, english.conclusions) for passage in first_half)
    return INCOMPLETE_VALUE if is_concluded or _starts_with(passages[0], english.back_references) else 1.0


def _list_points(text: str) -> list[list[int]]:
    """Return the numbers of the points of a text; a list may go on with any number after a line that introduces it."""
    lists: list[list[int]] = [[]]
    before = ""
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        matches = map(_POINT_NUMBER.match, split_sentences(line))
        numbers = [int(match[1]) for match in matches if match]
        # Text that belongs to a point is indented, follows the point directly, or has empty lines around it.
        is_paragraph = bool(line) and not line[0].isspace() and not numbers
        is_heading = line.rstrip().endswith(":") or not is_complete_sentence(line)
        is_introduction = is_heading or (not before.strip() and bool(following.strip()))
        if is_paragraph and is_introduction and 1 in lists[-1]:
            lists.append([])
        lists[-1] += numbers
        before = line
    return lists


def is_out_of_order(numbers: Sequence[int]) -> bool:
    """Return True if the points of a list, or of lists inside and after it, are out of order."""
    # No list starts with its second point.
    if 1 in numbers and numbers[0] > 1:
        return True
    last_points: list[int] = []
    for number in numbers:
        if number == 1 or not last_points:
            last_points.append(number)
            continue
        # A list inside another one ends where the outer list goes on.
        while len(last_points) > 1 and number <= last_points[-1]:
            last_points.pop()
        if number <= last_points[-1]:
            return True
        last_points[-1] = number
    return False


def _starts_with(sentence: str, phrases: Sequence[str]) -> bool:
    start = f"{' '.join(word.text for word in split_words(sentence)[:4])} "
    return any(start.startswith(f"{phrase} ") for phrase in phrases)


def _score_completeness(sentences: Sequence[str]) -> float:
    """Return less than 1 if the last sentence is incomplete, or lacks a full stop that other sentences have."""
    if sentences and _is_truncated(sentences[-1]):
        return INCOMPLETE_VALUE
    if len(sentences) < 2:
        return 1.0
    *others, last = sentences
    if len(split_words(last)) < _MIN_WORDS or _UNPUNCTUATED.search(last):
        return 1.0
    is_point = bool(_LIST_POINT.match(last))
    similar = [sentence for sentence in others if bool(_LIST_POINT.match(sentence)) == is_point]
    is_punctuated = sum(map(is_complete_sentence, similar)) > len(similar) / 2
    return INCOMPLETE_VALUE if is_punctuated and not is_complete_sentence(last) else 1.0


def _is_truncated(sentence: str) -> bool:
    """Return True if a sentence ends with a comma, or with a word that must be followed by another."""
    stripped = sentence.rstrip("*_ \t")
    sentence_words = split_words(stripped)
    if is_complete_sentence(stripped) or stripped.startswith("#") or len(sentence_words) < 2:
        return False
    if stripped.endswith(","):
        return len(sentence_words) >= _MIN_WORDS_BEFORE_COMMA and not _LIST_POINT.match(stripped)
    last, english = sentence_words[-1], load_english()
    if not last.original.islower() or not stripped.endswith(last.original):
        return False
    if last.text == "a" and _NAMES_A_LETTER.search(stripped):
        return False
    if last.text in english.continuations_outside_clauses:
        return english.clause_starters.isdisjoint(word.text for word in sentence_words)
    return last.text in english.continuations


def _interpolate(value: float, start: float, end: float) -> float:
    """Return 1 up to `start`, 0 at `end` or above, and interpolate linearly between them."""
    return min(1.0, max(0.0, (end - value) / (end - start)))
