"""What a verdict would leave out: samples that are new, and samples without a number.

A gate that is green though a good part of the run was not looked at says more than it knows. Red
stays red: what is left out makes nothing better.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from proctor.comparison.sides import Numbers, Side
from proctor.records.comparison import Comparison
from proctor.records.gate import Check
from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport

# As large a part may be new, or without a number, before a verdict leaves out too much.
TENTH = 0.1


class Gap(NamedTuple):
    """How many of how many samples have no number in the run that is judged."""

    missing: int
    of: int

    def exceeds(self, most: float) -> bool:
        """True if more are missing than may be: a share, or so many if it is a whole number.

        >>> Gap(3, 30).exceeds(0.1), Gap(4, 30).exceeds(0.1), Gap(4, 30).exceeds(5)
        (False, True, False)
        """
        allowed = most if isinstance(most, int) else most * self.of
        return self.missing > allowed + 1e-9


def gap_between(a: Side, b: Side, found: Comparison, mine: Numbers, theirs: Numbers) -> Gap:
    """Which samples have no number in the run although the baseline has them.

    What an evaluator has nothing to say of is missing in both. Of two groups it is as many as the
    run has fewer than the baseline, size for size.
    """
    if found.samples:
        apart, run = a.apart or (), set(a.samples)
        paired = [name for name in theirs if name in run and name not in apart]
        return Gap(sum(name not in mine for name in paired), len(paired))
    share = len(theirs) / len(b.samples) if b.samples else 0.0
    expected = round(share * len(a.samples))
    return Gap(max(0, expected - len(mine)), expected)


def worst_gap(report: EvalReport, metric: str) -> Gap:
    """The errors among the values of a metric, in the configuration that has the most of them."""
    tables = [table for table in report.by_configuration.values() if metric in table]
    each = [_gap(table, metric) for table in tables or [report.metrics]]
    return max(each, key=lambda gap: gap.missing / max(1, gap.of))


def _gap(table: Mapping[str, MetricValue], metric: str) -> Gap:
    known = table.get(metric)
    return Gap(0, 0) if known is None else Gap(known.errors, known.n + known.errors)


def without_gap(check: Check, gap: Gap, most: float) -> Check:
    """A check that says how many samples are missing, and does not pass where that is too many."""
    check = msgspec.structs.replace(check, missing=gap.missing)
    if check.verdict != "pass" or not gap.exceeds(most):
        return check
    allowed = f"at most {most:,}" if isinstance(most, int) else f"at most {100 * most:g} %"
    why = (
        f"but {gap.missing:,} of {gap.of:,} samples have no such number in this run, {allowed} may "
        "be without (--max-missing): score them again, or allow it"
    )
    return _undecided(check, why)


def without_new_ones(check: Check, found: Comparison) -> Check:
    """A check on pairs, which does not pass where too many samples of the run are in none."""
    new = len(found.only_a) + len(found.other_content)
    whole = new + found.samples
    if check.verdict != "pass" or not found.samples or not Gap(new, whole).exceeds(TENTH):
        return check
    why = (
        f"but {new:,} of {whole:,} samples of {found.a} have no partner in {found.b} and are left "
        "out: say --unpaired to compare all samples of both as two groups, or --accept-changes to "
        "decide by the pairs alone"
    )
    return _undecided(check, why)


def _undecided(check: Check, why: str) -> Check:
    return msgspec.structs.replace(
        check, verdict="inconclusive", sentence=f"{check.sentence}; {why}"
    )
