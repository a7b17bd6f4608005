"""What is new in a conversation, where every model call is given the whole of it once more."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from proctor.records.session import Message

# How many conversations of one trial are remembered: its agents, and the branches of each.
REMEMBERED = 32

Atom = tuple[str, str]


class Transcript:
    """Tells the messages that a trial has not seen yet.

    Agents take turns, cut old turns away and ask the same twice: so each call is compared with
    the conversation that it has most in common with, and only what that one lacks is new.

    >>> transcript = Transcript()
    >>> hello, hi = Message("user", "Hello"), Message("assistant", "Hi")
    >>> len(transcript.add([hello], [hi])), len(transcript.add([hello, hi], [hi]))
    (2, 1)
    """

    def __init__(self) -> None:
        self._known: list[_Conversation] = []

    def add(self, asked: Sequence[Message], said: Sequence[Message]) -> list[Message]:
        """Take the messages of a call; gives those that are new, in order."""
        best, most, reached = -1, 0, 0
        new = list(asked)
        for number, known in enumerate(self._known):
            lacking, end, count = _compared(known, asked)
            if count and count >= most:
                best, most, reached, new = number, count, end, lacking
        if best >= 0 and reached == self._known[best].length:
            del self._known[best]
        if asked or said:
            atoms = [atom for message in (*asked, *said) for atom in atoms_of(message)]
            self._known.append(_Conversation(atoms))
            del self._known[:-REMEMBERED]
        return [*new, *said]


class _Conversation:
    """What a conversation is made of, and where in it each thing stands."""

    def __init__(self, atoms: list[Atom]) -> None:
        self.length = len(atoms)
        self._places: dict[Atom, list[int]] = {}
        for place, atom in enumerate(atoms):
            self._places.setdefault(atom, []).append(place)

    def find(self, atom: Atom, place: int) -> int:
        """Where something stands from a place on; -1 if nowhere."""
        places = self._places.get(atom, [])
        number = bisect_left(places, place)
        return places[number] if number < len(places) else -1


def _compared(known: _Conversation, asked: Sequence[Message]) -> tuple[list[Message], int, int]:
    """What a conversation lacks, how far into it the rest reaches, and how much that is."""
    lacking: list[Message] = []
    place = count = 0
    for message in asked:
        atoms = atoms_of(message)
        end = _found(known, atoms, place)
        if end is None:
            lacking.append(message)
        else:
            place = end
            count += len(atoms)
    return lacking, place, count


def _found(known: _Conversation, atoms: Sequence[Atom], place: int) -> int | None:
    """The place after the atoms, looked for in order from a place on; None if one is missing."""
    for atom in atoms:
        place = known.find(atom, place) + 1
        if not place:
            return None
    return place


def atoms_of(message: Message) -> list[Atom]:
    """What a message is made of: what it says, and each tool that it asks for.

    Some clients repeat an answer with several tool calls as several messages, or leave out its
    text; what a tool gave back is told by its call.
    """
    if message.role == "tool" and message.call_id:
        return [("result of", message.call_id)]
    atoms: list[Atom] = [
        ("call", call.call_id or f"{call.name} {call.arguments}") for call in message.tool_calls
    ]
    if message.content or not atoms:
        said = message.content
        atoms.insert(0, (message.role, said if isinstance(said, str) else repr(said)))
    return atoms
