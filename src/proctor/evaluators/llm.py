"""Judges: a model that rates or scores what a target gave, by a criterion, a rubric or quality.

Everything judged stands behind a fence, a verdict comes from structured output or the last line
that bears the fence's mark, and a judge without a verdict gives an error, never a number.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from proctor.errors import EvaluatorError
from proctor.evaluators.judges.criteria import Temperature, asking, check_terms, connected
from proctor.evaluators.judges.scale import (
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

if TYPE_CHECKING:
    from proctor.evaluators.judges.judge import Judge
    from proctor.evaluators.judges.rubric import RubricJudge

__all__ = [
    "PASSING_RATINGS",
    "RATING_VALUES",
    "JudgeOutput",
    "JudgeParams",
    "Rating",
    "llm_judge",
    "quality_score",
    "rubric_evaluation",
]


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

    >>> def kind(messages):
    ...     *_, line = messages[-1].content.splitlines()
    ...     return "It greets.\\n" + line.partition("<")[0] + "good"
    >>> llm_judge(kind, "Is it polite?")("Good morning!").value
    0.75
    """
    from proctor.evaluators.judges.judge import Judge, View

    where = "llm_judge"
    check_terms(where, threshold, samples=samples, max_tokens=max_tokens, combine=combine)
    measure = _measure(criterion, rubric, criteria, where)
    named = criterion is not None or prompt is not None
    by_labels = rubric is None and criteria is None and named
    taken = _ratings(threshold) if by_labels else numbers(scale, threshold, where)
    key = "llm-judge" if by_labels else "llm-score" if measure else "quality-score"
    ends = _ends(taken)
    judge = Judge(
        connected(adapter),
        _template(prompt, key, (*measure, *ends), where),
        taken,
        measure,
        ends,
        View(reference, show_input),
        asking(temperature, max_tokens, logprobs=logprobs, samples=samples),
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
    from proctor.evaluators.judges.judge import Judge, View
    from proctor.evaluators.judges.templates import shipped

    where = "quality_score"
    check_terms(where, min_score, samples=samples, max_tokens=max_tokens)
    taken = numbers(scale, min_score, where)
    judge = Judge(
        connected(adapter),
        shipped("quality-score"),
        taken,
        {},
        _ends(taken),
        View(reference, show_input),
        asking(temperature, max_tokens, samples=samples),
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
    from proctor.evaluators.judges.criteria import rubric_of
    from proctor.evaluators.judges.judge import View
    from proctor.evaluators.judges.rubric import RubricJudge

    where = "rubric_evaluation"
    check_terms(where, threshold, max_tokens=max_tokens)
    rubric = rubric_of(rubric, where)
    taken = numbers(scale, threshold, where)
    key, known = ("rubric", "criteria") if one_call else ("llm-score", "criterion")
    judge = RubricJudge(
        connected(adapter),
        _template(prompt, key, (known, "low", "high"), where),
        rubric,
        taken,
        _ends(taken),
        one_call,
        View(reference, show_input),
        asking(temperature, max_tokens),
    )
    return _evaluator(judge, rubric_evaluation, locals())


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


def _template(prompt: Any, key: str, known: tuple[str, ...], where: str) -> Any:
    from proctor.evaluators.judges.templates import chosen

    return chosen(prompt, key, known, where)


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
    return {"low": f"{scale.low:g}", "high": f"{scale.high:g}"} if isinstance(scale, Numbers) else {}
