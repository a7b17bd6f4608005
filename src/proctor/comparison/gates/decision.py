"""The gate: check that a run is no worse than its baseline, within a margin.

All metrics must pass, so a pass needs no correction for several metrics. One failed metric fails the gate, so each of k
metrics fails only if its 1 - 0.05 / k interval lies beyond the margin, and the test of a comparison finds a difference
at the level 0.05 / k. Equal systems fail in at most 2.5% of all gates, and in far fewer with a margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from proctor.comparison import describe
from proctor.comparison.compare import COMBINED_METRICS, compare_all
from proctor.comparison.contents import mark_different_samples, unpair_sides
from proctor.comparison.deltas import Pair, collect_evidence
from proctor.comparison.evidence import Evidence
from proctor.comparison.flips import add_flip_texts
from proctor.comparison.gates import thresholds
from proctor.comparison.gates.gaps import (
    DEFAULT_MAX_MISSING,
    LIMITED,
    Gaps,
    apply_cache_limit,
    apply_coverage_limit,
    apply_missing_limit,
    apply_unmatched_limit,
    find_gaps,
    find_rating_gaps,
    find_worst_gap,
)
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import PASS_RATE, STRICT_PASS_RATE, Side
from proctor.comparison.statistics import BootstrapEvidence, compare_statistic, list_known_metrics, request_metrics
from proctor.comparison.totals import delta_to_share, scale_interval, scale_width
from proctor.comparison.verdicts import (
    DIFFERENT_MOMENTS,
    MIN_EQUAL_SAMPLES,
    MarginEvidence,
    SampleGroup,
    estimate_more_samples,
    has_different_moments,
    min_agreeing_pairs,
    needs_rare_allowance,
    project_error,
    split_groups,
    widen_for_rare_samples,
)
from proctor.core.stats.descriptive import mean
from proctor.core.stats.differences import paired_differences, paired_rate_interval, rate_difference_interval
from proctor.core.stats.distributions import normal_quantile
from proctor.core.stats.intervals import mean_interval, wilson_interval
from proctor.core.stats.sequential import Better, non_inferiority
from proctor.errors import ConfigError, join_choices, suggest_name
from proctor.metrics.warnings import is_repetition_warning, warn_constant_judges
from proctor.records.comparison import NOT_COMPARABLE, Comparison, Interval, MetricDelta, list_aliases
from proctor.records.formatting import Kind
from proctor.records.gate import Check, Early, GateResult, GateVerdict
from proctor.records.rubric import read_run_columns

LEVEL = 0.05
DEFAULT_MARGIN = 0.02
NO_PAIRS = "lost samples can be counted only if the samples are paired"


class MarginVerdict(NamedTuple):
    """The interval of a difference, its verdict, and about how many more samples decide it."""

    interval: Interval | None
    verdict: GateVerdict
    more_samples: int | None = None


def judge_margin(
    delta: MetricDelta, evidence: Evidence | BootstrapEvidence, margin: float, family: int = 1
) -> MarginVerdict:
    """Check a difference against a margin in its own unit, as one of `family` checks."""
    better: Better = "higher" if delta.higher_is_better else "lower"
    interval = _find_interval(delta, evidence, margin, 1 - LEVEL)
    verdict: GateVerdict = "inconclusive"
    if interval is not None:
        verdict = non_inferiority(interval, margin, better)
    if verdict == "fail" and family > 1:
        corrected = _find_interval(delta, evidence, margin, 1 - LEVEL / family)
        if corrected is None or non_inferiority(corrected, margin, better) != "fail":
            verdict = "inconclusive"
    if verdict == "fail" and delta.p is not None and delta.p > LEVEL / family:
        # Intervals of few samples are approximate: what is worse beyond the margin must also differ at all.
        needed = max(0, min_agreeing_pairs(LEVEL / family) - evidence.n) if evidence.paired else 0
        return MarginVerdict(interval, "inconclusive", needed or None)
    more = _estimate_more(delta, evidence, margin, family) if verdict == "inconclusive" else None
    return MarginVerdict(interval, verdict, more)


def estimate_bounds(evidence: Evidence, kind: Kind, confidence: float = 1 - LEVEL) -> Interval | None:
    """Return the bounds of the difference, even if all pairs differ by the same number.

    None for a single sample and for too few clusters. The lower bound of scores allows for rare
    samples that the evidence does not rule out.
    """
    if evidence.cluster_problem:
        return None
    interval, units = evidence.interval(confidence), evidence.units
    if interval is None and not evidence.paired:
        return _estimate_group_bounds(evidence, kind, confidence)
    if interval is not None:
        if kind == "number" or (evidence.is_binary and evidence.clusters is None):
            return interval
        # Rare samples may make it worse than it looks; they cannot make it better.
        means = mean(evidence.first) or 0.0, mean(evidence.second) or 0.0
        return widen_for_rare_samples(interval, means, units, confidence)[0], interval[1]
    differences = paired_differences(evidence.first, evidence.second)
    if units < 2 or any(paired_differences(differences, differences[:1] * len(differences))):
        return None
    if kind == "number":
        return (differences[0], differences[0]) if units >= MIN_EQUAL_SAMPLES else None
    # At most this fraction of all samples differs by another number, and a score by no more than 1.
    share = wilson_interval(0, units, confidence)
    max_difference = (1 + abs(differences[0])) * (1.0 if share is None else share[1])
    return differences[0] - max_difference, differences[0] + max_difference


def _estimate_group_bounds(evidence: Evidence, kind: Kind, confidence: float) -> Interval | None:
    """Return the bounds of two groups if all scores of one are equal (Newcombe's method)."""
    if kind == "number" or evidence.clusters is not None or evidence.n < 2:
        return None
    (a, (low_a, high_a)), (b, (low_b, high_b)) = (
        _estimate_scores(side, confidence) for side in (evidence.first, evidence.second)
    )
    return a - b - math.hypot(a - low_a, high_b - b), a - b + math.hypot(high_a - a, b - low_b)


def _estimate_scores(values: Sequence[float], confidence: float) -> tuple[float, Interval]:
    center, interval = mean(values) or 0.0, mean_interval(values, confidence)
    if interval is None or interval[0] == interval[1]:
        share = wilson_interval(0, len(values), confidence)
        max_share = 1.0 if share is None else share[1]
        interval = center - max_share * center, center + max_share * (1 - center)
    return center, (max(0.0, interval[0]), min(1.0, interval[1]))


def _find_interval(
    delta: MetricDelta, evidence: Evidence | BootstrapEvidence, margin: float, confidence: float
) -> Interval | None:
    """Return the interval of the difference, including the uncertainty of a relative margin.

    A relative margin is only as certain as the baseline. So the run is compared with the baseline's
    numbers plus the margin, and the interval is moved back by the margin.
    """
    if isinstance(evidence, BootstrapEvidence):
        factor = _margin_factor(delta, margin)
        interval, shift = evidence.interval(confidence, factor), (factor - 1) * (delta.b or 0.0)
        return interval and (interval[0] + shift, interval[1] + shift)
    plain = estimate_bounds(evidence, delta.kind, confidence)
    shifted_evidence = _add_margin(delta, evidence, margin)
    if plain is None or plain[0] == plain[1] or shifted_evidence is None:
        return plain
    interval, shift = shifted_evidence.interval(confidence), (mean(shifted_evidence.second) or 0.0) - (delta.b or 0.0)
    return plain if interval is None else (interval[0] + shift, interval[1] + shift)


def _add_margin(delta: MetricDelta, evidence: Evidence, margin: float) -> Evidence | None:
    factor = _margin_factor(delta, margin)
    if factor == 1:
        return None
    worse = [factor * value for value in evidence.second]
    return Evidence(evidence.first, worse, evidence.paired, evidence.clusters, evidence.second_clusters)


def _margin_factor(delta: MetricDelta, margin: float) -> float:
    """Return the factor that adds a relative margin to the baseline's numbers."""
    if delta.kind != "number" or not margin or not delta.b:
        return 1.0
    return 1 + (-margin if delta.higher_is_better else margin) / delta.b


def _estimate_more(
    delta: MetricDelta, evidence: Evidence | BootstrapEvidence, margin: float, family: int
) -> int | None:
    is_bootstrap = isinstance(evidence, BootstrapEvidence)
    problem = evidence.problem if isinstance(evidence, BootstrapEvidence) else evidence.cluster_problem
    if evidence.n < 2 or delta.absolute is None or problem or (is_bootstrap and not delta.error):
        return None
    distance = (delta.absolute if delta.higher_is_better else -delta.absolute) + margin
    if abs(distance) < 1e-12:
        return None
    # With several metrics, a failure needs more certainty than a pass.
    passes, fails = LEVEL / 2, LEVEL / 2 / family
    margin_evidence = MarginEvidence(evidence.n, distance, delta.error or 0.0, passes, fails)
    if isinstance(evidence, BootstrapEvidence):
        return estimate_more_samples(margin_evidence, margin_evidence.is_decided)
    if delta.error or not evidence.paired:
        return _estimate_from_spread(delta, evidence, margin, margin_evidence)
    if delta.kind == "number":
        return max(1, MIN_EQUAL_SAMPLES - evidence.n)
    # No samples differ: the number of samples whose interval lies within the margin.
    z = normal_quantile(1 - (passes if distance > 0 else fails))
    min_samples = z * math.sqrt(2) / abs(distance) - 2
    if not evidence.is_binary:
        min_samples = z * z * ((1 + abs(delta.absolute)) / abs(distance) - 1)
    elif distance < 0:
        # McNemar's test of n lost samples has p = 2 / 2^n.
        min_samples = max(min_samples, 1 + math.log2(family / LEVEL))
    return max(1, math.ceil(min_samples) - evidence.n)


def _estimate_from_spread(
    delta: MetricDelta, evidence: Evidence, margin: float, margin_evidence: MarginEvidence
) -> int | None:
    shifted_evidence = _add_margin(delta, evidence, margin)
    error = (shifted_evidence.error if shifted_evidence is not None else None) or margin_evidence.error
    groups = split_groups(msgspec.structs.replace(delta, error=error))
    pass_level, fail_level = 1 - 2 * margin_evidence.passes, 1 - 2 * margin_evidence.fails
    pass_spread = _find_spread(delta, evidence, margin, pass_level)
    fail_spread = _find_spread(delta, evidence, margin, fail_level)
    if groups is None or pass_spread is None or fail_spread is None:
        return None
    center = delta.absolute or 0.0

    def find_half_widths(total: int) -> tuple[float, float]:
        pass_low, pass_high = _project_interval(evidence, delta, pass_spread, groups, total, pass_level)
        fail_low, fail_high = _project_interval(evidence, delta, fail_spread, groups, total, fail_level)
        if delta.higher_is_better:
            return center - pass_low, fail_high - center
        return pass_high - center, center - fail_low

    other = groups[1] if len(groups) > 1 else None
    margin_evidence = margin_evidence._replace(error=groups[0].error, other_group=other, half_widths=find_half_widths)
    return estimate_more_samples(margin_evidence, margin_evidence.is_decided)


def _project_interval(
    evidence: Evidence,
    delta: MetricDelta,
    interval: Interval,
    groups: Sequence[SampleGroup],
    total: int,
    confidence: float,
) -> Interval:
    """Return the interval that `total` samples would have, assuming the same distribution."""
    more = total - evidence.n
    if evidence.is_binary and evidence.clusters is None:
        return _project_rates(evidence, more, confidence)
    group, other = groups[0], groups[1] if len(groups) > 1 else None
    current_error, projected_error = (
        project_error(group.n, group.error, n, other)[0] for n in (group.n, group.n + more)
    )
    center = delta.absolute or 0.0
    low, high = (center + (end - center) * projected_error / current_error for end in interval)
    if needs_rare_allowance(delta):
        means = mean(evidence.first) or 0.0, mean(evidence.second) or 0.0
        low = widen_for_rare_samples((low, high), means, total, confidence)[0]
    return low, high


def _find_spread(delta: MetricDelta, evidence: Evidence, margin: float, confidence: float) -> Interval | None:
    if needs_rare_allowance(delta):
        return evidence.interval(confidence)
    return _find_interval(delta, evidence, margin, confidence)


def _project_rates(evidence: Evidence, more: int, confidence: float) -> Interval:
    (a, n), (b, b_n) = ((mean(side) or 0.0, len(side) + more) for side in (evidence.first, evidence.second))
    if not evidence.paired:
        return rate_difference_interval(a * n, n, b * b_n, b_n, confidence) or (-1.0, 1.0)
    differences = paired_differences(evidence.first, evidence.second)
    up, down = (n * differences.count(direction) / len(differences) for direction in (1, -1))
    return paired_rate_interval(up, down, n, confidence) or (-1.0, 1.0)


class GateConfig(msgspec.Struct, frozen=True):
    """The configuration of a gate.

    `metrics` holds the margin of each metric: how much worse it may be, in points of a rate or score (0.02 is two
    points), relative to the baseline for any other number. `fail_under` holds the lowest allowed values, `max_flips` is
    how many samples may be lost. `better` maps a field to True if higher values are better. `accept_changes` allows
    evaluators that differ from the baseline's, and many samples without a partner: only the pairs decide. `unpaired`
    compares all samples of both runs as two groups. `max_missing` limits the samples without a number in either run: a
    fraction, or a count if it is an integer.
    """

    metrics: Mapping[str, float] = {}
    fail_under: Mapping[str, float] = {}
    max_flips: int | None = None
    better: Mapping[str, bool] = {}
    accept_changes: bool = False
    unpaired: bool = False
    max_missing: float = DEFAULT_MAX_MISSING

    def validate(self) -> None:
        """Raise `ConfigError` for values that no gate can use."""
        for name, margin in self.metrics.items():
            if not 0 <= margin < math.inf:
                raise ConfigError(
                    f"the margin of {name} must be 0 or more, got {margin:g}",
                    where="margin",
                    fix="write how much worse the metric may be, such as 2% or 0.02",
                )
        if self.max_flips is not None and self.max_flips < 0:
            raise ConfigError(
                f"must be 0 or more, got {self.max_flips}", where="max_flips", fix="write 0 to allow no flips"
            )
        if self.max_missing < 0 or not (self.max_missing <= 1 or isinstance(self.max_missing, int)):
            raise ConfigError(
                f"must be a share from 0 to 1 or a number of samples, got {self.max_missing:g}",
                where="max_missing",
                fix="write a share such as 10% or 0.1, or a number of samples",
            )
        if self.unpaired and self.max_flips is not None:
            raise ConfigError(NO_PAIRS, where="max_flips", fix="leave out `unpaired` or `max_flips`")
        thresholds.require_reachable(self.fail_under)
        aliases = {alias for name in self.metrics for alias in list_aliases(name)}
        for name in self.better:
            if not aliases & set(list_aliases(name)):
                raise ConfigError(
                    f"{name} is not among the metrics of the gate",
                    where="better",
                    fix=suggest_name(name, self.metrics) if self.metrics else f"add --metric {name}",
                )


def decide(
    pairs: Sequence[Pair],
    config: GateConfig,
    *,
    report: EvalReport | None = None,
    baseline: str = "",
    notes: Iterable[str] = (),
) -> GateResult:
    """Check a run against its baseline: one pair of sides per configuration, the new one first.

    Thresholds are checked against `report`.
    """
    config.validate()
    if not pairs and not config.fail_under:
        raise ConfigError("nothing to check", where="gate", fix="name a baseline, or --fail-under")
    pairs = [mark_different_samples(a, b, accept_changes=config.accept_changes) for a, b in pairs]
    pairs = [unpair_sides(a, b) for a, b in pairs] if config.unpaired else pairs
    pairs = [request_metrics(a, b, config.metrics) for a, b in pairs]
    comparisons = compare_all(pairs, better=config.better, accept_changes=config.accept_changes) if pairs else []
    for (a, b), comparison in zip(pairs, comparisons, strict=True):
        if not comparison.samples and config.max_flips is not None:
            raise ConfigError(
                f"{describe.describe_no_pairs(comparison)}, and {NO_PAIRS}",
                where="max_flips",
                fix="check the dataset; to compare the runs as two groups, leave it out and add --unpaired",
            )
        require_same_evaluators(comparison, config, (a, b))
        require_numbers(a, b, config)
    checks = [
        *_check_metrics(pairs, comparisons, config),
        *_check_thresholds(report, config),
        *_check_flips(pairs, comparisons, config),
    ]
    comparisons = [add_flip_texts(found, *pair) for found, pair in zip(comparisons, pairs, strict=True)]
    return conclude_gate(checks, comparisons, report, pairs, baseline=baseline, notes=notes)


def conclude_gate(
    checks: Sequence[Check],
    comparisons: Sequence[Comparison],
    report: EvalReport | None,
    pairs: Sequence[Pair] = (),
    *,
    baseline: str,
    notes: Iterable[str] = (),
    early: Early | None = None,
) -> GateResult:
    """Combine checks into the result of a gate."""
    verdicts = {check.verdict for check in checks}
    worst_first: tuple[GateVerdict, ...] = ("fail", "inconclusive")
    verdict: GateVerdict = next((candidate for candidate in worst_first if candidate in verdicts), "pass")
    run = report.metadata if report is not None else None
    baselines = [(baseline or b.name, b.run) for _, b in pairs]
    warnings = describe.list_warnings([run, *(a.run for a, _ in pairs)], baselines)
    all_notes = [*notes]
    if report is not None and run is not None:
        all_notes.extend(warn_constant_judges(report.results, run))
    for comparison in comparisons:
        all_notes.extend((*comparison.notes, *describe.describe_unmatched(comparison)))
        for check in (
            each for each in checks if each.configuration in ("", comparison.a) and LIMITED not in each.sentence
        ):
            delta = next(filter(None, map(comparison.find, _list_names(check.name))), None)
            all_notes.extend(describe.describe_rules(check, delta, comparison.tests))
    if run is not None and run.cached_outputs is not None and not comparisons:
        all_notes.append(str(run.cached_outputs))
    deltas = [comparison.find(check.name) for comparison in comparisons for check in checks]
    has_latency = any(delta is not None and has_different_moments(delta) for delta in deltas)
    return GateResult(
        "" if run is None else run.run_id,
        baseline,
        verdict,
        describe.describe_gate(verdict, checks, early),
        tuple(checks),
        # Without pairs, only what was asked for is compared as two groups.
        tuple(each for each in comparisons if each.samples or each.unpaired or each.biased),
        tuple(
            note
            for note in dict.fromkeys(all_notes)
            if note not in warnings and not is_repetition_warning(note) and (note != DIFFERENT_MOMENTS or has_latency)
        ),
        early,
        "" if run is None else run.name,
        warnings,
    )


def _check_metrics(pairs: Sequence[Pair], comparisons: Sequence[Comparison], config: GateConfig) -> Iterator[Check]:
    family = len(pairs) * len(config.metrics)
    for (a, b), comparison in zip(pairs, comparisons, strict=True):
        for name, share in config.metrics.items():
            delta = find_delta(comparison, name, (a, b))
            margin = convert_margin(delta, share)
            evidence: Evidence | BootstrapEvidence
            if delta.name in a.statistics:
                evidence = compare_statistic(a, b, delta.name)
            else:
                evidence = collect_evidence(a, b, a.find(delta.name) or {}, b.find(delta.name) or {})
            check = _check_metric(name, delta, evidence, margin, family, comparison)
            # An undecided check is held to the limits of a pass: beyond them, no number of samples would decide it.
            is_undecided = check.verdict == "inconclusive"
            limited = msgspec.structs.replace(check, verdict="pass") if is_undecided else check
            gaps = find_gaps(a, b, comparison, delta.name)
            limited = apply_missing_limit(limited, gaps, config.max_missing, comparison.b)
            limited = apply_coverage_limit(limited, delta.name, a, b, config.max_missing)
            limited = apply_unmatched_limit(limited, comparison, a, accept_changes=config.accept_changes)
            limited = apply_cache_limit(limited, a.results, a.run)
            if is_undecided:
                limited = _explain_undecided(check, limited, comparison)
            yield msgspec.structs.replace(limited, configuration=a.name if len(pairs) > 1 else "")


def _explain_undecided(check: Check, limited: Check, comparison: Comparison) -> Check:
    """Add to an undecided check why it cannot pass or, if nothing prevents that, how many more samples decide it."""
    if limited.verdict == "inconclusive":
        start = check.sentence + LIMITED
        reason = limited.sentence.removeprefix(start)
        sentence = f"{start}it cannot pass, because {reason}" if reason != limited.sentence else reason
        return msgspec.structs.replace(limited, sentence=sentence, more_samples=None)
    # More samples of another dataset would not decide it.
    more = describe.describe_more(check) if comparison.samples or comparison.unpaired else ""
    return msgspec.structs.replace(limited, verdict="inconclusive", sentence=check.sentence + more)


def _list_names(metric: str) -> tuple[str, str]:
    """Return the names under which a comparison may store a metric.

    It stores only `pass_rate` if every trial has a verdict, and only the score of an evaluator whose scores are 0 or 1.
    """
    return metric, PASS_RATE if metric == STRICT_PASS_RATE else metric.removesuffix(".pass_rate")


def find_delta(comparison: Comparison, metric: str, sides: Iterable[Side] = ()) -> MetricDelta:
    """Return the delta of a metric by the name that reports or comparisons use; `sides` are for suggestions."""
    name, alternative_name = _list_names(metric)
    delta = comparison.find(name) or comparison.find(alternative_name)
    if delta is None:
        known_names = {STRICT_PASS_RATE, *(candidate.name for candidate in comparison.all_deltas())}
        known_names.update(candidate for side in sides for candidate in list_known_metrics(side))
        raise ConfigError(f"unknown metric {name!r}", where="metric", fix=thresholds.suggest_metric(name, known_names))
    if delta.higher_is_better is None:
        raise ConfigError(
            f"Proctor does not know whether higher or lower values of {name} are better",
            where="metric",
            fix=f"add --better {name}=higher (or lower)",
        )
    is_rate = name.endswith(".pass_rate") and delta.kind == "score"
    return msgspec.structs.replace(delta, kind="rate") if is_rate else delta


def require_same_evaluators(comparison: Comparison, config: GateConfig, sides: Iterable[Side] = ()) -> None:
    """Raise `ConfigError` for a combined metric if the evaluators are not the same."""
    deltas = {name: find_delta(comparison, name, sides) for name in config.metrics}
    incomparable_metrics = [
        name
        for name, delta in deltas.items()
        if delta.verdict == NOT_COMPARABLE
        and not comparison.biased
        # A gate on a latency decides, and adds a note.
        and not has_different_moments(delta)
        # An evaluator that stopped judging makes a check inconclusive instead.
        and (comparison.evaluator_differences or not comparison.uneven or delta.name not in COMBINED_METRICS)
    ]
    if comparison.evaluator_differences and config.max_flips is not None:
        incomparable_metrics.append("the number of lost samples")
    if not incomparable_metrics:
        return
    shared = [n for n, delta in comparison.scores.items() if delta.verdict != NOT_COMPARABLE and delta.n]
    by_shared = f"use a metric that both have: --metric {shared[0]}; " if shared else ""
    alternative = "" if config.accept_changes else ", or add --accept-changes"
    raise ConfigError(
        f"{comparison.a} and {comparison.b} were not scored by the same evaluators, so "
        f"{join_choices(incomparable_metrics, 'and')} cannot be compared: "
        f"{'; '.join(comparison.evaluator_differences or comparison.notes)}",
        where="baseline",
        fix=f"{by_shared}make a new baseline with these evaluators{alternative}",
    )


def require_numbers(a: Side, b: Side, config: GateConfig) -> None:
    """Raise `ConfigError` for a metric without values on one side."""
    for metric in config.metrics:
        for side in (b, a):
            if metric not in side.statistics and all(side.find(name) is None for name in _list_names(metric)):
                raise ConfigError(
                    f"{side.name} has no values for {metric}", where="metric", fix=suggest_name(metric, side.names)
                )


def convert_margin(delta: MetricDelta, share: float) -> float:
    """Convert a margin to the metric's unit; raise `ConfigError` if nothing could fail."""
    if delta.kind == "number":
        return share * abs(delta.b or 0.0)
    if share >= 1:
        raise ConfigError(
            f"the margin of {delta.name} is {share:g}, but its values are from 0 to 1: nothing would fail",
            where="margin",
            fix="write points, such as 2% or 0.02",
        )
    return share


def _check_metric(
    name: str, delta: MetricDelta, evidence: Evidence | BootstrapEvidence, margin: float, family: int, both: Comparison
) -> Check:
    # If there are pairs, but none has the number on both sides, the rest are not comparable groups.
    samples = both.samples
    has_no_pairs = bool(samples) and not evidence.paired
    is_grouped = not evidence.paired and not has_no_pairs
    verdict = MarginVerdict(None, "inconclusive")
    if not has_no_pairs:
        verdict = judge_margin(delta_to_share(delta), evidence, margin, family)
    width = scale_width(delta)
    check = Check(
        name,
        verdict.verdict,
        "",
        value=delta.a,
        baseline=delta.b,
        difference=delta.absolute,
        interval=scale_interval(verdict.interval, width),
        margin=margin * width,
        n=0 if has_no_pairs else evidence.sizes[0],
        more_samples=verdict.more_samples,
        kind=delta.kind,
        clusters=delta.clusters,
        baseline_n=evidence.sizes[1] if is_grouped else None,
    )
    missing = 0 if is_grouped else samples - check.n
    return msgspec.structs.replace(check, sentence=describe.describe_metric(check, delta, family, missing))


def _check_thresholds(report: EvalReport | None, config: GateConfig) -> Iterator[Check]:
    if report is None:
        return
    limit = config.max_missing
    for metric, threshold in thresholds.convert_thresholds(
        config.fail_under, read_run_columns(report.metadata)
    ).items():
        shortfalls = thresholds.find_shortfalls(report, {metric: threshold})
        value = report.metrics.get(metric)
        reached = None if value is None else value.value
        number = "" if reached is None else f" is {reached:.4g},"
        sentence = "; ".join(shortfalls) or f"{metric}{number} at least {threshold:g}{describe.describe_count(value)}"
        check = Check(
            f"{metric} at least {threshold:g}",
            "fail" if shortfalls else "pass",
            sentence,
            value=reached,
            n=0 if value is None else value.n,
            kind="rate" if value is not None and value.kind == "rate" else "number",
        )
        check = apply_missing_limit(check, Gaps(find_worst_gap(report, metric, limit)), limit, lowest=threshold)
        yield apply_cache_limit(check, report.results, report.metadata)


def _check_flips(pairs: Sequence[Pair], comparisons: Sequence[Comparison], config: GateConfig) -> Iterator[Check]:
    if (limit := config.max_flips) is None:
        return
    for (run, base), comparison in zip(pairs, comparisons, strict=True):
        lost = len(comparison.lost)
        check = Check(
            f"at most {limit} lost",
            "fail" if lost > limit else "pass",
            describe.describe_flips(lost, limit),
            configuration=comparison.a if len(comparisons) > 1 else "",
            value=float(lost),
            n=comparison.samples,
        )
        gaps = find_rating_gaps(run, base, STRICT_PASS_RATE)
        check = apply_missing_limit(check, gaps, config.max_missing, comparison.b)
        check = apply_coverage_limit(check, STRICT_PASS_RATE, run, base, config.max_missing)
        check = apply_unmatched_limit(check, comparison, run, accept_changes=config.accept_changes)
        yield apply_cache_limit(check, run.results, run.run)
