"""One opinion: a judge is asked once about texts behind a fence, and its verdict is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from proctor import codec, sessions
from proctor.asking.ask import Form, aask
from proctor.errors import CallFailed
from proctor.evaluators.judging.chances import Chances, chances_at
from proctor.evaluators.judging.fence import Fence
from proctor.evaluators.judging.forms import VerdictForm, asks_without_mark
from proctor.evaluators.judging.scale import Scale
from proctor.evaluators.judging.templates import bound
from proctor.ports import ProviderAdapter
from proctor.prompts import PromptTemplate
from proctor.records.model import MOST_LOGPROBS, ModelResponse
from proctor.records.session import Session, Usage

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
