"""ChatGPT's data export: a list of conversations, each a tree of messages under `mapping`.

The conversation is the path from the root to `current_node`; edited questions and regenerated answers are stored as
"rewound". A message whose recipient is not "all" calls a tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.records.session import Role, ToolCall, Usage
from proctor.sessions.genai.values import parse_arguments
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values, format_epoch
from proctor.sessions.importers.json_values import as_mapping, as_text, take
from proctor.sessions.importers.session_builder import (
    KeyedQueue,
    PendingSession,
    SessionBuilder,
    merge_distinct,
    split_sessions,
)

NAME = "chatgpt"
_ROLES: Mapping[Any, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_THOUGHTS = ("thoughts", "reasoning_recap")
_NODE_KEYS = {"parent", "children", "message"}


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for conversations whose `mapping` contains nodes of a tree."""
    return any(
        _is_conversation(item)
        and any(len(_NODE_KEYS & as_mapping(node).keys()) > 1 for node in item["mapping"].values())
        for item in flatten_values(values)
    )


def _is_conversation(value: Any) -> bool:
    return isinstance(as_mapping(value).get("mapping"), dict)


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the conversations of a file."""
    for pending in split_sessions(values, source, is_document=_is_conversation):
        yield _ConversationReader().read(pending)


class _ConversationReader:
    def __init__(self) -> None:
        self._builder = SessionBuilder()
        self._call_ids: list[str] = []
        self._open_calls = KeyedQueue()

    def read(self, pending: PendingSession) -> ImportedSession:
        builder, recorded = self._builder, dict(as_mapping(pending.value))
        nodes = take(recorded, "mapping", dict) or {}
        path = _find_active_path(nodes, recorded.get("current_node"))
        for number, key in enumerate(path, start=1):
            self._add_node(number, key, nodes[key])
        active = set(path)
        if rewound := [{"key": key, "node": node} for key, node in nodes.items() if key not in active]:
            builder.add_event("rewound", {"taken": rewound})
        builder.recorded = recorded
        for time in (recorded.get("create_time"), recorded.get("update_time")):
            builder.add_time(format_epoch(time))
        conversation_id = as_text(recorded.get("conversation_id")) or as_text(recorded.get("id"))
        return builder.build(conversation_id, NAME, pending.location, pending.strays)

    def _add_node(self, number: int, key: str, node: Any) -> None:
        rest = dict(as_mapping(node))
        message = take(rest, "message", dict)
        outer = {"key": key, **rest} if isinstance(node, dict) else {"key": key, "node": node}
        if message is None:
            self._builder.add_note(number, outer)
            return
        message = dict(message)
        self._add_message(number, key, message)
        self._builder.add_note(number, merge_distinct(outer, {"message": message} if message else {}))

    def _add_message(self, number: int, key: str, message: dict[str, Any]) -> None:
        """Add a message and remove its content from `message`."""
        author, recipient = as_mapping(message.get("author")), as_text(message.get("recipient"))
        role = _ROLES.get(as_text(author.get("role")))
        content = message.get("content")
        self._builder.add_time(format_epoch(message.get("create_time")))
        if role is None or not isinstance(content, dict):
            kind = as_text(author.get("role"))
            self._builder.add_unknown(f"message: {kind[:60] if kind else describe_type(message)}", dict(message))
            message.clear()
            return
        content = dict(content)
        content_type = content.get("content_type")
        if content_type in _THOUGHTS:
            self._builder.add_event("thinking", message.pop("content"))
            return
        value = _take_content(content)
        message["content"] = content
        if role == "tool":
            self._add_result(as_text(author.get("name")), value)
        elif role == "assistant" and recipient not in (None, "all"):
            call_id = as_text(message.get("id")) or key
            call = ToolCall(recipient, parse_arguments(value), call_id=call_id)
            # Tools answer by their whole name or without the function.
            self._open_calls.put(len(self._call_ids), recipient, recipient.partition(".")[0], None)
            self._call_ids.append(call_id)
            self._builder.add_message(role, "", calls=[call])
        else:
            name = as_text(author.get("name")) if role == "assistant" else None
            self._builder.add_message(role, value, name=name)
        if (model := as_text(as_mapping(message.get("metadata")).get("model_slug"))) and role == "assistant":
            self._builder.add_model_call((number,), model, Usage())

    def _add_result(self, name: str | None, value: Any) -> None:
        """Add a result to the open call of its tool; further results of a call are messages of the tool."""
        number = self._open_calls.take(name)
        if number is not None:
            self._builder.add_result(self._call_ids[number], value)
        else:
            self._builder.add_message("tool", value, name=name)


def _find_active_path(nodes: Mapping[str, Any], current: Any) -> list[str]:
    """Return the keys of the nodes from the root to the current node, or to the last node without children."""
    key = current if isinstance(current, str) and current in nodes else None
    if key is None:
        parents = {as_text(as_mapping(node).get("parent")) for node in nodes.values()}
        key = next((item for item in reversed([*nodes]) if item not in parents), None)
    path: dict[str, None] = {}
    while isinstance(key, str) and key in nodes and key not in path:
        path[key] = None
        key = as_mapping(nodes[key]).get("parent")
    return [*reversed(path)]


def _take_content(content: dict[str, Any]) -> Any:
    """Remove the content of a message from its fields and return it: a text, parts, or the whole data."""
    if (parts := take(content, "parts", list)) is not None:
        if all(isinstance(part, str) for part in parts):
            return "\n".join(parts)
        return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    if (text := take(content, "text", str)) is not None:
        return text
    if content.keys() <= {"content_type", "parts"}:
        return ""
    data = dict(content)
    content.clear()
    return data
