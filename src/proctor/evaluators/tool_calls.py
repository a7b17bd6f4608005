"""Read the tool calls of a session and compare them with the expected calls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.errors import EvaluatorError, Problem
from proctor.evaluators.data_files import load_patterns
from proctor.evaluators.matching import exact_match, json_subset
from proctor.evaluators.score_conversion import NO_SESSION, preview
from proctor.records import codec
from proctor.records.sample import Sample, type_name
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Event, Message, Session, SessionView, ToolCall
from proctor.records.session_events import OrphanResult, interpret_event

_MISSING = object()
# The tool of a result whose call was not recorded.
UNKNOWN_TOOL = "unknown tool"
_TOOL_NAMES = ("tool_name", "tool")
_ARGUMENTS = ("arguments", "params", "args", "input", "tool_input")
_OUTCOMES = ("success", "ok", "is_error", "isError", "error")
_HTTP_CODES = ("status_code", "statusCode", "http_status", "status", "code")
_EXIT_CODES = ("exit_code", "exitCode", "returncode", "return_code", "returnCode", "exit_status", "exitStatus")
# The fields beside the status of a result that reports an error; with other fields, it may be the status of its data.
_REPORT_FIELDS = frozenset(
    ("message", "msg", "reason", "detail", "details", "description", "type", "errors", "tool", "tool_name", "timestamp",
     "traceback", "data", "result", "content", "request_id", "body", "text", "headers", *_HTTP_CODES)
)  # fmt: skip
_NO_ERROR = ("none", "null", "no error", "false", "0", "ok", "n/a")
_FAILED_STATUSES = ("error", "failed", "failure")
_STATUSES = {
    **dict.fromkeys(("ok", "success", "succeeded", "completed", "done"), True),
    **dict.fromkeys(("error", "failed", "failure", "cancelled", "timeout"), False),
}
_MAX_LINE = 300
# A longer result is more than an error message.
_MAX_MESSAGE = 160
# A traceback that ends a result starts in its last characters.
_MAX_TRACEBACK = 5_000
_FAILED = re.compile(r"(?i)\b(?:fail(?:ed|ures?)|errors?|traceback|exception|denied)\b")
_TOOL_NAME = re.compile(r"[^\W\d](?:[\w.:/-]*\w)?")
_NAME_END = re.compile(r"[;,\n]|->|=>|[→⇒]")
# The sample's metadata with its expected tools, as imports and other frameworks write it.
EXPECTED_TOOLS = "expected_tools"
_EXPECTED_ARGUMENTS = (*_ARGUMENTS, "input_parameters", "inputParameters")

SessionCheck = Callable[..., Score]
SessionLike = Session | SessionView | None
SequenceMode = Literal["in_order", "any_order", "exact"]
ArgumentRule = Literal["exact", "subset", "ignore"]
# None is a result that may be an error.
Outcome = tuple[bool | None, str]
# Indexes of expected calls, each with the index of the call that matches it.
Pairs = dict[int, int]
MatchTable = list[list[bool]]


def to_view(session: SessionLike) -> SessionView:
    """Return a view of a session; a direct call of an evaluator may pass a session or None."""
    if session is None:
        return SessionView(recorded=False)
    return session.view() if isinstance(session, Session) else session


def require_session(evaluate: SessionCheck) -> SessionCheck:
    """Skip the check if no session was recorded."""

    def evaluate_recorded(output: Any, expected: Any = None, session: SessionLike = None) -> Score:
        view = to_view(session)
        return evaluate(output, expected, view) if view.recorded else Score.skipped(NO_SESSION)

    return evaluate_recorded


def require_session_and_sample(evaluate: SessionCheck) -> SessionCheck:
    """Skip the check if no session was recorded, and pass the metadata of the sample."""

    def evaluate_recorded(
        output: Any, expected: Any = None, session: SessionLike = None, sample: Sample[Any, Any] | None = None
    ) -> Score:
        view, metadata = to_view(session), {} if sample is None else sample.metadata
        return evaluate(output, expected, view, metadata) if view.recorded else Score.skipped(NO_SESSION)

    return evaluate_recorded


class RecordedCall(NamedTuple):
    """A tool call; `succeeded` is None if its outcome is unknown, `reason` explains a failure or a doubt.

    `has_result` is False for a call that was only requested.
    """

    name: str
    arguments: Mapping[str, Any] = {}
    succeeded: bool | None = None
    reason: str = ""
    has_result: bool = True

    def __str__(self) -> str:
        arguments = (f"{k}={preview(v)}" if k else preview(v) for k, v in self.arguments.items())
        return f"{self.name}({', '.join(arguments)})"


def read_calls(session: SessionView, *, read_error_texts: bool = False) -> list[RecordedCall]:
    """Return the tool calls of a session, in order.

    These are its `ToolCall` events, and the users' objects or mappings that look like a tool call: with a `tool_name`
    or `tool`, or with a `name` and arguments (`arguments`, `params`, `args`, `input`, `tool_input`) or an outcome
    (`success`, `is_error`, `error`). If there are none, the calls that the messages request are returned. With
    `read_error_texts`, a result that starts like an error is a failure. A result without its call is a call too.
    """
    ids = {event.call_id for event in session[ToolCall]}
    calls = [call for event in session if (call := _read_call(_restore_call(event, ids), read_error_texts)) is not None]
    return calls or [
        RecordedCall(request.name, request.arguments, None, "it was requested; it may not have run", has_result=False)
        for message in session[Message]
        for request in message.tool_calls
    ]


def _restore_call(event: Event, ids: set[str | None]) -> Event:
    """Return the call that a result without its call belongs to, unless it is the second result of a known call."""
    orphan = interpret_event(event) if isinstance(event, CustomEvent) else None
    if isinstance(event, CustomEvent) and isinstance(orphan, OrphanResult) and event.data.get("call_id", "") not in ids:
        return ToolCall(orphan.name or UNKNOWN_TOOL, result=orphan.content, error=orphan.error)
    return event


def get_field(data: Any, field: str, default: Any = None) -> Any:
    """Return a field of a mapping or an attribute of an object."""
    return data.get(field, default) if isinstance(data, Mapping) else getattr(data, field, default)


def _read_call(event: Event, read_error_texts: bool) -> RecordedCall | None:
    if isinstance(event, ToolCall):
        if event.error is not None:
            return RecordedCall(event.name, event.arguments, False, preview(event.error))
        text = get_field(event.arguments, "")
        broken = isinstance(text, str) and text.lstrip()[:1] in ("{", "[")
        doubts: list[Outcome] = [(None, "its arguments are not valid JSON")] * broken
        outcome = _select_outcome([*_read_result(event.result, read_error_texts), *doubts, (True, "")])
        return RecordedCall(event.name, event.arguments, *outcome)
    if not isinstance(event, CustomEvent):
        return None
    name = _read_name(event.data)
    if name is None:
        return None
    outcomes = [
        *_read_outcomes(event.data),
        *_read_status(event.data),
        *_read_result(get_field(event.data, "result"), read_error_texts),
    ]
    outcome = _select_outcome(outcomes)
    return RecordedCall(name, _read_arguments(event.data), *outcome, has_result=bool(outcomes))


def _select_outcome(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the first failure, otherwise the first doubt, otherwise the first outcome."""
    return min(outcomes, key=lambda outcome: (outcome[0] is not False, outcome[0] is not None), default=(None, ""))


def _read_name(data: Any) -> str | None:
    fields: tuple[str, ...] = _TOOL_NAMES
    if any(get_field(data, field, _MISSING) is not _MISSING for field in (*_ARGUMENTS, *_OUTCOMES)):
        fields = (*_TOOL_NAMES, "name")
    names = (get_field(data, field) for field in fields)
    return next((name for name in names if isinstance(name, str)), None)


def _read_arguments(data: Any, fields: Sequence[str] = _ARGUMENTS) -> Mapping[str, Any]:
    values = (get_field(data, field) for field in fields)
    arguments: Any = next((value for value in values if value is not None), {})
    if isinstance(arguments, str | bytes):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return {"": arguments}
    elif not isinstance(arguments, Mapping):
        arguments = codec.to_plain(arguments)
    return arguments if isinstance(arguments, Mapping) else {"": arguments}


def _read_result(result: Any, read_error_texts: bool) -> Iterator[Outcome]:
    """Yield the outcomes that a result contains as data, as JSON, or as the start of a string."""
    if isinstance(result, list | tuple) and result and isinstance(result[0], Mapping):
        content = result[0].get("text")
    else:
        content = result
    if not isinstance(content, str):
        yield from _read_outcomes(result)
        yield from _read_result_status(result)
        return
    text = content.lstrip()
    if (data := _decode_outcome(text)) is not None:
        yield from _read_outcomes(data)
        yield from _read_result_status(data)
    elif read_error_texts and text:
        yield from _read_error_text(text.rstrip())


def _read_error_text(text: str) -> Iterator[Outcome]:
    """Yield a failure or a doubt if a text starts or ends like an error message."""
    patterns = load_patterns("tool_failures.yaml")
    line = text[:_MAX_LINE].splitlines()[0]
    is_message = len(text) <= _MAX_MESSAGE and patterns["message"].fullmatch(text)
    is_certain_message = is_message and not (patterns["title"].match(line) or patterns["passing"].match(line))
    is_command = patterns["command"].match(line)
    is_certain_command = is_command and not patterns["about"].match(line)
    if patterns["failure"].match(line) or is_certain_message or is_certain_command:
        yield False, f"its result starts with {preview(line)}"
    elif is_command or patterns["doubtful"].match(line):
        yield None, f"its result starts with {preview(line)}"
    last = text[-_MAX_LINE:].splitlines()[-1]
    has_traceback = "\nTraceback (most recent call last):" in text[-_MAX_TRACEBACK:] and patterns["failure"].match(last)
    if last != line and (has_traceback or (patterns["command"].match(last) and not patterns["about"].match(last))):
        yield None, f"its result ends with {preview(last)}"


def _decode_outcome(text: str) -> Mapping[str, Any] | None:
    fields = (*_OUTCOMES, "errors", *_HTTP_CODES, *_EXIT_CODES)
    if not text.startswith("{") or not any(f'"{field}"' in text for field in fields):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, Mapping) else None


def _read_outcomes(data: Any) -> Iterator[Outcome]:
    for field in ("success", "ok"):
        success = _read_bool(get_field(data, field))
        if success is not None:
            yield success, "" if success else _get_message(data, f"{field} is False")
    for field in ("is_error", "isError"):
        failed = _read_bool(get_field(data, field))
        if failed is not None:
            yield not failed, _get_message(data, f"{field} is True") if failed else ""
    error = get_field(data, "error", _MISSING)
    if isinstance(error, str) and error.strip().casefold() in _NO_ERROR:
        error = None
    if isinstance(error, str | BaseException | Mapping | bool | None):
        yield not error, _get_message(data, "error is True") if error else ""


def _read_bool(value: Any) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().casefold())
    return value if isinstance(value, bool) else None


def _read_status(data: Any) -> Iterator[Outcome]:
    status = get_field(data, "status")
    text = getattr(status, "value", status)
    succeeded = _STATUSES.get(text.casefold()) if isinstance(text, str) else None
    if succeeded is not None:
        yield succeeded, "" if succeeded else _get_message(data, f"status is {text}")


def _read_result_status(data: Any) -> Iterator[Outcome]:
    """Yield a failure for a failed status with a message, a doubt for the status of something else, such as a job."""
    status = data.get("status") if isinstance(data, Mapping) else None
    if isinstance(status, str) and status.casefold() in _FAILED_STATUSES:
        if data.keys() <= _REPORT_FIELDS and (len(data) > 1 or status.casefold() == "error"):
            yield False, _get_message(data, f"status is {status}")
        else:
            yield None, f"its result has the status {status}, of the call or of its data"
    if not isinstance(data, Mapping):
        return
    message = _get_message(data, "")
    for field in _HTTP_CODES:
        code = data.get(field)
        if isinstance(code, int) and 400 <= code <= 599 and (field != "code" or message):
            # With other fields, it may be the code of a page that the tool reports.
            is_report = data.keys() <= _REPORT_FIELDS or (message and field not in ("status", "code"))
            yield (False if is_report else None), message or f"{field} is {code}"
    for field in _EXIT_CODES:
        if (code := _read_exit_code(data.get(field))) is not None:
            # Some programs, such as grep and diff, answer with exit code 1 and report no error.
            is_answer = code == 1 and not (data.get("stderr") or _reports_failure(data))
            yield (None if is_answer else code == 0), f"{field} is {code}" if code else ""
    if (errors := data.get("errors")) and isinstance(errors, list):
        yield (None if data.get("data") else False), f"errors is {preview(errors)}"


def _reports_failure(data: Mapping[str, Any]) -> bool:
    """Return whether the output of a program that has no separate error output names an error."""
    outputs = (data.get(field) for field in ("output", "stdout") if "stderr" not in data)
    return any(isinstance(text, str) and _FAILED.search(text[-_MAX_TRACEBACK:]) for text in outputs)


def _read_exit_code(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,10}", value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _get_message(data: Any, default: str) -> str:
    for field in ("error", "message"):
        message = get_field(data, field)
        if message and isinstance(message, str | BaseException | Mapping):
            return preview(message if isinstance(message, str | Mapping) else str(message))
    return default


class ExpectedCall(NamedTuple):
    """An expected tool call; if `arguments` is None, any arguments match."""

    name: str
    arguments: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        if self.arguments is None:
            return f"{self.name}(…)"
        arguments = (f"{name}={_format_argument(value)}" for name, value in self.arguments.items())
        return f"{self.name}({', '.join(arguments)})"


class SequenceOptions(NamedTuple):
    """How to compare calls: their order, extra calls, and their arguments."""

    mode: SequenceMode = "in_order"
    arguments: ArgumentRule = "exact"
    allow_extra: bool = True
    compare: Mapping[str, Callable[[Any, Any], Any]] = {}

    @property
    def is_complete(self) -> bool:
        """True if unexpected calls are not allowed."""
        return self.mode == "exact" or not self.allow_extra


def parse_expected_calls(expected: Any) -> list[ExpectedCall]:
    """Read expected calls from a name, {name, arguments}, a list of these, {tools: list}, or "search -> open"."""
    if isinstance(expected, Mapping) and "tools" in expected:
        expected = expected["tools"]
    if isinstance(expected, str) and all(map(_TOOL_NAME.fullmatch, names := _split_names(expected))):
        expected = names or expected
    is_list = isinstance(expected, Sequence) and not isinstance(expected, str | bytes | ExpectedCall)
    items = list(expected) if is_list else [expected]
    problems = [Problem(f"expected[{index}]", error) for index, item in enumerate(items) for error in _check_item(item)]
    if problems:
        raise EvaluatorError(
            "the expected tool calls cannot be read",
            where="tool_sequence",
            fix="write a name, or {name: search, arguments: {query: Paris}}",
            problems=problems,
        )
    return [_read_expected_call(item) for item in items]


def find_prose(expected: Any, calls: Sequence[RecordedCall]) -> str | None:
    """Return a text among the expected tools that cannot be the name of one, or may be an answer.

    A text that is no list must name a called tool, and only tools, or have the two underscores of an MCP tool; in a
    list, any word may be a tool.
    """
    called = {call.name for call in calls}
    if isinstance(expected, str):
        names = _split_names(expected)
        is_list = all(map(_TOOL_NAME.fullmatch, names)) and any(name in called or "__" in name for name in names)
        return None if not expected or expected in called or is_list else expected
    items = expected if isinstance(expected, list | tuple) else []
    texts = (item for item in items if isinstance(item, str) and item and item not in called)
    return next((text for text in texts if not _TOOL_NAME.fullmatch(text)), None)


def _split_names(text: str) -> list[str]:
    """Return the names in a text such as "search, open" or "search -> open()"."""
    names = (part.strip(" \t`'\"").removesuffix("()") for part in _NAME_END.split(text))
    return [name for name in names if name]


def read_expected_tools(tools: Any) -> Any:
    """Return the expected tools of a sample's metadata in the form of `parse_expected_calls`.

    A text has names, separated by commas, semicolons or arrows, or is JSON. A mapping may have its arguments under
    another name, and what else is known about the call.
    """
    if isinstance(tools, str):
        is_json = tools.lstrip().startswith(("[", "{"))
        tools = _decode_tools(tools) if is_json else _split_names(tools)
    return [_read_tool(tool) for tool in tools] if isinstance(tools, list | tuple) else _read_tool(tools)


def _decode_tools(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _read_tool(tool: Any) -> Any:
    if not isinstance(tool, Mapping):
        return tool
    if isinstance(function := tool.get("function"), Mapping):
        tool = function
    name = next((tool[field] for field in ("name", *_TOOL_NAMES) if field in tool), None)
    has_arguments = any(tool.get(field) is not None for field in _EXPECTED_ARGUMENTS)
    return {"name": name, "arguments": _read_arguments(tool, _EXPECTED_ARGUMENTS) if has_arguments else None}


def _check_item(item: Any) -> Iterator[str]:
    if isinstance(item, ToolCall | ExpectedCall):
        return
    if isinstance(item, Mapping):
        unknown_keys = [str(key) for key in item if key not in ("name", "arguments")]
        if unknown_keys:
            yield f"unknown keys: {', '.join(map(repr, unknown_keys))}; the keys are name and arguments"
        if not isinstance(item.get("arguments"), Mapping | None):
            yield f"arguments must be a mapping, got {type_name(item['arguments'])}"
        item = item.get("name")
    if not (isinstance(item, str) and item):
        yield f"a tool name must be a non-empty string, got {preview(item)}"


def _read_expected_call(item: Any) -> ExpectedCall:
    if isinstance(item, str):
        return ExpectedCall(item)
    if isinstance(item, Mapping):
        return ExpectedCall(item["name"], item.get("arguments"))
    return ExpectedCall(item.name, item.arguments)


def compare_calls(expected: Sequence[ExpectedCall], calls: Sequence[RecordedCall], options: SequenceOptions) -> Score:
    """Score the fraction of expected calls that happened; the details contain a diff."""
    matches = [
        [item.name == call.name and not _find_argument_errors(item, call, options) for call in calls]
        for item in expected
    ]
    is_unordered = options.mode == "any_order"
    pairs = _match_any_order(matches) if is_unordered else _match_in_order(matches, len(calls))
    total = max(len(expected), len(calls)) if options.is_complete else len(expected)
    extra = [call for index, call in enumerate(calls) if index not in pairs.values()]
    missing = [
        f"{item}{_explain_repetition(index, matches, pairs) or _explain_missing(item, matches[index], extra, options)}"
        for index, item in enumerate(expected)
        if index not in pairs
    ]
    passed = not missing and not (options.is_complete and extra)
    details = {
        "expected": [str(item) for item in expected],
        "actual": [str(call) for call in calls],
        "matched": len(pairs),
        "diff": list((_diff_unordered if is_unordered else _diff_ordered)(expected, calls, pairs)),
    }
    parts = [f"{len(pairs)} of {len(expected)} expected calls"]
    parts += ["missing: " + ", ".join(missing)] * bool(missing)
    parts += ["not expected: " + ", ".join(map(str, extra))] * bool(options.is_complete and extra)
    return Score(len(pairs) / total if total else 1.0, passed, "" if passed else "; ".join(parts), details)


def _find_argument_errors(expected: ExpectedCall, call: RecordedCall, options: SequenceOptions) -> list[str]:
    if expected.arguments is None or options.arguments == "ignore":
        return []
    errors = [
        error
        for name, value in expected.arguments.items()
        if (error := _find_argument_error(name, value, call.arguments, options))
    ]
    if options.arguments == "exact":
        errors += [f"unexpected: {name}" for name in call.arguments if name not in expected.arguments]
    return errors


def _find_argument_error(name: str, expected: Any, arguments: Mapping[str, Any], options: SequenceOptions) -> str:
    if name not in arguments:
        return f"missing: {name}"
    actual, compare = arguments[name], options.compare.get(name)
    if callable(expected):
        matches = bool(expected(actual))
    elif compare is not None:
        matches = bool(compare(actual, expected))
    else:
        # Wrapped in mappings, because a bare list of strings means that any of them matches.
        evaluate = json_subset if options.arguments == "subset" else exact_match
        matches = evaluate({name: actual}, {name: expected}).passed is True
    return "" if matches else f"wrong: {name} (expected {_format_argument(expected)}, got {preview(actual)})"


def _match_in_order(matches: MatchTable, calls: int) -> Pairs:
    """Return the longest common subsequence."""
    longest = [[0] * (calls + 1) for _ in range(len(matches) + 1)]
    for i in range(len(matches) - 1, -1, -1):
        for j in range(calls - 1, -1, -1):
            length_without_match = max(longest[i + 1][j], longest[i][j + 1])
            longest[i][j] = longest[i + 1][j + 1] + 1 if matches[i][j] else length_without_match
    pairs: Pairs = {}
    i = j = 0
    while i < len(matches) and j < calls:
        if matches[i][j]:
            pairs[i] = j
            i, j = i + 1, j + 1
        elif longest[i + 1][j] > longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _match_any_order(matches: MatchTable) -> Pairs:
    """Return a maximum matching of expected calls and calls."""
    owners: dict[int, int] = {}

    def assign(item: int, visited: set[int]) -> bool:
        for call, is_match in enumerate(matches[item]):
            if is_match and call not in visited:
                visited.add(call)
                if call not in owners or assign(owners[call], visited):
                    owners[call] = item
                    return True
        return False

    for item in range(len(matches)):
        assign(item, set())
    return {item: call for call, item in owners.items()}


def format_times(count: int) -> str:
    """Write how often something happened: "once", "2 times"."""
    return "once" if count == 1 else f"{count} times"


def _explain_repetition(index: int, matches: MatchTable, pairs: Pairs) -> str:
    """Return how often an expected call was made if only other expected calls use it up; "" otherwise."""
    calls = {call for call, is_match in enumerate(matches[index]) if is_match}
    if not calls or not calls <= set(pairs.values()):
        return ""
    wanted = sum(any(row[call] for call in calls) for row in matches)
    return f" (called {format_times(len(calls))}, expected {format_times(wanted)})"


def _explain_missing(
    expected: ExpectedCall, matches: list[bool], extra: Sequence[RecordedCall], options: SequenceOptions
) -> str:
    if options.mode != "any_order" and any(matches):
        return " (called, but out of order)"
    for call in extra:
        if call.name == expected.name:
            return f" (called as {call}: {', '.join(_find_argument_errors(expected, call, options))})"
    return ""


def _diff_ordered(expected: Sequence[ExpectedCall], calls: Sequence[RecordedCall], pairs: Pairs) -> Iterator[str]:
    expected_start = call_start = 0
    for item, call in [*sorted(pairs.items()), (len(expected), len(calls))]:
        yield from (f"- {missing}" for missing in expected[expected_start:item])
        yield from (f"+ {extra}" for extra in calls[call_start:call])
        yield from (f"  {match}" for match in calls[call : call + 1])
        expected_start, call_start = item + 1, call + 1


def _diff_unordered(expected: Sequence[ExpectedCall], calls: Sequence[RecordedCall], pairs: Pairs) -> Iterator[str]:
    for index, item in enumerate(expected):
        yield f"  {calls[pairs[index]]}" if index in pairs else f"- {item}"
    yield from (f"+ {call}" for index, call in enumerate(calls) if index not in pairs.values())


def _format_argument(value: Any) -> str:
    return str(getattr(value, "__name__", "a function")) if callable(value) else preview(value)
