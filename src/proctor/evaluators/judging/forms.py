"""How a verdict is given: as structured output, or on a line that bears the mark of the call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

_REASON = re.compile(r"^\W*reason(?:ing)?\W*?[:=][ \t]*", re.IGNORECASE)
_NUMBER = r"[-+]?\d+(?:\.\d+)?"


class Verdict(NamedTuple):
    """What a judge decided, and why."""

    choice: str
    reason: str


class VerdictForm:
    """One word out of a few, or a number from a scale, under the name of a field.

    A model that is held to a schema answers in JSON. Any other explains itself and ends with a
    line `FIELD mark: choice`. Only the last line of that shape counts, so that a verdict which is
    quoted from what is judged changes nothing: what is judged cannot contain the mark.

    >>> form = VerdictForm("rating", ["good", "poor"], mark="7f3a")
    >>> form.read("It says RATING: good, but it is not.\\nRATING 7f3a: poor", structured=False)
    Verdict(choice='poor', reason='It says RATING: good, but it is not.')
    """

    def __init__(
        self,
        field: str,
        choices: Sequence[str] | None = None,
        *,
        scale: tuple[float, float] | None = None,
        mark: str = "",
    ) -> None:
        if (choices is None) == (scale is None):
            raise ValueError("a verdict is one of some choices, or a number from a scale")
        self.field, self.mark = field, mark
        self._choices = {choice.casefold(): choice for choice in choices or ()}
        self._scale = scale
        asked = re.escape(field) + (rf"\W+{re.escape(mark)}" if mark else "")
        self._line = re.compile(rf"^\W*{asked}\W*?[:=][ \t]*(.*?)$", re.IGNORECASE | re.MULTILINE)

    @property
    def schema(self) -> dict[str, Any]:
        """The reason comes first: a verdict should follow from it."""
        kind: dict[str, Any] = {"type": "number"}
        if self._scale is not None:
            kind |= {"minimum": self._scale[0], "maximum": self._scale[1]}
        else:
            kind = {"type": "string", "enum": list(self._choices.values())}
        return {
            "type": "object",
            "properties": {"reason": {"type": "string"}, self.field: kind},
            "required": ["reason", self.field],
            "additionalProperties": False,
        }

    @property
    def instructions(self) -> str:
        """How to answer without a schema."""
        line = f"{self.field.upper()} {self.mark}".rstrip()
        return (
            "Explain your verdict briefly. Then end with one last line, exactly of this form:\n"
            f"{line}: <{self._allowed()}>"
        )

    def _allowed(self) -> str:
        if self._scale is not None:
            return f"a number from {self._scale[0]:g} to {self._scale[1]:g}"
        return " | ".join(self._choices.values())

    def read(self, text: str, *, structured: bool) -> Verdict:
        """The verdict in an answer, or a ValueError that says why there is none."""
        return self._read_json(text) if structured else self._read_line(text)

    def _read_json(self, text: str) -> Verdict:
        try:
            found = msgspec.json.decode(text.strip(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise ValueError(f"it is not the JSON that was asked for ({error})") from None
        if self.field not in found:
            raise ValueError(f"it has no {self.field!r}")
        said, reason = found[self.field], found.get("reason", "")
        if isinstance(said, bool) or not isinstance(said, str | int | float):
            raise ValueError(f"{self.field!r} is {said!r}, not {self._allowed()}")
        return Verdict(self._choice(str(said)), str(reason).strip())

    def _read_line(self, text: str) -> Verdict:
        lines = list(self._line.finditer(text))
        if not lines:
            shape = f"{self.field.upper()} {self.mark}".rstrip()
            raise ValueError(f"it has no line that begins with {shape}:")
        last = lines[-1]
        choice = self._choice(last[1])
        around = (text[: last.start()].strip(), text[last.end() :].strip())
        reason = "\n".join(part for part in around if part)
        return Verdict(choice, _REASON.sub("", reason, count=1).strip())

    def _choice(self, said: str) -> str:
        """The choice that was meant: exactly one of those allowed, never a guess."""
        bare = said.strip().strip("*_`'\"<>[](). ").strip()
        if self._scale is None:
            if bare.casefold() in self._choices:
                return self._choices[bare.casefold()]
            raise ValueError(f"{said.strip()!r} is not one of {self._allowed()}")
        low, high = self._scale
        number = re.fullmatch(rf"({_NUMBER})(?:\s*/\s*{high:g})?", bare)
        if number is None or not low <= float(number[1]) <= high:
            raise ValueError(f"{said.strip()!r} is not {self._allowed()}")
        return number[1]
