"""The margins of a gate: which metrics they are of, and whether they are too narrow for the number of samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from proctor.comparison.compare import compare
from proctor.comparison.contents import unpair_sides
from proctor.comparison.deltas import Pair, collect_evidence
from proctor.comparison.describe import is_infeasible
from proctor.comparison.gates.decision import (
    DEFAULT_MARGIN,
    GateConfig,
    convert_margin,
    estimate_bounds,
    find_delta,
    judge_margin,
)
from proctor.comparison.gates.gaps import LIMITED
from proctor.comparison.gates.thresholds import DEFAULT_METRIC
from proctor.comparison.sides import Side
from proctor.comparison.statistics import request_metrics
from proctor.errors import ConfigError
from proctor.records.formatting import format_count, format_estimate
from proctor.records.gate import GateResult

# A wider margin would hide what a gate is for, so it is not offered.
MAX_MARGIN = 0.2


class NarrowMargin(NamedTuple):
    """A margin that is too narrow for `n` samples, and the smallest that a run with the same results could pass.

    Both are fractions. `samples` is about how many samples the margin needs; None if unknown. `more` is how many more
    the gate itself asks for, after a run; it replaces `samples`.
    """

    metric: str
    margin: float
    n: int
    smallest: float
    samples: int | None = None
    more: int | None = None

    def describe(self, *, is_only_metric: bool = True, early: bool = False) -> str:
        """Say why the margin cannot be met, and which margin or number of samples can."""
        points, samples = _round_up(self.smallest), format_count(self.n, "sample")
        loss = f"{'more than' if early else 'about'} {_name_points(points)}"
        is_default = is_only_metric and self.metric == DEFAULT_METRIC
        option = f"--margin {points}%" if is_default else f"--metric {self.metric}={points}%"
        if self.smallest > MAX_MARGIN:
            option = ""
        if not self.margin:
            fix = f"{option}, the smallest margin that an equally good run can pass with {samples}"
            if not option:
                smallest = _name_points(points)
                fix = f"a margin above 0, and more samples: no margin below {smallest} can be met with {samples}"
            return (
                f"the margin of {self.metric} is 0, so only a run that is clearly better than its baseline can pass, "
                f"however many samples there are. Fix: {fix}"
            )
        needed = f"at least {format_estimate(self.samples)} samples" if self.samples else ""
        if self.more:
            needed = f"about {format_estimate(self.more)} more {'sample' if self.more == 1 else 'samples'}"
        return (
            f"{samples} {'is' if self.n == 1 else 'are'} too few for a margin of "
            f"{_name_points(f'{100 * self.margin:.3g}')} ({self.metric}): even if both runs had the same results, "
            f"a true loss of {loss} would be possible. "
            f"Fix: {', or '.join(filter(None, (option, needed))) or 'more samples'}"
        )


def _name_points(number: str) -> str:
    return f"{number} {'point' if number == '1' else 'points'}"


def _round_up(share: float) -> str:
    """Return a share in points, rounded up to whole points or, below one point, to tenths.

    >>> [_round_up(share) for share in (0.0533, 0.06, 0.0055)]
    ['6', '6', '0.6']
    """
    points = math.ceil(round(100 * share, 6)) if share >= 0.01 else math.ceil(round(1000 * share, 6)) / 10
    return f"{points:g}"


def find_narrow_margins(
    baseline: Side, config: GateConfig, samples: Collection[str] | None = None
) -> list[NarrowMargin]:
    """Compare a baseline with itself: return the margins within which even equal results are not certain.

    `samples` are the ids that the run has. Only rates and scores are checked: nothing is known about the spread of
    other numbers before the run.
    """
    side = baseline if samples is None else _restrict(baseline, samples)
    pair: Pair = (msgspec.structs.replace(side, name="the run"), side)
    if config.unpaired:
        pair = unpair_sides(*pair)
    return list(_find_in_pair(pair, config))


def _find_in_pair(pair: Pair, config: GateConfig) -> Iterator[NarrowMargin]:
    a, b = pair
    comparison = compare(a, b, better=config.better)
    for name, share in config.metrics.items():
        try:
            delta = find_delta(comparison, name, pair)
        except ConfigError:
            # A percentile or another metric without a number per sample, or an error that the gate itself reports.
            continue
        numbers = a.find(delta.name)
        if delta.kind == "number" or not numbers:
            continue
        evidence = collect_evidence(a, b, numbers, b.find(delta.name) or {})
        margin, bounds = convert_margin(delta, share), estimate_bounds(evidence, delta.kind)
        if bounds is None:
            continue
        smallest = -bounds[0] if delta.higher_is_better else bounds[1]
        if smallest > margin:
            more = judge_margin(delta, evidence, margin).more_samples
            yield NarrowMargin(name, margin, evidence.n, smallest, evidence.n + more if more else None)


def _restrict(side: Side, samples: Collection[str]) -> Side:
    tables = {
        table: {
            name: {sample: value for sample, value in numbers.items() if sample in samples}
            for name, numbers in getattr(side, table).items()
        }
        for table in ("metrics", "scores", "fields")
    }
    ids = tuple(sample for sample in side.samples if sample in samples)
    return msgspec.structs.replace(side, **tables, samples=ids)


def add_margin_notes(result: GateResult, pairs: Sequence[Pair], config: GateConfig) -> GateResult:
    """Add to an inconclusive gate which margins its number of samples allows, unless a limit keeps it from passing."""
    undecided = {
        (check.configuration, check.name): check
        for check in result.checks
        if check.verdict == "inconclusive" and LIMITED not in check.sentence
    }
    notes = []
    for new, old in pairs if undecided else ():
        for narrow in find_narrow_margins(old, config, set(new.samples)):
            check = undecided.get((new.name if len(pairs) > 1 else "", narrow.metric))
            if check is not None:
                more = None if is_infeasible(check) else check.more_samples
                samples = None if check.more_samples else narrow.samples
                note = narrow._replace(samples=samples, more=more)
                notes.append(note.describe(is_only_metric=len(config.metrics) == 1))
    return msgspec.structs.replace(result, notes=tuple(dict.fromkeys((*result.notes, *notes))))


def require_known_metrics(config: GateConfig, baseline: Iterable[Side]) -> None:
    """Raise `ConfigError` for a metric that the baseline does not have, before the run costs money."""
    for side in baseline:
        requested = request_metrics(side, side, config.metrics, estimate=False)
        comparison = compare(*requested, better=config.better)
        for name, share in config.metrics.items():
            convert_margin(find_delta(comparison, name, [side]), share)


def resolve_margins(margins: Mapping[str, float | None], margin: float = DEFAULT_MARGIN) -> dict[str, float]:
    """Return the margin of each metric, `margin` by default; the strict pass rate if none is named."""
    margin_by_metric = margins or {DEFAULT_METRIC: None}
    return {
        name: margin if metric_margin is None else metric_margin for name, metric_margin in margin_by_metric.items()
    }
