"""Find the words of a sentence that state something: without openings, courtesies, citations and list numbers."""

from __future__ import annotations

import functools
import re

from proctor.evaluators.grounding.clauses import remove_silence
from proctor.evaluators.language import is_english_word
from proctor.evaluators.tokenizer import Word, fold_case, load_english, split_words

# [1], [2, 3], [4-6], [^1], 【1】, and superscript digits.
_CITATION = re.compile(r"\[\^?[0-9]{1,3}(?:\s*[,;–-]\s*[0-9]{1,3})*\]|【[^】]*】|[⁰¹²³⁴-⁹]+")
_LIST_NUMBER = re.compile(r"^\W*\(?[0-9]{1,2}[.)]\s+(?=\S)")
_HEADING = re.compile(r"^\s*#")
_MAX_COURTESY_WORDS = 14
# Sentences that consist only of these words ("Yes, it is", "I do") state nothing.
_EMPTY_KINDS = ("function", "speaker")
_ORDINARY_END = re.compile(r"(?:(?<![suia])s|\w{3}(?:ing|ed|ly))\Z")
_CONTINUATIONS = frozenset({"but", "that", "because", "however"})
_MIN_NAME_LETTERS = 3


def find_statement_words(sentence: str) -> list[Word]:
    """Return the words of a sentence, or none if it states nothing."""
    statement = _LIST_NUMBER.sub("", _CITATION.sub(" ", sentence))
    statement = remove_silence(_compile_openings().sub("", statement))
    words = split_words(statement)
    if _is_courtesy(statement, words) or all(word.kind in _EMPTY_KINDS for word in words):
        return []
    if _HEADING.match(sentence) or sentence.isupper():
        # Capitals in headings do not mark names.
        return [word._replace(kind="content") if word.kind == "name" else word for word in words]
    return mark_names(words)


def mark_names(words: list[Word]) -> list[Word]:
    """Mark the names that start a sentence."""
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
