"""Messages as LangChain writes them, in either of its two shapes.

That is `{type, data}` (messages_to_dict) or `{lc, id, kwargs}` (dumpd). Nothing of
LangChain is needed to read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from proctor.records.session import Usage
from proctor.sessions.genai.turns import role_of
from proctor.sessions.importers.chronicle import Chronicle, beside
from proctor.sessions.importers.responses import tell_turn
from proctor.sessions.importers.responses import usage_of as openai_usage
from proctor.sessions.importers.shapes import (
    Imported,
    items,
    left,
    mapping,
    named,
    number_at,
    stem,
    text,
    unrolled,
    without,
)

NAME = "langchain"

_KINDS = ("human", "ai", "system", "tool", "function")
_CHAT_ROLES = ("user", "assistant", "system")
_LISTS = ("messages", "chat_history", "history", "input", "output")


def looks_like(values: Sequence[Any]) -> bool:
    """True for messages in one of the two shapes, or for objects that hold a list of them."""
    return any(
        kind_of_message(item) is not None or _list_in(mapping(item)) is not None or _is_list(item)
        for _, item in unrolled((0, value) for value in values)
    )


def kind_of_message(value: Any) -> str | None:
    """Which message it is: "human", "ai", …; None for what is no message of LangChain."""
    found = mapping(value)
    if isinstance(found.get("data"), dict) and "content" in found["data"]:
        kind = found.get("type")
    elif "lc" in found and isinstance(found.get("kwargs"), dict):
        name = str((items(found.get("id")) or [""])[-1])
        if not name.removesuffix("Chunk").endswith("Message"):
            return None
        kind = found["kwargs"].get("type") or name
    else:
        return None
    if not isinstance(kind, str):
        return None
    return kind.removesuffix("Chunk").removesuffix("Message").lower() or None


def _fields(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(value.get("kwargs")) if "lc" in value else mapping(value.get("data"))


def _list_in(found: Mapping[str, Any]) -> str | None:
    for key in _LISTS:
        if any(kind_of_message(item) is not None for item in items(found.get(key))):
            return key
    return None


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file: a list of messages, objects that hold one, or one message a line.

    The only one of a file is named after it, unless it has a name of its own.
    """
    bare: list[Any] = []
    strays: list[Any] = []
    held: _Found | None = None
    is_only = True
    for item, place in _items(values, source):
        key = _list_in(mapping(item))
        if key is None and not _is_list(item):
            (bare if kind_of_message(item) is not None else strays).append(item)
            continue
        if held is not None:
            is_only = False
            yield _imported(held)
        held, strays = _Found(item, key, place, strays), []
    if held is not None and not bare:
        held, strays = held._replace(strays=[*held.strays, *strays]), []
        held = held._replace(place=source) if is_only else held
    if held is not None:
        yield _imported(held)
    if bare or strays:
        yield _imported(_Found(bare, None, source, strays))


class _Found(NamedTuple):
    """Messages, or what holds them under a key, and what stood beside them that is neither."""

    value: Any
    key: str | None
    place: str
    strays: Sequence[Any]


def _items(values: Iterable[tuple[int, Any]], source: str) -> Iterator[tuple[Any, str]]:
    """What a file holds, each with its place: also what stands in a list that is no session."""
    for line, value in values:
        if isinstance(value, list) and value and not _is_list(value):
            for number, item in enumerate(value, start=1):
                yield item, f"{source}:{number if len(value) > 1 else line}"
        else:
            yield value, f"{source}:{line}"


def _is_list(item: Any) -> bool:
    return any(kind_of_message(one) is not None for one in items(item))


def _imported(given: _Found) -> Imported:
    value, key, place, strays = given
    told, found = Chronicle(), mapping(value)
    about = {} if key is None else without(found, key)
    told.recorded |= about
    for number, message in enumerate(value if key is None else found[key], start=1):
        tell_message(told, number, message)
    for stray in strays:
        told.pass_over(None, stray)
    own = next((about[k] for k in ("id", "session_id", "thread_id", "run_id") if text(about.get(k))), None)
    return told.imported(own or stem(place), NAME, place)


def tell_message(told: Chronicle, number: int, message: Any) -> None:
    """Add one message to a session: its text, its tool calls, or the result of a tool."""
    kind, fields = kind_of_message(message), _fields(mapping(message))
    role, known = kind, kind in _KINDS
    if kind == "chat":
        role = text(fields.get("role"))
        known = role_of(role or "") in _CHAT_ROLES
    if not known:
        _tell_other(told, role, message, fields)
        return
    held = tell_turn(told, message)
    odd = items(fields.get("invalid_tool_calls")) if kind == "ai" else ()
    for call in odd:
        told.pass_over("invalid tool call", call)
    if kind == "ai":
        _used(told, number, fields)
    around = left(without(message, "data", "kwargs"), {"type": fields.get("type"), "lc": 1})
    rest = held.rest(left(fields, {"type": kind, "status": "success", "invalid_tool_calls": odd}))
    rest = {key: it for key, it in rest.items() if it not in (None, {}, [])}
    if kind == "chat" and role not in _CHAT_ROLES:
        rest["role"] = role
    # What a message is and which it is are both called `id`.
    told.note(number, beside(rest, around))


def _tell_other(told: Chronicle, role: str | None, message: Any, fields: Mapping[str, Any]) -> None:
    """A message in another role: what it says is told as that."""
    said = fields.get("content")
    if role is None or said in (None, "", []):
        told.pass_over(f"message: {role or named(message)}", message)
        return
    around = without(message, "data", "kwargs")
    told.hear(role, said, {**around, "fields": without(fields, "role", "content")})


def _used(told: Chronicle, number: int, fields: Mapping[str, Any]) -> None:
    about = mapping(fields.get("response_metadata"))
    model = text(about.get("model_name")) or text(about.get("model"))
    usage = usage_of(mapping(fields.get("usage_metadata")))
    if usage == Usage():
        usage = openai_usage(mapping(about.get("token_usage")) or mapping(about.get("usage")))
    if model or usage != Usage():
        reason = text(about.get("finish_reason")) or text(about.get("stop_reason"))
        told.used(f"message {number}", model, usage, finish_reason=reason)


def usage_of(found: Mapping[str, Any]) -> Usage:
    """Tokens of a message: what was read from the cache, or put into it, is inside the input.

    >>> usage_of({"input_tokens": 9, "output_tokens": 2, "input_token_details": {"cache_read": 4}})
    Usage(input_tokens=9, output_tokens=2, cached_tokens=4)
    """
    inside = mapping(found.get("input_token_details"))
    return Usage(
        number_at(found, "input_tokens"),
        number_at(found, "output_tokens"),
        number_at(inside, "cache_read"),
        cache_write_tokens=number_at(inside, "cache_creation"),
    )
