"""OpenAI messages: a list of `role` and `content`, with tool calls and results.

A session is such a list, or an object with such a list (`messages`, `traj`, …) whose other fields are
recorded. A file contains one session, a list of sessions, one session per line, or one message per line.
Responses of the Responses API with their `input` and output lines of the Batch API are sessions too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.sessions.genai.message_parser import is_message, parse_messages, parse_role
from proctor.sessions.importers.json_values import (
    ImportedSession,
    as_list,
    as_mapping,
    as_text,
    describe_type,
    flatten_lists,
    omit_keys,
)
from proctor.sessions.importers.responses import (
    UNNAMED_CALL,
    add_parsed,
    add_response,
    get_body,
    has_usage,
    is_batch_line,
    is_response,
    read_usage,
)
from proctor.sessions.importers.session_builder import PendingSession, SessionBuilder, group_items, merge_distinct

NAME = "openai"

_SYSTEM_ROLES = ("system", "developer")
_ROLES = (*_SYSTEM_ROLES, "user", "assistant", "tool", "function")
_SYSTEM = ("system", "system_prompt", "system_instruction", "systemInstruction")
_LISTS = ("messages", "traj", "trajectory", "conversation", "turns", "history", "chat")
_CONTENT = ("content", "parts", "tool_calls", "function_call", "refusal", "audio")
_IDS = ("session_id", "conversation_id", "id", "trace_id", "thread_id")
_SCORES = ("reward", "score", "rating")


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for messages with a known role, or for objects with a list of messages."""
    items = flatten_lists((0, value) for value in values)
    return any(_is_session(item) or _is_message(item) or _is_message_list(item) for _, item in items)


def _is_message(value: Any) -> bool:
    fields = as_mapping(value)
    role = fields.get("role")
    has_content = any(key in fields for key in _CONTENT)
    return has_content and isinstance(role, str) and parse_role(role) is not None


def _is_message_list(value: Any) -> bool:
    return any(map(_is_message, as_list(value)))


def _is_session(value: Any) -> bool:
    return _find_list(as_mapping(value)) is not None or _is_exchange(as_mapping(value))


def _is_exchange(fields: Mapping[str, Any]) -> bool:
    return is_batch_line(fields) or is_response(fields)


def _find_list(fields: Mapping[str, Any]) -> str | None:
    """Return the key under which an object has its messages."""
    key = next((key for key in _LISTS if _is_message_list(fields.get(key))), None)
    # An empty session: this format is the last one to be detected.
    return "messages" if key is None and fields.get("messages") == [] else key


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file; see `group_items`."""
    for pending in group_items(_split_sessions(values, source), source, _is_message):
        yield _build(pending)


def _split_sessions(values: Iterable[tuple[int, Any]], source: str) -> Iterator[tuple[Any, str | None]]:
    """Yield each session with its location; other values have no location."""
    for line, value in values:
        if _is_message_list(value):
            yield value, f"{source}:{line}" if line > 1 else source
        elif isinstance(value, list) and value:
            for number, item in enumerate(value, start=1):
                is_session = _is_session(item) or _is_message_list(item)
                yield item, f"{source}:{number}" if is_session else None
        else:
            yield value, f"{source}:{line}" if _is_session(value) else None


def _build(pending: PendingSession) -> ImportedSession:
    builder, fields = SessionBuilder(), as_mapping(pending.value)
    messages, extra = _split_fields(pending.value)
    scores = {name: item for name in _SCORES if isinstance(item := extra.get(name), bool | int | float)}
    builder.recorded = merge_distinct(extra, {"scores": scores} if scores else {})
    _add_system(builder, _find_system(fields, extra), messages)
    for number, message in enumerate(messages, start=1):
        add_message(builder, number, message)
    add_response(builder, fields, messages)
    for stray in pending.strays:
        builder.add_unknown(None, stray)
    return builder.build(_find_id(extra), NAME, pending.location)


def _find_id(extra: Mapping[str, Any]) -> str | None:
    for name in ("custom_id", *_IDS) if is_batch_line(extra) else _IDS:
        if isinstance(value := extra.get(name), str | int) and value != "":
            return str(value)
    task, trial = extra.get("task_id"), extra.get("trial")
    if not isinstance(task, str | int):
        return None
    return str(task) if trial is None else f"{task}-{trial}"


def _split_fields(value: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the messages of a session, and its other fields."""
    fields = as_mapping(value)
    if (key := _find_list(fields)) is not None:
        return fields[key], omit_keys(fields, key)
    if not _is_exchange(fields):
        return value, {}
    inputs = fields.get("input")
    if isinstance(inputs, str):
        inputs = [{"role": "user", "content": inputs}]
    return (inputs, omit_keys(fields, "input")) if isinstance(inputs, list) else ([], fields)


def add_message(builder: SessionBuilder, number: int, message: Any) -> None:
    """Add one message: its content, its tool calls, or the result of a tool."""
    fields = as_mapping(message)
    role, content = as_text(fields.get("role")), fields.get("content")
    if role is not None and parse_role(role) is None and content not in (None, "", []):
        builder.add_foreign_message(role, content, omit_keys(fields, "role", "content"))
        return
    # Items of OpenAI's responses have a type instead of a role.
    if not (_is_message(message) or ("role" not in fields and is_message(fields))):
        builder.add_unknown(f"message: {describe_type(message)}", message)
        return
    rest = add_parsed(builder, parse_messages([message])).unmatched_fields(message)
    if not isinstance(rest.get("tool_calls"), list | None):
        builder.add_unknown(UNNAMED_CALL, rest.pop("tool_calls"))
    if role is not None and role not in _ROLES:
        rest["role"] = role
    if has_usage(fields):
        builder.add_model_call(number, as_text(fields.get("model")), read_usage(as_mapping(fields["usage"])))
    builder.add_note(number, rest)


def _add_system(builder: SessionBuilder, content: Any, messages: Sequence[Any]) -> None:
    """Add the system prompt that a request has outside its messages."""
    content = as_mapping(content).get("parts", content)
    known = [item.get("content") for item in map(as_mapping, messages) if item.get("role") in _SYSTEM_ROLES]
    if isinstance(content, str | list) and content not in known:
        add_parsed(builder, parse_messages([{"role": "system", "content": content}]))


def _find_system(fields: Mapping[str, Any], extra: Mapping[str, Any]) -> Any:
    content = next((extra[key] for key in _SYSTEM if extra.get(key)), None)
    if content is None and _is_exchange(fields):
        return as_mapping(get_body(fields)).get("instructions") or extra.get("instructions") or None
    return content
