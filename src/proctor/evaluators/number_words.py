"""Numbers in English words: "forty-two", "two point five", "one and a half", "three quarters"."""

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
_GROUPS = {"dozen": 12, "hundred": 100, **_SCALES}
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9,
}  # fmt: skip
# What a part is one n-th of; the plural has an s, but for "halves".
_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip


def _any_of(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_WORD = _any_of({**_SMALL, **_TENS, **_GROUPS})
_CARDINAL = rf"(?:a\s+)?(?:{_WORD})(?:(?:\s*-\s*|\s+and\s+|\s+)(?:{_WORD}))*"
_DIGIT = r"(?:oh|zero|one|two|three|four|five|six|seven|eight|nine)"
_PART = _any_of(_PARTS)
_PLURAL = rf"(?:halves|(?:{_PART})s)"
_TIMES = rf"(?:\s+(?P<{{}}>{_any_of(_GROUPS)})\b)?"
_PHRASE = re.compile(
    r"\b(?P<minus>(?:minus|negative)\s+)?(?:"
    rf"(?P<whole>{_CARDINAL})\s+and\s+(?:(?:a|one)[\s-]+(?P<and_part>{_PART})"
    rf"|(?P<and_count>two|three|four|five|six|seven|eight|nine)[\s-]+(?P<and_parts>{_PLURAL}))\b"
    rf"{_TIMES.format('mixed_times')}"
    rf"|(?P<units>{_CARDINAL})\s+point(?P<decimals>(?:\s+{_DIGIT})+)\b"
    rf"{_TIMES.format('decimal_times')}"
    rf"|(?P<count>{_CARDINAL})[\s-]+(?P<parts>{_PLURAL})\b"
    rf"|one[\s-]+(?P<part>{_PART})\b"
    rf"|half\s+an?\s+(?P<half_of>{_any_of(_GROUPS)})\b"
    rf"|(?P<tens>{_any_of(_TENS)})-(?P<ordinal>{_any_of(_ORDINALS)})\b"
    rf"|(?P<words>{_CARDINAL})\b)",
    re.IGNORECASE,
)
# A part is a number where it is all that is said; "a third person" is no number.
_LONE_PART = re.compile(rf"(?:an?\s+|one\s+)?(?P<part>{_PART})[\s.!*_\"']*\Z", re.IGNORECASE)
_LONE_DECIMALS = re.compile(rf"point(?P<decimals>(?:\s+{_DIGIT})+)[\s.!*_\"']*\Z", re.IGNORECASE)
_POINT_BEFORE = re.compile(r"\bpoint\s+\Z", re.IGNORECASE)


def word_numbers(text: str) -> Iterator[Found]:
    """Every number that is written in English words; a lone "one" is a pronoun and left out.

    >>> [int(one.value) for one in word_numbers("Forty-two, or one hundred and five, says one.")]
    [42, 105]
    >>> [str(one.value) for one in word_numbers("two point five, one and a half, three quarters")]
    ['5/2', '3/2', '3/4']
    """
    for match in _PHRASE.finditer(text):
        if match["words"] is not None and match["words"].lower() == "one":
            continue
        number = _number(match)
        if number is None:
            continue
        if _POINT_BEFORE.search(text[max(0, match.start() - 12) : match.start()]):
            # "At this point five people" and "It is point five": either may be meant.
            number = number._replace(alternatives=_behind_point(match[0]))
        yield number


def leading_word_number(text: str) -> Found | None:
    """The number in words that a text begins with, "one" included; a text may also be a part.

    >>> leading_word_number(" **one** apple").value
    Fraction(1, 1)
    >>> leading_word_number("half.").value, leading_word_number("point five").value
    (Fraction(1, 2), Fraction(1, 2))
    """
    start = len(text) - len(text.lstrip(" \t*_:\"'"))
    if (lone := _LONE_PART.match(text, start)) is not None:
        value = Fraction(1, _PARTS[lone["part"].lower()])
        return Found(value, lone[0].strip(" .!*_\"'"), start=start, end=lone.end())
    if (lone := _LONE_DECIMALS.match(text, start)) is not None:
        value = _decimals(lone["decimals"])
        return Found(value, lone[0].strip(" .!*_\"'"), start=start, end=lone.end())
    match = _PHRASE.match(text, start)
    return None if match is None else _number(match)


def _number(match: re.Match[str]) -> Found | None:
    """The number of a phrase; None where its words are several numbers ("two three")."""
    alternatives: tuple[Fraction, ...] = ()
    value: Fraction | None
    if match["whole"] is not None:
        value = _cardinal(match["whole"])
        if value is not None:
            part = match["and_part"] or match["and_parts"]
            value += Fraction(_SMALL.get((match["and_count"] or "one").lower(), 1), _part(part))
            value *= _times(match["mixed_times"])
    elif match["units"] is not None:
        value = _cardinal(match["units"])
        if value is not None:
            value = (value + _decimals(match["decimals"])) * _times(match["decimal_times"])
    elif match["count"] is not None or match["part"] is not None:
        # Quarters are also coins and parts of a year: the count may be meant.
        count = _cardinal(match["count"] or "one")
        value = None if count is None else count / _part(match["parts"] or match["part"])
        alternatives = () if count is None else (count,)
    elif match["half_of"] is not None:
        value = Fraction(_GROUPS[match["half_of"].lower()], 2)
    elif match["tens"] is not None:
        value = Fraction(_TENS[match["tens"].lower()] + _ORDINALS[match["ordinal"].lower()])
    else:
        value = _cardinal(match["words"])
    if value is None:
        return None
    sign = -1 if match["minus"] else 1
    return Found(
        sign * value,
        match[0],
        alternatives=tuple(sign * one for one in alternatives),
        start=match.start(),
        end=match.end(),
    )


def _part(word: str) -> int:
    """How many of a part make a whole: 4 for "quarters"."""
    word = word.lower()
    return 2 if word == "halves" else _PARTS[word.removesuffix("s")]


def _times(word: str | None) -> int:
    return 1 if word is None else _GROUPS[word.lower()]


def _decimals(words: str) -> Fraction:
    """The value of digits behind the word "point"."""
    digits = [_SMALL.get(word, 0) for word in words.lower().split()]
    return Fraction(int("".join(map(str, digits))), 10 ** len(digits))


def _behind_point(words: str) -> tuple[Fraction, ...]:
    lone = _LONE_DECIMALS.match(f"point {words}")
    return () if lone is None else (_decimals(lone["decimals"]),)


def _cardinal(phrase: str) -> Fraction | None:
    """The number that words make; None where they are several numbers ("two three")."""
    words = [word for word in re.findall(r"[a-z]+", phrase.lower()) if word != "and"]
    if words[0] == "a":
        words = ["one", *words[1:]]
    total, current, last = 0, 0, 10**15
    for word in words:
        if word in _SCALES:
            total, current, last = total + max(1, current) * _SCALES[word], 0, 10**15
        elif word in ("hundred", "dozen"):
            current, last = max(1, current) * _GROUPS[word], 100
        else:
            number = _SMALL[word] if word in _SMALL else _TENS[word]
            # After "forty" only a digit may follow, after a digit nothing.
            if last <= number or (word in _SMALL and last < 100 and (number > 9 or last < 20)):
                return None
            current, last = current + number, number
    return Fraction(total + current)
