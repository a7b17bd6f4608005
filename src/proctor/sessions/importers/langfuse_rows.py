"""Exports of Langfuse, sorted into traces: whole traces, pages of an API, or one row a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import Message, ModelCall, ToolCall, Usage
from proctor.sessions.genai.bodies import asked_in, instructions_in, said_in
from proctor.sessions.genai.messages import Spoken, instructions_of, spoken_in
from proctor.sessions.genai.spans import Reading, SpanData, kind_of, reading_of
from proctor.sessions.genai.values import Kind, arguments_in, decoded, is_too_deep, plain, text_or_none
from proctor.sessions.importers.shapes import amount, count, mapping, moment, number_at, text, without

_INPUT = ("input", "input_tokens", "prompt_tokens", "promptTokens")
_OUTPUT = ("output", "output_tokens", "completion_tokens", "completionTokens")
_TOTAL = ("total", "total_tokens", "totalTokens")
_CACHED = ("input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "prompt_details.cache_read")
_CACHE_WRITTEN = ("input_cache_creation", "cache_creation_input_tokens")
_MAIN = frozenset((*_INPUT, *_OUTPUT, *_TOTAL))
# By these words in its name a further kind of tokens belongs to a side.
_ASKED = ("input", "prompt", "cache")
_SAID = ("output", "completion", "reasoning")


def usage_of(observation: Mapping[str, Any]) -> Usage | None:
    """What a model used, what was read from a cache in it; None if nothing was counted.

    >>> usage_of({"usageDetails": {"input": 5, "input_cache_read": 40, "output": 2, "total": 47}})
    Usage(input_tokens=45, output_tokens=2, cached_tokens=40)
    """
    found = mapping(decoded(observation.get("usageDetails")))
    older = mapping(decoded(observation.get("usage")))
    if not found and older.get("unit") in (None, "TOKENS"):
        found = older
    asked, said = _tokens(found)
    usage = Usage(
        asked, said, number_at(found, *_CACHED), _cost(observation), number_at(found, *_CACHE_WRITTEN)
    )
    return None if usage == Usage() else usage


def _tokens(found: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """All that went in and came out.

    The kinds of tokens stand beside each other and add up; but some programs tell kinds again that
    are in the input or the output already. The total tells which. What only the total counts is
    what a model thought, as Gemini's do.
    """
    asked, said = number_at(found, *_INPUT), number_at(found, *_OUTPUT)
    more_asked, more_said = _further(found)
    total = number_at(found, *_TOTAL)
    if total is not None:
        if asked is None and said is None and not (more_asked or more_said):
            return None, None  # Of which side they are, nobody tells.
        beyond = max(total - (asked or 0) - (said or 0), 0)
        if beyond == more_said:
            more_asked = 0
        elif asked is None and not more_asked:
            more_asked = max(beyond - more_said, 0)
        else:
            more_asked = min(beyond, more_asked)
        more_said = beyond - more_asked
    return _with(asked, more_asked), _with(said, more_said)


def _with(known: int | None, more: int) -> int | None:
    return count((known or 0) + more) if more else known


def _further(found: Mapping[str, Any]) -> tuple[int, int]:
    """How many tokens are of further kinds that belong to the input, and to the output."""
    asked = said = 0
    for name, value in found.items():
        number = count(value)
        if number is None or name in _MAIN or "cost" in name.casefold():
            continue
        if any(word in name for word in _SAID):
            said += number
        elif any(word in name for word in _ASKED):
            asked += number
    return asked, said


def _cost(observation: Mapping[str, Any]) -> float | None:
    details = mapping(decoded(observation.get("costDetails")))
    whole = amount(details.get("total"))
    for name in ("totalCost", "calculatedTotalCost"):
        # Zero stands here too where no price is known.
        whole = whole or amount(observation.get(name)) or whole
    return whole


_KINDS: dict[str, Kind] = {"GENERATION": "model", "EMBEDDING": "embeddings", "TOOL": "tool"}
_OPERATIONS: dict[Kind, str] = {"model": "chat", "embeddings": "embeddings", "tool": "execute_tool"}


class Told(NamedTuple):
    """What an observation tells; `is_plain` if what was said is known as a text only."""

    reading: Reading | None
    is_plain: bool = False


def told_by(observation: Mapping[str, Any]) -> Told:
    """Read an observation: a call of a model or a tool, or neither.

    >>> told_by({"type": "GENERATION", "model": "small", "input": "Hi"}).reading.call.model
    'small'
    """
    attributes = attributes_of(observation)
    kind = _kind(observation, attributes)
    if kind is None:
        return Told(None)
    span = SpanData(
        text(observation.get("name")) or "",
        {**attributes, "gen_ai.operation.name": _OPERATIONS[kind]},
        duration_ms=took(observation),
        error=_error(observation),
    )
    reading = reading_of(span)
    assert reading is not None
    if isinstance(reading.call, ToolCall):
        call = _tool_call(reading.call, observation, attributes)
        return Told(Reading("tool", call, sources=("input", "output", *reading.sources)))
    asking = _model_call(reading.call, observation)
    if kind == "embeddings":
        return Told(Reading(kind, asking))
    spoken, is_plain = _said(observation, attributes)
    if spoken.finish is not None and asking.finish_reason is None:
        asking = msgspec.structs.replace(asking, finish_reason=spoken.finish)
    asked, said = tuple(spoken.asked), tuple(spoken.said)
    sources = (*spoken.asked_from, *spoken.said_from)
    return Told(Reading(kind, asking, asked, said, spoken.thoughts, sources), is_plain)


def spoken_of(observation: Mapping[str, Any]) -> Spoken:
    """The messages that went into an observation and came out of it.

    They are looked for in its input and output, then in the attributes of the span that it was.

    >>> spoken_of({"input": [{"role": "user", "content": "Hi"}], "output": "Hello"}).asked
    [Message(role='user', content='Hi')]
    """
    return _said(observation, attributes_of(observation))[0]


def _said(observation: Mapping[str, Any], attributes: Mapping[str, Any]) -> tuple[Spoken, bool]:
    given, answer = observation.get("input"), observation.get("output")
    asked, said = asked_in(given), said_in(answer)
    other = spoken_in(attributes) if asked is None or said is None else Spoken([], [])
    inputs = other.asked if asked is None else asked.messages
    outputs = other.said if said is None else said.messages
    is_plain = not (inputs or outputs)
    if not inputs:
        inputs = _as_text(given, "user")
    asked_from = other.asked_from if asked is None and other.asked else ("input",)
    if not any(message.role == "system" for message in inputs):
        beside = instructions_of(attributes)
        inputs = [*(beside or instructions_in(answer)), *inputs]
        asked_from = (*asked_from, "gen_ai.system_instructions") if beside else asked_from
    endings = [] if said is None else said.endings
    thoughts = [*(asked.thoughts if asked else ()), *(said.thoughts if said else ())]
    return (
        Spoken(
            inputs,
            outputs or _as_text(answer, "assistant"),
            next(iter(endings), other.finish),
            thoughts=tuple(thoughts) or other.thoughts,
            asked_from=asked_from,
            said_from=other.said_from if said is None and other.said else ("output",),
        ),
        is_plain,
    )


def _as_text(given: Any, role: Any) -> list[Message]:
    """A text that is no messages is what was said."""
    words = decoded(given)
    return [Message(role, words)] if isinstance(words, str) and words else []


def attributes_of(observation: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of the span that an observation was, where it was one."""
    return mapping(decoded(mapping(decoded(observation.get("metadata"))).get("attributes")))


def _kind(observation: Mapping[str, Any], attributes: Mapping[str, Any]) -> Kind | None:
    known = _KINDS.get(str(observation.get("type")).upper())
    if known is None:
        known = kind_of(attributes)
    return "tool" if known is None and _gives_tool_message(observation) else known


def _gives_tool_message(observation: Mapping[str, Any]) -> bool:
    """LangChain's tools give back a message of the tool's own."""
    output = mapping(decoded(observation.get("output")))
    return output.get("type") == "tool" and text(output.get("tool_call_id")) is not None


def _tool_call(call: ToolCall, observation: Mapping[str, Any], attributes: Mapping[str, Any]) -> ToolCall:
    given, answer = decoded(observation.get("input")), decoded(observation.get("output"))
    inner = mapping(given).get("input")
    if "langsmith.span.kind" in attributes and isinstance(inner, dict) and len(given) == 1:
        # LangSmith puts the arguments of a tool under this name.
        given = inner
    if not isinstance(given, dict):
        # LangChain writes them as Python, and beside them as they are.
        given = mapping(decoded(observation.get("metadata"))).get("inputs") or given
    result = call.result
    call_id, error = call.call_id, call.error
    if _gives_tool_message(observation):
        message = mapping(answer)
        answer = message.get("content")
        call_id = call_id or text_or_none(message.get("tool_call_id"))
        if message.get("status") == "error" and error is None:
            error = str(answer)
    return ToolCall(
        call.name,
        call.arguments or arguments_in(given),
        plain(answer) if result is None else result,
        error,
        call.duration_ms,
        call_id,
    )


def _model_call(call: ModelCall, observation: Mapping[str, Any]) -> ModelCall:
    usage = usage_of(observation)
    return msgspec.structs.replace(
        call, model=text(observation.get("model")) or call.model, usage=call.usage if usage is None else usage
    )


def took(row: Mapping[str, Any]) -> float | None:
    """How many milliseconds something took: by its times, or as it says, in seconds.

    >>> took({"startTime": "2026-01-01T00:00:00Z", "endTime": "2026-01-01T00:00:01.5Z"})
    1500.0
    """
    began, ended = moment(row.get("startTime")), moment(row.get("endTime"))
    if began is not None and ended is not None and ended >= began:
        return (ended - began).total_seconds() * 1e3
    lasted = amount(row.get("latency"))
    return None if lasted is None else lasted * 1e3


def _error(observation: Mapping[str, Any]) -> str | None:
    if observation.get("level") != "ERROR":
        return None
    said = observation.get("statusMessage")
    return "" if said is None else str(said)


def is_blank(value: Any) -> bool:
    """True for what tells nothing."""
    return value is None or (isinstance(value, str | Sequence | Mapping) and not value)


TYPES = frozenset(
    (
        *("SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN"),
        *("RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"),
    )
)
# A list of observations has these in place of what is too long for it.
_EMPTY: tuple[Any, ...] = (None, "", [], {}, "{}", "[]", "null")
# What exports to files write with underscores.
_SPELLINGS = {
    "trace_id": "traceId",
    "parent_observation_id": "parentObservationId",
    "observation_id": "observationId",
    "session_id": "sessionId",
    "user_id": "userId",
    "start_time": "startTime",
    "end_time": "endTime",
    "completion_start_time": "completionStartTime",
    "status_message": "statusMessage",
    "model_parameters": "modelParameters",
    "provided_model_name": "model",
    "usage_details": "usageDetails",
    "cost_details": "costDetails",
    "total_cost": "totalCost",
    "string_value": "stringValue",
    "data_type": "dataType",
}
# With no trace in it, a session is known by having nothing else either.
_OF_SESSIONS = frozenset(
    ("id", "traces", "createdAt", "updatedAt", "projectId", "environment", "public", "bookmarked")
)
_OF_TRACES = ("timestamp", "userId", "sessionId", "tags", "htmlPath", "scores")


class Rows:
    """What a file holds of one trace; `line` is where it is first named.

    `session` is the id of the session that the file gives it in, if it does.
    """

    def __init__(self, name: str, line: int) -> None:
        self.id = name
        self.line = line
        self.session: str | None = None
        self.trace: dict[str, Any] = {}
        # By their ids; what has none of its own has a number.
        self.observations: dict[str | int, dict[str, Any]] = {}
        self.scores: dict[str | int, dict[str, Any]] = {}
        self.odd: list[Any] = []

    def add_trace(self, row: Mapping[str, Any]) -> None:
        """Take what is told of the whole."""
        self.trace = _merged(self.trace, without(row, "observations", "scores"))
        self._add_all(row, "observations", self.add_observation)
        self._add_all(row, "scores", self.add_score)

    def _add_all(self, row: Mapping[str, Any], name: str, add: Any) -> None:
        given = row.get(name)
        several = given if isinstance(given, list) else [given] if given else []
        # A list of traces names its observations by their ids alone.
        ids = [one for one in several if isinstance(one, str) and several is given]
        if ids:
            self.trace = _merged(self.trace, {name: ids})
        for one in several:
            if isinstance(one, dict):
                add(spelled(one))
            elif one not in ids:
                self.odd.append({name: one})

    def add_observation(self, row: Mapping[str, Any]) -> None:
        """Take an observation; told twice, each fills what the other lacks."""
        name = text(row.get("id")) or len(self.observations)
        self.observations[name] = _merged(self.observations.get(name, {}), row)

    def add_score(self, row: Mapping[str, Any]) -> None:
        """Take a score."""
        name = text(row.get("id")) or len(self.scores)
        self.scores[name] = _merged(self.scores.get(name, {}), row)


class Sorted(NamedTuple):
    """The rows of a file by their traces, and what it tells of whole sessions, by their ids.

    `empty` are those that are given without any trace, with the lines where they stand.
    """

    traces: dict[str, Rows]
    sessions: dict[str, dict[str, Any]]
    empty: dict[str, int]


def _merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(before)
    also: list[Any] = list(found.pop("also", []))
    for key, value in after.items():
        if found.get(key) in _EMPTY:
            found[key] = value
        elif value not in _EMPTY and value != found[key]:
            also.append({key: value})
    return {**found, "also": also} if also else found


def spelled(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the names that the API uses.

    >>> spelled({"trace_id": "t", "name": "a"})
    {'traceId': 't', 'name': 'a'}
    """
    return {
        _SPELLINGS.get(key, key) if _SPELLINGS.get(key) not in row else key: value
        for key, value in row.items()
    }


def kind_of_row(value: Any) -> str | None:
    """What a row is: an `export`, a `page`, a `session`, a `trace`, an `observation`, a `score`.

    None if it is none of them.

    >>> kind_of_row({"id": "o", "traceId": "t", "type": "SPAN", "startTime": "2026-01-01"})
    'observation'
    """
    if not isinstance(value, dict):
        return None
    row = spelled(value)
    if isinstance(row.get("trace"), dict) and isinstance(row.get("observations"), list):
        return "export"
    if isinstance(row.get("data"), list) and isinstance(row.get("meta"), dict):
        return "page"
    belongs = text(row.get("traceId")) is not None
    if belongs and "startTime" in row and isinstance(row.get("type"), str):
        return "observation"
    if belongs and "name" in row and ("value" in row or "stringValue" in row):
        return "score"
    has_id = text(row.get("id")) is not None
    if has_id and _holds_traces(row):
        return "session"
    if has_id and isinstance(row.get("observations"), list) and _tells_trace(row, 1):
        return "trace"
    return "trace" if has_id and not belongs and _tells_trace(row, 4) else None


def _tells_trace(row: Mapping[str, Any], least: int) -> bool:
    return sum(key in row for key in _OF_TRACES) >= least


def _holds_traces(row: Mapping[str, Any]) -> bool:
    traces = row.get("traces")
    if traces == []:
        return row.keys() <= _OF_SESSIONS
    first = spelled(mapping(traces[0])) if isinstance(traces, list) and traces else {}
    is_told = any(key in first for key in ("input", "output", "observations"))
    return text(first.get("id")) is not None and "timestamp" in first and is_told


def sort(values: Iterator[tuple[int, Any]], strays: list[tuple[str, Any]]) -> Sorted:
    """The rows of a file by their traces, in order; what is no row goes to the strays."""
    found = Sorted({}, {}, {})
    for line, value in values:
        for row in _flat(value):
            _place(row, line, found, strays)
    return found


def _flat(value: Any) -> Iterator[Any]:
    """Rows that stand in lists and pages, one by one."""
    if isinstance(value, list):
        for item in value:
            yield from _flat(item) if kind_of_row(item) == "page" else [item]
    elif kind_of_row(value) == "page":
        yield from value["data"]
        if rest := without(value, "data", "meta"):
            yield rest
    else:
        yield value


def _place(value: Any, line: int, found: Sorted, strays: list[tuple[str, Any]]) -> None:
    kind = None if is_too_deep(value) else kind_of_row(value)
    row = spelled(value) if kind not in (None, "page") else {}
    trace = spelled(row["trace"]) if kind == "export" else row
    name = text(trace.get("traceId" if kind in ("observation", "score") else "id"))
    if name is None:
        strays.append(("row", value))
        return
    if kind == "session":
        _place_session(name, row, line, found, strays)
        return
    rows = found.traces.setdefault(name, Rows(name, line))
    if kind == "export":
        rows.add_trace(trace)
        rows.add_trace(without(row, "trace"))
    elif kind == "trace":
        rows.add_trace(row)
    elif kind == "observation":
        rows.add_observation(row)
    else:
        rows.add_score(row)


def _place_session(
    name: str, row: Mapping[str, Any], line: int, found: Sorted, strays: list[tuple[str, Any]]
) -> None:
    """Each of its traces is one of the file, and of the first session only that has it."""
    found.sessions[name] = _merged(found.sessions.get(name, {}), without(row, "id", "traces"))
    if not row["traces"]:
        found.empty.setdefault(name, line)
    for one in row["traces"]:
        trace = spelled(mapping(one))
        id_of_trace = text(trace.get("id"))
        if id_of_trace is None:
            strays.append(("row", one))
            continue
        rows = found.traces.setdefault(id_of_trace, Rows(id_of_trace, line))
        rows.session = rows.session or name
        if rows.session != name:
            rows.odd.append({"session": without(row, "traces")})
        rows.add_trace(trace)


def looks_like_rows(value: Any) -> bool:
    """True if a JSON value is, or begins with, a row of Langfuse."""
    first = next(iter(_flat(value)), None)
    kind = kind_of_row(first)
    if kind == "observation":
        return mapping(first)["type"] in TYPES
    return kind is not None
