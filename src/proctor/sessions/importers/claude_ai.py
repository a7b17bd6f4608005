"""claude.ai's data export: a list of conversations with `chat_messages`; tool results are parts of an answer.

The export has no model names and no tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text, take
from proctor.sessions.importers.openai_messages import add_message
from proctor.sessions.importers.session_builder import PendingSession, SessionBuilder, split_sessions

NAME = "claude-ai"
_KNOWN_TYPES = ("text", "thinking", "tool_use", "tool_result")


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for conversations with `chat_messages`."""
    return any(_is_conversation(item) for item in flatten_values(values))


def _is_conversation(value: Any) -> bool:
    return isinstance(as_mapping(value).get("chat_messages"), list)


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the conversations of a file; a conversation may be empty."""
    for pending in split_sessions(values, source, is_document=_is_conversation):
        yield _read_conversation(pending)


def _read_conversation(pending: PendingSession) -> ImportedSession:
    builder, recorded = SessionBuilder(), dict(as_mapping(pending.value))
    messages = recorded.pop("chat_messages") if _is_conversation(pending.value) else ()
    for number, message in enumerate(messages, start=1):
        _add_message(builder, number, message)
    if title := as_text(recorded.get("name")):
        recorded.setdefault("title", title)
    builder.recorded = recorded
    for name in ("created_at", "updated_at"):
        builder.add_time(recorded.get(name))
    imported = builder.build(as_text(recorded.get("uuid")), NAME, pending.location, pending.strays)
    return msgspec.structs.replace(imported, is_named=_is_conversation(pending.value))


def _add_message(builder: SessionBuilder, number: int, message: Any) -> None:
    rest = dict(as_mapping(message))
    sender = take(rest, "sender", str)
    if sender is None:
        builder.add_unknown(f"message: {describe_type(message)}", message)
        return
    builder.add_time(rest.get("created_at"))
    content: Any = take(rest, "content", list)
    if not any(as_mapping(part).get("type") in _KNOWN_TYPES for part in as_list(content)):
        # None of the parts has the text; the message has it in `text`.
        for part in content or ():
            builder.add_unknown(f"content: {describe_type(part)}", part)
        content = take(rest, "text", str) or ""
    elif "".join(str(as_mapping(part).get("text", "")) for part in content) == rest.get("text"):
        del rest["text"]
    for name in ("attachments", "files"):
        if (files := take(rest, name, list)) is not None:
            builder.add_event(name, files)
    add_message(builder, number, {"role": sender, "content": content} | ({"fields": rest} if rest else {}))
