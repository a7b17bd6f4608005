"""Numbers: the number that an answer comes to, whatever is written around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from proctor.errors import EvaluatorError
from proctor.evaluators.language import foreign_reason
from proctor.evaluators.marking import evaluator
from proctor.evaluators.numeric.answers import find_answer
from proctor.evaluators.numeric.doubts import Answer
from proctor.evaluators.numeric.parse import Decimal, Found
from proctor.evaluators.plain_values import best_score, exact, items_of, number_of, plain_value
from proctor.evaluators.verdict import shown
from proctor.records.numbers import is_number
from proctor.records.sample import kind_of
from proctor.records.score import Score

# A float holds 14/3 to sixteen digits.
FLOAT_ROUNDING = Fraction(1, 10**12)
NAMES_IT = "ask for a last line such as “Answer: 42”"
# What may stand for zero or for a part of one where there is no digit.
_ZERO_WORD = re.compile(r"\b(?:no|none|nothing|nobody|nil|neither|empty|nowhere)\b", re.IGNORECASE)
_WORDS_FOR = {
    1: "once|single|first|lone", 2: "twice|double|couple|pair|both|second|half",
    3: "thrice|triple|trio|third", 4: "fourth|quadruple", 5: "fifth", 6: "sixth", 7: "seventh",
    8: "eighth", 9: "ninth", 10: "tenth",
}  # fmt: skip
_ROMAN = re.compile(r"\b[IVXLCDM]{2,}\b")
# A part of a count that is not named: "half of them", "two of the quarters".
_PART_OF_COUNT = re.compile(r"\b(?:half|halves|thirds|quarters?|fifths|tenths)\b", re.IGNORECASE)
_PART_WORD = re.compile(
    r"\b(?:half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|eighths?|tenths?)\b", re.IGNORECASE
)


def _check(options: Mapping[str, Any]) -> None:
    tolerance = options.get("tolerance", 0.0)
    if not is_number(tolerance) or tolerance < 0:
        raise EvaluatorError(f"a tolerance is a number from 0 up, got {tolerance!r}", where="numeric_answer")


@evaluator(category="numbers", pure=True, check=_check)
def numeric_answer(
    output: Any, expected: Any, *, tolerance: float = 0.0, relative: bool = False, decimal: Decimal = "."
) -> Score:
    r"""Passes if the number that the output comes to is the expected one.

    The number is the one in \boxed{}; else after the last ####; else in <answer> tags; else of a
    JSON key "answer", "result" or "value"; else after the last announcement ("Final answer:", "A:",
    "the answer is", "42 is the answer"); else on a line of its own; else in the last sentence that
    concludes ("so", "in total"); else the only number. Step labels, questions and courtesies ("I
    hope this answer helps") are no answers. A number that is marked decides, whatever is expected.
    Where the output gives several numbers and does not say which one is the answer (a range, a
    choice, a bound, two boxes, two sentences), and one of them is expected, the score is skipped,
    whichever it is; so it is where the output denies its number ("42 is wrong"), refuses, or is a
    failed request's message. A correction ("Wait, it should be 43") replaces what is before it.

    Read are thousands separators (also 1.234.567, 1'234 and 12,34,567), decimals, powers,
    fractions (3/4, 1 1/2, ½, \frac{3}{4}), signs, currencies, "million" and its like, 0x1F, and
    English number words ("three quarters", "two point five"). A calculation without its result
    ("2+2") is skipped if its value or one of its terms is expected. A percent sign is dropped, but
    where only one side has one, 12% is 0.12 too. What is expected is read in the same way; of a
    list any one will do. The difference may be `tolerance`, with `relative` that share of the
    expected number; 0 compares exactly (0.50 is 1/2). `decimal` is the sign before decimals. Units
    are not converted.

    >>> from proctor import numeric_answer
    >>> numeric_answer("She pays 3 * $400 = $1,200.00 in all.", "#### 1200").passed
    True
    >>> numeric_answer("A: 17 eggs", 18).reason
    'expected 18, got 17'
    >>> numeric_answer("It takes between 3 and 5 days.", 5).status
    'skipped'
    """
    if (several := items_of(expected)) is not None:
        options: Any = {"tolerance": tolerance, "relative": relative, "decimal": decimal}
        return best_score(lambda one: numeric_answer(output, one, **options), several)
    wanted = _expected_number(expected, decimal)
    if isinstance(wanted, Score):
        return wanted
    if not isinstance(output, str) and number_of(output) is None:
        return Score.error(f"the output is neither a text nor a number: {kind_of(output)}")
    answer = _answer(output, decimal)
    details: dict[str, Any] = {"method": "extraction", "expected": _plain(wanted.value)}
    if answer.number is None:
        return _no_number(output, answer.withheld, wanted.value, details)
    details["answer"] = _plain(answer.number.value)
    limit = exact(tolerance) * (abs(wanted.value) if relative else 1)

    def is_right(number: Found, value: Fraction | None = None) -> bool:
        got = number if value is None else number._replace(value=value)
        return any(abs(a - b) <= max(limit, FLOAT_ROUNDING * abs(b)) for a, b in _readings(got, wanted))

    return _verdict(answer, answer.number, wanted, is_right, details, decimal)


def _verdict(
    answer: Answer,
    got: Found,
    wanted: Found,
    is_right: Callable[..., bool],
    details: dict[str, Any],
    decimal: Decimal,
) -> Score:
    """Passed or failed if all that may be meant agree, else skipped."""
    if got.kind in ("bound", "expression"):
        what = "a bound" if got.kind == "bound" else "no plain number"
        return Score.skipped(f"the answer is {what}: {shown(got.written)}", details)
    if got.kind == "calculation" and (is_right(got) or any(map(is_right, answer.rivals))):
        reason = f"the answer is a calculation without its result: {shown(got.written)}"
        return Score.skipped(f"{reason}; {NAMES_IT}", details)
    right = is_right(got)
    rivals = [one for one in answer.rivals if is_right(one) is not right]
    doubts = [] if right else [one for one in answer.others if is_right(one)]
    if rivals or doubts:
        listed = dict.fromkeys([got.written, *(one.written for one in (*rivals, *doubts))])
        reason = f"the output has several numbers ({', '.join(listed)}) and does not say which one"
        return Score.skipped(f"{reason} is the answer; {NAMES_IT}", details)
    if not right and any(is_right(got, value) for value in got.alternatives):
        reason = f"{got.written} may be {wanted.written} or {details['answer']}"
        return Score.skipped(f"{reason}; {_advice(got.written, decimal)}", details)
    if right:
        return Score(1.0, True, f"got {got.written}", details)
    return Score(0.0, False, f"expected {wanted.written}, got {got.written}", details)


def _advice(written: str, decimal: Decimal) -> str:
    """What settles which value is meant: only a separator depends on the option `decimal`."""
    if written[-1:].isalpha() or not re.search(r"[.,]", written):
        return "write the number in full"
    other = "," if decimal == "." else "."
    return f'set the decimal separator: decimal="{other}"'


def final_number(text: str, decimal: Decimal = ".") -> Found | None:
    r"""The number that an answer comes to, or None.

    >>> final_number("So the answer is 3 + 4 = 7, not 12.").value
    Fraction(7, 1)
    >>> final_number(r"Hence \boxed{\frac{3}{4}}, as 3 < 4.").value
    Fraction(3, 4)
    """
    return find_answer(text, decimal).number


def _answer(value: Any, decimal: Decimal) -> Answer:
    if isinstance(value, str):
        return find_answer(value, decimal)
    number = number_of(value)
    return Answer(None if number is None else Found(exact(number), str(plain_value(value))))


def _expected_number(expected: Any, decimal: Decimal) -> Found | Score:
    """The expected number, or an error if there is none or more than one."""
    answer = _answer(expected, decimal)
    if answer.number is None:
        return Score.error(f"the expected value has no number: {shown(expected)}")
    wrong = [one for one in answer.rivals if one.value != answer.number.value]
    if wrong or answer.number.kind in ("bound", "expression", "calculation"):
        return Score.error(
            f"what is expected is not a single number: {shown(expected)}. "
            "Fix: give one number, or a list of numbers of which any is right"
        )
    return answer.number


def _no_number(output: Any, withheld: str, wanted: Fraction, details: dict[str, Any]) -> Score:
    """Failed, but skipped where the text denies its numbers or may give one in other words."""
    text = str(output)
    if withheld:
        return Score.skipped(f"{withheld}; {NAMES_IT}", details)
    if problem := foreign_reason(text):
        reason = f"there are no digits in {shown(text)}, and {problem}"
        return Score.skipped(reason, details)
    word = _word_for(text, wanted)
    if word is not None:
        reason = f"there are no digits in {shown(text)}, but {word[0]!r} may stand for a number"
        return Score.skipped(f"{reason}; {NAMES_IT}", details)
    return Score(0.0, False, f"there is no number in {shown(text)}", details)


def _word_for(text: str, wanted: Fraction) -> re.Match[str] | None:
    """A word that may stand for the expected number though it is none: "none", "twice", "XIV"."""
    if not wanted:
        return _ZERO_WORD.search(text)
    if wanted.denominator != 1:
        return _PART_WORD.search(text)
    named = _WORDS_FOR.get(int(wanted))
    word = re.search(rf"\b(?:{named})\b", text, re.IGNORECASE) if named else None
    return word or _PART_OF_COUNT.search(text) or _ROMAN.search(text)


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
