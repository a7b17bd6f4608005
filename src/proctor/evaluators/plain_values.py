"""Values of numerical packages (NumPy, pandas, Arrow, Torch) as plain Python values."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

from proctor.records.numbers import is_number
from proctor.records.score import Score

_PYTHON_TYPES = frozenset({str, int, float, bool, type(None), list, tuple, dict, bytes})
# Missing values of pandas; comparing with them gives neither True nor False.
_MISSING_TYPES = frozenset({"NAType", "NaTType"})
# Floats of fewer bytes are read by their shortest spelling: float32(0.1) is 0.1.
_DOUBLE_BYTES = 8

Number = int | float | Decimal | Fraction


def plain_value(value: Any) -> Any:
    """The Python value of a scalar, array, series or table; any other value as it is.

    Arrays and series become lists, tables become lists of rows, and missing values of pandas
    become None. NaN stays NaN.

    >>> plain_value([1, "a"]), plain_value(Decimal("0.5"))
    ([1, 'a'], Decimal('0.5'))
    """
    kind = type(value)
    if kind in _PYTHON_TYPES or isinstance(value, type):
        return value
    if kind.__name__ in _MISSING_TYPES and kind.__module__.startswith("pandas"):
        return None
    if isinstance(value, str | int | Decimal | Fraction):
        return value
    if _is_short_float(value):
        return _short_floats(value)
    for method in ("tolist", "to_pylist", "to_dicts"):
        if callable(getattr(kind, method, None)):
            found = getattr(value, method)()
            # A long double stays one in its own list.
            return found if type(found) is not kind else float(found)
    if callable(getattr(kind, "to_dict", None)) and hasattr(value, "columns"):
        return value.to_dict(orient="records")
    return value


def composed(text: str) -> str:
    """A text in Unicode's composed form (NFC), in which "é" is one character however it was typed.

    >>> composed("e\u0301") == "\u00e9"
    True
    """
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def number_of(value: Any) -> Number | None:
    """A finite number, also of a numerical package or as a Decimal; None for anything else.

    >>> number_of(Decimal("1.5")), number_of(True), number_of("3"), number_of(float("inf"))
    (Decimal('1.5'), None, None, None)
    """
    if type(value) is float:
        return value if math.isfinite(value) else None
    found = plain_value(value)
    if isinstance(found, Decimal):
        return found if found.is_finite() else None
    return found if is_number(found) else None


def exact(number: Number) -> Fraction:
    """A number as it is written: 0.1 is one tenth.

    >>> exact(0.1) == exact(Decimal("0.10")) == Fraction(1, 10)
    True
    """
    return Fraction(repr(float(number))) if isinstance(number, float) else Fraction(number)


def same_number(left: Number, right: Number) -> bool:
    """True if two numbers are equal, by value or as they are written.

    >>> same_number(Decimal("0.1"), 0.1), same_number(1, 1.0), same_number(0.1, 0.2)
    (True, True, False)
    """
    if left == right:
        return True
    mixed = isinstance(left, float) is not isinstance(right, float)
    if not mixed or number_of(left) is None or number_of(right) is None:
        return False
    return exact(left) == exact(right)


def _is_short_float(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    size = getattr(dtype, "itemsize", _DOUBLE_BYTES)
    return getattr(dtype, "kind", "") == "f" and isinstance(size, int) and size < _DOUBLE_BYTES


def _short_floats(value: Any) -> Any:
    if getattr(value, "shape", None) == ():
        # Of an array without dimensions `[()]` is the scalar.
        scalar = value[()]
        return None if str(scalar) == "--" else float(str(scalar))
    return [_short_floats(item) for item in value]


NO_REFERENCES = "there is nothing to compare with: the expected list is empty"


def items_of(value: Any) -> list[Any] | None:
    """The items of a list, tuple, set or array; None for a value that is none of these.

    >>> items_of(("a", "b")), items_of("ab"), items_of({"a": 1})
    (['a', 'b'], None, None)
    """
    value = plain_value(value)
    if isinstance(value, list | tuple):
        return list(value)
    return sorted(value, key=repr) if isinstance(value, Set) else None


def text_references(output: Any, expected: Any) -> list[str] | None:
    """The references that a single text may match; None if these are not alternatives.

    >>> text_references("Paris", ["Paris", "paris"]), text_references(["Paris"], ["Paris"])
    (['Paris', 'paris'], None)
    """
    if not isinstance(output, str):
        return None
    items = items_of(expected)
    return items if items and all(isinstance(item, str) for item in items) else None


def best_score(score: Callable[[Any], Score], references: Iterable[Any]) -> Score:
    """The score against the reference that fits best.

    A pass decides. Without one, a reference that could not be compared leaves the whole undecided:
    it might have been the one that matches.

    >>> best_score(lambda wanted: Score(float(wanted == "b"), wanted == "b"), ["a", "b"]).passed
    True
    """
    scores = []
    for reference in references:
        found = score(reference)
        if found.passed is True and found.value == 1.0:
            return found
        scores.append(found)
    if not scores:
        return Score.skipped(NO_REFERENCES)
    passed = [one for one in scores if one.passed is True]
    undecided = [one for one in scores if not one.ok]
    if undecided and not passed:
        return undecided[0]
    return max(passed or scores, key=lambda one: one.value or 0.0)


def reference_text(output: Any, expected: Any, as_text: Callable[[Any], str]) -> str:
    """What a model reads as the expected answer; several references are marked as alternatives.

    >>> print(reference_text("It is Paris.", ["Paris", "Paris, France"], str))
    Any one of these:
    - Paris
    - Paris, France
    """
    references = text_references(output, expected)
    if references is None:
        return as_text(expected)
    if len(references) == 1:
        return references[0]
    return "\n".join(["Any one of these:", *(f"- {text}" for text in references)])
