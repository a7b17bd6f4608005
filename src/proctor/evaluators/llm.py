"""Judges: models that rate an output by a criterion, a rubric or its overall quality."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from proctor.errors import EvaluatorError
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.judges.judge import Judge, Temperature, View, check_judge_options, create_judge_options
from proctor.evaluators.judges.rubric import RubricJudge, parse_criteria
from proctor.evaluators.judges.scale import DEFAULT_THRESHOLD, NumberScale, Scale, create_number_scale, find_label_scale
from proctor.evaluators.judges.simulated_user import TEMPLATE, SimulatedUserCheck
from proctor.evaluators.judges.templates import load_template, select_template
from proctor.evaluators.options import Model
from proctor.models.connect import provider

_DEFAULT_ENDS: tuple[float, float] = (1, 5)


@evaluator(category="llm", factory=True, needs=())
def llm_judge(
    model: Model,
    criterion: str | None = None,
    *,
    rubric: str | None = None,
    criteria: Sequence[str] | None = None,
    scale: tuple[float, float] | str | None = None,
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

    The first two pass. With `rubric` (a string) or `criteria` (a list) it gives a number from 1 to 5 instead, which
    passes at 70% of the range or higher; without any of them it scores overall quality. `threshold` overrides this
    limit. `scale=(1, 10)` asks for a number in another range and `scale="rating"` for the five words, in every case.

    The judge sees the input and, if there is one, the expected value: `reference=True` skips samples without one,
    `reference=False` never shows it. `samples` asks several times and takes the mean; with `combine="vote"` the
    majority decides. `logprobs` weights the ratings by their probabilities. The temperature defaults to 0, or to the
    provider's default if `samples` is more than 1. `prompt` is your own prompt: the path of its file or a
    `PromptTemplate`, not the text itself. It must contain `$output`, and may contain `$input`, `$context`, `$expected`,
    `$mark`, `$criterion` if there is one, and `$low` and `$high` with a scale.

    >>> def polite_judge(messages):
    ...     *_, line = messages[-1].content.splitlines()
    ...     return "It greets.\\n" + line.partition("<")[0] + "good"
    >>> llm_judge(polite_judge, "Is it polite?")("Good morning!").value
    0.75
    """
    where = "llm_judge"
    check_judge_options(where, threshold, samples=samples, max_tokens=max_tokens, combine=combine)
    criterion_text = _join_criteria(criterion, rubric, criteria, where)
    uses_labels = rubric is None and criteria is None and (criterion is not None or prompt is not None)
    if not uses_labels and scale == _DEFAULT_ENDS:
        scale = None
    label_scale = scale if isinstance(scale, str) else "rating" if uses_labels and scale is None else None
    number_ends = _DEFAULT_ENDS if scale is None else scale
    key, rating_scale = _select_scale(label_scale, number_ends, threshold, criterion_text, prompt, where)
    bounds = _format_bounds(rating_scale)
    judge = Judge(
        provider(model),
        select_template(prompt, key, (*criterion_text, *bounds), where),
        rating_scale,
        criterion_text,
        bounds,
        View(reference, show_input),
        create_judge_options(temperature, max_tokens, logprobs=logprobs, samples=samples),
        samples,
        combine,
    )
    return _make_evaluator(judge, llm_judge, locals())


@evaluator(category="llm", factory=True, needs=())
def quality_score(
    model: Model,
    *,
    threshold: float = DEFAULT_THRESHOLD,
    scale: tuple[float, float] = (1, 5),
    reference: bool | None = None,
    show_input: bool = True,
    samples: int = 1,
    temperature: Temperature = "auto",
    max_tokens: int | None = None,
) -> Callable[..., Any]:
    """A model scores the overall quality of the output; passes at `threshold` (0 to 1) or higher.

    It considers correctness, completeness, clarity and usefulness, in this order.
    """
    where = "quality_score"
    check_judge_options(where, threshold, samples=samples, max_tokens=max_tokens)
    rating_scale = create_number_scale(scale, threshold, where)
    judge = Judge(
        provider(model),
        load_template("quality-score"),
        rating_scale,
        {},
        _format_bounds(rating_scale),
        View(reference, show_input),
        create_judge_options(temperature, max_tokens, samples=samples),
        samples,
    )
    return _make_evaluator(judge, quality_score, locals())


@evaluator(category="llm", factory=True, needs=())
def rubric_evaluation(
    model: Model,
    rubric: Any,
    *,
    one_call: bool = True,
    threshold: float = DEFAULT_THRESHOLD,
    scale: tuple[float, float] = (1, 5),
    reference: bool | None = None,
    show_input: bool = True,
    temperature: Temperature = "auto",
    max_tokens: int | None = None,
    prompt: Any = None,
) -> Callable[..., Any]:
    """A model scores the output by every criterion of a rubric; the value is the weighted mean.

    A rubric is a list of criteria, or a mapping of names to weights, descriptions or mappings
    with description, scoring_criteria and weight. `one_call=False` asks for each criterion
    separately. If a criterion without a verdict could change that of the answer, the score is an
    error; otherwise the details list it.
    """
    where = "rubric_evaluation"
    check_judge_options(where, threshold, max_tokens=max_tokens)
    rubric = parse_criteria(rubric, where)
    rating_scale = create_number_scale(scale, threshold, where)
    key, variable = ("rubric", "criteria") if one_call else ("llm-score", "criterion")
    judge = RubricJudge(
        provider(model),
        select_template(prompt, key, (variable, "low", "high"), where),
        rubric,
        rating_scale,
        _format_bounds(rating_scale),
        one_call,
        View(reference, show_input),
        create_judge_options(temperature, max_tokens),
    )
    return _make_evaluator(judge, rubric_evaluation, locals())


@evaluator(category="session", factory=True, needs=("session",))
def simulated_user_role(
    model: Model, *, temperature: Temperature = "auto", max_tokens: int | None = None
) -> Callable[..., Any]:
    """A model checks the simulated user of a conversation, not the target: did it stay in its role?

    Four checks must pass: it does not speak as the assistant, it does not reveal that it is simulated, it pursues its
    goal, and it states nothing about itself that the persona does not say, as far as a judge can tell. Sessions without
    a simulated user are skipped.
    """
    check_judge_options("simulated_user_role", None, max_tokens=max_tokens)
    check = SimulatedUserCheck(provider(model), load_template(TEMPLATE), create_judge_options(temperature, max_tokens))

    async def evaluate(output: Any, sample: Any = None, session: Any = None) -> Any:  # noqa: ARG001
        return await check.score(sample, session)

    options = {"temperature": temperature, "max_tokens": max_tokens}
    defaults = {"temperature": "auto", "max_tokens": None}
    changed = {name: value for name, value in options.items() if value != defaults[name]}
    return tag_evaluator(evaluate, factory=simulated_user_role, model=check.adapter, **changed)


def _make_evaluator(
    judge: Judge | RubricJudge, factory: Callable[..., Any], arguments: Mapping[str, Any]
) -> Callable[..., Any]:
    async def evaluate(output: Any, sample: Any = None) -> Any:
        return await judge.score(output, sample)

    options = {
        name: arguments[name]
        for name, parameter in inspect.signature(factory).parameters.items()
        if name != "model" and arguments[name] != parameter.default
    }
    # Store the connected model, because the user's argument may contain a key.
    return tag_evaluator(evaluate, factory=factory, model=judge.adapter, **options)


def _join_criteria(
    criterion: str | None, rubric: str | None, criteria: Sequence[str] | None, where: str
) -> dict[str, str]:
    criterion_list = [criteria] if isinstance(criteria, str) else list(criteria or ())
    blocks = [block for block in (criterion, rubric) if block is not None]
    texts_by_name: dict[str, list[Any]] = {"criterion": [criterion], "rubric": [rubric], "criteria": criterion_list}
    for name, texts in texts_by_name.items():
        if any(text is not None and (not isinstance(text, str) or not text.strip()) for text in texts):
            allowed = "a list of non-empty strings" if name == "criteria" else "a non-empty string"
            value = criteria if name == "criteria" else texts[0]
            raise EvaluatorError(f"{name} must be {allowed}, got {value!r}", where=where)
    if criteria is not None and not criterion_list:
        raise EvaluatorError("the list of criteria is empty", where=where)
    if criterion_list:
        blocks.append("\n".join(["Consider:", *(f"- {text}" for text in criterion_list)]))
    return {"criterion": "\n\n".join(blocks)} if blocks else {}


def _select_scale(
    name: str | None, bounds: Any, threshold: float | None, criterion: Mapping[str, str], prompt: Any, where: str
) -> tuple[str, Scale]:
    """Return the prompt and the scale: a named scale of words, or numbers between two bounds."""
    if name is None:
        return "llm-score" if criterion else "quality-score", create_number_scale(bounds, threshold, where)
    if prompt is None and not criterion:
        raise EvaluatorError(f"the scale {name!r} needs a criterion", where=where, fix='write llm_judge(model, "…")')
    return find_label_scale(name, threshold, where)


def _format_bounds(scale: Scale) -> dict[str, str]:
    return {"low": f"{scale.low:g}", "high": f"{scale.high:g}"} if isinstance(scale, NumberScale) else {}
