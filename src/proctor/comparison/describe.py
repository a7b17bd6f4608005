"""Describe comparisons and gates in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from proctor.comparison.sides import PASS_RATE, STRICT_PASS_RATE
from proctor.comparison.verdicts import DIFFERENT_MOMENTS, LEVEL, has_different_moments
from proctor.core.stats.intervals import MIN_CLUSTERS
from proctor.errors import join_choices
from proctor.records import formatting
from proctor.records.comparison import BOOTSTRAP, NOT_COMPARABLE, Comparison, MetricDelta
from proctor.records.formatting import Kind, format_count
from proctor.records.gate import Check, Early, GateVerdict
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata

MAX_LISTED_NAMES = 4
MAX_LISTED_IDS = 3
# Do not suggest more than this multiple of the current samples.
_MAX_FEASIBLE_FACTOR = 1_000
_OPENINGS = {"pass": "The gate passes", "fail": "The gate fails", "inconclusive": "The gate is inconclusive"}


def describe_comparison(comparison: Comparison) -> str:
    """Describe which side is better, by how much and with what certainty, and what else changed.

    If the sides were judged by different evaluators, or an evaluator judged far fewer samples on one
    side, the answer starts with that.
    """
    if comparison.biased:
        return f"{comparison.a} and {comparison.b} cannot be compared: {comparison.biased}."
    if comparison.evaluator_differences or comparison.uneven:
        return " ".join([_describe_changes(comparison), *_list_verdicts(comparison.essential())])
    strict, rate = comparison.metrics.get(STRICT_PASS_RATE), comparison.metrics.get(PASS_RATE)
    if strict is not None and rate is not None and strict.has_same_numbers(rate):
        strict = None
    candidates = [delta for delta in (strict, rate, *comparison.essential()) if delta is not None]
    headline = next((delta for delta in candidates if delta.absolute is not None), None)
    if headline is None:
        return f"{comparison.a} and {comparison.b} have no number in common that could be compared."
    others = [delta for delta in comparison.essential() if not delta.has_same_numbers(headline)]
    sentences = [_describe_delta(comparison, headline), *_list_verdicts(others, also=headline.verdict)]
    if not headline.paired:
        sentences.append(describe_grouping(comparison))
    return " ".join(sentences)


def _describe_delta(comparison: Comparison, delta: MetricDelta) -> str:
    a, b = comparison.a, comparison.b
    difference = formatting.format_change(delta.absolute, delta.kind, metric=delta.name)
    stays = difference = f"{difference}{formatting.change_unit(delta.kind)}"
    if delta.kind == "number" and delta.percentage is not None:
        difference += f" ({delta.percentage:+.1f}%)"
    figures = (
        f"{_describe_values(delta.name, delta.a, delta.b, delta.kind)}, "
        f"{difference} ({', '.join(_describe_certainty(delta, comparison.tests))})"
    )
    if delta.verdict == "no relevant difference":
        limit = _format_size(delta.kind, delta.min_difference)
        return f"{a} and {b} show no relevant difference: {figures}; more than ±{limit} is unlikely."
    if delta.verdict == "not enough evidence":
        # Equal values can only be decided one way.
        limit = _format_size(delta.kind, delta.min_difference)
        purpose = "decide it" if delta.absolute else f"rule out more than ±{limit}"
        is_feasible = 0 < (delta.more_samples or 0) <= _MAX_FEASIBLE_FACTOR * delta.n
        needed = _describe_needed(delta.more_samples or 0, delta.paired, stays, purpose) if is_feasible else ""
        return f"Not enough evidence that {a} and {b} differ: {figures}{needed}."
    if delta.verdict == NOT_COMPARABLE:
        reason = f"; {DIFFERENT_MOMENTS}" if has_different_moments(delta) else ""
        return f"{a} and {b} are not comparable: {figures}{reason}."
    relation = {"better": "better than", "worse": "worse than"}.get(delta.verdict, "different from")
    return f"{a} is {relation} {b}: {figures}."


def _describe_values(name: str, a: float | None, b: float | None, kind: Kind) -> str:
    return f"{name} {formatting.format_value(a, kind, name)} vs. {formatting.format_value(b, kind, name)}"


def _describe_needed(more: int, is_paired: bool, difference: str, purpose: str = "decide it") -> str:
    """Say how many samples are needed; the estimate knows only the difference seen so far."""
    noun = "sample" if more == 1 else "samples"
    side = "" if is_paired else " on each side"
    return (
        f"; if the difference stays near {difference}, "
        f"about {formatting.format_estimate(more)} more {noun}{side} would {purpose}"
    )


def _describe_certainty(delta: MetricDelta, tests: int) -> Iterator[str]:
    yield delta.method.partition(";")[0] if delta.method.startswith(BOOTSTRAP) else f"n = {delta.n:,}"
    if delta.interval is not None:
        yield f"95% interval {formatting.format_changes(delta.interval, delta.kind)}"
    if delta.p_adjusted is not None:
        p = formatting.format_probability(delta.p_adjusted)
        corrected = f" corrected for {tests} tests" if tests > 1 else ""
        yield f"p {'' if p.startswith('<') else '= '}{p.replace('<', '< ')}{corrected}"


def _describe_changes(comparison: Comparison) -> str:
    names = [
        delta.name
        for delta in comparison.essential()
        if delta.verdict == NOT_COMPARABLE and not has_different_moments(delta)
    ]
    consequence = f", so {join_choices(names, 'and')} cannot be compared" if names else ""
    problem = f"{comparison.a} and {comparison.b} were not scored by the same evaluators"
    if not comparison.evaluator_differences:
        problem = f"Some evaluators scored fewer samples in {comparison.a} or in {comparison.b}"
    return f"{problem}{consequence}: {'; '.join((*comparison.evaluator_differences, *comparison.uneven))}."


def _list_verdicts(deltas: Sequence[MetricDelta], also: str = "") -> Iterator[str]:
    for verdict in ("better", "worse", "different"):
        names = [delta.name for delta in deltas if delta.verdict == verdict]
        if names:
            rest = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
            label = f"Also {verdict}" if verdict == also else verdict.capitalize()
            yield f"{label}: {', '.join(names[:MAX_LISTED_NAMES])}{rest}."


def describe_no_pairs(comparison: Comparison) -> str:
    """Describe why two runs cannot be compared sample by sample."""
    same = "with the same content " if comparison.other_content else ""
    return f"{comparison.a} and {comparison.b} are not comparable: they have no sample {same}in common"


def describe_grouping(comparison: Comparison) -> str:
    """Explain why two sides are compared without pairs."""
    if comparison.unpaired:
        return "All samples of both are compared, as two independent groups."
    same = "the same in both" if comparison.other_content else "in both"
    return f"No sample is {same}: they are compared as two independent groups."


def describe_gate(verdict: GateVerdict, checks: Sequence[Check], early: Early | None) -> str:
    """Describe a gate in one sentence: its decisive check, and how many more there are."""
    deciding_checks = [check for check in checks if check.verdict == verdict]
    count = f"{len(deciding_checks)} of {len(checks)}"
    if len(deciding_checks) == len(checks):
        count = "both" if len(checks) == 2 else f"all {len(checks)}"
    scope = f" in {count} checks" if len(checks) > 1 else ""
    hardest = deciding_checks[0]
    if verdict == "inconclusive":
        hardest = max(deciding_checks, key=lambda check: math.inf if is_infeasible(check) else check.more_samples or 0)
    configuration = f"{hardest.configuration}: " if hardest.configuration else ""
    stop = "" if early is None else f"; {describe_early(early, verdict)}"
    return f"{_OPENINGS[verdict]}{scope}: {configuration}{hardest.sentence}{stop}."


def is_infeasible(check: Check) -> bool:
    """True if no number of samples is known to decide a check, or only one that nobody has."""
    return check.more_samples is None or check.more_samples > _MAX_FEASIBLE_FACTOR * max(1, check.n)


def describe_metric(check: Check, delta: MetricDelta, family: int = 1, missing: int = 0) -> str:
    """Compare a metric with the baseline: its values, the range of the difference, and the margin."""
    kind = delta.kind
    figures = _describe_values(check.name, check.value, check.baseline, kind)
    gaps = f"; {format_count(missing, 'sample')} without a value ignored" if missing and check.n else ""
    margin = _describe_margin(check, delta)
    if check.interval is None:
        return f"{figures}, {_describe_no_interval(check, delta)} ({margin}){gaps}"
    low, high = check.interval
    if not delta.higher_is_better:
        low, high = -high, -low
    lowest, highest = (_describe_difference(kind, end, check.margin) for end in (low, high))
    if check.verdict == "pass":
        return f"{figures}, {'at least' if low > 0 else 'at most'} {lowest} ({margin}){gaps}"
    if check.verdict == "fail":
        return f"{figures}, at least {highest} ({margin}){gaps}"
    is_beyond = high < -(check.margin or 0.0)
    caveat = _describe_doubt(delta, family) if is_beyond else ""
    return f"{figures}, from {lowest} to {highest} ({margin}){caveat}{gaps}"


def _describe_doubt(delta: MetricDelta, family: int) -> str:
    """Say why a difference beyond the margin does not fail the gate."""
    if family > 1 or delta.p is None:
        return f", which is not certain enough for one of {family} metrics"
    p = formatting.format_probability(delta.p)
    return f", which may be chance: {delta.method}, p = {p}, and a failure needs at most {LEVEL:g}"


def describe_rules(check: Check, delta: MetricDelta | None, tests: int) -> Iterator[str]:
    """Explain a check whose verdict seems to contradict the verdict of the comparison: they answer two questions."""
    if delta is None or check.interval is None or check.margin is None:
        return
    margin = _format_size(delta.kind, check.margin)
    if check.verdict == "fail" and delta.verdict == "not enough evidence":
        correction = f", with p corrected for {tests} tests" if tests > 1 else ""
        yield (
            f'{check.name} fails, although a comparison says "{delta.verdict}": the gate asks whether this metric is '
            f"worse by more than its margin of {margin}; a comparison asks whether any metric differs{correction}"
        )
    elif check.verdict == "pass" and delta.verdict == "worse":
        yield (
            f'{check.name} passes, although a comparison says "worse": the difference is statistically '
            f"significant, but smaller than the margin of {margin}"
        )
    elif check.verdict == "inconclusive" and delta.verdict == "worse":
        yield (
            f'{check.name} is inconclusive, although a comparison says "worse": the difference is statistically '
            f"significant, but it may be smaller or larger than the margin of {margin}"
        )


def list_warnings(
    runs: Iterable[RunMetadata | None], baselines: Iterable[tuple[str, RunMetadata | None]]
) -> tuple[str, ...]:
    """Return the warnings of the runs, and those that only a baseline has, with its name."""
    own = dict.fromkeys(text for run in runs if run is not None for text in run.warnings)
    others = (
        f"the baseline {name}: {text}"
        for name, run in baselines
        if run is not None
        for text in run.warnings
        if text not in own
    )
    return tuple(dict.fromkeys((*own, *others)))


def describe_count(metric: MetricValue | None) -> str:
    """Describe how many values a metric is computed from, its interval, and how many values it could not use."""
    if metric is None:
        return ""
    interval = "" if metric.value is None else ", no interval"
    if metric.interval is not None:
        interval = f", 95% interval {metric.interval[0]:.3g} to {metric.interval[1]:.3g}"
    partial = f", {metric.partial:,} leave out a rubric that failed" if metric.partial else ""
    missing = f", {metric.errors:,} missing" if metric.errors else ""
    skipped = f", {metric.skipped:,} skipped" if metric.skipped else ""
    return f" (n = {metric.n:,}{partial}{missing}{skipped}{interval})"


def describe_flips(lost: int, limit: int) -> str:
    return f"{format_count(lost, 'sample')} passed in the baseline and {_verb(lost, 'fail')} now; the limit is {limit}"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb


def describe_early(early: Early, verdict: GateVerdict) -> str:
    """Describe after how many samples a gate was decided, and how many samples that saved."""
    total = "" if early.total is None else f" of {early.total:,}"
    if verdict == "inconclusive":
        return (
            f"not decided after {early.n:,}{total} samples, because checking after every sample "
            "needs a wider interval than checking once at the end"
        )
    saved = f"; {early.saved:,} saved" if early.total is not None else ""
    return f"decided after {early.n:,}{total} samples{saved}"


def describe_unmatched(comparison: Comparison) -> Iterator[str]:
    """Describe which samples have no partner and are left out, or that the runs are two groups."""
    a, b = comparison.a, comparison.b
    if comparison.unpaired:
        grouping = describe_grouping(comparison)
        yield f"{a} and {b}: {grouping[0].lower()}{grouping[1:-1]}"
    if not comparison.samples:
        return
    for ids, side, other in ((comparison.only_a, a, b), (comparison.only_b, b, a)):
        if ids:
            id_list = ", ".join(ids[:MAX_LISTED_IDS]) + (", …" if len(ids) > MAX_LISTED_IDS else "")
            verb = "is" if len(ids) == 1 else "are"
            yield f"{format_count(len(ids), 'sample')} of {side} {verb} not in {other} and {verb} left out: {id_list}"


def _describe_no_interval(check: Check, delta: MetricDelta) -> str:
    reason = delta.method.removesuffix(DIFFERENT_MOMENTS).removesuffix("; ") if delta.p is None else ""
    if not check.n and not reason:
        return "no sample has this value in both runs"
    if delta.clusters is not None and delta.clusters < MIN_CLUSTERS:
        return f"the difference cannot be estimated from {delta.clusters} clusters of samples"
    if reason:
        return f"{reason}, so the difference cannot be estimated"
    return f"the difference cannot be estimated from {format_count(check.n, 'sample')}"


def _describe_margin(check: Check, delta: MetricDelta) -> str:
    margin = check.margin or 0.0
    text = f"margin {_format_size(delta.kind, margin)}"
    if delta.kind == "number" and delta.b:
        text += f", {100 * margin / abs(delta.b):.3g}%"
    samples = format_count(check.n, "sample")
    if check.baseline_n is not None:
        samples = f"two groups of {check.n:,} and {check.baseline_n:,} samples"
    method = f"{BOOTSTRAP} " if delta.method.startswith(BOOTSTRAP) else ""
    return f"{text}, {method}{formatting.add_clusters(samples, check.clusters)}"


def describe_more(check: Check) -> str:
    """Say how many more samples would decide a check, or why no number of them would; empty if unknown."""
    more = check.more_samples
    if more is not None and not is_infeasible(check):
        difference = formatting.format_change(check.difference, check.kind, metric=check.name)
        return _describe_needed(more, check.baseline_n is None, f"{difference}{formatting.change_unit(check.kind)}")
    if check.interval is None or not check.n:
        return ""
    if not check.margin and not check.difference:
        return (
            "; with a margin of 0 only a clearly better run can pass: set --margin to the largest loss that you accept"
        )
    distance = abs(abs(check.difference or 0.0) - (check.margin or 0.0))
    if more is None and distance > 1e-9:
        return ""
    return "; the difference is so close to the margin that more samples are unlikely to decide it"


def _describe_difference(kind: Kind, number: float, margin: float | None) -> str:
    """Describe how much better or worse; a number that rounds to the margin gets more digits."""
    text = _format_size(kind, abs(number))
    looks_like_margin = margin is not None and text == _format_size(kind, margin)
    if kind == "rate" and looks_like_margin and abs(abs(number) - (margin or 0.0)) > 1e-9:
        text = f"{100 * abs(number):.3f} points"
    return f"{text} {'better' if number > 0 else 'worse'}"


def _format_size(kind: Kind, number: float) -> str:
    return f"{formatting.format_change(number, kind, sign='')}{formatting.change_unit(kind)}"
