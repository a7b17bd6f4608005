"""Compare the output with the expected value, exactly or in part."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import msgspec

from proctor.errors import EvaluatorError
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.measurements import make_limit_check
from proctor.evaluators.plain_values import (
    NO_OUTPUT,
    find_text_references,
    is_same_number,
    list_items,
    normalize_unicode,
    score_best_reference,
    score_other_than_text,
    to_fraction,
    to_number,
    to_plain,
)
from proctor.evaluators.score_conversion import preview
from proctor.records import codec
from proctor.records.formatting import format_count
from proctor.records.sample import type_name
from proctor.records.score import Score

RegexMode = Literal["search", "match", "fullmatch"]
ExactMode = Literal["equal", "any"]
ContainsMode = Literal["any", "all"]
SameText = Callable[[str, str], bool]

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "a": re.ASCII}
_SIMPLE = frozenset({str, int, float, bool, type(None)})
_NUMBERS = (int, float, Decimal, Fraction)
_PLAIN = (str, int, float, bool, type(None), list, tuple, Mapping)
# 1.1 - 1.0 differs from 0.1 in the last binary digit.
_ROUNDING = 1e-9


@evaluator(category="matching", pure=True)
def exact_match(output: Any, expected: Any, *, case_sensitive: bool = True, match: ExactMode = "equal") -> Score:
    """Passes if the output equals the expected value.

    Lists are equal if their items are, in the same order. A single string passes against a list of expected strings if
    it equals any of them. `match="any"` passes if any item of the output equals any expected item, for example in a
    list of generated questions.

    Strings are compared in Unicode's composed form (NFC). True is not 1, and NaN equals nothing. A
    list equals a tuple, or an array, of the same items; a set equals only a set. NumPy scalars, Decimal
    and Fraction are compared as numbers; dataclasses, structs and models by their JSON form.

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
        return Score(1.0, True)  # A fast path for the most common case.
    same = _is_same_text if case_sensitive else _is_same_ignoring_case
    if match == "any":
        passed = _has_common_item(output, expected, same)
        reason = "" if passed else f"no item of the output is in {preview(expected)}, got {preview(output)}"
        return Score(float(passed), passed, reason)
    references = None if type(expected) is str else find_text_references(output, expected)
    if references is None:
        passed = _is_equal(output, expected, same)
    else:
        passed = any(same(output, reference) for reference in references)
    if passed:
        return Score(1.0, True)
    if output is None:
        return Score(0.0, False, NO_OUTPUT)
    prefix = "expected" if references is None else "expected one of"
    return Score(0.0, False, f"{prefix} {preview(expected)}, got {preview(output)}")


@evaluator(category="matching", pure=True)
def contains(output: Any, expected: Any, *, case_sensitive: bool = True, match: ContainsMode | None = None) -> Score:
    """Passes if the output contains the expected value.

    A single string passes against a list of expected strings if it contains any of them. With `match="all"` it must
    contain all of them, and the value is the fraction that it contains. A list contains its items, and the strings in
    them; it must contain all expected items, or with `match="any"` one of them. Strings are compared in Unicode's
    composed form (NFC).

    >>> contains("The answer is 42.", "42").passed
    True
    >>> contains("The answer is forty-two.", ["42", "forty-two"]).passed
    True
    >>> contains("red and green", ["red", "green", "blue", "white"], match="all").value
    0.5
    """
    same = _is_same_text if case_sensitive else _is_same_ignoring_case
    if type(output) is type(expected) is str and expected:
        # The most common case. ASCII has only one Unicode form.
        if case_sensitive and output.isascii() and expected.isascii():
            passed = expected in output
        else:
            passed = _contains_item(output, expected, same)
        return Score(1.0, True) if passed else Score(0.0, False, f"missing: {preview(expected)}")
    items, containers = list_items(expected), list_items(output)
    targets = [to_plain(expected)] if items is None else items
    if not targets:
        return Score.skipped("there is nothing to look for: the expected list is empty")
    targets = [item for item in targets if not isinstance(item, str) or item]
    if not targets:
        return Score.skipped("there is nothing to look for: the expected text is empty")
    if isinstance(output, str):
        if not all(isinstance(item, str) for item in targets):
            return Score.error(f"contains looks for a string; expected is {preview(expected)}")
        containers, match = [output], match or "any"
    if output is None:
        return Score(0.0, False, NO_OUTPUT)
    if containers is None:
        return Score.error(f"contains searches a string or a list; the output is {type_name(output)}")
    missing = [item for item in targets if not any(_contains_item(container, item, same) for container in containers)]
    missing_items = ", ".join(map(preview, missing))
    if match == "any" and len(targets) > 1:
        passed = len(missing) < len(targets)
        return Score(float(passed), passed, "" if passed else f"it contains none of these: {missing_items}")
    reason = f"missing: {missing_items}" if missing else ""
    return Score(1.0 - len(missing) / len(targets), not missing, reason)


def _check_regex(options: Mapping[str, Any]) -> None:
    _compile(options.get("pattern") or "", options.get("flags", ""))


@evaluator(category="matching", check=_check_regex)
def regex_match(
    output: Any, expected: Any = None, *, pattern: str | None = None, flags: str = "", mode: RegexMode = "search"
) -> Score:
    """Passes if a regular expression matches the output.

    Without `pattern`, the sample's expected value is the pattern; if it is a list, any of its patterns may match.
    `flags` are letters: i (ignore case), m (^ and $ at every line), s (. matches newlines), x (verbose), a (ASCII
    only). The output is searched without Unicode normalization. A pattern that takes more than two seconds of CPU time
    on an output is an error.

    >>> regex_match("order 66", pattern=r"[0-9]+").passed
    True
    >>> regex_match("order 66", pattern=r"[0-9]+", mode="fullmatch").reason
    "no match for '[0-9]+'"
    """
    target = expected if pattern is None else pattern
    if target is None:
        return Score.skipped("there is no pattern, and the sample has no expected value")
    if isinstance(target, str) and not target:
        return Score.skipped("the pattern is empty, so it would match everything")
    if pattern is None and (patterns := list_items(expected)) is not None:
        patterns = [item for item in patterns if not isinstance(item, str) or item]
        return score_best_reference(lambda item: _score_pattern(output, item, flags, mode), patterns)
    return _score_pattern(output, target, flags, mode)


def _score_pattern(output: Any, pattern: Any, flags: str, mode: RegexMode) -> Score:
    if not isinstance(pattern, str):
        return Score.error(f"a pattern must be a string; expected is {type_name(pattern)}")
    if not isinstance(output, str):
        return score_other_than_text(output, "regex_match")
    try:
        compiled = _compile(pattern, flags)
    except EvaluatorError as error:
        return Score.error(str(error))
    from proctor.evaluators.bounded_regex import find_first

    try:
        span = find_first(compiled, output, mode)
    except EvaluatorError as error:
        return Score.error(error.what)
    if span is None:
        return Score(0.0, False, f"no match for {preview(pattern)}")
    return Score(1.0, True, f"matched {preview(output[slice(*span)])}")


@evaluator(category="matching", pure=True, factory=True, needs=("expected",))
def within_tolerance(tolerance: float, relative: bool = False) -> Callable[[float, float], Score]:
    """Passes if a number differs from the expected number by at most the tolerance.

    The value falls from 1 (no difference) to 0 (a difference equal to the tolerance, which still
    passes). With `relative` the tolerance is a fraction of the expected number. Lists and arrays of
    the same length are compared item by item, and the worst item counts; a single number against a
    list of numbers passes if it is within the tolerance of any of them. NaN is an error, and so is a
    string: use `numeric_answer`.

    >>> within_tolerance(0.5)(3.25, 3.0).value
    0.5
    >>> within_tolerance(0.1, relative=True)(95, 100).passed
    True
    """
    make_limit_check("within_tolerance", "tolerance")({"tolerance": tolerance})

    def evaluate(output: Any, expected: Any) -> Score:
        if type(output) in (int, float) and type(expected) in (int, float):
            return _score_tolerance(output, expected, tolerance, relative)
        outputs, references = list_items(output), list_items(expected)
        if references is None:
            if outputs is not None:
                return Score.error(f"the output is a list, the expected value is {preview(expected)}")
            return _score_tolerance(output, expected, tolerance, relative)
        if outputs is None:
            return score_best_reference(lambda item: _score_tolerance(output, item, tolerance, relative), references)
        return _score_worst_item(outputs, references, evaluate)

    return tag_evaluator(evaluate, factory=within_tolerance, tolerance=tolerance, relative=relative)


def _score_tolerance(output: Any, expected: Any, tolerance: float, relative: bool) -> Score:
    actual: Any = to_number(output)
    reference: Any = to_number(expected)
    if actual is None or reference is None:
        role, value = ("output", output) if actual is None else ("expected value", expected)
        if isinstance(value, str):
            advice = "numeric_answer(tolerance=…) reads the number of a text"
            return Score.error(f"the {role} is a text, not a number: {preview(value)}; {advice}")
        return Score.error(f"the {role} is not a finite number: {preview(value)}")
    if isinstance(actual, Decimal) or isinstance(reference, Decimal):
        actual, reference = to_fraction(actual), to_fraction(reference)
    difference = float(abs(actual - reference))
    if relative and difference:
        difference = difference / abs(float(reference)) if reference else math.inf
    passed = difference <= tolerance or math.isclose(difference, tolerance, rel_tol=_ROUNDING)
    value = max(0.0, 1.0 - difference / tolerance) if tolerance else float(passed)
    return Score(value, passed, f"diff={difference:.4f}")


def _score_worst_item(outputs: Sequence[Any], expected: Sequence[Any], evaluate: Callable[[Any, Any], Score]) -> Score:
    if len(outputs) != len(expected):
        return Score(0.0, False, f"{format_count(len(outputs), 'item')}, expected {len(expected)}")
    if not expected:
        return Score(1.0, True, "both are empty")
    scores = [evaluate(*pair) for pair in zip(outputs, expected, strict=True)]
    # A failed item decides, even if other items could not be compared.
    scored = [index for index, score in enumerate(scores) if score.ok]
    worst = min(scored, key=lambda index: (scores[index].passed, scores[index].value), default=None)
    undecided_score = next((score for score in scores if not score.ok), None)
    if worst is None or (undecided_score is not None and scores[worst].passed):
        return undecided_score or Score.error("no item could be compared")
    score = scores[worst]
    return Score(score.value, score.passed, f"item {worst}: {score.reason}")


@evaluator(category="matching", pure=True)
def json_subset(output: Any, expected: Any, *, allow_fences: bool = False) -> Score:
    """Passes if the output contains everything in the expected mapping, at every depth.

    Mappings may have more keys than expected; lists and values must be equal. Strings are parsed as JSON;
    `allow_fences` accepts a Markdown code fence around the output. With a list of expected mappings, the output must
    contain one of them. An empty expected mapping is skipped. The reason lists the path of each missing or wrong key.

    >>> json_subset({"city": "Paris", "country": "France"}, {"city": "Paris"}).passed
    True
    >>> json_subset('{"user": {"name": "Ada"}}', {"user": {"name": "Bob"}}).reason
    "wrong: user.name (expected 'Bob', got 'Ada')"
    """
    if (items := list_items(expected)) and all(_read_mapping(item)[0] is not None for item in items):
        return score_best_reference(lambda item: json_subset(output, item, allow_fences=allow_fences), items)
    reference, problem = _read_mapping(expected)
    if reference is None:
        return Score.error(f"the expected value is not a mapping: {problem}")
    if not reference:
        return Score.skipped("the expected mapping is empty: there is nothing to look for")
    if isinstance(output, str):
        from proctor.evaluators.formats.format_error import strip_allowed_fence

        fenced, (output, _) = output, strip_allowed_fence(output, True)
        if not allow_fences and output != fenced:
            reason = "the output is not a mapping: it is JSON in a Markdown fence (allow_fences=True accepts it)"
            return Score(0.0, False, reason)
    actual, problem = _read_mapping(output)
    if actual is None:
        return Score(0.0, False, f"the output is not a mapping: {problem}")
    differences = _find_differences(actual, reference)
    if differences:
        return Score(0.0, False, "; ".join(differences), {"faults": differences})
    return Score(1.0, True)


def _is_same_text(left: str, right: str) -> bool:
    return left == right or normalize_unicode(left) == normalize_unicode(right)


def _is_same_ignoring_case(left: str, right: str) -> bool:
    return _fold(left) == _fold(right)


def _fold(text: str) -> str:
    return normalize_unicode(normalize_unicode(text).casefold())


def _is_equal(left: Any, right: Any, same: SameText) -> bool:
    """Compare values as JSON does, and strings with `same`."""
    left_type = type(left)
    if left_type is type(right) and left_type in _SIMPLE:
        return same(left, right) if left_type is str else bool(left == right)
    if isinstance(left, Set) is not isinstance(right, Set):
        # A set has no order, so it equals no list.
        return False
    left, right = to_plain(left), to_plain(right)
    if isinstance(left, str) and isinstance(right, str):
        return same(left, right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        return is_same_number(left, right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        left, right = _normalize_keys(left), _normalize_keys(right)
        return left.keys() == right.keys() and all(_is_equal(item, right[key], same) for key, item in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(_is_equal(a, b, same) for a, b in zip(left, right, strict=True))
    if isinstance(left, _PLAIN) and isinstance(right, _PLAIN):
        return bool(left == right)
    return _is_true(left == right) or _is_same_json(left, right, same)


def _is_same_json(left: Any, right: Any, same: SameText) -> bool:
    if isinstance(left, _NUMBERS) or isinstance(right, _NUMBERS):
        # The JSON form of a decimal is a string, but the number 5 is not the text "5".
        return False
    left, right = _to_json_value(left), _to_json_value(right)
    return isinstance(left, _PLAIN) and isinstance(right, _PLAIN) and _is_equal(left, right, same)


def _normalize_keys(mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
    if all(not isinstance(key, str) or key.isascii() for key in mapping):
        return mapping
    normalized = {normalize_unicode(key) if isinstance(key, str) else key: value for key, value in mapping.items()}
    # Keys that differ only in their Unicode form stay separate.
    return normalized if len(normalized) == len(mapping) else mapping


def _is_true(comparison: Any) -> bool:
    try:
        return bool(comparison)
    except (TypeError, ValueError):
        return False


def _to_json_value(value: Any) -> Any:
    """Return an object as a JSON value; the object itself if JSON cannot represent it."""
    value = to_plain(value)
    if isinstance(value, _PLAIN):
        return value
    data = codec.to_plain(value)
    return value if isinstance(data, dict) and "$repr" in data else data


def _has_common_item(output: Any, expected: Any, same: SameText) -> bool:
    outputs, references = list_items(output), list_items(expected)
    return any(
        _is_equal(item, reference, same)
        for item in ([output] if outputs is None else outputs)
        for reference in ([expected] if references is None else references)
    )


def _contains_item(container: Any, item: Any, same: SameText) -> bool:
    if isinstance(container, str) and isinstance(item, str):
        if same is _is_same_ignoring_case:
            return _fold(item) in _fold(container)
        return normalize_unicode(item) in normalize_unicode(container)
    return _is_equal(container, item, same)


def _compile(pattern: str, flags: str) -> re.Pattern[str]:
    where = "regex_match"
    unknown_flags = sorted(set(flags) - _FLAGS.keys())
    if unknown_flags:
        fix = f"use the letters {', '.join(_FLAGS)}"
        raise EvaluatorError(f"unknown flag {unknown_flags[0]!r}", where=where, fix=fix)
    try:
        return re.compile(pattern, sum(_FLAGS[letter] for letter in set(flags)))
    except re.error as error:
        what = f"{pattern!r} is not a regular expression: {error}"
        raise EvaluatorError(what, where=where, fix="correct the pattern, or escape its special characters") from None


def _read_mapping(value: Any) -> tuple[Mapping[str, Any] | None, str]:
    """Return a mapping, or None and the reason; strings are parsed as JSON."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError as error:
            return None, f"it is a string that is not JSON ({error})"
        except RecursionError:
            return None, "it is JSON that is too deeply nestedly"
    value = _to_json_value(value)
    return (value, "") if isinstance(value, Mapping) else (None, f"it is {type_name(value)}")


def _find_differences(actual: Mapping[str, Any], expected: Mapping[str, Any], path: str = "") -> list[str]:
    differences: list[str] = []
    actual, expected = _normalize_keys(actual), _normalize_keys(expected)
    for key, item in expected.items():
        key_path = f"{path}{key}"
        if key not in actual:
            differences.append(f"missing: {key_path}")
            continue
        value, reference = _to_json_value(actual[key]), _to_json_value(item)
        if isinstance(value, Mapping) and isinstance(reference, Mapping):
            differences += _find_differences(value, reference, f"{key_path}.")
        elif not _is_equal(value, reference, _is_same_text):
            differences.append(f"wrong: {key_path} (expected {preview(reference)}, got {preview(value)})")
    return differences
