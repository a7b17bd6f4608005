"""The noise budget: which share of a metric's variance comes from samples, agent and judge, and what to run next.

The variance of a mean over n samples with K epochs and J verdicts of each output is
(samples + agent / K + judge / (K J)) / n. A level that the run does not repeat cannot be
separated from the level above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core.stats.bootstrap import Resampled, resample
from proctor.core.stats.descriptive import mean
from proctor.core.stats.distributions import normal_quantile
from proctor.core.stats.intervals import clustered_standard_error, find_cluster_problem
from proctor.core.stats.variance import (
    ComponentEstimate,
    SampleSums,
    estimate_components,
    share_intervals,
    summarize_samples,
)
from proctor.errors import ConfigError
from proctor.records.formatting import format_count
from proctor.records.results import list_shared_clusters
from proctor.records.run import RunMetadata
from proctor.validity.prices import CallPrices, measure_prices
from proctor.validity.verdicts import RepeatedVerdicts, parse_measure, read_repeated_verdicts

Interval = tuple[float, float]
SAMPLES, AGENT, JUDGE = "samples", "agent", "judge"
# Fewer samples do not show how much samples differ.
MIN_SAMPLES = 10
# With fewer samples or clusters, the intervals of the shares contain the true shares in 90 to 98% (make simulations).
MIN_UNITS_FOR_NOMINAL_COVERAGE = 100
RESAMPLES, MAX_UNITS = 1_000, 1_000
# An advice that fewer of the resamples give is not settled by the data.
MIN_AGREEMENT = 0.8
Z = normal_quantile(0.975)


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One source of noise: its variance, and its share of the variance of the metric with a 95% interval."""

    source: str
    variance: float
    share: float
    interval: Interval


class Design(msgspec.Struct, frozen=True):
    """The size of a run: samples, epochs of each sample, and verdicts on each output."""

    samples: int
    epochs: float
    verdicts: float


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A purchase: more samples, epochs or verdicts, what it costs, and the half width of the 95% interval after it.

    `cost` is in US dollars, None if a price is unknown. `reaches` says whether the wanted margin is reached.
    """

    more: str
    design: Design
    half_width: float
    target_calls: int
    judge_calls: int
    cost: float | None = None
    reaches: bool | None = None


class NoiseBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of one metric of a run. `half_width` is that of the 95% interval, `paired_half_width` that of the
    difference to an equal run on the same samples. `unknown` says what the run cannot show, and how to get it;
    `change_interval` is the 95% interval of the variance of one sample's difference between two equal runs."""

    run_id: str
    configuration: str
    metric: str
    value: float
    design: Design
    missing: int
    half_width: float
    paired_half_width: float | None
    components: tuple[Component, ...]
    steps: tuple[Step, ...]
    prices: CallPrices
    margin: float | None = None
    best: str | None = None
    best_agreement: float | None = None
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    change_interval: Interval | None = None


class _Levels(msgspec.Struct, frozen=True):
    """The variances of the levels that the run can tell apart: what adding samples, epochs or verdicts divides."""

    between: float
    within: float | None
    judge: float | None

    def variance(self, design: Design) -> float:
        inner = (self.within or 0.0) + (self.judge or 0.0) / design.verdicts
        return (self.between + inner / design.epochs) / design.samples

    def parts(self, design: Design) -> list[float]:
        return [
            part / design.samples
            for part in (
                self.between,
                (self.within or 0.0) / design.epochs,
                (self.judge or 0.0) / design.epochs / design.verdicts,
            )
        ]


def measure_noise(
    report: EvalReport,
    configuration: str,
    metric: str = "pass_rate",
    *,
    margin: float | None = None,
    repeats: Sequence[EvalReport] = (),
    seed: int = 0,
) -> NoiseBudget:
    """Split the variance of a metric of a stored run, and price what would make it more precise.

    `repeats` are rescored runs of the same outputs with the same evaluators; `margin` is the wanted half width of the
    95% interval, as a fraction.
    """
    run = report.metadata
    assert run is not None
    measure = parse_measure(metric, run)
    verdicts = read_repeated_verdicts(report, configuration, measure, repeats)
    _require_samples(verdicts, metric, report)
    has_judge = any(spec.judges_inside for spec in run.evaluators if measure.selects(spec))
    samples, units = _summarize(verdicts)
    design = _measure_design(verdicts)
    factor, notes = _measure_clustering(verdicts, design)
    levels = _make_levels(estimate_components(samples), factor)
    prices = measure_prices(report.results.for_configuration(configuration), has_judge, measure)
    steps = list_steps(levels, design, prices, margin)
    best = choose_step(steps, levels.variance(design))
    drawn = [
        _make_levels(estimate, factor)
        for estimate in resample([units], estimate_components, resamples=RESAMPLES, seed=seed)
        if estimate is not None
    ]
    choices = [choose_step(list_steps(each, design, prices, margin), each.variance(design)) for each in drawn]
    inner = (levels.within or 0.0) + (levels.judge or 0.0) / design.verdicts
    is_repeated = levels.within is not None
    return NoiseBudget(
        run_id=run.run_id,
        configuration=configuration,
        metric=metric,
        value=verdicts.value,
        design=design,
        missing=verdicts.missing,
        half_width=Z * math.sqrt(levels.variance(design)),
        paired_half_width=Z * math.sqrt(2 * inner / design.epochs / design.samples) if is_repeated else None,
        components=tuple(_share_components(levels, units, factor, design, has_judge)),
        steps=tuple(steps),
        prices=prices,
        margin=margin,
        best=best,
        best_agreement=None if best is None else choices.count(best) / len(choices),
        unknown=tuple(_list_unknown(run, levels, has_judge)),
        notes=(*notes, *_describe_precision(verdicts, levels), *_describe_copies(verdicts)),
        change_interval=_bound_change(drawn, len(units)) if is_repeated else None,
    )


def _bound_change(drawn: Sequence[_Levels], units: int) -> Interval:
    changes = [2 * ((each.within or 0.0) + (each.judge or 0.0)) for each in drawn]
    low, high = Resampled(changes, units).interval()
    return low, high


def _require_samples(verdicts: RepeatedVerdicts, metric: str, report: EvalReport) -> None:
    count, outcomes = len(verdicts.samples), report.counts
    if count < MIN_SAMPLES:
        fix = f"run at least {MIN_SAMPLES} samples"
        if outcomes.passed + outcomes.failed < outcomes.total:
            fix += f"; samples without a verdict: proctor show {report.run_id} --outcome {outcomes.first_problem()}"
        what = f"{metric} has verdicts on {format_count(count, 'sample')}"
        raise ConfigError(f"{what}; fewer than {MIN_SAMPLES} do not show how much samples differ", fix=fix)


def _measure_design(verdicts: RepeatedVerdicts) -> Design:
    """Return the size of the run; for unequal numbers of epochs, the harmonic mean, which determines the variance."""
    epochs = [len(sample) for sample in verdicts.samples.values()]
    repeats = verdicts.asked
    return Design(
        len(epochs),
        round(len(epochs) / math.fsum(1 / count for count in epochs), 9),
        round(len(repeats) / math.fsum(1 / count for count in repeats), 9),
    )


def _summarize(verdicts: RepeatedVerdicts) -> tuple[list[SampleSums], list[SampleSums]]:
    """Summarize the samples, and add up those of one cluster; many clusters become fewer groups to resample."""
    samples = summarize_samples(verdicts.samples.values())
    groups: dict[str, list[SampleSums]] = {}
    for sample, sums in zip(verdicts.samples, samples, strict=True):
        groups.setdefault(verdicts.clusters[sample], []).append(sums)
    units = list(groups.values())
    count = min(len(units), MAX_UNITS)
    merged = [[sums for unit in units[index::count] for sums in unit] for index in range(count)]
    return samples, [SampleSums(*map(math.fsum, zip(*unit, strict=True))) for unit in merged]


def _measure_clustering(verdicts: RepeatedVerdicts, design: Design) -> tuple[float, list[str]]:
    """Return by what factor clusters inflate the variance between samples, and a note."""
    clusters = list_shared_clusters(verdicts.clusters[sample] for sample in verdicts.samples)
    if clusters is None:
        return 1.0, []
    if problem := find_cluster_problem(clusters):
        return 1.0, [f"the samples share clusters, with {problem}: the share of the samples is a lower bound"]
    means = [mean([mean(epoch) or 0.0 for epoch in sample]) or 0.0 for sample in verdicts.samples.values()]
    estimate = clustered_standard_error(means, clusters)
    components = estimate_components(summarize_samples(verdicts.samples.values()))
    if estimate is None or components is None or not components.between:
        return 1.0, []
    noise = _Levels(0.0, components.within, components.judge).variance(design)
    factor = max(1.0, (estimate[1] ** 2 - noise) * design.samples / components.between)
    return factor, [f"the samples share {len(set(clusters)):,} clusters, which the share of the samples includes"]


def _make_levels(estimate: ComponentEstimate | None, factor: float = 1.0) -> _Levels:
    assert estimate is not None
    return _Levels(factor * estimate.between, estimate.within, estimate.judge)


def list_steps(levels: _Levels, design: Design, prices: CallPrices, margin: float | None) -> list[Step]:
    """List what can be run next: twice as many of each, or, with a margin, as many as the margin needs."""
    steps = [_price_step(SAMPLES, levels, design, prices, margin)]
    if levels.within is not None:
        steps.append(_price_step("epochs", levels, design, prices, margin))
    if levels.judge is not None:
        steps.append(_price_step("verdicts", levels, design, prices, margin))
    return steps


def _price_step(more: str, levels: _Levels, design: Design, prices: CallPrices, margin: float | None) -> Step:
    now = {SAMPLES: design.samples, "epochs": design.epochs, "verdicts": design.verdicts}[more]
    wanted = 2 * now if margin is None else _find_size(more, levels, design, (margin / Z) ** 2)
    size = 2 * now if wanted is None else max(now, wanted)
    new = msgspec.structs.replace(design, **{more: int(size) if more == SAMPLES else size})
    trials = round(new.samples * new.epochs) - round(design.samples * design.epochs)
    outputs = round(new.samples * new.epochs * new.verdicts) - round(design.samples * design.epochs * design.verdicts)
    asked = (prices.again or prices) if more == "verdicts" else prices
    judge_calls = outputs * asked.judges
    half_width = Z * math.sqrt(levels.variance(new))
    return Step(
        more=more,
        design=new,
        half_width=half_width,
        target_calls=trials,
        judge_calls=judge_calls,
        cost=asked.price(trials, judge_calls),
        reaches=None if margin is None else wanted is not None,
    )


def _find_size(more: str, levels: _Levels, design: Design, variance: float) -> float | None:
    """Return the smallest number of samples, epochs or verdicts with this variance of the mean; None if none has."""
    between, agent, judge = levels.parts(design)
    if variance <= 0:
        return None if between + agent + judge > 0 else {SAMPLES: design.samples}.get(more, 1)
    if more == SAMPLES:
        return math.ceil(design.samples * (between + agent + judge) / variance - 1e-9)
    now, fixed, divided = {
        "epochs": (design.epochs, between, agent + judge),
        "verdicts": (design.verdicts, between + agent, judge),
    }[more]
    if fixed + divided <= variance:
        return now
    return None if fixed >= variance else math.ceil(now * divided / (variance - fixed) - 1e-9)


def choose_step(steps: Sequence[Step], variance: float) -> str | None:
    """Return the cheapest step that reaches the margin; without a margin, the one that removes most variance per cost.

    The cost is in dollars if all prices are known, else in calls. None if no step helps, or none is needed.
    """
    has_prices = all(step.cost is not None for step in steps)

    def cost(step: Step) -> float:
        return (step.cost or 0.0) if has_prices else step.target_calls + step.judge_calls

    if any(step.reaches is not None for step in steps):
        reaching = [step for step in steps if step.reaches]
        if not reaching or min(map(cost, reaching)) <= 0:
            return None
        return min(reaching, key=cost).more
    gains = {step.more: (variance - (step.half_width / Z) ** 2) / max(cost(step), 1e-12) for step in steps}
    best = max(gains, key=lambda more: gains[more])
    return best if gains[best] > 0 else None


def _share_components(
    levels: _Levels, units: Sequence[SampleSums], factor: float, design: Design, has_judge: bool
) -> list[Component]:
    variances = levels.between, levels.within, levels.judge
    names = _name_sources(levels, has_judge)
    shares = _compute_shares(levels, design)
    intervals = share_intervals(units, lambda estimate: _make_levels(estimate, factor).parts(design))
    components = []
    for name, variance, share, (low, high) in zip(names, variances, shares, intervals, strict=True):
        if name and variance is not None:
            # A component that is cut at 0 changes the other shares, which may then lie beyond their intervals.
            interval = min(low, share), max(high, share)
            components.append(Component(source=name, variance=variance, share=share, interval=interval))
    return components


def _compute_shares(levels: _Levels, design: Design) -> list[float]:
    parts = levels.parts(design)
    total = math.fsum(parts)
    return [part / total if total else 0.0 for part in parts]


def _name_sources(levels: _Levels, has_judge: bool) -> list[str]:
    """Name the levels; a level without repeats is part of the level above it."""
    judge_above = JUDGE if has_judge and levels.judge is None else ""
    if levels.within is not None:
        agent = " and ".join(filter(None, (AGENT, judge_above)))
        return [SAMPLES, agent, JUDGE if levels.judge is not None else ""]
    return [_join_names([SAMPLES, AGENT, judge_above]), "", JUDGE if levels.judge is not None else ""]


def _join_names(names: Sequence[str]) -> str:
    known = [name for name in names if name]
    return f"{', '.join(known[:-1])} and {known[-1]}" if len(known) > 1 else known[0]


def _list_unknown(run: RunMetadata, levels: _Levels, has_judge: bool) -> list[str]:
    """Say what the run cannot show, and how to get it."""
    unknown = []
    if levels.within is None:
        unknown.append(
            "Each sample ran once, so the noise of the agent cannot be separated from the differences between samples. "
            "Fix: run it again with --epochs 2"
        )
    if has_judge and levels.judge is None:
        above = "the agent" if levels.within is not None else "the samples"
        unknown.append(
            f"Each output was judged once, so the noise of the judge cannot be separated from that of {above}. "
            f"Fix: judge the stored outputs again with the same evaluators, without calling the target: "
            f"proctor rescore {run.rescored_from or run.run_id} --file FILE"
        )
    return unknown


def _describe_precision(verdicts: RepeatedVerdicts, levels: _Levels) -> list[str]:
    count = len({verdicts.clusters[sample] for sample in verdicts.samples})
    if count >= MIN_UNITS_FOR_NOMINAL_COVERAGE or (levels.within is None and levels.judge is None):
        return []
    units = format_count(count, "sample" if count == len(verdicts.samples) else "cluster")
    sizes = f"with {units} (fewer than {MIN_UNITS_FOR_NOMINAL_COVERAGE})"
    return [f"{sizes} the intervals of the shares are approximate: they contain the true share in 90 to 98% of runs"]


def _describe_copies(verdicts: RepeatedVerdicts) -> list[str]:
    if not verdicts.copies:
        return []
    return [f"{verdicts.copies:,} repeated verdicts came from a cache; they are copies and are left out"]
