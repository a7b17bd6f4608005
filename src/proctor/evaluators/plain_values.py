"""Convert values of numerical packages (NumPy, pandas, Arrow, Torch) into plain Python values."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

from proctor.records.numbers import is_number
from proctor.records.sample import type_name
from proctor.records.score import Score

_PYTHON_TYPES = frozenset({str, int, float, bool, type(None), list, tuple, dict, bytes})
# The missing values of pandas; a comparison with them is neither True nor False.
_MISSING_TYPES = frozenset({"NAType", "NaTType"})
# Smaller floats are converted through their shortest decimal form: float32(0.1) is 0.1.
_DOUBLE_BYTES = 8
NO_OUTPUT = "the output is None: the target returned nothing"
NO_REFERENCES = "there is nothing to compare with: the expected list is empty"

Number = int | float | Decimal | Fraction


def to_plain(value: Any) -> Any:
    """Return the Python value of a scalar, array, series or table; other values do not change.

    Arrays and series become lists, tables become lists of rows, and missing values of pandas
    become None. NaN stays NaN.
    """
    value_type = type(value)
    if value_type in _PYTHON_TYPES or isinstance(value, type):
        return value
    if value_type.__name__ in _MISSING_TYPES and value_type.__module__.startswith("pandas"):
        return None
    if isinstance(value, str | int | Decimal | Fraction):
        return value
    if _is_short_float(value):
        return _convert_short_floats(value)
    for method in ("tolist", "to_pylist", "to_dicts"):
        if callable(getattr(value_type, method, None)):
            converted = getattr(value, method)()
            # The `tolist` of a long double returns a long double.
            return converted if type(converted) is not value_type else float(converted)
    if callable(getattr(value_type, "to_dict", None)) and hasattr(value, "columns"):
        return value.to_dict(orient="records")
    return value


def normalize_unicode(text: str) -> str:
    """Return a string in composed form (NFC), in which "é" is always one character."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def to_number(value: Any) -> Number | None:
    """Return a finite number, including Decimal and numbers of numerical packages, or None."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    value = to_plain(value)
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    return value if is_number(value) else None


def to_fraction(number: Number) -> Fraction:
    """Return the exact fraction of a number's decimal form: 0.1 is one tenth."""
    return Fraction(repr(float(number))) if isinstance(number, float) else Fraction(number)


def is_same_number(left: Number, right: Number) -> bool:
    """Return True if two numbers are equal, by value or by decimal form."""
    if left == right:
        return True
    is_mixed = isinstance(left, float) is not isinstance(right, float)
    if not is_mixed or to_number(left) is None or to_number(right) is None:
        return False
    return to_fraction(left) == to_fraction(right)


def _is_short_float(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    size = getattr(dtype, "itemsize", _DOUBLE_BYTES)
    return getattr(dtype, "kind", "") == "f" and isinstance(size, int) and size < _DOUBLE_BYTES


def _convert_short_floats(value: Any) -> Any:
    if getattr(value, "shape", None) == ():
        # `[()]` is the scalar of an array without dimensions.
        scalar = value[()]
        return None if str(scalar) == "--" else float(str(scalar))
    return [_convert_short_floats(item) for item in value]


def list_items(value: Any) -> list[Any] | None:
    """Return the items of a list, tuple, set or array; None for any other value."""
    value = to_plain(value)
    if isinstance(value, list | tuple):
        return list(value)
    return sorted(value, key=repr) if isinstance(value, Set) else None


def score_other_than_text(output: Any, evaluator: str) -> Score:
    """Score an output that is not a string: None fails, because the target gave no answer; other types are errors."""
    if output is None:
        return Score(0.0, False, NO_OUTPUT)
    return Score.error(f"{evaluator} needs a string; the output is {type_name(output)}")


def find_text_references(output: Any, expected: Any) -> list[str] | None:
    """Return the alternatives that a string may match, or None if `expected` is not a list of strings."""
    items = list_items(expected) if isinstance(output, str) else None
    return items if items and all(isinstance(item, str) for item in items) else None


def score_best_reference(score: Callable[[Any], Score], references: Iterable[Any]) -> Score:
    """Return the score against the best reference.

    If none passes, a reference that could not be compared leaves the result undecided, because it might have matched.
    """
    scores = []
    for reference in references:
        result = score(reference)
        if result.passed is True and result.value == 1.0:
            return result
        scores.append(result)
    if not scores:
        return Score.skipped(NO_REFERENCES)
    passed = [result for result in scores if result.passed is True]
    undecided_score = next((result for result in scores if not result.ok), None)
    if undecided_score is not None and not passed:
        return undecided_score
    return max(passed or scores, key=lambda result: result.value or 0.0)


def format_references(output: Any, expected: Any, as_text: Callable[[Any], str]) -> str:
    """Return the expected answer for a prompt; several references become a list of alternatives."""
    references = find_text_references(output, expected)
    if references is None:
        return as_text(expected)
    if len(references) == 1:
        return references[0]
    return "\n".join(["Any one of these:", *(f"- {text}" for text in references)])
