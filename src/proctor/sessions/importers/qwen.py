"""Qwen Code: one JSON object a line, with `message.parts` (`~/.qwen/projects/…/chats/*.jsonl`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.sessions.importers.chronicle import Chronicle
from proctor.sessions.importers.gemini import tell_parts
from proctor.sessions.importers.shapes import Imported, gemini_usage, left, mapping, stem, text, unrolled

NAME = "qwen"

_SPEAKERS = ("user", "assistant", "tool_result")


def looks_like(values: Sequence[Any]) -> bool:
    """True for lines whose `message` is made of `parts`."""
    return any(_is_message(mapping(value)) for _, value in unrolled((0, it) for it in values))


def _is_message(line: Mapping[str, Any]) -> bool:
    parts = mapping(line.get("message")).get("parts")
    return line.get("type") in _SPEAKERS and isinstance(parts, list)


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file, by their ids; a line without one belongs to that before it."""
    sessions: dict[str, Chronicle] = {}
    current = ""
    for line, value in unrolled(values):
        found = mapping(value)
        own = text(found.get("sessionId"))
        if own is not None and "" in sessions and own not in sessions:
            # What stood before the first id belongs to the session that bears it.
            sessions = {own: sessions.pop("")} | sessions
        current = own or current
        _tell(sessions.setdefault(current, Chronicle()), line, value)
    for id_, told in sessions.items():
        yield told.imported(id_ or stem(source), NAME, source)


def _tell(told: Chronicle, line: int, value: Any) -> None:
    found = mapping(value)
    told.at(found.get("timestamp"))
    if not _is_message(found):
        if found.get("type") == "system":
            told.keep("system", value)
        else:
            told.pass_over(None, value)
        return
    outcome = found.get("toolCallResult")
    message, kind = found["message"], found["type"]
    role = "model" if kind == "assistant" else "user"
    rest = tell_parts(told, role, message["parts"], status=text(mapping(outcome).get("status")))
    if outcome is not None:
        told.keep("toolCallResult", {"details": outcome})
    used = mapping(found.get("usageMetadata"))
    model = text(found.get("model"))
    if kind == "assistant" and (used or model):
        key = text(found.get("uuid")) or (line, len(told))
        told.used(key, model, gemini_usage(used))
    about = left(message, {"role": role, "parts": message["parts"]})
    known = {"type": kind, "message": message, "toolCallResult": outcome}
    known["sessionId"] = text(found.get("sessionId"))
    told.note(line, {**left(found, known), **({"message": about} if about else {}), **rest})
