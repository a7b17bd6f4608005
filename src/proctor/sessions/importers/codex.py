"""Codex: one JSON object a line, `type` and `payload` (`~/.codex/sessions/…/rollout-*.jsonl`).

The items of the conversation (`response_item`) are told; events repeat most of them for the screen,
so of these only what is new is told: tokens, exit codes, what was aborted. Older logs have the
items without the envelope. What the program says in the user's place is named "context". Turns that
were rolled back are kept, and their tokens count, but they are no part of the conversation.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import Role, ToolCall, Usage
from proctor.sessions.genai.values import arguments_in
from proctor.sessions.importers.chronicle import Chronicle
from proctor.sessions.importers.shapes import (
    Imported,
    amount,
    count,
    joined,
    left,
    mapping,
    named,
    number_at,
    plain,
    stem,
    text,
    unrolled,
    without,
)

ROLES: dict[str, Role] = {
    "user": "user", "assistant": "assistant", "system": "system", "developer": "system",
}  # fmt: skip
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output", "tool_search_output")
# Tools that run where the model does: the item tells how it went.
SERVED = ("web_search_call", "image_generation_call")
ITEMS = ("message", "reasoning", *CALLS, *OUTPUTS, *SERVED)
# Events that say again what an item of the conversation says.
ECHOES: dict[str, Role] = {"user_message": "user", "agent_message": "assistant"}
_TEXTS = ("input_text", "output_text", "text")
# What the program says in the user's place.
_CONTEXT = (
    "<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<skill>",
    "<turn_aborted>", "<user_shell_command>", "<subagent_notification>",
)  # fmt: skip
_PICTURE = "input_image"
_BEGINS = re.compile(r"<image(?: [^\n]*)?>")
_TURN_ENDS = "</image>"


class Said(NamedTuple):
    """What a message says: its content, and the parts that only frame a picture in it.

    `forms` are the texts by which an event may repeat it: the likeliest first.
    """

    content: Any
    frames: list[Any]
    forms: Sequence[str]

    @property
    def is_context(self) -> bool:
        """True for what the program says in the user's place."""
        return self.forms[0].startswith(_CONTEXT)


def said_in(content: str | list[Any]) -> Said:
    """What the content of a message says.

    >>> picture = {"type": "input_image", "image_url": "x"}
    >>> framed = [{"type": "input_text", "text": "<image>"}, picture]
    >>> said_in([*framed, {"type": "input_text", "text": "What is it?"}]).forms[0]
    'What is it?'
    """
    if isinstance(content, str):
        return Said(content, [], [content.strip()])
    frames = [_is_frame(content, place) for place in range(len(content))]
    own = [part for part, framed in zip(content, frames, strict=True) if not framed]
    texts = [said for part in own if (said := text(mapping(part).get("text")))]
    said = joined(own, text_in)
    forms = [(plain(said) or "").strip(), "".join(texts).strip(), *(one.strip() for one in texts)]
    framing = [part for part, framed in zip(content, frames, strict=True) if framed]
    return Said(said, framing, [*dict.fromkeys(forms)])


def _is_frame(parts: Sequence[Any], place: int) -> bool:
    """True for the text by which the program names a picture, before it, and closes it after."""
    said = text_in(parts[place]) or ""
    if said == _TURN_ENDS:
        return place > 0 and mapping(parts[place - 1]).get("type") == _PICTURE
    after = mapping(parts[place + 1]) if place + 1 < len(parts) else {}
    return after.get("type") == _PICTURE and _BEGINS.fullmatch(said) is not None


def text_in(part: Any) -> str | None:
    """The text of a part that is nothing else."""
    found = mapping(part)
    said = found.get("text")
    if len(found) == 2 and found.get("type") in _TEXTS and isinstance(said, str):
        return said
    return None


class Echoes:
    """Which events repeat an item; the others are the only trace of what was said.

    >>> echoes = Echoes()
    >>> echoes.hear("user", said_in("Go on."), 5)
    >>> for place in (4, 20):
    ...     echoes.repeat("user", "Go on.", place)
    >>> list(echoes.alone())
    [(20, 'user', 'Go on.')]
    """

    def __init__(self) -> None:
        # Where something was said, by who said it: by the item, and by the event.
        self._heard: list[tuple[int, Role, Sequence[str]]] = []
        self._echoes: defaultdict[tuple[Role, str], list[int]] = defaultdict(list)

    def hear(self, role: Role, said: Said, place: int) -> None:
        """An item says something."""
        self._heard.append((place, role, said.forms))

    def repeat(self, role: Role, words: str, place: int) -> None:
        """An event says something."""
        self._echoes[role, words].append(place)

    def alone(self) -> Iterator[tuple[int, Role, str]]:
        """What only an event says: where, who and what."""
        alone = {key: list(places) for key, places in self._echoes.items()}
        parted = [
            (place, role, forms)
            for place, role, forms in self._heard
            if not _claim(alone.get((role, forms[0]), []), place)
        ]
        for place, role, forms in parted:
            any(_claim(alone.get((role, form), []), place) for form in forms[1:])
        for (role, words), places in alone.items():
            for place in places:
                yield place, role, words


def _claim(places: list[int], place: int) -> bool:
    """Take away the place that is nearest; each item has one, right before it or after it."""
    after = bisect(places, place)
    near = [n for n in (after - 1, after) if 0 <= n < len(places)]
    if not near:
        return False
    places.pop(min(near, key=lambda n: abs(places[n] - place)))
    return True


ROLLED_BACK = "thread_rolled_back"


class Taken(NamedTuple):
    """A line by its number; if it took others back, those."""

    number: int
    value: Any
    back: list[Any] | None = None


class _Turn(NamedTuple):
    """Where a turn begins, and with which words; an item and its echo are one."""

    place: int
    forms: frozenset[str]
    is_echo: bool
    is_open: bool = True


class Turns:
    """The lines of a session, with the turns that they are.

    >>> turns = Turns()
    >>> for words in ("One?", "Two?"):
    ...     turns.take(1, {"type": "message", "role": "user", "content": words})
    >>> event = {"type": "thread_rolled_back", "num_turns": 1}
    >>> turns.take(3, {"type": "event_msg", "payload": event})
    >>> [len(line.back or ()) for line in turns.lines()]
    [0, 1]
    """

    def __init__(self) -> None:
        self._lines: list[Taken] = []
        self._turns: list[_Turn] = []
        self._gone: set[int] = set()
        # From where on a line has taken others back, by its own place.
        self._since: dict[int, int] = {}

    def lines(self) -> Iterator[Taken]:
        """The lines that count, in order."""
        return (line for place, line in enumerate(self._lines) if place not in self._gone)

    def take(self, number: int, value: Any) -> None:
        """One line more."""
        event, item = event_in(value), item_in(value)
        back = None
        if event.get("type") == ROLLED_BACK:
            back = self._back(count(event.get("num_turns")) or 0)
        elif event:
            self._repeated(event)
        elif item:
            self._said(item)
        self._lines.append(Taken(number, value, back))

    def _repeated(self, event: Mapping[str, Any]) -> None:
        words = (text(event.get("message")) or "").strip()
        if words and ECHOES.get(str(event.get("type"))) == "user":
            self._begin(frozenset((words,)), is_echo=True)

    def _said(self, item: Mapping[str, Any]) -> None:
        content, role = item.get("content"), item.get("role")
        if item.get("type") != "message" or role == "assistant":
            if self._turns and item.get("type") != "reasoning":
                self._turns[-1] = self._turns[-1]._replace(is_open=False)
        elif role == "user" and isinstance(content, str | list):
            said = said_in(content)
            if not said.is_context:
                self._begin(frozenset(said.forms), is_echo=False)

    def _begin(self, forms: frozenset[str], *, is_echo: bool) -> None:
        last = self._turns[-1] if self._turns else None
        # One that stands right beside the other is its echo, in whatever words.
        is_beside = last is not None and last.place == len(self._lines) - 1
        is_pair = last is not None and last.is_open and last.is_echo != is_echo
        if last and is_pair and (is_beside or last.forms & forms):
            self._turns[-1] = last._replace(is_open=False)
        else:
            self._turns.append(_Turn(len(self._lines), forms, is_echo))

    def _back(self, turns: int) -> list[Any] | None:
        """What is taken back with so many turns, or with all of them; None if there are none."""
        begun = self._turns[-turns:] if turns else []
        if not begun:
            return None
        del self._turns[-turns:]
        first, place, taken = begun[0].place, len(self._lines) - 1, []
        self._since[len(self._lines)] = first
        while place >= first:
            if place in self._since:
                # All from there to here was looked at before.
                place = self._since[place]
            elif _is_conversation(self._lines[place].value):
                self._gone.add(place)
                taken.append(self._lines[place].value)
            place -= 1
        return taken[::-1]


def _is_conversation(value: Any) -> bool:
    event = event_in(value)
    return bool(item_in(value)) or bool(event and event.get("type") != "token_count")


def event_in(value: Any) -> Mapping[str, Any]:
    """The event that a line holds, if it does."""
    found = mapping(value)
    return mapping(found.get("payload")) if found.get("type") == "event_msg" else {}


def item_in(value: Any) -> Mapping[str, Any]:
    """The item of the conversation that a line holds, or is; heads and others are none."""
    found = mapping(value)
    if found.get("type") == "response_item":
        return mapping(found.get("payload"))
    return found if found.get("type") in ITEMS and "payload" not in found else {}


NAME = "codex"

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_ENDS = (
    "exec_command_end", "mcp_tool_call_end", "patch_apply_end",
    "web_search_end", "image_generation_end",
)  # fmt: skip
_AROUND = ("task_", "turn_", "agent_reasoning", "thread_")
# The program writes how a command ended above what it printed, or in the line below.
_OUTPUT = re.compile(r"^Output:[ \t]*\r?$", re.MULTILINE)
_EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})\r?$", re.MULTILINE)
_LAST_LINE = re.compile(r"(?:^|\n)Process exited with code (-?\d{1,9})\s*\Z")


def looks_like(values: Sequence[Any]) -> bool:
    """True for the envelopes of a rollout, or for bare items under a head with an id."""
    found = [mapping(value) for _, value in unrolled((0, it) for it in values)]
    if any(line.get("type") in _ENVELOPES and "payload" in line for line in found):
        return True
    bare = any(line.get("type") in ITEMS and "message" not in line for line in found)
    return bare and any(_is_old_head(line) or "record_type" in line for line in found)


def _is_old_head(line: Mapping[str, Any]) -> bool:
    return "id" in line and "timestamp" in line and not {"type", "role"} & line.keys()


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[Imported]:
    """The session of a file; each head with another id begins a new one."""
    telling: _Telling | None = None
    for line, value in unrolled(values):
        id_ = text(_head_in(value).get("id"))
        if telling is None or (id_ and telling.id and id_ != telling.id and not telling.is_forked):
            if telling is not None:
                yield telling.imported(source)
            telling = _Telling()
        telling.take(line, value)
    if telling is not None:
        yield telling.imported(source)


def _head_in(value: Any) -> Mapping[str, Any]:
    """What a head tells of a session; empty for other lines, and for a head without an id."""
    found = mapping(value)
    is_head = found.get("type") == "session_meta" or _is_old_head(found)
    head = mapping(found.get("payload")) if "payload" in found else found
    return head if is_head and text(head.get("id")) is not None else {}


class _Telling:
    def __init__(self) -> None:
        self._told = Chronicle()
        self._model: str | None = None
        self._spent = 0
        self._totals: dict[str, int] = {}
        self._ends: dict[str, tuple[str | None, float | None]] = {}
        self._turns = Turns()
        self._echoes = Echoes()
        self.id: str | None = None
        self.is_forked = False
        self._tell: dict[str, Callable[[int, Mapping[str, Any]], None]] = {
            "message": self._message,
            "reasoning": self._reasoning,
            **dict.fromkeys(CALLS, self._call),
            **dict.fromkeys(SERVED, self._served),
            **dict.fromkeys(OUTPUTS, self._output),
        }

    def take(self, line: int, value: Any) -> None:
        """A line of the session; it is told when all are known, for later ones take others back."""
        head = _head_in(value)
        if head and self.id is None:
            self.id = head["id"]
            self.is_forked = head.get("forked_from_id") is not None
        self._turns.take(line, value)

    def imported(self, source: str) -> Imported:
        told = self._told
        for line in self._turns.lines():
            if line.back is None:
                self._line(line.number, line.value)
            else:
                told.keep("rewound", {"line": line.value, "taken": line.back})
                for value in (*line.back, line.value):
                    told.at(mapping(value).get("timestamp"))
        # Where no item said it, the event is the only trace of it.
        for place, role, words in self._echoes.alone():
            told.said_at(place, role, words)
        return told.imported(self.id or stem(source), NAME, source)

    def _line(self, line: int, value: Any) -> None:
        found, told = mapping(value), self._told
        told.at(found.get("timestamp"))
        kind, payload = found.get("type"), mapping(found.get("payload"))
        if head := _head_in(value):
            self._head(head)
            told.note(line, without(found, "type", "payload") if payload else {})
        elif kind == "turn_context":
            self._model = text(payload.get("model")) or self._model
            told.keep("turn_context", without(found, "type"))
        elif kind == "response_item" and payload:
            self._item(line, payload, found)
            told.note(line, without(found, "type", "payload"))
        elif kind == "event_msg" and payload:
            self._event(line, payload, found)
        elif kind == "compacted":
            told.keep("compacted", without(found, "type"))
        elif kind in ITEMS and "payload" not in found:
            self._item(line, found, found)
        elif "record_type" in found:
            told.keep("state", found)
        else:
            told.pass_over(None, value)

    def _head(self, head: Mapping[str, Any]) -> None:
        if "about" in self._told.recorded:
            self._told.keep("session_meta", head)
        else:
            self._told.recorded["about"] = head
            self._model = text(head.get("model")) or self._model

    def _item(self, line: int, item: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
        tell = self._tell.get(str(item.get("type")))
        if tell is None:
            self._told.pass_over(named(item), whole)
        else:
            tell(line, item)

    def _message(self, line: int, item: Mapping[str, Any]) -> None:
        role = ROLES.get(str(item.get("role")))
        content = item.get("content")
        if role is None or not isinstance(content, str | list):
            other = text(item.get("role"))
            if role is None and other is not None and content not in (None, "", []):
                self._told.hear(other, content, without(item, "role", "content"))
            else:
                self._told.pass_over("message", item)
            return
        said = said_in(content)
        context = role == "user" and said.is_context
        self._echoes.hear(role, said, len(self._told))
        self._told.say(role, said.content, name="context" if context else None)
        self._told.note(line, without(item, "type", "role", "content"))
        self._told.note(line, {"frames": said.frames} if said.frames else {})

    def _reasoning(self, line: int, item: Mapping[str, Any]) -> None:  # noqa: ARG002
        self._told.keep("reasoning", without(item, "type"))

    def _call(self, line: int, item: Mapping[str, Any]) -> None:
        kind, name = str(item["type"]), text(item.get("name"))
        given = next((key for key in ("input", "arguments", "action") if key in item), "")
        if name is None and kind in ("function_call", "custom_tool_call"):
            self._told.pass_over(kind, item)
            return
        call_id = text(item.get("call_id")) or text(item.get("id"))
        name = name or kind.removesuffix("_call")
        self._told.call(ToolCall(name, arguments_in(item.get(given)), call_id=call_id))
        told = {"call_id": call_id, "name": name, "type": kind}
        self._told.note(line, left(without(item, given), told))

    def _served(self, line: int, item: Mapping[str, Any]) -> None:
        """A tool that ran where the model does; what it found, the log may not tell."""
        kind, status, call_id = str(item["type"]), item.get("status"), text(item.get("id"))
        asked, result = item.get("action", item.get("revised_prompt")), item.get("result")
        call = ToolCall(kind.removesuffix("_call"), arguments_in(asked), call_id=call_id)
        if status in ("completed", "failed"):
            error = "it failed" if status == "failed" else None
            given = status if result is None and error is None else result
            self._told.called(msgspec.structs.replace(call, result=given, error=error))
            told = {"result": result}
        else:
            self._told.call(call)
            told = {}
        told |= {"type": kind, "id": call_id}
        name = "action" if "action" in item else "revised_prompt"
        self._told.note(line, left(without(item, name), told))

    def _output(self, line: int, item: Mapping[str, Any]) -> None:
        call_id, given = text(item.get("call_id")), item.get("output")
        result, code, seconds, rest = _out_of(given)
        # An id may be used again: how a call ended is told of that one only.
        why, took = self._ends.pop(call_id or "", (None, None))
        if why is None and code:
            why = f"exit code {code}"
        if why is None and mapping(given).get("success") is False:
            why = "it failed"
        if took is None and seconds is not None:
            took = seconds * 1000
        self._told.answer(call_id, result, error=why, duration_ms=took)
        self._told.note(line, {**left(item, {"output": given, "call_id": call_id}), **rest})

    def _event(self, line: int, event: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
        told, kind = self._told, str(event.get("type"))
        if kind == "token_count":
            self._tokens(event)
        elif kind in ECHOES:
            if words := (text(event.get("message")) or "").strip():
                self._echoes.repeat(ECHOES[kind], words, len(told))
            told.keep(kind, {"event": event})
        elif kind in _ENDS:
            self._ended(event)
            told.keep(kind, {"event": event})
        elif kind.startswith(_AROUND) and kind != ROLLED_BACK:
            told.keep(kind, without(event, "type"))
        else:
            told.pass_over(f"event: {kind}", whole)
        told.note(line, without(whole, "type", "payload"))

    def _ended(self, event: Mapping[str, Any]) -> None:
        """How a call ended, which stands before its output, or after it."""
        call_id, code = text(event.get("call_id")), event.get("exit_code")
        failed = event.get("status") in ("failed", "declined") or event.get("success") is False
        why = None
        if failed or (isinstance(code, int) and code != 0):
            why = f"exit code {code}" if isinstance(code, int) else "it failed"
        took = _milliseconds(event.get("duration"))
        if call_id is not None and not self._told.ended(call_id, why, took):
            self._ends[call_id] = why, took

    def _tokens(self, event: Mapping[str, Any]) -> None:
        """What a model call used. The same total told again is the same call."""
        info = mapping(event.get("info"))
        total, last = mapping(info.get("total_token_usage")), mapping(info.get("last_token_usage"))
        self._told.keep("token_count", without(event, "type"))
        counts = {name: n for name, it in total.items() if (n := count(it)) is not None}
        if counts and counts == self._totals:
            return
        if not last and counts:
            before = self._totals
            if any(n < before.get(name, 0) for name, n in counts.items()):
                before = {}  # They count anew: all of it is new.
            last = {name: n - before.get(name, 0) for name, n in counts.items()}
        self._totals = counts or self._totals
        if last:
            self._spent += 1
            self._told.used(f"call {self._spent}", self._model, usage_of(last))


def usage_of(found: Mapping[str, Any]) -> Usage:
    """Tokens of a call: what was read from the cache is inside the input, reasoning in the output.

    >>> usage_of({"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 10})
    Usage(input_tokens=100, output_tokens=10, cached_tokens=60)
    """
    return Usage(
        number_at(found, "input_tokens"),
        number_at(found, "output_tokens"),
        number_at(found, "cached_input_tokens"),
    )


def _out_of(given: Any) -> tuple[Any, int | None, float | None, dict[str, Any]]:
    """A tool's output, its exit code, how long it took, as far as they are told, and the rest."""
    if isinstance(given, str):
        told: Any = None
        if given.startswith("{"):
            try:
                told = msgspec.json.decode(given)
            except (ValueError, RecursionError):
                told = None
        about = mapping(mapping(told).get("metadata"))
        if "output" in mapping(told) and about:
            code = about.get("exit_code")
            seconds = amount(about.get("duration_seconds"))
            rest = {"beside output": without(told, "output")}
            return told["output"], code if isinstance(code, int) else None, seconds, rest
        return given, _exit_code(given), None, {}
    if isinstance(given, list):
        return joined(given, text_in), None, None, {}
    return given, None, None, {}


def _exit_code(given: str) -> int | None:
    """How a command ended, as the program says; what the command printed may say anything.

    >>> _exit_code("Exit code: 0\\nWall time: 1 seconds\\nOutput:\\nExit code: 1")
    0
    """
    begins = _OUTPUT.search(given)
    found = _EXIT.findall(given, 0, begins.start()) if begins else []
    found = found or _LAST_LINE.findall(given)
    return int(found[-1]) if found else None


def _milliseconds(duration: Any) -> float | None:
    found = mapping(duration)
    seconds, more = amount(found.get("secs")), amount(found.get("nanos"))
    return None if seconds is None else seconds * 1e3 + (more or 0.0) / 1e6
