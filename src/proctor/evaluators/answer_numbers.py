"""Numbers that compete to be the answer of one clause or sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from proctor.evaluators.answer_doubts import Combined, combined, has_denial, is_denied, is_doubted
from proctor.evaluators.number_text import Decimal, Found, numbers_in
from proctor.evaluators.number_words import leading_word_number, word_numbers

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
        name[1]: one
        for one in numbers
        if (name := _UNKNOWN.search(text[max(0, one.start - 12) : one.start]))
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
