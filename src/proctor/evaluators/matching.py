"""Matching: the output held against what was expected, exactly or in part."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Literal

import msgspec

from proctor import codec
from proctor.errors import EvaluatorError
from proctor.evaluators.bounded_regex import find_first
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.verdict import shown
from proctor.records.numbers import is_number
from proctor.records.sample import kind_of
from proctor.records.score import Score

RegexMode = Literal["search", "match", "fullmatch"]

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "a": re.ASCII}
_COLLECTIONS = (list, tuple, Set)
_PLAIN = (str, int, float, bool, type(None), list, tuple, Mapping)
# A difference of 1.1 and 1.0 is not 0.1 to the last binary digit; people mean that it is.
_ROUNDING = 1e-9


@evaluator(category="matching", pure=True)
def exact_match(output: Any, expected: Any, *, case_sensitive: bool = True) -> Score:
    """Passes if the output equals what was expected.

    True is not 1, and a list equals a tuple of the same items (in a file they are the same).
    Dataclasses, structs and models are compared by what they look like in JSON. Where the output
    is a list of texts, it is a list of answers: it passes if any of them is expected.

    >>> exact_match("Paris", "Paris").passed
    True
    >>> exact_match("paris", "Paris", case_sensitive=False).value
    1.0
    >>> exact_match(["Why?", "How so?"], ["How so?", "Since when?"]).passed
    True
    """
    if case_sensitive and type(output) is str and output == expected:
        return Score(1.0, True)  # the usual case, without ado
    same = _same_text if case_sensitive else _same_folded
    if _equal(output, expected, same) or _any_answer(output, expected, same):
        return Score(1.0, True)
    return Score(0.0, False, f"expected {shown(expected)}, got {shown(output)}")


@evaluator(category="matching", pure=True)
def contains(output: Any, expected: Any, *, case_sensitive: bool = True) -> Score:
    """Passes if the output contains what was expected; of several things it must contain all.

    The value is the share that was found. A list contains its items, and the texts in them.

    >>> contains("The answer is 42.", "42").passed
    True
    >>> contains("red and green", ["red", "green", "blue", "white"]).value
    0.5
    """
    if case_sensitive and type(output) is type(expected) is str and expected in output:
        return Score(1.0, True)  # the usual case, without ado
    same = _same_text if case_sensitive else _same_folded
    several = not isinstance(expected, str) and isinstance(expected, _COLLECTIONS)
    wanted = list(expected) if several else [expected]
    if not wanted:
        return Score.skipped("there is nothing to look for: the expected list is empty")
    if isinstance(output, str):
        if not all(isinstance(item, str) for item in wanted):
            return Score.error(f"contains looks for a text; expected is {shown(expected)}")
        places: Any = (output,)
    elif isinstance(output, _COLLECTIONS):
        places = output
    else:
        return Score.error(f"contains looks in a text or a list; the output is {kind_of(output)}")
    missing = [item for item in wanted if not any(_holds(place, item, same) for place in places)]
    reason = "missing: " + ", ".join(shown(item) for item in missing) if missing else ""
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

    Without `pattern` the sample's expected value is the pattern. `flags` are letters: i (ignore
    case), m (^ and $ at every line), s (. matches newlines), x (verbose), a (ASCII only). A pattern
    that takes more than two seconds of CPU time on an output is an error.

    >>> regex_match("order 66", pattern=r"[0-9]+").passed
    True
    >>> regex_match("order 66", pattern=r"[0-9]+", mode="fullmatch").reason
    "no match for '[0-9]+'"
    """
    wanted = expected if pattern is None else pattern
    if wanted is None:
        return Score.skipped("there is no pattern, and the sample has no expected value")
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
    number. Numbers in texts are not numbers.

    >>> within_tolerance(0.5)(3.25, 3.0).value
    0.5
    >>> within_tolerance(0.1, relative=True)(95, 100).passed
    True
    """
    if not is_number(tolerance) or tolerance < 0:
        raise EvaluatorError(
            f"a tolerance is a number from 0 up, got {tolerance!r}", where="within_tolerance"
        )

    def evaluate(output: float, expected: float) -> Score:
        for role, number in (("output", output), ("expected value", expected)):
            if not is_number(number):
                return Score.error(f"the {role} is not a finite number: {shown(number)}")
        difference = float(abs(output - expected))
        if relative and difference:
            difference = difference / abs(expected) if expected else math.inf
        near = math.isclose(difference, tolerance, rel_tol=_ROUNDING)
        passed = difference <= tolerance or near
        value = max(0.0, 1.0 - difference / tolerance) if tolerance else float(passed)
        return Score(value, passed, f"diff={difference:.4f}")

    return made(evaluate, by=within_tolerance, tolerance=tolerance, relative=relative)


@evaluator(category="matching", pure=True)
def json_subset(output: Any, expected: Any) -> Score:
    """Passes if everything in the expected mapping is in the output too, at every depth.

    Mappings may have more keys than expected; lists and values must be equal. Texts are read as
    JSON. The reason names each key that is missing or wrong by its path.

    >>> json_subset({"city": "Paris", "country": "France"}, {"city": "Paris"}).passed
    True
    >>> json_subset('{"user": {"name": "Ada"}}', {"user": {"name": "Bob"}}).reason
    "wrong: user.name (expected 'Bob', got 'Ada')"
    """
    wanted, fault = _mapping(expected)
    if wanted is None:
        return Score.error(f"the expected value is not a mapping: {fault}")
    found, fault = _mapping(output)
    if found is None:
        return Score(0.0, False, f"the output is not a mapping: {fault}")
    faults = list(_differences(found, wanted))
    if faults:
        return Score(0.0, False, "; ".join(faults), {"faults": faults})
    return Score(1.0, True)


SameText = Callable[[str, str], bool]


def _same_text(left: str, right: str) -> bool:
    return left == right


def _same_folded(left: str, right: str) -> bool:
    return left.casefold() == right.casefold()


def _equal(left: Any, right: Any, same: SameText) -> bool:
    """Equality as JSON sees it, with texts compared as asked."""
    if isinstance(left, str) and isinstance(right, str):
        return same(left, right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(
            _equal(item, right[key], same) for key, item in left.items()
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(
            _equal(a, b, same) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, _PLAIN) and isinstance(right, _PLAIN):
        return bool(left == right)
    return bool(left == right) or _equal_as_data(left, right, same)


def _equal_as_data(left: Any, right: Any, same: SameText) -> bool:
    left, right = _as_data(left), _as_data(right)
    return isinstance(left, _PLAIN) and isinstance(right, _PLAIN) and _equal(left, right, same)


def _as_data(value: Any) -> Any:
    """A user's own object as JSON shows it; what JSON cannot show stays as it is."""
    if isinstance(value, _PLAIN):
        return value
    written = codec.plain(value)
    return value if isinstance(written, dict) and "$repr" in written else written


def _any_answer(output: Any, expected: Any, same: SameText) -> bool:
    """True if the output is a list of texts and one of them is, or is among, the expected."""
    if not (isinstance(output, list | tuple) and all(isinstance(item, str) for item in output)):
        return False
    wanted = expected if isinstance(expected, list | tuple) else [expected]
    return any(_equal(item, one, same) for item in output for one in wanted)


def _holds(place: Any, item: Any, same: SameText) -> bool:
    """True if one place is, or as a text contains, the item."""
    if isinstance(place, str) and isinstance(item, str):
        if same is _same_folded:
            return item.casefold() in place.casefold()
        return item in place
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


def _differences(
    found: Mapping[str, Any], wanted: Mapping[str, Any], path: Sequence[str] = ()
) -> list[str]:
    """Each key that is missing or wrong, by its path."""
    faults: list[str] = []
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
