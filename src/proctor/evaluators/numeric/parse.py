"""Parse the numbers in a text, in the notations that people and models use."""

from __future__ import annotations

import functools
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal, NamedTuple
from unicodedata import normalize

from proctor.evaluators.data_files import load_patterns
from proctor.evaluators.numeric.other_languages import Scale, read_scale, replace_minus_words, skip_percent_word

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
# The denominator of each word; the plural adds an s, except "halves".
_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip


def _join_words(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_WORD = _join_words({**_SMALL, **_TENS, **_GROUPS})
_CARDINAL = rf"(?:a\s+)?(?:{_WORD})(?:(?:\s*-\s*|\s+and\s+|\s+)(?:{_WORD}))*"
_DIGIT_WORD = r"(?:oh|zero|one|two|three|four|five|six|seven|eight|nine)"
_PART = _join_words(_PARTS)
_PLURAL = rf"(?:halves|(?:{_PART})s)"
_TIMES = rf"(?:\s+(?P<{{}}>{_join_words(_GROUPS)})\b)?"
_PHRASE = re.compile(
    # The lookahead rejects most positions of a text without trying the alternatives.
    r"\b(?=[a-z])(?P<minus>(?:minus|negative)\s+)?(?:"
    rf"(?P<whole>{_CARDINAL})\s+and\s+(?:(?:a|one)[\s-]+(?P<and_part>{_PART})"
    rf"|(?P<and_count>two|three|four|five|six|seven|eight|nine)[\s-]+(?P<and_parts>{_PLURAL}))\b"
    rf"{_TIMES.format('mixed_times')}"
    rf"|(?P<units>{_CARDINAL})\s+point(?P<decimals>(?:\s+{_DIGIT_WORD})+)\b"
    rf"{_TIMES.format('decimal_times')}"
    rf"|(?P<count>{_CARDINAL})[\s-]+(?P<parts>{_PLURAL})\b"
    rf"|one[\s-]+(?P<part>{_PART})\b"
    rf"|half\s+an?\s+(?P<half_of>{_join_words(_GROUPS)})\b"
    rf"|(?P<tens>{_join_words(_TENS)})-(?P<ordinal>{_join_words(_ORDINALS)})\b"
    rf"|(?P<words>{_CARDINAL})\b)",
    re.IGNORECASE,
)
# A year in words: "nineteen eighty-four".
_CENTURY = re.compile(
    r"(eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty)\s+"
    rf"((?:ten|eleven|twelve|\w+teen|{_join_words(_TENS)})(?:[\s-]+{_DIGIT_WORD})?)\Z",
    re.IGNORECASE,
)
# "half" is a number only as the complete answer; "a third person" contains no number.
_LONE_PART = re.compile(rf"(?:an?\s+|one\s+)?(?P<part>{_PART})[\s.!*_\"']*\Z", re.IGNORECASE)
_LONE_DECIMALS = re.compile(rf"point(?P<decimals>(?:\s+{_DIGIT_WORD})+)[\s.!*_\"']*\Z", re.IGNORECASE)
_POINT_BEFORE = re.compile(r"\bpoint\s+\Z", re.IGNORECASE)
_ANY_NUMBER = re.compile(rf"\d|\b(?:{_WORD}|{_PART}|halves|point)", re.IGNORECASE)


def may_have_number(text: str) -> bool:
    """Return whether a text has a digit or a number word; most longer texts without an answer have none."""
    return _ANY_NUMBER.search(text) is not None


def parse_word_numbers(text: str) -> Iterator[ParsedNumber]:
    """Yield every number written in English words, except a lone "one", which is usually a pronoun."""
    for match in _PHRASE.finditer(text):
        if match["words"] is not None and match["words"].lower() == "one":
            continue
        number = _read_phrase(match)
        if number is None:
            continue
        if _POINT_BEFORE.search(text[max(0, match.start() - 12) : match.start()]):
            # "At this point five people" and "It is point five": both readings are possible.
            decimals = _LONE_DECIMALS.match(f"point {match[0]}")
            number = number._replace(alternatives=(_read_decimals(decimals["decimals"]),) if decimals else ())
        yield number


def parse_leading_word_number(text: str) -> ParsedNumber | None:
    """Return the number in words that a text begins with, including "one" and a lone fraction."""
    start = len(text) - len(text.lstrip(" \t*_:\"'"))
    if (match := _LONE_PART.match(text, start)) is not None:
        value = Fraction(1, _PARTS[match["part"].lower()])
    elif (match := _LONE_DECIMALS.match(text, start)) is not None:
        value = _read_decimals(match["decimals"])
    else:
        phrase = _PHRASE.match(text, start)
        return None if phrase is None else _read_phrase(phrase)
    return ParsedNumber(value, match[0].strip(" .!*_\"'"), start=start, end=match.end())


def _read_phrase(match: re.Match[str]) -> ParsedNumber | None:
    """Return the number of a phrase, or None if its words are several numbers ("two three")."""
    cardinal = match["whole"] or match["units"] or match["count"] or match["words"]
    value = Fraction(1) if cardinal is None else _read_cardinal(cardinal)
    alternatives: tuple[Fraction, ...] = ()
    if value is None and match["words"] and (century := _CENTURY.match(match["words"])):
        # "nineteen eighty-four" may also be two numbers.
        alternatives = tuple(filter(None, map(_read_cardinal, century.groups())))
        value = alternatives[0] * 100 + alternatives[1] if len(alternatives) == 2 else None
    if value is None:
        return None
    if match["whole"] is not None:
        numerator = _SMALL.get((match["and_count"] or "one").lower(), 1)
        value += Fraction(numerator, _get_denominator(match["and_part"] or match["and_parts"]))
        value *= _get_factor(match["mixed_times"])
    elif match["units"] is not None:
        value = (value + _read_decimals(match["decimals"])) * _get_factor(match["decimal_times"])
    elif match["count"] is not None or match["part"] is not None:
        # A quarter is also a coin and three months: the text may mean the count.
        alternatives = (value,)
        value /= _get_denominator(match["parts"] or match["part"])
    elif match["half_of"] is not None:
        value = Fraction(_get_factor(match["half_of"]), 2)
    elif match["tens"] is not None:
        value = Fraction(_TENS[match["tens"].lower()] + _ORDINALS[match["ordinal"].lower()])
    if match["minus"]:
        value, alternatives = -value, tuple(-alternative for alternative in alternatives)
    return ParsedNumber(value, match[0], alternatives=alternatives, start=match.start(), end=match.end())


def _get_denominator(word: str) -> int:
    word = word.lower()
    return 2 if word == "halves" else _PARTS[word.removesuffix("s")]


def _get_factor(word: str | None) -> int:
    return 1 if word is None else _GROUPS[word.lower()]


def _read_decimals(words: str) -> Fraction:
    """Return the value of the digit words after "point"."""
    digits = [_SMALL.get(word, 0) for word in words.lower().split()]
    return Fraction(int("".join(map(str, digits))), 10 ** len(digits))


def _read_cardinal(phrase: str) -> Fraction | None:
    """Return the number of cardinal words, or None if they are several numbers ("two three")."""
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
            # Only a digit may follow "forty", and nothing may follow a digit.
            if last <= number or (word in _SMALL and last < 100 and (number > 9 or last < 20)):
                return None
            current, last = current + number, number
    return Fraction(total + current)


_LARGE_SCALE = re.compile(r"\b(?:million|billion|trillion)\b", re.IGNORECASE)
_CARDINAL_PHRASE = re.compile(rf"\b(?:{_CARDINAL}|[0-9]{{1,3}}\s+thousand)\b(?!-?\w)", re.IGNORECASE)
_TEN = re.compile(rf"\b(?:{_join_words(_TENS)})\b", re.IGNORECASE)


def replace_number_words(text: str) -> str:
    """Write cardinal words from twenty to thousands in digits; "five million" and bare groups ("dozen") stay.

    >>> replace_number_words("Thirty-one of one hundred and five boxes held two dozen eggs, a few hundred or ten.")
    '31 of 105 boxes held 24 eggs, a few hundred or ten.'
    """
    return _CARDINAL_PHRASE.sub(_write_digits, text)


def _write_digits(match: re.Match[str]) -> str:
    phrase = match[0]
    if phrase[0].isdigit():
        return f"{phrase.split()[0]}000"
    words = re.findall(r"[a-z]+", phrase.lower())
    if _LARGE_SCALE.search(phrase) or (len(words) == 1 and words[0] not in _TENS):
        return phrase
    # "Twenty and thirty" are two numbers; "and" joins only what follows a group.
    is_single = all(words[index - 1] in _GROUPS for index, word in enumerate(words) if word == "and")
    value = _read_cardinal(phrase) if is_single else None
    return _TEN.sub(lambda ten: str(_TENS[ten[0].lower()]), phrase) if value is None else str(value)


Decimal = Literal[".", ","]
Category = Literal["number", "date", "year", "bound", "expression", "calculation", "unclear", "label"]

_DIGIT = re.compile(r"\d")
_MAX_LENGTH = 300
_MAX_EXPONENT = 400
_MAX_BASE, _MAX_POWER = 10**6, 64

_CURRENCY = r"(?:\\\$|(?:US|A|C|NZ|HK)?[$€£¥₹₽₩₺₪฿¢]|USD|EUR|GBP|CHF|INR|Rs\.?)"
_SPACES = "[ \u00a0\u2009\u202f]"
_APOSTROPHES = "['’]"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
# These words may follow a year; any other word is a unit: "in 1500 seconds".
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
    r"|(?<![\d/.-])(?P<year4>\d{4})-\d{2}-(?P<day4>\d{2})(?:T\d[\d:.]{0,20}Z?)?(?![\d-])"
    r"|(?<![\d/.])(?P<day5>\d{1,2})(?P<mark>[/.])\d{1,2}(?P=mark)(?P<year5>(?:19|20)\d{2})(?![\d/])"
)
# A time, a ratio or a version: several numbers that do not form one number.
_COMPOSITE = re.compile(
    r"(?<![\d.:])\d+(?::\d+)+|(?<![\d.,])\d+(?:\.\d+){2,}(?![\d,])|(?<![\d/])\d+(?:/\d+){2,}"
    # 2h30, 5ft6, 1_00: letters or underscores between digits, but not 1e5, 3x4 or 1_000.
    r"|(?<![\w.,])(?!\d+(?:\.\d+)?[eE]\d+\b|\d{1,3}(?:_\d{3})+\b|0[xX][\da-fA-F]+\b|0[bB][01]+\b|0[oO][0-7]+\b)"
    r"\d+(?:[.,]\d+)?(?!(?:[xX]|[kKMBm][-/])\d)(?:_|[a-zA-Z]{1,3})\d+\w*"
)
# A quick test: without these characters there are no dates, composites or prefixes.
_SPECIAL_SIGN = re.compile(r"[^\W\d]|[:/-]|\.\d")
# Numbers in another base, as programs write them: 0x1F, 0b101, 0o17.
_PREFIXED = re.compile(r"(?<![\w.])0(?:[xX][\da-fA-F]+|[bB][01]+|[oO][0-7]+)\b")
_RAISED_DIGITS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
# An exclamation mark after a larger number is not a factorial: "It's 42!".
_MAX_FACTORIAL = 20
_PARTS_AFTER = re.compile(rf"(?i)\s+(?:halves|({_PART})s)\b(?!\s+(?:place|digit|column|position))")
# Halves and quarters may also be counted, as periods or coins; from tenths on, the parts are only fractions.
_COUNTABLE_PARTS, _DECIMAL_PARTS = (2, 4), 10
_DOT_GROUPS = re.compile(r"\d{1,3}(?:\.\d{3}){2,}")
# Letters directly after the digits, and abbreviations.
_SUFFIXES = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "mn": 10**6, "bn": 10**9, "m": 10**6}
_AND_PARTS = {
    "half": Fraction(1, 2), "quarter": Fraction(1, 4), "third": Fraction(1, 3),
    "three quarters": Fraction(3, 4), "two thirds": Fraction(2, 3),
}  # fmt: skip
_AND_PART = re.compile(r"\s+and\s+(?:(?:a|one)[ -])?(half|quarter|third|three[ -]quarters|two[ -]thirds)\b")
_SUFFIX = re.compile(r"[ \u00a0-]?(?:mn|bn)\b|[kKMBm](?![\w²³^])")
# These make the digits before them a term of an expression: 5π, 3√2.
_SYMBOL = re.compile(r"\s?(?:\\?pi\b|π|√|\\sqrt|sqrt\b|\\cdot\s*[a-zA-Z\\]|[*·]\s?(?:π|\\pi|√|[xyz]\b))")
# A multiple of an unknown is not a number: 2x + 1.
_UNKNOWN_VARIABLE = re.compile(r"[xyzni](?![\w'’-]|\s*\d)")
_BOUND = re.compile(
    r"(?:\b(?:(?:more|less|fewer|greater|larger|smaller|higher|lower)\s+than(?:\s+or\s+equal\s+to)?"
    r"|at\s+(?:least|most)|over|under|above|below|up\s+to|no\s+(?:more|less|fewer)\s+than|almost"
    r"|nearly|exceeds)|(?<!-)[<>≤≥]=?|\\[gl]eq?)\s*(?:\*+|\$)?\s*$",
    re.IGNORECASE,
)
# A quick test: without these characters nothing in `_BOUND` matches.
_POSSIBLE_BOUND = re.compile(
    r"(?=[tlmouabne<>≤≥\\])(?:than|least|most|over|under|above|below|up\s+to|nearly|exceeds|equal|[<>≤≥\\])",
    re.IGNORECASE,
)
_BOUND_REACH = 40
# Nothing that changes a number follows it: no word, unit or operator.
_PLAIN_END = re.compile(r"\s*+(?:[^\w!°\\√*·-]|\d|\Z)")
_BELOW_ZERO = re.compile(r"\s*(?:°\s?[CF]?|degrees?(?:\s+(?:Celsius|Fahrenheit))?)?\s+below\s+(?:zero|freezing)")
_ROOTS = ("√", "\\sqrt{", "sqrt(")


class ParsedNumber(NamedTuple):
    """A number in a text: its value, its text, and whether a percent sign follows.

    `alternatives` are other values that the same characters may represent. `category` separates plain
    numbers from parts of dates, possible years ("in 1945"), bounds ("more than 5"), parts of expressions
    ("5π"), calculations without a result ("2 + 2") and numbers next to words that may change them.
    `before` and `after` are the characters around the number in its sentence; `is_assumed` is True in a condition.
    `doubt` says why the number is not a plain answer.
    """

    value: Fraction
    text: str
    is_percent: bool = False
    alternatives: tuple[Fraction, ...] = ()
    category: Category = "number"
    start: int = 0
    end: int = 0
    before: str = ""
    after: str = ""
    is_assumed: bool = False
    doubt: str = ""


def parse_numbers(text: str, decimal: Decimal) -> list[ParsedNumber]:
    """Return every number of a text that `simplify_notation` has prepared, in order."""
    if not _DIGIT.search(text):
        return []
    numbers: list[ParsedNumber] = []
    if _SPECIAL_SIGN.search(text):
        matches = [*_find_dates(text), *_find_composites(text), *_find_prefixed(text)]
        for special in sorted(matches, key=lambda number: number.start):
            if not numbers or special.start >= numbers[-1].end:
                numbers.append(special)
    starts = [number.start for number in numbers]
    bound_ends = [match.end() for match in _POSSIBLE_BOUND.finditer(text)]
    last_end = 0
    for match in _compile_pattern(decimal).finditer(text):
        start, end = match.span()
        before = bisect_left(starts, end) - 1
        # The 2000 of 1億2000万 is part of the number before it.
        if start < last_end or (before >= 0 and start < numbers[before].end):
            continue
        after_bound = bisect_right(bound_ends, start - _BOUND_REACH)
        may_be_bound = after_bound < len(bound_ends) and bound_ends[after_bound] <= start
        if match[0].isdecimal() and len(match[0]) <= _MAX_LENGTH and _PLAIN_END.match(text, end):
            category = _categorize(text, start, end, may_be_bound)
            numbers.append(ParsedNumber(Fraction(int(match[0])), match[0], False, (), category, start, end))
        elif (number := _read_match(match, decimal, may_be_bound)) is not None:
            numbers.append(number)
            last_end = number.end
    return sorted(numbers, key=lambda number: number.start) if starts else numbers


def parse_years(text: str) -> list[ParsedNumber]:
    """Return the numbers of a text that may be years ("in 1945")."""
    return [number for number in _find_dates(text) if number.category == "year"] if _SPECIAL_SIGN.search(text) else []


def _find_dates(text: str) -> Iterator[ParsedNumber]:
    for match in _DATE.finditer(text):
        groups = match.groupdict()
        if groups["year6"]:
            # Only a possible year; two of them are a range.
            for name in ("year6", "end"):
                if groups[name]:
                    start, end = match.span(name)
                    year = Fraction(int(groups[name]))
                    yield ParsedNumber(year, groups[name], category="year", start=start, end=end)
            continue
        fields = [[v for n, v in groups.items() if n.startswith(prefix) and v] for prefix in ("year", "day")]
        value, *others = (Fraction(int(values[0])) for values in fields if values)
        yield ParsedNumber(value, match[0], False, tuple(others), "date", *match.span())


def _find_composites(text: str) -> Iterator[ParsedNumber]:
    for match in _COMPOSITE.finditer(text):
        if _DOT_GROUPS.fullmatch(match[0]) or _DATE.match(text, match.start()):
            continue
        values = tuple(Fraction(int(digits)) for digits in re.findall(r"\d{1,300}", match[0]))
        yield ParsedNumber(values[0], match[0], False, values, "expression", *match.span())


def _find_prefixed(text: str) -> Iterator[ParsedNumber]:
    for match in _PREFIXED.finditer(text):
        if len(match[0]) <= _MAX_LENGTH:
            # 0x5 may also be a product.
            product = (Fraction(0),) if match[0][1:].lower().startswith("x") else ()
            yield ParsedNumber(Fraction(int(match[0], 0)), match[0], False, product, "number", *match.span())


@functools.cache
def _compile_pattern(decimal: Decimal) -> re.Pattern[str]:
    point, comma = (r"\.", ",") if decimal == "." else (",", r"\.")
    groups = rf"\d{{1,3}}(?:{comma}\d{{3}})+(?!\d)"
    spaced = rf"\d{{1,3}}(?:{_SPACES}\d{{3}})+(?!\d)"
    underscored = r"\d{1,3}(?:_\d{3})+(?![\d_])"
    apostrophes = rf"\d{{1,3}}(?:{_APOSTROPHES}\d{{3}})+(?!\d)"
    indian = rf"\d{{1,2}}(?:{comma}\d{{2}})+{comma}\d{{3}}(?!\d)"
    # Groups by the usual decimal sign are unambiguous in 1.234.567 and 1.234,50.
    other = (
        rf"\d{{1,3}}(?:{point}\d{{3}})+{comma}\d+(?![\d.,]\d)"
        rf"|\d{{1,3}}(?:{point}\d{{3}}){{2,}}(?!\d)"
        # Spaces or apostrophes between groups, and the other sign before the decimals: 1 234,56.
        rf"|\d{{1,3}}(?:(?:{_SPACES}|{_APOSTROPHES})\d{{3}})+{comma}\d+(?![\d.,]\d)"
    )
    # A comma that does not precede exactly three digits is a decimal comma.
    lone = rf"\d+{comma}(?:\d{{1,2}}|\d{{4,}})(?![\d]|[.,]\d)"
    whole = rf"(?:{indian}|{groups}|{apostrophes}|{spaced}|{underscored}|\d+)"
    # Digits without separators are the most common and need none of the other alternatives.
    plain = rf"\d++(?!\d|[.,]\d|(?:{_SPACES}|{_APOSTROPHES}|_)\d{{3}})"
    return re.compile(
        # The lookahead rejects most positions of a text.
        r"(?=[-+.,\d\\$€£¥₹₽₩₺₪฿¢UACNHEGIR])"
        # A minus after a digit or a word subtracts or joins; it is not a sign.
        rf"(?P<sign>(?<![\w)\]}}%])[-+](?={_CURRENCY}?\s?[.\d]))?"
        rf"(?:(?P<currency>(?<![A-Za-z]){_CURRENCY})\s?(?P<late>-(?=[.\d]))?)?"
        rf"(?:(?P<mixed>(?<![\d/.,])\d++)\s++(?P<and>and\s+)?(?=\d++/\d))?"
        # Digits after a letter are part of a name (CO2, x12, v1.5); after ^ they are an exponent.
        rf"(?:(?<![A-Za-z_^\d])(?<![A-Za-z_]\d[.,])(?<![A-Za-z_]\d\d[.,])|(?<=USD)|(?<=EUR)|(?<=GBP)|(?<=CHF)|(?<=INR)|(?<=Rs))(?<!\^\{{)"
        rf"(?P<number>(?:{plain}|{other}|{lone}|{whole}(?:{point}\d+)?|(?<!\d){point}\d+))"
        rf"(?:/(?P<below>\d+(?![\d/]|\.\d))|(?P<power>[eE][+-]?\d+(?!\w)"
        rf"|\s?(?:[x×*·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{{?[+-]?\d+\}}?)"
        rf"|\s?(?:\^|\*\*)\s?\{{?(?P<exponent>-?\d{{1,3}})(?!\d)\}}?"
        rf"|(?P<raised>[⁺⁻]?[⁰¹²³⁴-⁹]{{1,3}})(?![⁰¹²³⁴-⁹]))?"
        rf"(?P<percent>\s?\\?%|\s(?:percent|per cent)\b)?"
    )


def _read_match(match: re.Match[str], decimal: Decimal, may_be_bound: bool) -> ParsedNumber | None:
    if len(match.group()) > _MAX_LENGTH or _UNKNOWN_VARIABLE.match(match.string, match.end()):
        return None
    value, alternatives = _read_digits(match["number"], decimal)
    scaled = _apply_notation(value, match)
    if scaled is None:
        return None
    text, (start, end) = match.string, match.span()
    sign = -1 if "-" in (match["sign"], match["late"]) else 1
    if scaled != value:
        alternatives = _find_other_readings(match, value, scaled)
    if fraction := _AND_PART.match(text, end):
        scaled += _AND_PARTS[fraction[1].replace("-", " ")]
        end = fraction.end()
    if scale := _read_scale(text, end, has_currency=match["currency"] is not None):
        alternatives = (scaled, *(scaled * factor for factor in scale.other_factors))
        scaled, end = scaled * scale.factor + scale.added, scale.end
    if text.startswith("!", end) and scaled.denominator == 1 and 2 < scaled <= _MAX_FACTORIAL:
        # "It's 4!" is an exclamation, "n = 4!" a factorial.
        alternatives += (Fraction(math.factorial(int(scaled))),)
        end += 1
    elif parts := _PARTS_AFTER.match(text, end):
        below = _PARTS[parts[1].lower()] if parts[1] else 2
        alternatives += (scaled / below if below in _COUNTABLE_PARTS else scaled,) if below < _DECIMAL_PARTS else ()
        scaled, end = (scaled, end) if below in _COUNTABLE_PARTS else (scaled / below, parts.end())
    if below_zero := _BELOW_ZERO.match(text, end):
        sign, end = -1, below_zero.end()
    if sign < 0:
        scaled, alternatives = -scaled, tuple(-alternative for alternative in alternatives)
    percent_end = end if match["percent"] else skip_percent_word(text, end)
    is_percent, end = percent_end is not None, percent_end or end
    category = _categorize(text, start, end, may_be_bound)
    return ParsedNumber(scaled, text[start:end].strip(), is_percent, alternatives, category, start, end)


def _read_scale(text: str, position: int, *, has_currency: bool) -> Scale | None:
    suffix = _SUFFIX.match(text, position)
    if suffix is None:
        return read_scale(text, position)
    # "5m" is meters or minutes, and millions only after a currency sign.
    if suffix[0] == "m" and not has_currency:
        return None
    return Scale(_SUFFIXES[suffix[0].strip(" \u00a0-")], 0, suffix.end())


def _find_other_readings(match: re.Match[str], value: Fraction, scaled: Fraction) -> tuple[Fraction, ...]:
    """Return other readings: 7² may be a 7 with a footnote, "3 and 3/4" two numbers."""
    if match["raised"] is not None:
        return (value,)
    if match["and"] is None:
        return ()
    integer = Fraction(int(match["mixed"]))
    return (integer, scaled - integer)


def _categorize(text: str, start: int, end: int, may_be_bound: bool) -> Category:
    if text.endswith(_ROOTS, max(0, start - 6), start) or _SYMBOL.match(text, end):
        return "expression"
    is_bound = may_be_bound and find_bound(_BOUND, text[max(0, start - _BOUND_REACH) : start])
    return "bound" if is_bound else "number"


def find_bound(pattern: re.Pattern[str], before: str) -> re.Match[str] | None:
    """Return the words of a bound right before a number; "adds up to" introduces a value."""
    bound = pattern.search(before)
    is_value = bound is not None and load_patterns("numeric", "phrases.yaml")["value_up_to"].search(before)
    return None if is_value else bound


def _read_digits(written: str, decimal: Decimal) -> tuple[Fraction, tuple[Fraction, ...]]:
    """Return the value of digits and separators, and its value under the other reading of a separator."""
    if written.isdigit():
        return Fraction(int(written)), ()
    digits = re.sub(rf"{_SPACES}|{_APOSTROPHES}|_", "", written)
    comma = "," if decimal == "." else "."
    groups = written.split(" ") if " " in written else []
    if digits != written and comma in digits:
        # Another sign separates the groups, so the comma separates the decimals.
        value = Fraction(digits.replace(comma, "."))
        return value, tuple(_read_digits(group, decimal)[0] for group in groups)
    if groups:
        value, _ = _read_digits(digits, decimal)
        return value, tuple(_read_digits(group, decimal)[0] for group in groups)
    if decimal in digits and comma in digits and digits.rindex(comma) > digits.rindex(decimal):
        # The decimal sign separates groups here, so the last sign separates the decimals.
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


def _apply_notation(value: Fraction, match: re.Match[str]) -> Fraction | None:
    """Apply the fraction, power of ten, exponent and integer part that surround the digits."""
    if match["below"] is not None:
        if not int(match["below"]):
            return None
        value /= int(match["below"])
    if match["power"] is not None:
        exponent = int(re.findall(r"[+-]?\d+", match["power"])[-1])
        if abs(exponent) > _MAX_EXPONENT:
            return None
        value *= Fraction(10) ** exponent
    if match["exponent"] is not None or match["raised"] is not None:
        power = int(match["exponent"] or match["raised"].translate(_RAISED_DIGITS))
        if abs(power) > _MAX_POWER or value > _MAX_BASE or not value:
            return None
        value = value**power
    if match["mixed"] is not None:
        value += int(match["mixed"])
    return value


_FRACTION_GLYPH = re.compile("[¼-¾⅓-⅞]")
# The long s and the Kelvin sign match s and k in patterns that ignore case.
_SIGNS = str.maketrans(
    {"ſ": "s", "\u212a": "K", "−": "-", "–": "-", "⁄": "/", "﹣": "-", "－": "-", "\u2011": "-", "％": "%", "٪": "%"}
)
# The Arabic signs between groups of three digits and before decimals.
_ARABIC_GROUPS, _ARABIC_DECIMAL = "٬", "٫"
# Emphasis in Markdown: __42__.
_UNDERSCORES = re.compile(r"(?<!\w)(_{1,3})(?=[^\s_])([^_\n]{1,200})(?<=[^\s_])\1(?!\w)")
_PLUS_MINUS = re.compile(r"\+\s?/\s?-|\bplus(?:\s+or\s+|[\s/-])minus\b|\\(?:pm|mp)(?![a-zA-Z])", re.IGNORECASE)
_TEX_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}|(\d)\s*(\d))")
_TEX_SPACING = re.compile(r"\{,\}|\\[,!;:]|(?<=\d)~(?=\d)")
# Tags are irrelevant for numbers, except tags that mark the answer.
_TAG = re.compile(r"</?(?!(?:final[_-]?)?(?:answer|result|solution)>)[a-zA-Z][^<>\n]{0,50}>", re.IGNORECASE)
_TEX_TEXT = re.compile(r"\\(?:text|textbf|mathbf|mathrm|mbox|bf|rm)\s*\{([^{}]*)\}")
_RAISED = re.compile(r"(?<=10)[⁺⁻]?[⁰¹²³⁴-⁹]+")
_NEGATIVE_WORD = re.compile(r"(?<![\d)%])(?<![\d)%]\s)\b(?:minus|negative)\s+(?=[\d.]|[$€£])", re.IGNORECASE)


# Text that is crossed out, in Markdown, HTML and TeX, and by the combining stroke after each character.
_STRUCK = re.compile(
    r"~~[^~\n]{1,300}~~|<(?P<tag>s|del|strike)>[^<>]{0,300}</(?P=tag)>|\\(?:[bx]?cancel|sout|st)\s?\{[^{}]{0,300}\}"
    r"|(?:[^\s\u0335-\u0338][\u0335-\u0338]+\s?)+",
    re.IGNORECASE,
)
_STRUCK_SIGNS = re.compile(r"~~|(?i:</(?:s|del|strike)>)|\\|[\u0335-\u0338]")


def remove_struck_text(text: str) -> str:
    """Remove text that is crossed out: "~~41~~ 42"."""
    return _STRUCK.sub(" ", text) if _STRUCK_SIGNS.search(text) else text


# Four groups of four digits, as on a card; four years in a row are a list.
_CARD_NUMBER = re.compile(
    r"(?<![\w.,-])(?!(?:(?:19|20)\d\d[ -]){3})\d{4}(?:([ -])\d{4})(?:\1\d{4}){2}(?![\w-]|[ .,]\d)"
)


def simplify_notation(text: str, decimal: Decimal = ".") -> str:
    """Replace typographic, Markdown and TeX notations of numbers with plain notations."""
    if not text.isascii():
        text = text.translate(_SIGNS).replace(_ARABIC_GROUPS, "'").replace(_ARABIC_DECIMAL, decimal)
    if "+" in text or "\\" in text or "plus" in text.lower():
        text = _PLUS_MINUS.sub("±", text)
    if _DIGIT.search(text):
        text = _CARD_NUMBER.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    if "_" in text:
        text = _UNDERSCORES.sub(lambda match: f"{'*' * len(match[1])}{match[2]}{'*' * len(match[1])}", text)
    if "\\" in text or "{" in text:
        text = _TEX_FRACTION.sub(_expand_fraction, text)
        text = _TEX_SPACING.sub(lambda match: "," if match[0] == "{,}" else "", text)
        text = _TEX_TEXT.sub(r" \1 ", text)
    if "</" in text:
        text = _TAG.sub(" ", text)
    if "inus" in text or "INUS" in text or "egative" in text:
        text = _NEGATIVE_WORD.sub("-", text)
    text = replace_minus_words(text)
    if text.isascii():
        return text
    text = _RAISED.sub(lambda match: "^" + match[0].translate(_RAISED_DIGITS), text)
    # The compatibility form of ½ is 1⁄2.
    return _FRACTION_GLYPH.sub(lambda match: " " + normalize("NFKC", match[0]).replace("⁄", "/"), text)


def _expand_fraction(match: re.Match[str]) -> str:
    is_mixed = match.string[: match.start()].endswith(tuple("0123456789"))
    return f"{' ' * is_mixed}{match[1] or match[3]}/{match[2] or match[4]}"
