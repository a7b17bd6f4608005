"""Graded: qualities of the output as a model sees them, asked with prompts that ship."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from proctor.records.sample import Sample
from proctor.records.score import Score

# So that 8 is 0.8, which is how pass marks are given.
SCALE = (0, 10)
EMPTY = "the output is empty"


class Graded:
    """A model scores one quality from 0 to 10, by the prompt of that name.

    `shows` is what it sees besides the output.

    >>> Graded(lambda messages: "", "coherence", 0.8).given["judge"].model
    'python:<lambda>'
    """

    def __init__(
        self,
        judge: Any,
        prompt: str,
        threshold: float,
        *,
        shows: Literal["input", "expected", ""] = "",
    ) -> None:
        # Prompts and addresses are looked up, which takes a moment.
        from proctor.connections import provider
        from proctor.evaluators.judging.judge import Judge
        from proctor.evaluators.judging.scale import numbers
        from proctor.evaluators.judging.templates import shipped

        adapter = provider(judge)
        low, high = map(str, SCALE)
        ends = {"low": low, "high": high}
        scale = numbers(SCALE, threshold, prompt)
        self._judge = Judge(adapter, shipped(prompt), scale, {}, ends)
        self._shows = shows
        # The adapter rather than what was given for it, which may hold a key.
        self.given = {"judge": adapter}

    async def score(self, output: Any, beside: Any = None) -> Score:
        """Ask once; an empty output needs no asking."""
        if isinstance(output, str) and not output.strip():
            return Score(0.0, False, EMPTY, {"method": "judge"})
        seen = {self._shows: beside} if self._shows else {}
        sample: Sample[Any, Any] = Sample("", seen.get("input"), seen.get("expected"))
        return _by_judge(await self._judge.score(output, sample))


class ClaimsChecked:
    """A model takes the output apart into claims, and checks each one against the context."""

    def __init__(self, judge: Any, threshold: float) -> None:
        from proctor.connections import provider

        self._threshold = threshold
        self.given = {"judge": provider(judge)}

    async def score(self, output: Any, beside: Any = None) -> Score:
        """The share of claims that are supported."""
        from proctor.evaluators.judging.claims import grounded_claims

        context = "\n\n".join(beside)
        adapter = self.given["judge"]
        return _by_judge(await grounded_claims(adapter, output, context, threshold=self._threshold))


def _by_judge(score: Score) -> Score:
    return msgspec.structs.replace(score, details={"method": "judge", **score.details})
