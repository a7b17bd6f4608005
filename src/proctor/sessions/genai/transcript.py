"""Find the new messages of a conversation when each model call repeats all of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from proctor.records.session import Message

# The number of conversations of a trial to compare: its agents and their branches.
MAX_CONVERSATIONS = 32

Atom = tuple[str, str]


class Transcript:
    """Selects the messages that a trial has not seen yet.

    Agents take turns, drop old turns and repeat requests, so each call is compared with the most similar conversation.
    """

    def __init__(self) -> None:
        self._conversations: list[_Conversation] = []

    def add(self, inputs: Sequence[Message], outputs: Sequence[Message]) -> list[Message]:
        """Add the messages of a call and return the new ones, in order."""
        best: _Conversation | None = None
        best_count = best_end = 0
        new = list(inputs)
        for conversation in self._conversations:
            missing, end, count = conversation.compare(inputs)
            if count and count >= best_count:
                best, best_count, best_end, new = conversation, count, end, missing
        if best is not None and best_end == best.length:
            self._conversations.remove(best)
        if inputs or outputs:
            atoms = [atom for message in (*inputs, *outputs) for atom in split_message(message)]
            self._conversations.append(_Conversation(atoms))
            del self._conversations[:-MAX_CONVERSATIONS]
        return [*new, *outputs]


class _Conversation:
    def __init__(self, atoms: list[Atom]) -> None:
        self.length = len(atoms)
        self._positions: dict[Atom, list[int]] = {}
        for position, atom in enumerate(atoms):
            self._positions.setdefault(atom, []).append(position)

    def compare(self, inputs: Sequence[Message]) -> tuple[list[Message], int, int]:
        """Return the missing messages, the position after the last match, and the number of matching atoms."""
        missing: list[Message] = []
        position = count = 0
        for message in inputs:
            atoms = split_message(message)
            end = self._find_end(atoms, position)
            if end is None:
                missing.append(message)
            else:
                position = end
                count += len(atoms)
        return missing, position, count

    def _find_end(self, atoms: Sequence[Atom], position: int) -> int | None:
        """Return the position after the atoms, in order, or None if an atom is missing."""
        for atom in atoms:
            positions = self._positions.get(atom, [])
            index = bisect_left(positions, position)
            if index == len(positions):
                return None
            position = positions[index] + 1
        return position


def split_message(message: Message) -> list[Atom]:
    """Split a message into its content and its tool calls.

    Some clients repeat an answer as one message per tool call, or without its text. A tool result
    is identified by its call.
    """
    if message.role == "tool" and message.call_id:
        return [("result of", message.call_id)]
    atoms: list[Atom] = [("call", call.call_id or f"{call.name} {call.arguments}") for call in message.tool_calls]
    if message.content or not atoms:
        content = message.content
        atoms.insert(0, (message.role, content if isinstance(content, str) else repr(content)))
    return atoms
