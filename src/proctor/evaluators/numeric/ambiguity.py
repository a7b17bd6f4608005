"""Find the candidates for the answer in one clause or sentence."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from proctor.evaluators.data_files import load_data, load_patterns
from proctor.evaluators.numeric.other_languages import ForeignDenials
from proctor.evaluators.numeric.parse import (
    Decimal,
    ParsedNumber,
    parse_leading_word_number,
    parse_numbers,
    parse_word_numbers,
    parse_years,
)

_PHRASES = load_patterns("numeric", "phrases.yaml")
_UNITS = load_data("numeric", "units.yaml")
# In a longer chain of = signs only the last terms matter.
_MAX_EQUATION_SIDES = 8
_MAX_TERMS = 20
# A denial is at most this many characters before or after its number.
_REACH_BEFORE, _REACH_AFTER = 110, 80
# The words next to a number that may change it are at most this many characters away.
CONTEXT_LENGTH = 60
_ASSUMES = "only assumes"


class Answer(NamedTuple):
    """The number that a text states as its answer, its rivals, and other possible readings.

    `rivals` are as likely as the number: a range, a list, a choice, a number of another sentence.
    `others` only cast doubt if one of them is expected: possible years, "1 in 4" as a ratio.
    `missing_reason` says why a text that has numbers gives no answer.
    `ranges` are the ends of the ranges that the number belongs to: "between 3 and 5".
    """

    number: ParsedNumber | None
    rivals: tuple[ParsedNumber, ...] = ()
    others: tuple[ParsedNumber, ...] = ()
    missing_reason: str = ""
    ranges: tuple[tuple[ParsedNumber, ParsedNumber], ...] = ()


class Combination(NamedTuple):
    """The value of two neighboring numbers together; a rival is as likely as the numbers themselves."""

    result: ParsedNumber
    is_rival: bool


class DenialFinder:
    """Finds the numbers of a text that their clause denies.

    The words that may deny are searched once per text, so that only the numbers near them cost time.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.spans = [match.span() for match in _PHRASES["possible_denial"].finditer(text)]
        self._foreign = ForeignDenials(text)

    def __bool__(self) -> bool:
        return bool(self.spans or self._foreign.matches or self._foreign.conditions) or not self._text.isascii()

    def explain(self, number: ParsedNumber) -> str:
        """Return what the clause of a number does instead of stating it: "denies", "only asks about"; "" if it does."""
        if self._foreign.is_denied(number.start, number.end):
            return "denies"
        if self._foreign.is_assumed(number.start, number.end):
            return _ASSUMES
        if not self._is_near_denial(number):
            return ""
        before = self._text[max(0, number.start - _REACH_BEFORE) : number.start]
        after = self._text[number.end : number.end + _REACH_AFTER]
        if _PHRASES["asked_after"].match(after):
            return "only asks about"
        is_conditional = _PHRASES["modal_before"].search(before) and _PHRASES["condition_after"].match(after)
        if is_conditional or _PHRASES["condition"].search(before):
            return _ASSUMES
        is_rejected = (
            _has_rejection_sign(before, after)
            or _PHRASES["excluded"].search(before) is not None
            or _PHRASES["denied_clause"].search(before) is not None
            or _PHRASES["rejected_before"].search(before) is not None
            or _PHRASES["rejected_after"].match(after) is not None
            or _PHRASES["disowned_after"].match(after) is not None
            or self.is_doubted(number)
        )
        return "denies" if is_rejected else ""

    def is_doubted(self, number: ParsedNumber) -> bool:
        """Return whether the words around a number deny a statement that contains it."""
        if not self._is_near_denial(number):
            return False
        before = self._text[max(0, number.start - _REACH_BEFORE) : number.start]
        after = self._text[number.end : number.end + _REACH_AFTER]
        denial = _PHRASES["denial"]
        if denial.search(before):
            clause = re.split(r"[.!?;\n]\s|[\n,;]", before)[-1]
            if _PHRASES["denied_before"].search(clause):
                return True
        return denial.search(after) is not None and _PHRASES["denied_after"].match(after) is not None

    def _is_near_denial(self, number: ParsedNumber) -> bool:
        index = bisect_right(self.spans, number.start - _REACH_BEFORE, key=lambda span: span[1])
        return index < len(self.spans) and self.spans[index][0] < number.end + _REACH_AFTER


def _has_rejection_sign(before: str, after: str) -> bool:
    """Return whether a sign on the line of a number rejects it: "❌ 42", "42 ✗"."""
    if _PHRASES["rejection_after"].match(after):
        return True
    if not _PHRASES["rejection_before"].search(before):
        return False
    return not (_PHRASES["other_rejection"].search(before) and _PHRASES["acceptance_after"].match(after))


def find_last_correction(text: str) -> re.Match[str] | None:
    """Return the last marker of a correction."""
    return max(_PHRASES["correction"].finditer(text), key=lambda match: match.start(), default=None)


def introduces_replacement(between: str) -> bool:
    """Return whether the words between a correction and a number introduce the new answer."""
    return len(between) < 200 and _PHRASES["replacement"].match(between) is not None


def are_incidental(text: str, numbers: Sequence[ParsedNumber]) -> bool:
    """Return whether the numbers of a text only name what is counted: "the 3 boxes", "with 3 friends"."""
    befores = [text[max(0, number.start - 50) : number.start] for number in numbers]
    return bool(befores) and all(map(_PHRASES["incidental_before"].search, befores))


def is_restated(text: str, number: ParsedNumber) -> bool:
    """Return whether a number restates the previous number: "3/4 of 100, or 75"."""
    return _PHRASES["restated"].search(text[max(0, number.start - 50) : number.start]) is not None


def combine_neighbors(text: str, numbers: Sequence[ParsedNumber]) -> Iterator[Combination]:
    """Yield the values of neighboring numbers that belong together."""
    for first, second in pairwise(numbers):
        between = text[first.end : second.start]
        if len(between) > 30:
            continue
        is_rival, values = True, list[Fraction]()
        if _PHRASES["ratio"].fullmatch(between) and second.value:
            is_rival, values = False, [first.value / second.value]
        elif _PHRASES["fraction_of"].fullmatch(between) and (first.is_percent or "/" in first.text):
            values = [(first.value / 100 if first.is_percent else first.value) * second.value]
        elif re.fullmatch(r"[ \t]*-[ \t]*", between):
            values = [first.value - second.value]
        elif factor := _find_unit_factor(text, first, second, between):
            small = first.value * factor + second.value
            values = [small / factor, small]
        for value in values:
            yield Combination(ParsedNumber(value, text[first.start : second.end]), is_rival)


def _find_unit_factor(text: str, first: ParsedNumber, second: ParsedNumber, between: str) -> int | None:
    """Return how many of the second unit make one of the first: 100 for dollars and cents."""
    middle = _PHRASES["unit_between"].fullmatch(between)
    after = _PHRASES["unit_after"].match(text, second.end)
    if middle is None or after is None:
        return None
    large, small = _normalize_unit(middle[1] or first.text[:1]), _normalize_unit(after[1])
    return _UNITS["factors"].get(f"{large} {small}")  # type: ignore[no-any-return]


def _normalize_unit(name: str) -> str:
    name = name.lower()
    singular = name.removesuffix("s")
    names: dict[str, str] = _UNITS["names"]
    return names.get(name) or names.get(singular) or singular


def pick_after_equals(text: str, numbers: Sequence[ParsedNumber]) -> ParsedNumber:
    """Return the number on the last side of an equation that has exactly one, else the first number."""
    edges = [match.start() for match in re.finditer(r"[=≈]", text)][-_MAX_EQUATION_SIDES:]
    if not edges:
        return numbers[0]
    sides = [
        [number for number in numbers if low <= number.start < high]
        for low, high in zip([0, *edges], [*edges, len(text)], strict=True)
    ]
    single_numbers = [side[0] for side in sides if len(side) == 1]
    last = next(side for side in reversed(sides) if side)
    return single_numbers[-1] if single_numbers and len(last) > 1 else last[0]


def find_candidates(text: str, decimal: Decimal) -> list[ParsedNumber]:
    """Return the numbers of a text that are not denied; dates only if there is nothing else."""
    return prefer_non_dates(find_undenied_numbers(text, decimal))


def find_undenied_numbers(text: str, decimal: Decimal) -> list[ParsedNumber]:
    """Return the numbers of a text that their clause does not deny."""
    return drop_denied_numbers(text, parse_numbers(text, decimal))


def drop_denied_numbers(text: str, numbers: Iterable[ParsedNumber]) -> list[ParsedNumber]:
    """Leave out the numbers that their own clause denies."""
    if not (numbers := list(numbers)):
        return []
    denials = DenialFinder(text)
    stated = list[ParsedNumber]()
    for number in numbers:
        reason = denials.explain(number) if denials else ""
        if reason in ("", _ASSUMES):
            before = text[max(0, number.start - CONTEXT_LENGTH) : number.start]
            after = text[number.end : number.end + CONTEXT_LENGTH]
            stated.append(number._replace(before=before, after=after, is_assumed=bool(reason)))
    return stated


def explain_denied_number(text: str, decimal: Decimal) -> str:
    """Return why the last number of a text, in digits or in words, is not an answer; "" if its clause states it."""
    denials = DenialFinder(text)
    if not denials:
        return ""
    numbers = [*parse_numbers(text, decimal), *parse_word_numbers(text)]
    reasons = ((denials.explain(number), number.text) for number in reversed(numbers))
    return next((f"the output {reason} {number} and gives no other number" for reason, number in reasons if reason), "")


def parse_word_ratio(text: str) -> ParsedNumber | None:
    """Return the value of "one in six"."""
    match = _PHRASES["one_in"].search(text)
    total = parse_leading_word_number(text[match.end() : match.end() + 60]) if match else None
    if match is None or total is None or not total.value:
        return None
    return ParsedNumber(1 / total.value, f"{match[0]}{total.text}")


def find_grouped_digits(text: str) -> list[ParsedNumber]:
    """Return the numbers that groups of digits may form, such as a telephone number: "555 123 4567"."""
    matches = _PHRASES["grouped_digits"].finditer(text)
    return [ParsedNumber(Fraction(int(re.sub(r"\D", "", match[0]))), match[0]) for match in matches]


def find_doubtful_numbers(text: str, decimal: Decimal) -> list[ParsedNumber]:
    """Return the numbers that are probably not the answer: possible years and denied numbers."""
    denials = DenialFinder(text)
    if not denials.spans:
        return parse_years(text)
    numbers = parse_numbers(text, decimal)
    return [number for number in numbers if number.category == "year" or denials.is_doubted(number)]


def evaluate_calculation(text: str, number: ParsedNumber, numbers: Sequence[ParsedNumber]) -> tuple[ParsedNumber, ...]:
    """Return the result and the terms of the calculation that contains a number, if there is one.

    A single minus does not count, because it may also express a range.
    """
    index = find_index(numbers, number)
    if number.category != "number" or index is None:
        return ()
    first = last = index
    while first and last - first < _MAX_TERMS and _find_operator(text, *numbers[first - 1 : first + 1]):
        first -= 1
    while last + 1 < len(numbers) and last - first < _MAX_TERMS:
        if not _find_operator(text, *numbers[last : last + 2]):
            break
        last += 1
    terms = numbers[first : last + 1]
    matches = [match for pair in pairwise(terms) if (match := _find_operator(text, *pair))]
    operators = [_UNITS["operators"].get(match["sign"].strip().lower(), "*") for match in matches]
    if not operators or (len(operators) == 1 and matches[0]["sign"].strip() == "-"):
        return ()
    calculation = text[terms[0].start : terms[-1].end]
    value = _calculate([term.value for term in terms], operators)
    has_brackets = any(match["bracket"] or match["unit"] == ")" for match in matches)
    if value is None or has_brackets or any(term.category != "number" or term.is_percent for term in terms):
        return (number._replace(category="expression", text=calculation),)
    return (ParsedNumber(value, calculation, False, (), "calculation", number.start, number.end), *terms)


def find_index(numbers: Sequence[ParsedNumber], number: ParsedNumber) -> int | None:
    """Return the index of a number, by its position and text, because fractions are slow to compare."""
    pairs = enumerate(numbers)
    return next((i for i, other in pairs if (other.start, other.text) == (number.start, number.text)), None)


def _find_operator(text: str, before: ParsedNumber, after: ParsedNumber) -> re.Match[str] | None:
    between = text[before.end : after.start]
    return _PHRASES["operator"].fullmatch(between) if 0 < len(between) < 40 else None


def _calculate(values: Sequence[Fraction], operators: Sequence[str]) -> Fraction | None:
    """Apply the operators, products first; None for a division by zero."""
    total, product = Fraction(0), values[0]
    for operator, value in zip(operators, values[1:], strict=True):
        if operator == "*":
            product *= value
        elif operator == "/":
            if not value:
                return None
            product /= value
        else:
            total, product = total + product, value if operator == "+" else -value
    return total + product


def prefer_non_dates(numbers: list[ParsedNumber]) -> list[ParsedNumber]:
    """Leave out dates and years, unless there is nothing else."""
    return [number for number in numbers if number.category not in ("date", "year")] or numbers


def find_joined_numbers(text: str, number: ParsedNumber, numbers: Sequence[ParsedNumber]) -> tuple[ParsedNumber, ...]:
    """Return the numbers that follow in the same range, list or choice: "3 to 5", "3 or 4", "(3, 4)"."""
    chain = [other for other in numbers if other.start >= number.start] or [number]
    joined: list[ParsedNumber] = []
    for before, after in pairwise(chain):
        if not are_joined(text, before, after):
            break
        joined.append(after)
    return tuple(joined)


def are_joined(text: str, before: ParsedNumber, after: ParsedNumber) -> bool:
    """Return whether two neighboring numbers form a range, a list or a choice."""
    between = text[before.end : after.start]
    if re.fullmatch(r"\s*-\s*", between):
        # Without spaces, it is a range; with spaces and "=", a subtraction.
        return between == "-" or "=" not in text
    return _PHRASES["joined"].fullmatch(between) is not None


def find_assigned_numbers(text: str, numbers: Iterable[ParsedNumber]) -> list[ParsedNumber]:
    """Return the numbers of two or more unknowns or solutions: "x = 3 and y = 4", "x = 3 or x = 4"."""
    if "=" not in text:
        return []
    assigned = {
        (name[1], number.value): number
        for number in numbers
        if (name := _PHRASES["assignment"].search(text[max(0, number.start - 12) : number.start]))
        and not _PHRASES["operator_after"].match(text, number.end)
    }
    return list(assigned.values()) if len(assigned) > 1 else []


def find_choices(text: str, number: ParsedNumber, numbers: Sequence[ParsedNumber]) -> tuple[ParsedNumber, ...]:
    """Return the numbers that a text leaves open after an equals sign: "x = 3 or 4", "x = 3, 4"."""
    joined = find_joined_numbers(text, number, numbers)
    if not joined:
        return ()
    is_choice = _PHRASES["choice"].search(text, number.end, joined[0].start)
    return joined if is_choice or not re.search(r"\w", text[joined[-1].end :]) else ()


def find_bracketed_words(text: str, number: ParsedNumber) -> list[ParsedNumber]:
    """Return a number in words next to the same number in digits: "five (5)", "5 (five)"."""
    before, after = text[max(0, number.start - CONTEXT_LENGTH) : number.start], text[number.end :][:CONTEXT_LENGTH]
    words = [word for word in parse_word_numbers(before) if re.fullmatch(r"[\s*_]*\([\s*_$€£]*", before[word.end :])]
    bracket = re.match(r"[\s*_]*\(([a-zA-Z\s-]{3,50})\)", after)
    word = parse_leading_word_number(bracket[1]) if bracket else None
    return [*words, word] if bracket and word and word.end == len(bracket[1]) else words


def find_equal_amounts(text: str, numbers: Sequence[ParsedNumber], index: int) -> list[ParsedNumber]:
    """Return the same amount in another unit: the 5 of "5 km = 3.1 miles"."""
    if not index:
        return []
    first, second = numbers[index - 1], numbers[index]
    between = _PHRASES["unit_equation"].fullmatch(text[first.end : second.start])
    after = _PHRASES["unit_after"].match(text, second.end)
    if between is None or (index > 1 and _find_operator(text, numbers[index - 2], first)):
        return []
    units = [_get_currency(first) or between["unit"], _get_currency(second) or (after and after[1])]
    large, small = (_normalize_unit(unit.strip()) if unit else "" for unit in units)
    return [first] if large and small and large != small else []


def _get_currency(number: ParsedNumber) -> str:
    currency = re.match(r"[-+]?([$€£¥₹])", number.text)
    return currency[1] if currency else ""


def blank_step_labels(text: str, *, is_list: bool = True) -> str:
    """Replace step labels, list markers and list numbers by spaces.

    A list starts with 0 or 1 and counts up. `is_list` is True if the text starts on a new line, where a list may start.
    """
    expected = {0, 1}
    has_options, content = len(_PHRASES["option_label"].findall(text)) > 1, text.strip(" \t\n*_.$")

    def blank(match: re.Match[str]) -> str:
        # A dash after "The answer is" is not a bullet, "[5]" alone not a reference, and "a) 3, b) 4" are two answers.
        is_dash = match.start() == 0 and not is_list and match[0].strip() == "-"
        is_alone = match[0].startswith("[") and match[0] == content
        if is_dash or is_alone or (has_options and _PHRASES["option_label"].match(match[0])):
            return match[0]
        label = _PHRASES["list_number"].fullmatch(match[0])
        if label is not None:
            number = int(label[1])
            if number not in expected or (match.start() == 0 and not is_list):
                return match[0]
            expected.add(number + 1)
        return " " * len(match[0])

    return _PHRASES["step_label"].sub(blank, text)
