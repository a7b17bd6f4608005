"""Assemble the spans of a trace into a session, in order of their start and with each call once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.core.names import UniqueNames
from proctor.records.session import CustomEvent, Event, Message, ModelCall, Session, ToolCall
from proctor.sessions.genai.spans import SpanCall
from proctor.sessions.genai.transcript import Transcript
from proctor.sessions.importers.imported_session import describe_type
from proctor.sessions.importers.json_values import extract_text, find_unknown_parts
from proctor.sessions.importers.session_builder import KeyedQueue, unanswered_event

THINKING = "thinking"
# Field names of a recorded span.
_RECORD_FIELDS = frozenset((
    "id", "parent", "name", "began", "ended", "attributes", "body", "events", "scope", "odd", "at",
    "observed", "asked", "event",
))  # fmt: skip


class ToolSpanMatcher:
    """Finds the span of each requested tool call; each span matches once.

    `requested` are all calls that messages contain, so that a call in the history cannot match another call's span by
    name alone.
    """

    def __init__(self, spans: Iterable[tuple[int, ToolCall]], requested: Iterable[ToolCall]) -> None:
        self._queue = KeyedQueue()
        self._exact_matches: dict[Hashable, int] = {}
        for number, call in spans:
            key = _content_key(call)
            self._queue.put(number, ("any", *key), ("any", call.name))
            if call.call_id is None:
                self._queue.put(number, ("bare", *key), ("bare", call.name))
            else:
                self._queue.put(number, ("id", call.call_id))
        for call in requested:
            exact_key = call.call_id, *_content_key(call)
            if exact_key not in self._exact_matches and (match := self._find_exact(call)) is not None:
                self._exact_matches[exact_key] = match

    def find(self, call: ToolCall) -> int | None:
        """Find a span by id, then by arguments, then by name."""
        if (number := self._exact_matches.pop((call.call_id, *_content_key(call)), None)) is not None:
            return number
        number = self._find_exact(call)
        group = "any" if call.call_id is None else "bare"
        return self._queue.take((group, call.name)) if number is None else number

    def _find_exact(self, call: ToolCall) -> int | None:
        if call.call_id is None:
            return self._queue.take(("any", *_content_key(call)))
        return self._queue.take(("id", call.call_id), ("bare", *_content_key(call)))


class ToolResultMatcher:
    """Finds the call of each tool result that a model received.

    Models reuse ids, so a result belongs to the preceding call in its conversation.
    """

    def __init__(self) -> None:
        self._queue = KeyedQueue()
        self._id_counts: Counter[str] = Counter()

    def add_call(self, number: int, call: ToolCall) -> None:
        """Add a call that waits for its result, under a unique number."""
        self._queue.put(number, (call.call_id, *_content_key(call)), ("name", call.name))
        if call.call_id is None:
            self._queue.put(number, ("bare",))
        else:
            self._id_counts[call.call_id] += 1
            self._queue.put(number, ("id", call.call_id))

    def find_call(self, result: Message, preceding: ToolCall | None) -> int | None:
        """Return the number of the call; `preceding` is the matching call in the same conversation."""
        keys: list[Hashable] = []
        if preceding is not None:
            keys.append((preceding.call_id, *_content_key(preceding)))
        if result.call_id is None:
            keys.append(("bare",) if result.name is None else ("name", result.name))
        elif preceding is None or self._id_counts[result.call_id] == 1:
            keys.append(("id", result.call_id))
        return self._queue.take(*keys)


def match_results(messages: Sequence[Message]) -> list[ToolCall | None]:
    """Return, for each message of a conversation, the call that it answers, or None."""
    open_calls = KeyedQueue()
    last_message: dict[str, int] = {}
    calls: list[ToolCall] = []
    matches: list[ToolCall | None] = []
    for number, message in enumerate(messages):
        match = None
        if message.role == "tool":
            call_id = message.call_id
            if call_id is None:
                match = open_calls.take(("name", message.name))
            else:
                match = open_calls.take(("id", call_id, last_message.get(call_id)))
        matches.append(None if match is None else calls[match])
        for call in message.tool_calls:
            # A result may have neither an id nor a name.
            open_calls.put(len(calls), ("name", call.name), ("name", None))
            if call.call_id is not None:
                # A later message that reuses an id gets its own results.
                last_message[call.call_id] = number
                open_calls.put(len(calls), ("id", call.call_id, number))
            calls.append(call)
    return matches


def _content_key(call: ToolCall) -> tuple[str, str]:
    return call.name, repr(sorted(call.arguments.items()))


class Step(NamedTuple):
    """One span; `span_call` is its model or tool call, `label` the event type of a span without a call.

    `id` is a number for a span without an id, so that it cannot be a parent. `is_text_only` is True if its messages
    consist of a single text. `phase` is set if the span may be a phase of a call.
    """

    id: str | int
    parent: str | None
    start: float | None
    label: str
    span_call: SpanCall | None = None
    is_text_only: bool = False
    phase: str = ""


class AssembledTrace(NamedTuple):
    """The events of a session, and for each step its relation to them.

    `indexes` are the indexes of the events that represent the steps; a step without a call is a
    `CustomEvent` without data. `contents` are the events that a step contains, and `inputs` the indexes
    of the messages that its model received, if the session contains them verbatim.
    """

    events: list[Event]
    indexes: list[int]
    contents: list[list[Event]]
    inputs: list[list[int]]


def assemble_trace(steps: Sequence[Step]) -> AssembledTrace:
    """Assemble steps into one session.

    Nested spans of the same call count once: the inner span is the call, and the messages and the
    usage come from the span that contains them. Repeated history is added once. A requested tool
    without a span becomes a call with the result that the model received.
    """
    depths = _get_depths(steps)
    order = _sort_steps(steps, depths)
    assembler = _Assembler(steps, _NestedCalls(steps, depths), order)
    for number in order:
        assembler.add_step(number)
    assembler.finish()
    numbers = range(len(steps))
    return AssembledTrace(
        assembler.events,
        [assembler.indexes[number] for number in numbers],
        [assembler.get_contents(number) for number in numbers],
        [assembler.get_inputs(number) for number in numbers],
    )


class _Assembler:
    def __init__(self, steps: Sequence[Step], nested: _NestedCalls, order: Sequence[int]) -> None:
        self._steps = steps
        self._nested = nested
        self._transcript = Transcript()
        self._message_indexes: dict[str, int] = {}
        self._thoughts: set[str] = set()
        span_calls = [step.span_call for step in steps if step.span_call is not None]
        messages = (message for item in span_calls for message in (*item.inputs, *item.outputs))
        requested = (call for message in messages for call in message.tool_calls)
        tool_spans = [
            (number, span_call.call)
            for number in order
            if (span_call := steps[number].span_call) is not None
            and isinstance(span_call.call, ToolCall)
            and nested.is_innermost(number)
        ]
        self._spans = ToolSpanMatcher(tool_spans, requested)
        self._results = ToolResultMatcher()
        self._open_calls: dict[int, ToolCall] = {}
        self._call_ids: dict[int, str] = {}
        self._order = order
        self.events: list[Event] = []
        self.indexes: dict[int, int] = {}

    def add_step(self, number: int) -> None:
        step = self._steps[number]
        span_call = step.span_call
        if span_call is None:
            self.indexes[number] = len(self.events)
            self.events.append(CustomEvent(step.label, None))
            return
        has_messages = self._nested.has_messages(number)
        if has_messages:
            self._add_messages(span_call)
        self.indexes[number] = len(self.events)
        if self._nested.is_innermost(number):
            call, outer_usage = span_call.call, self._nested.outer_usage.get(number)
            if outer_usage is not None and isinstance(call, ModelCall):
                call = msgspec.structs.replace(call, usage=msgspec.structs.replace(call.usage, **outer_usage))
            self.events.append(call)
        else:
            self.events.append(CustomEvent(step.label, None))
        if has_messages:
            hosted = _find_hosted_calls(span_call)
            calls = (call for message in span_call.outputs for call in message.tool_calls)
            self._add_calls([call for call in calls if id(call) not in hosted])

    def _add_messages(self, span_call: SpanCall) -> None:
        new = self._transcript.add(span_call.inputs, span_call.outputs)
        calls = _map_results(span_call.inputs)
        for message in new[: len(new) - len(span_call.outputs)]:
            self._add_message(message)
            self._add_calls(message.tool_calls)
            self._add_result(message, calls)
        for thought in span_call.thoughts:
            if (key := repr(thought)) not in self._thoughts:
                self._thoughts.add(key)
                self.events.append(CustomEvent(THINKING, thought))
        hosted, calls = _find_hosted_calls(span_call), _map_results(span_call.outputs)
        for message in span_call.outputs:
            self._add_message(message)
            self._add_calls([call for call in message.tool_calls if id(call) in hosted])
            self._add_result(message, calls)

    def _add_message(self, message: Message) -> None:
        self._message_indexes[repr(message)] = len(self.events)
        self.events.append(message)

    def _add_calls(self, calls: Sequence[ToolCall]) -> None:
        """Add the calls without a span; they are unanswered until their result arrives."""
        for call in calls:
            number = self._spans.find(call)
            if number is None:
                self._open_calls[len(self.events)] = call
                self._results.add_call(len(self.events), call)
                self.events.append(unanswered_event(call))
                continue
            self._results.add_call(-1 - number, call)
            if call.call_id is not None:
                self._call_ids[number] = call.call_id

    def _add_result(self, message: Message, calls: Mapping[int, ToolCall | None]) -> None:
        if message.role != "tool":
            return
        index = self._results.find_call(message, calls[id(message)])
        call = None if index is None else self._open_calls.pop(index, None)
        if index is not None and call is not None:
            self.events[index] = msgspec.structs.replace(call, result=message.content)

    def finish(self) -> None:
        """Add results and call ids from spans whose messages were not added."""
        seen_ids: set[str] = set()
        for number in self._order if self._open_calls else ():
            span_call = self._steps[number].span_call
            inputs = () if span_call is None else span_call.inputs
            results = [message for message in inputs if message.role == "tool"]
            calls = _map_results(inputs) if results else {}
            for message in results:
                if (key := repr(message)) not in self._message_indexes and key not in seen_ids:
                    seen_ids.add(key)
                    self._add_result(message, calls)
        for number, call_id in self._call_ids.items():
            index = self.indexes[number]
            call = self.events[index]
            if isinstance(call, ToolCall) and call.call_id is None:
                self.events[index] = msgspec.structs.replace(call, call_id=call_id)

    def get_contents(self, number: int) -> list[Event]:
        """Return the events that a step contains and the session contains verbatim."""
        span_call = self._steps[number].span_call
        if span_call is None:
            return []
        inputs = [message for message in span_call.inputs if repr(message) in self._message_indexes]
        outputs = [message for message in span_call.outputs if repr(message) in self._message_indexes]
        thoughts = [CustomEvent(THINKING, t) for t in span_call.thoughts if repr(t) in self._thoughts]
        call = [span_call.call] if self._nested.is_innermost(number) else []
        return [*inputs, *thoughts, *outputs, *call]

    def get_inputs(self, number: int) -> list[int]:
        span_call = self._steps[number].span_call
        keys = () if span_call is None else map(repr, span_call.inputs)
        return [self._message_indexes[key] for key in keys if key in self._message_indexes]


def _map_results(messages: Sequence[Message]) -> dict[int, ToolCall | None]:
    return {id(item): call for item, call in zip(messages, match_results(messages), strict=True)}


class _NestedCalls:
    """Finds nested spans that describe the same call."""

    def __init__(self, steps: Sequence[Step], depths: Sequence[int]) -> None:
        self._steps = steps
        self._best_inside: dict[int, int] = {}
        self._best_outside: dict[int, int] = {}
        outer = {
            number: parent
            for number, parent in _find_outer_calls(steps, depths).items()
            if _is_same_call(steps[parent].span_call, steps[number].span_call)
        }
        for number, parent in outer.items():
            detail = max(_rate_detail(steps[parent]), self._best_outside.get(parent, 0))
            self._best_outside[number] = detail
        for number, parent in reversed(outer.items()):
            detail = max(_rate_detail(steps[number]), self._best_inside.get(number, 0))
            self._best_inside[parent] = max(self._best_inside.get(parent, 0), detail)
        self.outer_usage = _collect_outer_usage(steps, outer, depths)

    def is_innermost(self, number: int) -> bool:
        return number not in self._best_inside

    def has_messages(self, number: int) -> bool:
        """Return True if the messages of the call come from this span."""
        detail = _rate_detail(self._steps[number])
        is_best_outside = self._best_outside.get(number, 0) <= detail
        return detail > self._best_inside.get(number, 0) and is_best_outside


def _collect_outer_usage(
    steps: Sequence[Step], outer: Mapping[int, int], depths: Sequence[int]
) -> dict[int, dict[str, Any]]:
    """Return the usage that only an enclosing span reports, by call.

    The usage of the nearest span counts. If the span contains several calls, the last call gets all of it.
    """
    inner_usages: dict[int, dict[str, Any]] = {}
    innermost: dict[int, int] = {}
    usages: dict[int, dict[str, Any]] = {}
    for number in sorted({*outer, *outer.values()}, key=depths.__getitem__, reverse=True):
        inner_usage, call = inner_usages.pop(number, {}), innermost.pop(number, number)
        span_call = steps[number].span_call
        model_call = None if span_call is None else span_call.call
        counts = msgspec.structs.asdict(model_call.usage) if isinstance(model_call, ModelCall) else {}
        usage = {name: n for name, n in counts.items() if n is not None and name not in inner_usage}
        if call != number and usage:
            usages.setdefault(call, {}).update(usage)
        parent = outer.get(number)
        if parent is not None:
            inner_usages.setdefault(parent, {}).update(inner_usage | usage)
            innermost[parent] = max(call, innermost.get(parent, call))
    return usages


def _rate_detail(step: Step) -> int:
    """Return 0 for a step without messages, 1 for a single text, 2 for messages."""
    if step.span_call is None or not (step.span_call.inputs or step.span_call.outputs):
        return 0
    return 1 if step.is_text_only else 2


def _find_outer_calls(steps: Sequence[Step], depths: Sequence[int]) -> dict[int, int]:
    """Return, for each span with a call, the nearest enclosing span with a call; outer spans come first."""
    by_id: dict[str | int, int] = {step.id: n for n, step in reversed(list(enumerate(steps)))}
    nearest: dict[int, int] = {}
    for number in sorted(range(len(steps)), key=depths.__getitem__):
        parent = by_id.get(steps[number].parent or "")
        if parent is not None and depths[parent] < depths[number]:
            outer = nearest.get(parent) if steps[parent].span_call is None else parent
            if outer is not None:
                nearest[number] = outer
    return {number: outer for number, outer in nearest.items() if steps[number].span_call}


def _find_hosted_calls(span_call: SpanCall) -> set[int]:
    """Return the calls that the provider ran itself: their results are in the same answer."""
    return {id(call) for call in match_results(span_call.outputs) if call is not None}


def _is_same_call(outer: SpanCall | None, inner: SpanCall | None) -> bool:
    if outer is None or inner is None or outer.call_type != inner.call_type:
        return False
    if not isinstance(outer.call, ToolCall):
        return True
    return isinstance(inner.call, ToolCall) and outer.call.name == inner.call.name


def _sort_steps(steps: Sequence[Step], depths: Sequence[int]) -> list[int]:
    """Sort by start time, then outer spans first."""

    def rank(number: int) -> tuple[float, int]:
        start = steps[number].start
        return float("inf") if start is None else start, depths[number]

    return sorted(range(len(steps)), key=rank)


def _get_depths(steps: Sequence[Step]) -> list[int]:
    parents: dict[str | int, str | None] = {step.id: step.parent for step in reversed(steps)}
    depths: dict[str | int | None, int] = {None: -1}
    for step in steps:
        path: list[str | int] = []
        node: str | int | None = step.id
        while node not in depths and node in parents:
            assert node is not None
            path.append(node)
            depths[node] = 0  # Ends a cycle.
            node = parents[node]
        depth = depths.get(node, -1)
        for inner in reversed(path):
            depth += 1
            depths[inner] = depth
    return [depths[step.id] for step in steps]


def merge_source_fields(record: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a span record with the remaining fields of its source; conflicting names get a prefix."""
    merged = {**record, **rename_conflicts(_RECORD_FIELDS, source)}
    return {name: value for name, value in merged.items() if value not in (None, {}, [], "")}


def rename_conflicts(reserved: Collection[str], source: Mapping[str, Any]) -> dict[str, Any]:
    """Rename source fields whose name is reserved, without overwriting another field."""
    names = UniqueNames(" ")
    for name in source:
        if name not in reserved:
            names.make_unique(name)
    return {names.make_unique(f"their {name}") if name in reserved else name: item for name, item in source.items()}


def find_input_and_output(session: Session) -> tuple[Any, Any]:
    """Return the first nonempty user content and the last nonempty assistant content, or None."""
    messages = [message for message in session[Message] if message.content]
    users = (_simplify(item.content, "user") for item in messages if item.role == "user")
    assistants = (_simplify(item.content, "assistant") for item in reversed(messages) if item.role == "assistant")
    return next(users, None), next(assistants, None)


def _simplify(content: Any, role: str) -> Any:
    """Return the text of a list of parts; return any other content unchanged."""
    is_parts = isinstance(content, list) and all(
        isinstance(part, str) or (isinstance(part, dict) and ("type" in part or len(part) == 1)) for part in content
    )
    return (extract_text(content, role) or content) if is_parts else content


def count_unknown_parts(session: Session) -> dict[str, int]:
    """Count the message parts of unknown types, by type."""
    parts = (part for message in session[Message] for part in find_unknown_parts(message.content))
    return Counter(f"part: {describe_type(part)}" for part in parts)


def list_models(session: Session) -> dict[str, Any]:
    """Return the first `model` of a session, and all `models` if there are several."""
    models = list(dict.fromkeys(call.model for call in session[ModelCall]))
    if not models:
        return {}
    return {"model": models[0], **({"models": models} if len(models) > 1 else {})}
