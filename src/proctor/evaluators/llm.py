"""Judges: a model that rates or scores what a target gave, by a criterion, a rubric or quality.

Everything judged stands behind a fence, a verdict comes from structured output or the last line
that bears the fence's mark, and a judge without a verdict gives an error, never a number.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from proctor.errors import EvaluatorError, nearest
from proctor.evaluators.judging.scale import (
    PASS_AT,
    PASSING_RATINGS,
    RATING_VALUES,
    JudgeOutput,
    JudgeParams,
    Labels,
    Numbers,
    Rating,
    numbers,
)
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.options import Model
from proctor.records.numbers import is_fraction, is_number
from proctor.records.rubric import USUAL_SCALE

if TYPE_CHECKING:
    from proctor.evaluators.attach import Attached
    from proctor.evaluators.judging.judge import Judge
    from proctor.evaluators.judging.opinion import Asking
    from proctor.evaluators.judging.rubric import RubricJudge
    from proctor.evaluators.judging.session_rubric import Places
    from proctor.evaluators.judging.transcript import Shown

__all__ = [
    "PASSING_RATINGS",
    "RATING_VALUES",
    "JudgeOutput",
    "JudgeParams",
    "Rating",
    "llm_judge",
    "quality_score",
    "rubric",
    "rubric_evaluation",
    "rubric_evaluators",
]

Temperature = float | Literal["auto"] | None


@evaluator(category="llm", factory=True, needs=())
def llm_judge(
    adapter: Model,
    criterion: str | None = None,
    *,
    rubric: str | None = None,
    criteria: Sequence[str] | None = None,
    scale: tuple[float, float] = (1, 5),
    threshold: float | None = None,
    reference: bool | None = None,
    show_input: bool = True,
    samples: int = 1,
    combine: Literal["mean", "vote"] = "mean",
    logprobs: bool = False,
    temperature: Temperature = "auto",
    max_tokens: int | None = None,
    prompt: Any = None,
) -> Callable[..., Any]:
    """A model rates the output by a criterion: excellent, good, fair, poor or wrong.

    The first two pass. With `rubric` (a text) or `criteria` (a list) it gives a number on the
    `scale` instead, which passes from 0.7 of the way up; with neither it scores overall quality.
    `threshold` sets another pass mark.

    The judge sees the input and, where there is one, the expected value: `reference=True` skips
    samples without one, `reference=False` never shows it. `samples` asks several times and takes
    the mean; `combine="vote"` passes what most opinions pass. `logprobs` weighs the ratings by
    how likely the model held each. The temperature is 0, for several samples the provider's own.
    `prompt` is a prompt of your own: the path of its file or a `PromptTemplate`, not a text. It
    must have `$output` in it, and may have `$input`, `$context`, `$expected`, `$mark`, where one
    is given `$criterion`, and with a scale `$low` and `$high`.

    >>> import asyncio
    >>> def kind(messages):
    ...     *_, line = messages[-1].content.splitlines()
    ...     return "It greets.\\n" + line.partition("<")[0] + "good"
    >>> asyncio.run(llm_judge(kind, "Is it polite?")("Good morning!")).value
    0.75
    """
    from proctor.evaluators.judging.judge import Judge, View

    where = "llm_judge"
    _check(where, threshold, samples=samples, max_tokens=max_tokens, combine=combine)
    measure = _measure(criterion, rubric, criteria, where)
    named = criterion is not None or prompt is not None
    by_labels = rubric is None and criteria is None and named
    taken = _ratings(threshold) if by_labels else numbers(scale, threshold, where)
    key = "llm-judge" if by_labels else "llm-score" if measure else "quality-score"
    ends = _ends(taken)
    judge = Judge(
        _connected(adapter),
        _template(prompt, key, (*measure, *ends), where),
        taken,
        measure,
        ends,
        View(reference, show_input),
        _asking(temperature, max_tokens, logprobs=logprobs, samples=samples),
        samples,
        combine,
    )
    return _evaluator(judge, llm_judge, locals())


@evaluator(category="llm", factory=True, needs=())
def quality_score(
    adapter: Model,
    *,
    min_score: float = PASS_AT,
    scale: tuple[float, float] = (1, 5),
    reference: bool | None = None,
    show_input: bool = True,
    samples: int = 1,
    temperature: Temperature = "auto",
    max_tokens: int | None = None,
) -> Callable[..., Any]:
    """A model scores how good the output is as a whole; passes from `min_score` (0 to 1) up.

    It looks at correctness, completeness, clarity and use, in this order.
    """
    from proctor.evaluators.judging.judge import Judge, View
    from proctor.evaluators.judging.templates import shipped

    where = "quality_score"
    _check(where, min_score, samples=samples, max_tokens=max_tokens)
    taken = numbers(scale, min_score, where)
    judge = Judge(
        _connected(adapter),
        shipped("quality-score"),
        taken,
        {},
        _ends(taken),
        View(reference, show_input),
        _asking(temperature, max_tokens, samples=samples),
        samples,
    )
    return _evaluator(judge, quality_score, locals())


@evaluator(category="llm", factory=True, needs=())
def rubric_evaluation(
    adapter: Model,
    rubric: Any,
    *,
    one_call: bool = True,
    threshold: float = PASS_AT,
    scale: tuple[float, float] = (1, 5),
    reference: bool | None = None,
    show_input: bool = True,
    temperature: Temperature = "auto",
    max_tokens: int | None = None,
    prompt: Any = None,
) -> Callable[..., Any]:
    """A model scores the output by every criterion of a rubric; the value is the weighted mean.

    A rubric is a list of criteria, or a mapping of names to weights, descriptions or mappings
    with description, scoring_criteria and weight. `one_call=False` asks for each criterion by
    itself. A criterion without a verdict is left out of the mean and named.
    """
    from proctor.evaluators.judging.criteria import rubric_of
    from proctor.evaluators.judging.judge import View
    from proctor.evaluators.judging.rubric import RubricJudge

    where = "rubric_evaluation"
    _check(where, threshold, max_tokens=max_tokens)
    rubric = rubric_of(rubric, where)
    taken = numbers(scale, threshold, where)
    key, known = ("rubric", "criteria") if one_call else ("llm-score", "criterion")
    judge = RubricJudge(
        _connected(adapter),
        _template(prompt, key, (known, "low", "high"), where),
        rubric,
        taken,
        _ends(taken),
        one_call,
        View(reference, show_input),
        _asking(temperature, max_tokens),
    )
    return _evaluator(judge, rubric_evaluation, locals())


@evaluator(category="session", factory=True, needs=())
def rubric(
    adapter: Model,
    rubric: Any,
    *,
    rubrics: Any = None,
    template: Any = None,
    scale: tuple[float, float] = USUAL_SCALE,
    threshold: float = PASS_AT,
    temperature: float | None = 0.1,
    max_tokens: int | None = 1024,
    timeout: float | None = None,
    max_content_chars: int = 4_000,
    max_session_chars: int = 100_000,
) -> Attached:
    """A model scores the whole session by one rubric, on the rubric's scale.

    The rubric is a `Rubric`, a mapping with id, name, description, scoring_criteria and weight,
    or an id among those of `rubrics`: a rubric file, or "starter", the set that ships. Scores
    are kept under the rubric's id. The judge sees the turns, tool calls and results of the
    session, long ones cut in the middle; `template` is a judge template of your own. The
    `timeout` is for both calls, where a first answer cannot be read and is asked for again.

    >>> import asyncio
    >>> def kind(messages):
    ...     *_, line = messages[-1].content.splitlines()
    ...     return "It greets back.\\n" + line.partition("<")[0] + "4"
    >>> asyncio.run(rubric(kind, "communication")("Good morning!")).details["score"]
    4
    """
    from proctor.evaluators.judging.session_rubric import shown_as

    shown = shown_as(max_content_chars, max_session_chars, "rubric")
    return _rubric(rubric, locals(), shown)


def rubric_evaluators(
    adapter: Model, rubrics: Any = "starter", *, at_once: int | Places | None = None, **options: Any
) -> tuple[Attached, ...]:
    """All rubrics of a set as evaluators, asked by one model; `options` as for `rubric`.

    `at_once` is how many calls are under way at a time, over all sessions and rubrics; or places
    that are shared with others.

    >>> [one.spec.name for one in rubric_evaluators(lambda messages: "4", "starter")][-1]
    'safety'
    """
    from proctor.evaluators.judging.session_rubric import Places, rubrics_of, shown_as

    where, known = "rubric_evaluators", _defaults(rubric)
    if unknown := [name for name in options if name not in known]:
        raise EvaluatorError(
            f"there is no option {unknown[0]!r}", where=where, fix=nearest(unknown[0], known)
        )
    found = rubrics_of(rubrics, where)
    given = {**known, "scale": found.scale or USUAL_SCALE, **options}
    given["adapter"] = _connected(adapter)
    places = at_once
    if not isinstance(places, Places | None):
        _check(where, None, at_once=places)
        places = Places(places)
    shown = shown_as(given["max_content_chars"], given["max_session_chars"], where)
    return tuple(_rubric(one, given, shown, places) for one in found)


def _rubric(
    one: Any, given: Mapping[str, Any], shown: Shown, places: Places | None = None
) -> Attached:
    from proctor.evaluators.attach import attach
    from proctor.evaluators.judging.session_rubric import rubric_for, session_rubric

    where = "rubric"
    _check(where, given["threshold"], max_tokens=given["max_tokens"])
    chosen = rubric_for(one, given["rubrics"], where)
    adapter = _connected(given["adapter"])
    judge = session_rubric(
        adapter,
        chosen,
        template=given["template"],
        scale=given["scale"],
        threshold=given["threshold"],
        how=_asking(given["temperature"], given["max_tokens"]),
        shown=shown,
        timeout=given["timeout"],
        places=places,
        where=where,
    )

    async def evaluate(output: Any, sample: Any = None, session: Any = None) -> Any:
        return await judge.score(output, sample, session)

    # The rubric as it was found, so that whoever reads the run needs no file for it; and without
    # the time-out, which no score rests on: a run may be resumed with another.
    options = {
        name: given[name]
        for name, usual in _defaults(rubric).items()
        if name not in ("rubrics", "timeout") and given[name] != usual
    }
    marked = made(evaluate, by=rubric, adapter=adapter, rubric=chosen, **options)
    return attach(marked, name=chosen.id)


def _defaults(factory: Callable[..., Any]) -> dict[str, Any]:
    """The options of a factory that have a default, with it."""
    parameters = inspect.signature(factory).parameters
    return {n: p.default for n, p in parameters.items() if p.default is not p.empty}


def _evaluator(
    judge: Judge | RubricJudge, by: Callable[..., Any], given: Mapping[str, Any]
) -> Callable[..., Any]:
    """The evaluator of a judge, marked with the options that are not the usual ones."""

    async def evaluate(output: Any, sample: Any = None) -> Any:
        return await judge.score(output, sample)

    options = {
        name: given[name]
        for name, parameter in inspect.signature(by).parameters.items()
        if name != "adapter" and given[name] != parameter.default
    }
    # The adapter rather than what was given for it, which may hold a key.
    return made(evaluate, by=by, adapter=judge.adapter, **options)


def _connected(adapter: Any) -> Any:
    # Addresses are looked up among what is installed, which takes a moment.
    from proctor.connections import provider

    return provider(adapter)


def _template(prompt: Any, key: str, known: tuple[str, ...], where: str) -> Any:
    from proctor.evaluators.judging.templates import chosen

    return chosen(prompt, key, known, where)


def _asking(
    temperature: Temperature,
    max_tokens: int | None,
    *,
    logprobs: bool = False,
    samples: int = 1,
) -> Asking:
    from proctor.evaluators.judging.opinion import Asking

    if temperature == "auto":
        # Several opinions at temperature 0 would be one opinion, several times.
        temperature = 0.0 if samples == 1 else None
    if temperature is not None and not (is_number(temperature) and temperature >= 0):
        raise EvaluatorError(f"a temperature is a number from 0 up, got {temperature!r}")
    return Asking(temperature, max_tokens, logprobs)


def _measure(
    criterion: str | None, rubric: str | None, criteria: Sequence[str] | None, where: str
) -> dict[str, str]:
    """What is judged by, in one text."""
    listed = [criteria] if isinstance(criteria, str) else list(criteria or ())
    parts = [part for part in (criterion, rubric) if part is not None]
    if any(not isinstance(part, str) or not part.strip() for part in (*parts, *listed)):
        raise EvaluatorError("a criterion is a text that says something", where=where)
    if criteria is not None and not listed:
        raise EvaluatorError("there is no criterion in the list", where=where)
    parts += ["Consider:\n" + "\n".join(f"- {one}" for one in listed)] if listed else []
    return {"criterion": "\n\n".join(parts)} if parts else {}


def _ratings(threshold: float | None) -> Labels | Numbers:
    return Labels("rating", RATING_VALUES, passing=PASSING_RATINGS, threshold=threshold)


def _ends(scale: Labels | Numbers) -> dict[str, str]:
    """The ends of a scale, as words in a prompt."""
    return (
        {"low": f"{scale.low:g}", "high": f"{scale.high:g}"} if isinstance(scale, Numbers) else {}
    )


def _check(
    where: str,
    threshold: float | None,
    *,
    combine: str = "mean",
    **counts: int | None,
) -> None:
    if combine not in ("mean", "vote"):
        raise EvaluatorError(f"opinions combine by mean or vote, not {combine!r}", where=where)
    if threshold is not None and not is_fraction(threshold):
        raise EvaluatorError(f"a pass mark is from 0 to 1, got {threshold!r}", where=where)
    for name, count in counts.items():
        if count is not None and not (is_number(count) and count == int(count) >= 1):
            raise EvaluatorError(f"{name} is a whole number from 1 up, got {count!r}", where=where)
