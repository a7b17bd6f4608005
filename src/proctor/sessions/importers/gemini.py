"""Gemini CLI: a JSON document with `messages`, or JSONL in which later lines amend earlier ones.

The same id said again is the same message, more of it; `$set` changes what is known of the session,
`$rewindTo` takes back a message and what followed it: kept, and its tokens count, but it is no part
of the conversation. Messages in a `$set` are what the model has before it from then on. Where some
that were told are missing, they took place all the same; what stands in their stead was written by
the program, as `summary`, for nobody said it.
A list of `role` and `parts`, as checkpoints have it, is read too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from proctor.records.session import Role, ToolCall, Usage
from proctor.sessions.genai.values import BREAK, arguments_in
from proctor.sessions.importers.chronicle import Chronicle
from proctor.sessions.importers.shapes import (
    Imported,
    count,
    items,
    joined,
    left,
    mapping,
    named,
    stem,
    text,
    unrolled,
    without,
)

_SHOWN = ("inlineData", "fileData", "executableCode", "codeExecutionResult")


def tell_parts(
    told: Chronicle,
    role: str,
    parts: Sequence[Any],
    *,
    name: str | None = None,
    status: str | None = None,
    calls: Sequence[ToolCall] = (),
) -> dict[str, Any]:
    """Tell what the parts say; gives what stood beside the calls, for a note.

    `calls` are those that the message has beside its parts.
    """
    said: list[Any] = []
    calls = [*calls]
    rest: list[Any] = []
    for part in parts:
        found = mapping(part)
        call = mapping(found.get("functionCall"))
        if found.get("thought") is True:
            told.keep("thinking", without(found, "thought"))
        elif text(call.get("name")):
            made = _call(call, found)
            calls.append(made)
            told_of = {"id": made.call_id, "name": made.name, "args": call.get("args")}
            signed = {"functionCall": call, "thoughtSignature": made.signature}
            rest += _beside(made.call_id, left(found, signed) | left(call, told_of))
        elif isinstance(found.get("functionResponse"), dict):
            rest += _answered(told, found, status)
        elif isinstance(found.get("text"), str) or any(key in found for key in _SHOWN):
            said.append(part)
            continue
        else:
            told.pass_over(f"part: {named(part)}", part)
        said.append(BREAK)
    if calls or any(part is not BREAK for part in said):
        speaker: Role = "user" if role == "user" else "assistant"
        told.say(speaker, joined(said, _text_in, speaker), name=name, calls=calls)
    return {"parts": rest} if rest else {}


def _call(call: Mapping[str, Any], part: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        call["name"],
        arguments_in(call.get("args")),
        call_id=text(call.get("id")),
        signature=text(part.get("thoughtSignature")),
    )


def _answered(told: Chronicle, part: Mapping[str, Any], status: str | None) -> list[Any]:
    """Tell a tool's answer; gives what stood beside it."""
    response = part["functionResponse"]
    given, call_id = response.get("response"), text(response.get("id"))
    said = mapping(given).get("error")
    error = None
    if said is not None or status in ("error", "cancelled", "canceled"):
        error = said if isinstance(said, str) and said else f"it ended with {status or 'an error'}"
    result = given["output"] if isinstance(given, dict) and set(given) == {"output"} else given
    name = told.answer(call_id, result, error=error, name=text(response.get("name")))
    told_of = {"id": call_id, "name": name, "response": given}
    return _beside(call_id, without(part, "functionResponse") | left(response, told_of))


def _beside(call_id: str | None, rest: dict[str, Any]) -> list[Any]:
    return [{"of": call_id, **rest}] if rest else []


def _text_in(part: Any) -> str | None:
    found = mapping(part)
    said = found.get("text")
    return said if len(found) == 1 and isinstance(said, str) else None


NAME = "gemini"

_ABOUT = ("sessionId", "projectHash", "startTime")
_FAILED = ("error", "cancelled", "canceled")
_CALL = ("id", "name", "args", "result")
_ASIDE = ("info", "error", "warning")


def looks_like(values: Sequence[Any]) -> bool:
    """True for a session's head, for lines that Gemini says, and for `role` with `parts`."""
    return any(_is_ours(value) for _, value in unrolled((0, value) for value in values))


def _is_ours(value: Any) -> bool:
    found = mapping(value)
    head = sum(key in found for key in _ABOUT) > 1 and not {"uuid", "role"} & found.keys()
    said = found.get("type") == "gemini" and "content" in found
    return head or said or "$rewindTo" in found or _is_checkpoint(found)


def _is_checkpoint(found: Mapping[str, Any]) -> bool:
    """True for `role` with `parts`; those of others say of which type each part is."""
    parts = found.get("parts")
    typed = any("type" in mapping(part) for part in items(parts))
    return found.get("role") in ("user", "model") and isinstance(parts, list) and not typed


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The sessions of a file: each head begins one."""
    telling: _Telling | None = None
    for line, value in unrolled(values):
        found = mapping(value)
        is_head = any(key in found for key in _ABOUT) and "type" not in found
        if telling is None or (is_head and telling.has_head):
            if telling is not None:
                yield telling.imported(source)
            telling = _Telling()
        telling.take(line, value, is_head=is_head)
    if telling is not None:
        yield telling.imported(source)


class _Telling:
    """One session: its lines are taken first, for later ones change earlier ones."""

    def __init__(self) -> None:
        self._told = Chronicle()
        self._head: dict[str, Any] = {}
        # By the message's id, or by a number of ours.
        self._parts: dict[str | int, tuple[int, Any]] = {}
        self._taken = 0
        self._heads: list[dict[str, Any]] = []
        self._amended: list[dict[str, Any]] = []
        self._summaries: set[str] = set()
        self._results: dict[str, Sequence[Any]] = {}
        self.has_head = False

    def take(self, line: int, value: Any, *, is_head: bool = False) -> None:
        found = mapping(value)
        if is_head:
            self.has_head = True
            self._know(line, found)
        elif isinstance(found.get("$set"), dict):
            self._know(line, found["$set"])
            if rest := without(found, "$set"):
                self._take(line, rest)
        elif (back := text(found.get("$rewindTo"))) is not None:
            self._rewind(line, back, found)
        else:
            self._take(line, value)

    def _know(self, line: int, found: Mapping[str, Any]) -> None:
        """What is said of the session; what was said before is kept as it was."""
        self._head |= without(found, "messages")
        self._heads.append(without(found, "messages"))
        inside = found.get("messages")
        self._summaries |= self._put_in_place_of_others(items(inside))
        for message in items(inside):
            self._take(line, message)
        if inside is not None and not isinstance(inside, list):
            self._take(line, {"messages": inside})

    def _put_in_place_of_others(self, messages: Sequence[Any]) -> set[str]:
        """The ids of messages that stand where a history lacks some that were told before.

        What is new behind the last one that is known goes on with the conversation.
        """
        if not messages:
            return set()
        ids = [text(mapping(message).get("id")) for message in messages]
        told = {key for key, (_, value) in self._parts.items() if _is_turn(value)}
        if told <= set(ids):
            return set()
        known = [place for place, id_ in enumerate(ids) if id_ in self._parts]
        before = ids[: known[-1]] if known else ids
        return {id_ for id_ in before if id_ is not None and id_ not in self._parts}

    def _take(self, line: int, value: Any) -> None:
        key = text(mapping(value).get("id"))
        if key is None:
            self._put(line, value)
        elif key in self._parts:
            first, before = self._parts[key]
            changed = {name: it for name, it in before.items() if value.get(name, it) != it}
            self._amended += [{"id": key, **changed}] if changed else []
            self._parts[key] = first, {**before, **value}
        else:
            self._parts[key] = line, value

    def _put(self, line: int, value: Any) -> None:
        self._parts[self._taken] = line, value
        self._taken += 1

    def _rewind(self, line: int, back: str, whole: Mapping[str, Any]) -> None:
        if back not in self._parts:
            self._put(line, whole)
            return
        taken: list[Any] = []
        key: str | int | None = None
        while key != back:
            key, (_, value) = self._parts.popitem()
            # What was taken back before is not nested: that could go on without an end.
            taken += value.backwards() if isinstance(value, _Rewound) else [value]
        self._put(line, _Rewound({"line": whole, "taken": taken[::-1]}))

    def imported(self, source: str) -> Imported:
        told = self._told
        for line, value in self._parts.values():
            self._tell(line, value)
        head = self._head
        told.recorded |= {"about": head} if head else {}
        if len(self._heads) > 1:
            told.recorded["about_before"] = self._heads
        if self._amended:
            told.recorded["amended"] = self._amended
        if (title := text(head.get("summary"))) is not None:
            told.recorded["title"] = title
        told.at(head.get("startTime"))
        return told.imported(text(head.get("sessionId")) or stem(source), NAME, source)

    def _tell(self, line: int, value: Any) -> None:
        found, told = mapping(value), self._told
        kind = found.get("type")
        told.at(found.get("timestamp"))
        if isinstance(value, _Rewound):
            told.keep("rewound", dict(value))
            for taken in map(mapping, value["taken"]):
                self._spent((line, len(told)), taken)
        elif kind in ("user", "gemini") and "content" in found:
            (self._user if kind == "user" else self._gemini)(line, found)
            told.note(line, left(without(found, "type"), _told_of(found)))
        elif kind in _ASIDE and "content" in found:
            told.keep(str(kind), without(found, "type"))
        elif _is_checkpoint(found):
            rest = tell_parts(told, found["role"], found["parts"])
            told.note(line, {**without(found, "role", "parts"), **rest})
        else:
            told.pass_over(None, value)

    def _user(self, line: int, found: Mapping[str, Any]) -> None:
        content, shown = found["content"], found.get("displayContent")
        name = self._name(found)
        if isinstance(content, list):
            new = self._without_repeated(line, content, "functionResponse", self._results)
            self._told.note(line, tell_parts(self._told, "user", new, name=name))
        elif isinstance(content, str):
            self._told.say("user", content, name=name)
        else:
            self._told.pass_over(f"user content: {named(content)}", content)
        if shown is not None:
            self._told.keep("displayContent", shown)

    def _gemini(self, line: int, found: Mapping[str, Any]) -> None:
        told, content = self._told, found["content"]
        for thought in items(found.get("thoughts")):
            told.keep("thinking", thought)
        calls = []
        odd = []
        for call in items(found.get("toolCalls")):
            name = text(mapping(call).get("name"))
            if name is None:
                odd.append(call)
            else:
                given = arguments_in(call.get("args"))
                calls.append(ToolCall(name, given, call_id=text(call.get("id"))))
        name = self._name(found)
        if isinstance(content, list) and content:
            own = {call.call_id: () for call in calls if call.call_id is not None}
            new = self._without_repeated(line, content, "functionCall", own)
            told.note(line, tell_parts(told, "model", new, name=name, calls=calls))
        else:
            said = content if isinstance(content, str) else ""
            told.say("assistant", said, name=name, calls=calls)
        if not isinstance(content, str | list):
            told.pass_over(f"gemini content: {named(content)}", content)
        for call in odd:
            told.pass_over("tool call without a name", call)
        for call in items(found.get("toolCalls")):
            self._answered(line, mapping(call))
        self._spent(text(found.get("id")) or (line, len(told)), found)

    def _without_repeated(
        self, line: int, parts: Sequence[Any], key: str, known: Mapping[str, Sequence[Any]]
    ) -> list[Any]:
        """Parts without the calls, and the results, that a message has under `toolCalls` too."""
        again = [
            part
            for part in parts
            if (id_ := text(mapping(mapping(part).get(key)).get("id"))) in known
            and (key == "functionCall" or part in known[str(id_)])
        ]
        self._told.note(line, {"content": again} if again else {})
        return [part for part in parts if part not in again]

    def _name(self, found: Mapping[str, Any]) -> str | None:
        """Who speaks, where that is neither the user nor the model."""
        return "summary" if text(found.get("id")) in self._summaries else None

    def _spent(self, key: Hashable, found: Mapping[str, Any]) -> None:
        """What a model was asked for: that a message was taken back does not give it back."""
        model, tokens = text(found.get("model")), mapping(found.get("tokens"))
        if found.get("type") == "gemini" and (model or tokens):
            self._told.used(key, model, usage_of(tokens))

    def _answered(self, line: int, call: Mapping[str, Any]) -> None:
        name, status, result = text(call.get("name")), call.get("status"), call.get("result")
        if name is None:
            return
        if result is None and status not in (*_FAILED, "success"):
            self._told.note(line, {"of": call.get("id"), **without(call, *_CALL)})
            return
        given, said, rest = _given(result)
        error = None
        if status in _FAILED or said:
            error = said or (f"it was {status}" if status != "error" else "it failed")
        call_id = text(call.get("id"))
        self._told.answer(call_id, given, error=error, name=name)
        if call_id is not None:
            self._results[call_id] = items(result)
        rest = left(rest, {"id": call_id, "name": name})
        self._told.note(line, {"of": call.get("id"), **without(call, *_CALL), **rest})


def _told_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """What of a message is told: all of it, unless it is of another type than it should be."""
    lists = {name: it for name in ("thoughts", "toolCalls") if isinstance(it := found.get(name), list)}
    told = {"content": found["content"], "displayContent": found.get("displayContent")}
    return {**told, **lists, "model": text(found.get("model"))}


def _is_turn(value: Any) -> bool:
    """True for what the model has before it; what the program says to the user is not."""
    return mapping(value).get("type") in ("user", "gemini")


class _Rewound(dict[str, Any]):
    """Messages that were taken back."""

    def backwards(self) -> list[Any]:
        """The messages and the line that took them back, the last first."""
        return [self["line"], *reversed(self["taken"])]


def _given(result: Any) -> tuple[Any, str | None, dict[str, Any]]:
    """What a tool gave, out of the response that the model gets, its error, and what is left."""
    only = items(result)[0] if len(items(result)) == 1 else None
    response = mapping(mapping(only).get("functionResponse"))
    given = response.get("response")
    if not isinstance(given, dict):
        return result, None, {}
    rest = without(response, "response") | without(mapping(only), "functionResponse")
    said = given.get("error")
    if set(given) == {"output"}:
        return given["output"], None, rest
    failed = None if said is None else said if isinstance(said, str) else "it failed"
    return given, failed, rest


def usage_of(tokens: Mapping[str, Any]) -> Usage:
    """Tokens of a message; thoughts are output, what tools put in is input, the cache inside it.

    >>> usage_of({"input": 40, "output": 3, "cached": 8, "thoughts": 5, "tool": 0, "total": 48})
    Usage(input_tokens=40, output_tokens=8, cached_tokens=8)
    """
    asked, by_tools = count(tokens.get("input")), count(tokens.get("tool"))
    said, thought = count(tokens.get("output")), count(tokens.get("thoughts"))
    return Usage(_sum(asked, by_tools), _sum(said, thought), count(tokens.get("cached")))


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
