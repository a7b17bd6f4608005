"""Read the words around numbers in languages other than English: denials, conditions, scales and ranges."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from proctor.evaluators.data_files import load_data

# A denial is at most this many characters before or after its number.
_REACH = 80
_WORD_AFTER = re.compile(r"[ \u00a0\u202f-]?([^\W\d_][^\s\d.,;:!?()\"'*%-]*)\.?")
_MAX_SCALE_WORDS = 3
# Further digits and their scale: the 2000万 of 1億2000万.
_DIGITS_AFTER = re.compile(r"\s?(\d{1,5}|\d{1,3}(?:,\d{3})+)(?![\d.,])")


class _Words(NamedTuple):
    # Each match has a group `after` if it denies the number before it.
    denial: re.Pattern[str]
    ascii_denial: re.Pattern[str]
    contrast: re.Pattern[str]
    clause_end: re.Pattern[str]
    scales: dict[str, int]
    scale_stem: re.Pattern[str]
    ambiguous: dict[str, Fraction]
    characters: re.Pattern[str]
    factors: list[int]
    ranges: dict[str, re.Pattern[str]]
    condition: re.Pattern[str]
    condition_after: re.Pattern[str]
    minus: re.Pattern[str]
    percent: re.Pattern[str]


@functools.cache
def _load_words() -> _Words:
    data: dict[str, Any] = load_data("numeric", "other_languages.yaml")
    words, phrases = data["denial_before"].split(), _compact(data["denial_phrases"])
    before = f"{_join(words)}|{phrases}|{data['denial_parts_before']}"
    after = f"{_join(data['denial_after'].split())}|{data['denial_parts_after']}"
    ascii_before = f"{_join(word for word in words if word.isascii())}|{phrases}"
    contrast = f"{_join(data['contrast'].split())}|{data['contrast_parts']}"
    scales = {word: factor for factor, words in data["scales"].items() for word in words.split()}
    characters = data["characters"]
    percent_words = _join(data["percent"].split())
    return _Words(
        # The lookaheads reject most positions of a text.
        re.compile(rf"(?=[^\W\d_])(?:(?P<after>{after})|{before})", re.IGNORECASE),
        re.compile(rf"(?=[abefghijkmnoprsty])(?<!\w)(?:(?P<after>(?!))|{ascii_before})"),
        re.compile(contrast, re.IGNORECASE),
        re.compile(data["clause_end"]),
        scales,
        re.compile("|".join(word[:-1] for word in scales if word.endswith("~"))),
        {sign: Fraction(factor) for sign, factor in data["ambiguous_scales"].items()},
        re.compile("|".join(f"({character})" for character in characters)),
        list(characters.values()),
        {name: re.compile(data[name]) for name in ("range_to", "range_and", "range_before", "range_after")},
        re.compile(rf"(?:{_join(data['condition'].split())}|{data['condition_parts']})", re.IGNORECASE),
        re.compile(rf"\s?(?:{data['condition_parts_after']})"),
        _compile_minus(data),
        re.compile(rf"[ \u00a0\u202f-]?{percent_words}[^\W\d_]*|{data['percent_phrases']}", re.IGNORECASE),
    )


def _compile_minus(data: dict[str, str]) -> re.Pattern[str]:
    less, leads = (_join(data[name].split()) for name in ("minus_or_less", "before_minus"))
    return re.compile(
        # A minus after a digit subtracts.
        rf"(?:(?<![\d)%])(?<![\d)%]\s){_join(data['minus'].split())}|{data['minus_parts']}"
        rf"|(?P<lead>(?:\A|[\n:=({{]|{leads})[ \t*_\"'“(]{{0,8}}){less})[ \t\u00a0]{{0,4}}(?=[\d.$€£])",
        re.IGNORECASE,
    )


def replace_minus_words(text: str) -> str:
    """Replace the words for minus of other languages by the sign: "moins 5", "минус 5", "负5"."""

    def write_sign(match: re.Match[str]) -> str:
        # A minus sign after a letter would join words: "答案是负5".
        follows_letter = not match["lead"] and text[max(0, match.start() - 1) : match.start()].isalnum()
        return f"{match['lead'] or ''}{' ' * follows_letter}-"

    return _load_words().minus.sub(write_sign, text)


def skip_percent_word(text: str, position: int) -> int | None:
    """Return the end of a word for percent that follows a number: "Prozent", "pour cent"."""
    match = _load_words().percent.match(text, position)
    return match.end() if match else None


def _compact(pattern: str) -> str:
    return re.sub(r"\s+(?=\|)", "", pattern.strip())


def _join(words: Iterable[str]) -> str:
    ordered = sorted(words, key=len, reverse=True)
    whole = "|".join(re.escape(word) for word in ordered if not word.endswith("~"))
    stems = "|".join(re.escape(word[:-1]) for word in ordered if word.endswith("~"))
    return rf"(?<!\w)(?:(?:{whole})(?!\w){f'|{stems}' if stems else ''})"


class ForeignDenials:
    """Finds the numbers of a text that a word of another language denies: "ce n'est pas 42"."""

    def __init__(self, text: str) -> None:
        self._text = text
        words = _load_words()
        matches = words.ascii_denial.finditer(text.lower()) if text.isascii() else words.denial.finditer(text)
        self.matches = list(matches)
        self.conditions = list(words.condition.finditer(text))

    def is_denied(self, start: int, end: int) -> bool:
        """Return whether the number between two positions is denied in its clause."""
        index = bisect_right(self.matches, start - _REACH, key=lambda match: match.end())
        while index < len(self.matches) and self.matches[index].start() < end + _REACH:
            if self._denies(self.matches[index], start, end):
                return True
            index += 1
        return False

    def is_assumed(self, start: int, end: int) -> bool:
        """Return whether the number between two positions is part of a condition: "si x vaut 42"."""
        words = _load_words()
        if words.condition_after.match(self._text, end):
            return True
        index = bisect_right(self.conditions, start, key=lambda match: match.end()) - 1
        if index < 0 or start - self.conditions[index].end() > _REACH:
            return False
        return words.clause_end.search(self._text[self.conditions[index].end() : start]) is None

    def _denies(self, denial: re.Match[str], start: int, end: int) -> bool:
        words = _load_words()
        if denial.end() <= start:
            between = self._text[denial.end() : start]
            if words.clause_end.search(between) or words.contrast.search(between):
                return False
            # "41 değil 42": the word denies the number before it.
            return denial["after"] is None or not self._has_digit(denial.start(), backwards=True)
        between = self._text[end : denial.start()]
        if separator := words.clause_end.search(between):
            # "42, mais ce n'est pas sûr."
            rest = between[separator.end() :].lstrip()
            if words.clause_end.search(rest) or not words.contrast.match(rest):
                return False
        return denial["after"] is not None or not self._has_digit(denial.end(), backwards=False)

    def _has_digit(self, position: int, *, backwards: bool) -> bool:
        """Return whether the clause of a denial has a digit before or after it."""
        words = _load_words()
        if backwards:
            clause = words.clause_end.split(self._text[max(0, position - _REACH) : position])[-1]
        else:
            clause = words.clause_end.split(self._text[position : position + _REACH], maxsplit=1)[0]
            clause = words.contrast.split(clause, maxsplit=1)[0]
        return re.search(r"\d", clause) is not None


class Scale(NamedTuple):
    """What the words after a number make of it: its factor, what is added, and where they end."""

    factor: int
    added: int
    end: int
    other_factors: tuple[Fraction, ...] = ()


def read_scale(text: str, position: int) -> Scale | None:
    """Return the scale that follows a number: "Millionen", "mil millones", "万", "億2000万"."""
    first = _read_factor(text, position)
    if first is None:
        return None
    (factor, end), added, last = first, 0, first[0]
    while digits := _DIGITS_AFTER.match(text, end):
        smaller = _read_factor(text, digits.end())
        is_attached = digits.start(1) == end and last >= 10_000 > int(digits[1].replace(",", ""))
        if smaller is None and not is_attached:
            break
        last, end = smaller or (1, digits.end())
        part = int(digits[1].replace(",", "")) * last
        if part >= factor:
            return Scale(factor, added, digits.start())
        added += part
        if smaller is None:
            break
    others = (first[0] * factor for sign, factor in _load_words().ambiguous.items() if sign in text[position:end])
    return Scale(factor, added, end, tuple(others))


def _read_factor(text: str, position: int) -> tuple[int, int] | None:
    words, factor, end = _load_words(), 1, position
    for _ in range(_MAX_SCALE_WORDS):
        start = end + text.startswith(" ", end)
        if not text[start : start + 1].isascii() and (character := words.characters.match(text, start)):
            factor *= words.factors[(character.lastindex or 1) - 1]
            end = character.end()
            continue
        word = _WORD_AFTER.match(text, end)
        multiplier = word and _find_factor(word[1].lower())
        if not word or not multiplier:
            break
        factor *= multiplier
        end = word.end(1)
    return (factor, end) if end > position else None


def _find_factor(word: str) -> int | None:
    words = _load_words()
    if word in words.scales:
        return words.scales[word]
    stem = words.scale_stem.match(word)
    return words.scales[f"{stem[0]}~"] if stem else None


def follows_range_word(before: str) -> bool:
    """Return whether a text before a number ends with another number and a word that joins them: "3 bis "."""
    ranges = _load_words().ranges
    digits = re.search(r"\d(?=\D{1,15}\Z)", before)
    between = before[digits.end() :] if digits else ""
    return any(ranges[name].fullmatch(between) for name in ("range_to", "range_and")) if between else False


def is_range(text: str, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Return whether the numbers between two pairs of positions are the ends of a range."""
    between = text[first[1] : second[0]]
    ranges = _load_words().ranges
    if len(between) > 20:
        return False
    if ranges["range_to"].fullmatch(between):
        return True
    if not ranges["range_and"].fullmatch(between):
        return False
    before = text[max(0, first[0] - 20) : first[0]]
    return bool(ranges["range_before"].search(before) or ranges["range_after"].match(text, second[1]))
