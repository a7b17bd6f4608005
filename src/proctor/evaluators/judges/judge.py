"""A judge: the texts it sees, the number of its opinions, and the score that combines them."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from proctor.core.stats.descriptive import mean_and_variance
from proctor.errors import CallFailed, Unreadable
from proctor.evaluators.judges.opinion import (
    DEFAULT_OPTIONS,
    JudgeOptions,
    Opinion,
    Question,
    get_opinion,
    run_concurrently,
    sum_failed_usage,
    to_text,
    usage_to_data,
)
from proctor.evaluators.judges.scale import Scale
from proctor.evaluators.judges.templates import EXPECTED, OUTPUT, needs_expected
from proctor.evaluators.plain_values import format_references
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Usage

Combine = Literal["mean", "vote"]
MAX_ANSWER = 500
NO_REFERENCE = "the sample has no expected value, and the judge needs one"


class View(NamedTuple):
    """The texts that a judge sees in addition to the output."""

    reference: bool | None = None
    show_input: bool = True

    def texts(self, output: Any, sample: Any, template: PromptTemplate[Any]) -> dict[str, str]:
        """Return all judged texts by name; empty if the reference is missing."""
        if not isinstance(sample, Sample):
            # A direct call passes the expected value instead of a sample.
            sample = Sample("", None, sample)
        texts = {OUTPUT: to_text(output)}
        if sample.expected is not None and self.reference is not False:
            texts[EXPECTED] = format_references(output, sample.expected, to_text)
        elif self.reference or needs_expected(template):
            return {}
        if self.show_input:
            inputs = {"input": sample.input, "context": sample.context}
            texts |= {name: to_text(value) for name, value in inputs.items() if value is not None}
        return texts


class Judge(NamedTuple):
    """A model that judges outputs with a prompt and a scale.

    `criteria` are fenced texts of the prompt; `values` fill its other placeholders.
    """

    adapter: ProviderAdapter
    template: PromptTemplate[Any]
    scale: Scale
    criteria: Mapping[str, str]
    values: Mapping[str, str] = {}
    view: View = View()
    options: JudgeOptions = DEFAULT_OPTIONS
    samples: int = 1
    combine: Combine = "mean"

    async def score(self, output: Any, sample: Any) -> Score:
        """Ask for the opinions, and combine them into one score."""
        texts = self.view.texts(output, sample, self.template)
        if not texts:
            return Score.skipped(NO_REFERENCE)
        question = Question(self.template, {**self.criteria, **texts}, self.values)
        ask = functools.partial(get_opinion, self.adapter, question, self.scale, self.options)
        answers = await run_concurrently([functools.partial(ask, index) for index in range(self.samples)])
        opinions = [answer for answer in answers if isinstance(answer, Opinion)]
        failures = [answer for answer in answers if isinstance(answer, CallFailed)]
        if len(failures) * 2 > len(answers):
            return failed_score(self.adapter, self.template, failures, len(answers), opinions)
        if self.samples == 1:
            return single_score(opinions[0], self.scale)
        return _combine(opinions, failures, self.scale, self.combine)


def failed_score(
    adapter: ProviderAdapter,
    template: PromptTemplate[Any],
    failures: Sequence[CallFailed],
    count: int = 1,
    opinions: Sequence[Opinion] = (),
) -> Score:
    """Return the error score of a judge without a verdict, with the usage of all its calls."""
    error = failures[0]
    reason = str(error) if adapter.model in str(error) else f"{adapter.model}: {error}"
    judge: dict[str, Any] = {"model": adapter.model, "prompt": template.id, "error": type(error).__name__}
    usage = sum((opinion.usage for opinion in opinions), sum_failed_usage(failures))
    if usage != Usage():
        judge["usage"] = usage_to_data(usage)
    if isinstance(error, Unreadable) and error.answer:
        judge["answer"] = error.answer[:MAX_ANSWER]
    if count > 1:
        reason = f"{len(failures)} of {count} opinions failed; {reason}"
        judge["failures"] = [str(failure) for failure in failures]
    return Score.error(reason, {"judge": judge})


def describe_judge(opinions: Sequence[Opinion], failures: Sequence[CallFailed] = ()) -> dict[str, Any]:
    """Return the model, the prompt, and the usage of all opinions and failures."""
    usage = opinions[0].usage
    if failures or len(opinions) > 1:
        usage = sum((opinion.usage for opinion in opinions), sum_failed_usage(failures))
    data = {"model": opinions[0].model, "prompt": opinions[0].prompt, "usage": usage_to_data(usage)}
    return {**data, "cached": True} if all(opinion.cached for opinion in opinions) else data


def single_score(opinion: Opinion, scale: Scale) -> Score:
    """Return the score of one opinion."""
    verdict = scale.to_data(opinion.verdict)
    judge = {**describe_judge([opinion]), scale.field: verdict, **_describe_probabilities(opinion)}
    details = {**scale.details(opinion.value), "judge": judge}
    return Score(opinion.value, opinion.passed, opinion.reason, details)


def _combine(
    opinions: Sequence[Opinion], failures: Sequence[CallFailed], scale: Scale, combine: Combine
) -> Score:
    """Return the mean of several opinions, which passes by its value or by the majority."""
    values = [opinion.value for opinion in opinions]
    value = min(1.0, max(0.0, math.fsum(values) / len(values)))
    passing = sum(opinion.passed for opinion in opinions)
    passed = scale.passes(value) if combine == "mean" else passing * 2 > len(opinions)
    nearest = min(opinions, key=lambda opinion: abs(opinion.value - value))
    reason = f"{passing} of {len(opinions)} opinions pass: {nearest.reason}".rstrip(": ")
    if passing * 2 == len(opinions) and combine == "vote":
        reason = f"a tie, which does not pass; {reason}"
    spread = mean_and_variance(values)
    judge = {
        **describe_judge(opinions, failures),
        "opinions": [
            {
                scale.field: scale.to_data(opinion.verdict),
                "value": opinion.value,
                "passed": opinion.passed,
                "reason": opinion.reason,
                **_describe_probabilities(opinion),
            }
            for opinion in opinions
        ],
        "distribution": dict(Counter(str(scale.to_data(opinion.verdict)) for opinion in opinions)),
        "spread": None if spread is None else math.sqrt(spread[1]),
        "passing": passing,
    }
    if failures:
        judge |= {"failed": len(failures), "failures": [str(error) for error in failures]}
    return Score(value, passed, reason, {**scale.details(value), "judge": judge})


def _describe_probabilities(opinion: Opinion) -> dict[str, Any]:
    if opinion.probabilities:
        return {"chances": opinion.probabilities, "seen": opinion.coverage}
    return {"chances": None, "unseen": opinion.unknown} if opinion.unknown else {}
