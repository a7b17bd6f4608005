"""Matching: the output held against what was expected, exactly or in part."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import msgspec

from proctor.errors import EvaluatorError
from proctor.evaluators.bounded_regex import find_first
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.plain_values import (
    best_score,
    composed,
    exact,
    items_of,
    number_of,
    plain_value,
    same_number,
    text_references,
)
from proctor.evaluators.verdict import shown
from proctor.records import codec
from proctor.records.numbers import is_number
from proctor.records.sample import kind_of
from proctor.records.score import Score

RegexMode = Literal["search", "match", "fullmatch"]
ExactMode = Literal["equal", "any"]
ContainsMode = Literal["any", "all"]

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "a": re.ASCII}
_SIMPLE = frozenset({str, int, float, bool, type(None)})
_PLAIN_NUMBERS = (int, float)
_NUMBERS = (int, float, Decimal, Fraction)
_PLAIN = (str, int, float, bool, type(None), list, tuple, Mapping)
# A difference of 1.1 and 1.0 is not 0.1 to the last binary digit; people mean that it is.
_ROUNDING = 1e-9


@evaluator(category="matching", pure=True)
def exact_match(
    output: Any, expected: Any, *, case_sensitive: bool = True, match: ExactMode = "equal"
) -> Score:
    """Passes if the output equals what was expected.

    Lists are equal if their items are, in the same order. A single text against a list of expected
    texts passes if it equals any of them. `match="any"` passes if any item of the output equals
    any expected item: for a list of generated questions, say.

    Texts are compared in Unicode's composed form (NFC): "é" is "é", however it was typed. True is
    not 1, and NaN equals nothing. A list equals a tuple, or an array, of the same items.
    NumPy scalars, Decimal and Fraction are compared as numbers; dataclasses, structs and models
    by what they look like in JSON.

    >>> exact_match("Paris", "Paris").passed
    True
    >>> exact_match("paris", ["Paris", "Paris, France"], case_sensitive=False).passed
    True
    >>> exact_match(["Why?", "How so?"], ["How so?", "Since when?"]).passed
    False
    >>> exact_match(["Why?", "How so?"], ["How so?", "Since when?"], match="any").passed
    True
    """
    if case_sensitive and type(output) is type(expected) is str and output == expected:
        return Score(1.0, True)  # the usual case, without ado
    same = _same_text if case_sensitive else _same_folded
    if match == "any":
        passed = _any_equal(output, expected, same)
        reason = "" if passed else f"no item of {shown(output)} is expected: {shown(expected)}"
        return Score(float(passed), passed, reason)
    references = None if type(expected) is str else text_references(output, expected)
    passed = (
        _equal(output, expected, same)
        if references is None
        else any(same(output, reference) for reference in references)
    )
    if passed:
        return Score(1.0, True)
    wanted = "expected" if references is None else "expected one of"
    return Score(0.0, False, f"{wanted} {shown(expected)}, got {shown(output)}")


@evaluator(category="matching", pure=True)
def contains(
    output: Any, expected: Any, *, case_sensitive: bool = True, match: ContainsMode | None = None
) -> Score:
    """Passes if the output contains what was expected.

    A single text against a list of expected texts passes if it contains any of them. With
    `match="all"` it must contain all, and the value is the share that was found. A list contains
    its items, and the texts in them; of several expected items it must contain all, or with
    `match="any"` one. Texts are compared in Unicode's composed form (NFC).

    >>> contains("The answer is 42.", "42").passed
    True
    >>> contains("The answer is forty-two.", ["42", "forty-two"]).passed
    True
    >>> contains("red and green", ["red", "green", "blue", "white"], match="all").value
    0.5
    """
    same = _same_text if case_sensitive else _same_folded
    if type(output) is type(expected) is str and expected:
        # The usual case. ASCII has one Unicode form only.
        if case_sensitive and output.isascii() and expected.isascii():
            found = expected in output
        else:
            found = _holds(output, expected, same)
        if found:
            return Score(1.0, True)
        return Score(0.0, False, f"missing: {shown(expected)}")
    items, places = items_of(expected), items_of(output)
    wanted = [plain_value(expected)] if items is None else items
    if not wanted:
        return Score.skipped("there is nothing to look for: the expected list is empty")
    wanted = [item for item in wanted if not isinstance(item, str) or item]
    if not wanted:
        return Score.skipped("there is nothing to look for: the expected text is empty")
    if isinstance(output, str):
        if not all(isinstance(item, str) for item in wanted):
            return Score.error(f"contains looks for a text; expected is {shown(expected)}")
        places, match = [output], match or "any"
    if places is None:
        return Score.error(f"contains looks in a text or a list; the output is {kind_of(output)}")
    missing = [item for item in wanted if not any(_holds(place, item, same) for place in places)]
    listed = ", ".join(shown(item) for item in missing)
    if match == "any" and len(wanted) > 1:
        passed = len(missing) < len(wanted)
        return Score(float(passed), passed, "" if passed else f"none of these is in it: {listed}")
    reason = f"missing: {listed}" if missing else ""
    return Score(1.0 - len(missing) / len(wanted), not missing, reason)


def _check_regex(options: Mapping[str, Any]) -> None:
    """Refuse a pattern or flags that cannot be compiled before anything runs."""
    _compiled(options.get("pattern") or "", options.get("flags", ""))


@evaluator(category="matching", check=_check_regex)
def regex_match(
    output: Any,
    expected: Any = None,
    *,
    pattern: str | None = None,
    flags: str = "",
    mode: RegexMode = "search",
) -> Score:
    """Passes if a regular expression matches the output.

    Without `pattern` the sample's expected value is the pattern; of a list of patterns any one
    must match. `flags` are letters: i (ignore case), m (^ and $ at every line), s (. matches
    newlines), x (verbose), a (ASCII only). The output is searched as it is, without Unicode
    normalisation. A pattern that takes more than two seconds of
    CPU time on an output is an error.

    >>> regex_match("order 66", pattern=r"[0-9]+").passed
    True
    >>> regex_match("order 66", pattern=r"[0-9]+", mode="fullmatch").reason
    "no match for '[0-9]+'"
    """
    wanted = expected if pattern is None else pattern
    if wanted is None:
        return Score.skipped("there is no pattern, and the sample has no expected value")
    if isinstance(wanted, str) and not wanted:
        return Score.skipped("the pattern is empty, so it would match everything")
    if pattern is None and (several := items_of(expected)) is not None:
        several = [one for one in several if not isinstance(one, str) or one]
        return best_score(lambda one: _regex_score(output, one, flags, mode), several)
    return _regex_score(output, wanted, flags, mode)


def _regex_score(output: Any, wanted: Any, flags: str, mode: RegexMode) -> Score:
    if not isinstance(wanted, str):
        return Score.error(f"a pattern is a text; expected is {kind_of(wanted)}")
    if not isinstance(output, str):
        return Score.error(f"regex_match looks at a text; the output is {kind_of(output)}")
    try:
        compiled = _compiled(wanted, flags)
    except EvaluatorError as error:
        return Score.error(str(error))
    try:
        found = find_first(compiled, output, mode)
    except EvaluatorError as error:
        return Score.error(error.what)
    if found is None:
        return Score(0.0, False, f"no match for {shown(wanted)}")
    return Score(1.0, True, f"matched {shown(output[slice(*found)])}")


@evaluator(category="matching", pure=True, factory=True, needs=("expected",))
def within_tolerance(tolerance: float, relative: bool = False) -> Callable[[float, float], Score]:
    """Passes if a number differs from the expected one by at most the tolerance.

    The value falls from 1 (no difference) to 0 (as much as the tolerance): a difference of just
    the tolerance passes with value 0. With `relative` the tolerance is a share of the expected
    number. Lists and arrays of one length are compared item by item, and the worst item counts; a
    single number against a list of numbers passes if it is near any of them. Numbers in texts are
    not numbers, and NaN is no verdict.

    >>> within_tolerance(0.5)(3.25, 3.0).value
    0.5
    >>> within_tolerance(0.1, relative=True)(95, 100).passed
    True
    """
    if not is_number(tolerance) or tolerance < 0:
        raise EvaluatorError(
            f"a tolerance is a number from 0 up, got {tolerance!r}", where="within_tolerance"
        )

    def evaluate(output: Any, expected: Any) -> Score:
        if type(output) in _PLAIN_NUMBERS and type(expected) in _PLAIN_NUMBERS:
            return _tolerance_score(output, expected, tolerance, relative)
        outputs, wanted = items_of(output), items_of(expected)
        if wanted is None:
            if outputs is not None:
                return Score.error(f"the output is a list, the expected value is {shown(expected)}")
            return _tolerance_score(output, expected, tolerance, relative)
        if outputs is None:
            return best_score(lambda one: _tolerance_score(output, one, tolerance, relative), wanted)
        return _worst_item(outputs, wanted, evaluate)

    return made(evaluate, by=within_tolerance, tolerance=tolerance, relative=relative)


def _tolerance_score(output: Any, expected: Any, tolerance: float, relative: bool) -> Score:
    got: Any
    wanted: Any
    got, wanted = number_of(output), number_of(expected)
    if got is None or wanted is None:
        role, value = ("output", output) if got is None else ("expected value", expected)
        return Score.error(f"the {role} is not a finite number: {shown(value)}")
    if isinstance(got, Decimal) or isinstance(wanted, Decimal):
        got, wanted = exact(got), exact(wanted)
    difference = float(abs(got - wanted))
    if relative and difference:
        difference = difference / abs(float(wanted)) if wanted else math.inf
    near = math.isclose(difference, tolerance, rel_tol=_ROUNDING)
    passed = difference <= tolerance or near
    value = max(0.0, 1.0 - difference / tolerance) if tolerance else float(passed)
    return Score(value, passed, f"diff={difference:.4f}")


def _worst_item(
    outputs: Sequence[Any], expected: Sequence[Any], evaluate: Callable[[Any, Any], Score]
) -> Score:
    """The lowest score of two lists, item by item; lists of other lengths do not match."""
    if len(outputs) != len(expected):
        return Score(0.0, False, f"{len(outputs)} items, expected {len(expected)}")
    if not expected:
        return Score(1.0, True, "both are empty")
    scores = [evaluate(*pair) for pair in zip(outputs, expected, strict=True)]
    # An item that failed decides, whatever could not be said of the others.
    judged = [at for at, score in enumerate(scores) if score.ok]
    worst = min(judged, key=lambda at: (scores[at].passed, scores[at].value), default=None)
    undecided = next((score for score in scores if not score.ok), None)
    if worst is None or (undecided is not None and scores[worst].passed):
        return undecided or Score.error("no item could be compared")
    score = scores[worst]
    return Score(score.value, score.passed, f"item {worst}: {score.reason}")


@evaluator(category="matching", pure=True)
def json_subset(output: Any, expected: Any) -> Score:
    """Passes if everything in the expected mapping is in the output too, at every depth.

    Mappings may have more keys than expected; lists and values must be equal. Texts are read as
    JSON. Of a list of expected mappings any one must be in it. An empty expected mapping is
    skipped. The reason names each key that is missing or wrong by its path.

    >>> json_subset({"city": "Paris", "country": "France"}, {"city": "Paris"}).passed
    True
    >>> json_subset('{"user": {"name": "Ada"}}', {"user": {"name": "Bob"}}).reason
    "wrong: user.name (expected 'Bob', got 'Ada')"
    """
    if (several := items_of(expected)) and all(_mapping(one)[0] is not None for one in several):
        return best_score(lambda one: json_subset(output, one), several)
    wanted, fault = _mapping(expected)
    if wanted is None:
        return Score.error(f"the expected value is not a mapping: {fault}")
    if not wanted:
        return Score.skipped("the expected mapping is empty: there is nothing to look for")
    found, fault = _mapping(output)
    if found is None:
        return Score(0.0, False, f"the output is not a mapping: {fault}")
    faults = list(_differences(found, wanted))
    if faults:
        return Score(0.0, False, "; ".join(faults), {"faults": faults})
    return Score(1.0, True)


SameText = Callable[[str, str], bool]


def _same_text(left: str, right: str) -> bool:
    return left == right or composed(left) == composed(right)


def _same_folded(left: str, right: str) -> bool:
    return _folded(left) == _folded(right)


def _folded(text: str) -> str:
    return composed(composed(text).casefold())


def _equal(left: Any, right: Any, same: SameText) -> bool:
    """Equality as JSON sees it, with texts compared as asked."""
    kind = type(left)
    if kind is type(right) and kind in _SIMPLE:
        return same(left, right) if kind is str else bool(left == right)
    left, right = plain_value(left), plain_value(right)
    if isinstance(left, str) and isinstance(right, str):
        return same(left, right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        return same_number(left, right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        left, right = _with_composed_keys(left), _with_composed_keys(right)
        return left.keys() == right.keys() and all(
            _equal(item, right[key], same) for key, item in left.items()
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(_equal(a, b, same) for a, b in zip(left, right, strict=True))
    if isinstance(left, _PLAIN) and isinstance(right, _PLAIN):
        return bool(left == right)
    return _is_true(left == right) or _equal_as_data(left, right, same)


def _with_composed_keys(mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """A mapping whose keys are comparable, whichever way their accents were typed."""
    if all(not isinstance(key, str) or key.isascii() for key in mapping):
        return mapping
    found = {composed(key) if isinstance(key, str) else key: mapping[key] for key in mapping}
    # Two keys that differ in nothing else stay two.
    return found if len(found) == len(mapping) else mapping


def _is_true(compared: Any) -> bool:
    """True if a comparison holds; False if a type of the user's gives no single answer."""
    try:
        return bool(compared)
    except (TypeError, ValueError):
        return False


def _equal_as_data(left: Any, right: Any, same: SameText) -> bool:
    left, right = _as_data(left), _as_data(right)
    return isinstance(left, _PLAIN) and isinstance(right, _PLAIN) and _equal(left, right, same)


def _as_data(value: Any) -> Any:
    """A user's own object as JSON shows it; what JSON cannot show stays as it is."""
    value = plain_value(value)
    if isinstance(value, _PLAIN):
        return value
    written = codec.plain(value)
    return value if isinstance(written, dict) and "$repr" in written else written


def _any_equal(output: Any, expected: Any, same: SameText) -> bool:
    """True if one item of the output equals one expected item."""
    answers, wanted = items_of(output), items_of(expected)
    return any(
        _equal(answer, reference, same)
        for answer in ([output] if answers is None else answers)
        for reference in ([expected] if wanted is None else wanted)
    )


def _holds(place: Any, item: Any, same: SameText) -> bool:
    """True if one place is, or as a text contains, the item."""
    if isinstance(place, str) and isinstance(item, str):
        if same is _same_folded:
            return _folded(item) in _folded(place)
        return composed(item) in composed(place)
    return _equal(place, item, same)


def _compiled(pattern: str, flags: str) -> re.Pattern[str]:
    unknown = sorted(set(flags) - _FLAGS.keys())
    if unknown:
        raise EvaluatorError(
            f"there is no flag {unknown[0]!r}",
            where="regex_match",
            fix=f"flags are the letters {', '.join(_FLAGS)}",
        )
    try:
        return re.compile(pattern, sum(_FLAGS[letter] for letter in set(flags)))
    except re.error as error:
        raise EvaluatorError(
            f"{pattern!r} is not a regular expression: {error}", where="regex_match"
        ) from None


def _mapping(value: Any) -> tuple[Mapping[str, Any] | None, str]:
    """A mapping, or why there is none; texts are read as JSON."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            return None, f"it is a text that is not JSON ({error})"
        except RecursionError:
            return None, "it is JSON that is nested too deeply"
    value = _as_data(value)
    return (value, "") if isinstance(value, Mapping) else (None, f"it is {kind_of(value)}")


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any], path: Sequence[str] = ()) -> list[str]:
    """Each key that is missing or wrong, by its path."""
    faults: list[str] = []
    found, wanted = _with_composed_keys(found), _with_composed_keys(wanted)
    for key, item in wanted.items():
        here = ".".join([*path, str(key)])
        if key not in found:
            faults.append(f"missing: {here}")
            continue
        inner, expected = _as_data(found[key]), _as_data(item)
        if isinstance(inner, Mapping) and isinstance(expected, Mapping):
            faults += _differences(inner, expected, [*path, str(key)])
        elif not _equal(inner, expected, _same_text):
            faults.append(f"wrong: {here} (expected {shown(expected)}, got {shown(inner)})")
    return faults
