"""The pieces of a text that can be counted: words, sentences, paragraphs, bullets and so on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

from proctor.evaluators import wording

Piece = Literal[
    "characters",
    "words",
    "capital_words",
    "sentences",
    "lines",
    "paragraphs",
    "bullets",
    "numbered_items",
    "headings",
    "highlights",
    "placeholders",
    "code_blocks",
    "links",
]

# A word may have apostrophes, hyphens, points and commas inside ("don't", "state-of-the-art",
# "3.14"), not around it.
_WORD = re.compile(r"\w+(?:['’.,\-‑]\w+)*")
_FENCED = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n(.*?)(?:^ {0,3}\1[^\n]*$|\Z)", re.M | re.S)
_BULLET = re.compile(r"^[ \t]*(?:[-+•–](?=[ \t]*[^\s\-])|\*(?=[ \t]*[^\s*]))", re.M)
_NUMBERED = re.compile(r"^[ \t]*\d{1,9}[.)](?=[ \t]+\S)", re.M)
# With signs before it, or underlined; what begins as a list or a table is not underlined.
_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+\S"
    r"|^(?![ \t]*(?:[-+*•>#|]|\d{1,9}[.)]))(?=[ \t]*\S)[^\n]+\n {0,3}(?:=+|-+)[ \t]*$",
    re.M,
)
# Asterisks that begin a bullet open nothing: what they open does not begin with a space.
_HIGHLIGHT = re.compile(
    r"\*{1,3}(?=[^\s*])[^\n*]*(?<=[^\s*])\*{1,3}"
    r"|(?<!\w)_{1,3}(?=[^\s_])[^\n_]*(?<=[^\s_])_{1,3}(?!\w)"
)
_PLACEHOLDER = re.compile(r"\[[^\[\]\n]+\](?![(\[])")
_LINK = re.compile(r"\[[^\[\]\n]+\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)|https?://[^\s<>()\[\]]+")
_PARAGRAPH_GAP = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SENTENCE_HAS = re.compile(r"\w")


def words(text: str) -> list[str]:
    """The words of a text; what is written without spaces between words counts as one.

    >>> words("Don't count 3.5 as two!")
    ["Don't", 'count', '3.5', 'as', 'two']
    """
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    """The sentences of a text, by a splitter trained on English; points of a list stand alone.

    >>> sentences("Dr. Who left. Why?\\n- milk\\n- tea")
    ['Dr. Who left.', 'Why?', '- milk', '- tea']
    """
    return [one for one in wording.sentences(text) if _SENTENCE_HAS.search(one)]


def paragraphs(text: str, separator: str | None = None) -> list[str]:
    """The paragraphs of a text: what stands between empty lines, or between separators.

    >>> paragraphs("one\\n\\ntwo"), paragraphs("one *** two", "***")
    (['one', 'two'], ['one', 'two'])
    """
    parts = _PARAGRAPH_GAP.split(text) if separator is None else text.split(separator)
    return [part.strip() for part in parts if part.strip()]


def pieces(text: str, of: Piece) -> Iterable[Any]:
    """All pieces of a kind in a text."""
    return _FINDERS[of](text)


def _without_code(text: str) -> str:
    return _FENCED.sub("\n", text)


def _prose(pattern: re.Pattern[str]) -> Callable[[str], Iterable[Any]]:
    """What a pattern finds outside of code blocks."""
    return lambda text: pattern.finditer(_without_code(text))


def _capital_words(text: str) -> list[str]:
    return [word for word in words(text) if word.isupper()]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


_FINDERS: dict[str, Callable[[str], Iterable[Any]]] = {
    "characters": iter,
    "words": words,
    "capital_words": _capital_words,
    "sentences": sentences,
    "lines": _lines,
    "paragraphs": paragraphs,
    "bullets": _prose(_BULLET),
    "numbered_items": _prose(_NUMBERED),
    "headings": _prose(_HEADING),
    "highlights": _prose(_HIGHLIGHT),
    "placeholders": _prose(_PLACEHOLDER),
    "code_blocks": _FENCED.finditer,
    "links": _prose(_LINK),
}
