"""Session: what happened on the way to the output, tool calls and tokens above all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from proctor.core import imports as importing
from proctor.errors import EvaluatorError, UsageError
from proctor.evaluators.calling import NO_SESSION
from proctor.evaluators.evidence import SESSION_OPTIONAL
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.matching import json_subset
from proctor.evaluators.tool_calls import (
    ArgumentRule,
    Seen,
    SequenceMode,
    SessionCheck,
    Terms,
    calls_of,
    compared,
    if_recorded,
    names_of,
    read,
    view_of,
    wanted_of,
)
from proctor.evaluators.verdict import shown
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Message, ModelCall, SessionView, ToolCall

Unknown = Literal["error", "skip", "fail", "pass"]

_OWN_TYPES: dict[str, type] = {
    "ToolCall": ToolCall,
    "Message": Message,
    "ModelCall": ModelCall,
    "CustomEvent": CustomEvent,
}
_MISSING = object()


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def tool_called(name: str) -> SessionCheck:
    """Passes if the tool was called at least once.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("search", {"query": "capital of France"})])
    >>> tool_called("search")("Paris", None, session).passed
    True
    >>> tool_called("calculator")("Paris", None, session).reason
    "'calculator' was not called; called: search"
    """
    _check_name(name, "tool_called")

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        calls = calls_of(session)
        count = sum(call.name == name for call in calls)
        if count:
            return Score(1.0, True, f"called {_times(count)}")
        return Score(0.0, False, f"{name!r} was not called; {names_of(calls)}")

    return made(if_recorded(evaluate), by=tool_called, name=name)


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def tool_not_called(name: str) -> SessionCheck:
    """Passes if the tool was never called; also where no tool was called.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("delete_all")])
    >>> tool_not_called("delete_all")("Done.", None, session).reason
    "'delete_all' was called once: delete_all()"
    """
    _check_name(name, "tool_not_called")

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        found = [call for call in calls_of(session) if call.name == name]
        if not found:
            return Score(1.0, True)
        return Score(0.0, False, f"{name!r} was called {_times(len(found))}: {found[0]}")

    return made(if_recorded(evaluate), by=tool_not_called, name=name)


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def tool_call_count(
    name: str | None = None, min_count: int = 0, max_count: int | None = None
) -> SessionCheck:
    """Passes if the tool was called at least `min_count` and at most `max_count` times.

    Without a name the calls of all tools are counted.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("search"), ToolCall("open"), ToolCall("search")])
    >>> tool_call_count("search", max_count=1)("Paris", None, session).reason
    "'search' was called 2 times, at most 1 allowed"
    >>> tool_call_count(max_count=5)("Paris", None, session).passed
    True
    """
    if name is not None:
        _check_name(name, "tool_call_count")
    _check_counts(min_count, max_count)
    what = "a tool" if name is None else repr(name)

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        calls = calls_of(session)
        count = sum(name in (None, call.name) for call in calls)
        told = f"{what} was called {_times(count)}"
        if count < min_count:
            return Score(0.0, False, f"{told}, at least {min_count} wanted", {"count": count})
        if max_count is not None and count > max_count:
            return Score(0.0, False, f"{told}, at most {max_count} allowed", {"count": count})
        return Score(1.0, True, told, {"count": count})

    given = {"name": name, "min_count": min_count, "max_count": max_count}
    return made(if_recorded(evaluate), by=tool_call_count, **given)


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def all_tools_succeeded(*, words: bool = True) -> SessionCheck:
    """Passes if no tool call failed; also where no tool was called.

    A `ToolCall` failed if it has an `error`, or if its result, data or JSON in a text, says so:
    `success` is False, `is_error` is True, or there is an `error` in it. So did one whose result
    is a text that begins as errors do ("Error:", a traceback). That is a convention of tools
    without a field for it, no proof: a failure in other words is not seen, and a page may begin
    like that; `words=False` leaves it out. Tool calls of your own types, objects and mappings
    alike, are asked for the same and for their `status`. One that tells nothing of this gives an
    error: not knowing is not a pass.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("search"), ToolCall("open", error="404 Not Found")])
    >>> all_tools_succeeded()("Paris", None, session).reason
    "1 of 2 tool calls failed: open() ('404 Not Found')"
    """

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        calls = calls_of(session, words=words)
        failed = [f"{call} ({call.why})" for call in calls if call.went_well is False]
        silent = [str(call) for call in calls if call.went_well is None]
        if failed:
            reason = f"{len(failed)} of {len(calls)} tool calls failed: {', '.join(failed)}"
            return Score(0.0, False, reason, {"failed": failed})
        if silent:
            return Score.error(f"nothing tells how these calls went: {', '.join(silent)}")
        return Score(1.0, True, "" if calls else "no tool was called")

    return made(if_recorded(evaluate), by=all_tools_succeeded, words=words)


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def token_usage_under(max_tokens: int, unknown: Unknown = "error") -> SessionCheck:
    """Passes if the models used at most `max_tokens` tokens, input and output together.

    Counted is what the target told, or else all model calls of the session. Where no call was
    recorded, or one did not tell its usage, it is unknown whether the limit was kept (unless the
    others are above it by themselves); `unknown` says what to make of that: "error", "skip",
    "fail" or "pass". Without a recorded session an "error" is a "skip".

    >>> from proctor.records.session import Session, Usage
    >>> session = Session([ModelCall("small-model", Usage(input_tokens=900, output_tokens=100))])
    >>> token_usage_under(1_000)("Paris", None, session).passed
    True
    >>> token_usage_under(999)("Paris", None, session).reason
    '1,000 tokens were used, 999 are allowed'
    """
    _check_number(max_tokens, 0, "max_tokens", "token_usage_under")
    _check_choice(unknown, Unknown, "unknown", "token_usage_under")

    def evaluate(output: Any, expected: Any = None, session: Seen = None) -> Score:  # noqa: ARG001
        view = view_of(session)
        used, silent = view.usage.total_tokens, _silent(view)
        told = f"{used or 0:,} tokens were used, {max_tokens:,} are allowed"
        details = {"tokens": used}
        if used is not None and used > max_tokens:
            return Score(0.0, False, told, details)
        if used is None and not view.recorded and unknown in ("error", "skip"):
            return Score.skipped(NO_SESSION)
        if used is None or silent:
            return _not_known(unknown, silent, len(view[ModelCall]))
        return Score(1.0, True, told, details)

    setattr(evaluate, SESSION_OPTIONAL, True)
    return made(evaluate, by=token_usage_under, max_tokens=max_tokens, unknown=unknown)


@evaluator(category="session", factory=True, needs=("session",))
def slice_contains(
    type: Any,  # noqa: A002 - the specification's word, and the one to write in a file
    predicate: Any = None,
    min_count: int = 1,
) -> SessionCheck:
    """Passes if at least `min_count` events of a type fulfil a condition.

    `type` is one of ours (`ToolCall`, `Message`, `ModelCall`) or your own class; in a file its
    name, or `module:Class`. `predicate` is a function of the event, in a file `module:function`,
    or a mapping of fields to values; of values that are mappings a part is enough.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("search", {"query": "Paris", "limit": 5})])
    >>> slice_contains(ToolCall, lambda call: "limit" in call.arguments)("", None, session).passed
    True
    >>> slice_contains("ToolCall", {"arguments": {"query": "Rome"}})("", None, session).reason
    '0 of 1 events of type ToolCall are as wanted, at least 1 must be'
    """
    _check_number(min_count, 1, "min_count", "slice_contains")
    kind, holds = _kind(type), _predicate(predicate)
    name = kind if isinstance(kind, str) else kind.__name__

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        events = _named(session, kind) if isinstance(kind, str) else session[kind]
        count = sum(bool(holds(event)) for event in events)
        details = {"count": count, "of": len(events)}
        told = f"{count} of {len(events)} events of type {name} are as wanted"
        if count >= min_count:
            return Score(1.0, True, told, details)
        if _is_lost(session, kind, len(events)):
            return Score.error(f"some events of type {name} cannot be read back from the file")
        return Score(0.0, False, f"{told}, at least {min_count} must be", details)

    given = {"type": type, "predicate": predicate, "min_count": min_count}
    return made(if_recorded(evaluate), by=slice_contains, **given)


@evaluator(category="session", factory=True, needs=("session",))
def tool_sequence(
    expected: Any = None,
    mode: SequenceMode = "in_order",
    arguments: ArgumentRule = "exact",
    allow_extra: bool = True,
    compare: Mapping[str, Any] | None = None,
) -> SessionCheck:
    """Passes if the expected tools were called; the value is the share of them that was.

    `expected` lists names, or {name, arguments}; without it, the sample's expected value does (or
    the `tools` in it). `mode` is "in_order" (others may come between), "any_order", or "exact"
    (these and no others). With `allow_extra=False` no other calls are allowed in any order; then,
    and in "exact", the value is the share of all calls. `arguments` are compared "exact", as a
    "subset", or not ("ignore"); a tool without arguments may be called with any. An expected
    argument may be a function that says whether the actual one will do; `compare` has functions
    of the actual and the expected value, by the argument's name (in a file `module:function`).
    `details["diff"]` shows expected against actual, line by line.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("search", {"query": "Paris"}), ToolCall("close")])
    >>> score = tool_sequence(["search", "open"])("", None, session)
    >>> score.value, score.reason
    (0.5, '1 of 2 expected calls; missing: open(…)')
    >>> print("\\n".join(score.details["diff"]))
      search(query='Paris')
    - open(…)
    + close()
    """
    _check_choice(mode, SequenceMode, "mode", "tool_sequence")
    _check_choice(arguments, ArgumentRule, "arguments", "tool_sequence")
    own = None if expected is None else wanted_of(expected)
    by_name = {key: _function(given, f"compare.{key}") for key, given in (compare or {}).items()}
    terms = Terms(mode, arguments, allow_extra, by_name)
    if own == [] and not terms.complete:
        raise EvaluatorError(
            "no tool is expected, so it would always pass",
            where="tool_sequence",
            fix='name the tools, or use mode="exact" to allow none',
        )

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        if own is None and expected is None:
            return Score.skipped("no tools are given, and the sample has no expected value")
        try:
            wanted = wanted_of(expected) if own is None else own
        except EvaluatorError as error:
            return Score.error(str(error))
        if not wanted and not terms.complete:
            return Score.skipped("there is nothing to look for: no tool is expected")
        return compared(wanted, calls_of(session), terms)

    given = {"expected": expected, "mode": mode, "arguments": arguments}
    more = {"allow_extra": allow_extra, "compare": compare}
    return made(if_recorded(evaluate), by=tool_sequence, **given, **more)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _silent(view: SessionView) -> int:
    """How many model calls did not tell their usage."""
    return sum(call.usage.total_tokens is None for call in view[ModelCall])


def _not_known(unknown: Unknown, silent: int, calls: int) -> Score:
    reason = "the usage is unknown: "
    reason += f"{silent} of {calls} model calls did not tell it" if calls else "no call was recorded"
    if unknown == "error":
        return Score.error(reason)
    if unknown == "skip":
        return Score.skipped(reason)
    passed = unknown == "pass"
    return Score(float(passed), passed, reason)


def _named(view: SessionView, name: str) -> tuple[Any, ...]:
    """The users' objects by the name of their type, be they live or read from a file."""
    return tuple(event.data for event in view[CustomEvent] if event.kind == name)


def _is_lost(view: SessionView, kind: Any, found: int) -> bool:
    """True if events of the user's type came back from a file as something else."""
    if isinstance(kind, str):
        return any(isinstance(data, Mapping) and "$repr" in data for data in _named(view, kind))
    return kind not in _OWN_TYPES.values() and len(_named(view, kind.__name__)) > found


def _kind(given: Any) -> Any:
    """A class, or the name of one of the user's that is known by its name only."""
    if isinstance(given, str) and ":" in given:
        given = _loaded(given, "type")
    found = _OWN_TYPES.get(given, given) if isinstance(given, str) else given
    if not found or not isinstance(found, str | type):
        raise EvaluatorError(
            f"type is a class or its name, got {shown(given)}",
            where="slice_contains",
            fix=f"name one of {', '.join(_OWN_TYPES)}, your own class, or module:Class",
        )
    return found


def _predicate(given: Any) -> Callable[[Any], Any]:
    if given is None:
        return lambda event: True  # noqa: ARG005
    if isinstance(given, Mapping):
        return lambda event: all(_has(event, field, value) for field, value in given.items())
    return _function(given, "predicate")


def _has(event: Any, field: str, value: Any) -> bool:
    found = read(event, field, _MISSING)
    return found is not _MISSING and json_subset({field: found}, {field: value}).passed is True


def _function(given: Any, label: str) -> Callable[..., Any]:
    """A function, or what is found at its address; one to be awaited would always say yes."""
    found = _loaded(given, label) if isinstance(given, str) else given
    if not callable(found) or inspect.iscoroutinefunction(found):
        raise EvaluatorError(
            f"it is a plain function, got {shown(given)}",
            where=label,
            fix="give a function, or its address as module:function",
        )
    return found  # type: ignore[no-any-return]


def _loaded(address: str, label: str) -> Any:
    try:
        return importing.load(address)
    except UsageError as error:
        raise EvaluatorError(error.what, where=label, fix=error.fix) from error


def _check_name(name: Any, label: str) -> None:
    if not (isinstance(name, str) and name.strip()):
        raise EvaluatorError(f"a tool has a name, got {name!r}", where=label)


def _check_counts(least: Any, most: Any) -> None:
    label = "tool_call_count"
    _check_number(least, 0, "min_count", label)
    if most is None and least == 0:
        raise EvaluatorError(
            "without min_count and max_count it would always pass",
            where=label,
            fix="give at least one of them",
        )
    if most is not None:
        _check_number(most, least, "max_count", label)


def _check_number(given: Any, least: int, field: str, label: str) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise EvaluatorError(f"{field} is a whole number from {least} up, got {given!r}", where=label)


def _check_choice(given: Any, choices: Any, field: str, label: str) -> None:
    if given not in get_args(choices):
        listed = ", ".join(map(repr, get_args(choices)))
        raise EvaluatorError(f"{field} is one of {listed}, got {given!r}", where=label)
