"""Numbers in texts: every number with its value, in the notations that people and models use."""

from __future__ import annotations

import functools
import math
import re
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, NamedTuple

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
_DIGIT_WORD = r"(?:oh|zero|one|two|three|four|five|six|seven|eight|nine)"
_PART = _any_of(_PARTS)
_PLURAL = rf"(?:halves|(?:{_PART})s)"
_TIMES = rf"(?:\s+(?P<{{}}>{_any_of(_GROUPS)})\b)?"
_PHRASE = re.compile(
    r"\b(?P<minus>(?:minus|negative)\s+)?(?:"
    rf"(?P<whole>{_CARDINAL})\s+and\s+(?:(?:a|one)[\s-]+(?P<and_part>{_PART})"
    rf"|(?P<and_count>two|three|four|five|six|seven|eight|nine)[\s-]+(?P<and_parts>{_PLURAL}))\b"
    rf"{_TIMES.format('mixed_times')}"
    rf"|(?P<units>{_CARDINAL})\s+point(?P<decimals>(?:\s+{_DIGIT_WORD})+)\b"
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
_LONE_DECIMALS = re.compile(rf"point(?P<decimals>(?:\s+{_DIGIT_WORD})+)[\s.!*_\"']*\Z", re.IGNORECASE)
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


Decimal = Literal[".", ","]
Kind = Literal["number", "date", "year", "bound", "expression", "calculation"]

_DIGIT = re.compile(r"\d")
_LONGEST = 300
_GREATEST_EXPONENT = 400
_GREATEST_BASE, _GREATEST_POWER = 10**6, 64

_CURRENCY = r"(?:\\\$|(?:US|A|C|NZ|HK)?[$€£¥₹₽₩₺₪฿¢]|USD|EUR|GBP|CHF|INR|Rs\.?)"
_SPACES = "[ \u00a0\u2009\u202f]"
_APOSTROPHES = "['’]"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
# What may follow a year; any other word is what is counted: "in 1500 seconds".
_AFTER_YEAR = (
    r"(?:and|or|the|an?|it|he|she|they|we|i|you|there|was|were|is|are|had|has|have|when|where|to|in"
    r"|on|at|by|for|with|of|as|but|so|after|before|until|alone|onwards?|this|that|these|those|his"
    r"|her|its|their|our|my|all|only|about|who|which|did|would|will|could|may|might|because|since"
    r"|than|then|not|no|from|during|through|between)\b"
)
_DATE = re.compile(
    rf"\b{_MONTH}\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}}))?(?![\d:])"
    rf"|\b(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b\.?(?:,?\s+(?P<year2>\d{{4}}))?"
    rf"|\b{_MONTH}\s+(?P<year3>\d{{4}})\b"
    r"|\b(?i:in|since|by|until|during|from|between|year)\s+(?P<year6>(?:1[5-9]|20)\d{2})"
    r"(?:\s*(?:and|to|-)\s*(?P<end>(?:1[5-9]|20)\d{2})|(?!\s*(?:and|to|-)\s*\d))\b(?![.,]\d|\s?[%°$€£])"
    rf"(?!\s+(?!{_AFTER_YEAR})[a-z])"
    r"|(?<![\d/.-])(?P<year4>\d{4})-\d{2}-(?P<day4>\d{2})(?![\d-])"
    r"|(?<![\d/.])(?P<day5>\d{1,2})(?P<mark>[/.])\d{1,2}(?P=mark)(?P<year5>(?:19|20)\d{2})(?![\d/])"
)
# A time, a ratio, a version: several numbers that are none together.
_COMPOSITE = re.compile(
    r"(?<![\d.:])\d+(?::\d+)+|(?<![\d.,])\d+(?:\.\d+){2,}(?![\d,])|(?<![\d/])\d+(?:/\d+){2,}"
    # 2h30, 5ft6, 1_00: digits that letters or underscores join, but not 1e5, 3x4 and 1_000.
    r"|(?<![\w.,])(?!\d+(?:\.\d+)?[eE]\d+\b|\d{1,3}(?:_\d{3})+\b|0[xX][\da-fA-F]+\b|0[bB][01]+\b|0[oO][0-7]+\b)"
    r"\d+(?:[.,]\d+)?(?!(?:[xX]|[kKMBm][-/])\d)(?:_|[a-zA-Z]{1,3})\d+\w*"
)
# Numbers to another base, as programs write them: 0x1F, 0b101, 0o17.
_PREFIXED = re.compile(r"(?<![\w.])0(?:[xX][\da-fA-F]+|[bB][01]+|[oO][0-7]+)\b")
_RAISED_DIGITS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
# A greater number in an exclamation is no factorial: "It's 42!".
_GREATEST_FACTORIAL = 20
_PARTS_BEHIND = re.compile(
    r"\s+(?:halves|(third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s)\b", re.IGNORECASE
)
_PART_SIZES = {
    "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10,
}  # fmt: skip
_DOT_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3}){2,}")
_MAGNITUDES = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "lakh": 10**5, "million": 10**6,
    "crore": 10**7, "billion": 10**9, "trillion": 10**12, "k": 10**3, "K": 10**3, "M": 10**6,
    "B": 10**9, "mn": 10**6, "bn": 10**9, "m": 10**6,
}  # fmt: skip
_AND_PARTS = {
    "half": Fraction(1, 2), "quarter": Fraction(1, 4), "third": Fraction(1, 3),
    "three quarters": Fraction(3, 4), "two thirds": Fraction(2, 3),
}  # fmt: skip
_AND_PART = re.compile(r"\s+and\s+(?:(?:a|one)[ -])?(half|quarter|third|three[ -]quarters|two[ -]thirds)\b")
# The word, or the letter that stands right behind the digits.
_MAGNITUDE = re.compile(
    r"[ \u00a0-]?(dozen|hundred|thousand|lakh|million|crore|billion|trillion|mn|bn)s?\b"
    r"|([kKMBm])(?![\w²³^])"
)
# What makes a term of the digits before it: 5π, 3√2.
_SYMBOL = re.compile(r"\s?(?:\\?pi\b|π|√|\\sqrt|sqrt\b|\\cdot\s*[a-zA-Z\\]|[*·]\s?(?:π|\\pi|√|[xyz]\b))")
# A multiple of an unknown is no number: 2x + 1.
_UNKNOWN = re.compile(r"[xyzni](?![\w'’-]|\s*\d)")
_BOUND = re.compile(
    r"(?:\b(?:(?:more|less|fewer|greater|larger|smaller|higher|lower)\s+than(?:\s+or\s+equal\s+to)?"
    r"|at\s+(?:least|most)|over|under|above|below|up\s+to|no\s+(?:more|less|fewer)\s+than|almost"
    r"|nearly|exceeds)|[<>≤≥]=?|\\[gl]eq?)\s*(?:\*+|\$)?\s*$",
    re.IGNORECASE,
)
_BELOW_ZERO = re.compile(
    r"\s*(?:°\s?[CF]?|degrees?(?:\s+(?:Celsius|Fahrenheit))?)?\s+below\s+(?:zero|freezing)"
)


_ROOTS = ("√", "\\sqrt{", "sqrt(")


class Found(NamedTuple):
    """A number in a text: its value, how it was written, and whether a percent sign follows.

    `alternatives` are further values that the same characters may stand for. `kind` says whether
    it is a plain number, part of a date, a possible year ("in 1945"), a
    bound ("more than 5"), part of an expression ("5π") or a calculation without its result
    ("2 + 2").
    """

    value: Fraction
    written: str
    percent: bool = False
    alternatives: tuple[Fraction, ...] = ()
    kind: Kind = "number"
    start: int = 0
    end: int = 0


def numbers_in(text: str, decimal: Decimal) -> list[Found]:
    """Every number of a text that `plain_notation` has prepared, in order.

    >>> [str(one.value) for one in numbers_in("It took 1,200 g, 3/4 l and 2.5 million steps.", ".")]
    ['1200', '3/4', '2500000']
    """
    if not _DIGIT.search(text):
        return []
    found = sorted([*_dates(text), *_composites(text), *_prefixed(text)], key=lambda one: one.start)
    taken = [one.start for one in found]
    for match in _pattern(decimal).finditer(text):
        before = bisect_left(taken, match.end()) - 1
        if before >= 0 and match.start() < found[before].end:
            continue
        number = _read(match, decimal)
        if number is not None:
            found.append(number)
    return sorted(found, key=lambda one: one.start) if taken else found


def _dates(text: str) -> Iterator[Found]:
    for match in _DATE.finditer(text):
        parts = match.groupdict()
        if parts["year6"]:
            # Only a possible year; two of them are a range.
            for name in ("year6", "end"):
                if parts[name]:
                    value, (start, end) = Fraction(int(parts[name])), match.span(name)
                    yield Found(value, parts[name], kind="year", start=start, end=end)
            continue
        day = next((parts[n] for n in ("day", "day2", "day4", "day5") if parts[n]), None)
        year = next((v for n, v in parts.items() if n.startswith("year") and v), None)
        values = [Fraction(int(part)) for part in (year, day) if part is not None]
        yield Found(values[0], match[0], False, tuple(values[1:]), "date", match.start(), match.end())


def _composites(text: str) -> Iterator[Found]:
    for match in _COMPOSITE.finditer(text):
        if _DOT_GROUPS.fullmatch(match[0]) or _DATE.match(text, match.start()):
            continue
        parts = tuple(Fraction(int(part)) for part in re.findall(r"\d{1,300}", match[0]))
        yield Found(parts[0], match[0], False, parts, "expression", match.start(), match.end())


def _prefixed(text: str) -> Iterator[Found]:
    """The numbers to base 16, 2 and 8; 0x5 may also be a product."""
    for match in _PREFIXED.finditer(text):
        if len(match[0]) <= _LONGEST:
            product = (Fraction(0),) if match[0][1:].lower().startswith("x") else ()
            value = Fraction(int(match[0], 0))
            yield Found(value, match[0], False, product, "number", match.start(), match.end())


@functools.cache
def _pattern(decimal: Decimal) -> re.Pattern[str]:
    point, comma = (r"\.", ",") if decimal == "." else (",", r"\.")
    groups = rf"\d{{1,3}}(?:{comma}\d{{3}})+(?!\d)"
    spaced = rf"\d{{1,3}}(?:{_SPACES}\d{{3}})+(?!\d)"
    underscored = r"\d{1,3}(?:_\d{3})+(?![\d_])"
    apostrophes = rf"\d{{1,3}}(?:{_APOSTROPHES}\d{{3}})+(?!\d)"
    indian = rf"\d{{1,2}}(?:{comma}\d{{2}})+{comma}\d{{3}}(?!\d)"
    # Groups by the sign that is usually the decimal one: 1.234.567 and 1.234,50 leave no doubt.
    other = (
        rf"\d{{1,3}}(?:{point}\d{{3}})+{comma}\d+(?![\d.,]\d)"
        rf"|\d{{1,3}}(?:{point}\d{{3}}){{2,}}(?!\d)"
        # Groups by spaces or apostrophes, and the other sign before decimals: 1 234,56.
        rf"|\d{{1,3}}(?:(?:{_SPACES}|{_APOSTROPHES})\d{{3}})+{comma}\d+(?![\d.,]\d)"
    )
    # A comma that does not part three digits is a decimal one.
    lone = rf"\d+{comma}(?:\d{{1,2}}|\d{{4,}})(?![\d]|[.,]\d)"
    whole = rf"(?:{indian}|{groups}|{apostrophes}|{spaced}|{underscored}|\d+)"
    return re.compile(
        # A minus behind a digit or a word subtracts or joins; it is no sign.
        rf"(?P<sign>(?<![\w)\]}}%])[-+](?={_CURRENCY}?\s?[.\d]))?"
        rf"(?:(?P<currency>(?<![A-Za-z]){_CURRENCY})\s?(?P<late>-(?=[.\d]))?)?"
        rf"(?:(?P<mixed>(?<![\d/.,])\d+)\s+(?P<and>and\s+)?(?=\d+/\d))?"
        # Digits behind a letter are part of a name: CO2, x12, v1.5; behind ^ an exponent.
        rf"(?:(?<![A-Za-z_^\d])(?<![A-Za-z_]\d[.,])(?<![A-Za-z_]\d\d[.,])|(?<=USD)|(?<=EUR)|(?<=GBP)|(?<=CHF)|(?<=INR)|(?<=Rs))(?<!\^\{{)"
        rf"(?P<number>(?:{other}|{lone}|{whole}(?:{point}\d+)?|(?<!\d){point}\d+))"
        rf"(?:/(?P<below>\d+(?![\d/]|\.\d))|(?P<power>[eE][+-]?\d+(?!\w)"
        rf"|\s?(?:[x×*·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{{?[+-]?\d+\}}?)"
        rf"|\s?(?:\^|\*\*)\s?\{{?(?P<exponent>-?\d{{1,3}})(?!\d)\}}?"
        rf"|(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]{{1,3}})(?![⁰¹²³⁴-⁹]))?"
        rf"(?P<percent>\s?\\?%|\s(?:percent|per cent)\b)?"
    )


def _read(match: re.Match[str], decimal: Decimal) -> Found | None:
    """The number of a match, or None for what nobody means as a number."""
    if len(match.group()) > _LONGEST or _UNKNOWN.match(match.string, match.end()):
        return None
    value, alternatives = _digits(match["number"], decimal)
    scaled = _scaled(value, match)
    if scaled is None:
        return None
    text, end = match.string, match.end()
    sign = -1 if "-" in (match["sign"], match["late"]) else 1
    if scaled != value:
        alternatives = _other_readings(match, value, scaled)
    if part := _AND_PART.match(text, end):
        scaled += _AND_PARTS[re.sub("-", " ", part[1])]
        end = part.end()
    if magnitude := _magnitude(text, end, bool(match["currency"])):
        alternatives = (scaled,)
        scaled *= magnitude[0]
        end = magnitude[1]
    doubts, end = _doubts_behind(text, end, scaled)
    alternatives += doubts
    if below := _BELOW_ZERO.match(text, end):
        sign, end = -1, below.end()
    if sign < 0:
        scaled, alternatives = -scaled, tuple(-one for one in alternatives)
    return Found(
        scaled,
        text[match.start() : end].strip(),
        match["percent"] is not None,
        alternatives,
        _kind(text, match.start(), end),
        match.start(),
        end,
    )


def _kind(text: str, start: int, end: int) -> Kind:
    if _SYMBOL.match(text, end) or text[max(0, start - 6) : start].endswith(_ROOTS):
        return "expression"
    return "bound" if _BOUND.search(text[max(0, start - 40) : start]) else "number"


def _doubts_behind(text: str, end: int, value: Fraction) -> tuple[tuple[Fraction, ...], int]:
    """What else a number may be because of what follows it, and where it ends."""
    if text.startswith("!", end) and (product := _factorial(value)) is not None:
        # "It's 4!" is an exclamation, "n = 4!" a factorial.
        return (product,), end + 1
    if parts := _PARTS_BEHIND.match(text, end):
        return (value / (_PART_SIZES[parts[1].lower()] if parts[1] else 2),), end
    return (), end


def _other_readings(match: re.Match[str], value: Fraction, scaled: Fraction) -> tuple[Fraction, ...]:
    """What a number may also be: 7² a 7 with a footnote, "3 and 3/4" two numbers."""
    if match["raised"] is not None:
        return (value,)
    if match["and"] is not None:
        whole = Fraction(int(match["mixed"]))
        return (whole, scaled - whole)
    return ()


def _factorial(value: Fraction) -> Fraction | None:
    """The factorial of a small whole number, unless it is the number itself."""
    if value.denominator != 1 or not 2 < value <= _GREATEST_FACTORIAL:
        return None
    return Fraction(math.factorial(int(value)))


def _digits(written: str, decimal: Decimal) -> tuple[Fraction, tuple[Fraction, ...]]:
    """The value of digits and separators, and what it is under the other reading of one sign."""
    if written.isdigit():
        return Fraction(int(written)), ()
    digits = re.sub(rf"{_SPACES}|{_APOSTROPHES}|_", "", written)
    comma = "," if decimal == "." else "."
    if digits != written and comma in digits:
        # Groups by another sign leave the comma only one meaning: it stands before decimals.
        parts = written.split(" ") if " " in written else []
        value = Fraction(digits.replace(comma, "."))
        return value, tuple(_digits(part, decimal)[0] for part in parts)
    if " " in written:
        value, _ = _digits(digits, decimal)
        return value, tuple(_digits(part, decimal)[0] for part in written.split(" "))
    if decimal in digits and comma in digits and digits.rindex(comma) > digits.rindex(decimal):
        # Groups by the decimal sign: the last sign is the one before decimals.
        return Fraction(digits.replace(decimal, "").replace(comma, ".")), ()
    if digits.count(decimal) > 1:
        return Fraction(digits.replace(decimal, "")), ()
    if digits.count(comma) == 1 and decimal not in digits:
        left, right = digits.split(comma)
        if len(right) != 3:
            return Fraction(f"{left}.{right}"), (Fraction(left), Fraction(right))
        return Fraction(left + right), (Fraction(f"{left}.{right}"),)
    value = Fraction(digits.replace(comma, "").replace(decimal, "."))
    left, _, right = digits.partition(decimal)
    if len(right) == 3 and comma not in digits and 0 < len(left) <= 3 and left[0] != "0":
        return value, (Fraction(left + right),)
    return value, ()


def _scaled(value: Fraction, match: re.Match[str]) -> Fraction | None:
    """A value with its fraction, power of ten, exponent and whole part."""
    if match["below"] is not None:
        if not int(match["below"]):
            return None
        value /= int(match["below"])
    if match["power"] is not None:
        exponent = int(re.findall(r"[+-]?\d+", match["power"])[-1])
        if abs(exponent) > _GREATEST_EXPONENT:
            return None
        value *= Fraction(10) ** exponent
    if match["exponent"] is not None or match["raised"] is not None:
        power = int(match["exponent"] or match["raised"].translate(_RAISED_DIGITS))
        if abs(power) > _GREATEST_POWER or value > _GREATEST_BASE or not value:
            return None
        value = value**power
    if match["mixed"] is not None:
        value += int(match["mixed"])
    return value


def _magnitude(text: str, end: int, is_money: bool) -> tuple[int, int] | None:
    """The factor that follows a number, and where it ends."""
    match = _MAGNITUDE.match(text, end)
    if match is None:
        return None
    name = match[1] or match[2]
    if name == "m" and not is_money:
        # Metres or minutes rather than millions.
        return None
    return _MAGNITUDES[name], match.end()


_GLYPHS = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5",
    "⅗": "3/5", "⅘": "4/5", "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8",
    "⅞": "7/8",
}  # fmt: skip
_SIGNS = str.maketrans({"−": "-", "–": "-", "⁄": "/", "﹣": "-", "－": "-", "\u2011": "-", "％": "%"})
_TEX_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}|(\d)\s*(\d))")
_TEX_SPACING = re.compile(r"\{,\}|\\[,!;:]|(?<=\d)~(?=\d)")
# Tags say nothing about numbers, but for those that mark the answer.
_TAG = re.compile(r"</?(?!(?:final[_-]?)?(?:answer|result|solution)>)[a-zA-Z][^<>\n]{0,50}>", re.IGNORECASE)
_TEX_TEXT = re.compile(r"\\(?:text|textbf|mathbf|mathrm|mbox|bf|rm)\s*\{([^{}]*)\}")
_RAISED = re.compile(r"(?<=10)[⁺⁻]?[⁰¹²³⁴-⁹]+")
_NEGATIVE_WORD = re.compile(r"(?<![\d)%])(?<![\d)%]\s)\b(?:minus|negative)\s+(?=[\d.]|[$€£])", re.IGNORECASE)


def plain_notation(text: str) -> str:
    """The same text with typographic and TeX ways of writing numbers made plain.

    >>> plain_notation("−5½ or minus 3 or 2 × 10⁵")
    '-5 1/2 or -3 or 2 × 10^5'
    """
    if not text.isascii():
        text = text.translate(_SIGNS)
    if "\\" in text or "{" in text:
        text = _TEX_FRACTION.sub(_written_out, text)
        text = _TEX_SPACING.sub(lambda match: "," if match[0] == "{,}" else "", text)
        text = _TEX_TEXT.sub(r" \1 ", text)
    if "</" in text:
        text = _TAG.sub(" ", text)
    if "inus" in text or "INUS" in text or "egative" in text:
        text = _NEGATIVE_WORD.sub("-", text)
    if text.isascii():
        return text
    text = _RAISED.sub(lambda match: "^" + match[0].translate(_RAISED_DIGITS), text)
    for glyph, written in _GLYPHS.items():
        if glyph in text:
            text = text.replace(glyph, f" {written}")
    return text


def _written_out(match: re.Match[str]) -> str:
    mixed = match.string[: match.start()].endswith(tuple("0123456789"))
    above, below = match[1] or match[3], match[2] or match[4]
    return f"{' ' * mixed}{above}/{below}"
