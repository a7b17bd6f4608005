"""LangChain messages: `{type, data}` (messages_to_dict) or `{lc, id, kwargs}` (dumpd)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.records.session import Usage
from proctor.sessions.current import is_abnormal
from proctor.sessions.genai.message_parser import parse_messages, parse_role
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values
from proctor.sessions.importers.json_values import (
    as_list,
    as_mapping,
    as_text,
    first_count,
    omit_keys,
    remaining_fields,
)
from proctor.sessions.importers.openai_messages import add_parsed
from proctor.sessions.importers.openai_messages import read_usage as read_openai_usage
from proctor.sessions.importers.session_builder import PendingSession, SessionBuilder, merge_distinct, split_sessions

NAME = "langchain"

_TYPES = ("human", "ai", "system", "tool", "function")
_CHAT_ROLES = ("user", "assistant", "system")
_LISTS = ("messages", "chat_history", "history", "input", "output")
_IDS = ("id", "session_id", "thread_id", "run_id")


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for messages in one of the two formats, or for objects with a list of messages."""
    return any(
        _is_message(item) or _find_list(as_mapping(item)) is not None or _is_list(item)
        for item in flatten_values(values)
    )


def classify_message(value: Any) -> str | None:
    """Return the type of a message: "human", "ai", …; None for anything else."""
    fields = as_mapping(value)
    if isinstance(fields.get("data"), dict) and "content" in fields["data"]:
        message_type = fields.get("type")
    elif "lc" in fields and isinstance(fields.get("kwargs"), dict):
        name = str((as_list(fields.get("id")) or [""])[-1])
        if not name.removesuffix("Chunk").endswith("Message"):
            return None
        message_type = fields["kwargs"].get("type") or name
    else:
        return None
    if not isinstance(message_type, str):
        return None
    return message_type.removesuffix("Chunk").removesuffix("Message").lower() or None


def _is_message(value: Any) -> bool:
    return classify_message(value) is not None


def _find_list(fields: Mapping[str, Any]) -> str | None:
    return next((key for key in _LISTS if _is_list(fields.get(key))), None)


def _is_list(value: Any) -> bool:
    return any(map(_is_message, as_list(value)))


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file: lists of messages, objects with such a list, or one message per line."""
    for pending in split_sessions(values, source, _is_message, lambda item: _find_list(as_mapping(item)) is not None):
        yield _build(pending)


def _build(pending: PendingSession) -> ImportedSession:
    value, location, strays = pending
    builder, fields = SessionBuilder(), as_mapping(value)
    key = _find_list(fields)
    extra = {} if key is None else omit_keys(fields, key)
    builder.recorded |= extra
    for number, message in enumerate(value if key is None else fields[key], start=1):
        add_message(builder, number, message)
    own_id = next((extra[key] for key in _IDS if as_text(extra.get(key))), None)
    return builder.build(own_id, NAME, location, strays)


def add_message(builder: SessionBuilder, number: int, message: Any) -> None:
    """Add one message: its text, its tool calls, or the result of a tool."""
    message_type = classify_message(message)
    fields = as_mapping(as_mapping(message).get("kwargs" if "lc" in as_mapping(message) else "data"))
    role, is_known = message_type, message_type in _TYPES
    if message_type == "chat":
        role = as_text(fields.get("role"))
        is_known = parse_role(role or "") in _CHAT_ROLES
    if not is_known:
        _add_unknown_role(builder, role, message, fields)
        return
    matcher = add_parsed(builder, parse_messages([message]))
    invalid = as_list(fields.get("invalid_tool_calls")) if message_type == "ai" else ()
    if message_type == "ai":
        _add_usage(builder, number, fields)
    outer = remaining_fields(omit_keys(message, "data", "kwargs"), {"type": fields.get("type"), "lc": 1})
    read_fields = {"type": message_type, "status": "success", "invalid_tool_calls": invalid}
    unmatched = matcher.unmatched_fields(remaining_fields(fields, read_fields))
    rest = {key: value for key, value in unmatched.items() if value not in (None, {}, [])}
    if message_type == "chat" and role not in _CHAT_ROLES:
        rest["role"] = role
    # The class path and the message id are both called `id`.
    builder.add_note(number, merge_distinct(rest, outer))


def _add_unknown_role(builder: SessionBuilder, role: str | None, message: Any, fields: Mapping[str, Any]) -> None:
    content = fields.get("content")
    if role is None or content in (None, "", []):
        builder.add_unknown(f"message: {role or describe_type(message)}", message)
        return
    outer = omit_keys(message, "data", "kwargs")
    extra = {**outer, "fields": omit_keys(fields, "role", "content")}
    builder.add_unknown_role(role, content, extra)


def _add_usage(builder: SessionBuilder, number: int, fields: Mapping[str, Any]) -> None:
    metadata = as_mapping(fields.get("response_metadata"))
    model = as_text(metadata.get("model_name")) or as_text(metadata.get("model"))
    usage = read_usage(as_mapping(fields.get("usage_metadata")))
    if usage == Usage():
        fields = as_mapping(metadata.get("token_usage")) or as_mapping(metadata.get("usage"))
        usage = read_openai_usage(fields)
    reason = as_text(metadata.get("finish_reason")) or as_text(metadata.get("stop_reason"))
    if model or usage != Usage() or is_abnormal(reason):
        builder.add_model_call(f"message {number}", model, usage, finish_reason=reason)


def read_usage(fields: Mapping[str, Any]) -> Usage:
    """Return the usage of a message; cached tokens are part of the input."""
    details = as_mapping(fields.get("input_token_details"))
    return Usage(
        first_count(fields, "input_tokens"),
        first_count(fields, "output_tokens"),
        first_count(details, "cache_read"),
        cache_write_tokens=first_count(details, "cache_creation"),
    )
