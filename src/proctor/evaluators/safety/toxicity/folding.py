"""The words of a text as they are meant: masked, spaced, doubled and parted letters are undone."""

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
# What stands between spaces, without what ends a sentence or marks it.
_PIECE = re.compile(r"[\w@$!|+*#€.\-]+")
_SPACED = re.compile(rf"(?<!\w)(?:{_LETTERS}([ .\-_*])){{2,}}(?:(?<=([ .\-_*])){_LETTERS})(?!\w)")
_MASKED = re.compile(rf"{_LETTERS}+[*#]+{_LETTERS}+")
_DOUBLED = re.compile(r"(\w)\1{2,}")
# Signs of no width, accents that stand for themselves, controls: nobody sees them between letters.
_UNSEEN = frozenset({"Cf", "Mn", "Me", "Cc"})
_UNSEEN_IN_ASCII = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")

Known = Callable[[str], bool]


class Word(NamedTuple):
    """A word as it is meant, and where it stands in the text."""

    text: str
    start: int
    end: int


def words(text: str, known: Known, harsh: tuple[str, ...]) -> list[Word]:
    """The words of a text in small letters, with those that were disguised beside them.

    What is not `known` as it stands is undone: letters said thrice or more, letters of other
    scripts. Signs in place of letters, and letters spaced out, are undone only if a `harsh` word
    comes of it, for they mean something else as often.

    >>> found = words("You are sooo st*pid, an 1d10t!", "so".__eq__, ("idiot", "stupid"))
    >>> [word.text for word in found]
    ['you', 'are', 'so', 'stupid', 'an', 'idiot']
    """
    seen = _seen(text)
    text = _same_length(text if seen is None else "".join(text[place] for place in seen))
    plain = (Word(_undoubled(match[0], known), match.start(), match.end()) for match in _WORD.finditer(text))
    found: list[Word] = []
    taken = bytearray(len(text))
    # What was read as disguised is not read again as it stands.
    for word in (*_spaced(text, frozenset(harsh)), *_signed(text, harsh), *plain):
        if not any(taken[word.start : word.end]):
            taken[word.start : word.end] = bytes([1]) * (word.end - word.start)
            found.append(word)
    found.sort(key=lambda word: word.start)
    if seen is None:
        return found
    return [Word(word.text, seen[word.start], seen[word.end - 1] + 1) for word in found]


def _seen(text: str) -> list[int] | None:
    """The places of what can be seen; None if that is everything."""
    if text.isascii() and not _UNSEEN_IN_ASCII.search(text):
        return None
    return [place for place, one in enumerate(text) if not _is_unseen(one)]


def _is_unseen(one: str) -> bool:
    if one.isspace():
        return False
    return unicodedata.category(one) in _UNSEEN or one in _FILLERS


def _same_length(text: str) -> str:
    """Small letters without accents, each still in its place."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFKD", one).lower()[:1] or " " for one in text)


def _undoubled(word: str, known: Known) -> str:
    """A word without letters said thrice, and in Latin letters, if it is known so."""
    if known(word):
        return word
    choices = (_DOUBLED.sub(r"\1\1", word), _DOUBLED.sub(r"\1", word), word.translate(LETTERS))
    return next((choice for choice in choices if known(choice)), word)


def _spaced(text: str, harsh: frozenset[str]) -> Iterator[Word]:
    for match in _SPACED.finditer(text):
        joined = re.sub(r"[\W_]", "", match[0])
        if joined in harsh:
            yield Word(joined, match.start(), match.end())


def _signed(text: str, harsh: tuple[str, ...]) -> Iterator[Word]:
    known = frozenset(harsh)
    for match in _PIECE.finditer(text):
        piece = match[0].strip(".-!*#")
        if piece.isalpha() or not any(map(str.isalpha, piece)):
            continue
        if meant := _unsigned(piece, known, harsh):
            yield Word(meant, match.start(), match.end())


def _unsigned(piece: str, harsh: frozenset[str], ordered: tuple[str, ...]) -> str:
    """The harsh word that a piece stands for; empty if it stands for itself."""
    read = piece.translate(SIGNS)
    for choice in (read, re.sub(r"[.\-*]", "", read), _DOUBLED.sub(r"\1", read)):
        if choice in harsh:
            return choice
    return _unmasked(piece, ordered) if _MASKED.fullmatch(piece) else ""


@functools.lru_cache(maxsize=1024)
def _unmasked(piece: str, ordered: tuple[str, ...]) -> str:
    """The first harsh word that a piece with stars in it may be; a star is at most one letter."""
    shape = re.compile(re.sub(r"[*#]+", lambda stars: rf"\w{{1,{len(stars[0])}}}", piece))
    return next((word for word in ordered if shape.fullmatch(word)), "")
