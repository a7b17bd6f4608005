"""Combine several judges, compare two answers, and test judges with bad answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from proctor.core.identity import identity_of
from proctor.errors import CallFailed, EvaluatorError
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.evaluators.combination import collect_uncovered, name_evaluators
from proctor.evaluators.decorator import evaluator, mark_product
from proctor.evaluators.options import Model, to_data
from proctor.records import codec
from proctor.records.numbers import is_fraction
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.score import Score

# The value of a win, a tie and a loss.
VALUES = {"a": 1.0, "tie": 0.5, "b": 0.0}


@evaluator(category="opinions", factory=True, parts="judges")
def panel(
    judges: Sequence[Any], rule: Literal["majority", "mean", "unanimous"] = "majority", threshold: float = 0.5
) -> BoundEvaluator:
    """Asks several judges concurrently and passes by majority, by their mean, or if all pass.

    Any evaluator may be a judge. The value is the mean of their values; `threshold` applies to the
    rule "mean" only. A tie is not a majority. Judges with errors are left out and named; if most of
    them fail, the panel fails, and with the rule "unanimous" one error is enough. The details
    contain each verdict and the agreement of the judges.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> score = panel([contains, exact_match], "unanimous")("hello world", "hello")
    >>> score.value, score.passed, score.details["agreement"]
    (0.5, False, 0.0)
    """
    from proctor.evaluators.judges.panel import RULES, create_panel_scorer

    if rule not in RULES:
        raise EvaluatorError(
            f"there is no rule {rule!r}", where="panel", fix=f"choose one of {', '.join(RULES)}"
        )
    if not is_fraction(threshold):
        raise EvaluatorError(f"threshold must be from 0 to 1, got {threshold!r}", where="panel")
    if isinstance(judges, str) or not isinstance(judges, Sequence):
        judges = [judges]
    parts = name_evaluators(judges, "panel", "panel([exact_match, contains])")
    options = {"judges": to_data(list(parts.values())), "rule": rule, "threshold": threshold}
    return _attach_judges(
        "panel", "panel", options, create_panel_scorer(parts, rule, threshold), *parts.values()
    )


@evaluator(category="opinions", factory=True, needs=("expected",))
def prefer(
    adapter: Model,
    criterion: str | None = None,
    *,
    rival: str | None = None,
    win_required: bool = False,
    ties: bool = False,
    show_input: bool = True,
) -> Any:
    """Asks a model, in both orders, whether the output is better than another answer.

    The other answer is the expected value, or the entry `rival` of the sample's metadata. A win is
    1, a loss 0; a tie, or a verdict that changes with the order, is 0.5. It passes unless it loses;
    with `win_required` only if it wins. `ties` allows the judge to call the answers equal.
    """
    from proctor.evaluators.judges.judge import failed_score
    from proctor.evaluators.judges.opinion import usage_to_data
    from proctor.evaluators.judges.pairwise import (
        DEFAULT_CRITERION,
        PREFERENCE,
        Comparison,
        compare,
        summarize_preference,
    )
    from proctor.evaluators.judges.templates import load_template
    from proctor.models.connect import provider

    model, template = provider(adapter), load_template("prefer")
    how = Comparison(ties=ties, template=template)
    criterion = criterion or DEFAULT_CRITERION

    async def evaluate(output: Any, sample: Any = None) -> Score:
        if not isinstance(sample, Sample):
            # A direct call with an output and the other answer.
            sample = Sample("", None, sample)
        other = sample.expected if rival is None else sample.metadata.get(rival)
        if other is None:
            missing = "no expected value" if rival is None else f"no metadata {rival!r}"
            return Score.skipped(f"the sample has {missing} to compare with")
        question = sample.input if show_input else None
        try:
            comparison = await compare(
                model, output, other, criterion=criterion, input=question, comparison=how
            )
        except CallFailed as error:
            return failed_score(model, template, [error])
        value = VALUES[comparison.winner]
        usage = usage_to_data(comparison.usage)
        judge = {"model": comparison.model, "prompt": comparison.prompt, "usage": usage}
        details = {PREFERENCE: codec.plain(comparison), "judge": judge}
        return Score(value, value > (0.5 if win_required else 0.0), summarize_preference(comparison), details)

    options = {"win_required": win_required, "ties": ties, "show_input": show_input}
    return mark_product(evaluate, by=prefer, adapter=model, criterion=criterion, rival=rival, **options)


@evaluator(category="opinions", factory=True, parts="judge")
def with_canary(judge: Any, every: int = 10, answer: str | None = None) -> BoundEvaluator:
    """Scores like its judge, and sometimes shows the judge a bad answer that asks for praise.

    About one sample in `every` is used, selected by its id, so a resumed or replayed run uses the
    same ones. The score of the judge does not change; its details say under "canary" whether the
    judge accepted the bad answer, and the report of the run warns if it did. An answer that the
    judge passes is shown again without the praise: if it `passes_anyway`, the test says nothing, so
    pass an `answer` that is bad by the judge's criterion.
    """
    from proctor.evaluators.judges.canary import BAD_ANSWER, create_canary_scorer

    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise EvaluatorError(f"`every` must be a whole number from 1 up, got {every!r}", where="with_canary")
    ((name, part),) = name_evaluators([judge], "with_canary").items()
    options = {"judge": to_data(part), "every": every, "answer": answer or BAD_ANSWER}
    return _attach_judges(
        name, "with_canary", options, create_canary_scorer(part, every, options["answer"]), part
    )


def with_canaries(evaluators: Sequence[BoundEvaluator], every: int) -> tuple[BoundEvaluator, ...]:
    """Add a canary to each judge; specs do not change, because a canary changes no score."""
    from proctor.evaluators.judges.canary import create_canary_scorer

    return tuple(
        BoundEvaluator(evaluator.spec, "async", create_canary_scorer(evaluator, every), evaluator.needs)
        if evaluator.spec.judges and evaluator.group is None
        else evaluator
        for evaluator in evaluators
    )


def _attach_judges(
    name: str, uses: str, options: dict[str, Any], score: Any, *parts: BoundEvaluator
) -> BoundEvaluator:
    spec = EvaluatorSpec(name, uses, options, identity_of([uses, options]), collect_uncovered(parts))
    return BoundEvaluator(spec, "async", score)
