"""Numbers in English words: "forty-two", "one hundred and five"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from proctor.evaluators.number_text import Found

_SMALL = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_WORD = "|".join(sorted([*_SMALL, *_TENS, *_SCALES, "hundred", "dozen"], key=len, reverse=True))
_PHRASE = re.compile(
    rf"\b(?P<minus>(?:minus|negative)\s+)?(?P<words>(?:a\s+)?(?:{_WORD})"
    rf"(?:(?:\s*-\s*|\s+and\s+|\s+)(?:{_WORD}))*)\b",
    re.IGNORECASE,
)


def word_numbers(text: str) -> Iterator[Found]:
    """Every number that is written in English words; a lone "one" is a pronoun and left out.

    >>> [int(one.value) for one in word_numbers("Forty-two, or one hundred and five, says one.")]
    [42, 105]
    """
    for match in _PHRASE.finditer(text):
        words = [word for word in re.findall(r"[a-z]+", match["words"].lower()) if word != "and"]
        if words in (["one"], ["a"]):
            continue
        value = _value(words)
        if value is not None:
            sign = -1 if match["minus"] else 1
            yield Found(Fraction(sign * value), match[0], start=match.start(), end=match.end())


def leading_word_number(text: str) -> Found | None:
    """The number in words that a text begins with, "one" included.

    >>> leading_word_number(" **one** apple").value
    Fraction(1, 1)
    """
    match = _PHRASE.match(text.lstrip(" \t*_:\"'"))
    if match is None:
        return None
    words = [word for word in re.findall(r"[a-z]+", match["words"].lower()) if word != "and"]
    value = _value(words)
    sign = -1 if match["minus"] else 1
    return None if value is None else Found(Fraction(sign * value), match[0])


def _value(words: list[str]) -> int | None:
    """The number that words make; None where they are several numbers ("two three")."""
    if words[0] == "a":
        words = ["one", *words[1:]]
    total, current, last = 0, 0, 10**15
    for word in words:
        if word in _SCALES:
            total, current, last = total + max(1, current) * _SCALES[word], 0, 10**15
        elif word in ("hundred", "dozen"):
            current, last = max(1, current) * (100 if word == "hundred" else 12), 100
        else:
            number = _SMALL[word] if word in _SMALL else _TENS[word]
            # After "forty" only a digit may follow, after a digit nothing.
            if last <= number or (word in _SMALL and last < 100 and (number > 9 or last < 20)):
                return None
            current, last = current + number, number
    return total + current
