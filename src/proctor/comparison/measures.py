"""Whether two runs were measured by the same evaluators: if not, what they passed is not alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, STRICT_PASS_RATE
from proctor.comparison.terms import Term, code_of, only_weight, terms_apart
from proctor.identity import is_other_scheme
from proctor.records.comparison import NOT_COMPARABLE, MetricDelta
from proctor.records.rubric_scores import TOTAL_SCORE
from proctor.records.run import RunMetadata
from proctor.records.score import Skipped

# What all evaluators of a run say together.
COMBINED = (STRICT_PASS_RATE, PASS_RATE, MEAN_SCORE, TOTAL_SCORE)


class Changes(NamedTuple):
    """Which evaluators two runs do not share, and which of the same name are not the same.

    `doubtful` are those whose code looks different under another Python or Proctor, which may be
    all the difference there is. `weighed` are rubrics that differ in their weight alone: each is
    the same measure, and the total is not. `apart` says of both how they differ, `code` what it may
    be where no option does.
    """

    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    weighed: tuple[str, ...] = ()
    apart: Mapping[str, tuple[Term, ...]] = MappingProxyType({})
    code: Mapping[str, str] = MappingProxyType({})
    # What a skipped check means in each run, where that differs.
    skipped: tuple[Skipped, Skipped] | None = None
    # Which evaluators judged far fewer samples in one run than in the other, a sentence each.
    uneven: tuple[str, ...] = ()

    @property
    def matter(self) -> bool:
        """True if a metric that combines all evaluators means something else in each run."""
        return bool(self.only_a or self.only_b or self.changed or self.skipped or self.uneven)

    def touch(self, metric: str) -> bool:
        """True if a metric, by the name a comparison has for it, is another measure in each."""
        if metric in COMBINED:
            return self.matter or (metric == TOTAL_SCORE and bool(self.weighed))
        return any(metric == name or metric.startswith(f"{name}.") for name in self.changed)

    def told(self, a: str, b: str) -> Iterator[str]:
        """What is not the same, a sentence each."""
        for name, ones in ((a, self.only_a), (b, self.only_b)):
            if ones:
                yield f"only {name} has the evaluator{'s' * (len(ones) > 1)} {', '.join(ones)}"
        alike: dict[str, list[str]] = {}
        for one in self.changed:
            how = "; ".join(term.told(a, b) for term in self.apart.get(one, ()))
            alike.setdefault(how or self.code[one], []).append(one)
        for how, same in alike.items():
            are = "s {} are" if len(same) > 1 else " {} is"
            yield f"the evaluator{are.format(', '.join(same))} not the same in both runs: {how}"
        if self.skipped is not None:
            mine, theirs = self.skipped
            yield f"a skipped check counts differently: skipped is {mine} in {a}, {theirs} in {b}"

    def doubts(self, a: str, b: str) -> Iterator[str]:
        """What cannot be told to be the same, and what differs and is the same measure still."""
        for one in self.weighed:
            (term,) = self.apart[one]
            yield f"the weight of {one} is {term.mine} in {a} and {term.theirs} in {b}"
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
    apart = {name: terms_apart(mine[name], theirs[name]) for name in shared}
    # Options are part of an identity: where one differs, it tells nothing of the code.
    weighed = [name for name in shared if only_weight(apart[name])]
    suspect = [
        name
        for name in shared
        if mine[name].identity != theirs[name].identity and name not in weighed
    ]
    # Identities of two schemes cannot be compared, whatever the version of Proctor is called.
    telling = [
        name
        for name in suspect
        if alike and not is_other_scheme(mine[name].identity, theirs[name].identity)
    ]
    changed = [name for name in shared if name not in weighed and (apart[name] or name in telling)]
    return Changes(
        tuple(name for name in mine if name not in theirs),
        tuple(name for name in theirs if name not in mine),
        tuple(changed),
        tuple(name for name in suspect if name not in changed),
        tuple(weighed),
        apart,
        {name: code_of(mine[name]) for name in shared},
        _skipped_differs(a, b),
    )


def _skipped_differs(a: RunMetadata, b: RunMetadata) -> tuple[Skipped, Skipped] | None:
    """What a skipped check means in each run; None where it is the same, or there is one check."""
    rules = a.options.skipped, b.options.skipped
    several = max(len(a.evaluators), len(b.evaluators)) > 1
    return rules if several and rules[0] != rules[1] else None


def without_verdict(delta: MetricDelta, changes: Changes) -> MetricDelta:
    """A delta that says nothing of better and worse where each side was measured otherwise."""
    if not changes.touch(delta.name):
        return delta
    return msgspec.structs.replace(
        delta, verdict=NOT_COMPARABLE, p=None, p_adjusted=None, effect=None, more_samples=None
    )


def _surroundings(run: RunMetadata) -> tuple[object, ...]:
    """What an evaluator's identity depends on besides its code: bytecode is of one Python only."""
    python = run.environment.get("python", "").split(".")[:2]
    return python, run.environment.get("proctor")
