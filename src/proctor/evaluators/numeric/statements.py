"""Choose the number that a sentence states, and leave out the parts of a text that state no answer.

Checks ("Check: 3(7) + 4 = 25") and beliefs ("I first thought 42") state none. In a sentence, the number after the last
"so" or "which leaves" is the answer; lead-ins, details in brackets and comparisons are not. Where two readings remain,
the number has a rival.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from proctor.evaluators.data_files import load_patterns
from proctor.evaluators.numeric import ambiguity
from proctor.evaluators.numeric.parse import Decimal, ParsedNumber, parse_leading_word_number

_PHRASES = load_patterns("numeric", "phrases.yaml")
_RESULT_VERB = _PHRASES["result_verb"]
# In a longer text only the last numbers are tried as the terms of the result.
_MAX_TERMS = 8
# A longer list of numbers is not searched for a total, because that takes quadratic time.
_MAX_PARTS = 20
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


class Choice(NamedTuple):
    """The number of a sentence, the rivals that it states as well, and the numbers of details.

    `is_result` is True if words such as "so" introduce the number.
    """

    number: ParsedNumber
    rivals: Sequence[ParsedNumber] = ()
    details: Sequence[ParsedNumber] = ()
    is_result: bool = False


def blank_beliefs(text: str) -> str:
    """Replace statements that the text reports or takes back by spaces, if digits remain elsewhere."""

    def blank(match: re.Match[str]) -> str:
        # "42 was my first guess" has its number before the belief.
        return re.sub(r"[^\n]", " ", match[0]) if re.search(r"\d", match[0]) else match[0]

    blanked = _PHRASES["belief"].sub(blank, text)
    return blanked if re.search(r"\d", blanked) else text


def find_options(text: str) -> dict[str, str]:
    """Return the options that a text lists, by their labels from A or 1: {"A": "12", "B": "24"}."""
    items = list[re.Match[str]]()
    for match in _PHRASES["option_item"].finditer(text):
        label = match["label"]
        if items and label == chr(ord(items[-1]["label"]) + 1):
            items.append(match)
        elif label in "Aa1" and len(items) < 2:
            items = [match]
    if len(items) < 2:
        return {}
    ends = [*(item.start() for item in items[1:]), len(text)]
    contents = [text[item.end() : end] for item, end in zip(items, ends, strict=True)]
    sentences = [_PHRASES["sentence_end"].split(content.strip(), maxsplit=1)[0] for content in contents]
    options = {item["label"].upper(): sentence for item, sentence in zip(items, sentences, strict=True)}
    # The items of a numbered list are usually steps.
    is_steps = "1" in options and not all(map(_PHRASES["bare_item"].fullmatch, sentences))
    return {} if is_steps else options


class OptionValues(NamedTuple):
    """The options that sentences give a value, the text after them, and whether it calls them options."""

    options: dict[str, str]
    rest: str
    is_named: bool


def find_option_values(text: str) -> OptionValues:
    """Return the options that sentences give a value from A: "A is 10, B is 20"."""
    items = list[re.Match[str]]()
    for match in _PHRASES["option_value"].finditer(text):
        if match["label"] == chr(ord("A") + len(items)):
            items.append(match)
    if len(items) < 2:
        return OptionValues({}, "", False)
    ends = [*(item.start() for item in items[1:]), len(text)]
    options = {item["label"]: text[item.end() : end] for item, end in zip(items, ends, strict=True)}
    return OptionValues(options, text[items[-1].end() :], any(item["noun"] for item in items))


def find_chosen_label(text: str, options: Sequence[str], *, is_named: bool = True) -> str:
    """Return the label of the option that a text chooses last, or "" if it chooses none.

    Unless the options are named as such, "B is right" does not choose one: B may be a point or a person.
    """
    label = ""
    for match in _PHRASES["option_choice"].finditer(text):
        if not is_named and match["subject"] and not re.search("(?i)answer|choice|option", match[0]):
            continue
        ordinal = (match["ordinal"] or match["chosen"] or "").lower()
        if ordinal:
            index = _ORDINALS.index(ordinal) if ordinal != "last" else len(options) - 1
            label = options[index] if index < len(options) else ""
        else:
            label = (match["letter"] or match["subject"] or match["digit"]).upper()
    return label


def split_checks(sentences: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the sentences that state something, and those that only verify it."""
    statements, checks = list[str](), list[str]()
    is_check = False
    for sentence in sentences:
        starts_check = _PHRASES["check"].match(sentence) is not None
        # A check may have more lines.
        is_check = starts_check or (is_check and "=" in sentence and not _PHRASES["turn"].search(sentence))
        (checks if is_check else statements).append(sentence)
    if not any(re.search(r"\d", statement) for statement in statements):
        return list(sentences), []
    return statements, checks


def find_failed_checks(checks: Sequence[str], answer: ParsedNumber, decimal: Decimal) -> list[ParsedNumber]:
    """Return the numbers of checks that do not contain the answer, as the check of another number does."""
    text = "\n".join(check for check in checks if "=" in check)
    digits = re.findall(r"\d[\d.,]*(?<=\d)", text)
    if any(part in digits for part in re.findall(r"\d[\d.,]*(?<=\d)", answer.text)):
        return []
    numbers = ambiguity.find_candidates(text, decimal)
    return [] if any(number.value == answer.value for number in numbers) else numbers


def is_conclusion(sentence: str) -> bool:
    """Return whether a sentence gives a result: it has an equation, or words such as "so" or "in total"."""
    patterns = (_PHRASES["conclusion"], _PHRASES["turn"])
    return "=" in sentence or any(pattern.search(sentence) for pattern in patterns)


def choose_number(sentence: str, numbers: Sequence[ParsedNumber], decimal: Decimal) -> Choice:
    """Choose the number of a sentence: the bold number, or the number after its last "so", its = or its verb."""
    bold = [m for m in _PHRASES["bold"].finditer(sentence) if ambiguity.find_candidates(m[1] or m[2], decimal)]
    if bold:
        bold_numbers = [number for number in numbers if bold[-1].start() <= number.start < bold[-1].end()]
        if bold_numbers:
            first = ambiguity.pick_after_equals(sentence, bold_numbers)
            return Choice(first, ambiguity.find_joined_numbers(sentence, first, bold_numbers))
    if subject := find_subject(sentence, numbers):
        return Choice(subject, (), [number for number in numbers if number is not subject])
    comparisons = list(_PHRASES["comparison"].finditer(sentence))
    claimed = _drop_spans(numbers, comparisons)
    if comparisons and claimed is numbers:
        return Choice(numbers[0], numbers[1:])
    turn = _find_last_turn(sentence, claimed[-1].start)
    start = turn.end() if turn else 0
    main = drop_details(sentence, [number for number in claimed if number.start >= start])
    # "18 of 24 passed, i.e. 75%" says the same twice, while the numbers before "so" lead to the result.
    is_result = turn is not None and "." not in turn[0] and not _is_restatement(sentence, turn, main[0], claimed)
    chosen = {id(number) for number in main}
    details = [n for n in numbers if id(n) not in chosen and (not is_result or n.start >= start)]
    if not turn and is_computed(sentence, main[-1], main[:-1]):
        return Choice(main[-1], (), numbers[:-1])
    return _choose_claimed(sentence, start, main)._replace(details=details, is_result=is_result)


def find_subject(sentence: str, numbers: Sequence[ParsedNumber]) -> ParsedNumber | None:
    """Return the number that starts a sentence and of which it says what it is: "12 is the sum of 5 and 7".

    Otherwise, return the total before its parts.
    """
    if (subject := _PHRASES["subject"].match(sentence)) is None:
        return _find_total(sentence, numbers)
    if word := parse_leading_word_number(subject["number"]):
        start = subject.start("number")
        return word._replace(start=start + word.start, end=start + word.end)
    return numbers[0] if subject.start("number") <= numbers[0].start < subject.end("number") else None


def _find_total(sentence: str, numbers: Sequence[ParsedNumber]) -> ParsedNumber | None:
    """Return the number that a sentence then splits into parts: "20 fruits: 15 apples and 5 pears"."""
    if "=" in sentence or not 2 < len(numbers) <= _MAX_PARTS:
        return None
    for index, number in enumerate(numbers[:-2]):
        split = _PHRASES["split"].match(sentence, number.end)
        rest = "" if split is None else sentence[split.end() :]
        if split is None or _find_last_turn(rest, len(sentence)) or _PHRASES["subtraction"].search(rest):
            continue
        is_total = ":" in split[0] or _PHRASES["total"].search(sentence, 0, split.end())
        if is_total and is_made_of(number, numbers[index + 1 :]):
            return number
    return None


def is_made_of(number: ParsedNumber, parts: Sequence[ParsedNumber]) -> bool:
    """Return whether a number is the sum or the product of two or more parts."""
    values = [part.value for part in parts]
    return len(values) > 1 and number.value in (sum(values), math.prod(values))


def _find_last_turn(sentence: str, limit: int) -> re.Match[str] | None:
    """Return the last words before a position that introduce a result: "so", "which leaves", "that's"."""
    matches = _PHRASES["turn"].finditer(sentence, 0, limit)
    turns = (match for match in matches if match.end() <= limit and sentence[: match.start()][-1:] != "(")
    return max(turns, key=lambda match: match.end(), default=None)


def _is_restatement(sentence: str, turn: re.Match[str], number: ParsedNumber, numbers: Sequence[ParsedNumber]) -> bool:
    """Return whether a number may only say the number before it in another way: "75%, that is 15 of 20"."""
    earlier = [other for other in numbers if other.end <= turn.start()]
    if not earlier or not _PHRASES["restatement"].search(sentence[: turn.end()]):
        return False
    return not is_computed(sentence, number, earlier)


def _drop_spans(numbers: Sequence[ParsedNumber], spans: Iterable[re.Match[str]]) -> Sequence[ParsedNumber]:
    """Leave out the numbers inside some matches, unless there is nothing else."""
    edges = [edge for match in spans for edge in match.span()]
    return [n for n in numbers if bisect_right(edges, n.start) % 2 == 0] or numbers if edges else numbers


def drop_details(sentence: str, numbers: Sequence[ParsedNumber]) -> Sequence[ParsedNumber]:
    """Leave out the numbers of lead-ins ("With 8 boxes, …"), brackets, known things ("the 8"), reasons, circumstances.

    A reason or a circumstance ends at a contrast: "100 °C at sea level, but 90 °C up here".
    """
    main = _drop_spans(numbers, _PHRASES["detail"].finditer(sentence))
    first = main[0].end
    contrast = _PHRASES["contrast"].search(sentence, first)
    end = limit = contrast.start() if contrast else len(sentence)
    if reason := _PHRASES["reason"].search(sentence, first, limit):
        end = reason.start()
    circumstance = _PHRASES["circumstance"].search(sentence, first, end)
    if circumstance and not _RESULT_VERB.search(sentence, circumstance.end(), end):
        end = circumstance.start()
    return [number for number in main if not end <= number.start < limit] or main


def _choose_claimed(sentence: str, start: int, claimed: Sequence[ParsedNumber]) -> Choice:
    """Choose among the numbers that a sentence claims after a position."""
    segment = sentence[start:]
    if all(number.value == claimed[0].value for number in claimed):
        return Choice(claimed[-1])
    if unknowns := ambiguity.find_assigned_numbers(sentence, claimed):
        return Choice(unknowns[-1], unknowns[:-1])
    if "=" in segment:
        best = ambiguity.pick_after_equals(sentence, claimed)
        # "The slope at x = 3 is 6" states another number after the equation.
        later = [n for n in claimed if n.start > best.end and _RESULT_VERB.search(sentence, best.end, n.start)]
        return Choice(best, (*ambiguity.find_choices(sentence, best, claimed), *later))
    limit = claimed[-1].start
    verbs = [match for match in _RESULT_VERB.finditer(sentence, start, limit) if match.end() <= limit]
    if not verbs:
        return Choice(claimed[-1], claimed[:-1])
    after = [number for number in claimed if number.start >= verbs[-1].end()]
    if verbs[-1][0] == "≈":
        return Choice(ambiguity.pick_after_equals(sentence, claimed))
    rivals = after[1:]
    before = [number for number in claimed if number.end <= verbs[-1].start()]
    # "The total is 21: 15 apples and 5 pears" may give its parts.
    if verbs[-1][0] == ":" and before:
        rivals = [*rivals, before[-1]]
    # "Tom is 18 and Ann is 9": two results.
    elif before and _PHRASES["and"].search(sentence, before[-1].end, after[0].start):
        has_verb = verbs[0].end() <= before[-1].start or _RESULT_VERB.search(sentence, before[-1].end, after[0].start)
        rivals = [*rivals, *(before if has_verb else ())]
    elif before and _PHRASES["other_label"].search(sentence, before[-1].end, after[0].start):
        rivals = [*rivals, *before]
    return Choice(after[0], rivals)


def is_computed(sentence: str, number: ParsedNumber, earlier: Sequence[ParsedNumber]) -> bool:
    """Return whether a number is alone in its clause and is the sum, difference, product or ratio of earlier ones."""
    clause = sentence[_find_clause_start(sentence, number.start) :]
    if re.match(r"\s*(?:and|or)\b", clause) or len(re.findall(r"\d[\d.,]*", clause)) > 1:
        return False
    terms = list(dict.fromkeys(term.value for term in earlier if term.value not in (0, 1)))[-_MAX_TERMS:]
    if number.value in terms or len(terms) < 2:
        return False
    # "Ann is 4. Bob is 6. Eve is 10." is a list.
    words = [_find_last_word(term.before) for term in earlier]
    if _find_last_word(number.before) in words:
        return False
    results = {sum(terms)}
    for a, b in combinations(terms, 2):
        results |= {a + b, abs(a - b), a * b, a / b, b / a}
        for base, percent in ((a, b), (b, a)):
            results |= {base * share / 100 for share in (percent, 100 - percent, 100 + percent)}
    return Fraction(number.value) in results


def _find_clause_start(sentence: str, position: int) -> int:
    ends = [match.end() for match in re.finditer(r"[,;:]\s", sentence[:position])]
    return ends[-1] if ends else 0


def _find_last_word(text: str) -> str:
    words = re.findall(r"[^\W\d_]+", text)
    return words[-1].lower() if words else ""
