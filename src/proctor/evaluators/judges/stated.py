"""How a verdict is given in free text: by the sentence that states it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from proctor.evaluators.judges.answers import Verdict, VerdictForm

Place = Literal["anywhere", "line", "start", "whole"]
Takes = Literal["last", "listed"]

# Bullets, headings, quotes and emphasis may stand before a statement, words may not.
_BEFORE = r"[^\w\n]*"


class StatedForm:
    """One of a few choices, out of the text of a judge that keeps to wording of its own.

    For recorded judges, and for those who cannot be told another form: it cannot tell a verdict
    from one that is quoted, so where you write the prompt, `VerdictForm` is the safe one.

    `says` is the statement, `at` where it must stand: anywhere, at the beginning of a line or of
    the answer, or as the whole answer. Of several statements the last counts; `takes="listed"`
    takes the first choice of the list that is stated at all, as simple readers do, so that figures
    which were made like that can be made again. An answer that states none is not read.

    >>> form = StatedForm(["Output (a)", "Output (b)"], says="{choice} is better")
    >>> form.read("(a) is short. Therefore, Output (b) is better.", structured=False).choice
    'Output (b)'
    """

    def __init__(
        self, choices: Sequence[str], *, says: str = "{choice}", at: Place = "anywhere", takes: Takes = "last"
    ) -> None:
        if "{choice}" not in says:
            raise ValueError(f"the statement has no {{choice}} in it: {says!r}")
        self._choices, self._takes = tuple(choices), takes
        self._statements = [says.replace("{choice}", choice) for choice in self._choices]
        self._patterns = [_pattern(statement, at) for statement in self._statements]
        self._structured = VerdictForm("choice", self._choices)

    @property
    def schema(self) -> dict[str, Any]:
        """A model that is held to a schema answers in JSON all the same."""
        return self._structured.schema

    @property
    def instructions(self) -> str:
        """How to answer without a schema."""
        listed = "\n".join(f"- {statement}" for statement in self._statements)
        return f"State your verdict with exactly one of these:\n{listed}"

    def read(self, text: str, *, structured: bool) -> Verdict:
        """The verdict in an answer, or a ValueError that says why there is none."""
        if structured:
            return self._structured.read(text, structured=True)
        found = [
            (match.start("stated"), choice)
            for choice, pattern in zip(self._choices, self._patterns, strict=True)
            for match in pattern.finditer(text)
        ]
        if not found:
            raise ValueError(f"it states none of: {' | '.join(self._statements)}")
        chosen = found[0] if self._takes == "listed" else max(found)
        return Verdict(chosen[1], text.strip())


def _pattern(statement: str, at: Place) -> re.Pattern[str]:
    """Where a statement is looked for; it is never part of a longer word."""
    words = r"\s+".join(map(re.escape, statement.split()))
    stated = rf"(?P<stated>(?<!\w){words}(?!\w))"
    around = {
        "anywhere": stated,
        "line": rf"^{_BEFORE}{stated}",
        "start": rf"\A\s*{_BEFORE}{stated}",
        "whole": rf"\A\W*?{stated}\W*\Z",
    }
    return re.compile(around[at], re.IGNORECASE | re.MULTILINE)
