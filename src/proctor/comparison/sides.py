"""One side of a comparison: its numbers by metric and sample."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any

import msgspec

from proctor.comparison.totals import total_shares
from proctor.records.comparison import also_known_as
from proctor.records.fields.numbers import as_number
from proctor.records.results import Figures, Results
from proctor.records.rubric import TOTAL_SCORE
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number of one trial: of which sample, in which epoch; None where there is none.

    >>> Reading("1", 0, 450.0).value
    450.0
    """

    sample_id: str
    epoch: int
    value: float | None = None

    @classmethod
    def of(cls, sample_id: str, epoch: int, value: Any) -> Reading:
        """A reading of any value: a boolean is 0 or 1, what is no finite number is missing.

        >>> Reading.of("1", 0, True).value, Reading.of("1", 0, "four").value
        (1.0, None)
        """
        return cls(sample_id, epoch, as_number(value))


# By metric, then by sample: one number each, the mean of the sample's epochs.
Numbers = dict[str, float]
Table = dict[str, Numbers]

PASS_RATE, STRICT_PASS_RATE, MEAN_SCORE = "pass_rate", "strict_pass_rate", "mean_score"
SHARE = ".pass_rate"
LATENCY, TOKENS, COST = "latency_ms.mean", "tokens.mean", "cost.mean"
LOWER_IS_BETTER = (LATENCY, TOKENS, COST)
_PASSED, _FAILED, _ERROR, _UNSCORED, _SKIPPED = range(len(OUTCOMES))


class Side(msgspec.Struct, frozen=True):
    """A run, or a configuration of one, as the numbers that can be compared.

    `clusters` are those that samples name, by sample; None if none does. `without_verdict` counts
    the trials that failed or could not be scored. `results` are what the numbers were read from.
    `apart` are the samples that are no pairs although the other side has the same ids, None before
    anybody has looked; with `unpaired` that is all of them, for the sides are to be two groups.
    """

    name: str
    metrics: Table = {}
    scores: Table = {}
    fields: Table = {}
    clusters: dict[str, str] | None = None
    samples: tuple[str, ...] = ()
    without_verdict: int = 0
    run: RunMetadata | None = None
    results: Results | None = None
    apart: frozenset[str] | None = None
    unpaired: bool = False

    def find(self, metric: str) -> Numbers | None:
        """The numbers of a metric, score or field, also by the name a report's metrics have."""
        for one in also_known_as(metric):
            for table in (self.metrics, self.scores, self.fields):
                if one in table:
                    return table[one]
        return None

    @property
    def names(self) -> list[str]:
        """What there are numbers of."""
        return [*self.metrics, *self.scores, *self.fields]


def side_of(
    name: str,
    results: Results,
    run: RunMetadata | None = None,
    *,
    fields: Table | None = None,
    scores: Table | None = None,
) -> Side:
    """The side that some results are: all of one configuration.

    `fields` and `scores` are given where they are known better than by the figures alone.
    """
    figures = results.figures()
    ids, outcomes = figures.sample_ids, figures.outcomes
    samples = tuple(dict.fromkeys(ids))
    clusters = None
    if figures.clusters is not None:
        clusters = {s: c or s for s, c in zip(ids, figures.clusters, strict=True)}
    return Side(
        name,
        _metrics(figures, run),
        _scores(figures) if scores is None else scores,
        fields or {},
        clusters,
        samples,
        outcomes.count(_ERROR) + outcomes.count(_UNSCORED),
        run,
        results,
    )


def by_sample(readings: Iterable[Reading]) -> Numbers:
    """The mean of each sample's numbers, so that one with more epochs does not weigh more.

    >>> by_sample([Reading("a", 0, 1.0), Reading("a", 1, 3.0), Reading("b", 0, None)])
    {'a': 2.0}
    """
    known = [(one.sample_id, one.value) for one in readings if one.value is not None]
    return _means([name for name, _ in known], [value for _, value in known])


def _metrics(figures: Figures, run: RunMetadata | None) -> Table:
    ids = figures.sample_ids
    passed, strict = ([_worth(o, strict=s) for o in figures.outcomes] for s in (False, True))
    found = {
        PASS_RATE: _means(ids, passed),
        STRICT_PASS_RATE: _means(ids, strict),
        MEAN_SCORE: _means(ids, figures.values),
        # From 0 to 1 as all scores are; it is told on its scale.
        TOTAL_SCORE: _means(ids, total_shares(figures, run)),
        LATENCY: _means(ids, figures.latencies),
        TOKENS: _means(ids, figures.tokens),
        COST: {} if figures.costs is None else _means(ids, figures.costs),
    }
    return {name: numbers for name, numbers in found.items() if numbers}


def _worth(outcome: int, *, strict: bool) -> float:
    """1 if it passed, 0 if not; what has no verdict counts only if errors are to count."""
    if outcome == _PASSED:
        return 1.0
    if outcome == _FAILED or (strict and outcome != _SKIPPED):
        return 0.0
    return float("nan")


def _scores(figures: Figures) -> Table:
    """Each evaluator's scores and verdicts."""
    found: Table = {}
    ids = figures.sample_ids
    for name, values in figures.scores.items():
        found[name] = _means(ids, values)
        found[f"{name}.pass_rate"] = _means(ids, figures.passes[name])
    return {name: numbers for name, numbers in found.items() if numbers}


def _means(ids: Sequence[str], values: Sequence[float] | array[float]) -> Numbers:
    """The mean of each sample's numbers; NaN is none."""
    once = {name: value for name, value in zip(ids, values, strict=True) if value == value}
    if len(set(ids)) == len(ids):
        return once
    held: dict[str, list[float]] = {name: [] for name in once}
    for name, value in zip(ids, values, strict=True):
        if value == value:
            held[name].append(value)
    return {name: fsum(each) / len(each) for name, each in held.items()}


def without_twins(a: Side, b: Side) -> tuple[Side, Side]:
    """Both without the pass rates of evaluators whose scores on either side are yes or no."""
    stems = {name.removesuffix(SHARE) for s in (a, b) for name in s.scores if name.endswith(SHARE)}
    twins = {
        f"{stem}{SHARE}"
        for stem in stems
        if all(side.scores.get(stem) == side.scores.get(f"{stem}{SHARE}") for side in (a, b))
    }
    one, other = (
        msgspec.structs.replace(
            side, scores={name: held for name, held in side.scores.items() if name not in twins}
        )
        for side in (a, b)
    )
    return one, other


def are_times_apart(metric: str, *sides: Side) -> bool:
    """True if a metric is a time, and the sides are of runs that each have their own moment."""
    runs = {side.run.run_id for side in sides if side.run is not None}
    return len(runs) > 1 and is_time(metric, *sides)


def is_time(metric: str, *sides: Side) -> bool:
    """True if a metric, or the field of that name on a side, is how long the target took."""
    selected = [side.run.fields for side in sides if side.run is not None]
    paths = {metric, *(fields.get(metric, metric) for fields in selected)}
    return any(LATENCY in (path, f"{path}.mean") for path in paths)


def clusters_of(samples: Sequence[str], *sides: Mapping[str, str] | None) -> list[str] | None:
    """The cluster of each sample, as either side names it; None if no two samples share one."""
    named = [side for side in sides if side]
    if not named:
        return None
    found = [next((s[one] for s in named if one in s), one) for one in samples]
    return found if len(set(found)) < len(found) else None
