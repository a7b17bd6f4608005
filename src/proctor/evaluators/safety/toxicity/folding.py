"""Read the words of a text although their letters are masked, spaced, doubled or invisible."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

# Letters of other scripts, and signs, that look like Latin letters.
LETTERS = str.maketrans("аеорсухіѕαεικορτυ", "aeopcyxisaeikoptu")
SIGNS = LETTERS | str.maketrans("@431!0$57+|€", "aaeiiossttle")
_LETTERS = r"[^\W\d_]"
_WORD = re.compile(r"\w\w+")
_TOKEN = re.compile(r"[\w@$!|+*#€.\-]+")
_SPACED = re.compile(rf"(?<!\w)(?:{_LETTERS}([ .\-_*])){{2,}}(?:(?<=([ .\-_*])){_LETTERS})(?!\w)")
_MASKED = re.compile(rf"{_LETTERS}+[*#]+{_LETTERS}+")
_REPEATED = re.compile(r"(\w)\1{2,}")
# Zero-width signs, combining accents and controls are invisible between letters.
_INVISIBLE = frozenset({"Cf", "Mn", "Me", "Cc"})
_INVISIBLE_ASCII = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")


class Word(NamedTuple):
    """A word and its position in the text."""

    text: str
    start: int
    end: int


def read_words(text: str, is_known: Callable[[str], bool], harsh: tuple[str, ...]) -> list[Word]:
    """Return the lower-case words of a text, with disguised words restored.

    Unknown words lose repeated letters and letters of other scripts. Signs in place of letters, and spaces between
    letters, are resolved only if the result is a `harsh` word, because they often mean something else.
    """
    visible = _visible_positions(text)
    text = _fold_case(text if visible is None else "".join(text[index] for index in visible))
    plain = (Word(_restore(match[0], is_known), *match.span()) for match in _WORD.finditer(text))
    words: list[Word] = []
    used = bytearray(len(text))
    # A disguised word is not read a second time as plain words.
    for word in (*_read_spaced(text, frozenset(harsh)), *_read_signs(text, harsh), *plain):
        if not any(used[word.start : word.end]):
            used[word.start : word.end] = bytes([1]) * (word.end - word.start)
            words.append(word)
    words.sort(key=lambda word: word.start)
    if visible is None:
        return words
    return [Word(word.text, visible[word.start], visible[word.end - 1] + 1) for word in words]


def _visible_positions(text: str) -> list[int] | None:
    """Return the positions of visible characters, or None if all are visible."""
    if text.isascii() and not _INVISIBLE_ASCII.search(text):
        return None
    return [
        index
        for index, character in enumerate(text)
        if character.isspace() or not (unicodedata.category(character) in _INVISIBLE or character in _FILLERS)
    ]


def _fold_case(text: str) -> str:
    """Return lower-case letters without accents, at unchanged positions."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFKD", character).lower()[:1] or " " for character in text)


def _restore(word: str, is_known: Callable[[str], bool]) -> str:
    if is_known(word):
        return word
    choices = (_REPEATED.sub(r"\1\1", word), _REPEATED.sub(r"\1", word), word.translate(LETTERS))
    return next((choice for choice in choices if is_known(choice)), word)


def _read_spaced(text: str, harsh: frozenset[str]) -> Iterator[Word]:
    for match in _SPACED.finditer(text):
        word = re.sub(r"[\W_]", "", match[0])
        if word in harsh:
            yield Word(word, *match.span())


def _read_signs(text: str, harsh: tuple[str, ...]) -> Iterator[Word]:
    known = frozenset(harsh)
    for match in _TOKEN.finditer(text):
        token = match[0].strip(".-!*#")
        if token.isalpha() or not any(map(str.isalpha, token)):
            continue
        read = token.translate(SIGNS)
        choices = (read, re.sub(r"[.\-*]", "", read), _REPEATED.sub(r"\1", read))
        word = next((choice for choice in choices if choice in known), "")
        if not word and _MASKED.fullmatch(token):
            word = _unmask(token, harsh)
        if word:
            yield Word(word, *match.span())


@functools.lru_cache(maxsize=1024)
def _unmask(token: str, harsh: tuple[str, ...]) -> str:
    """Return the first harsh word that a token with stars may be; a star is at most one letter."""
    pattern = re.compile(re.sub(r"[*#]+", lambda stars: rf"\w{{1,{len(stars[0])}}}", token))
    return next((word for word in harsh if pattern.fullmatch(word)), "")
