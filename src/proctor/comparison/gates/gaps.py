"""Keep a gate from passing if it ignores too many samples: unmatched, missing or not judged.

A failed check stays failed: missing samples do not make it better. The exception is a pass rate without the verdicts on
results that passed the other evaluators, which is biased downwards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from proctor.comparison.compare import COMBINED_METRICS
from proctor.comparison.contents import count_failed_trials
from proctor.comparison.coverage import compute_coverage
from proctor.comparison.describe import describe_no_pairs
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import MEAN_SCORE, PASS_RATE, Side, ValuesBySample
from proctor.metrics.warnings import (
    MAX_MISSING_SHARE,
    MissingVerdicts,
    UndecidedResults,
    count_skipped,
    describe_rating,
    find_evaluator,
    find_field_part,
    find_highest_rating,
    find_undecided,
    list_partial_results,
)
from proctor.records.comparison import Comparison
from proctor.records.gate import Check
from proctor.records.metric import MetricValue
from proctor.records.results import Results
from proctor.records.rubric import TOTAL_SCORE
from proctor.records.run import RunMetadata

DEFAULT_MAX_MISSING = MAX_MISSING_SHARE
# What comes before the limit that keeps a check from passing.
LIMITED = "; but "


class Gap(NamedTuple):
    """The number of trials without a number, or with only part of it (`partial`), and the total.

    `skipped` counts the missing ones that were skipped; `reason` is the most frequent reason.
    `evaluator` is set if a metric has a number although this evaluator judged nothing, or is not reliable.
    `undecided` are results without a verdict that bias a pass rate downwards; `baseline_rate` is that of all samples.
    """

    missing: int
    total: int
    partial: int = 0
    unit: str = "samples"
    skipped: int = 0
    reason: str = ""
    evaluator: str = ""
    is_unreliable: bool = False
    undecided: UndecidedResults | None = None
    baseline_rate: float | None = None

    def exceeds(self, limit: float) -> bool:
        """True if more are missing than the limit: a fraction, or a count if it is an integer."""
        allowed = limit if isinstance(limit, int) else limit * self.total
        return self.missing > allowed + 1e-9

    def describe(self, where: str) -> str:
        if self.is_unreliable:
            return f"the scores of {self.evaluator} in {where} are not reliable ({self.reason})"
        if self.evaluator:
            judged = f"{self.evaluator} judged {self.total - self.missing:,} of {self.total:,}"
            reason = f" (most frequent reason: {self.reason})" if self.reason else ""
            return f"{judged} {self.unit} in {where}{reason}"
        text = f"{self.missing:,} of {self.total:,} {self.unit} have no value in {where}"
        if self.partial:
            text += f", or an incomplete one ({self.partial:,})"
        if self.skipped:
            reason = f", most often because: {self.reason}" if self.reason else ""
            text += f" ({self.skipped:,} skipped{reason})"
        return text


class Gaps(NamedTuple):
    """The gaps of a run and of its baseline."""

    run: Gap = Gap(0, 0)
    baseline: Gap = Gap(0, 0)


class _SideNumbers(NamedTuple):
    numbers: ValuesBySample
    failed: Counter[str]
    epochs: int
    has_results: bool

    @classmethod
    def read(cls, side: Side, metric: str) -> _SideNumbers:
        epochs = 1
        if side.results is not None and side.samples:
            epochs = max(1, round(len(side.results) / len(side.samples)))
        failed = count_failed_trials(side, metric)
        statistic = side.statistics.get(metric)
        numbers = side.find(metric) or {} if statistic is None else dict.fromkeys(statistic.samples, 0.0)
        return cls(numbers, failed, epochs, side.results is not None)

    def find_gap(self, expected: Collection[str]) -> Gap:
        """Find the gap among the samples that should have a number."""
        missing = self.epochs * sum(name not in self.numbers for name in expected)
        partial = sum(self._count_failed(name) for name in expected if name in self.numbers)
        return Gap(missing + partial, self.epochs * len(expected), partial, self.unit)

    def find_group_gap(self, expected: int) -> Gap:
        """Find the gap of a group: its failed trials, or how many fewer numbers it has than expected."""
        missing = sum(self._count_failed(name) for name in self.failed if name not in self.numbers)
        if not self.has_results:
            missing = max(expected - len(self.numbers), 0)
        partial = sum(self._count_failed(name) for name in self.failed if name in self.numbers)
        return Gap(missing + partial, self.epochs * len(self.numbers) + missing, partial, self.unit)

    @property
    def unit(self) -> str:
        return "samples" if self.epochs == 1 else "trials"

    def _count_failed(self, name: str) -> int:
        return min(self.failed[name], self.epochs)


def find_gaps(a: Side, b: Side, comparison: Comparison, metric: str) -> Gaps:
    """Find the samples without a number in the run, and in the baseline.

    A sample should have a number if the other side has one, or if it failed or was skipped; skips do not count in a run
    that ignores them. In two groups only failures count, because an evaluator may apply to their samples more or less
    often. If failures are unknown, the gap is the difference in the shares of samples that have a number.
    """
    new, old = _SideNumbers.read(a, metric), _SideNumbers.read(b, metric)
    if comparison.samples:
        shared = set(a.samples) & set(b.samples) - (a.different_samples or frozenset())
        expected = shared & {*new.numbers, *old.numbers, *new.failed, *old.failed}
        gaps = Gaps(new.find_gap(expected), old.find_gap(expected))
    else:
        new_share, old_share = (
            len(known.numbers) / len(side.samples) if side.samples else 0.0 for known, side in ((new, a), (old, b))
        )
        gaps = Gaps(
            new.find_group_gap(round(old_share * len(a.samples))), old.find_group_gap(round(new_share * len(b.samples)))
        )
    if metric == PASS_RATE and a.results is not None:
        rate = math.fsum(old.numbers.values()) / len(old.numbers) if old.numbers else None
        undecided = find_undecided(a.results, a.run)
        gaps = gaps._replace(run=gaps.run._replace(undecided=undecided, baseline_rate=rate))
    unreliable = find_rating_gaps(a, b, metric)
    return Gaps(*(found if found.missing else gap for found, gap in zip(unreliable, gaps, strict=True)))


def find_rating_gaps(a: Side, b: Side, metric: str) -> Gaps:
    """Count all samples as missing on a side whose evaluator rates on a scale: its scores mean something else."""
    return Gaps(*(_find_rating_gap(metric, side.results, side.run) or Gap(0, 0) for side in (a, b)))


def _find_rating_gap(metric: str, results: Results | None, run: RunMetadata | None) -> Gap | None:
    if run is None or results is None:
        return None
    for spec in run.evaluators:
        if metric in COMBINED_METRICS or find_evaluator(metric, run)[1] == spec.name:
            rating = find_highest_rating(results, spec.name)
            if rating is not None:
                total = len(results)
                return Gap(total, total, evaluator=spec.name, reason=describe_rating(rating), is_unreliable=True)
    return None


def find_worst_gap(report: EvalReport, metric: str, limit: float = DEFAULT_MAX_MISSING) -> Gap:
    """Find the largest gap of a metric in any configuration.

    Errors and skips are missing; skips are not if the run ignores them. A configuration above the limit is worse than
    any configuration within it.
    """
    tables = {name: t for name, t in report.by_configuration.items() if metric in t}
    gaps = [
        _find_metric_gap(
            table, metric, report.results.for_configuration(name) if name else report.results, report.metadata
        )
        for name, table in (tables or {"": report.metrics}).items()
    ]
    worst = max(gaps, key=lambda gap: (gap.exceeds(limit), gap.missing / max(1, gap.total)))
    if len(gaps) > 1:
        # Another configuration may fail without any gap.
        worst = worst._replace(undecided=None)
    epochs = 1 if report.metadata is None else report.metadata.options.epochs
    return worst._replace(unit="samples" if epochs == 1 else "trials")


def find_worst_metric(report: EvalReport) -> tuple[str, Gap]:
    gaps = {metric: find_worst_gap(report, metric) for metric in report.metrics}
    return max(gaps.items(), key=lambda item: item[1].missing, default=("", Gap(0, 0)))


def _find_metric_gap(table: Mapping[str, MetricValue], metric: str, results: Results, run: RunMetadata | None) -> Gap:
    value = table.get(metric)
    if value is None:
        return Gap(0, 0)
    if (unreliable := _find_rating_gap(metric, results, run)) is not None:
        return unreliable
    if metric in COMBINED_METRICS and run is not None and (unused := _find_unused_evaluator(results, run)):
        return unused
    is_score, evaluator = find_evaluator(metric, run)
    skipped = MissingVerdicts(0, 0)
    if value.skipped and is_score and not (run and run.options.skipped == "ignore"):
        skipped = count_skipped(results, evaluator, run)
    incomplete = sum(1 for _ in list_partial_results(results, metric, run))
    # The number of a field's evaluator is missing, not partial, if the evaluator failed.
    failed, partial = (incomplete, 0) if find_field_part(metric, run) else (0, max(value.partial, incomplete))
    return Gap(
        value.errors + failed + partial + skipped.number,
        value.n + value.errors + failed + skipped.number,
        partial,
        skipped=skipped.number,
        reason=skipped.reason,
        undecided=find_undecided(results, run) if metric == PASS_RATE else None,
    )


def _find_unused_evaluator(results: Results, run: RunMetadata) -> Gap | None:
    """Find the first of several evaluators that judged nothing, in a run that ignores skips."""
    if run.options.skipped != "ignore" or len(run.evaluators) < 2:
        return None
    for spec in run.evaluators:
        missing = count_skipped(results, spec.name, run)
        if missing.total and missing.number == missing.total:
            number = missing.number
            return Gap(number, number, skipped=number, reason=missing.reason, evaluator=spec.name)
    return None


def apply_missing_limit(check: Check, gaps: Gaps, limit: float, baseline: str = "", lowest: float = 0.0) -> Check:
    """Add the number of missing samples to a check; it does not pass if that exceeds the limit.

    A check of a pass rate does not fail if only the bias of undecided results may keep the rate below `lowest`, or in
    a comparison below the baseline less its margin.
    """
    check = msgspec.structs.replace(check, missing=gaps.run.missing, baseline_missing=gaps.baseline.missing)
    undecided = gaps.run.undecided
    if check.verdict == "fail" and undecided is not None and gaps.run.exceeds(limit):
        if gaps.run.baseline_rate is not None:
            lowest = gaps.run.baseline_rate - (check.margin or 0.0)
        if undecided.could_reach(lowest):
            advice = "rescore the samples, or raise --max-missing to count the others only"
            sentence = f"{check.sentence}{LIMITED}{undecided.describe()}: {advice}"
            return msgspec.structs.replace(check, verdict="inconclusive", sentence=sentence, more_samples=None)
    sides = ((gaps.run, "this run"), (gaps.baseline, baseline))
    allowed = f"at most {limit:,}" if isinstance(limit, int) else f"at most {100 * limit:g}%"
    return _require_none(
        check,
        [gap.describe(where) for gap, where in sides if gap.exceeds(limit)],
        f", but {allowed} may be missing: rescore the samples, or raise --max-missing",
    )


def apply_coverage_limit(check: Check, metric: str, a: Side, b: Side, limit: float) -> Check:
    """Keep a check of a combined metric from passing if an evaluator stopped judging.

    An evaluator stopped judging if more than the limit of its verdicts in the baseline are missing in the run, even in
    runs that ignore skips, because the check was not made. A mean also changes if an evaluator judges samples that it
    did not judge in the baseline.
    """
    if check.verdict != "pass" or metric not in COMBINED_METRICS:
        return check
    coverage = compute_coverage(a, b)
    counts_gained = metric in (MEAN_SCORE, TOTAL_SCORE) and len(coverage) > 1
    problems = [
        evaluator.describe("this run", b.name)
        for evaluator in coverage
        if Gap(evaluator.lost, evaluator.b).exceeds(limit)
        or (counts_gained and Gap(evaluator.gained, evaluator.a).exceeds(limit))
    ]
    advice = ": see why it skips samples with `proctor show`, or raise --max-missing"
    return _require_none(check, problems, advice)


def apply_cache_limit(check: Check, results: Results | None, run: RunMetadata | None) -> Check:
    """Keep a check from passing if every output came from the cache, also of one configuration: nothing was tested.

    Recordings have no cache. A rescored run has the outputs of an earlier run, and so what was true of them.
    """
    cached = None if run is None else run.cached_outputs
    if check.verdict != "pass" or run is None or cached is None or not cached.count:
        return check
    is_untested = cached.count == cached.total
    if not is_untested and results is not None and len(run.configurations) > 1:
        is_untested = all(result.trial.cached for result in results if result.success)
    problem = "every output came from the cache, so the target was not called"
    return _require_none(check, [problem] if is_untested else [], ": run the evaluation again with --no-cache")


def apply_unmatched_limit(check: Check, comparison: Comparison, run: Side, *, accept_changes: bool = False) -> Check:
    """Keep a check from passing if more than a tenth of either side has no partner.

    With `accept_changes` the pairs decide, however few there are. Without any pair nothing is compared, because
    other samples may be harder. Only `unpaired` sides need no pairs. Samples that were chosen because they failed on
    the other side decide nothing.
    """
    if comparison.biased:
        is_key_change = bool(run.changed_expected)
        advice = "make a new baseline, or add --accept-changes" if is_key_change else "run all samples"
        sentence = f"{check.sentence}{LIMITED}{comparison.biased}: {advice}"
        return msgspec.structs.replace(check, verdict="inconclusive", sentence=sentence, more_samples=None)
    if not comparison.samples and not comparison.unpaired:
        advice = "run the same dataset; to compare them as two independent groups, add --unpaired"
        sentence = f"{check.name} has no verdict, because {describe_no_pairs(comparison)}: {advice}"
        no_difference = {"difference": None, "interval": None, "clusters": None, "baseline_n": None, "n": 0}
        return msgspec.structs.replace(
            check, verdict="inconclusive", sentence=sentence, more_samples=None, **no_difference
        )
    if check.verdict != "pass" or comparison.unpaired or accept_changes:
        return check
    a, b, pairs, different = comparison.a, comparison.b, comparison.samples, len(comparison.other_content)
    new, removed = len(comparison.only_a) + different, count_removed_samples(run, comparison)
    total = pairs + different + len(comparison.only_b)
    problems = []
    if Gap(new, new + pairs).exceeds(DEFAULT_MAX_MISSING):
        verbs = ("has", "is") if new == 1 else ("have", "are")
        samples = f"{new:,} of {new + pairs:,} samples of {a}"
        problems.append(f"{samples} {verbs[0]} no partner in {b} and {verbs[1]} left out")
    if Gap(removed, total).exceeds(DEFAULT_MAX_MISSING):
        problems.append(f"{removed:,} of {total:,} samples of {b} {'is' if removed == 1 else 'are'} not in {a}")
    is_selection = run.run is not None and run.run.selected is not None
    other_way = "run all samples" if is_selection else "add --unpaired to compare all samples of both as two groups"
    advice = f": {other_way}, or add --accept-changes to decide by the pairs only"
    return _require_none(check, problems, advice, separator=", and ")


def count_removed_samples(run: Side, comparison: Comparison) -> int:
    """Count the samples of the baseline that the run's dataset no longer has.

    A limit or an early stop leaves out samples that may still exist: the count is then how much
    smaller the dataset is than the baseline. Samples outside a selection count as removed, because a selection does
    not represent the others.
    """
    metadata, missing = run.run, len(comparison.only_b)
    if metadata is None:
        return missing
    limit = metadata.options.limit
    length = metadata.dataset.length if metadata.selected is None else metadata.selected.count
    is_limited = limit is not None and (length is None or limit < length)
    if not is_limited and metadata.stopped_early is None:
        return missing
    baseline = comparison.samples + len(comparison.other_content) + missing
    return 0 if length is None else min(missing, max(0, baseline - length))


def _require_none(check: Check, problems: Collection[str], advice: str, separator: str = " and ") -> Check:
    if check.verdict != "pass" or not problems:
        return check
    sentence = f"{check.sentence}{LIMITED}{separator.join(problems)}{advice}"
    return msgspec.structs.replace(check, verdict="inconclusive", sentence=sentence)
