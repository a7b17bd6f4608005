"""Convert the return value or exception of an evaluator into a score."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Real
from typing import Any

from proctor.errors import suggest_name
from proctor.records.numbers import is_fraction
from proctor.records.sample import type_name
from proctor.records.score import Score, unbox

NO_EXPECTED = "the sample has no expected value"
NO_ANSWER = "the agent ended without an answer: its last message is not from the assistant"
NO_SESSION = (
    "no session was recorded, so the tool calls and messages are unknown. Fix: return the agent's "
    "messages, call record(...) in its tools, return Reply(output, session=...), or record spans "
    "with OpenTelemetry"
)
SUPPORTED_RETURNS = (
    "return a Score, a boolean, a number from 0 to 1, None, "
    "or a mapping with 'passed' or 'score' (and 'details', 'message')"
)
_KEYS = ("passed", "score", "details", "message", "reason")
_MAX_PREVIEW = 60
_MAX_FRAMES = 3
_MAX_MESSAGE = 2_000


def as_score(returned: Any, threshold: float = 0.5) -> Score:
    """Convert the return value of an evaluator into a score; unsupported values result in an error score."""
    if isinstance(returned, Score):
        return returned
    if returned is None:
        return Score.skipped("the evaluator returned None")
    if not isinstance(returned, bool):
        returned = unbox(returned)
    if isinstance(returned, bool):
        return Score(1.0 if returned else 0.0, returned)
    if isinstance(returned, Real):
        if not is_fraction(returned):
            return Score.error(f"the evaluator returned {preview(returned)}, which is not from 0 to 1")
        value = float(returned)
        return Score(value, value >= threshold)
    if isinstance(returned, Mapping):
        return _from_mapping(returned, threshold)
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        return Score.error("a plain function returned an awaitable; write it with `async def`")
    return Score.error(f"the evaluator returned {preview(returned)}; {SUPPORTED_RETURNS}")


def as_error(error: BaseException) -> Score:
    """Convert an exception into an error score, with the end of the traceback."""
    # Slow to import, and needed only after an error.
    import traceback

    name = type(error).__name__
    try:
        message = str(error)[:_MAX_MESSAGE]
        trace = "".join(traceback.format_exception(error, limit=-_MAX_FRAMES, chain=False))
    except BaseException:
        message = "its message cannot be shown"
        trace = "".join(traceback.format_tb(error.__traceback__, limit=-_MAX_FRAMES))
    return Score.error(f"{name}: {message}" if message else name, {"traceback": trace[-2 * _MAX_MESSAGE :]})


def preview(value: Any) -> str:
    """Return a short preview of a value for a reason."""
    if isinstance(value, str):
        value = value[:_MAX_PREVIEW]
    elif getattr(type(value), "__repr__", None) is object.__repr__:
        return f"an object of type {type(value).__name__}"
    try:
        text = repr(value)
    except Exception:
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= _MAX_PREVIEW else text[: _MAX_PREVIEW - 1] + "…"


def _from_mapping(returned: Mapping[Any, Any], threshold: float) -> Score:
    unknown_keys = [str(key) for key in returned if key not in _KEYS]
    value = unbox(returned.get("score"))
    passed = unbox(returned.get("passed"))
    details = returned.get("details") or {}
    problem = ""
    if unknown_keys:
        hint = "write 'score' instead" if unknown_keys[0] == "value" else suggest_name(unknown_keys[0], _KEYS)
        problem = f"a mapping with the key {unknown_keys[0]!r}. Fix: {hint}"
    elif value is None and passed is None:
        problem = f"a mapping without 'passed' and 'score'; {SUPPORTED_RETURNS}"
    elif value is not None and not is_fraction(value):
        problem = f"the score {preview(value)}; {SUPPORTED_RETURNS}"
    elif not isinstance(passed, bool | None):
        problem = f"passed = {preview(passed)}, not a boolean"
    elif not isinstance(details, Mapping):
        problem = f"{type_name(details)} as details, not a mapping"
    if problem:
        return Score.error(f"the evaluator returned {problem}")
    score = float(value) if value is not None else float(bool(passed))
    return Score(
        score,
        passed if passed is not None else score >= threshold,
        str(returned.get("reason") or returned.get("message") or ""),
        {str(key): item for key, item in details.items()},
    )
