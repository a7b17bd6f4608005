"""Messages as OpenAI's API has them: a list of `role` and `content`, with tool calls and answers.

A session is a document that is such a list, an object that holds one (`messages`, `traj`, …: what
stands beside it is recorded, a `reward` as a score), each item of a list of those, each such line,
or a whole file with one message a line. So is a response of the Responses API, logged with its
`input`, and each line that the Batch API gives back, which is called by its `custom_id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.sessions.genai.turns import is_message, role_of
from proctor.sessions.importers.chronicle import Chronicle, beside
from proctor.sessions.importers.responses import (
    NAMELESS,
    body_of,
    has_usage,
    is_batched,
    is_response,
    tell_response,
    tell_turn,
    usage_of,
)
from proctor.sessions.importers.shapes import Imported, items, mapping, named, stem, text, unrolled, without

NAME = "openai"

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_SYSTEM = ("system", "system_prompt", "system_instruction", "systemInstruction")
_LISTS = ("messages", "traj", "trajectory", "conversation", "turns", "history", "chat")
_SAYS = ("content", "parts", "tool_calls", "function_call", "refusal", "audio")
_IDS = ("session_id", "conversation_id", "id", "trace_id", "thread_id")
_SCORES = ("reward", "score", "rating")


def looks_like(values: Sequence[Any]) -> bool:
    """True for messages with a known role, or for objects that hold a list of them."""
    return any(
        _is_session(item) or _is_message(item) or any(map(_is_message, items(item)))
        for _, item in unrolled((0, value) for value in values)
    )


def _is_message(value: Any) -> bool:
    found = mapping(value)
    role = found.get("role")
    said = any(key in found for key in _SAYS)
    return said and isinstance(role, str) and role_of(role) is not None


def _is_session(value: Any) -> bool:
    return _list_in(mapping(value)) is not None or _is_exchange(mapping(value))


def _is_exchange(found: Mapping[str, Any]) -> bool:
    return is_batched(found) or is_response(found)


def _list_in(found: Mapping[str, Any]) -> str | None:
    """Under which key an object holds its messages."""
    for key in _LISTS:
        inside = found.get(key)
        if isinstance(inside, list) and any(map(_is_message, inside)):
            return key
    # A session in which nothing was said: nobody else's, for all others are asked before, and
    # told to be empty.
    return "messages" if found.get("messages") == [] else None


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file, in order; what belongs to none stays with the one before or after.

    The only one of a file is named after it, unless it has a name of its own.
    """
    strays: list[tuple[int, Any]] = []
    bare: list[tuple[int, Any]] = []
    held: _Session | None = None
    is_only = True
    for line, value, place in _sessions(values, source):
        if place is None:
            (bare if _is_message(value) else strays).append((line, value))
            continue
        if held is not None:
            is_only = False
            yield held.imported()
        held = _Session(line, value, place)
        held.strays, strays = strays, []
    if bare:
        # One message a line: the file is one session.
        whole = _Session(0, [message for _, message in bare], source)
        if held is None:
            whole.strays, strays = strays, []
        yield whole.imported()
    if held is not None:
        held.strays += strays
        held.place = source if is_only and not bare else held.place
        yield held.imported()
    elif strays:
        told = Chronicle()
        for _, value in strays:
            told.pass_over(None, value)
        yield told.imported(stem(source), NAME, source)


def _sessions(values: Iterable[tuple[int, Any]], source: str) -> Iterator[tuple[int, Any, str | None]]:
    """Each session with its place; what is none has no place."""
    for line, value in values:
        if isinstance(value, list) and any(map(_is_message, value)):
            yield line, value, f"{source}:{line}" if line > 1 else source
        elif isinstance(value, list) and value:
            for number, item in enumerate(value, start=1):
                is_one = _is_session(item) or (isinstance(item, list) and any(map(_is_message, item)))
                yield line, item, f"{source}:{number}" if is_one else None
        else:
            yield line, value, f"{source}:{line}" if _is_session(value) else None


class _Session:
    def __init__(self, line: int, value: Any, place: str) -> None:
        self._line, self._value, self.place = line, value, place
        self.strays: list[tuple[int, Any]] = []

    def imported(self) -> Imported:
        told, found = Chronicle(), mapping(self._value)
        messages, about = _opened(self._value)
        scores = {name: s for name in _SCORES if (s := _score(about.get(name))) is not None}
        told.recorded = beside(about, {"scores": scores} if scores else {})
        _tell_system(told, _system_in(found, about), messages)
        for number, message in enumerate(messages, start=1):
            tell_message(told, number, message)
        tell_response(told, found, messages)
        for _, stray in self.strays:
            told.pass_over(None, stray)
        return told.imported(self._id(about), NAME, self.place)

    def _id(self, about: Mapping[str, Any]) -> str:
        for name in ("custom_id", *_IDS) if is_batched(about) else _IDS:
            if isinstance(own := about.get(name), str | int) and own != "":
                return str(own)
        if isinstance(task := about.get("task_id"), str | int):
            trial = about.get("trial")
            return f"{task}" if trial is None else f"{task}-{trial}"
        return stem(self.place)


def _opened(value: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The messages of a session, and what stands beside them."""
    found = mapping(value)
    if (key := _list_in(found)) is not None:
        return found[key], without(found, key)
    if not _is_exchange(found):
        return value, {}
    asked = found.get("input")
    if isinstance(asked, str):
        asked = [{"role": "user", "content": asked}]
    return (asked, without(found, "input")) if isinstance(asked, list) else ([], found)


def _score(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else None


def tell_message(told: Chronicle, number: int, message: Any) -> None:
    """Tell one message: what is said, the tools asked for, or what a tool gave back."""
    found = mapping(message)
    role, said = text(found.get("role")), found.get("content")
    if role is not None and role_of(role) is None and said not in (None, "", []):
        told.hear(role, said, without(found, "role", "content"))
        return
    # Items of OpenAI's responses have a type in place of a role, and Anthropic's have parts.
    if not (_is_message(message) or ("role" not in found and is_message(found))):
        told.pass_over(f"message: {named(message)}", message)
        return
    rest = tell_turn(told, message).rest(message)
    if not isinstance(rest.get("tool_calls"), list | None):
        told.pass_over(NAMELESS, rest.pop("tool_calls"))
    if role is not None and role not in _ROLES:
        rest["role"] = role
    if has_usage(found):
        told.used(number, text(found.get("model")), usage_of(mapping(found["usage"])))
    told.note(number, rest)


def _tell_system(told: Chronicle, said: Any, messages: Sequence[Any]) -> None:
    """What the model was told first, where a request has it beside its messages."""
    said = mapping(said).get("parts", said)
    if isinstance(said, str | list) and not any(_is_system(one, said) for one in messages):
        tell_turn(told, {"role": "system", "content": said})


def _system_in(found: Mapping[str, Any], about: Mapping[str, Any]) -> Any:
    said = next((about[key] for key in _SYSTEM if about.get(key)), None)
    if said is None and _is_exchange(found):
        # A response repeats them.
        said = mapping(body_of(found)).get("instructions") or about.get("instructions") or None
    return said


def _is_system(message: Any, said: Any) -> bool:
    found = mapping(message)
    return found.get("role") in ("system", "developer") and found.get("content") == said
