"""What an evaluator returned, or raised, made into a score."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Real
from typing import Any

from proctor.errors import nearest
from proctor.records.numbers import is_fraction
from proctor.records.sample import kind_of
from proctor.records.score import Score

RETURNS_TAKEN = (
    "taken are a Score, a boolean, a number from 0 to 1, None, "
    "or a mapping with 'passed' or 'score' (and 'details', 'message')"
)
_KEYS = ("passed", "score", "value", "details", "message", "reason")
_SHOWN_AT_MOST = 60
_FRAMES = 3
_MESSAGE_LENGTH = 2_000


def as_score(returned: Any, threshold: float = 0.5) -> Score:
    """Make what an evaluator returned into a score; what is none becomes an error score.

    >>> as_score(0.75).passed, as_score(0.75, threshold=0.8).passed
    (True, False)
    >>> as_score({"passed": True, "score": 0.9, "message": "grounded"}).reason
    'grounded'
    >>> as_score(7).reason
    'the evaluator returned 7, which is not from 0 to 1'
    """
    if isinstance(returned, Score):
        # It was checked when it was made.
        return returned
    if returned is None:
        return Score.skipped("the evaluator had nothing to say")
    if not isinstance(returned, bool):
        returned = _unboxed(returned)
    if isinstance(returned, bool):
        return Score(1.0 if returned else 0.0, returned)
    if isinstance(returned, Real):
        return _from_number(returned, threshold)
    if isinstance(returned, Mapping):
        return _from_mapping(returned, threshold)
    if inspect.isawaitable(returned):
        return _from_awaitable(returned)
    return Score.error(f"the evaluator returned {shown(returned)}; {RETURNS_TAKEN}")


def as_error(error: BaseException) -> Score:
    """Make what an evaluator raised into an error score, with the end of the traceback.

    >>> as_error(ZeroDivisionError("division by zero")).reason
    'ZeroDivisionError: division by zero'
    """
    # Wanted only when something has gone wrong, and not quick to import.
    import traceback

    kind = type(error).__name__
    try:
        message = str(error)[:_MESSAGE_LENGTH]
        tail = "".join(traceback.format_exception(error, limit=-_FRAMES, chain=False))
    except BaseException:
        message = "its message cannot be shown"
        tail = "".join(traceback.format_tb(error.__traceback__, limit=-_FRAMES))
    tail = tail[-2 * _MESSAGE_LENGTH :]
    return Score.error(f"{kind}: {message}" if message else kind, {"traceback": tail})


def shown(value: Any) -> str:
    """A value as a reason shows it: in one short piece, an object that has no words by its type.

    >>> shown("a" * 100)[-3:], shown(object()), shown(frozenset({1}))
    ('aa…', 'an object of type object', 'frozenset({1})')
    """
    if isinstance(value, str):
        value = value[:_SHOWN_AT_MOST]
    elif getattr(type(value), "__repr__", None) is object.__repr__:
        return f"an object of type {type(value).__name__}"
    try:
        text = repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= _SHOWN_AT_MOST else text[: _SHOWN_AT_MOST - 1] + "…"


def _unboxed(returned: Any) -> Any:
    """A number or boolean out of the one-element array that numerical packages give."""
    if getattr(returned, "shape", None) == () and callable(getattr(returned, "item", None)):
        return returned.item()
    return returned


def _from_number(number: Any, threshold: float) -> Score:
    if not is_fraction(number):
        return Score.error(f"the evaluator returned {shown(number)}, which is not from 0 to 1")
    value = float(number)
    return Score(value, value >= threshold)


def _from_mapping(returned: Mapping[Any, Any], threshold: float) -> Score:
    unknown = [str(key) for key in returned if key not in _KEYS]
    if unknown:
        return Score.error(
            f"the evaluator returned a mapping with the key {unknown[0]!r}: {nearest(unknown[0], _KEYS)}"
        )
    value = _unboxed(returned.get("score", returned.get("value")))
    passed = _unboxed(returned.get("passed"))
    if value is None and passed is None:
        return Score.error(f"the evaluator returned a mapping without 'passed' and 'score'; {RETURNS_TAKEN}")
    if value is not None and not is_fraction(value):
        return Score.error(f"the evaluator returned the score {shown(value)}; {RETURNS_TAKEN}")
    if not isinstance(passed, bool | None):
        return Score.error(f"the evaluator returned passed = {shown(passed)}, not a boolean")
    details = returned.get("details") or {}
    if not isinstance(details, Mapping):
        return Score.error(f"the evaluator returned details that are {kind_of(details)}")
    reason = returned.get("reason") or returned.get("message") or ""
    given = float(value) if value is not None else float(bool(passed))
    return Score(
        given,
        passed if passed is not None else given >= threshold,
        str(reason),
        {str(key): item for key, item in details.items()},
    )


def _from_awaitable(returned: Any) -> Score:
    """A plain function that gave something to await: it would never be awaited."""
    if inspect.iscoroutine(returned):
        returned.close()
    return Score.error("a plain function returned something to await; write it with `async def`")
