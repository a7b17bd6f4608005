"""Judges that may be worth nothing: one score for everything, or a model too small to judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from proctor.metrics.judge_quality import describe_judge
from proctor.records.results import Results
from proctor.records.run import RunMetadata

# From so many equal verdicts on, a judge may not be looking at what it judges.
CONSTANT_FROM = 10
# How many canaries are read to find out what a constant judge made of them.
CANARIES_READ = 100


def constant_judges(results: Results, run: RunMetadata) -> Iterator[str]:
    """A sentence about every judge that gave the same score to everything.

    Rules such as `exact_match` rightly give 1 to every right output; of a judge or a rubric a
    score that never moves is suspicious at any value.
    """
    for spec in run.evaluators:
        if not spec.judges:
            continue
        values = results.column(spec.name).values
        if len(values) >= CONSTANT_FROM and min(values) == max(values):
            yield (
                f"{spec.name} gave the same score, {values[0]:.3g}, to all {len(values):,} results "
                f"it judged: it may not look at them. {_advice(results, spec.name)}"
            )


def _advice(results: Results, judge: str) -> str:
    """How to find out more about a constant judge, or what to do where a canary has told."""
    canaries = (
        canary
        for result in results
        if (score := result.scores.get(judge)) is not None
        and isinstance(canary := score.details.get("canary"), Mapping)
    )
    outcomes = [canary for canary, _ in zip(canaries, range(CANARIES_READ), strict=False)]
    if any(canary.get("fell_for") or canary.get("passes_anyway") for canary in outcomes):
        return "It passed a bad answer of the canary too: use another model or a clearer criterion"
    if any(canary.get("fell_for") is False for canary in outcomes):
        return (
            "It failed the bad answers of the canary, so it does look; check whether the samples "
            "differ enough"
        )
    if outcomes:
        return "It gave no verdict on the canary: see the details of its scores"
    return "Test it with an answer that must fail: --canary 1"


def local_judges(run: RunMetadata) -> Iterator[str]:
    """A sentence about every local model that judges, and what its verdicts are worth."""
    for spec in run.evaluators:
        for model in spec.judges_inside:
            if text := describe_judge(model):
                yield f"{spec.name} is judged by {model}, which {text}"
