"""Count the sentences of a text, or say between which numbers their count lies.

A model of English splits the text. In other languages, points after abbreviations and ordinal numbers do not end a
sentence ("z.B. am 3. Mai"), and some points may or may not ("Der 1. Platz", "Er wurde 30. Danach …").
"""

from __future__ import annotations

import functools
import re
from typing import Literal, NamedTuple

from proctor.evaluators import tokenizer
from proctor.evaluators.data_files import load_data
from proctor.evaluators.language import find_unknown_word, is_foreign

Boundary = Literal["end", "no end", "unclear"]

# The signs that end sentences only in other scripts (Sentence_Terminal in Unicode), and the Greek question mark.
_FOREIGN_END = re.compile(
    "(?<=[\u0589\u061d-\u061f\u06d4\u0700-\u0702\u0964\u0965\u104a\u104b\u1362\u1367\u1368\u166e\u1735\u1736\u1803\u1809"
    "\u1944\u1945\u3002\uff01\uff0e\uff1f\uff61])|(?<=[\u0370-\u03ff\u1f00-\u1fff];)\\s+"
)
_WORD_CHARACTER = re.compile(r"\w")
# A point inside a sentence before a capital letter, with the word before it.
_INNER_POINT = re.compile(r"(?<!\S)(\S+)\.\s+(?=[\"'“„«(]?[^\W\d_])")
_FIRST_WORD = re.compile(r"[^\W\d_][\w-]*")
_LAST_WORD = re.compile(r"([^\s(\"'“„«]+)\.[\"'”“»)]*$")
_NUMERAL = re.compile(r"\d{1,2}|[IVX]{1,6}")
_INITIAL = re.compile(r"[^\W\d_]|(?:[^\W\d_]\.)+[^\W\d_]")
_MAX_WORD = 40


class Sentences(NamedTuple):
    """The sentences of a text, the least and the greatest number that they may be, and an unclear place."""

    texts: list[str]
    least: int
    most: int
    unclear: str = ""


class _Abbreviations(NamedTuple):
    before_a_word: frozenset[str]
    at_an_end: frozenset[str]
    months: frozenset[str]
    after_an_ordinal: frozenset[str]


@functools.cache
def _load_abbreviations() -> _Abbreviations:
    data = load_data("abbreviations.yaml")
    return _Abbreviations(**{name: frozenset(words.split()) for name, words in data.items()})


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text; each list item is a sentence."""
    return find_sentences(text).texts


def find_sentences(text: str) -> Sentences:
    """Split a text into sentences, by a model of English and by the abbreviations of other languages."""
    is_other = "." in text and bool(is_foreign(text) or find_unknown_word(text))
    blocks = [_split_block(block, is_other) for block in tokenizer.split_blocks(text)]
    texts = [sentence for block in blocks for sentence in block.texts]
    unclear = next((block.unclear for block in blocks if block.unclear), "")
    return Sentences(texts, sum(block.least for block in blocks), sum(block.most for block in blocks), unclear)


def _split_block(block: str, is_other: bool) -> Sentences:
    parts = [part for sentence in tokenizer.split_sentences(block) for part in _FOREIGN_END.split(sentence)]
    parts = [part for part in parts if _WORD_CHARACTER.search(part)]
    if not is_other:
        return Sentences(parts, len(parts), len(parts))
    pieces, unclear = list[list[str]](), list[str]()
    for part in parts:
        before = pieces[-1][-1] if pieces else ""
        boundary = _classify(before, part) if pieces else "end"
        if boundary == "unclear":
            unclear.append(f"{_get_last_word(before)}. {part[:12]}")
        if boundary == "no end":
            pieces[-1].append(part)
        else:
            pieces.append([part])
    texts = [sentence for piece in pieces for sentence in _split_after_months(" ".join(piece))]
    inner = [point for sentence in texts for point in _find_unclear_points(sentence)]
    least, most = len(texts) - len(unclear), len(texts) + len(inner)
    return Sentences(texts, least, most, next(iter([*unclear, *inner]), ""))


def _get_last_word(text: str) -> str:
    """Return the word before the point at the end of a text; "" if it does not end with a point."""
    match = _LAST_WORD.search(text[-_MAX_WORD:])
    return match[1] if match else ""


def _classify(before: str, after: str) -> Boundary:
    """Return whether the point between two parts of a text ends a sentence."""
    lists, word, first = _load_abbreviations(), _get_last_word(before), _FIRST_WORD.match(after)
    next_word = first[0] if first else ""
    is_ordinal = _NUMERAL.fullmatch(word) is not None
    if is_ordinal and next_word.lower() in lists.months | lists.after_an_ordinal:
        return "no end"
    if word.lower() in lists.before_a_word:
        return "no end"
    if is_ordinal or word.lower() in lists.at_an_end or _INITIAL.fullmatch(word):
        # After these, a small letter continues the sentence; a capital letter may begin one.
        return "no end" if next_word[:1].islower() or (_INITIAL.fullmatch(word) and word[0].isupper()) else "unclear"
    return "end"


def _split_after_months(sentence: str) -> list[str]:
    """Split after a month name and a point, which the model of English takes for an abbreviation ("maj.")."""
    pieces, start = list[str](), 0
    for point in _INNER_POINT.finditer(sentence):
        after = sentence[point.end() : point.end() + _MAX_WORD].lstrip("\"'“„«(")
        if point[1].lower() in _load_abbreviations().months and after[:1].isupper():
            pieces.append(sentence[start : point.end()].strip())
            start = point.end()
    return [*pieces, sentence[start:]]


def _find_unclear_points(sentence: str) -> list[str]:
    """Return the points that the model of English takes for abbreviations, and that may end a sentence."""
    unclear = []
    for point in _INNER_POINT.finditer(sentence):
        after = sentence[point.end() : point.end() + _MAX_WORD].lstrip("\"'“„«(")
        word = point[1].lstrip("\"'“„«(")
        known = _load_abbreviations().before_a_word
        if not after[:1].isupper() or word.lower() in known or _INITIAL.fullmatch(word) or not word[-1:].isalnum():
            continue
        boundary = _classify(f"{word}.", after)
        if boundary != "no end":
            unclear.append(f"{word}. {after[:12]}")
    return unclear
