"""Evaluate the session of a trial: tool calls, tokens and other events."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from proctor.core import imports as importing
from proctor.errors import EvaluatorError, UsageError
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.matching import json_subset
from proctor.evaluators.options import SESSION_OPTIONAL
from proctor.evaluators.score_conversion import NO_SESSION, preview
from proctor.evaluators.tool_calls import (
    EXPECTED_TOOLS,
    UNKNOWN_TOOL,
    ArgumentRule,
    ExpectedCall,
    RecordedCall,
    SequenceMode,
    SequenceOptions,
    SessionCheck,
    SessionLike,
    compare_calls,
    find_prose,
    format_times,
    get_field,
    parse_expected_calls,
    read_calls,
    read_expected_tools,
    require_session,
    require_session_and_sample,
    to_view,
)
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Message, ModelCall, SessionView, ToolCall

NO_CALL = "the session has a tool result without its call, so its tool is unknown"
Unknown = Literal["error", "skip", "fail", "pass"]

_EVENT_TYPES: dict[str, type] = {cls.__name__: cls for cls in (ToolCall, Message, ModelCall, CustomEvent)}
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
        names = [call.name for call in read_calls(session)]
        if name in names:
            return Score(1.0, True, f"called {format_times(names.count(name))}")
        if UNKNOWN_TOOL in names:
            return Score.skipped(NO_CALL)
        others = f"called: {', '.join(dict.fromkeys(names))}" if names else "no tool was called"
        return Score(0.0, False, f"{name!r} was not called; {others}")

    return tag_evaluator(require_session(evaluate), factory=tool_called, name=name)


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def tool_not_called(name: str) -> SessionCheck:
    """Passes if the tool was never called.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("delete_all")])
    >>> tool_not_called("delete_all")("Done.", None, session).reason
    "'delete_all' was called once: delete_all()"
    """
    _check_name(name, "tool_not_called")

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        all_calls = read_calls(session)
        calls = [call for call in all_calls if call.name == name]
        if not calls and any(call.name == UNKNOWN_TOOL for call in all_calls):
            return Score.skipped(NO_CALL)
        if not calls:
            return Score(1.0, True)
        return Score(0.0, False, f"{name!r} was called {format_times(len(calls))}: {calls[0]}")

    return tag_evaluator(require_session(evaluate), factory=tool_not_called, name=name)


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def tool_call_count(name: str | None = None, min_count: int = 0, max_count: int | None = None) -> SessionCheck:
    """Passes if the tool was called at least `min_count` and at most `max_count` times.

    Without a name, the calls of all tools are counted.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("search"), ToolCall("open"), ToolCall("search")])
    >>> tool_call_count("search", max_count=1)("Paris", None, session).reason
    "'search' was called 2 times, at most 1 allowed"
    >>> tool_call_count(max_count=5)("Paris", None, session).passed
    True
    """
    where = "tool_call_count"
    if name is not None:
        _check_name(name, where)
    _check_number(min_count, 0, "min_count", where)
    if max_count is not None:
        _check_number(max_count, min_count, "max_count", where)
    elif min_count == 0:
        what = "without min_count and max_count it would always pass"
        raise EvaluatorError(what, where=where, fix="pass min_count=1 or max_count=5, for example")

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        count = sum(name in (None, call.name) for call in read_calls(session))
        reason = f"{'a tool' if name is None else repr(name)} was called {format_times(count)}"
        if count < min_count:
            return Score(0.0, False, f"{reason}, at least {min_count} required", {"count": count})
        if max_count is not None and count > max_count:
            return Score(0.0, False, f"{reason}, at most {max_count} allowed", {"count": count})
        return Score(1.0, True, reason, {"count": count})

    return tag_evaluator(
        require_session(evaluate), factory=tool_call_count, name=name, min_count=min_count, max_count=max_count
    )


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def all_tools_succeeded(*, words: bool = True) -> SessionCheck:
    """Passes if no tool call failed, or if no tool was called.

    A `ToolCall` failed if it has an `error`, or if its result (data or JSON) shows it: `success` or `ok` is False,
    `is_error` is True, it has an `error`, an exit code other than 0, or a failed `status` (or an HTTP status from 400)
    with nothing but a message. A result text that starts like an error ("Error:", "ValueError:", "HTTP 500", "curl: (7)
    …", a traceback) or is only an error message ("Permission denied", "Killed") counts as a failure too; this is a
    convention and can be wrong, and `words=False` turns it off. A result that may be an error ("Failed to …", a failed
    `status` among other data, output that ends with a traceback, exit code 1 with an empty stderr) is skipped, and so
    is a call whose arguments are not valid JSON. Tool calls of your own types, objects and mappings alike, are read in
    the same way, and by their `status`. A call without any such information is an error.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("search"), ToolCall("open", error="404 Not Found")])
    >>> all_tools_succeeded()("Paris", None, session).reason
    "1 of 2 tool calls failed: open() ('404 Not Found')"
    """

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        calls = read_calls(session, read_error_texts=words)
        failed = [f"{call} ({call.reason})" for call in calls if call.succeeded is False]
        unknown_calls = [str(call) for call in calls if call.succeeded is None and not call.has_result]
        doubtful_calls = [f"{call} ({call.reason})" for call in calls if call.succeeded is None and call.has_result]
        if failed:
            reason = f"{len(failed)} of {len(calls)} tool calls failed: {', '.join(failed)}"
            return Score(0.0, False, reason, {"failed": failed})
        if unknown_calls:
            return Score.error(f"it is unknown whether these calls succeeded: {', '.join(unknown_calls)}")
        if doubtful_calls:
            return Score.skipped(f"these calls may have failed: {', '.join(doubtful_calls)}")
        if not calls:
            return Score(1.0, True, "no tool was called")
        looked_at = "an error field, a failed status or a known form of error message" if words else "an error field"
        return Score(1.0, True, f"no result of {len(calls)} tool call{'s' * (len(calls) != 1)} has {looked_at}")

    return tag_evaluator(require_session(evaluate), factory=all_tools_succeeded, words=words)


@evaluator(category="session", pure=True, factory=True, needs=("session",))
def token_usage_under(max_tokens: int, unknown: Unknown = "error") -> SessionCheck:
    """Passes if the models used at most `max_tokens` tokens, input and output together.

    It counts the usage that the target reports, or else all model calls of the session. If no call was recorded, or a
    call has no usage, the total is unknown (unless the other calls exceed the limit); `unknown` decides the result:
    "error", "skip", "fail" or "pass". Without a recorded session, "error" becomes "skip".

    >>> from proctor.records.session import Session, Usage
    >>> session = Session([ModelCall("small-model", Usage(input_tokens=900, output_tokens=100))])
    >>> token_usage_under(1_000)("Paris", None, session).passed
    True
    >>> token_usage_under(999)("Paris", None, session).reason
    '1,000 tokens were used, 999 are allowed'
    """
    _check_number(max_tokens, 0, "max_tokens", "token_usage_under")
    _check_choice(unknown, Unknown, "unknown", "token_usage_under")

    def evaluate(output: Any, expected: Any = None, session: SessionLike = None) -> Score:  # noqa: ARG001
        view = to_view(session)
        used_tokens, calls = view.usage.total_tokens, view[ModelCall]
        without_usage = sum(call.usage.total_tokens is None for call in calls)
        reason = f"{used_tokens or 0:,} tokens were used, {max_tokens:,} are allowed"
        if used_tokens is not None and used_tokens > max_tokens:
            return Score(0.0, False, reason, {"tokens": used_tokens})
        if used_tokens is None and not view.recorded and unknown in ("error", "skip"):
            return Score.skipped(NO_SESSION)
        if used_tokens is None or without_usage:
            return _score_unknown_usage(unknown, without_usage, len(calls))
        return Score(1.0, True, reason, {"tokens": used_tokens})

    setattr(evaluate, SESSION_OPTIONAL, True)
    return tag_evaluator(evaluate, factory=token_usage_under, max_tokens=max_tokens, unknown=unknown)


def _score_unknown_usage(unknown: Unknown, without_usage: int, calls: int) -> Score:
    cause = f"{without_usage} of {calls} model calls have none" if calls else "no call was recorded"
    reason = f"the usage is unknown: {cause}"
    return {
        "error": Score.error(reason),
        "skip": Score.skipped(reason),
        "fail": Score(0.0, False, reason),
        "pass": Score(1.0, True, reason),
    }[unknown]


@evaluator(category="session", factory=True, needs=("session",))
def slice_contains(
    type: Any,  # noqa: A002 - the name in the specification and in eval files
    predicate: Any = None,
    min_count: int = 1,
) -> SessionCheck:
    """Passes if at least `min_count` events of a type satisfy a condition.

    `type` is an event class (`ToolCall`, `Message`, `ModelCall`) or your own class; in a file it is
    the class name or `module:Class`. `predicate` is a function of the event, in a file
    `module:function`, or a mapping of fields to values; mappings match if they contain the value.

    >>> from proctor.records.session import Session
    >>> session = Session([ToolCall("search", {"query": "Paris", "limit": 5})])
    >>> slice_contains(ToolCall, lambda call: "limit" in call.arguments)("", None, session).passed
    True
    >>> slice_contains("ToolCall", {"arguments": {"query": "Rome"}})("", None, session).reason
    '0 of 1 events of type ToolCall match, at least 1 must'
    """
    _check_number(min_count, 1, "min_count", "slice_contains")
    event_type, matches = _read_event_type(type), _read_predicate(predicate)
    name = event_type if isinstance(event_type, str) else event_type.__name__

    def evaluate(output: Any, expected: Any, session: SessionView) -> Score:  # noqa: ARG001
        events = _find_custom_events(session, event_type) if isinstance(event_type, str) else session[event_type]
        count = sum(bool(matches(event)) for event in events)
        details = {"count": count, "of": len(events)}
        reason = f"{count} of {len(events)} events of type {name} match"
        if count >= min_count:
            return Score(1.0, True, reason, details)
        if _has_lost_events(session, event_type, len(events)):
            return Score.error(f"some events of type {name} cannot be read back from the file")
        return Score(0.0, False, f"{reason}, at least {min_count} must", details)

    return tag_evaluator(
        require_session(evaluate), factory=slice_contains, type=type, predicate=predicate, min_count=min_count
    )


_NO_TOOL_NAME = (
    "no tools are listed, and {} {} does not name a called tool, so it may be an answer: write tool_sequence: "
    "{{expected: [search]}} in the eval file, or metadata: {{expected_tools: [search]}} in the sample"
)


@evaluator(category="session", factory=True, needs=("session",))
def tool_sequence(
    expected: Any = None,
    mode: SequenceMode = "in_order",
    arguments: ArgumentRule = "exact",
    allow_extra: bool = True,
    compare: Mapping[str, Any] | None = None,
) -> SessionCheck:
    """Passes if the expected tools were called; the value is the fraction of them that was called.

    `expected` lists names or {name, arguments}; without it, the sample does: `expected_tools` in its metadata, or else
    its expected value (a list, or its `tools`). A text as expected value ("search", "search -> open") is skipped unless
    it names only tools, and one that was called, because it may be an answer. `mode` is "in_order" (with other calls
    between), "any_order", or "exact" (these calls only). With `allow_extra=False` other calls are not allowed; in this
    case, and with "exact", the value is the fraction of all calls. `arguments` are compared "exact", as a "subset", or
    not at all ("ignore"); an expected tool without arguments matches any. An expected argument may be a function that
    accepts or rejects the actual argument; `compare` maps argument names to functions of the actual and the expected
    value (in a file `module:function`).
    `details["diff"]` shows expected against actual calls, line by line.

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
    where = "tool_sequence"
    _check_choice(mode, SequenceMode, "mode", where)
    _check_choice(arguments, ArgumentRule, "arguments", where)
    fixed_calls = None if expected is None else parse_expected_calls(expected)
    comparators = {key: _read_function(value, f"compare.{key}") for key, value in (compare or {}).items()}
    options = SequenceOptions(mode, arguments, allow_extra, comparators)
    if fixed_calls == [] and not options.is_complete:
        fix = 'name the tools, or use mode="exact" to allow none'
        raise EvaluatorError("expected is an empty list of tools, so it would always pass", where=where, fix=fix)

    def evaluate(output: Any, expected: Any, session: SessionView, metadata: Mapping[str, Any]) -> Score:  # noqa: ARG001
        calls = read_calls(session)
        expected_calls = _read_sample_tools(expected, metadata, calls) if fixed_calls is None else fixed_calls
        if isinstance(expected_calls, Score):
            return expected_calls
        if not expected_calls and not options.is_complete:
            return Score.skipped("the sample expects no tool calls")
        return compare_calls(expected_calls, calls, options)

    return tag_evaluator(
        require_session_and_sample(evaluate),
        factory=tool_sequence,
        expected=expected,
        mode=mode,
        arguments=arguments,
        allow_extra=allow_extra,
        compare=compare,
    )


def _read_sample_tools(
    expected: Any, metadata: Mapping[str, Any], calls: Sequence[RecordedCall]
) -> list[ExpectedCall] | Score:
    """Read the expected tools of a sample, or return the score without a verdict if it has none."""
    source = "the sample's expected value"
    if (tools := metadata.get(EXPECTED_TOOLS)) is not None:
        expected, source = read_expected_tools(tools), f"the sample's {EXPECTED_TOOLS}"
    if expected is None:
        return Score.skipped(f"no tools are listed, and the sample has no expected value and no {EXPECTED_TOOLS}")
    if (prose := find_prose(expected, calls)) is not None:
        return Score.skipped(_NO_TOOL_NAME.format(source, preview(prose)))
    try:
        return parse_expected_calls(expected)
    except EvaluatorError as error:
        return Score.error(str(error))


def _find_custom_events(view: SessionView, name: str) -> tuple[Any, ...]:
    return tuple(event.data for event in view[CustomEvent] if event.kind == name)


def _has_lost_events(view: SessionView, event_type: Any, count: int) -> bool:
    # Events of the user's type may have another type after they were read from a file.
    if isinstance(event_type, str):
        events = _find_custom_events(view, event_type)
        return any(isinstance(data, Mapping) and "$repr" in data for data in events)
    is_custom = event_type not in _EVENT_TYPES.values()
    return is_custom and len(_find_custom_events(view, event_type.__name__)) > count


def _read_event_type(value: Any) -> Any:
    # The name of a user's class that cannot be imported stays a string.
    if isinstance(value, str) and ":" in value:
        value = _import_object(value, "type")
    event_type = _EVENT_TYPES.get(value, value) if isinstance(value, str) else value
    if not event_type or not isinstance(event_type, str | type):
        raise EvaluatorError(
            f"type must be a class or its name, got {preview(value)}",
            where="slice_contains",
            fix=f"name one of {', '.join(_EVENT_TYPES)}, your own class, or module:Class",
        )
    return event_type


def _read_predicate(value: Any) -> Callable[[Any], Any]:
    if value is None:
        return lambda event: True  # noqa: ARG005
    if isinstance(value, Mapping):
        return lambda event: all(_field_matches(event, field, item) for field, item in value.items())
    return _read_function(value, "predicate")


def _field_matches(event: Any, field: str, value: Any) -> bool:
    actual = get_field(event, field, _MISSING)
    return actual is not _MISSING and json_subset({field: actual}, {field: value}).passed is True


def _read_function(value: Any, label: str) -> Callable[..., Any]:
    function = _import_object(value, label) if isinstance(value, str) else value
    # An async function would return a coroutine, which is always true.
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise EvaluatorError(
            f"expected a plain function, got {preview(value)}",
            where=label,
            fix="pass a function, or its address as module:function",
        )
    return function  # type: ignore[no-any-return]


def _import_object(address: str, label: str) -> Any:
    try:
        return importing.import_object(address)
    except UsageError as error:
        raise EvaluatorError(error.what, where=label, fix=error.fix) from error


def _check_name(name: Any, label: str) -> None:
    if not (isinstance(name, str) and name.strip()):
        raise EvaluatorError(
            f"a tool name must be a non-empty string, got {name!r}", where=label, fix='write name="search"'
        )


def _check_number(value: Any, minimum: int, field: str, label: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        what = f"{field} must be an integer, {minimum} or more, got {value!r}"
        raise EvaluatorError(what, where=label, fix=f"write {field}={max(minimum, 1)}, for example")


def _check_choice(value: Any, choices: Any, field: str, label: str) -> None:
    if value not in get_args(choices):
        choice_list = ", ".join(map(repr, get_args(choices)))
        fix = f"write {field}={get_args(choices)[0]!r}, for example"
        raise EvaluatorError(f"{field} must be one of {choice_list}, got {value!r}", where=label, fix=fix)
