"""What a trace as a whole was asked and what it answered, where its parts do not tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from proctor.genai.bodies import asked_in, said_in
from proctor.genai.turns import Turns
from proctor.genai.values import decoded
from proctor.importers.langfuse_observation import is_blank
from proctor.records.session import Event, Message, Role

# Names under which programs log the one text that was asked, and the one that was answered.
_WORDS: Mapping[Role, frozenset[str]] = {
    "user": frozenset(
        (
            *("question", "query", "q", "input", "prompt", "message", "text", "content"),
            *("user_input", "user_message", "user_query"),
        )
    ),
    "assistant": frozenset(
        (
            *("answer", "output", "result", "response", "text", "content", "message", "reply"),
            *("completion", "final_answer"),
        )
    ),
}
_ARGUMENTS = frozenset(("args", "kwargs"))


class Ends(NamedTuple):
    """The messages before and after all else; `said` are those that were written as messages."""

    before: list[Event]
    after: list[Event]
    said: list[Event]


def ends_of(given: Any, answer: Any, events: Iterable[Event]) -> Ends:
    """What was asked and answered, as far as nobody says it in the events.

    What is neither a message nor a text is told as the data that it is.

    >>> ends_of({"question": "Where?"}, {"answer": "There.", "sources": 2}, []).before
    [Message(role='user', content='Where?')]
    >>> ends_of({"question": "Where?"}, {"answer": "There.", "sources": 2}, []).after
    [Message(role='assistant', content={'answer': 'There.', 'sources': 2})]
    """
    roles = {event.role for event in events if isinstance(event, Message)}
    given, answer = _arguments(opened(given)), opened(answer)
    asked, said = asked_in(given), said_in(answer)
    before, after = _told(asked, given, "user", roles), _told(said, answer, "assistant", roles)
    if before and after[: len(before)] == before:
        # A graph gives back the whole conversation.
        after = after[len(before) :]
    written = [*(before if asked else ()), *(after if said else ())]
    return Ends([*before], [*after], [*written])


def opened(given: Any) -> Any:
    """What a trace was given, or None: Langfuse's pages write JSON in JSON."""
    found = decoded(decoded(given))
    return None if is_blank(found) else found


def first_told(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    """What the first row that tells something has under a name, or None."""
    told = (row.get(name) for row in rows)
    return next((value for value in told if opened(value) is not None), None)


def _told(turns: Turns | None, value: Any, role: Role, roles: set[Role]) -> list[Message]:
    if role in roles:
        return []
    messages = [] if turns is None else turns.messages
    if roles:
        # The rest of the conversation is told already.
        messages = [message for message in messages if message.role == role]
    if messages or turns is not None or value is None:
        return messages
    return [Message(role, _words(value, role))]


def _words(value: Any, role: Role) -> Any:
    """The one text that a mapping holds under a name for it, else all of the value."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, words),) = value.items()
        if name in _WORDS[role] and isinstance(words, str) and words:
            return words
    return value


def _arguments(given: Any) -> Any:
    """What a function was called with, as decorators log it: by place, by name, or both."""
    if not isinstance(given, dict) or not given or given.keys() - _ARGUMENTS:
        return given
    told = [value for value in given.values() if not is_blank(value)]
    if len(told) != 1:
        return given if told else None
    (only,) = told
    return only[0] if isinstance(only, list) and len(only) == 1 else only
