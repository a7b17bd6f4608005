"""A session as a judge reads it: turns, tool calls and results, cut where they are too long.

Images and other data are told in a few words.

Nothing that was said can pass for a turn: headings stand at the beginning of a line, and
everything that comes from the session is indented. The record itself is never cut.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from proctor.evaluators.judges.fence import Fence
from proctor.records import codec
from proctor.records.model import in_text, in_words, text_of
from proctor.records.session import CustomEvent, Event, Message, SessionView, ToolCall
from proctor.records.telling import Callers, Stranger, Told, Unanswered, Unasked, meaning

CHAT_SESSION = "chat_session"
LONGEST_CONTENT = 4_000
LONGEST_SESSION = 100_000
MOST_SHOWN = 64
LONGEST_NAME = 200
_INDENT = "    "


def transcript(
    session: Iterable[Event],
    *,
    longest_content: int = LONGEST_CONTENT,
    longest_session: int = LONGEST_SESSION,
) -> str:
    """The turns of a session as text; what is too long is cut in the middle, with a mark.

    >>> print(transcript([Message("user", "Hello"), ToolCall("now", {}, result="noon")]))
    [1] user:
        Hello
    [2] tool now({}) returned:
        noon
    """
    events = tuple(session)
    found = _Turns(events, longest_content)
    turns = [turn for event in events for turn in found.of(event)]
    numbered = [f"[{number}] {turn}" for number, turn in enumerate(turns, start=1)]
    return "\n".join(_fitted(numbered, longest_session))


class Shown:
    """The sessions that were shown last, behind a fence: several rubrics look at the same one."""

    __slots__ = ("_kept", "_longest_content", "_longest_session")
    __proctor_identity__: ClassVar[tuple[str, ...]] = ("_longest_content", "_longest_session")

    def __init__(self, longest_content: int, longest_session: int) -> None:
        self._longest_content = longest_content
        self._longest_session = longest_session
        self._kept: dict[tuple[int, int], tuple[tuple[Any, ...], Fence | None]] = {}

    def __repr__(self) -> str:
        return f"Shown({self._longest_content}, {self._longest_session})"

    def of(self, session: SessionView, asked: Any, answered: Any) -> Fence | None:
        """The transcript of a session, made once as long as the same rubrics ask in a row.

        None if nothing took place in it, and nobody said a word.
        """
        seen = (asked, answered, *session.events)
        key = (len(seen), id(seen[-1]))
        kept = self._kept.get(key)
        # The very same objects, which are still held here: an id alone may be another's by now.
        if kept is not None and all(map(operator.is_, kept[0], seen)):
            return kept[1]
        events = with_ends(session, asked, answered)
        text = transcript(
            events, longest_content=self._longest_content, longest_session=self._longest_session
        )
        if len(self._kept) >= MOST_SHOWN:
            del self._kept[next(iter(self._kept))]
        fence = Fence({CHAT_SESSION: text}) if any(map(_tells, events)) else None
        self._kept[key] = (seen, fence)
        return fence


def with_ends(session: SessionView, asked: Any, answered: Any) -> tuple[Event, ...]:
    """The events of a session; where nobody speaks in it, with what was asked and answered."""
    said = {message.role for message in session[Message]}
    before = [] if "user" in said or asked in (None, "") else [Message("user", asked)]
    after = [Message("assistant", answered)]
    if "assistant" in said or answered in (None, ""):
        after = []
    return (*before, *session.events, *after)


def _tells(event: Event) -> bool:
    """True for what a judge can say something about: words, calls and what came of them."""
    if isinstance(event, Message):
        return bool(event.tool_calls or _said(event.content).strip())
    return isinstance(event, ToolCall) or (isinstance(event, CustomEvent) and meaning(event) is not None)


def cut(text: str, longest: int) -> str:
    """A text of at most about `longest` characters: its beginning and its end, and a mark between.

    >>> cut("abcdefghij", 4)
    'ab\\n[… 6 characters left out …]\\nij'
    """
    left_out = len(text) - longest
    if left_out <= 0:
        return text
    head = (longest + 1) // 2
    tail = longest - head
    end = text[-tail:] if tail else ""
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{end}"


class _Turns:
    """How the events of one session are told, each call and each result once."""

    def __init__(self, events: tuple[Event, ...], longest: int) -> None:
        self._longest = longest
        self._callers = Callers()
        self._told = Told(events)

    def of(self, event: Event) -> Iterator[str]:
        if isinstance(event, Message):
            self._callers.hear(event)
            if not self._told.repeats(event):
                yield from self._message(event)
        elif isinstance(event, ToolCall):
            yield self._tool(event)
        elif isinstance(event, CustomEvent):
            yield from self._other(event)

    def _message(self, message: Message) -> Iterator[str]:
        said = _said(message.content)
        name = f" {_line(message.name)}" if message.name else ""
        if said.strip() or not message.tool_calls:
            kind = "tool result" if message.role == "tool" else message.role
            yield f"{kind}{name}:\n{self._indented(said or '(nothing)')}"
        for call in self._told.only_asked(message):
            yield f"{message.role}{name} called {self._call(call)}"

    def _tool(self, call: ToolCall) -> str:
        what = self._by(call)
        if call.error is not None:
            return f"{what} failed:\n{self._indented(_failure(call.error, call.result))}"
        if call.result is None:
            return f"{what}: nothing came back"
        return f"{what} returned:\n{self._indented(_said(call.result) or '(nothing)')}"

    def _other(self, event: CustomEvent) -> Iterator[str]:
        found = meaning(event)
        if isinstance(found, Unanswered):
            yield f"{self._by(found.call)}: no answer is recorded"
        elif isinstance(found, Unasked):
            name = f" {_line(found.name)}" if found.name else ""
            said = _failure(found.error or "", found.content).strip("\n") or "(nothing)"
            yield f"tool result{name}, whose call is not recorded:\n{self._indented(said)}"
        elif isinstance(found, Stranger):
            yield f'other "{_line(found.role)}":\n{self._indented(_said(found.content))}'

    def _by(self, call: ToolCall) -> str:
        by = self._callers.of(call)
        return f"tool {self._call(call)}" + (f", called by {_line(by)}," if by else "")

    def _call(self, call: ToolCall) -> str:
        arguments = in_text(call.arguments, codec.in_text)
        if len(arguments) <= min(200, self._longest):
            return f"{_line(call.name)}({_line(arguments)})"
        return f"{_line(call.name)}(\n{self._indented(arguments)}\n)"

    def _indented(self, text: str) -> str:
        lines = cut(in_words(text), self._longest).splitlines()
        return "\n".join(_INDENT + line for line in lines)


def _said(content: Any) -> str:
    return text_of(content, codec.in_text)


def _failure(error: str, result: Any) -> str:
    """What a call failed with and what it gave; once, where a log has the same under both."""
    given = _said(result)
    if not given.strip() or given.strip() == error.strip():
        return error
    return f"{error}\n{given}"


def _line(text: str) -> str:
    """A text on one line, whatever breaks it holds; a name is not longer than names are."""
    line = " ".join(text.splitlines())
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 1]}…"


def _fitted(turns: list[str], longest: int) -> list[str]:
    """The turns, without those in the middle that are too much."""
    sizes = [len(turn) + 1 for turn in turns]
    total = sum(sizes)
    if total <= longest:
        return turns
    head, tail, room = 0, len(turns), longest
    # From both ends inwards, the beginning first: what was asked matters as what came of it.
    while head < tail:
        from_head = head <= len(turns) - tail
        place = head if from_head else tail - 1
        if sizes[place] > room:
            break
        room -= sizes[place]
        head, tail = (head + 1, tail) if from_head else (head, tail - 1)
    left_out = tail - head
    mark = f"[… {left_out:,} of {len(turns):,} turns left out …]"
    return [*turns[:head], mark, *turns[tail:]]
