"""Qwen Code: one JSON object per line, with `message.parts` (`~/.qwen/projects/…/chats/*.jsonl`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.sessions.importers.gemini import add_parts, read_api_usage
from proctor.sessions.importers.imported_session import ImportedSession, flatten_lists, flatten_values
from proctor.sessions.importers.json_values import as_mapping, as_text, remaining_fields
from proctor.sessions.importers.session_builder import SessionBuilder

NAME = "qwen"
_SPEAKERS = ("user", "assistant", "tool_result")


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for lines whose `message` has `parts`."""
    return any(_is_message(as_mapping(value)) for value in flatten_values(values))


def _is_message(line: Mapping[str, Any]) -> bool:
    parts = as_mapping(line.get("message")).get("parts")
    return line.get("type") in _SPEAKERS and isinstance(parts, list)


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file by id; a line without an id belongs to the previous session."""
    builders: dict[str, SessionBuilder] = {}
    current = ""
    for line, value in flatten_lists(values):
        session_id = as_text(as_mapping(value).get("sessionId"))
        if session_id is not None and "" in builders and session_id not in builders:
            # Lines before the first id belong to that session.
            builders = {session_id: builders.pop("")} | builders
        current = session_id or current
        _add_line(builders.setdefault(current, SessionBuilder()), line, value)
    for session_id, builder in builders.items():
        yield builder.build(session_id, NAME, source)


def _add_line(builder: SessionBuilder, line: int, value: Any) -> None:
    fields = as_mapping(value)
    builder.add_time(fields.get("timestamp"))
    if not _is_message(fields):
        if fields.get("type") == "system":
            builder.add_event("system", value)
        else:
            builder.add_unknown(None, value)
        return
    outcome, message, line_type = fields.get("toolCallResult"), fields["message"], fields["type"]
    role = "model" if line_type == "assistant" else "user"
    rest = add_parts(builder, role, message["parts"], status=as_text(as_mapping(outcome).get("status")))
    if outcome is not None:
        builder.add_event("toolCallResult", {"details": outcome})
    usage = as_mapping(fields.get("usageMetadata"))
    model = as_text(fields.get("model"))
    if line_type == "assistant" and (usage or model):
        key = as_text(fields.get("uuid")) or (line, len(builder))
        builder.add_model_call(key, model, read_api_usage(usage))
    inner = remaining_fields(message, {"role": role, "parts": message["parts"]})
    read_fields = {"type": line_type, "message": message, "toolCallResult": outcome}
    read_fields["sessionId"] = as_text(fields.get("sessionId"))
    builder.add_note(line, remaining_fields(fields, read_fields) | ({"message": inner} if inner else {}) | rest)
