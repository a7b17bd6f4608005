"""Numbers: the number that an answer comes to, whatever is written around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from proctor.errors import EvaluatorError
from proctor.evaluators.marking import evaluator
from proctor.evaluators.verdict import shown
from proctor.records.numbers import is_number
from proctor.records.sample import kind_of
from proctor.records.score import Score

Decimal = Literal[".", ","]

_CURRENCY = r"(?:[$€£¥₹₽₩₺₪฿¢]|\\\$|US\$|USD|EUR|GBP)"
_SPACES = "[ \u00a0\u2009\u202f]"
_GLYPHS = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5",
    "⅗": "3/5", "⅘": "4/5", "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8",
    "⅞": "7/8",
}  # fmt: skip
_PLAINER = str.maketrans({"−": "-", "–": "-", "⁄": "/"})
_TEX_FRACTION = re.compile(r"\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}")
_TEX_SPACING = re.compile(r"\{,\}|\\[,!;:]|(?<=\d)~(?=\d)")
# What people and models put before, or around, the answer they mean. The strongest come first.
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_HASHES = re.compile(r"####")
_ANNOUNCED = re.compile(
    r"^[ \t>*_#]*(?:the\s+)?(?:final\s+|correct\s+)?(?:answer|ans|result|solution|a)[*_ \t]*[:=]"
    r"|\banswer\b(?:[^\n.;:=]{0,40}?\b(?:is|are|was|equals)\b[ \t]*:?|[*_ \t]*[:=])",
    re.IGNORECASE | re.MULTILINE,
)
# What follows the answer in its line: reasons, checks, other sentences.
_CLAUSE_END = re.compile(r"[.;!?](?=\s|$)|,\s|[(}]|\b(?:because|since)\b", re.IGNORECASE)
_LONGEST = 300
_GREATEST_EXPONENT = 400


class Found(NamedTuple):
    """A number in a text: what it is, how it was written, and whether a percent sign follows."""

    value: Fraction
    written: str
    percent: bool = False


def _check(options: Mapping[str, Any]) -> None:
    tolerance = options.get("tolerance", 0.0)
    if not is_number(tolerance) or tolerance < 0:
        raise EvaluatorError(
            f"a tolerance is a number from 0 up, got {tolerance!r}", where="numeric_answer"
        )


@evaluator(category="numbers", pure=True, check=_check)
def numeric_answer(
    output: Any,
    expected: Any,
    *,
    tolerance: float = 0.0,
    relative: bool = False,
    decimal: Decimal = ".",
) -> Score:
    r"""Passes if the number that the output comes to is the expected one.

    The final number is what stands in the last \boxed{}; else after the last ####; else after
    the last announcement ("A:", "Answer:", "the answer is", behind its last = where it has one);
    else the last number of the text. Read are thousands separators, decimals, powers of ten,
    fractions (3/4, 1 1/2, ½, \frac{3}{4}), signs and currencies. A percent sign is dropped, but
    where only one side has one, 12% is 0.12 too. What is expected is read in the same way. The
    difference may be `tolerance`, with `relative` that share of the expected number; 0 compares
    exactly, so that 0.50 is 1/2. `decimal` is the sign before decimals. Numbers in words, other
    units and complex numbers are not read.

    >>> numeric_answer("She pays 3 * $400 = $1,200.00 in all.", "#### 1200").passed
    True
    >>> numeric_answer("A: 17 eggs", 18).reason
    'expected 18, got 17'
    """
    wanted = _final(expected, decimal)
    if wanted is None:
        return Score.error(f"there is no number in what is expected: {shown(expected)}")
    if not isinstance(output, str) and not is_number(output):
        return Score.error(f"the output is neither a text nor a number: {kind_of(output)}")
    got = _final(output, decimal)
    details: dict[str, Any] = {"method": "extraction", "expected": _plain(wanted.value)}
    if got is None:
        return Score(0.0, False, f"there is no number in {shown(output)}", details)
    details["answer"] = _plain(got.value)
    limit = Fraction(str(tolerance)) * (abs(wanted.value) if relative else 1)
    if any(abs(a - b) <= limit for a, b in _readings(got, wanted)):
        return Score(1.0, True, f"got {got.written}", details)
    return Score(0.0, False, f"expected {wanted.written}, got {got.written}", details)


def final_number(text: str, decimal: Decimal = ".") -> Found | None:
    r"""The number that an answer comes to, or None.

    >>> final_number("So the answer is 3 + 4 = 7, not 12.").value
    Fraction(7, 1)
    >>> final_number(r"Hence \boxed{\frac{3}{4}}, as 3 < 4.").value
    Fraction(3, 4)
    """
    text = _plainer(text)
    for mark in (_BOXED, _HASHES, _ANNOUNCED):
        announced = [found.end() for found in mark.finditer(text)]
        if announced:
            return _after(text[announced[-1] :], decimal)
    return next(_numbers(text, decimal, backwards=True), None)


def _final(value: Any, decimal: Decimal) -> Found | None:
    if isinstance(value, str):
        return final_number(value, decimal)
    return Found(Fraction(str(value)), str(value)) if is_number(value) else None


def _after(text: str, decimal: Decimal) -> Found | None:
    """The number that follows an announcement: on its line, else anywhere behind it."""
    line, _, rest = text.lstrip().partition("\n")
    for part in (_CLAUSE_END.split(line, 1)[0].rpartition("=")[2], line, rest):
        for found in _numbers(part, decimal):
            return found
    return None


def _plainer(text: str) -> str:
    """The same text with typographic and TeX ways of writing numbers made plain."""
    text = text.translate(_PLAINER)
    text = _TEX_FRACTION.sub(_written_out, text)
    text = _TEX_SPACING.sub(lambda found: "," if found[0] == "{,}" else "", text)
    for glyph, written in _GLYPHS.items():
        if glyph in text:
            text = text.replace(glyph, f" {written}")
    return text


def _written_out(found: re.Match[str]) -> str:
    mixed = found.string[: found.start()].endswith(tuple("0123456789"))
    return f"{' ' * mixed}{found[1]}/{found[2]}"


def _pattern(decimal: Decimal) -> re.Pattern[str]:
    point, comma = (r"\.", ",") if decimal == "." else (",", r"\.")
    grouped = rf"\d{{1,3}}(?:(?:{comma}|{_SPACES})\d{{3}})+(?!\d)"
    whole = rf"(?:{grouped}|\d+)"
    return re.compile(
        # A minus behind a digit or a word subtracts or joins; it is no sign.
        rf"(?P<sign>(?<![\w)\]}}])[-+](?={_CURRENCY}?\s?[.\d]))?"
        rf"(?:{_CURRENCY}\s?(?P<late>-(?=[.\d]))?)?"
        rf"(?:(?P<mixed>(?<![\d/.,])\d+)\s+(?=\d+/\d))?"
        rf"(?P<number>(?:{whole}(?:{point}\d+)?|(?<!\d){point}\d+))"
        rf"(?:/(?P<below>\d+(?![\d/.]))|(?P<power>[eE][+-]?\d+(?!\w)"
        rf"|\s?(?:[x×*·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{{?[+-]?\d+\}}?))?"
        rf"(?P<percent>\s?\\?%)?"
    )


_PATTERNS = {".": _pattern("."), ",": _pattern(",")}


def _numbers(text: str, decimal: Decimal, backwards: bool = False) -> Iterator[Found]:
    matches = _PATTERNS[decimal].finditer(text)
    for found in reversed(list(matches)) if backwards else matches:
        value = _value(found, decimal)
        if value is not None:
            yield Found(value, found.group().strip(), found["percent"] is not None)


def _value(found: re.Match[str], decimal: Decimal) -> Fraction | None:
    """What a match stands for, or None for what nobody means as a number."""
    if len(found.group()) > _LONGEST:
        return None
    digits = re.sub(_SPACES, "", found["number"])
    digits = (
        digits.replace(",", "") if decimal == "." else digits.replace(".", "").replace(",", ".")
    )
    value = Fraction(digits)
    if found["below"] is not None:
        if not int(found["below"]):
            return None
        value /= int(found["below"])
    if found["power"] is not None:
        exponent = int(re.findall(r"[+-]?\d+", found["power"])[-1])
        if abs(exponent) > _GREATEST_EXPONENT:
            return None
        value *= Fraction(10) ** exponent
    if found["mixed"] is not None:
        value += int(found["mixed"])
    return -value if "-" in (found["sign"], found["late"]) else value


def _readings(got: Found, wanted: Found) -> Iterator[tuple[Fraction, Fraction]]:
    """What is compared: the numbers as written, and a lone percentage also as a share."""
    yield got.value, wanted.value
    if got.percent and not wanted.percent:
        yield got.value / 100, wanted.value
    if wanted.percent and not got.percent:
        yield got.value, wanted.value / 100


def _plain(value: Fraction) -> float | int | str:
    """A number as JSON can hold it."""
    if value.denominator == 1:
        return int(value) if abs(value) < 2**53 else str(value)
    return float(value)
