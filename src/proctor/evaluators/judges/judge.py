"""Ask a judge about fenced texts, and turn its opinions into a score."""

from __future__ import annotations

import asyncio
import functools
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from proctor.core.stats.descriptive import mean_and_variance
from proctor.errors import CallFailed, EvaluatorError, Unreadable
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.scale import Scale
from proctor.evaluators.judges.templates import EXPECTED, OUTPUT, fill_template, needs_expected
from proctor.evaluators.judges.verdict_form import Verdict, asks_for_unmarked_verdict
from proctor.evaluators.measurements import check_fraction
from proctor.evaluators.plain_values import format_references
from proctor.models.connect import display_name
from proctor.models.model_calls import AnswerFormat, aask
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.model import MAX_LOGPROBS, ModelResponse, TokenLogprobs
from proctor.records.numbers import is_number
from proctor.records.rubric import decide_mean
from proctor.records.sample import Sample
from proctor.records.score import Score, decide_majority, describe_gaps
from proctor.records.session import Session, Usage
from proctor.sessions import current as sessions

Combine = Literal["mean", "vote"]
Temperature = float | Literal["auto"] | None
MAX_ANSWER = 500
NO_REFERENCE = "the sample has no expected value, which the judge needs"
# If the known probabilities cover less, the expected value would be a guess.
MIN_COVERAGE = 0.5
_MARKUP = " \t\r\n*_`'\"<>[](){}:.,"

T = TypeVar("T")


class VerdictProbabilities(NamedTuple):
    """The probability of each verdict; `coverage` is their sum; the remaining probability belongs to other tokens."""

    by_verdict: dict[str, float]
    coverage: float

    def expected_value(self, values: Mapping[str, float]) -> float:
        """Return the mean of the verdicts' values, weighted by their probabilities."""
        total = math.fsum(self.by_verdict.values())
        mean = math.fsum(p * values[verdict] for verdict, p in self.by_verdict.items()) / total
        return min(1.0, max(0.0, mean))


def read_probabilities(
    text: str, position: int, tokens: Sequence[TokenLogprobs], labels: Sequence[str]
) -> VerdictProbabilities | str:
    """Return the probabilities of the labels at the position of the verdict, or the reason why there are none.

    A token counts for a label if only that label can start with it.
    """
    if not tokens:
        return "the provider returned no probabilities"
    if not labels:
        return "there are too many verdicts to separate their probabilities"
    token = _find_token(text, position, tokens)
    if token is None:
        return "the provider's tokens do not match the answer"
    probabilities = dict.fromkeys(labels, 0.0)
    for other, logprob in {**token.others, token.token: token.logprob}.items():
        label = _match_label(other, labels)
        if label is not None:
            probabilities[label] += math.exp(min(0.0, logprob))
    coverage = math.fsum(probabilities.values())
    if _match_label(token.token, labels) is None or coverage < MIN_COVERAGE:
        return "the tokens do not distinguish the verdicts"
    return VerdictProbabilities({label: p for label, p in probabilities.items() if p > 0.0}, min(1.0, coverage))


def _find_token(text: str, position: int, tokens: Sequence[TokenLogprobs]) -> TokenLogprobs | None:
    """Return the token in which the verdict starts, with only markup before it."""
    offset = "".join(token.token for token in tokens).find(text)
    if offset < 0:
        return None
    target, start = offset + position, 0
    for token in tokens:
        if start <= target < start + len(token.token):
            return None if token.token[: target - start].strip(_MARKUP) else token
        start += len(token.token)
    return None


def _match_label(token: str, labels: Sequence[str]) -> str | None:
    prefix = token.strip(_MARKUP).casefold()
    matches = [label for label in labels if prefix and label.casefold().startswith(prefix)]
    return matches[0] if len(matches) == 1 else None


class Question(NamedTuple):
    """A prompt, the texts to fence, keyed by placeholder, and the values of the other placeholders."""

    template: PromptTemplate[Any]
    texts: Mapping[str, str] | Fence
    values: Mapping[str, str] = {}


class JudgeOptions(NamedTuple):
    """The options of a call. `remind` asks once more after an unreadable answer, with a reminder of the format."""

    temperature: float | None = 0.0
    max_tokens: int | None = None
    logprobs: bool = False
    remind: bool = True


DEFAULT_OPTIONS = JudgeOptions()


def create_judge_options(
    temperature: Temperature, max_tokens: int | None, *, samples: int = 1, **flags: bool
) -> JudgeOptions:
    """Create the options of a judge; raise an error if the temperature is invalid."""
    if temperature == "auto":
        # Several opinions at temperature 0 would be equal.
        temperature = 0.0 if samples == 1 else None
    if temperature is not None and not (is_number(temperature) and temperature >= 0):
        raise EvaluatorError(f"temperature must be a number, 0 or more, got {temperature!r}")
    return JudgeOptions(temperature, max_tokens, **flags)


def check_judge_options(where: str, threshold: float | None, *, combine: str = "mean", **counts: int | None) -> None:
    """Raise an error for an invalid threshold, combination or count."""
    if combine not in ("mean", "vote"):
        raise EvaluatorError(f"combine must be 'mean' or 'vote', got {combine!r}", where=where)
    if threshold is not None:
        check_fraction(where, "threshold", threshold)
    for name, count in counts.items():
        if count is not None and not is_count(count):
            raise EvaluatorError(f"{name} must be an integer, 1 or more, got {count!r}", where=where)


def is_count(value: Any) -> bool:
    return is_number(value) and value == int(value) >= 1


class Opinion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of one call of one judge; `missing_reason` is the reason why requested probabilities are missing."""

    value: float
    verdict: str
    passed: bool
    reason: str
    model: str
    prompt: str
    usage: Usage = Usage()
    probabilities: dict[str, float] = {}
    coverage: float | None = None
    missing_reason: str = ""
    cached: bool = False


async def ask_judge(
    adapter: ProviderAdapter,
    question: Question,
    create_form: Callable[[Fence], AnswerFormat],
    options: JudgeOptions = DEFAULT_OPTIONS,
    index: int = 0,
) -> ModelResponse:
    """Send one request with all judged texts fenced; the parsed answer is the output of the response.

    Raises `CallFailed` if the judge cannot be reached, `Unreadable` if its answer has no verdict.
    """
    fence = _get_fence(question)
    return await aask(
        adapter,
        fill_template(question.template, fence, question.values).messages(),
        create_form(fence),
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        top_logprobs=MAX_LOGPROBS if options.logprobs else None,
        opinion=index,
        remind=options.remind,
    )


def _get_fence(question: Question) -> Fence:
    return question.texts if isinstance(question.texts, Fence) else Fence(question.texts)


async def get_opinion(
    adapter: ProviderAdapter, question: Question, scale: Scale, options: JudgeOptions = DEFAULT_OPTIONS, index: int = 0
) -> Opinion:
    """Ask a judge for one verdict on a scale; `index` separates repeated opinions."""
    fence = _get_fence(question)
    answer_format = scale.answer_format(fence)
    if _asks_for_unmarked(question, scale.field):
        answer_format.allow_unmarked_verdict()
    response = await ask_judge(adapter, question._replace(texts=fence), lambda _: answer_format, options, index)
    verdict = response.output.choice
    opinion = create_opinion(adapter, question.template, scale, response.output, response)
    if not options.logprobs:
        return opinion
    position = answer_format.find_choice(response.text, structured=adapter.supports_json_schema)
    probabilities = read_probabilities(response.text, position, response.logprobs, list(scale.steps()))
    if isinstance(probabilities, str):
        return msgspec.structs.replace(opinion, missing_reason=probabilities)
    if str(scale.to_data(verdict)) not in scale.steps():
        missing_reason = "the verdict lies between the steps of the scale, and only steps have probabilities"
        return msgspec.structs.replace(opinion, missing_reason=missing_reason)
    value = probabilities.expected_value(scale.steps())
    return msgspec.structs.replace(
        opinion,
        value=value,
        passed=scale.passes(value, verdict),
        probabilities=probabilities.by_verdict,
        coverage=probabilities.coverage,
    )


def create_opinion(
    adapter: ProviderAdapter, template: PromptTemplate[Any], scale: Scale, verdict: Verdict, response: ModelResponse
) -> Opinion:
    """Create an opinion from a verdict, with the usage of its response."""
    (choice, reason), usage = verdict, response.usage
    value = scale.value_of(choice)
    passed = scale.passes(value, choice)
    return Opinion(value, choice, passed, reason, adapter.model, template.id, usage, cached=response.cached)


def _asks_for_unmarked(question: Question, field: str) -> bool:
    prompts = [section.template for section in question.template.sections]
    if isinstance(question.texts, Mapping):
        prompts.append(question.texts.get("criterion", ""))
    return any(asks_for_unmarked_verdict(prompt, field) for prompt in prompts)


async def run_concurrently(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T | CallFailed]:
    """Run several calls concurrently; a failed call returns its error.

    The session records one exchange after the other, in the order of the calls.
    """
    parent = sessions.current_session() if len(calls) > 1 else None
    call_sessions = [Session() for _ in calls]

    async def run(call: Callable[[], Awaitable[T]], session: Session) -> T | CallFailed:
        if parent is not None:
            sessions.current.set(session)
        try:
            return await call()
        except CallFailed as error:
            return error

    if len(calls) == 1:
        return [await run(calls[0], call_sessions[0])]
    tasks = [asyncio.ensure_future(run(*pair)) for pair in zip(calls, call_sessions, strict=True)]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        if parent is not None:
            for event in (event for session in call_sessions for event in session):
                parent.append(event)


async def run_with_usage(calls: Sequence[Callable[[], Awaitable[tuple[T, Usage]]]]) -> tuple[list[T], Usage]:
    """Run several calls concurrently; return their results and usage, or raise the first failure.

    The failure has the usage of all calls, because successful calls cost money too.
    """
    results = await run_concurrently(calls)
    answers = [result for result in results if not isinstance(result, CallFailed)]
    failures = [result for result in results if isinstance(result, CallFailed)]
    usage = sum((usage for _, usage in answers), sum_failed_usage(failures))
    if failures:
        failures[0].usage = usage
        raise failures[0]
    return [answer for answer, _ in answers], usage


def to_text(value: Any) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else codec.encode(value).decode()


def sum_failed_usage(failures: Iterable[CallFailed]) -> Usage:
    """Return the known usage of failed calls."""
    return sum((error.usage for error in failures if error.usage is not None), Usage())


def usage_to_data(usage: Usage) -> dict[str, Any]:
    """Return tokens and cost as a score stores them, without unknown values."""
    return dict(codec.to_plain(usage))


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
    """A model that judges outputs with a prompt and a scale; `criteria` are fenced texts of the prompt."""

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
        """Ask the model for its opinions, and combine them into one score."""
        texts = self.view.texts(output, sample, self.template)
        if not texts:
            return Score.skipped(NO_REFERENCE)
        question = Question(self.template, {**self.criteria, **texts}, self.values)
        ask = functools.partial(get_opinion, self.adapter, question, self.scale, self.options)
        answers = await run_concurrently([functools.partial(ask, index) for index in range(self.samples)])
        opinions = [answer for answer in answers if isinstance(answer, Opinion)]
        failures = [answer for answer in answers if isinstance(answer, CallFailed)]
        passed = _decide(opinions, len(failures), self.scale, self.combine)
        if passed is None:
            return failed_score(self.adapter, self.template, failures, len(answers), opinions)
        if self.samples == 1:
            return single_score(opinions[0], self.scale)
        return _combine(opinions, failures, self.scale, self.combine, passed)


def failed_score(
    adapter: ProviderAdapter,
    template: PromptTemplate[Any],
    failures: Sequence[CallFailed],
    count: int = 1,
    opinions: Sequence[Opinion] = (),
) -> Score:
    """Return the error score for a judge without a verdict, with the usage of all its calls."""
    error = failures[0]
    label = display_name(adapter.model)
    reason = str(error) if label in str(error) else f"{label}: {error}"
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


def _decide(opinions: Sequence[Opinion], missing: int, scale: Scale, combine: Combine) -> bool | None:
    """Return whether several opinions pass; None if the missing ones could change that."""
    if not opinions:
        return None
    if combine == "vote":
        return decide_majority(sum(opinion.passed for opinion in opinions), missing, len(opinions) + missing)
    return decide_mean([(1.0, opinion.value) for opinion in opinions], missing, scale.passes)


def _combine(
    opinions: Sequence[Opinion], failures: Sequence[CallFailed], scale: Scale, combine: Combine, passed: bool
) -> Score:
    """Return the score of several opinions; its value is their mean."""
    values = [opinion.value for opinion in opinions]
    value = min(1.0, max(0.0, math.fsum(values) / len(values)))
    pass_count = sum(opinion.passed for opinion in opinions)
    nearest = min(opinions, key=lambda opinion: abs(opinion.value - value))
    reason = f"{pass_count} of {len(opinions)} opinions pass: {nearest.reason}".rstrip(": ")
    if pass_count * 2 == len(opinions) and combine == "vote":
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
        "passing": pass_count,
    }
    if failures:
        judge |= {"failed": len(failures), "failures": [str(error) for error in failures]}
    gaps = describe_gaps({"opinion": str(failures[0])} if failures else {})
    return Score(value, passed, reason, {**scale.details(value), "judge": judge, **gaps})


def _describe_probabilities(opinion: Opinion) -> dict[str, Any]:
    if opinion.probabilities:
        return {"chances": opinion.probabilities, "seen": opinion.coverage}
    return {"chances": None, "unseen": opinion.missing_reason} if opinion.missing_reason else {}
