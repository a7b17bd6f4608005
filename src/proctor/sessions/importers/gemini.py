"""Gemini CLI: a JSON document with `messages`, or JSONL in which later lines change earlier lines.

A repeated id updates its message, `$set` updates the session, `$rewindTo` removes a message and all
after it (they are stored as an event and their tokens count). Messages in a `$set` are the model's new
history; messages that replace others are named "summary". Checkpoints (`role` and `parts`) are read too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.records.session import Role, ToolCall, Usage
from proctor.sessions.genai.values import BREAK, parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_lists, flatten_values
from proctor.sessions.importers.json_values import (
    as_count,
    as_list,
    as_mapping,
    as_text,
    join_parts,
    omit_keys,
    remaining_fields,
)
from proctor.sessions.importers.session_builder import CALL_FAILED, SessionBuilder

NAME = "gemini"
_MEDIA = ("inlineData", "fileData", "executableCode", "codeExecutionResult")
_HEADER = ("sessionId", "projectHash", "startTime")
_FAILED = ("error", "cancelled", "canceled")
_CALL_FIELDS = ("id", "name", "args", "result")
_NOTICES = ("info", "error", "warning")
_TURNS = ("user", "gemini")


def add_parts(
    builder: SessionBuilder,
    role: str,
    parts: Sequence[Any],
    *,
    name: str | None = None,
    status: str | None = None,
    calls: Sequence[ToolCall] = (),
) -> dict[str, Any]:
    """Add the parts of a message and its separate `calls`; return the remaining fields for a note."""
    content: list[Any] = []
    calls = [*calls]
    rest: list[Any] = []
    for part in parts:
        fields = as_mapping(part)
        function = as_mapping(fields.get("functionCall"))
        if fields.get("thought") is True:
            builder.add_event("thinking", omit_keys(fields, "thought"))
        elif as_text(function.get("name")):
            calls.append(call := _read_call(function, as_text(fields.get("thoughtSignature"))))
            read_fields = {"id": call.call_id, "name": call.name, "args": function.get("args")}
            signed = {"functionCall": function, "thoughtSignature": call.signature}
            rest += _note_call(call.call_id, remaining_fields(fields, signed) | remaining_fields(function, read_fields))
        elif isinstance(fields.get("functionResponse"), dict):
            rest += _add_response(builder, fields, status)
        elif isinstance(fields.get("text"), str) or any(key in fields for key in _MEDIA):
            content.append(part)
            continue
        else:
            builder.add_unknown(f"part: {describe_type(part)}", part)
        content.append(BREAK)
    if calls or any(part is not BREAK for part in content):
        speaker: Role = "user" if role == "user" else "assistant"
        builder.add_message(speaker, join_parts(content, speaker, ()), name=name, calls=calls)
    return {"parts": rest} if rest else {}


def _read_call(call: Mapping[str, Any], signature: str | None = None) -> ToolCall:
    call_id = as_text(call.get("id"))
    return ToolCall(call["name"], parse_arguments(call.get("args")), call_id=call_id, signature=signature)


def _add_response(builder: SessionBuilder, part: Mapping[str, Any], status: str | None) -> list[Any]:
    response = part["functionResponse"]
    output, call_id = response.get("response"), as_text(response.get("id"))
    message = as_mapping(output).get("error")
    error = None
    if message is not None or status in _FAILED:
        is_text = isinstance(message, str) and message
        error = message if is_text else f"the call ended with {status or 'an error'}"
    result = output["output"] if isinstance(output, dict) and set(output) == {"output"} else output
    name = builder.add_result(call_id, result, error=error, name=as_text(response.get("name")))
    read_fields = {"id": call_id, "name": name, "response": output}
    return _note_call(call_id, omit_keys(part, "functionResponse") | remaining_fields(response, read_fields))


def _note_call(call_id: str | None, fields: dict[str, Any]) -> list[Any]:
    return [{"of": call_id, **fields}] if fields else []


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for a session header, a line of Gemini, or `role` with `parts`."""
    return any(_is_gemini(as_mapping(value)) for value in flatten_values(values))


def _is_gemini(fields: Mapping[str, Any]) -> bool:
    is_header = sum(key in fields for key in _HEADER) > 1 and not {"uuid", "role"} & fields.keys()
    is_message = fields.get("type") == "gemini" and "content" in fields
    return is_header or is_message or "$rewindTo" in fields or _is_checkpoint(fields)


def _is_checkpoint(fields: Mapping[str, Any]) -> bool:
    """Return True for `role` with `parts`; other formats give each part a type."""
    parts = fields.get("parts")
    has_types = any("type" in as_mapping(part) for part in as_list(parts))
    return fields.get("role") in ("user", "model") and isinstance(parts, list) and not has_types


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file; each header starts a session."""
    reader: _SessionReader | None = None
    for line, value in flatten_lists(values):
        fields = as_mapping(value)
        is_header = any(key in fields for key in _HEADER) and "type" not in fields
        if reader is None or (is_header and reader.has_header):
            if reader is not None:
                yield reader.read(source)
            reader = _SessionReader()
        reader.add_line(line, value, is_header=is_header)
    if reader is not None:
        yield reader.read(source)


class _SessionReader:
    """Collects all lines first, because later lines change earlier lines."""

    def __init__(self) -> None:
        self._builder = SessionBuilder()
        self._header: dict[str, Any] = {}
        # Keyed by message id, or by a number for a value without an id.
        self._values: dict[str | int, tuple[int, Any]] = {}
        self._next_number = 0
        self._headers: list[dict[str, Any]] = []
        self._amended: list[dict[str, Any]] = []
        self._summaries: set[str] = set()
        self._results: dict[str, Sequence[Any]] = {}
        self.has_header = False

    def add_line(self, line: int, value: Any, *, is_header: bool = False) -> None:
        fields = as_mapping(value)
        if is_header:
            self.has_header = True
            self._update_session(line, fields)
        elif isinstance(fields.get("$set"), dict):
            self._update_session(line, fields["$set"])
            if rest := omit_keys(fields, "$set"):
                self._add_value(line, rest)
        elif (target := as_text(fields.get("$rewindTo"))) is not None:
            self._rewind(line, target, fields)
        else:
            self._add_value(line, value)

    def _update_session(self, line: int, fields: Mapping[str, Any]) -> None:
        self._header |= omit_keys(fields, "messages")
        self._headers.append(omit_keys(fields, "messages"))
        messages = fields.get("messages")
        self._summaries |= self._find_replacements(as_list(messages))
        for message in as_list(messages):
            self._add_value(line, message)
        if messages is not None and not isinstance(messages, list):
            self._add_value(line, {"messages": messages})

    def _find_replacements(self, messages: Sequence[Any]) -> set[str]:
        """Return the ids of new messages in a history that lacks earlier messages.

        New messages after the last known message continue the conversation.
        """
        if not messages:
            return set()
        ids = [as_text(as_mapping(message).get("id")) for message in messages]
        turns = {key for key, (_, item) in self._values.items() if as_mapping(item).get("type") in _TURNS}
        if turns <= set(ids):
            return set()
        known_indexes = [index for index, message_id in enumerate(ids) if message_id in self._values]
        candidates = ids[: known_indexes[-1]] if known_indexes else ids
        return {item for item in candidates if item is not None and item not in self._values}

    def _add_value(self, line: int, value: Any) -> None:
        key = as_text(as_mapping(value).get("id"))
        if key is None:
            self._add_unnamed(line, value)
        elif key in self._values:
            first_line, previous = self._values[key]
            changed = {name: item for name, item in previous.items() if value.get(name, item) != item}
            self._amended += [{"id": key, **changed}] if changed else []
            self._values[key] = first_line, {**previous, **value}
        else:
            self._values[key] = line, value

    def _add_unnamed(self, line: int, value: Any) -> None:
        self._values[self._next_number] = line, value
        self._next_number += 1

    def _rewind(self, line: int, target: str, fields: Mapping[str, Any]) -> None:
        if target not in self._values:
            self._add_unnamed(line, fields)
            return
        removed: list[Any] = []
        key: str | int | None = None
        while key != target:
            key, (_, value) = self._values.popitem()
            if isinstance(value, _Rewound):
                # Flatten earlier rewinds, because they could be nested without limit.
                removed += [value["line"], *reversed(value["taken"])]
            else:
                removed.append(value)
        self._add_unnamed(line, _Rewound({"line": fields, "taken": removed[::-1]}))

    def read(self, source: str) -> ImportedSession:
        builder, header = self._builder, self._header
        for line, value in self._values.values():
            self._read_value(line, value)
        builder.recorded |= {"about": header} if header else {}
        if len(self._headers) > 1:
            builder.recorded["about_before"] = self._headers
        if self._amended:
            builder.recorded["amended"] = self._amended
        if (title := as_text(header.get("summary"))) is not None:
            builder.recorded["title"] = title
        builder.add_time(header.get("startTime"))
        return builder.build(as_text(header.get("sessionId")), NAME, source)

    def _read_value(self, line: int, value: Any) -> None:
        fields, builder = as_mapping(value), self._builder
        value_type = fields.get("type")
        builder.add_time(fields.get("timestamp"))
        if isinstance(value, _Rewound):
            builder.add_event("rewound", dict(value))
            for removed in map(as_mapping, value["taken"]):
                self._add_usage((line, len(builder)), removed)
        elif value_type in _TURNS and "content" in fields:
            (self._add_user if value_type == "user" else self._add_gemini)(line, fields)
            lists = {key: item for key in ("thoughts", "toolCalls") if isinstance(item := fields.get(key), list)}
            read_fields = {name: fields.get(name) for name in ("content", "displayContent")}
            read_fields |= {**lists, "model": as_text(fields.get("model"))}
            builder.add_note(line, remaining_fields(omit_keys(fields, "type"), read_fields))
        elif value_type in _NOTICES and "content" in fields:
            builder.add_event(str(value_type), omit_keys(fields, "type"))
        elif _is_checkpoint(fields):
            rest = add_parts(builder, fields["role"], fields["parts"])
            builder.add_note(line, {**omit_keys(fields, "role", "parts"), **rest})
        else:
            builder.add_unknown(None, value)

    def _add_user(self, line: int, fields: Mapping[str, Any]) -> None:
        content, display = fields["content"], fields.get("displayContent")
        name = self._get_name(fields)
        if isinstance(content, list):
            new = self._drop_repeated(line, content, "functionResponse", self._results)
            self._builder.add_note(line, add_parts(self._builder, "user", new, name=name))
        elif isinstance(content, str):
            self._builder.add_message("user", content, name=name)
        else:
            self._builder.add_unknown(f"user content: {describe_type(content)}", content)
        if display is not None:
            self._builder.add_event("displayContent", display)

    def _add_gemini(self, line: int, fields: Mapping[str, Any]) -> None:
        builder, content = self._builder, fields["content"]
        for thought in as_list(fields.get("thoughts")):
            builder.add_event("thinking", thought)
        listed_calls = as_list(fields.get("toolCalls"))
        named_calls = [call for call in listed_calls if as_text(as_mapping(call).get("name")) is not None]
        calls = [_read_call(call) for call in named_calls]
        name = self._get_name(fields)
        if isinstance(content, list) and content:
            ids = {call.call_id: () for call in calls if call.call_id is not None}
            new = self._drop_repeated(line, content, "functionCall", ids)
            builder.add_note(line, add_parts(builder, "model", new, name=name, calls=calls))
        else:
            text = content if isinstance(content, str) else ""
            builder.add_message("assistant", text, name=name, calls=calls)
        if not isinstance(content, str | list):
            builder.add_unknown(f"gemini content: {describe_type(content)}", content)
        for call in listed_calls:
            if call not in named_calls:
                builder.add_unknown("tool call without a name", call)
        for call in named_calls:
            self._add_result(line, call)
        self._add_usage(as_text(fields.get("id")) or (line, len(builder)), fields)

    def _drop_repeated(
        self, line: int, parts: Sequence[Any], key: str, results: Mapping[str, Sequence[Any]]
    ) -> list[Any]:
        """Drop the calls and results that the message also has in `toolCalls`."""
        repeated = [
            part
            for part in parts
            if (call_id := as_text(as_mapping(as_mapping(part).get(key)).get("id"))) in results
            and (key == "functionCall" or part in results[str(call_id)])
        ]
        self._builder.add_note(line, {"content": repeated} if repeated else {})
        return [part for part in parts if part not in repeated]

    def _get_name(self, fields: Mapping[str, Any]) -> str | None:
        return "summary" if as_text(fields.get("id")) in self._summaries else None

    def _add_usage(self, key: Hashable, fields: Mapping[str, Any]) -> None:
        """Add the usage of a message; rewound messages were paid for too."""
        model, tokens = as_text(fields.get("model")), as_mapping(fields.get("tokens"))
        if fields.get("type") == "gemini" and (model or tokens):
            self._builder.add_model_call(key, model, read_usage(tokens))

    def _add_result(self, line: int, call: Mapping[str, Any]) -> None:
        name, status, result = call["name"], call.get("status"), call.get("result")
        note = {"of": call.get("id"), **omit_keys(call, *_CALL_FIELDS)}
        if result is None and status not in (*_FAILED, "success"):
            self._builder.add_note(line, note)
            return
        output, error, rest = _parse_result(result)
        if status in _FAILED:
            error = error or (f"the call was {status}" if status != "error" else CALL_FAILED)
        call_id = as_text(call.get("id"))
        self._builder.add_result(call_id, output, error=error or None, name=name)
        if call_id is not None:
            self._results[call_id] = as_list(result)
        self._builder.add_note(line, note | remaining_fields(rest, {"id": call_id, "name": name}))


class _Rewound(dict[str, Any]):
    """Messages that a later line removed."""


def _parse_result(result: Any) -> tuple[Any, str | None, dict[str, Any]]:
    """Return the output of a tool from the response to the model, its error, and the remaining fields."""
    only_part = as_mapping(as_list(result)[0] if len(as_list(result)) == 1 else None)
    response = as_mapping(only_part.get("functionResponse"))
    output = response.get("response")
    if not isinstance(output, dict):
        return result, None, {}
    rest = omit_keys(response, "response") | omit_keys(only_part, "functionResponse")
    if set(output) == {"output"}:
        return output["output"], None, rest
    error = output.get("error")
    return output, error if error is None or isinstance(error, str) else CALL_FAILED, rest


def read_usage(tokens: Mapping[str, Any]) -> Usage:
    """Return the usage of a message; thoughts count as output, tool tokens as input."""
    inputs, outputs = _add_counts(tokens, "input", "tool"), _add_counts(tokens, "output", "thoughts")
    return Usage(inputs, outputs, as_count(tokens.get("cached")))


def _add_counts(tokens: Mapping[str, Any], *names: str) -> int | None:
    counts = [n for name in names if (n := as_count(tokens.get(name))) is not None]
    return sum(counts) if counts else None


def read_api_usage(fields: Mapping[str, Any]) -> Usage:
    """Return the token usage in the format of the Gemini API.

    Gemini counts thoughts separately from the answer; compatible servers include them. The total shows which of the two
    applies.
    """
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")
    input_tokens, output_tokens, thoughts, total = (as_count(fields.get(name)) for name in names)
    if thoughts is not None and total != (input_tokens or 0) + (output_tokens or 0):
        output_tokens = (output_tokens or 0) + thoughts
    return Usage(input_tokens, output_tokens, as_count(fields.get("cachedContentTokenCount")))
