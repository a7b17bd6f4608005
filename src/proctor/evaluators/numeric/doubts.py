"""Numbers that compete to be the answer of one clause or sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from proctor.evaluators.numeric.parse import Decimal, Found, leading_word_number, numbers_in, word_numbers

# "not 42": the number itself is excluded, whatever the rest of the sentence says.
_EXCLUDED = re.compile(
    r"(?:\b(?:not|never|rather than|instead of)|n['’]t)\s+(?:equal to\s+)?[*$€£]*\s*\Z", re.IGNORECASE
)
# "can't be 42", "it is not the case that x = 42", "it is false that the answer is 42".
_DENIED_BEFORE = re.compile(
    r"(?:(?:\b(?:not|never|cannot)|n['’]t)\s+(?:(?:possibly|really|actually|ever|likely|even|to)\s+)*"
    r"(?:be|equals?|been|have been|come to|the case|true|correct|right|the answer|think|believe"
    r"|say)\b"
    r"|\b(?:wrong|incorrect|false|unlikely|untrue|impossible|mistake|error)\s+"
    r"(?:that|to\s+(?:say|be|assume|think|claim|answer)|for\s+\w+\s+to\s+be"
    r"|(?:answer|result|value)\s+(?:is|was|would be))\b"
    r"|\bdoubt\s+(?:that|it|the)|\b(?:is|are|was|seems?)\s+(?:very\s+|highly\s+)?unlikely\b)"
    r"(?:(?!\b(?:but|so|because|since|therefore|thus|hence)\b)[^,;:!?\n]){0,60}\Z",
    re.IGNORECASE,
)
# "42 is wrong", "42 is not the answer", "42, which is incorrect".
_DENIED_AFTER = re.compile(
    r"[*_%$)\"'’\s]*(?:[a-z]+\s+)?(?:,\s*(?:which|that|but (?:that|this|it))\s+)?"
    r"(?:(?:is|was|would be|must be|has to be|seems?|looks)\s+"
    r"(?:(?:clearly|definitely|simply|also|obviously|probably|actually|certainly|just|very|highly)\s+)*"
    r"(?:wrong|incorrect|false|unlikely|untrue|impossible|a mistake|an error"
    r"|(?:not|never)\s*(?:the|my|our|right|correct|it\b|possible|true|valid|what|[.!,;]|\Z))"
    r"|(?:is|was)n['’]t\s*(?:the|my|our|right|correct|it\b|possible|true|valid|what|[.!,;]|\Z)"
    r"|(?:can(?:not|['’]t| not)|(?:could|would)(?:n['’]t| not| never))\s+(?:possibly\s+)?be\b"
    r"|does(?:n['’]t| not)\s+(?:work|fit|make sense|satisfy))",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"not\b|never|n['’]t|wrong|incorrect|false|unlikely|untrue|impossible|mistake|error|doubt", re.IGNORECASE
)
_PHRASE_DENIAL = re.compile(r"\b(?:not|never|cannot|unlikely)\b|n['’]t\b", re.IGNORECASE)

# A marker that takes back what was said before it. The weak ones also begin other remarks.
_CORRECTION = re.compile(
    r"(?:^|[.!?,;:…(\n—-]|\b(?:oh|no|but|hmm|sorry|and),?)\s{0,4}(?:"
    r"(?P<strong>wait(?=\s?[,.!:;…—-]|\s(?:no|a\s|i\b|that|it\b|let))|hold on|correction(?=\s?[:,])"
    r"|(?:scratch|strike) that|i (?:mean|meant)\b"
    r"|i (?:have )?made (?:a|an) (?:\w{1,20} )?(?:mistake|error)"
    r"|(?:let me|i (?:need|have) to) correct|on second thoughts?|oops|my (?:mistake|bad)\b"
    r"|(?:that|this|it)(?:['’]s| is| was) (?:wrong|incorrect|false|not (?:right|correct))"
    r"|(?:that|this|it) can(?:not|['’]t| not) be (?:right|correct))"
    r"|(?P<weak>actually\b|sorry\b(?!\s(?:for|about|if|to)\b)"
    r"|no,?(?=\s(?:it|that)(?:['’]s| is| should)\b)))",
    re.IGNORECASE,
)
# What may stand between a marker and the number that replaces the earlier one.
_REPLACES = re.compile(
    r"(?:[^\d]*[.!?,;:\n—])?\s*(?:so\s+|but\s+)?"
    r"(?:(?:it|that|this|x|i (?:mean|meant)|make (?:it|that)"
    r"|(?:the|my) (?:\w+ )?(?:answer|result|total|solution|number|value))\s*)?"
    r"(?:['’]s|is|was|should (?:be|have been|read)|must be|would be|equals|=)?\s*"
    r"(?:actually|really|rather|in fact)?\s*[*_\"'(\\$€£¥-]*\Z",
    re.IGNORECASE,
)

_UNITS = {
    ("dollar", "cent"): 100, ("$", "cent"): 100, ("euro", "cent"): 100,
    ("€", "cent"): 100, ("pound", "penny"): 100, ("hour", "minute"): 60,
    ("minute", "second"): 60, ("foot", "inch"): 12, ("year", "month"): 12,
    ("week", "day"): 7, ("day", "hour"): 24, ("pound", "ounce"): 16,
    ("meter", "centimeter"): 100, ("kilogram", "gram"): 1000,
}  # fmt: skip
_UNIT_NAMES = {
    "feet": "foot", "ft": "foot", "inches": "inch", "in": "inch", "pence": "penny",
    "p": "penny", "h": "hour", "hr": "hour", "min": "minute", "sec": "second", "s": "second",
    "lb": "pound", "oz": "ounce", "m": "meter", "cm": "centimeter", "metre": "meter",
    "centimetre": "centimeter", "kg": "kilogram", "g": "gram", "¢": "cent",
}  # fmt: skip
_UNIT_BETWEEN = re.compile(r"\s?((?!and\b)[a-zA-Z]{1,11})?,?\s+(?:and\s+)?\Z")
_UNIT_AFTER = re.compile(r"\s?([a-zA-Z]{1,11}\b|¢)")
_SHARE = re.compile(r"\s+(?:in|out of)\s+(?:every\s+|each\s+|a\s+)?\Z", re.IGNORECASE)
# A range or a subtraction.
_MINUS = re.compile(r"[ \t]*-[ \t]*")
_PART_OF = re.compile(r"\s+(?:of|times)\s+(?:the\s+)?\$?\Z", re.IGNORECASE)
_RESTATED = re.compile(
    r",\s+(?:or|i\.e\.,?|that is,?|which is|which equals|so|meaning|namely)\b[^\d,;.!?\n]{0,30}\Z",
    re.IGNORECASE,
)


class Combined(NamedTuple):
    """The value that two neighbouring numbers have together, and whether it is as likely meant."""

    parts: tuple[Found, Found]
    number: Found
    is_rival: bool


def is_denied(text: str, number: Found) -> bool:
    """Whether the clause of a number says that it is not the answer.

    >>> from proctor.evaluators.numeric.parse import numbers_in
    >>> texts = ("It can't be 42.", "42 is wrong.", "It's 42.")
    >>> [is_denied(text, numbers_in(text, ".")[0]) for text in texts]
    [True, True, False]
    """
    return is_excluded(text, number) or is_doubted(text, number)


def is_excluded(text: str, number: Found) -> bool:
    """Whether "not" or its like stands right before a number."""
    return _EXCLUDED.search(text[max(0, number.start - 30) : number.start]) is not None


def is_doubted(text: str, number: Found) -> bool:
    """Whether the words around a number deny a statement that contains it."""
    before, after = (text[max(0, number.start - 110) : number.start], text[number.end : number.end + 80])
    if _DENIAL.search(before):
        clause = re.split(r"[.!?;\n]\s|[\n,;]", before)[-1]
        if _DENIED_BEFORE.search(clause):
            return True
    return _DENIAL.search(after) is not None and _DENIED_AFTER.match(after) is not None


def has_denial(text: str) -> bool:
    """Whether a text has a word that may deny something."""
    return _DENIAL.search(text) is not None


def denies_announcement(phrase: str) -> bool:
    """Whether an announcement denies what follows: "The answer can't be".

    >>> denies_announcement("answer can't be"), denies_announcement("answer is")
    (True, False)
    """
    return _PHRASE_DENIAL.search(phrase) is not None


def last_correction(text: str) -> re.Match[str] | None:
    """The last marker of a correction.

    >>> last_correction("It is 42. Sorry, I mean 43.").group("strong")
    'I mean'
    """
    return max(_CORRECTION.finditer(text), key=lambda match: match.start(), default=None)


def replaces(between: str) -> bool:
    """Whether the words between a correction and a number introduce the new answer.

    >>> replaces(", it should be "), replaces(", this took only ")
    (True, False)
    """
    return len(between) < 200 and _REPLACES.match(between) is not None


def is_restated(text: str, number: Found) -> bool:
    """Whether a number gives what stands before it in another form: "3/4 of 100, or 75"."""
    return _RESTATED.search(text[max(0, number.start - 50) : number.start]) is not None


def combined(text: str, numbers: Sequence[Found]) -> Iterator[Combined]:
    """The values of neighbours that belong together.

    >>> from proctor.evaluators.numeric.parse import numbers_in
    >>> text = "1 in 6, or 5 dollars and 20 cents"
    >>> [str(one.number.value) for one in combined(text, numbers_in(text, "."))]
    ['1/6', '26/5', '520']
    """
    for first, second in pairwise(numbers):
        between = text[first.end : second.start]
        if len(between) > 30:
            continue
        written = text[first.start : second.end]
        if _SHARE.fullmatch(between) and second.value:
            value = first.value / second.value
            yield Combined((first, second), Found(value, written), is_rival=False)
        elif _PART_OF.fullmatch(between) and (first.percent or "/" in first.written):
            share = first.value / 100 if first.percent else first.value
            yield Combined((first, second), Found(share * second.value, written), is_rival=True)
        elif _MINUS.fullmatch(between):
            value = first.value - second.value
            yield Combined((first, second), Found(value, written), is_rival=True)
        elif factor := _unit_factor(text, first, second, between):
            small = first.value * factor + second.value
            for value in (small / factor, small):
                yield Combined((first, second), Found(Fraction(value), written), is_rival=True)


def _unit_factor(text: str, first: Found, second: Found, between: str) -> int | None:
    """How many of the second number's units make one of the first: 100 for dollars and cents."""
    middle, after = _UNIT_BETWEEN.fullmatch(between), _UNIT_AFTER.match(text, second.end)
    if middle is None or after is None:
        return None
    large = middle[1] or first.written[:1]
    pair = _unit(large), _unit(after[1])
    return _UNITS.get(pair)


def _unit(name: str) -> str:
    name = name.lower()
    return _UNIT_NAMES.get(name) or _UNIT_NAMES.get(name.removesuffix("s")) or name.removesuffix("s")


STEP_LABEL = re.compile(
    r"^[ \t]*(?:[-*•+]\s+)?(?:\*\*|#+\s*)?(?:step\s*)?\d{1,2}(?:[.)]|:)(?:\*\*)?[ \t]+(?=\S)"
    r"|\b(?:step|question|part|problem|equation|example|line|figure|table|page|chapter|option)s?\s+\d{1,3}\b"
    r"|\[\^?\d{1,3}\]|^[ \t]*[-*•+][ \t]+",
    re.IGNORECASE | re.MULTILINE,
)
_LIST_NUMBER = re.compile(r"[ \t]*(?:[-*•+]\s+)?(?:\*\*|#+\s*)?(\d{1,2})(?:[.)]|:)(?:\*\*)?[ \t]+")
# Two numbers of which neither is the answer alone: ranges, lists, choices.
_JOINED = re.compile(
    r"\s*(?:°\s?[CF]?|%|[a-zA-Z]{1,3})?\s*(?:-|,|and|or|to|&|/|through|until|±)\s*(?:\$|€|£)?\s*\Z"
)
# Of a longer chain of = signs the end decides.
_MOST_PARTS = 8
_UNKNOWN = re.compile(r"(?<![\w\\])([a-zA-Z])\s*=\s*\$?\s*\Z")


# What joins two terms of a calculation: "2 + 2", "3 cm × 4 cm", "two plus two".
_OPERATOR = re.compile(
    r"(?P<unit>[)%]|[ ]?(?!(?:times|plus|minus|x)\b)[a-zA-Z°]{1,12})?"
    r"(?P<sign>[ \t]*(?:[+×·÷-]|(?<!\*)\*(?!\*)|\\(?:times|cdot|div))[ \t]*|[xX]|[ \t]+(?:[xX/]"
    r"|plus|minus|times|multiplied by|divided by)[ \t]+)(?P<bracket>[(]*)",
    re.IGNORECASE,
)
_SIGNS = {
    "+": "+", "plus": "+", "-": "-", "minus": "-", "÷": "/", "/": "/", "\\div": "/",
    "divided by": "/",
}  # fmt: skip
_MOST_TERMS = 20


_ONE_IN = re.compile(r"\bone\s(?:in|out of)\s(?:every\s)?", re.IGNORECASE)


class Answer(NamedTuple):
    """The number an answer comes to, its rivals, and other numbers that might be meant.

    `rivals` are as good as the number itself: a range, a list, a choice, a number of another
    sentence. `others` are further readings that only cast doubt if one of them is what was
    expected: possible years, "1 in 4" as a share. `withheld` says why there is no number though the
    text has some.
    """

    number: Found | None
    rivals: tuple[Found, ...] = ()
    others: tuple[Found, ...] = ()
    withheld: str = ""


def behind_equals(text: str, numbers: Sequence[Found]) -> Found:
    """The only number of the last part between = signs that has just one, else the first."""
    edges = [match.start() for match in re.finditer(r"[=≈]", text)][-_MOST_PARTS:]
    if not edges:
        return numbers[0]
    parts = [
        [one for one in numbers if low <= one.start < high]
        for low, high in zip([0, *edges], [*edges, len(text)], strict=True)
    ]
    single = [part[0] for part in parts if len(part) == 1]
    last = next(part for part in reversed(parts) if part)
    return single[-1] if single and len(last) > 1 else last[0]


def countable(text: str, decimal: Decimal) -> list[Found]:
    """The numbers of a text that are not denied; dates only where there is nothing else."""
    return without_dates(meant(text, decimal))


def meant(text: str, decimal: Decimal) -> list[Found]:
    numbers = numbers_in(text, decimal)
    return [one for one in numbers if not is_denied(text, one)]


def denied(text: str, decimal: Decimal) -> list[Found]:
    """The numbers of a text, in digits and in words, that their own clause denies."""
    if not has_denial(text):
        return []
    every = [*numbers_in(text, decimal), *word_numbers(text)]
    return [one for one in every if is_denied(text, one)]


def share_in_words(text: str) -> Found | None:
    """The share of "one in six".

    >>> share_in_words("The probability is one in six.").value
    Fraction(1, 6)
    """
    match = _ONE_IN.search(text)
    whole = leading_word_number(text[match.end() : match.end() + 60]) if match else None
    if match is None or whole is None or not whole.value:
        return None
    return Found(1 / whole.value, f"{match[0]}{whole.written}")


def doubtful(text: str, decimal: Decimal) -> list[Found]:
    """Numbers that are not read as the answer but may be meant: possible years, denied ones."""
    return [one for one in numbers_in(text, decimal) if one.kind == "year" or is_doubted(text, one)]


def combinations(text: str, chosen: Found, numbers: Sequence[Found]) -> list[Combined]:
    """The values that the chosen number has together with a neighbour: "5 dollars and 20 cents"."""
    return [one for one in combined(text, numbers) if chosen in one.parts]


def calculation(text: str, chosen: Found, numbers: Sequence[Found]) -> tuple[Found, ...]:
    """The calculation without its result that a number is a term of, and its terms; else nothing.

    A lone minus is left out, since it may also make a range.

    >>> text = "It is 2 + 3 * 4."
    >>> terms = numbers_in(text, ".")
    >>> [str(one.value) for one in calculation(text, terms[0], terms)]
    ['14', '2', '3', '4']
    """
    if chosen.kind != "number" or chosen not in numbers:
        return ()
    first = last = numbers.index(chosen)
    while first and last - first < _MOST_TERMS and _sign(text, *numbers[first - 1 : first + 1]):
        first -= 1
    while last + 1 < len(numbers) and last - first < _MOST_TERMS:
        if not _sign(text, *numbers[last : last + 2]):
            break
        last += 1
    terms = numbers[first : last + 1]
    joints = [_sign(text, *pair) for pair in pairwise(terms)]
    signs = [_SIGNS.get(joint["sign"].strip().lower(), "*") for joint in joints if joint]
    if not signs or (len(signs) == 1 and joints[0] and joints[0]["sign"].strip() == "-"):
        return ()
    written = text[terms[0].start : terms[-1].end]
    value = _computed([one.value for one in terms], signs)
    is_plain = all(one.kind == "number" and not one.percent for one in terms) and not any(
        joint["bracket"] or joint["unit"] == ")" for joint in joints if joint
    )
    if value is None or not is_plain:
        return (chosen._replace(kind="expression", written=written),)
    return (Found(value, written, False, (), "calculation", chosen.start, chosen.end), *terms)


def _sign(text: str, before: Found, after: Found) -> re.Match[str] | None:
    between = text[before.end : after.start]
    return _OPERATOR.fullmatch(between) if 0 < len(between) < 40 else None


def _computed(values: Sequence[Fraction], signs: Sequence[str]) -> Fraction | None:
    """The value of terms and signs, products first; None where it divides by zero."""
    total, product = Fraction(0), values[0]
    for sign, value in zip(signs, values[1:], strict=True):
        if sign == "*":
            product *= value
        elif sign == "/":
            if not value:
                return None
            product /= value
        else:
            total, product = total + product, value if sign == "+" else -value
    return total + product


def without_dates(numbers: list[Found]) -> list[Found]:
    plain = [one for one in numbers if one.kind not in ("date", "year")]
    return plain or numbers


def rivals_of(text: str, chosen: Found, numbers: Sequence[Found]) -> tuple[Found, ...]:
    """The numbers that are joined with the chosen one: "3 to 5", "3 or 4", "(3, 4)"."""
    chain = [one for one in numbers if one.start >= chosen.start] or [chosen]
    joined: list[Found] = []
    for before, after in pairwise(chain):
        if not are_joined(text, before, after):
            break
        joined.append(after)
    return tuple(joined)


def are_joined(text: str, before: Found, after: Found) -> bool:
    between = text[before.end : after.start]
    if re.fullmatch(r"\s*-\s*", between):
        # Without spaces it is a range, with spaces and "=" a subtraction.
        return between == "-" or "=" not in text
    return _JOINED.fullmatch(between) is not None


def assigned(text: str, numbers: Iterable[Found]) -> list[Found]:
    """The numbers of two or more unknowns: "x = 3 and y = 4"."""
    found = {
        name[1]: one for one in numbers if (name := _UNKNOWN.search(text[max(0, one.start - 12) : one.start]))
    }
    return list(found.values()) if len(found) > 1 else []


def blank_step_labels(text: str, *, is_list: bool = True) -> str:
    """The text with spaces for labels of steps, marks of lists and numbers of a list.

    A list begins with 0 or 1 and counts on. `is_list` says whether the text begins on a line of
    its own, where a list may begin.

    >>> blank_step_labels("1. six\\n2. seven"), blank_step_labels("42. It is six times 7.")
    ('   six\\n   seven', '42. It is six times 7.')
    """
    expected = {0, 1}

    def blank(match: re.Match[str]) -> str:
        listed = _LIST_NUMBER.fullmatch(match[0])
        if listed is not None:
            number = int(listed[1])
            if number not in expected or (match.start() == 0 and not is_list):
                return match[0]
            expected.add(number + 1)
        return " " * len(match[0])

    return STEP_LABEL.sub(blank, text)
