"""How well hallucination_detection distinguishes supported claims from others, as labeled by people.

Two sets of replies in conversations (BEGIN, the audit of FaithDial without generic replies) and three of claims with
evidence (FEVER symmetric, Fool Me Twice, WiCE without partially supported claims). The weights and the threshold were
fitted on every second row of the same sets by `fit_grounding.py`, which also measures each set with weights fitted on
the others; with PROCTOR_QUALITY_EVERY=2 or 4, rows between these are measured here.
`grounding_near_misses.yaml` has claims and paraphrases that must pass, and claims with one changed fact that must not;
it was written before the rules for changed facts, and read while they were written.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.quality.figure import Figure
from benchmarks.quality.grounding_sets import Reply, near_misses, read_sets, token_precision
from benchmarks.quality.intervals import auroc, bootstrap, rate
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.text.quality import hallucination_detection
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial

EVALUATOR = "hallucination_detection"
GOALS = {
    "BEGIN dev": 0.955,
    "FaithDial audit": 0.0,
    "FEVER symmetric dev": 0.8,
    "Fool Me Twice dev": 0.7,
    "WiCE dev": 0.975,
}
EVERY = int(os.environ.get("PROCTOR_QUALITY_EVERY", "1"))


def measure(data: Path) -> Iterator[Figure]:
    """Return AUROC and the shares that pass for each set, and the share of changed facts that fail."""
    for name, replies in read_sets(data).items():
        # `fit_grounding` uses the rows from the first on, so these are others if EVERY is 2 or more.
        yield from measure_set(name, replies[EVERY > 1 :: EVERY])
    yield from measure_near_misses()
    yield from measure_near_misses(others=7)


def measure_set(name: str, replies: Sequence[Reply]) -> Iterator[Figure]:
    """Compare the evaluator with people and with token precision; skipped replies are left out of both."""
    scores = asyncio.run(score_replies(replies))
    known = [
        (reply, score.value, score.passed)
        for reply, score in zip(replies, scores, strict=True)
        if score.value is not None
    ]
    values, labels = [value for _, value, _ in known], [reply.grounded for reply, _, _ in known]
    baseline = auroc([token_precision(reply) for reply, _, _ in known], labels)
    area, goal = auroc(values, labels), max(GOALS[name], baseline)
    note = f"{len(replies) - len(known)} of {len(replies)} skipped"
    interval = bootstrap(auroc, values, labels)
    reference = f"token precision {baseline:.3f}"
    yield Figure("AUROC", name, area, reference, f">= {goal:.3f}", area >= goal, note, EVALUATOR, interval)
    for what, grounded in (("supported claims that pass", True), ("unsupported claims that pass", False)):
        share, interval = rate([passed is True for reply, _, passed in known if reply.grounded is grounded])
        yield Figure(what, name, share, evaluator=EVALUATOR, interval=interval)


def measure_near_misses(others: int = 0) -> Iterator[Figure]:
    """Return the share of changed facts that fail, in total and by kind, and of claims and paraphrases that pass."""
    grounded, changed = near_misses(others)
    share, interval = rate([score.passed is True for score in asyncio.run(score_replies(grounded))])
    place = f" among {others} other contexts" if others else ""
    data = f"own claims and paraphrases{place}"
    yield Figure("supported claims that pass", data, share, "", ">= 0.8", share >= 0.8, "", EVALUATOR, interval)
    failed = [score.passed is False for score in asyncio.run(score_replies([reply for _, reply in changed]))]
    share, interval = rate(failed)
    data = f"own claims, one fact changed{place}"
    yield Figure("changed facts that fail", data, share, "", ">= 0.8", share >= 0.8, "", EVALUATOR, interval)
    for kind in dict.fromkeys(kind for kind, _ in changed):
        share, interval = rate([fails for (other, _), fails in zip(changed, failed, strict=True) if other == kind])
        yield Figure("changed facts that fail", f"own claims, {kind}{place}", share, note=str(interval))


async def score_replies(replies: Sequence[Reply], **options: Any) -> list[Score]:
    """Return the score of each reply, as in a run."""
    evaluator = attach(hallucination_detection(**options))
    trials = [
        Trial(Sample(str(number), None, metadata={"context": reply.context}), reply.text)
        for number, reply in enumerate(replies)
    ]
    return list(await asyncio.gather(*map(evaluator.score, trials)))
