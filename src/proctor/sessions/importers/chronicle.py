"""How a log becomes a session: told in order, answers find their calls, and nothing is lost."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from proctor.records.session import CustomEvent, Event, Message, ModelCall, Role, Session, ToolCall, Usage
from proctor.records.telling import UNANSWERED, UNASKED
from proctor.sessions.importers.shapes import Imported, found_in, moment, named, plain

UNKNOWN_MODEL = "unknown"


class Chronicle:
    """A session in the making, as the lines of a log tell it.

    A tool call stands where it was asked for, and its answer is put into it when it comes; one
    that is never answered says so. Calls of one message that share an id are answered in order;
    where a later message uses an id again, the answers are its own. A message that several lines
    tell is one message, with one model call; what it says after a tool's answer stands after it.

    >>> told = Chronicle()
    >>> told.say("user", "Capital of France?")
    >>> told.say("assistant", "", calls=[ToolCall("search", {"q": "France"}, call_id="1")])
    >>> _ = told.answer("1", "Paris")
    >>> told.imported("s1", "openai", "chat.json").session[ToolCall][0].result
    'Paris'
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._asked: dict[str, tuple[int, deque[int]]] = {}
        self._answered: dict[str, int] = {}
        self._unnamed: deque[int] = deque()
        self._unnamed_by_name: defaultdict[str, deque[int]] = defaultdict(deque)
        self._open: set[int] = set()
        self._turn = 0
        self._earlier: defaultdict[int, list[Message]] = defaultdict(list)
        self._models: dict[Hashable, int] = {}
        self._speaking: tuple[Hashable, int] | None = None
        self._is_answered = False
        # What lines said of a message that had begun; put together at the end.
        self._more: defaultdict[int, list[tuple[Any, list[ToolCall]]]] = defaultdict(list)
        self._passed_over: Counter[str] = Counter()
        self._notes: list[dict[str, Any]] = []
        self._times: list[str] = []
        self.recorded: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._events)

    def say(
        self,
        role: Role,
        content: Any,
        *,
        name: str | None = None,
        calls: list[ToolCall] | None = None,
        key: Hashable = None,
    ) -> None:
        """Someone says something, and asks for tools; the same key goes on with the message."""
        calls = calls or []
        if self._goes_on(key, content) and self._speaking is not None:
            self._more[self._speaking[1]].append((content, calls))
        else:
            self._events.append(Message(role, content, name, tuple(calls)))
            self._turn += 1
            self._speaking = None if key is None else (key, len(self._events) - 1)
            self._is_answered = False
        for call in calls:
            self._ask(call)

    def said_at(self, place: int, role: Role, content: str) -> None:
        """Someone said something earlier on: when there were so many events as `place` says."""
        self._earlier[place].append(Message(role, content))

    def _goes_on(self, key: Hashable, content: Any) -> bool:
        """True if it belongs to the message before; words after a tool's answer stand after it."""
        is_same = key is not None and self._speaking is not None and self._speaking[0] == key
        return is_same and not (self._is_answered and content)

    def _ask(self, call: ToolCall) -> None:
        place = len(self._events)
        self._events.append(unanswered(call))
        self._open.add(place)
        if call.call_id is None:
            self._unnamed.append(place)
            self._unnamed_by_name[call.name].append(place)
            return
        turn, waiting = self._asked.get(call.call_id, (-1, deque()))
        if turn != self._turn:
            self._asked[call.call_id] = self._turn, (waiting := deque())
        waiting.append(place)
        self._answered.pop(call.call_id, None)

    def call(self, call: ToolCall) -> None:
        """A tool that is called without a message around it."""
        self._ask(call)

    def called(self, call: ToolCall) -> None:
        """A tool that was called and has answered: how it went stands in the call."""
        self._events.append(call)
        self._is_answered = True

    def answer(
        self,
        call_id: str | None,
        result: Any,
        *,
        error: str | None = None,
        duration_ms: float | None = None,
        name: str | None = None,
    ) -> str | None:
        """What a tool gave back; without its call's id, the first call of that name is meant.

        Gives the name of the tool that was called.
        """
        place = self._waiting(call_id, name)
        self._is_answered = True
        if place is None:
            told = {"call_id": call_id, "of": name, "content": result, "failure": error}
            self._passed_over[UNASKED] += 1
            self.keep(UNASKED, {key: it for key, it in told.items() if it is not None})
            return name
        self._open.discard(place)
        if call_id is not None:
            self._answered[call_id] = place
        call = _call_in(self._events[place])
        self._events[place] = msgspec.structs.replace(
            call, result=result, error=error, duration_ms=duration_ms
        )
        return call.name

    def ended(self, call_id: str, error: str | None, duration_ms: float | None) -> bool:
        """How a call ended that is answered already, as another line tells.

        False if none of that id is answered, or one that was asked for later still waits.
        """
        place = self._answered.get(call_id)
        if place is None:
            return False
        call = self._events[place]
        assert isinstance(call, ToolCall)
        self._events[place] = msgspec.structs.replace(
            call,
            error=error if call.error is None else call.error,
            duration_ms=duration_ms if call.duration_ms is None else call.duration_ms,
        )
        return True

    def _waiting(self, call_id: str | None, name: str | None) -> int | None:
        """Where the call stands that an answer is for: of its id, else of its name, else any."""
        if call_id is not None:
            _, waiting = self._asked.get(call_id, (0, deque()))
        else:
            waiting = self._unnamed if name is None else self._unnamed_by_name[name]
        while waiting:
            place = waiting.popleft()
            if place in self._open:
                return place
        return None

    def used(
        self, key: Hashable, model: str | None, usage: Usage, *, finish_reason: str | None = None
    ) -> None:
        """A model was asked; said again with the same key, the later line holds.

        A key is an id of the log's, or no text: so none is taken for the other.
        """
        call = ModelCall(model or UNKNOWN_MODEL, usage, finish_reason=finish_reason)
        place = self._models.get(key)
        if place is None:
            self._models[key] = len(self._events)
            self._events.append(call)
            return
        before = self._events[place]
        assert isinstance(before, ModelCall)
        self._events[place] = ModelCall(
            before.model if model is None else model,
            before.usage if usage == Usage() else usage,
            finish_reason=finish_reason or before.finish_reason,
        )

    def keep(self, kind: str, data: Any) -> None:
        """Something that is understood, and is neither a message nor a call."""
        self._events.append(CustomEvent(kind, data))

    def pass_over(self, kind: str | None, data: Any) -> None:
        """Something that is not understood: it is kept, and counted."""
        kind = kind or named(data)
        self._passed_over[kind] += 1
        self._events.append(found_in(kind, data))

    def hear(self, role: str, content: Any, around: Mapping[str, Any]) -> None:
        """Someone speaks in a role that is none of the four: readers see it as what it is."""
        kind = f"message: {role[:60]}"
        self._passed_over[kind] += 1
        told = {"role": role, "content": content, **({"found": around} if around else {})}
        self._events.append(CustomEvent(kind, told))

    def note(self, line: int, rest: Mapping[str, Any]) -> None:
        """What stood around a part: its ids and times."""
        if rest:
            self._notes.append({"line": line, **rest})

    def at(self, time: Any) -> None:
        """When something happened."""
        if moment(time) is not None:
            self._times.append(time)

    def imported(self, name: str, kind: str, source: str) -> Imported:
        """The session by its id and format; what was asked first and answered last is found."""
        times = sorted(self._times, key=_instant)
        more = {"started_at": times[0], "ended_at": times[-1]} if times else {}
        recorded = beside(self.recorded, more | ({"log": self._notes} if self._notes else {}))
        events = [*self._in_order()]
        return Imported(
            name,
            Session(events),
            kind,
            source,
            _first(events, "user"),
            _first(events[::-1], "assistant"),
            recorded,
            dict(self._passed_over),
        )

    def _in_order(self) -> Iterator[Event]:
        for place, event in enumerate(self._events):
            yield from self._earlier.get(place, ())
            more = self._more.get(place)
            yield event if more is None else _whole(event, more)
        yield from self._earlier.get(len(self._events), ())


def _first(events: Sequence[Event], role: Role) -> str | None:
    """What a role says first; what a program says in its place is named, and comes after."""
    said = [event for event in events if isinstance(event, Message) and event.role == role]
    own = (plain(message.content, role) for message in said if message.name is None)
    others = (plain(message.content, role) for message in said)
    return next((words for words in chain(own, others) if words), None)


def beside(recorded: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """What was recorded with what we know more; neither takes the other's place.

    >>> beside({"log": "theirs"}, {"log": "ours", "started_at": "now"})
    {'log': 'theirs', 'imported log': 'ours', 'started_at': 'now'}
    """
    found = dict(recorded)
    for name, value in more.items():
        own = name
        while own in found:
            own = f"imported {own}"
        found[own] = value
    return found


def unanswered(call: ToolCall) -> CustomEvent:
    """A call whose answer is not known; that it went well is not known either."""
    told: dict[str, Any] = {"tool_name": call.name, "arguments": call.arguments}
    if call.call_id is not None:
        told["call_id"] = call.call_id
    return CustomEvent(UNANSWERED, told)


def _call_in(event: Event) -> ToolCall:
    assert isinstance(event, CustomEvent)
    told = event.data
    return ToolCall(told["tool_name"], told["arguments"], call_id=told.get("call_id"))


def _whole(event: Event, more: Sequence[tuple[Any, list[ToolCall]]]) -> Message:
    """A message with what other lines told of it."""
    assert isinstance(event, Message)
    said = [words for words in (event.content, *(words for words, _ in more)) if words]
    if all(isinstance(words, str) for words in said):
        content: Any = "\n".join(said)
    else:
        content = [part for words in said for part in _parts(words)]
    calls = (call for _, asked in more for call in asked)
    return msgspec.structs.replace(event, content=content, tool_calls=(*event.tool_calls, *calls))


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _instant(time: str) -> float:
    found = moment(time)
    return found.timestamp() if found is not None else 0.0
