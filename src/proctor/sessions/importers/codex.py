"""Codex: one JSON object per line, with `type` and `payload` (`~/.codex/sessions/…/rollout-*.jsonl`).

Items (`response_item`, or bare in older logs) are the conversation; events repeat them and add
tokens and exit codes. Messages of the program are named "context". Turns that were rolled back are
stored and their tokens count, but they are not part of the conversation.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import Role, ToolCall, Usage
from proctor.sessions.genai.values import decode_json, parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_lists, flatten_values
from proctor.sessions.importers.json_values import (
    as_count,
    as_mapping,
    as_number,
    as_text,
    extract_text,
    join_parts,
    omit_keys,
    plain_text,
    remaining_fields,
)
from proctor.sessions.importers.session_builder import CALL_FAILED, SessionBuilder

NAME = "codex"
ROLES: dict[str, Role] = {
    "user": "user", "assistant": "assistant", "system": "system", "developer": "system",
}  # fmt: skip
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
# Tools that the provider runs: the item contains the outcome.
HOSTED_CALLS = ("web_search_call", "image_generation_call")
ITEMS = ("message", "reasoning", *CALLS, *OUTPUTS, *HOSTED_CALLS)
# Events that repeat an item of the conversation.
ECHOES: dict[str, Role] = {"user_message": "user", "agent_message": "assistant"}
ROLLED_BACK = "thread_rolled_back"
_TEXT_TYPES = ("input_text", "output_text", "text")
# Messages that the program writes in the user's role.
_CONTEXT = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<skill>",
    "<turn_aborted>", "<user_shell_command>", "<subagent_notification>",
)  # fmt: skip
_IMAGE_TYPE = "input_image"
_IMAGE_START = re.compile(r"<image(?: [^\n]*)?>")
_IMAGE_END = "</image>"
_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_END_EVENTS = (
    "exec_command_end", "mcp_tool_call_end", "patch_apply_end",
    "web_search_end", "image_generation_end",
)  # fmt: skip
_KNOWN_EVENTS = ("task_", "turn_", "agent_reasoning", "thread_", "error")
# The session ends with one of these events, unless an answer follows.
_FAILURES = ("error", "turn_aborted")
# The program writes the exit code above the output of a command, or in its last line.
_OUTPUT = re.compile(r"^Output:[ \t]*\r?$", re.MULTILINE)
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})\r?$", re.MULTILINE)
_LAST_LINE = re.compile(r"(?:^|\n)Process exited with code (-?\d{1,9})\s*\Z")


class MessageContent(NamedTuple):
    """The content of a message, and the parts that only mark an image in it.

    `texts` are the variants that an event may repeat, most likely first.
    """

    content: Any
    image_marks: list[Any]
    texts: Sequence[str]

    @property
    def is_context(self) -> bool:
        """Return True for a message that the program wrote in the user's role."""
        return self.texts[0].startswith(_CONTEXT)


def parse_content(content: str | list[Any]) -> MessageContent:
    if isinstance(content, str):
        return MessageContent(content, [], [content.strip()])
    marks: list[Any] = []
    parts: list[Any] = []
    for index, part in enumerate(content):
        (marks if _is_image_mark(content, index) else parts).append(part)
    part_texts = [text for part in parts if (text := as_text(as_mapping(part).get("text")))]
    joined = join_parts(parts, types=_TEXT_TYPES)
    texts = ((extract_text(joined) or ""), "".join(part_texts), *part_texts)
    return MessageContent(joined, marks, [*dict.fromkeys(text.strip() for text in texts)])


def _is_image_mark(parts: Sequence[Any], index: int) -> bool:
    """Return True for a text before or after an image that contains its name."""
    text = plain_text(parts[index], _TEXT_TYPES) or ""
    if text == _IMAGE_END:
        return index > 0 and as_mapping(parts[index - 1]).get("type") == _IMAGE_TYPE
    following = as_mapping(parts[index + 1]) if index + 1 < len(parts) else {}
    return following.get("type") == _IMAGE_TYPE and _IMAGE_START.fullmatch(text) is not None


class EchoMatcher:
    """Finds the events whose message no item contains."""

    def __init__(self) -> None:
        self._items: list[tuple[int, Role, Sequence[str]]] = []
        self._events: defaultdict[tuple[Role, str], list[int]] = defaultdict(list)

    def add_item(self, role: Role, content: MessageContent, index: int) -> None:
        self._items.append((index, role, content.texts))

    def add_event(self, role: Role, text: str, index: int) -> None:
        self._events[role, text].append(index)

    def find_unmatched(self) -> Iterator[tuple[int, Role, str]]:
        """Yield the index, role and text of messages that only an event contains."""
        events = {key: list(indexes) for key, indexes in self._events.items()}
        remaining = [
            (index, role, texts)
            for index, role, texts in self._items
            if not _claim_nearest(events.get((role, texts[0]), []), index)
        ]
        for index, role, texts in remaining:
            any(_claim_nearest(events.get((role, text), []), index) for text in texts[1:])
        for (role, text), indexes in events.items():
            for index in indexes:
                yield index, role, text


def _claim_nearest(indexes: list[int], index: int) -> bool:
    """Remove the nearest index: each item has one event, directly before or after it."""
    position = bisect(indexes, index)
    candidates = [n for n in (position - 1, position) if 0 <= n < len(indexes)]
    if not candidates:
        return False
    indexes.pop(min(candidates, key=lambda n: abs(indexes[n] - index)))
    return True


class LogLine(NamedTuple):
    """A line and its number; `rolled_back` are the values that the line rolls back."""

    number: int
    value: Any
    rolled_back: list[Any] | None = None


class _Turn(NamedTuple):
    """The start position of a turn, and its texts; an item and its event are one turn."""

    position: int
    texts: frozenset[str]
    is_event: bool
    is_open: bool = True


class TurnLog:
    """The lines of a session without the turns that were rolled back."""

    def __init__(self) -> None:
        self._lines: list[LogLine] = []
        self._turns: list[_Turn] = []
        self._removed: set[int] = set()
        # Maps the index of a rollback line to the first index that it covers.
        self._covered_from: dict[int, int] = {}

    def lines(self) -> Iterator[LogLine]:
        return (line for index, line in enumerate(self._lines) if index not in self._removed)

    def add_line(self, number: int, value: Any) -> None:
        event, item = get_event(value), get_item(value)
        rolled_back = None
        if event.get("type") == ROLLED_BACK:
            rolled_back = self._roll_back(as_count(event.get("num_turns")) or 0)
        elif event:
            text = (as_text(event.get("message")) or "").strip()
            if text and ECHOES.get(str(event.get("type"))) == "user":
                self._begin_turn(frozenset((text,)), is_event=True)
        elif item:
            self._add_item(item)
        self._lines.append(LogLine(number, value, rolled_back))

    def _add_item(self, item: Mapping[str, Any]) -> None:
        content, role = item.get("content"), item.get("role")
        if item.get("type") != "message" or role == "assistant":
            if self._turns and item.get("type") != "reasoning":
                self._turns[-1] = self._turns[-1]._replace(is_open=False)
        elif role == "user" and isinstance(content, str | list):
            message = parse_content(content)
            if not message.is_context:
                self._begin_turn(frozenset(message.texts), is_event=False)

    def _begin_turn(self, texts: frozenset[str], *, is_event: bool) -> None:
        last = self._turns[-1] if self._turns else None
        if last is not None and last.is_open and last.is_event != is_event:
            # An event directly before or after an item repeats it, even in different words.
            is_adjacent = last.position == len(self._lines) - 1
            if is_adjacent or last.texts & texts:
                self._turns[-1] = last._replace(is_open=False)
                return
        self._turns.append(_Turn(len(self._lines), texts, is_event))

    def _roll_back(self, count: int) -> list[Any] | None:
        """Remove the last turns and return their values; return None if there are no turns."""
        turns = self._turns[-count:] if count else []
        if not turns:
            return None
        del self._turns[-count:]
        first, index, values = turns[0].position, len(self._lines) - 1, []
        self._covered_from[len(self._lines)] = first
        while index >= first:
            if index in self._covered_from:
                index = self._covered_from[index]
            else:
                value = self._lines[index].value
                event = get_event(value)
                if get_item(value) or (event and event.get("type") != "token_count"):
                    self._removed.add(index)
                    values.append(value)
            index -= 1
        return values[::-1]


def get_event(value: Any) -> Mapping[str, Any]:
    line = as_mapping(value)
    return as_mapping(line.get("payload")) if line.get("type") == "event_msg" else {}


def get_item(value: Any) -> Mapping[str, Any]:
    line = as_mapping(value)
    if line.get("type") == "response_item":
        return as_mapping(line.get("payload"))
    return line if line.get("type") in ITEMS and "payload" not in line else {}


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for the envelopes of a rollout, or for bare items after a header with an id."""
    lines = [as_mapping(value) for value in flatten_values(values)]
    if any(line.get("type") in _ENVELOPES and "payload" in line for line in lines):
        return True
    has_items = any(line.get("type") in ITEMS and "message" not in line for line in lines)
    return has_items and any(_is_old_header(line) or "record_type" in line for line in lines)


def _is_old_header(line: Mapping[str, Any]) -> bool:
    return "id" in line and "timestamp" in line and not {"type", "role"} & line.keys()


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file; each header with a new id starts a session."""
    reader: _SessionReader | None = None
    for line, value in flatten_lists(values):
        header_id = as_text(_get_header(value).get("id"))
        if reader is None or (header_id and reader.is_other_session(header_id)):
            if reader is not None:
                yield reader.read(source)
            reader = _SessionReader()
        reader.add_line(line, value)
    if reader is not None:
        yield reader.read(source)


def _get_header(value: Any) -> Mapping[str, Any]:
    """Return the session data of a header line with an id; an empty mapping for other lines."""
    line = as_mapping(value)
    is_header = line.get("type") == "session_meta" or _is_old_header(line)
    header = as_mapping(line.get("payload")) if "payload" in line else line
    return header if is_header and as_text(header.get("id")) is not None else {}


class _SessionReader:
    def __init__(self) -> None:
        self._builder = SessionBuilder()
        self._model: str | None = None
        self._model_calls = 0
        self._totals: dict[str, int] = {}
        self._outcomes: dict[str, tuple[str | None, float | None]] = {}
        self._turns = TurnLog()
        self._echoes = EchoMatcher()
        self._id: str | None = None
        self._is_forked = False
        self._error: str | None = None
        self._item_handlers: dict[str, Callable[[int, Mapping[str, Any]], None]] = {
            "message": self._add_message,
            "reasoning": lambda _, item: self._builder.add_event("reasoning", omit_keys(item, "type")),
            **dict.fromkeys(CALLS, self._add_call),
            **dict.fromkeys(HOSTED_CALLS, self._add_hosted_call),
            **dict.fromkeys(OUTPUTS, self._add_output),
        }

    def is_other_session(self, header_id: str) -> bool:
        return bool(self._id) and header_id != self._id and not self._is_forked

    def add_line(self, line: int, value: Any) -> None:
        """Store a line until all lines are known, because later lines may roll back earlier lines."""
        header = _get_header(value)
        if header and self._id is None:
            self._id = header["id"]
            self._is_forked = header.get("forked_from_id") is not None
        self._turns.add_line(line, value)

    def read(self, source: str) -> ImportedSession:
        builder = self._builder
        for number, value, rolled_back in self._turns.lines():
            if rolled_back is None:
                self._read_line(number, value)
            else:
                builder.add_event("rewound", {"line": value, "taken": rolled_back})
                for item in (*rolled_back, value):
                    builder.add_time(as_mapping(item).get("timestamp"))
        for index, role, text in self._echoes.find_unmatched():
            builder.insert_message(index, role, text)
        return msgspec.structs.replace(builder.build(self._id, NAME, source), error=self._error)

    def _read_line(self, line: int, value: Any) -> None:
        fields, builder = as_mapping(value), self._builder
        builder.add_time(fields.get("timestamp"))
        line_type, payload = fields.get("type"), as_mapping(fields.get("payload"))
        if header := _get_header(value):
            if "about" in builder.recorded:
                builder.add_event("session_meta", header)
            else:
                builder.recorded["about"] = header
                self._model = as_text(header.get("model")) or self._model
            builder.add_note(line, omit_keys(fields, "type", "payload") if payload else {})
        elif line_type in ("turn_context", "compacted"):
            if line_type == "turn_context":
                self._model = as_text(payload.get("model")) or self._model
            builder.add_event(str(line_type), omit_keys(fields, "type"))
        elif line_type in ("response_item", "event_msg") and payload:
            (self._add_item if line_type == "response_item" else self._add_event)(line, payload, fields)
            builder.add_note(line, omit_keys(fields, "type", "payload"))
        elif line_type in ITEMS and "payload" not in fields:
            self._add_item(line, fields, fields)
        elif "record_type" in fields:
            builder.add_event("state", fields)
        else:
            builder.add_unknown(None, value)

    def _add_item(self, line: int, item: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        handler = self._item_handlers.get(str(item.get("type")))
        if handler is None:
            self._builder.add_unknown(describe_type(item), envelope)
        else:
            handler(line, item)

    def _add_message(self, line: int, item: Mapping[str, Any]) -> None:
        role, builder = ROLES.get(str(item.get("role"))), self._builder
        content = item.get("content")
        if role is None or not isinstance(content, str | list):
            other_role = as_text(item.get("role"))
            if role is None and other_role is not None and content not in (None, "", []):
                builder.add_unknown_role(other_role, content, omit_keys(item, "role", "content"))
            else:
                builder.add_unknown("message", item)
            return
        message = parse_content(content)
        self._echoes.add_item(role, message, len(builder))
        name = "context" if role == "user" and message.is_context else None
        builder.add_message(role, message.content, name=name)
        self._error = None if role == "assistant" else self._error
        builder.add_note(line, omit_keys(item, "type", "role", "content"))
        builder.add_note(line, {"frames": message.image_marks} if message.image_marks else {})

    def _add_call(self, line: int, item: Mapping[str, Any]) -> None:
        item_type, name = str(item["type"]), as_text(item.get("name"))
        key = next((key for key in ("input", "arguments", "action") if key in item), "")
        if name is None and item_type in ("function_call", "custom_tool_call"):
            self._builder.add_unknown(item_type, item)
            return
        call_id = as_text(item.get("call_id")) or as_text(item.get("id"))
        name = name or item_type.removesuffix("_call")
        self._builder.add_call(ToolCall(name, parse_arguments(item.get(key)), call_id=call_id))
        read_fields = {"call_id": call_id, "name": name, "type": item_type}
        self._builder.add_note(line, remaining_fields(omit_keys(item, key), read_fields))

    def _add_hosted_call(self, line: int, item: Mapping[str, Any]) -> None:
        """Add a call that the provider ran; the log may lack its result."""
        item_type, status, call_id = str(item["type"]), item.get("status"), as_text(item.get("id"))
        key = "action" if "action" in item else "revised_prompt"
        result = item.get("result")
        call = ToolCall(item_type.removesuffix("_call"), parse_arguments(item.get(key)), call_id=call_id)
        read_fields: dict[str, Any] = {"type": item_type, "id": call_id}
        if status in ("completed", "failed"):
            error = CALL_FAILED if status == "failed" else None
            outcome = status if result is None and error is None else result
            self._builder.add_finished_call(msgspec.structs.replace(call, result=outcome, error=error))
            read_fields["result"] = result
        else:
            self._builder.add_call(call)
        self._builder.add_note(line, remaining_fields(omit_keys(item, key), read_fields))

    def _add_output(self, line: int, item: Mapping[str, Any]) -> None:
        call_id, output = as_text(item.get("call_id")), item.get("output")
        result, code, seconds, rest = _parse_output(output)
        # Codex reuses ids: an outcome belongs to one output only.
        error, duration = self._outcomes.pop(call_id or "", (None, None))
        if error is None and code:
            error = f"exit code {code}"
        if error is None and as_mapping(output).get("success") is False:
            error = CALL_FAILED
        if duration is None and seconds is not None:
            duration = seconds * 1000
        self._builder.add_result(call_id, result, error=error, duration_ms=duration)
        self._builder.add_note(line, remaining_fields(item, {"output": output, "call_id": call_id}) | rest)

    def _add_event(self, _line: int, event: Mapping[str, Any], envelope: Mapping[str, Any]) -> None:
        builder, event_type = self._builder, str(event.get("type"))
        if event_type in _FAILURES:
            self._error = as_text(event.get("message")) or as_text(event.get("reason")) or event_type
        elif ECHOES.get(event_type) == "assistant":
            self._error = None
        if event_type == "token_count":
            self._add_tokens(event)
        elif event_type in ECHOES:
            if text := (as_text(event.get("message")) or "").strip():
                self._echoes.add_event(ECHOES[event_type], text, len(builder))
            builder.add_event(event_type, {"event": event})
        elif event_type in _END_EVENTS:
            self._add_outcome(event)
            builder.add_event(event_type, {"event": event})
        elif event_type.startswith(_KNOWN_EVENTS) and event_type != ROLLED_BACK:
            builder.add_event(event_type, omit_keys(event, "type"))
        else:
            builder.add_unknown(f"event: {event_type}", envelope)

    def _add_outcome(self, event: Mapping[str, Any]) -> None:
        """Add the outcome of a call; this event may come before or after the output."""
        call_id, code = as_text(event.get("call_id")), event.get("exit_code")
        has_failed = event.get("status") in ("failed", "declined") or event.get("success") is False
        error = None
        if has_failed or (isinstance(code, int) and code != 0):
            error = f"exit code {code}" if isinstance(code, int) else CALL_FAILED
        times = as_mapping(event.get("duration"))
        seconds, nanoseconds = as_number(times.get("secs")), as_number(times.get("nanos"))
        duration = None if seconds is None else seconds * 1e3 + (nanoseconds or 0.0) / 1e6
        if call_id is not None and not self._builder.set_call_outcome(call_id, error, duration):
            self._outcomes[call_id] = error, duration

    def _add_tokens(self, event: Mapping[str, Any]) -> None:
        """Add the usage of a model call; a repeated total is the same call."""
        info = as_mapping(event.get("info"))
        total, last = as_mapping(info.get("total_token_usage")), as_mapping(info.get("last_token_usage"))
        self._builder.add_event("token_count", omit_keys(event, "type"))
        counts = {name: n for name, item in total.items() if (n := as_count(item)) is not None}
        if counts and counts == self._totals:
            return
        if not last and counts:
            previous = self._totals
            if any(n < previous.get(name, 0) for name, n in counts.items()):
                previous = {}  # The counter was reset.
            last = {name: n - previous.get(name, 0) for name, n in counts.items()}
        self._totals = counts or self._totals
        if last:
            self._model_calls += 1
            self._builder.add_model_call(f"call {self._model_calls}", self._model, read_usage(last))


def read_usage(fields: Mapping[str, Any]) -> Usage:
    """Return the usage of a call; cached tokens are part of the input."""
    names = ("input_tokens", "output_tokens", "cached_input_tokens")
    return Usage(*(as_count(fields.get(name)) for name in names))


def _parse_output(output: Any) -> tuple[Any, int | None, float | None, dict[str, Any]]:
    """Return the output of a tool, its exit code, its duration in seconds, and the remaining fields."""
    if isinstance(output, list):
        return join_parts(output, types=_TEXT_TYPES), None, None, {}
    if not isinstance(output, str):
        return output, None, None, {}
    decoded = as_mapping(decode_json(output))
    metadata = as_mapping(decoded.get("metadata"))
    if "output" not in decoded or not metadata:
        return output, _find_exit_code(output), None, {}
    code, seconds = metadata.get("exit_code"), as_number(metadata.get("duration_seconds"))
    rest = {"beside output": omit_keys(decoded, "output")}
    return decoded["output"], code if isinstance(code, int) else None, seconds, rest


def _find_exit_code(output: str) -> int | None:
    """Return the exit code that the program wrote; ignore the output of the command."""
    start = _OUTPUT.search(output)
    codes = _EXIT.findall(output, 0, start.start()) if start else []
    codes = codes or _LAST_LINE.findall(output)
    return int(codes[-1]) if codes else None
