"""Messages of Pydantic AI: a list of requests and responses with parts (`result.all_messages_json()`).

A retried tool return failed. The arguments of the last accepted call of `final_result` are the output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import ToolCall, Usage
from proctor.sessions.genai.values import parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values
from proctor.sessions.importers.json_values import as_list, as_mapping, as_number, as_text, first_count, take
from proctor.sessions.importers.session_builder import CALL_FAILED, PendingSession, SessionBuilder, split_sessions

NAME = "pydantic-ai"
_KINDS = ("request", "response")
_CALLS = ("tool-call", "builtin-tool-call", "native-tool-call")
_RETURNS = ("tool-return", "builtin-tool-return", "native-tool-return")
_FAILED = ("retried", "failed", "denied")
_FINAL = "final_result"


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for requests and responses whose parts have a `part_kind`."""
    items = flatten_values(values)
    return any(_is_message(item) or any(map(_is_message, as_list(item))) for item in items)


def _is_message(value: Any) -> bool:
    fields = as_mapping(value)
    has_parts = any("part_kind" in as_mapping(part) for part in as_list(fields.get("parts")))
    return fields.get("kind") in _KINDS and has_parts


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file: lists of messages, or one message per line."""
    for pending in split_sessions(values, source, _is_message):
        yield _MessageReader().read(pending)


class _MessageReader:
    def __init__(self) -> None:
        self._builder = SessionBuilder()
        self._instructions: str | None = None

    def read(self, pending: PendingSession) -> ImportedSession:
        messages = [dict(as_mapping(message)) for message in pending.value]
        ids = {as_text(message.get("conversation_id")) or as_text(message.get("run_id")) for message in messages}
        for number, value in enumerate(pending.value, start=1):
            self._add_message(number, value)
        imported = self._builder.build(ids.pop() if len(ids) == 1 else None, NAME, pending.location, pending.strays)
        is_failed = bool(messages) and messages[-1].get("finish_reason") == "error"
        error = "the last response ended with an error" if is_failed else None
        return msgspec.structs.replace(imported, output=_find_final_result(imported), error=error)

    def _add_message(self, number: int, message: Any) -> None:
        builder, rest = self._builder, dict(as_mapping(message))
        if not _is_message(message):
            builder.add_unknown(f"message: {describe_type(message)}", message)
            return
        kind, parts = rest.pop("kind"), rest.pop("parts")
        builder.add_time(rest.get("timestamp"))
        if rest.get("instructions") == self._instructions:
            # Each request repeats the instructions.
            rest.pop("instructions", None)
        elif (instructions := take(rest, "instructions", str)) is not None:
            self._instructions = instructions
            builder.add_message("system", instructions)
        if kind == "request":
            for part in parts:
                self._add_request_part(number, part)
        else:
            self._add_response(number, parts)
            usage = as_mapping(rest.get("usage"))
            if usage or as_text(rest.get("model_name")):
                reason = as_text(rest.get("finish_reason"))
                builder.add_model_call(
                    (number,), as_text(rest.get("model_name")), _read_usage(usage), finish_reason=reason
                )
        builder.add_note(number, rest)

    def _add_request_part(self, number: int, part: Any) -> None:
        rest = dict(as_mapping(part))
        kind = as_text(rest.pop("part_kind", None))
        if kind == "system-prompt" and isinstance(rest.get("content"), str):
            self._builder.add_message("system", rest.pop("content"))
        elif kind == "user-prompt" and isinstance(rest.get("content"), str | list):
            content = rest.pop("content")
            if isinstance(content, list):
                content = [{"type": "text", "text": item} if isinstance(item, str) else item for item in content]
            self._builder.add_message("user", content)
        elif kind == "retry-prompt" and rest.get("tool_name") is None and "content" in rest:
            # The program asks the model to correct its answer.
            self._builder.add_message("user", rest.pop("content"), name="retry")
        elif kind in _RETURNS or kind == "retry-prompt":
            self._add_return(rest, is_retry=kind == "retry-prompt")
        else:
            self._builder.add_unknown(f"part: {kind[:60] if kind else describe_type(part)}", part)
            return
        self._note(number, rest)

    def _add_return(self, part: dict[str, Any], *, is_retry: bool = False) -> None:
        content, call_id = part.pop("content", None), take(part, "tool_call_id", str)
        has_failed = is_retry or part.get("outcome") in _FAILED
        error = (content if isinstance(content, str) and content else CALL_FAILED) if has_failed else None
        name = as_text(part.get("tool_name"))
        if self._builder.add_result(call_id, content, error=error, name=name) == name and name is not None:
            del part["tool_name"]

    def _add_response(self, number: int, parts: Sequence[Any]) -> None:
        builder = self._builder
        for part in parts:
            rest = dict(as_mapping(part))
            kind = as_text(rest.pop("part_kind", None))
            if kind == "text" and isinstance(rest.get("content"), str):
                builder.add_message("assistant", rest.pop("content"), key=(number,))
            elif kind == "thinking" and isinstance(rest.get("content"), str):
                builder.add_event("thinking", rest.pop("content"))
            elif kind in _CALLS and (name := take(rest, "tool_name", str)) is not None:
                arguments = parse_arguments(rest.pop("args", None))
                call = ToolCall(name, arguments, call_id=take(rest, "tool_call_id", str))
                builder.add_message("assistant", "", calls=[call], key=(number,))
            elif kind in _RETURNS:
                self._add_return(rest)
            elif kind == "file":
                builder.add_message("assistant", [rest.pop("content", None)], key=(number,))
            else:
                builder.add_unknown(f"part: {kind[:60] if kind else describe_type(part)}", part)
                continue
            self._note(number, rest)

    def _note(self, number: int, rest: Mapping[str, Any]) -> None:
        fields = {key: value for key, value in rest.items() if value is not None}
        self._builder.add_note(number, {"part": fields} if fields else {})


def _find_final_result(imported: ImportedSession) -> Any:
    """Return the output: the arguments of the last accepted call of `final_result`, or else the last answer."""
    calls = [call for call in imported.session[ToolCall] if call.name == _FINAL and call.success]
    if not calls:
        return imported.output
    arguments = calls[-1].arguments
    return arguments["response"] if arguments.keys() == {"response"} else arguments


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    return Usage(
        first_count(usage, "input_tokens", "request_tokens"),
        first_count(usage, "output_tokens", "response_tokens"),
        first_count(usage, "cache_read_tokens"),
        as_number(usage.get("cost")),
        first_count(usage, "cache_write_tokens"),
    )
