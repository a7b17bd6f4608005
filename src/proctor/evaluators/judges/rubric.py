"""A weighted rubric: every criterion scored, in one call or one call each, and the mean of all."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

from proctor.errors import CallFailed
from proctor.evaluators.judges.answers import (
    Allowed,
    Verdict,
    VerdictLines,
    read_object,
    sheet_schema,
    without_heading,
)
from proctor.evaluators.judges.criteria import Criterion
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.judge import NO_REFERENCE, View, account, failed
from proctor.evaluators.judges.opinion import Asking, Opinion, Question, give, side_by_side, tell
from proctor.evaluators.judges.scale import Numbers
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records.score import Score
from proctor.records.session import Usage


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
        self._lines = [VerdictLines(f"SCORE {fence.mark} {key}", self._allowed) for key in self._keys]
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


Opinions = Mapping[str, Opinion]


class RubricJudge(NamedTuple):
    """A model that scores outputs by several criteria; `one_call` asks for all of them at once."""

    adapter: ProviderAdapter
    template: PromptTemplate[Any]
    criteria: tuple[Criterion, ...]
    scale: Numbers
    words: Mapping[str, str]
    one_call: bool = True
    view: View = View()
    how: Asking = Asking()

    async def score(self, output: Any, sample: Any) -> Score:
        """The weighted mean over the criteria that got a verdict; the others are named."""
        texts = self.view.texts(output, sample, self.template)
        if not texts:
            return Score.skipped(NO_REFERENCE)
        ask = self._at_once if self.one_call else self._one_by_one
        opinions, failures = await ask(texts)
        if not opinions:
            return failed(self.adapter, self.template, failures, len(failures))
        return self._weighed(opinions, failures)

    async def _at_once(self, texts: Mapping[str, str]) -> tuple[Opinions, list[CallFailed]]:
        listed = "\n\n".join(f"{key_of(n)}: {c.text}" for n, c in enumerate(self.criteria))
        question = Question(self.template, {"criteria": listed, **texts}, self.words)
        ends = (self.scale.low, self.scale.high)
        try:
            verdicts, response, _ = await tell(
                self.adapter, question, lambda fence: SheetForm(len(self.criteria), ends, fence), self.how
            )
        except CallFailed as error:
            return {}, [error]
        # One call, one bill: it is written to the first verdict.
        bills = chain([response.usage], repeat(Usage()))
        found = {
            self.criteria[number].id: Opinion(
                self.scale.worth(verdict.choice),
                verdict.choice,
                self.scale.passes(self.scale.worth(verdict.choice)),
                verdict.reason,
                self.adapter.model,
                self.template.id,
                bill,
                cached=response.cached,
            )
            for (number, verdict), bill in zip(verdicts.items(), bills, strict=False)
        }
        return found, []

    async def _one_by_one(self, texts: Mapping[str, str]) -> tuple[Opinions, list[CallFailed]]:
        questions = [
            Question(self.template, {"criterion": criterion.text, **texts}, self.words)
            for criterion in self.criteria
        ]
        told = await side_by_side(
            [functools.partial(give, self.adapter, q, self.scale, self.how) for q in questions]
        )
        answered = zip(self.criteria, told, strict=True)
        found = {c.id: one for c, one in answered if isinstance(one, Opinion)}
        return found, [one for one in told if isinstance(one, CallFailed)]

    def _weighed(self, opinions: Opinions, failures: Sequence[CallFailed]) -> Score:
        weights = {c.id: c.weight for c in self.criteria if c.id in opinions}
        missing = [c.id for c in self.criteria if c.id not in opinions]
        total = math.fsum(weights.values())
        value = math.fsum(weights[key] * opinions[key].value for key in weights) / total
        value = min(1.0, max(0.0, value))
        parts = {key: self._part(opinions[key], weights[key]) for key in weights}
        told = [f"{key} {part['score']:g}/{self.scale.high:g}" for key, part in parts.items()]
        reason = ", ".join(told) + (f"; not scored: {', '.join(missing)}" if missing else "")
        judge = account(list(opinions.values()), failures)
        if failures:
            judge["failures"] = [str(error) for error in failures]
        details = {**self.scale.details(value), "criteria": parts, "missing": missing}
        return Score(value, self.scale.passes(value), reason, {**details, "judge": judge})

    def _part(self, opinion: Opinion, weight: float) -> dict[str, Any]:
        told: dict[str, Any] = {"score": self.scale.told(opinion.said), "value": opinion.value}
        return {**told, "weight": weight, "reason": opinion.reason}
