"""A weighted rubric: every criterion scored, in one call or one call each, and the mean of all."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

from proctor.errors import CallFailed
from proctor.evaluators.judging.criteria import Criterion
from proctor.evaluators.judging.judge import NO_REFERENCE, View, account, failed
from proctor.evaluators.judging.opinion import (
    Asking,
    Opinion,
    Question,
    give,
    side_by_side,
    tell,
)
from proctor.evaluators.judging.scale import Numbers
from proctor.evaluators.judging.sheet import SheetForm, key_of
from proctor.ports import ProviderAdapter
from proctor.prompts import PromptTemplate
from proctor.records.score import Score
from proctor.records.session import Usage

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
                self.adapter,
                question,
                lambda fence: SheetForm(len(self.criteria), ends, fence),
                self.how,
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
