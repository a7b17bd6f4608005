"""What the events of a session mean to who reads them: which calls came to nothing, who asked.

Logs hold more than messages and calls. What of it a reader must not miss is found here, for all
who tell a session: to people, and to judges.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

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
        calls = [call for event in events if (call := _call_in(event)) is not None]
        self._called = Counter(map(_which, calls))
        self._answers: dict[str, list[Any]] = {}
        for call in calls:
            answer = call.result if call.error is None else call.error
            if call.call_id and answer is not None:
                self._answers.setdefault(call.call_id, []).append(answer)

    def only_asked(self, message: Message) -> list[ToolCall]:
        """The calls that a message asks for, and nothing else in the session tells of."""
        return [call for call in message.tool_calls if not self._use(_which(call))]

    def _use(self, call: tuple[str, str]) -> bool:
        self._called[call] -= 1
        return self._called[call] >= 0

    def repeats(self, message: Message) -> bool:
        """True for a tool's message with what the call itself has as its result."""
        answers = self._answers.get(message.call_id or "", [])
        for place, answer in enumerate(answers):
            if message.role == "tool" and _may_be(message.content, answer):
                del answers[place]
                return True
        return False


def _may_be(content: Any, answer: Any) -> bool:
    """Texts are compared; data may be written otherwise in a message."""
    return content == answer or not (isinstance(content, str) and isinstance(answer, str))


def _call_in(event: Event) -> ToolCall | None:
    """The call that an event tells of, also of one without an answer."""
    if isinstance(event, CustomEvent):
        found = meaning(event)
        return found.call if isinstance(found, Unanswered) else None
    return event if isinstance(event, ToolCall) else None


def _which(call: ToolCall) -> tuple[str, str]:
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
