"""Who says what in a Codex log: items of the conversation, and the events that repeat them."""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from proctor.importers.shapes import joined, mapping, plain, text
from proctor.records.session import Role

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
_ENDS = "</image>"


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
    if said == _ENDS:
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
