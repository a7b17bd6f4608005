"""Which of two answers is better: asked in both orders, so that a place cannot win."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.core.stats.intervals import Interval, wilson_interval
from proctor.errors import CallFailed
from proctor.evaluators.judges.answers import VerdictForm
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.opinion import Asking, Question, as_text, side_by_side, tell, used_by_failures
from proctor.evaluators.judges.templates import shipped
from proctor.models.asking import Form
from proctor.models.connect import provider
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.session import Usage
from proctor.records.trial import EvalResult

Winner = Literal["a", "b", "tie"]
Place = Literal["first", "second"]

BETTER = "Which of the two is the better answer: correct, to the point, and helpful?"
TIE: Literal["tie"] = "tie"
PREFERENCE = "preference"


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a judge chose in one order: the answer in the first or second place, or a tie."""

    place: Literal["first", "second", "tie"]
    reason: str = ""


class Preference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which of two answers, a and b, a judge prefers when asked in both orders.

    `first` is what it chose with a in the first place, `second` with b there. It `flipped` if it
    chose the same place both times, which it then `favours`; that is a tie.
    """

    winner: Winner
    first: Choice
    second: Choice
    flipped: bool = False
    favours: Place | None = None
    model: str = ""
    prompt: str = ""
    usage: Usage = Usage()


class Comparison(NamedTuple):
    """How two answers are compared.

    `labels` is what the answers in the first and second place are called. With `ties` the judge
    may call them equal. `reader` reads a judge that answers in wording of its own, and then
    names one of the labels (see `StatedForm`); without it a marked verdict is asked for.
    `template` is another prompt, with the same placeholders.
    """

    labels: tuple[str, str] = ("A", "B")
    ties: bool = False
    reader: Form | None = None
    asking: Asking = Asking()
    template: PromptTemplate[Any] | None = None


COMPARISON = Comparison()


class PositionBias(msgspec.Struct, frozen=True):
    """Whether a judge prefers a place to an answer.

    `flips` of `pairs` went to the same place in both orders, `to_first` of them to the first one.
    A place is favoured if the 95 % interval of the first one's share of the flips leaves out half.
    """

    pairs: int
    flips: int
    to_first: int
    flip_rate: float | None
    flip_interval: Interval | None
    first_share: float | None
    first_interval: Interval | None
    favours: Place | None


async def compare(
    adapter: Any,
    a: Any,
    b: Any,
    *,
    criterion: str = BETTER,
    input: Any = None,  # noqa: A002 - what a sample calls it
    how: Comparison = COMPARISON,
) -> Preference:
    """Ask a model which of two answers is better, once in each order.

    The same answer twice wins; a judge that changes its mind with the order has no preference,
    and that is a tie. Raises `CallFailed` where one of the orders has no verdict.

    >>> import asyncio
    >>> def first_place(prompt: str) -> str:
    ...     mark = prompt.rpartition("BETTER ")[2].partition(":")[0]
    ...     return f"I like what I read first.\\nBETTER {mark}: A"
    >>> asyncio.run(compare(first_place, "Paris", "Rome", input="Capital of France?")).favours
    'first'
    """
    model = provider(adapter)
    template = how.template or shipped("prefer")
    texts = {"criterion": criterion}
    if input is not None:
        texts["input"] = as_text(input)
    one, other = as_text(a), as_text(b)
    orders = [
        lambda: choose(model, template, {**texts, "first": one, "second": other}, how),
        lambda: choose(model, template, {**texts, "first": other, "second": one}, how),
    ]
    told = await side_by_side(orders)
    found = [one for one in told if not isinstance(one, CallFailed)]
    failures = [one for one in told if isinstance(one, CallFailed)]
    used = sum((usage for _, usage in found), used_by_failures(failures))
    if failures:
        # The order that was answered was paid for too.
        failures[0].usage = used
        raise failures[0]
    source = {"model": model.model, "prompt": template.id, "usage": used}
    return msgspec.structs.replace(settle(*(choice for choice, _ in found)), **source)


async def choose(
    adapter: ProviderAdapter,
    template: PromptTemplate[Any],
    texts: Mapping[str, str],
    how: Comparison = COMPARISON,
) -> tuple[Choice, Usage]:
    """Ask in one order: which place wins, and what the asking used."""
    one, two = how.labels
    choices = [one, two, TIE] if how.ties else [one, two]

    def form(fence: Fence) -> Form:
        marked = VerdictForm("better", choices, mark=fence.mark, quoted=fence.holds)
        return how.reader or marked

    question = Question(template, texts, {"one": one, "two": two})
    (choice, reason), response, _ = await tell(adapter, question, form, how.asking)
    places: dict[str, Literal["first", "second"]] = {one: "first", two: "second"}
    return Choice(places.get(choice, TIE), reason), response.usage


def settle(first: Choice, second: Choice) -> Preference:
    """One preference out of the choices in both orders.

    >>> settle(Choice("first"), Choice("second")).winner
    'a'
    >>> settle(Choice("first"), Choice("first")).winner
    'tie'
    """
    winners = {"first": ("a", "b"), "second": ("b", "a"), TIE: (TIE, TIE)}
    before, after = winners[first.place][0], winners[second.place][1]
    flipped = first.place == second.place != TIE
    found = {
        "winner": before if before == after else TIE,
        "flipped": flipped,
        "favours": first.place if flipped else None,
        "first": first,
        "second": second,
    }
    return msgspec.convert(found, Preference)


def position_bias(preferences: Iterable[Preference]) -> PositionBias:
    """How often a judge flipped, and which place it favours.

    >>> once = settle(Choice("first"), Choice("first"))
    >>> bias = position_bias([once] * 6 + [settle(Choice("first"), Choice("second"))] * 4)
    >>> bias.flip_rate, bias.first_share, bias.favours
    (0.6, 1.0, 'first')
    """
    tally = Counter(preference.favours for preference in preferences)
    pairs, to_first = tally.total(), tally["first"]
    flips = to_first + tally["second"]
    interval = wilson_interval(to_first, flips)
    low, high = interval or (0.0, 1.0)
    return PositionBias(
        pairs=pairs,
        flips=flips,
        to_first=to_first,
        flip_rate=flips / pairs if pairs else None,
        flip_interval=wilson_interval(flips, pairs),
        first_share=to_first / flips if flips else None,
        first_interval=interval,
        favours="first" if low > 0.5 else "second" if high < 0.5 else None,
    )


def preferences_in(results: Iterable[EvalResult], name: str = "prefer") -> list[Preference]:
    """The preferences that an evaluator left in the results of a run."""
    scores = (result.scores.get(name) for result in results)
    kept = (score.details.get(PREFERENCE) for score in scores if score is not None)
    return [msgspec.convert(codec.plain(one), Preference) for one in kept if one is not None]


def summary_of(preference: Preference) -> str:
    """A preference in one line, for the reason of a score."""
    if preference.flipped:
        return f"a tie: in both orders the judge chose what stood {preference.favours}"
    reasons = dict.fromkeys(one.reason for one in (preference.first, preference.second))
    told = {"a": "preferred in both orders", "b": "the other answer is preferred in both orders"}
    return "; ".join([told.get(preference.winner, "a tie"), *filter(None, reasons)])
