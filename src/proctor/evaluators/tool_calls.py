"""The tool calls of a session, in one shape, whoever recorded them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor import codec
from proctor.evaluators.calling import NO_SESSION
from proctor.evaluators.verdict import shown
from proctor.records.score import Score
from proctor.records.session import (
    CustomEvent,
    Event,
    Message,
    Session,
    SessionView,
    ToolCall,
)

_MISSING = object()
_TOOL_NAMES = ("tool_name", "tool")
_ARGUMENTS = ("arguments", "params", "args", "input", "tool_input")
_OUTCOMES = ("success", "is_error", "isError", "error")
_STATUSES = {
    **dict.fromkeys(("ok", "success", "succeeded", "completed", "done"), True),
    **dict.fromkeys(("error", "failed", "failure", "cancelled", "timeout"), False),
}
# How tools without a field for it say in words that they failed, in small letters.
_FAILURES = (
    "error:",
    "error -",
    "error executing tool",
    "error invoking tool",
    "an error occurred while running the tool",
    "traceback (most recent call last)",
)


SessionCheck = Callable[..., Score]
Seen = Session | SessionView | None


def view_of(session: Seen) -> SessionView:
    """The session to look at; who calls an evaluator by hand may pass a session, or none."""
    if session is None:
        return SessionView(recorded=False)
    return session.view() if isinstance(session, Session) else session


def if_recorded(evaluate: SessionCheck) -> SessionCheck:
    """The check, skipped where no session was recorded: then nothing is known of the calls."""

    def checked(output: Any, expected: Any = None, session: Seen = None) -> Score:
        view = view_of(session)
        if not view.recorded:
            return Score.skipped(NO_SESSION)
        return evaluate(output, expected, view)

    return checked


class Call(NamedTuple):
    """A tool that was called; `went_well` is None where nothing tells how it went."""

    name: str
    arguments: Mapping[str, Any] = {}
    went_well: bool | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.name}({_listed(self.arguments)})"


def calls_of(session: SessionView, *, words: bool = False) -> list[Call]:
    """The tool calls of a session, in order.

    They are its `ToolCall` events and the users' own objects or mappings that look like one: they
    have a text as `tool_name` or `tool`, or a `name` beside arguments (`arguments`, `params`,
    `args`, `input`, `tool_input`) or an outcome (`success`, `is_error`, `error`). A session
    without any is read by the calls that its messages ask for. With `words`, one whose result
    begins as errors do ("Error:", a traceback) failed.

    >>> events = ToolCall("search", {"q": "Paris"}), CustomEvent("dict", {"tool": "go"})
    >>> [str(call) for call in calls_of(SessionView(events))]
    ["search(q='Paris')", 'go()']
    """
    happened = [call for event in session if (call := _call(event, words)) is not None]
    return happened or [
        Call(asked.name, asked.arguments, None, "it was asked for; nothing tells whether it ran")
        for message in session[Message]
        for asked in message.tool_calls
    ]


def names_of(calls: list[Call]) -> str:
    """Which tools were called, for a reason: each once, in order."""
    listed = ", ".join(dict.fromkeys(call.name for call in calls))
    return f"called: {listed}" if listed else "no tool was called"


def read(thing: Any, field: str, default: Any = None) -> Any:
    """A field of a mapping or an attribute of an object.

    >>> read({"success": True}, "success"), read(ToolCall("search", error="down"), "success")
    (True, False)
    """
    if isinstance(thing, Mapping):
        return thing.get(field, default)
    return getattr(thing, field, default)


def _call(event: Event, words: bool) -> Call | None:
    if isinstance(event, ToolCall):
        return Call(event.name, event.arguments, *_outcome_of_ours(event, words))
    if not isinstance(event, CustomEvent):
        return None
    name = _name(event.data)
    if name is None:
        return None
    return Call(name, _arguments(event.data), *_outcome(event.data, words))


def _outcome_of_ours(call: ToolCall, words: bool) -> tuple[bool, str]:
    """Any error is one, even where its text is empty; without one the result may tell of it."""
    if call.error is not None:
        return False, shown(call.error)
    return next((sign for sign in _result_signs(call.result, words) if not sign[0]), (True, ""))


def _name(data: Any) -> str | None:
    """The tool's name in an object that looks like a call, or None in one that does not."""
    fields: tuple[str, ...] = _TOOL_NAMES
    if any(read(data, field, _MISSING) is not _MISSING for field in (*_ARGUMENTS, *_OUTCOMES)):
        fields = (*_TOOL_NAMES, "name")
    found = (read(data, field) for field in fields)
    return next((name for name in found if isinstance(name, str)), None)


def _arguments(data: Any) -> Mapping[str, Any]:
    """The arguments as a mapping: as they are, out of JSON, or from an object's fields."""
    found: Any = next((given for f in _ARGUMENTS if (given := read(data, f)) is not None), {})
    if isinstance(found, str | bytes):
        try:
            found = msgspec.json.decode(found)
        except msgspec.DecodeError:
            return {"": found}
    elif not isinstance(found, Mapping):
        found = codec.plain(found)
    return found if isinstance(found, Mapping) else {"": found}


def _outcome(data: Any, words: bool) -> tuple[bool | None, str]:
    """How a call went: one sign of failure decides, else one of success."""
    signs = [*_signs(data), *_status(data), *_result_signs(read(data, "result"), words)]
    return next((sign for sign in signs if not sign[0]), signs[0] if signs else (None, ""))


def _result_signs(result: Any, words: bool) -> Iterator[tuple[bool, str]]:
    """What a tool's result says of how it went: as data, as JSON in a text, or in words."""
    text = _text(result)
    if text is None:
        yield from _signs(result)
        return
    if (data := _json(text)) is not None:
        yield from _signs(data)
    elif words:
        begins = text[: max(map(len, _FAILURES))].casefold()
        if begins.startswith(_FAILURES):
            yield False, f"its result begins with {shown(text.splitlines()[0])}"


def _text(result: Any) -> str | None:
    """The text of a result that is one, alone or as the first of a list of parts."""
    if isinstance(result, list | tuple) and result and isinstance(result[0], Mapping):
        result = result[0].get("text")
    return result.lstrip() if isinstance(result, str) else None


def _json(text: str) -> Mapping[str, Any] | None:
    """The mapping that a text holds, where it may tell how a call went."""
    if not text.startswith("{") or not any(f'"{field}"' in text for field in _OUTCOMES):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Mapping) else None


def _signs(data: Any) -> Iterator[tuple[bool, str]]:
    """What an event, or a tool's result, says of how it went."""
    success = read(data, "success")
    if isinstance(success, bool):
        yield success, "" if success else _said(data, "success is False")
    for field in ("is_error", "isError"):
        failed = read(data, field)
        if isinstance(failed, bool):
            yield not failed, _said(data, f"{field} is True") if failed else ""
    error = read(data, "error", _MISSING)
    if isinstance(error, str | BaseException | Mapping | bool | None):
        yield not error, _said(data, "error is True") if error else ""


def _status(data: Any) -> Iterator[tuple[bool, str]]:
    """What an event's status says. That of a result is not asked: it may be that of an order."""
    status = read(data, "status")
    told = getattr(status, "value", status)
    well = _STATUSES.get(told.casefold()) if isinstance(told, str) else None
    if well is not None:
        yield well, "" if well else _said(data, f"status is {told}")


def _said(data: Any, otherwise: str) -> str:
    """What is said about a failure, in its own words where there are some."""
    for field in ("error", "message"):
        words = read(data, field)
        if words and isinstance(words, str | BaseException | Mapping):
            return shown(words if isinstance(words, str | Mapping) else str(words))
    return otherwise


def _listed(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={shown(v)}" if k else shown(v) for k, v in arguments.items())
