"""Langfuse: traces from its pages, its API and its exports.

One trace is one session; a Langfuse session with its traces is one session with several turns. The rows of a trace may
be anywhere in a file, so the whole file is read first. Scores are recorded by name; if a name is repeated, the last
value wins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from proctor.records.session import CustomEvent, Event, Message, Role, Session, ToolCall
from proctor.records.session_events import call_key, find_call
from proctor.sessions.genai.bodies import parse_request, parse_response
from proctor.sessions.genai.message_parser import ParsedMessages
from proctor.sessions.genai.spans import SpanCall
from proctor.sessions.genai.values import decode_json, is_known_attribute
from proctor.sessions.importers.content_matcher import ContentMatcher, add_instructions, fold_phases, read_phase
from proctor.sessions.importers.imported_session import ImportedSession, default_session_id, parse_time, wrap_raw_event
from proctor.sessions.importers.json_values import as_mapping, as_number, as_text, omit_keys
from proctor.sessions.importers.langfuse_rows import (
    OBSERVATION_TYPES,
    TraceRows,
    get_attributes,
    get_duration_ms,
    group_rows,
    is_blank,
    is_langfuse_rows,
    read_observation,
)
from proctor.sessions.importers.otlp_wire import to_storable
from proctor.sessions.importers.session_builder import CALL_FAILED
from proctor.sessions.importers.trace import (
    Step,
    assemble_trace,
    count_unknown_parts,
    find_input_and_output,
    list_models,
    rename_conflicts,
)

NAME = "langfuse"
# Keys under which programs log a single question or answer.
_TEXT_KEYS: Mapping[str, Sequence[str]] = {
    "user": (
        "question", "query", "q", "input", "prompt", "message", "text", "content",
        "user_input", "user_message", "user_query",
    ),
    "assistant": (
        "answer", "output", "result", "response", "text", "content", "message", "reply",
        "completion", "final_answer",
    ),
}  # fmt: skip
_ARGUMENTS = frozenset(("args", "kwargs"))
# Recorded for the whole session; other fields are recorded for each trace.
_SESSION_FIELDS = ("scores", "score_rows", "observations", "model", "models")
_MIN_TIME, _MAX_TIME = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_OBSERVATION_FIELDS = frozenset((
    "id", "traceId", "parentObservationId", "type", "name", "level", "statusMessage", "startTime",
    "endTime", "completionStartTime", "createdAt", "updatedAt", "latency", "input", "output",
    "metadata", "model", "modelId", "modelParameters", "environment", "usage", "usageDetails",
    "costDetails", "providedCostDetails", "providedUsageDetails", "inputCost", "outputCost",
    "totalCost", "inputUsage", "outputUsage", "totalUsage", "calculatedInputCost",
    "calculatedOutputCost", "calculatedTotalCost", "unit", "promptTokens", "completionTokens",
    "totalTokens", "inputPrice", "outputPrice", "totalPrice", "timeToFirstToken", "promptId",
    "promptName", "promptVersion", "version", "internalModel", "internalModelId", "projectId",
    "usagePricingTierId", "also", "usagePricingTierName", "toolDefinitions", "toolCalls",
    "toolCallNames", "bookmarked",
))  # fmt: skip
_CONTAINER_TYPES = ("SPAN", "AGENT", "CHAIN")


class TraceMessages(NamedTuple):
    """The messages before and after the steps; `parsed` are the values that were logged as messages."""

    inputs: list[Event]
    outputs: list[Event]
    parsed: list[Event]


def read_trace_messages(trace_input: Any, trace_output: Any, events: Iterable[Event]) -> TraceMessages:
    """Return the input and output of a trace, if no event contains them."""
    roles = {event.role for event in events if isinstance(event, Message)}
    trace_input, trace_output = _unwrap_arguments(decode_value(trace_input)), decode_value(trace_output)
    request, response = parse_request(trace_input), parse_response(trace_output)
    inputs = _select_messages(request, trace_input, "user", roles)
    outputs = _select_messages(response, trace_output, "assistant", roles)
    if inputs and outputs[: len(inputs)] == inputs:
        # A graph returns the whole conversation.
        outputs = outputs[len(inputs) :]
    parsed = [*(inputs if request else ()), *(outputs if response else ())]
    return TraceMessages([*inputs], [*outputs], [*parsed])


def decode_value(value: Any) -> Any:
    """Return a decoded value, or None if it is blank; Langfuse pages encode JSON twice."""
    decoded = decode_json(decode_json(value))
    return None if is_blank(decoded) else decoded


def _first_value(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    return next((item for row in rows if decode_value(item := row.get(name)) is not None), None)


def _select_messages(parsed: ParsedMessages | None, value: Any, role: Role, roles: set[Role]) -> list[Message]:
    if role in roles:
        return []
    messages = [] if parsed is None else parsed.messages
    if roles:
        # The events contain the rest of the conversation.
        messages = [message for message in messages if message.role == role]
    if messages or parsed is not None or value is None:
        return messages
    return [Message(role, _unwrap_text(value, role))]


def _unwrap_text(value: Any, role: Role) -> Any:
    """Return the text of a mapping with one known key; return any other value unchanged."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, text),) = value.items()
        if name in _TEXT_KEYS[role] and isinstance(text, str) and text:
            return text
    return value


def _unwrap_arguments(value: Any) -> Any:
    """Return the single argument of a function that a decorator logged."""
    if not isinstance(value, dict) or not value or value.keys() - _ARGUMENTS:
        return value
    arguments = [item for item in value.values() if not is_blank(item)]
    if len(arguments) != 1:
        return value if arguments else None
    (only_argument,) = arguments
    return only_argument[0] if isinstance(only_argument, list) and len(only_argument) == 1 else only_argument


def join_traces(name: str, row: Mapping[str, Any], turns: Sequence[ImportedSession]) -> ImportedSession:
    """Join traces into one session, in order of time.

    Each turn of a chat repeats the earlier messages. They are added once, and `repeats` of the trace
    lists their indexes.
    """
    in_order = sorted(turns, key=lambda turn: parse_time(turn.recorded.get("started_at")) or _MAX_TIME)
    conversation = _Conversation()
    recorded: dict[str, Any] = {"scores": {}, "score_rows": [], "observations": []}
    unknown_counts: Counter[str] = Counter()
    traces: list[dict[str, Any]] = []
    for turn in in_order:
        repeats, moved = conversation.add(turn.session, turn.recorded.get("observations", ()))
        trace = {"id": turn.id, **omit_keys(turn.recorded, *_SESSION_FIELDS)}
        traces.append(trace | ({"repeats": repeats} if repeats else {}))
        recorded["observations"] += moved
        recorded["scores"] |= turn.recorded.get("scores", {})
        recorded["score_rows"] += turn.recorded.get("score_rows", ())
        unknown_counts.update(turn.unknown_parts)
    session = Session(conversation.events)
    first, last = in_order[0], in_order[-1]
    times = filter(None, (parse_time(turn.recorded.get("ended_at")) for turn in turns))
    end = max(times, default=None)
    costs = [turn.recorded["cost"] for turn in in_order if "cost" in turn.recorded]
    recorded |= {
        "title": first.recorded.get("title"),
        "user_id": first.recorded.get("user_id"),
        "session_id": name,
        "started_at": first.recorded.get("started_at"),
        "ended_at": None if end is None else end.isoformat(),
        "cost": sum(costs) if costs else None,
        **list_models(session),
        "traces": traces,
        "session_row": dict(row),
    }
    first_input, last_output = find_input_and_output(session)
    return ImportedSession(
        name,
        session,
        first.format,
        turns[0].source,
        first.input if first_input is None else first_input,
        last.output if last_output is None else last_output,
        {key: value for key, value in recorded.items() if value not in (None, "", [], {})},
        dict(unknown_counts),
        is_named=True,
        error=last.error,
    )


class _Conversation:
    """The events of several traces without repeated messages and calls."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._messages: defaultdict[str, list[int]] = defaultdict(list)
        self._calls: dict[tuple[str, str], int] = {}

    def add(self, turn: Session, observations: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[dict[str, Any]]]:
        """Add a trace; return the indexes of repeated messages, and its observations with their new indexes."""
        events = list(turn)
        repeated = self._find_repeated(events)
        observed = {observation["event"] for observation in observations}
        earlier = repeated | self._find_repeated_calls(events, repeated, observed)
        indexes: list[int] = []
        for index, event in enumerate(events):
            indexes.append(earlier.get(index, len(self.events)))
            if index in earlier:
                continue
            if isinstance(event, Message):
                self._messages[repr(event)].append(len(self.events))
            elif isinstance(event, ToolCall):
                self._calls[call_key(event)] = len(self.events)
            self.events.append(event)
        moved = []
        for observation in observations:
            entry = {**_move_inputs(observation, indexes), "event": indexes[observation["event"]]}
            event = self.events[entry["event"]]
            if isinstance(event, CustomEvent):
                raw = _move_inputs(event.data["found"], indexes)
                self.events[entry["event"]] = wrap_raw_event(event.kind, raw)
            moved.append(entry)
        return list(repeated.values()), moved

    def _find_repeated_calls(
        self, events: Sequence[Event], repeated: Mapping[int, int], observed: Collection[int]
    ) -> dict[int, int]:
        """Return the calls of repeated messages, with the indexes of the original calls.

        Calls that this trace observed are new calls, even if they look the same.
        """
        history = [event for index, event in enumerate(events) if index in repeated]
        requested = Counter(call_key(c) for e in history if isinstance(e, Message) for c in e.tool_calls)
        matches: dict[int, int] = {}
        for index, event in enumerate(events):
            call = find_call(event)
            if call is None or index in observed or not requested[key := call_key(call)]:
                continue
            if key in self._calls:
                requested[key] -= 1
                matches[index] = self._calls[key]
        return matches

    def _find_repeated(self, events: Sequence[Event]) -> dict[int, int]:
        """Return the messages that earlier traces contain, with their indexes.

        Messages before the last user message may be history: if the first message is known, all messages
        that are known in the same order are history.
        """
        messages = [(index, e) for index, e in enumerate(events) if isinstance(e, Message)]
        last = max((number for number, (_, e) in enumerate(messages) if e.role == "user"), default=0)
        matches: dict[int, int] = {}
        last_match = -1
        for index, message in messages[:last]:
            positions = self._messages.get(repr(message), [])
            if message.role == "system":
                matches |= {index: positions[0]} if positions else {}
                continue
            number = bisect_left(positions, last_match + 1)
            if number < len(positions):
                last_match = matches[index] = positions[number]
            elif last_match < 0:
                break
        return matches


def _move_inputs(entry: Mapping[str, Any], indexes: Sequence[int]) -> dict[str, Any]:
    inputs = entry.get("asked")
    return {**entry, **({"asked": [indexes[index] for index in inputs]} if inputs else {})}


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for traces, observations and other Langfuse rows."""
    return any(map(is_langfuse_rows, values))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file: one per trace, or one per Langfuse session.

    Values without a trace go to the first session and are counted there.
    """
    stray_values: list[tuple[str, Any]] = []
    traces, sessions, empty, lines = group_rows(values, stray_values)

    def locate(line: int) -> str:
        return f"{source}:{line}" if lines > 1 else source

    groups: dict[tuple[str, str], list[TraceRows]] = {}
    for rows in traces.values():
        key = ("trace", rows.id) if rows.session is None else ("session", rows.session)
        groups.setdefault(key, []).append(rows)
    for (group_type, name), group in groups.items():
        turns = []
        for rows in group:
            turns.append(_TraceReader(rows).read(locate(rows.line), stray_values))
            stray_values = []
        yield turns[0] if group_type == "trace" else join_traces(name, sessions[name], turns)
    for name, line in empty.items():
        if ("session", name) not in groups:
            row = sessions[name]
            recorded = {"session_id": name, **({"session_row": dict(row)} if row else {})}
            yield ImportedSession(name, Session(), NAME, locate(line), recorded=recorded, is_named=True)
    if stray_values:
        unknown_counts = dict(Counter(kind for kind, _ in stray_values))
        events: list[Event] = [wrap_raw_event(kind, to_storable(value)) for kind, value in stray_values]
        yield ImportedSession(default_session_id(source), Session(events), NAME, source, unknown_parts=unknown_counts)


class _TraceReader:
    def __init__(self, rows: TraceRows) -> None:
        self._rows = rows
        self._unknown_counts: Counter[str] = Counter()

    def read(self, source: str, stray_values: Iterable[tuple[str, Any]]) -> ImportedSession:
        rows = list(self._rows.observations.items())
        steps = fold_phases([_make_step(name, row) for name, row in rows])
        steps = add_instructions(steps, (get_attributes(row) for _, row in rows))
        assembled, indexes, contents, inputs = assemble_trace(steps)
        messages = self._read_messages(steps, assembled)
        offset = len(messages.inputs)
        events = [*messages.inputs, *assembled, *messages.outputs]
        observations: list[dict[str, Any]] = []
        for number, ((_, row), step) in enumerate(zip(rows, steps, strict=True)):
            index = offset + indexes[number]
            entry = self._make_entry(row, step.span_call, ContentMatcher(contents[number]))
            if inputs[number]:
                entry["asked"] = [offset + item for item in inputs[number]]
            if isinstance(events[index], CustomEvent):
                events[index] = wrap_raw_event(step.label, entry)
                if step.span_call is None and _get_type(row) not in OBSERVATION_TYPES:
                    self._unknown_counts[step.label] += 1
                entry = {key: row[key] for key in ("id", "name") if key in row}
            observations.append({**entry, "event": index})
        for kind, value in (*stray_values, *(("odd row", item) for item in self._rows.unknown_values)):
            events.append(wrap_raw_event(kind, to_storable(value)))
            self._unknown_counts[kind] += 1
        self._unknown_counts.update(count_unknown_parts(Session([*assembled, *messages.parsed])))
        matcher = ContentMatcher([*messages.inputs, *messages.outputs])
        return self._build(source, Session(events), observations, matcher)

    def _read_messages(self, steps: Sequence[Step], events: Sequence[Event]) -> TraceMessages:
        """Return the input and output of the trace, or else of its outermost observations."""
        rows = self._rows.observations
        outer = [
            rows[step.id]
            for step in sorted(steps, key=lambda step: step.start or 0)
            if step.parent not in rows and _is_conversation(rows[step.id], step.span_call)
        ]
        trace = self._rows.trace
        trace_input = _first_value([trace, *outer], "input")
        trace_output = _first_value([trace, *reversed(outer)], "output")
        return read_trace_messages(trace_input, trace_output, events)

    def _make_entry(
        self, row: Mapping[str, Any], span_call: SpanCall | None, matcher: ContentMatcher
    ) -> dict[str, Any]:
        """Return the fields of an observation without the content that the session contains."""
        sources = () if span_call is None else span_call.sources
        self._unknown_counts.update(f"field: {str(name)[:60]}" for name in row if name not in _OBSERVATION_FIELDS)
        attributes = get_attributes(row)
        self._unknown_counts.update(f"attribute: {name[:80]}" for name in attributes if not is_known_attribute(name))
        rest = {
            name: value
            for name, value in row.items()
            if not is_blank(value) and not (name in sources and matcher.consume(value))
        }
        entry = rename_conflicts(("asked", "event"), rest)
        if attributes:
            metadata = as_mapping(decode_json(row.get("metadata")))
            entry["metadata"] = {**metadata, "attributes": matcher.strip_content(attributes, sources)}
        return entry

    def _build(
        self, source: str, session: Session, observations: list[dict[str, Any]], matcher: ContentMatcher
    ) -> ImportedSession:
        trace = self._rows.trace
        trace_input, trace_output = decode_value(trace.get("input")), decode_value(trace.get("output"))
        rows = [trace, *self._rows.observations.values()]
        times = (row.get(name) for row in rows for name in ("timestamp", "startTime", "endTime"))
        known_times = sorted(filter(None, map(parse_time, times)))
        rest = {
            name: value
            for name, value in trace.items()
            if not is_blank(value) and not (name in ("input", "output") and matcher.consume(value))
        }
        scores = list(self._rows.scores.values())
        recorded: dict[str, Any] = {
            "title": trace.get("name"),
            "tags": trace.get("tags"),
            "user_id": trace.get("userId"),
            "session_id": trace.get("sessionId"),
            "started_at": known_times[0].isoformat() if known_times else None,
            "ended_at": known_times[-1].isoformat() if known_times else None,
            "latency_ms": get_duration_ms(trace),
            "cost": as_number(trace.get("totalCost")),
            **list_models(session),
            "scores": {str(row.get("name")): _get_score(row) for row in scores},
            "score_rows": scores,
            "trace": omit_keys(rest, "id", "name", "tags", "userId", "sessionId"),
            "observations": observations,
        }
        first_input, last_output = find_input_and_output(session)
        use_input = first_input is None and parse_request(trace_input) is None
        use_output = last_output is None and parse_response(trace_output) is None
        return ImportedSession(
            self._rows.id,
            session,
            NAME,
            source,
            trace_input if use_input else first_input,
            trace_output if use_output else last_output,
            {name: value for name, value in recorded.items() if not is_blank(value)},
            dict(self._unknown_counts),
            is_named=True,
            error=self._find_last_error(),
        )

    def _find_last_error(self) -> str | None:
        """Return the error of the outermost observation that ended last; those of tools ended nothing."""
        rows = self._rows.observations
        outer = [
            row
            for row in rows.values()
            if as_text(row.get("parentObservationId")) not in rows and _is_conversation(row, read_observation(row)[0])
        ]
        last = max(outer, key=_get_end, default={})
        return (as_text(last.get("statusMessage")) or CALL_FAILED) if last.get("level") == "ERROR" else None


def _make_step(name: str | int, row: Mapping[str, Any]) -> Step:
    span_call, is_text_only = read_observation(row)
    start = parse_time(row.get("startTime"))
    return Step(
        name,
        as_text(row.get("parentObservationId")),
        None if start is None else start.timestamp(),
        f"observation: {_get_type(row).lower()[:60]}",
        span_call,
        is_text_only,
        read_phase(as_text(row.get("name")) or "", get_attributes(row)),
    )


def _get_end(row: Mapping[str, Any]) -> datetime:
    return parse_time(row.get("endTime") or row.get("startTime")) or _MIN_TIME


def _get_type(row: Mapping[str, Any]) -> str:
    return str(row.get("type")).upper()


def _is_conversation(row: Mapping[str, Any], span_call: SpanCall | None) -> bool:
    """Return False for tools and embeddings, whose input is not a message."""
    if span_call is None:
        return _get_type(row) in _CONTAINER_TYPES
    return span_call.call_type == "model"


def _get_score(row: Mapping[str, Any]) -> Any:
    value, label = row.get("value"), row.get("stringValue")
    return label if label and (value is None or row.get("dataType") == "CATEGORICAL") else value
