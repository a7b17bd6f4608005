"""What the events of a session mean to who reads them: which calls came to nothing, who asked.

Logs hold more than messages and calls. What of it a reader must not miss is found here, for all
who tell a session: to people, and to judges.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.records.session import CustomEvent, Event, Message, ToolCall

# The kinds under which importers keep these two.
UNANSWERED = "unanswered tool call"
UNASKED = "tool result without its call"


class Unanswered(NamedTuple):
    """A tool that was called, and what came of it is not recorded."""

    call: ToolCall


class Unasked(NamedTuple):
    """What a tool gave back, where the call is not recorded."""

    name: str | None
    content: Any
    error: str | None


class Stranger(NamedTuple):
    """Something that was said in a role which is none of the four."""

    role: str
    content: Any


def meaning(event: CustomEvent) -> Unanswered | Unasked | Stranger | None:
    """What an event that is neither message nor call means, if it is something that took place.

    >>> meaning(CustomEvent("message: narrator", {"role": "narrator", "content": "Night falls."}))
    Stranger(role='narrator', content='Night falls.')
    """
    data = event.data
    if not isinstance(data, Mapping):
        return None
    if event.kind == UNANSWERED:
        arguments = data.get("arguments")
        call = ToolCall(
            str(data.get("tool_name")),
            arguments if isinstance(arguments, dict) else {},
            call_id=data.get("call_id"),
        )
        return Unanswered(call)
    if event.kind == UNASKED:
        return Unasked(data.get("of"), data.get("content"), data.get("failure"))
    role, content = data.get("role"), data.get("content")
    if isinstance(role, str) and content not in (None, "", []):
        return Stranger(role, content)
    return None


class Told:
    """Which calls and answers have an event of their own, so that messages need not repeat them.

    Messages are asked about in their order: ids are used again, and each event stands for one call.

    >>> search = ToolCall("search", {"q": "x"}, call_id="1")
    >>> told = Told([search])
    >>> told.only_asked(Message("assistant", "", tool_calls=(search, ToolCall("open"))))
    [ToolCall(name='open')]
    """

    def __init__(self, events: Iterable[Event]) -> None:
        calls = [call for event in events if (call := call_in(event)) is not None]
        self._called = Counter(map(which, calls))
        self._answered = [c for c in calls if c.result is not None or c.error is not None]
        self._by_id: defaultdict[str, deque[ToolCall]] = defaultdict(deque)
        for call in self._answered:
            self._by_id[call.call_id or ""].append(call)
        self._by_answer: dict[bytes, deque[ToolCall]] | None = None
        self._repeated: set[int] = set()

    def only_asked(self, message: Message) -> list[ToolCall]:
        """The calls that a message asks for, and nothing else in the session tells of."""
        return [call for call in message.tool_calls if not self._use(which(call))]

    def _use(self, call: tuple[str, str]) -> bool:
        self._called[call] -= 1
        return self._called[call] >= 0

    def repeats(self, message: Message) -> bool:
        """True for a tool's message with what the call itself has as its result.

        It is known by the id of the call; where it has none, by what it says.
        """
        if message.role != "tool":
            return False
        if message.call_id:
            calls = self._by_id[message.call_id]
        else:
            calls = self._with_answers().get(_key_of(message.content), deque())
        # Those that were found before are not looked at again and again.
        while calls and id(calls[0]) in self._repeated:
            calls.popleft()
        for call in calls:
            if id(call) not in self._repeated and _is_told(message.content, call):
                self._repeated.add(id(call))
                return True
        return False

    def _with_answers(self) -> dict[bytes, deque[ToolCall]]:
        """The calls by what they gave; looked up only where messages have no ids."""
        if self._by_answer is None:
            self._by_answer = {}
            for call in self._answered:
                for key in {_key_of(call.result), _key_of(call.error)} - {b""}:
                    self._by_answer.setdefault(key, deque()).append(call)
        return self._by_answer


def _key_of(answer: Any) -> bytes:
    """The same for answers that say the same; empty for none, and for what cannot be written."""
    if answer in (None, ""):
        return b""
    with contextlib.suppress(TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return msgspec.json.encode(_data(answer), order="sorted")
    return b""


def _is_told(content: Any, call: ToolCall) -> bool:
    """True if a call itself shows what a message says, be it data in one and JSON in the other."""
    answers = [answer for answer in (call.result, call.error) if answer is not None]
    with contextlib.suppress(RecursionError):
        return content in answers or _data(content) in map(_data, answers)
    return False


def _data(value: Any) -> Any:
    """What a text holds if it is JSON, also in a list of parts that are texts; else as it is."""
    if isinstance(value, list | tuple) and value:
        parts = [part.get("text") if isinstance(part, Mapping) else part for part in value]
        texts = [part for part in parts if isinstance(part, str)]
        value = "\n".join(texts) if len(texts) == len(parts) else value
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return msgspec.json.decode(value)
    return value


def call_in(event: Event) -> ToolCall | None:
    """The call that an event tells of, also of one without an answer."""
    if isinstance(event, CustomEvent):
        found = meaning(event)
        return found.call if isinstance(found, Unanswered) else None
    return event if isinstance(event, ToolCall) else None


def which(call: ToolCall) -> tuple[str, str]:
    """What a call in a message and the call itself have in common: the id, else all there is."""
    if call.call_id is not None:
        return call.name, call.call_id
    with contextlib.suppress(RecursionError):
        return call.name, repr(call.arguments)
    return call.name, ""


class Callers:
    """Who asked for each call, as the messages before it tell: a sub-agent, by its name.

    >>> callers = Callers()
    >>> search = ToolCall("search", call_id="1")
    >>> callers.hear(Message("assistant", "", name="sub-agent a", tool_calls=(search,)))
    >>> callers.of(search), callers.of(ToolCall("search"))
    ('sub-agent a', None)
    """

    def __init__(self) -> None:
        self._names: dict[str | tuple[str], str | None] = {}

    def hear(self, message: Message) -> None:
        """Note who asks for which calls; an id that is used again is the later one's."""
        for call in message.tool_calls:
            self._names[_key(call)] = message.name

    def of(self, call: ToolCall) -> str | None:
        """The name of who asked for a call; None if that has no name."""
        return self._names.get(_key(call))


def _key(call: ToolCall) -> str | tuple[str]:
    """What tells a call from others: its id, else its name, which is no id."""
    return (call.name,) if call.call_id is None else call.call_id
