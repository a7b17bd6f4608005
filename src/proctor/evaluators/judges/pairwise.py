"""Compare two answers in both orders, so that their position does not affect the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from proctor.core.stats.intervals import Interval, wilson_interval
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.judge import Question, ask_judge, run_with_usage, to_text
from proctor.evaluators.judges.templates import load_template
from proctor.evaluators.judges.verdict_form import VerdictForm
from proctor.models.connect import provider
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.session import Usage
from proctor.records.trial import EvalResult

Winner = Literal["a", "b", "tie"]
Place = Literal["first", "second"]

DEFAULT_CRITERION = "Which of the two is the better answer: correct, to the point, and helpful?"
TIE: Literal["tie"] = "tie"
PREFERENCE = "preference"
# The names of both positions in the prompt.
LABELS: Mapping[str, Place] = {"A": "first", "B": "second"}


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A judge's choice in one order: the first or the second answer, or a tie."""

    place: Literal["first", "second", "tie"]
    reason: str = ""


class Preference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A judge's preference between two answers, a and b, in both orders.

    `first` is its choice with a in the first position, `second` with b there. It `flipped` if it chose the same
    position both times; it `favours` that position, and the result is a tie.
    """

    winner: Winner
    first: Choice
    second: Choice
    flipped: bool = False
    favours: Place | None = None
    model: str = ""
    prompt: str = ""
    usage: Usage = Usage()


class PositionBias(msgspec.Struct, frozen=True):
    """Whether a judge prefers a position to an answer.

    In `flips` of `pairs` it chose the same position in both orders, in `to_first` of them the first position. The judge
    favours a position if the 95% interval of the first position's share of the flips excludes one half.
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
    criterion: str = DEFAULT_CRITERION,
    input: Any = None,  # noqa: A002 - what a sample calls it
    ties: bool = False,
) -> Preference:
    """Ask a model which of two answers is better, once in each order; `ties` allows a tie.

    The answer that is chosen twice wins; if the choice depends on the order, the result is a tie.
    Raises `CallFailed` if one of the orders has no verdict.
    """
    model, template = provider(adapter), load_template("prefer")
    texts = {"criterion": criterion}
    if input is not None:
        texts["input"] = to_text(input)
    answer_a, answer_b = to_text(a), to_text(b)
    choices, usage = await run_with_usage(
        [
            lambda: choose(model, template, {**texts, "first": answer_a, "second": answer_b}, ties),
            lambda: choose(model, template, {**texts, "first": answer_b, "second": answer_a}, ties),
        ]
    )
    source = {"model": model.model, "prompt": template.id, "usage": usage}
    return msgspec.structs.replace(combine_choices(*choices), **source)


async def choose(
    adapter: ProviderAdapter, template: PromptTemplate[Any], texts: Mapping[str, str], ties: bool
) -> tuple[Choice, Usage]:
    """Ask in one order; return the choice and the usage."""
    choices = [*LABELS, *[TIE] * ties]

    def create_form(fence: Fence) -> VerdictForm:
        return VerdictForm("better", choices, delimiter=fence.delimiter, is_quoted=fence.contains)

    question = Question(template, texts, dict(zip(("one", "two"), LABELS, strict=True)))
    response = await ask_judge(adapter, question, create_form)
    choice, reason = response.output
    return Choice(LABELS.get(choice, TIE), reason), response.usage


def combine_choices(first: Choice, second: Choice) -> Preference:
    """Combine the choices in both orders into one preference."""
    if first.place != TIE and first.place == second.place:
        return Preference(TIE, first, second, flipped=True, favours=first.place)
    winners: dict[tuple[str, str], Winner] = {("first", "second"): "a", ("second", "first"): "b"}
    return Preference(winners.get((first.place, second.place), TIE), first, second)


def position_bias(preferences: Iterable[Preference]) -> PositionBias:
    """Measure how often a judge flipped, and which position it favours.

    >>> flip = combine_choices(Choice("first"), Choice("first"))
    >>> bias = position_bias([flip] * 6 + [combine_choices(Choice("first"), Choice("second"))] * 4)
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
    """Return the preferences that an evaluator stored in the results of a run."""
    scores = (result.scores.get(name) for result in results)
    stored = (score.details.get(PREFERENCE) for score in scores if score is not None)
    return [msgspec.convert(codec.to_plain(data), Preference) for data in stored if data is not None]


def summarize_preference(preference: Preference) -> str:
    """Summarize a preference in one line, for the reason of a score."""
    if preference.flipped:
        return f"a tie: in both orders the judge chose the {preference.favours} answer"
    reasons = dict.fromkeys((preference.first.reason, preference.second.reason))
    results = {"a": "preferred in both orders", "b": "the other answer is preferred in both orders"}
    return "; ".join([results.get(preference.winner, "a tie"), *filter(None, reasons)])
