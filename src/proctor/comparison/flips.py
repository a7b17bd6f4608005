"""The samples whose verdict turned."""

from __future__ import annotations

from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, STRICT_PASS_RATE, Side
from proctor.records.comparison import Flip


def flips(a: Side, b: Side) -> tuple[Flip, ...]:
    """Samples that pass on one side and not on the other: the lost ones first, worst first.

    A trial without a verdict has not passed, as in a strict pass rate.
    """
    mine, theirs = (_verdicts(side) for side in (a, b))
    apart = a.apart or ()
    found = [
        Flip(name, lost=theirs[name], a=_score(a, name), b=_score(b, name))
        for name, passes in mine.items()
        if name in theirs and passes is not theirs[name] and name not in apart
    ]
    return tuple(sorted(found, key=lambda one: (not one.lost, one.change, one.sample_id)))


def _verdicts(side: Side) -> dict[str, bool]:
    shares = side.metrics.get(STRICT_PASS_RATE) or side.metrics.get(PASS_RATE) or {}
    return {name: share > 0.5 for name, share in shares.items()}


def _score(side: Side, sample_id: str) -> float | None:
    return side.metrics.get(MEAN_SCORE, {}).get(sample_id)
