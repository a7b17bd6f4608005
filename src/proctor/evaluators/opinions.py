"""Opinions: several judges as one, two answers side by side, and judges put to the test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from proctor.core.identity import identity_of
from proctor.errors import CallFailed, EvaluatorError
from proctor.evaluators.attached import Attached
from proctor.evaluators.combination import parts_of, uncovered_by
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.options import Model, data_of
from proctor.records import codec
from proctor.records.numbers import is_fraction
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.score import Score

# What a win, a tie and a loss are worth.
WORTH = {"a": 1.0, "tie": 0.5, "b": 0.0}


@evaluator(category="opinions", factory=True, parts="judges")
def panel(
    judges: Sequence[Any], rule: Literal["majority", "mean", "unanimous"] = "majority", threshold: float = 0.5
) -> Attached:
    """Asks several judges at once and passes by majority, by their mean, or if all pass.

    Any evaluator may be a judge. The value is the mean of theirs; `threshold` is for the rule
    "mean" alone. A tie is no majority. Judges that fail are left out and named; if most of them
    fail, there is no verdict, and nothing is unanimous while one of them fails. The details tell
    each verdict and how far the judges agree.

    >>> from proctor.evaluators.matching import contains, exact_match
    >>> score = panel([contains, exact_match], "unanimous")("hello world", "hello")
    >>> score.value, score.passed, score.details["agreement"]
    (0.5, False, 0.0)
    """
    from proctor.evaluators.judges.panel import RULES, panel_score

    if rule not in RULES:
        raise EvaluatorError(
            f"there is no rule {rule!r}", where="panel", fix=f"take one of {', '.join(RULES)}"
        )
    if not is_fraction(threshold):
        raise EvaluatorError(f"a threshold is from 0 to 1, got {threshold!r}", where="panel")
    if isinstance(judges, str) or not isinstance(judges, Sequence):
        judges = [judges]
    parts = parts_of(judges, "panel", "panel([exact_match, contains])")
    given = {"judges": data_of(list(parts.values())), "rule": rule, "threshold": threshold}
    made = _attached("panel", "panel", given, panel_score(parts, rule, threshold))
    return _with_uncovered(made, parts.values())


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

    The other answer is the expected value, or what the sample's metadata hold under `rival`. A
    win is 1, a loss 0; a tie, or a judge that changes its mind with the order, is 0.5. It passes
    unless it loses; with `win_required` only if it wins. `ties` lets the judge call them equal.
    """
    from proctor.evaluators.judges.judge import failed
    from proctor.evaluators.judges.opinion import usage_data
    from proctor.evaluators.judges.pairwise import BETTER, PREFERENCE, Comparison, compare, summary_of
    from proctor.evaluators.judges.templates import shipped
    from proctor.models.connect import provider

    model = provider(adapter)
    template = shipped("prefer")
    how = Comparison(ties=ties, template=template)
    given = {"adapter": model, "criterion": criterion or BETTER, "rival": rival}
    given |= {"win_required": win_required, "ties": ties, "show_input": show_input}

    async def evaluate(output: Any, sample: Any = None) -> Score:
        if not isinstance(sample, Sample):
            # Called directly, with an output and the other answer.
            sample = Sample("", None, sample)
        other = sample.expected if rival is None else sample.metadata.get(rival)
        if other is None:
            what = "no expected value" if rival is None else f"no metadata {rival!r}"
            return Score.skipped(f"the sample has {what} to compare with")
        asked = sample.input if show_input else None
        try:
            found = await compare(model, output, other, criterion=criterion or BETTER, input=asked, how=how)
        except CallFailed as error:
            return failed(model, template, [error])
        value = WORTH[found.winner]
        judge = {"model": found.model, "prompt": found.prompt, "usage": usage_data(found.usage)}
        details = {PREFERENCE: codec.plain(found), "judge": judge}
        return Score(value, value > (0.5 if win_required else 0.0), summary_of(found), details)

    return made(evaluate, by=prefer, **given)


@evaluator(category="opinions", factory=True, parts="judge")
def with_canary(judge: Any, every: int = 10, answer: str | None = None) -> Attached:
    """Judges as its judge does, and now and then shows it a bad answer that asks for praise.

    About one sample in `every` is used, chosen by its id, so that a resumed or replayed run uses
    the same ones. The judge's own score stays as it is; its details tell under "canary" whether
    it fell for the bad answer, and if it did, the run's report warns of it. An answer that it
    passes is shown to it once more without the praise: one that `passes_anyway` tells nothing, so
    give an `answer` that is bad by the judge's criterion.
    """
    from proctor.evaluators.judges.canary import BAD_ANSWER, canary_score

    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise EvaluatorError(f"`every` is a whole number from 1, got {every!r}", where="with_canary")
    (name, part), *_ = parts_of([judge], "with_canary").items()
    given = {"judge": data_of(part), "every": every, "answer": answer or BAD_ANSWER}
    made = _attached(name, "with_canary", given, canary_score(part, every, given["answer"]))
    return _with_uncovered(made, [part])


def _with_uncovered(made: Attached, parts: Iterable[Attached]) -> Attached:
    spec = msgspec.structs.replace(made.spec, uncovered=uncovered_by(parts))
    return Attached(spec, made.mode, made.score, made.needs)


def with_canaries(evaluators: Sequence[Attached], every: int) -> tuple[Attached, ...]:
    """The same evaluators, each judge among them with a canary in about one of `every` samples.

    They stay what they are, as data too: a canary changes no score.
    """
    from proctor.evaluators.judges.canary import canary_score

    return tuple(
        Attached(one.spec, "async", canary_score(one, every), one.needs)
        if one.spec.judges and one.group is None
        else one
        for one in evaluators
    )


def _attached(name: str, uses: str, given: dict[str, Any], score: Any) -> Attached:
    return Attached(EvaluatorSpec(name, uses, given, identity_of([uses, given])), "async", score)
