"""Compare the number that an output states as its answer with the expected number."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from proctor.evaluators.data_files import load_patterns
from proctor.evaluators.decorator import evaluator
from proctor.evaluators.language import explain_foreign, find_unknown_word
from proctor.evaluators.measurements import make_limit_check
from proctor.evaluators.numeric.parse import Decimal, ParsedNumber
from proctor.evaluators.plain_values import (
    list_items,
    score_best_reference,
    score_other_than_text,
    to_fraction,
    to_number,
    to_plain,
)
from proctor.evaluators.score_conversion import preview
from proctor.records.score import Score

if TYPE_CHECKING:
    from proctor.evaluators.numeric.ambiguity import Answer

# A float represents 14/3 with sixteen digits.
FLOAT_DIGITS = 16
FLOAT_ROUNDING = Fraction(1, 10**12)
ADVICE = "ask for a last line such as “Answer: 42”"


@evaluator(category="numbers", pure=True, check=make_limit_check("numeric_answer", "tolerance"))
def numeric_answer(
    output: Any, expected: Any, *, tolerance: float = 0.0, relative: bool = False, decimal: Decimal = "."
) -> Score:
    r"""Passes if the number that the output gives as its answer is the expected one.

    The evaluator takes the number in \boxed{}; else after the last ####; else in <answer> tags; else of a JSON key
    "answer", "result" or "value"; else after the last announcement ("Final answer:", "A:", "the answer is", "42 is the
    answer"); else on its own line; else in the last sentence that concludes ("so", "in total"); else the only number,
    or the last one if it results from earlier ones; "12 is the sum of 5 and 7" gives 12. It ignores thinking before
    </think>, step labels, references and names ("section 4", "Boeing 747"), questions, courtesies, checks ("Check: 3(7)
    + 4 = 25"), beliefs ("I first thought 41, but"), lead-ins and details in brackets. A marked number always decides.
    The score is skipped if the output gives several numbers without saying which one is the answer (a range, "x = 3 or
    x = 4", "5 km = 3.1 miles", "Tom is 18 and Ann is 9", two boxes, two sentences) and one of them is expected; if the
    expected number is inside a range; if the number is a bound, only a part of the answer ("sin(42)", "the 42nd prime",
    a date, "half past 3", "Apollo 13", "42 (base 8)") or next to a sign that may change it (±42, 42‰); if the output
    rejects its number ("42 is wrong", ~~42~~, "42 ✗"), only asks about it or assumes it ("if x were 42"); if it
    refuses, guesses ("it could be 42") or chooses an unlisted option; and if it is the message of a failed request. A
    correction ("Wait, it should be 43", "Edit: 43", "On reflection it is 43") replaces the number before it.

    It reads thousands separators (also 1.234.567, 1'234 and 12,34,567), decimals, powers, fractions (3/4, 1 1/2, ½,
    \frac{3}{4}), signs, currencies, "million" and similar words of many languages (1,5 Millionen, 42万), 0x1F, and
    English number words ("three quarters", "two point five"); an output without digits in another language is skipped.
    Announcements and conclusions are read in English; minus, percent and bounds in many languages ("moins 5"). In a
    text that is not clearly English, a number next to an unknown word is skipped. A calculation without a result
    ("2+2", "3+4i") is skipped if its value or one of its terms is expected. Percent signs do not count, but if only one
    side has one, 12% also equals 0.12. The expected value is read in the same way; any number of a list matches. The
    difference may be `tolerance`, or with `relative` that fraction of the expected number; 0 compares exactly (0.50 is
    1/2; only a float may be rounded). `decimal` is the sign before decimals. Units are not converted. A mapping is
    read like its JSON.

    >>> from proctor import numeric_answer
    >>> numeric_answer("She pays 3 * $400 = $1,200.00 in all.", "#### 1200").passed
    True
    >>> numeric_answer("A: 17 eggs", 18).reason
    'expected 18, got 17'
    >>> numeric_answer("It takes between 3 and 5 days.", 5).status
    'skipped'
    """
    if (choices := list_items(expected)) is not None:
        options: Any = {"tolerance": tolerance, "relative": relative, "decimal": decimal}
        return score_best_reference(lambda choice: numeric_answer(output, choice, **options), choices)
    target = _read_expected(expected, decimal)
    if isinstance(target, Score):
        return target
    if isinstance(output, Mapping):
        output = json.dumps(output, ensure_ascii=False, default=lambda value: str(to_plain(value)))
    if not isinstance(output, str) and to_number(output) is None:
        return score_other_than_text(output, "numeric_answer")
    answer = _read_answer(output, decimal)
    details: dict[str, Any] = {"method": "extraction", "expected": _to_json_number(target.value)}
    if answer.number is None:
        return _score_without_number(str(output), answer, target, details)
    details["answer"] = _to_json_number(answer.number.value)
    limit = to_fraction(tolerance) * (abs(target.value) if relative else 1)
    # A float may be rounded in its last digit; decimals in a text are exact.
    values = [(output, answer.number.value), (expected, target.value)]
    if any(not isinstance(source, str) and _may_be_rounded(value) for source, value in values):
        limit = max(limit, FLOAT_ROUNDING * abs(target.value))
    return _score_answer(answer, answer.number, target, _make_matcher(target, limit), details, decimal)


def _make_matcher(target: ParsedNumber, limit: Fraction) -> Callable[[ParsedNumber], bool]:
    """Return a function that compares a number with the expected one."""

    def is_match(number: ParsedNumber) -> bool:
        if _is_within(number.value, target.value, limit):
            return True
        # If only one side has a percent sign, it is also read as a fraction: 12% is 0.12.
        if number.is_percent and not target.is_percent:
            return _is_within(number.value / 100, target.value, limit)
        return target.is_percent and not number.is_percent and _is_within(number.value, target.value / 100, limit)

    return is_match


def _score_answer(
    answer: Answer,
    number: ParsedNumber,
    target: ParsedNumber,
    is_match: Callable[[ParsedNumber], bool],
    details: dict[str, Any],
    decimal: Decimal,
) -> Score:
    """Pass or fail if all possible readings agree, else skip."""
    # A room, an hour or a decade is compared only with another one.
    is_label = number.category == "label" and target.category != "label"
    if is_label or number.category in ("unclear", "bound", "expression"):
        description = "a bound" if number.category == "bound" else "an expression and not a plain number"
        reason = number.doubt or f"the answer is {description}: {preview(number.text)}"
        return Score.skipped(f"{reason}; {ADVICE}", details)
    if number.category == "date" and not (_is_year(target) and re.search(r"[^\W\d_]{3}", number.text)):
        from proctor.evaluators.numeric.context import describe_date

        return Score.skipped(f"{describe_date(number)}; {ADVICE}", details)
    if number.category == "calculation" and (is_match(number) or any(map(is_match, answer.rivals))):
        reason = f"the answer is a calculation without its result: {preview(number.text)}"
        return Score.skipped(f"{reason}; {ADVICE}", details)
    is_correct = is_match(number)
    rivals = [rival for rival in answer.rivals if is_match(rival) is not is_correct]
    if not is_correct:
        rivals += filter(is_match, answer.others)
    if rivals:
        texts = dict.fromkeys([number.text, *(rival.text for rival in rivals)])
        reason = f"the output has several numbers ({', '.join(texts)}) and does not say which one"
        return Score.skipped(f"{reason} is the answer; {ADVICE}", details)
    if is_correct:
        return Score(1.0, True, f"got {number.text}", details)
    if any(is_match(number._replace(value=value)) for value in number.alternatives):
        reason = f"{number.text} may be {target.text} or {details['answer']}"
        return Score.skipped(f"{reason}; {_advise(number.text, decimal)}", details)
    for low, high in answer.ranges:
        if low.value < target.value < high.value:
            reason = f"the output gives a range, {low.text} to {high.text}, that contains {target.text}"
            return Score.skipped(f"{reason}; {ADVICE}", details)
    return Score(0.0, False, f"expected {target.text}, got {number.text}", details)


def _is_year(target: ParsedNumber) -> bool:
    """Return whether a question may ask for a year, which a date with the name of a month answers."""
    from proctor.evaluators.numeric.context import MAX_YEAR, MIN_YEAR

    return MIN_YEAR <= target.value < MAX_YEAR and target.value.denominator == 1


def _advise(number: str, decimal: Decimal) -> str:
    """Explain how to make a number unambiguous; the option `decimal` helps only with separators."""
    if number[-1:].isalpha() or not re.search(r"[.,]", number):
        return "write the number in full"
    other = "," if decimal == "." else "."
    return f'set the decimal separator: decimal="{other}"'


def _read_answer(value: Any, decimal: Decimal) -> Answer:
    # These modules load the phrases, which listing the evaluators does not need.
    from proctor.evaluators.numeric.ambiguity import Answer
    from proctor.evaluators.numeric.find_answer import find_answer

    if isinstance(value, str):
        return find_answer(value, decimal)
    number = to_number(value)
    return Answer(None if number is None else ParsedNumber(to_fraction(number), str(to_plain(value))))


def _explain_missing_answer(text: str) -> str:
    from proctor.evaluators.numeric.find_answer import explain_missing_answer

    if reason := explain_missing_answer(text):
        return reason
    is_unknown = load_patterns("numeric", "words.yaml")["unknown"].search(text)
    return "the output says that the answer is not known" if is_unknown else ""


def _read_expected(expected: Any, decimal: Decimal) -> ParsedNumber | Score:
    """Return the expected number, or an error if there is not exactly one."""
    answer = _read_answer(expected, decimal)
    if answer.number is None:
        return Score.error(f"the expected value has no number: {preview(expected)}")
    has_rivals = any(rival.value != answer.number.value for rival in answer.rivals)
    if has_rivals or answer.number.category in ("bound", "expression", "calculation"):
        return Score.error(
            f"the expected value is not a single number: {preview(expected)}. "
            "Fix: give one number, or a list of numbers of which any is right"
        )
    return answer.number


def _score_without_number(text: str, answer: Answer, target: ParsedNumber, details: dict[str, Any]) -> Score:
    """Fail, but skip if the text denies its numbers or may state the number in words."""
    if answer.missing_reason:
        return Score.skipped(f"{answer.missing_reason}; {ADVICE}", details)
    # In words, zero and no answer are hard to tell apart.
    if (answer.others or not target.value) and (reason := _explain_missing_answer(text)):
        return Score.skipped(f"{reason}; {ADVICE}", details)
    if any(other.value == target.value for other in answer.others):
        reason = f"the only {target.text} in the output numbers a step, a reference or a name"
        return Score.skipped(f"{reason}; {ADVICE}", details)
    if problem := explain_foreign(text):
        return Score.skipped(f"there are no digits in {preview(text)}, and {problem}", details)
    if unknown := find_unknown_word(text):
        reason = f"there are no digits in {preview(text)}, and {unknown!r} may be a number in another language"
        return Score.skipped(f"{reason}; {ADVICE}", details)
    word = _find_word_for(text, target.value)
    if word is not None:
        reason = f"there are no digits in {preview(text)}, but {word[0]!r} may stand for a number"
        return Score.skipped(f"{reason}; {ADVICE}", details)
    return Score(0.0, False, f"there is no number in {preview(text)}", details)


def _find_word_for(text: str, expected: Fraction) -> re.Match[str] | None:
    """Find a word that may stand for the expected number: "none", "twice", "XIV"."""
    patterns = load_patterns("numeric", "words.yaml")
    if expected.denominator != 1:
        return patterns["fraction"].search(text)
    names = [f"word_for_{expected}"] if expected == 0 else [f"word_for_{expected}", "fraction_of_count", "roman"]
    matches = (patterns[name].search(text) for name in names if name in patterns)
    return next(filter(None, matches), None)


def _is_within(value: Fraction, expected: Fraction, tolerance: Fraction) -> bool:
    if value.denominator == expected.denominator == 1:
        return abs(value.numerator - expected.numerator) <= tolerance
    # In a text, 0.30000000000000004 is not 0.3, but 4.666666666666667 is 14/3.
    is_rounded = _may_be_rounded(value) and _may_be_rounded(expected)
    reach = max(tolerance, FLOAT_ROUNDING * abs(expected)) if is_rounded else tolerance
    return abs(value - expected) <= reach


def _may_be_rounded(value: Fraction) -> bool:
    """Return whether a float only approximates a number: 14/3, or decimals with as many digits as a float has."""
    rest, decimals = value.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        decimals = max(decimals, count)
    return rest != 1 or (decimals > 0 and abs(value * 10**decimals) >= 10 ** (FLOAT_DIGITS - 1))


def _to_json_number(value: Fraction) -> float | int | str:
    if value.denominator == 1:
        return int(value) if abs(value) < 2**53 else str(value)
    return float(value)
