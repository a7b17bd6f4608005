"""Several verdicts in one answer: a score for each criterion of a rubric."""

from __future__ import annotations

from typing import Any

from proctor.evaluators.judging.fence import Fence
from proctor.evaluators.judging.forms import (
    Allowed,
    Verdict,
    VerdictLines,
    read_object,
    sheet_schema,
    without_heading,
)


def key_of(number: int) -> str:
    """What a criterion is called in the prompt and in the answer.

    Not its own name, which is the user's text: it may be long, or look like something else.
    """
    return f"criterion_{number + 1}"


class SheetForm:
    """A number from a scale for each criterion, as JSON or on lines `SCORE mark criterion_1: 4`.

    Where a criterion has no verdict the judge is reminded once; then a sheet with gaps is taken,
    but not an empty one.

    >>> fence = Fence({"output": "Paris"})
    >>> answer = f"Right.\\nSCORE {fence.mark} criterion_1: 5"
    >>> SheetForm(1, (1, 5), fence).read(answer, structured=False)
    {0: Verdict(choice='5', reason='Right.')}
    """

    def __init__(self, count: int, scale: tuple[float, float], fence: Fence) -> None:
        self._keys = [key_of(number) for number in range(count)]
        self._allowed = Allowed(scale=scale)
        self._quoted = fence.holds
        self._lines = [
            VerdictLines(f"SCORE {fence.mark} {key}", self._allowed) for key in self._keys
        ]
        self._reminded = False

    @property
    def schema(self) -> dict[str, Any]:
        """One object for each criterion, the reason before the score."""
        one = sheet_schema({"reason": {"type": "string"}, "score": self._allowed.schema})
        return sheet_schema(dict.fromkeys(self._keys, one))

    @property
    def instructions(self) -> str:
        """How to answer without a schema."""
        lines = "\n".join(f"{line.shape}: <{self._allowed}>" for line in self._lines)
        return (
            "Explain each score briefly, and put it on a line of its own below that. "
            f"These are the lines, exactly of this form, one for each criterion:\n{lines}"
        )

    def read(self, text: str, *, structured: bool) -> dict[int, Verdict]:
        """The verdicts by the number of the criterion, or a ValueError that says what is wrong."""
        reminded, self._reminded = self._reminded, True
        found, faults = (self._read_json if structured else self._read_lines)(text)
        if faults and not (found and reminded):
            raise ValueError("; ".join(faults))
        return found

    def _read_json(self, text: str) -> tuple[dict[int, Verdict], list[str]]:
        members = read_object(text, self._quoted)
        found, faults = {}, []
        for number, key in enumerate(self._keys):
            told = members[key].value if key in members else None
            if not isinstance(told, dict) or "score" not in told:
                faults.append(f"it has no score for {key}")
                continue
            try:
                choice = self._allowed.pick(told["score"])
                found[number] = Verdict(choice, str(told.get("reason", "")).strip())
            except ValueError as error:
                faults.append(f"{key}: {error}")
        return found, faults

    def _read_lines(self, text: str) -> tuple[dict[int, Verdict], list[str]]:
        lines, choices, faults = {}, {}, []
        for number, line in enumerate(self._lines):
            try:
                lines[number] = line.last(text)
                choices[number] = self._allowed.pick(lines[number].said)
            except ValueError as error:
                faults.append(f"{self._keys[number]}: {error}")
        ends = sorted(line.end for line in lines.values())
        found = {}
        for number, choice in choices.items():
            start = lines[number].start
            above = max((end for end in ends if end <= start), default=0)
            found[number] = Verdict(choice, without_heading(text[above:start]))
        return found, faults
