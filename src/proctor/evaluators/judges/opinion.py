"""One opinion: a judge is asked once about texts behind a fence, and its verdict is read."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from proctor.errors import CallFailed
from proctor.evaluators.judges.answers import VerdictForm, asks_without_mark
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.scale import Scale
from proctor.evaluators.judges.templates import bound
from proctor.models.asking import Form, aask
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.model import MOST_LOGPROBS, ModelResponse, TokenChances
from proctor.records.session import Session, Usage
from proctor.sessions import current as sessions

# With less than half of it in sight, an expectation would be a guess.
LEAST_SEEN = 0.5
_DRESS = " \t\r\n*_`'\"<>[](){}:.,"


class Chances(NamedTuple):
    """The chance of each verdict; `seen` is what they add up to, the rest were other tokens."""

    of: dict[str, float]
    seen: float

    def expected(self, values: Mapping[str, float]) -> float:
        """The mean of the verdicts' values, each weighed by its chance.

        >>> Chances({"good": 0.75, "poor": 0.25}, 1.0).expected({"good": 1.0, "poor": 0.0})
        0.75
        """
        whole = math.fsum(self.of.values())
        mean = math.fsum(chance * values[label] for label, chance in self.of.items()) / whole
        return min(1.0, max(0.0, mean))


def chances_at(text: str, place: int, tokens: Sequence[TokenChances], labels: Sequence[str]) -> Chances | str:
    """The chances of the labels where the verdict begins in an answer, or why there are none.

    A token counts for a label if it can be the beginning of that one alone.

    >>> tokens = [TokenChances("RATING:", -0.1), TokenChances(" good", -0.5, {" poor": -1.0})]
    >>> sorted(chances_at("RATING: good", 8, tokens, ["good", "poor"]).of)
    ['good', 'poor']
    """
    if not tokens:
        return "the provider gave no chances"
    if not labels:
        return "the verdicts are too many to tell their chances apart"
    token = _covering(text, place, tokens)
    if token is None:
        return "the provider's tokens are not those of the answer"
    said = _label(token.token, labels)
    found = dict.fromkeys(labels, 0.0)
    for other, logprob in {**token.others, token.token: token.logprob}.items():
        label = _label(other, labels)
        if label is not None:
            found[label] += math.exp(min(0.0, logprob))
    seen = math.fsum(found.values())
    if said is None or seen < LEAST_SEEN:
        return "the tokens do not tell the verdicts apart"
    told = {label: chance for label, chance in found.items() if chance > 0.0}
    return Chances(told, min(1.0, seen))


def _covering(text: str, place: int, tokens: Sequence[TokenChances]) -> TokenChances | None:
    """The token in which the verdict begins, with nothing but dress before it."""
    whole = "".join(token.token for token in tokens)
    begin = whole.find(text)
    if begin < 0:
        return None
    wanted, at = begin + place, 0
    for token in tokens:
        if at <= wanted < at + len(token.token):
            return None if token.token[: wanted - at].strip(_DRESS) else token
        at += len(token.token)
    return None


def _label(token: str, labels: Sequence[str]) -> str | None:
    """The only label that a token can be the beginning of."""
    bare = token.strip(_DRESS).casefold()
    fitting = [label for label in labels if bare and label.casefold().startswith(bare)]
    return fitting[0] if len(fitting) == 1 else None


T = TypeVar("T")


class Question(NamedTuple):
    """What a judge is asked: a prompt, and the texts that stand behind the fence in it.

    `texts` are by the names of the prompt's placeholders, or behind their fence already; `words`
    are the values of the others.
    """

    template: PromptTemplate[Any]
    texts: Mapping[str, str] | Fence
    words: Mapping[str, str] = {}


class Asking(NamedTuple):
    """How a judge is asked. `logprobs` asks for the chances of the verdicts too.

    `remind` repeats a request once, with a reminder of the format, if the answer cannot be read.
    """

    temperature: float | None = 0.0
    max_tokens: int | None = None
    logprobs: bool = False
    remind: bool = True


class Opinion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one asking of one judge came to.

    `said` is the verdict as it was given; `value` what it is worth or, where the chances of all
    verdicts are known, what was to be expected. `seen` is how much the chances add up to, and
    `unseen` why there are none although they were asked for.
    """

    value: float
    said: str
    passed: bool
    reason: str
    model: str
    prompt: str
    usage: Usage = Usage()
    chances: dict[str, float] = {}
    seen: float | None = None
    unseen: str = ""
    cached: bool = False
    index: int = 0


class Told(NamedTuple):
    """An answer as it was read, with the form and the response it comes from."""

    output: Any
    response: ModelResponse
    form: Any


async def tell(
    adapter: ProviderAdapter,
    question: Question,
    form: Callable[[Fence], Form],
    how: Asking = Asking(),  # noqa: B008 - a tuple
    index: int = 0,
) -> Told:
    """Ask once, everything judged behind a fence; the form is made for that fence.

    Raises `CallFailed` if the judge cannot be reached, `Unreadable` if it gives no verdict.
    """
    texts = question.texts
    fence = texts if isinstance(texts, Fence) else Fence(texts)
    wanted = form(fence)
    prompt = bound(question.template, fence, question.words)
    response = await aask(
        adapter,
        prompt.messages(),
        wanted,
        temperature=how.temperature,
        max_tokens=how.max_tokens,
        top_logprobs=MOST_LOGPROBS if how.logprobs else None,
        opinion=index,
        remind=how.remind,
    )
    return Told(response.output, response, wanted)


async def give(
    adapter: ProviderAdapter,
    question: Question,
    scale: Scale,
    how: Asking = Asking(),  # noqa: B008 - a tuple
    index: int = 0,
) -> Opinion:
    """Ask a judge for one verdict on a scale. `index` tells a second opinion from the first.

    Raises `CallFailed` if the judge cannot be reached, `Unreadable` if it gives no verdict.
    """

    def wanted(fence: Fence) -> VerdictForm:
        made = scale.form(fence)
        if _asks_without_mark(question, scale.field):
            made.asked_without_mark()
        return made

    verdict, response, form = await tell(adapter, question, wanted, how, index)
    value, said = scale.worth(verdict.choice), verdict.choice
    found: Chances | str = ""
    if how.logprobs:
        place = form.place(response.text, structured=adapter.fits_schema)
        found = chances_at(response.text, place, response.logprobs, list(scale.steps()))
    if isinstance(found, Chances) and str(scale.told(said)) not in scale.steps():
        found = "the verdict lies between the steps of the scale, whose chances alone are told"
    if isinstance(found, Chances):
        value = found.expected(scale.steps())
    return Opinion(
        value,
        said,
        scale.passes(value, said),
        verdict.reason,
        adapter.model,
        question.template.id,
        response.usage,
        chances=found.of if isinstance(found, Chances) else {},
        seen=found.seen if isinstance(found, Chances) else None,
        unseen=found if isinstance(found, str) else "",
        cached=response.cached,
        index=index,
    )


def _asks_without_mark(question: Question, field: str) -> bool:
    """True if the prompt, or the criterion in it, asks for lines such as `SCORE: 4`."""
    own = [section.template for section in question.template.sections]
    if isinstance(question.texts, Mapping):
        own.append(question.texts.get("criterion", ""))
    return any(asks_without_mark(text, field) for text in own)


async def side_by_side(asks: Sequence[Callable[[], Awaitable[T]]]) -> list[T | CallFailed]:
    """Ask several things at once; what failed is in the place of its answer.

    The session tells one exchange after the other, as if they had been asked in turn.
    """
    if len(asks) == 1:
        try:
            return [await asks[0]()]
        except CallFailed as error:
            return [error]
    parent = sessions.current_session()
    heard = [Session() for _ in asks]

    async def one(ask: Callable[[], Awaitable[T]], session: Session) -> T | CallFailed:
        if parent is not None:
            sessions.current.set(session)
        try:
            return await ask()
        except CallFailed as error:
            return error

    tasks = [asyncio.ensure_future(one(*pair)) for pair in zip(asks, heard, strict=True)]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        if parent is not None:
            for event in (event for session in heard for event in session):
                parent.append(event)


def as_text(value: Any) -> str:
    """Whatever is judged as a text: a text as it is, everything else as JSON.

    >>> as_text("Paris"), as_text(["a", 1])
    ('Paris', '["a",1]')
    """
    return value if isinstance(value, str) else codec.encode(value).decode()


def used_by_failures(failures: Iterable[CallFailed]) -> Usage:
    """What answers used that came to nothing, as far as that is known."""
    return sum((one.usage for one in failures if one.usage is not None), Usage())


def usage_data(usage: Usage) -> dict[str, Any]:
    """Tokens and money as a score keeps them: what is not known is left out."""
    return dict(codec.plain(usage))
