"""Whether two runs were measured by the same evaluators: if not, what they passed is not alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, STRICT_PASS_RATE
from proctor.records.comparison import NOT_COMPARABLE, MetricDelta
from proctor.records.rubric_scores import TOTAL_SCORE
from proctor.records.run import EvaluatorSpec, RunMetadata

# What all evaluators of a run say together.
COMBINED = (STRICT_PASS_RATE, PASS_RATE, MEAN_SCORE, TOTAL_SCORE)


class Changes(NamedTuple):
    """Which evaluators two runs do not share, and which of the same name are not the same.

    `doubtful` are those whose code looks different under another Python or Proctor, which may be
    all the difference there is.
    """

    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()

    @property
    def matter(self) -> bool:
        """True if a metric that combines all evaluators means something else in each run."""
        return bool(self.only_a or self.only_b or self.changed)

    def touch(self, metric: str) -> bool:
        """True if a metric, by the name a comparison has for it, is another measure in each."""
        if metric in COMBINED:
            return self.matter
        return any(metric == name or metric.startswith(f"{name}.") for name in self.changed)

    def told(self, a: str, b: str) -> Iterator[str]:
        """What is not the same, a sentence each."""
        for name, ones in ((a, self.only_a), (b, self.only_b)):
            if ones:
                yield f"only {name} has the evaluator{'s' * (len(ones) > 1)} {', '.join(ones)}"
        for one in self.changed:
            yield f"the evaluator {one} is not the same in both runs"

    def doubts(self) -> Iterator[str]:
        """What cannot be told to be the same."""
        if self.doubtful:
            yield (
                "the runs have another Python or Proctor, so that nothing tells whether the code "
                f"of {', '.join(self.doubtful)} is the same"
            )


def changes_between(a: RunMetadata, b: RunMetadata) -> Changes:
    """How the evaluators of two runs differ."""
    mine, theirs = ({spec.name: spec for spec in run.evaluators} for run in (a, b))
    shared = [name for name in mine if name in theirs]
    alike = _surroundings(a) == _surroundings(b)
    suspect = [name for name in shared if mine[name].identity != theirs[name].identity]
    changed = [
        name
        for name in shared
        if _terms(mine[name]) != _terms(theirs[name]) or (alike and name in suspect)
    ]
    return Changes(
        tuple(name for name in mine if name not in theirs),
        tuple(name for name in theirs if name not in mine),
        tuple(changed),
        tuple(name for name in suspect if name not in changed),
    )


def without_verdict(delta: MetricDelta, changes: Changes) -> MetricDelta:
    """A delta that says nothing of better and worse where each side was measured otherwise."""
    if not changes.touch(delta.name):
        return delta
    return msgspec.structs.replace(
        delta, verdict=NOT_COMPARABLE, p=None, p_adjusted=None, effect=None, more_samples=None
    )


def _terms(spec: EvaluatorSpec) -> tuple[object, ...]:
    return spec.uses, spec.parameters


def _surroundings(run: RunMetadata) -> tuple[object, ...]:
    """What an evaluator's identity hangs on besides its code: bytecode is of one Python only."""
    python = run.environment.get("python", "").split(".")[:2]
    return python, run.environment.get("proctor")
