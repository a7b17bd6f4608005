"""Ask a judge once about fenced texts, and read its verdict."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from proctor.errors import CallFailed
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.scale import Scale
from proctor.evaluators.judges.templates import fill_template
from proctor.evaluators.judges.verdict_form import VerdictForm, asks_for_unmarked
from proctor.models.model_calls import AnswerFormat, aask
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.model import MAX_LOGPROBS, ModelResponse, TokenLogprobs
from proctor.records.session import Session, Usage
from proctor.sessions import current as sessions

# If the known probabilities cover less, an expectation would be a guess.
MIN_COVERAGE = 0.5
_MARKUP = " \t\r\n*_`'\"<>[](){}:.,"

T = TypeVar("T")


class VerdictProbabilities(NamedTuple):
    """The probability of each verdict; `coverage` is their sum, the rest belongs to other tokens."""

    by_verdict: dict[str, float]
    coverage: float

    def expected_value(self, values: Mapping[str, float]) -> float:
        """Return the mean of the verdicts' values, weighted by their probabilities.

        >>> VerdictProbabilities({"good": 0.75, "poor": 0.25}, 1.0).expected_value({"good": 1.0, "poor": 0.0})
        0.75
        """
        total = math.fsum(self.by_verdict.values())
        mean = math.fsum(p * values[verdict] for verdict, p in self.by_verdict.items()) / total
        return min(1.0, max(0.0, mean))


def read_probabilities(
    text: str, position: int, tokens: Sequence[TokenLogprobs], labels: Sequence[str]
) -> VerdictProbabilities | str:
    """Return the probabilities of the labels at the position of the verdict, or why there are none.

    A token counts for a label if it can be the beginning of only that label.

    >>> tokens = [TokenLogprobs("RATING:", -0.1), TokenLogprobs(" good", -0.5, {" poor": -1.0})]
    >>> sorted(read_probabilities("RATING: good", 8, tokens, ["good", "poor"]).by_verdict)
    ['good', 'poor']
    """
    if not tokens:
        return "the provider gave no chances"
    if not labels:
        return "the verdicts are too many to tell their chances apart"
    token = _find_token(text, position, tokens)
    if token is None:
        return "the provider's tokens are not those of the answer"
    probabilities = dict.fromkeys(labels, 0.0)
    for other, logprob in {**token.others, token.token: token.logprob}.items():
        label = _match_label(other, labels)
        if label is not None:
            probabilities[label] += math.exp(min(0.0, logprob))
    coverage = math.fsum(probabilities.values())
    if _match_label(token.token, labels) is None or coverage < MIN_COVERAGE:
        return "the tokens do not tell the verdicts apart"
    return VerdictProbabilities(
        {label: p for label, p in probabilities.items() if p > 0.0}, min(1.0, coverage)
    )


def _find_token(text: str, position: int, tokens: Sequence[TokenLogprobs]) -> TokenLogprobs | None:
    """Return the token in which the verdict begins, with only markup before it."""
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
    """A prompt and the fenced texts in it.

    `texts` are by the names of the prompt's placeholders, or an existing fence; `values` fill the other
    placeholders.
    """

    template: PromptTemplate[Any]
    texts: Mapping[str, str] | Fence
    values: Mapping[str, str] = {}


class JudgeOptions(NamedTuple):
    """The options of a call. `logprobs` requests the probabilities of the verdicts.

    `remind` repeats an unreadable request once, with a reminder of the format.
    """

    temperature: float | None = 0.0
    max_tokens: int | None = None
    logprobs: bool = False
    remind: bool = True


DEFAULT_OPTIONS = JudgeOptions()


class Opinion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of one call of one judge.

    `value` is the value of the `verdict` or, if the probabilities of all verdicts are known, the expected
    value. `coverage` is the sum of the probabilities; `unknown` says why there are none although they
    were requested.
    """

    value: float
    verdict: str
    passed: bool
    reason: str
    model: str
    prompt: str
    usage: Usage = Usage()
    probabilities: dict[str, float] = {}
    coverage: float | None = None
    unknown: str = ""
    cached: bool = False
    index: int = 0


class Answer(NamedTuple):
    """A parsed answer, with its response and form."""

    output: Any
    response: ModelResponse
    form: Any


async def ask_judge(
    adapter: ProviderAdapter,
    question: Question,
    create_form: Callable[[Fence], AnswerFormat],
    options: JudgeOptions = DEFAULT_OPTIONS,
    index: int = 0,
) -> Answer:
    """Ask once, with all judged texts fenced; `create_form` creates the form for the fence.

    Raises `CallFailed` if the judge cannot be reached, `Unreadable` if it gives no verdict.
    """
    texts = question.texts
    fence = texts if isinstance(texts, Fence) else Fence(texts)
    form = create_form(fence)
    response = await aask(
        adapter,
        fill_template(question.template, fence, question.values).messages(),
        form,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        top_logprobs=MAX_LOGPROBS if options.logprobs else None,
        opinion=index,
        remind=options.remind,
    )
    return Answer(response.output, response, form)


async def get_opinion(
    adapter: ProviderAdapter,
    question: Question,
    scale: Scale,
    options: JudgeOptions = DEFAULT_OPTIONS,
    index: int = 0,
) -> Opinion:
    """Ask a judge for one verdict on a scale. `index` separates repeated opinions.

    Raises `CallFailed` if the judge cannot be reached, `Unreadable` if it gives no verdict.
    """

    def create_form(fence: Fence) -> VerdictForm:
        form = scale.form(fence)
        if _asks_for_unmarked(question, scale.field):
            form.allow_unmarked()
        return form

    (verdict, reason), response, form = await ask_judge(adapter, question, create_form, options, index)
    value = scale.value_of(verdict)
    opinion = Opinion(
        value,
        verdict,
        scale.passes(value, verdict),
        reason,
        adapter.model,
        question.template.id,
        response.usage,
        cached=response.cached,
        index=index,
    )
    if not options.logprobs:
        return opinion
    position = form.find_choice(response.text, structured=adapter.fits_schema)
    probabilities = read_probabilities(response.text, position, response.logprobs, list(scale.steps()))
    if isinstance(probabilities, str):
        return msgspec.structs.replace(opinion, unknown=probabilities)
    if str(scale.to_data(verdict)) not in scale.steps():
        unknown = "the verdict lies between the steps of the scale, whose chances alone are told"
        return msgspec.structs.replace(opinion, unknown=unknown)
    value = probabilities.expected_value(scale.steps())
    return msgspec.structs.replace(
        opinion,
        value=value,
        passed=scale.passes(value, verdict),
        probabilities=probabilities.by_verdict,
        coverage=probabilities.coverage,
    )


def _asks_for_unmarked(question: Question, field: str) -> bool:
    """Return whether the prompt, or the criterion in it, asks for lines such as `SCORE: 4`."""
    prompts = [section.template for section in question.template.sections]
    if isinstance(question.texts, Mapping):
        prompts.append(question.texts.get("criterion", ""))
    return any(asks_for_unmarked(prompt, field) for prompt in prompts)


async def run_concurrently(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T | CallFailed]:
    """Run several calls at once; a failed call gives its error.

    The session records one exchange after the other, in the order of the calls.
    """
    parent = sessions.current_session() if len(calls) > 1 else None
    recorded = [Session() for _ in calls]

    async def run(call: Callable[[], Awaitable[T]], session: Session) -> T | CallFailed:
        if parent is not None:
            sessions.current.set(session)
        try:
            return await call()
        except CallFailed as error:
            return error

    if len(calls) == 1:
        return [await run(calls[0], recorded[0])]
    tasks = [asyncio.ensure_future(run(*pair)) for pair in zip(calls, recorded, strict=True)]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        if parent is not None:
            for event in (event for session in recorded for event in session):
                parent.append(event)


def to_text(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON.

    >>> to_text("Paris"), to_text(["a", 1])
    ('Paris', '["a",1]')
    """
    return value if isinstance(value, str) else codec.encode(value).decode()


def sum_failed_usage(failures: Iterable[CallFailed]) -> Usage:
    """Return the known usage of failed calls."""
    return sum((error.usage for error in failures if error.usage is not None), Usage())


def usage_to_data(usage: Usage) -> dict[str, Any]:
    """Return tokens and cost as a score stores them, without unknown values."""
    return dict(codec.plain(usage))
