"""What a verdict would leave out: samples that only one side has, and samples without a number.

A gate that is green though a good part of the run was not looked at says more than it knows. Red
stays red: what is left out makes nothing better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from proctor.comparison.compare import COMBINED
from proctor.comparison.contents import failed_trials
from proctor.comparison.coverage import coverage_of
from proctor.comparison.sides import MEAN_SCORE, Numbers, Side
from proctor.metrics.warnings import TENTH as TENTH
from proctor.metrics.warnings import Missing, count_skipped, evaluator_of
from proctor.records.comparison import Comparison
from proctor.records.gate import Check
from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.results import Results
from proctor.records.rubric import TOTAL_SCORE
from proctor.records.run import RunMetadata


class Gap(NamedTuple):
    """How many of how many trials have no number, or, if `partial`, only part of it.

    `skipped` of the missing ones were skipped; `reason` is the most frequent reason. `evaluator` is
    named where a number of all evaluators is there, and this one of them judged nothing.
    """

    missing: int
    of: int
    partial: int = 0
    unit: str = "samples"
    skipped: int = 0
    reason: str = ""
    evaluator: str = ""

    def exceeds(self, most: float) -> bool:
        """True if more are missing than may be: a share, or so many if it is a whole number.

        >>> Gap(3, 30).exceeds(0.1), Gap(4, 30).exceeds(0.1), Gap(4, 30).exceeds(5)
        (False, True, False)
        """
        allowed = most if isinstance(most, int) else most * self.of
        return self.missing > allowed + 1e-9

    def told(self, where: str) -> str:
        """What is missing, in words.

        >>> Gap(4, 30, 3).told("this run")
        '4 of 30 samples have no such number in this run, or only part of it (3: something failed)'
        """
        if self.evaluator:
            judged = f"{self.evaluator} judged {self.of - self.missing:,} of {self.of:,}"
            why = f" (most frequent reason: {self.reason})" if self.reason else ""
            return f"{judged} {self.unit} in {where}{why}"
        part = f", or only part of it ({self.partial:,}: something failed)"
        told = f"{self.missing:,} of {self.of:,} {self.unit} have no such number in {where}"
        why = f", most often because: {self.reason}" if self.reason else ""
        skipped = f" ({self.skipped:,} skipped{why})" if self.skipped else ""
        return told + (part if self.partial else "") + skipped


class Gaps(NamedTuple):
    """What is missing in the run that is judged, and in its baseline."""

    run: Gap = Gap(0, 0)
    baseline: Gap = Gap(0, 0)


class _Held(NamedTuple):
    """The numbers of a side, and how many trials of its samples failed; each has so many epochs."""

    numbers: Numbers
    failed: Counter[str]
    epochs: int
    is_known: bool

    @classmethod
    def of(cls, side: Side, metric: str) -> _Held:
        epochs = 1
        if side.results is not None and side.samples:
            epochs = max(1, round(len(side.results) / len(side.samples)))
        is_known = side.results is not None
        return cls(side.find(metric) or {}, failed_trials(side, metric), epochs, is_known)

    def gap(self, expected: Collection[str]) -> Gap:
        """What is missing among the samples that should have a number."""
        without = sum(name not in self.numbers for name in expected)
        partial = sum(self._lost(name) for name in expected if name in self.numbers)
        every = self.epochs
        return Gap(every * without + partial, every * len(expected), partial, self.unit)

    def gap_of(self, expected: int) -> Gap:
        """The same of a group: what failed, or else by how much it has fewer than so many."""
        without = sum(self._lost(name) for name in self.failed if name not in self.numbers)
        if not self.is_known:
            without = max(expected - len(self.numbers), 0)
        partial = sum(self._lost(name) for name in self.failed if name in self.numbers)
        whole = self.epochs * len(self.numbers) + without
        return Gap(without + partial, whole, partial, self.unit)

    @property
    def unit(self) -> str:
        return "samples" if self.epochs == 1 else "trials"

    def _lost(self, name: str) -> int:
        return min(self.failed[name], self.epochs)


def gaps_between(a: Side, b: Side, found: Comparison, metric: str) -> Gaps:
    """Which samples have no number in the run, and which have none in the baseline.

    A sample should have one if the other side has, or if something failed or was skipped; skips do
    not count in a run that ignores them. Of two groups it is what failed, for their samples may
    concern an evaluator more or less often; where that is not known, as many as one has fewer than
    the other, size for size.
    """
    new, old = _Held.of(a, metric), _Held.of(b, metric)
    if found.samples:
        shared = set(a.samples) & set(b.samples) - (a.apart or frozenset())
        told = {*new.numbers, *old.numbers, *new.failed, *old.failed}
        return Gaps(new.gap(shared & told), old.gap(shared & told))
    shares = [
        len(held.numbers) / len(side.samples) if side.samples else 0.0 for held, side in ((new, a), (old, b))
    ]
    return Gaps(new.gap_of(round(shares[1] * len(a.samples))), old.gap_of(round(shares[0] * len(b.samples))))


def worst_gap(report: EvalReport, metric: str, most: float = TENTH) -> Gap:
    """What is missing from a metric, in the configuration that lacks the most of it.

    Errors and skips are missing; skips are not if the run ignores them. A configuration that lacks
    more than `most` is worse than any that does not.
    """
    tables = {name: t for name, t in report.by_configuration.items() if metric in t}
    each = [
        _gap(table, metric, report.results.only(name) if name else report.results, report.metadata)
        for name, table in (tables or {"": report.metrics}).items()
    ]
    return max(each, key=lambda gap: (gap.exceeds(most), gap.missing / max(1, gap.of)))


def worst_of_all(report: EvalReport) -> tuple[str, Gap]:
    """The metric of a run of which most is missing, and how much."""
    each = {metric: worst_gap(report, metric) for metric in report.metrics}
    return max(each.items(), key=lambda one: one[1].missing, default=("", Gap(0, 0)))


def _gap(table: Mapping[str, MetricValue], metric: str, results: Results, run: RunMetadata | None) -> Gap:
    known = table.get(metric)
    if known is None:
        return Gap(0, 0)
    if metric in COMBINED and run is not None and (silent := _silent_evaluator(results, run)):
        return silent
    skipped = _skipped(known, metric, results, run)
    return Gap(
        known.errors + known.partial + skipped.number,
        known.n + known.errors + skipped.number,
        known.partial,
        skipped=skipped.number,
        reason=skipped.reason,
    )


def _silent_evaluator(results: Results, run: RunMetadata) -> Gap | None:
    """The first of several evaluators that judged nothing, in a run that ignores skips."""
    if run.options.skipped != "ignore" or len(run.evaluators) < 2:
        return None
    for spec in run.evaluators:
        missing = count_skipped(results, spec.name, run)
        if missing.of and missing.number == missing.of:
            number = missing.number
            return Gap(number, number, skipped=number, reason=missing.reason, evaluator=spec.name)
    return None


def _skipped(known: MetricValue, metric: str, results: Results, run: RunMetadata | None) -> Missing:
    """The skipped results that a metric of scores lacks."""
    is_of_scores, evaluator = evaluator_of(metric, run)
    if not known.skipped or not is_of_scores or (run and run.options.skipped == "ignore"):
        return Missing(0, 0)
    return count_skipped(results, evaluator, run)


def without_gaps(check: Check, gaps: Gaps, most: float, baseline: str = "") -> Check:
    """A check that says how many samples are missing, and does not pass where that is too many."""
    check = msgspec.structs.replace(check, missing=gaps.run.missing, baseline_missing=gaps.baseline.missing)
    sides = ((gaps.run, "this run"), (gaps.baseline, baseline))
    told = [gap.told(where) for gap, where in sides if gap.exceeds(most)]
    if check.verdict != "pass" or not told:
        return check
    allowed = f"at most {most:,}" if isinstance(most, int) else f"at most {100 * most:g} %"
    why = f"but {' and '.join(told)}, {allowed} may be without (--max-missing): score them again, or allow it"
    return _undecided(check, why)


def without_silent(check: Check, metric: str, a: Side, b: Side, most: float) -> Check:
    """A check over all evaluators, which does not pass where one of them stopped judging.

    An evaluator stopped judging if more than `most` of its verdicts in the baseline are missing in
    the run. That also holds for runs that ignore skips: the check was not made. A mean changes as
    well if an evaluator judges samples that it did not judge in the baseline.
    """
    if check.verdict != "pass" or metric not in COMBINED:
        return check
    both_ways = metric in (MEAN_SCORE, TOTAL_SCORE)
    coverage = coverage_of(a, b)
    told = [
        one.describe("this run", b.name)
        for one in coverage
        if Gap(one.lost, one.b).exceeds(most)
        or (both_ways and len(coverage) > 1 and Gap(one.gained, one.a).exceeds(most))
    ]
    if not told:
        return check
    why = f"but {' and '.join(told)}: find out why it skips (proctor show), or allow it (--max-missing)"
    return _undecided(check, why)


def without_unmatched(check: Check, found: Comparison, run: Side) -> Check:
    """A check on pairs, which does not pass where too many samples of either side are in none."""
    if check.verdict != "pass" or not found.samples:
        return check
    new, gone = len(found.only_a) + len(found.other_content), gone_from(run, found)
    other = found.samples + len(found.other_content)
    told = []
    if Gap(new, new + found.samples).exceeds(TENTH):
        told.append(
            f"{new:,} of {new + found.samples:,} samples of {found.a} have no partner in {found.b} "
            "and are left out"
        )
    if Gap(gone, whole := other + len(found.only_b)).exceeds(TENTH):
        told.append(f"{gone:,} of {whole:,} samples of {found.b} are not in {found.a}")
    if not told:
        return check
    why = (
        f"but {', and '.join(told)}: say --unpaired to compare all samples of both as two groups, "
        "or --accept-changes to decide by the pairs alone"
    )
    return _undecided(check, why)


def gone_from(run: Side, found: Comparison) -> int:
    """How many samples of the baseline are no longer there to be run.

    What a limit leaves out, or a run that stopped early, need not be gone: there it is by how many
    samples the dataset is smaller than the baseline.
    """
    about = run.run
    if about is None:
        return len(found.only_b)
    length, limit = about.dataset.length, about.options.limit
    cut = limit is not None and (length is None or limit < length)
    if not cut and about.stopped_early is None:
        return len(found.only_b)
    baseline = found.samples + len(found.other_content) + len(found.only_b)
    return 0 if length is None else min(len(found.only_b), max(0, baseline - length))


def _undecided(check: Check, why: str) -> Check:
    return msgspec.structs.replace(check, verdict="inconclusive", sentence=f"{check.sentence}; {why}")
