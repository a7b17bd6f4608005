"""A judge: what it looks at, how often it is asked, and the score its opinions come to."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from proctor.core.stats.descriptive import mean_and_variance
from proctor.errors import CallFailed, Unreadable
from proctor.evaluators.judges.opinion import (
    Asking,
    Opinion,
    Question,
    as_text,
    give,
    side_by_side,
    usage_data,
    used_by_failures,
)
from proctor.evaluators.judges.scale import Scale
from proctor.evaluators.judges.templates import EXPECTED, OUTPUT, needs_expected
from proctor.evaluators.plain_values import reference_text
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Usage

Combine = Literal["mean", "vote"]
LONGEST_ANSWER = 500
NO_REFERENCE = "the sample has no expected value, and the judge needs one"


class View(NamedTuple):
    """What a judge gets to see besides the output."""

    reference: bool | None = None
    show_input: bool = True

    def texts(self, output: Any, sample: Any, template: PromptTemplate[Any]) -> dict[str, str]:
        """Everything judged, as texts by name; empty where the reference is missing."""
        if not isinstance(sample, Sample):
            # Called directly, with an output and what was expected.
            sample = Sample("", None, sample)
        found = {OUTPUT: as_text(output)}
        if sample.expected is not None and self.reference is not False:
            found[EXPECTED] = reference_text(output, sample.expected, as_text)
        elif self.reference or needs_expected(template):
            return {}
        if self.show_input:
            shown = {"input": sample.input, "context": sample.context}
            found |= {name: as_text(value) for name, value in shown.items() if value is not None}
        return found


class Judge(NamedTuple):
    """A model that is asked about outputs, by a prompt and on a scale.

    `measure` is what it judges by, as texts of the prompt; `words` are the prompt's other values.
    """

    adapter: ProviderAdapter
    template: PromptTemplate[Any]
    scale: Scale
    measure: Mapping[str, str]
    words: Mapping[str, str] = {}
    view: View = View()
    how: Asking = Asking()
    samples: int = 1
    combine: Combine = "mean"

    async def score(self, output: Any, sample: Any) -> Score:
        """Ask as often as wanted, and make one score of it."""
        texts = self.view.texts(output, sample, self.template)
        if not texts:
            return Score.skipped(NO_REFERENCE)
        question = Question(self.template, {**self.measure, **texts}, self.words)
        asks = [
            functools.partial(give, self.adapter, question, self.scale, self.how, index)
            for index in range(self.samples)
        ]
        told = await side_by_side(asks)
        opinions = [one for one in told if isinstance(one, Opinion)]
        failures = [one for one in told if isinstance(one, CallFailed)]
        if len(failures) * 2 > len(told):
            return failed(self.adapter, self.template, failures, len(told), opinions)
        if self.samples == 1:
            return alone(opinions[0], self.scale)
        return _together(opinions, failures, self.scale, self.combine)


def failed(
    adapter: ProviderAdapter,
    template: PromptTemplate[Any],
    failures: Sequence[CallFailed],
    asked: int = 1,
    others: Sequence[Opinion] = (),
) -> Score:
    """The score of a judge that gave no verdict: an error, which says who and why.

    It keeps what all the askings used; `others` are the opinions that did not fail.
    """
    error = failures[0]
    why = str(error) if adapter.model in str(error) else f"{adapter.model}: {error}"
    judge: dict[str, Any] = {"model": adapter.model, "prompt": template.id}
    judge["error"] = type(error).__name__
    used = sum((one.usage for one in others), used_by_failures(failures))
    if used != Usage():
        judge["usage"] = usage_data(used)
    if isinstance(error, Unreadable) and error.answer:
        judge["answer"] = error.answer[:LONGEST_ANSWER]
    if asked > 1:
        why = f"{len(failures)} of {asked} opinions failed; {why}"
        judge["failures"] = [str(one) for one in failures]
    return Score.error(why, {"judge": judge})


def account(opinions: Sequence[Opinion], failures: Sequence[CallFailed] = ()) -> dict[str, Any]:
    """Who judged, by which prompt, and what all opinions used, those that failed too."""
    first = opinions[0]
    used = first.usage
    if failures or len(opinions) > 1:
        used = sum((one.usage for one in opinions), used_by_failures(failures))
    told: dict[str, Any] = {"model": first.model, "prompt": first.prompt, "usage": usage_data(used)}
    if all(one.cached for one in opinions):
        told["cached"] = True
    return told


def alone(opinion: Opinion, scale: Scale) -> Score:
    """The score of one opinion."""
    judge = {**account([opinion]), scale.field: scale.told(opinion.said), **_chances(opinion)}
    details = {**scale.details(opinion.value), "judge": judge}
    return Score(opinion.value, opinion.passed, opinion.reason, details)


def _together(
    opinions: Sequence[Opinion], failures: Sequence[CallFailed], scale: Scale, combine: Combine
) -> Score:
    """The mean of several opinions, passed by their mean or by most of them."""
    values = [one.value for one in opinions]
    value = min(1.0, max(0.0, math.fsum(values) / len(values)))
    passing = sum(one.passed for one in opinions)
    tie = passing * 2 == len(opinions)
    passed = scale.passes(value) if combine == "mean" else passing * 2 > len(opinions)
    nearest_one = min(opinions, key=lambda one: abs(one.value - value))
    reason = f"{passing} of {len(opinions)} opinions pass: {nearest_one.reason}".rstrip(": ")
    if tie and combine == "vote":
        reason = f"a tie, which does not pass; {reason}"
    spread = mean_and_variance(values)
    judge = {
        **account(opinions, failures),
        "opinions": [_brief(one, scale) for one in opinions],
        "distribution": dict(Counter(str(scale.told(one.said)) for one in opinions)),
        "spread": None if spread is None else math.sqrt(spread[1]),
        "passing": passing,
    }
    if failures:
        judge |= {"failed": len(failures), "failures": [str(error) for error in failures]}
    return Score(value, passed, reason, {**scale.details(value), "judge": judge})


def _brief(opinion: Opinion, scale: Scale) -> dict[str, Any]:
    told = {scale.field: scale.told(opinion.said), "value": opinion.value, "passed": opinion.passed}
    return {**told, "reason": opinion.reason, **_chances(opinion)}


def _chances(opinion: Opinion) -> dict[str, Any]:
    """How sure the judge was, or why that is not known although it was asked for."""
    if opinion.chances:
        return {"chances": opinion.chances, "seen": opinion.seen}
    return {"chances": None, "unseen": opinion.unseen} if opinion.unseen else {}
