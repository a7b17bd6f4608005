"""The result of a gate: pass, fail or inconclusive, with all its checks."""

from __future__ import annotations

from typing import Literal

import msgspec

from proctor.records.comparison import Comparison, Flip, Interval
from proctor.records.formatting import Kind

GateVerdict = Literal["pass", "fail", "inconclusive"]


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One check of a gate and its verdict; `sentence` describes it with its numbers.

    `value` and `baseline` are the metric in the run and in the baseline, `difference` is the first minus the second,
    with its 95% `interval`. `margin` is how much worse it may be, in the metric's unit. `n` is the number of samples;
    `more_samples` is the estimated number of additional samples that would decide an inconclusive check if the
    difference stays near this one. `configuration` is empty if there is only one configuration. `clusters` is the
    number of clusters; None if all samples are independent. `missing` counts the samples of the run that should have a
    number but do not, or whose total lacks a failed rubric; `baseline_missing` counts them in the baseline. If the
    runs are compared as two groups, `n` is the size of the run and `baseline_n` the size of the baseline.
    """

    name: str
    verdict: GateVerdict
    sentence: str
    configuration: str = ""
    value: float | None = None
    baseline: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    margin: float | None = None
    n: int = 0
    more_samples: int | None = None
    kind: Kind = "number"
    clusters: int | None = None
    missing: int = 0
    baseline_n: int | None = None
    baseline_missing: int = 0


class Early(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The early decision of a gate during its run.

    `n` samples decided the gate after `run` samples had run, out of `total`, if known.
    """

    n: int
    run: int
    total: int | None = msgspec.field(default=None, name="of")

    @property
    def saved(self) -> int:
        """The number of samples that did not have to run."""
        return 0 if self.total is None else max(0, self.total - self.run)


class GateResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of a gate: its verdict, also as a sentence, and all checks.

    It passes if every check passes, fails if any fails, and is inconclusive otherwise. `comparisons` compare
    the run's configurations with the baseline; `notes` describe how the two differ, `warnings` are those of the
    run and of the baseline. `early` is set if the run could stop early: its comparisons then have flips but no
    intervals, because those would not hold.
    """

    run_id: str
    baseline: str
    verdict: GateVerdict
    answer: str
    checks: tuple[Check, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()
    early: Early | None = None
    name: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def lost(self) -> tuple[tuple[str, Flip], ...]:
        """The samples that passed in the baseline only, worst first, each with its side's name."""
        flips = [(comparison.a, flip) for comparison in self.comparisons for flip in comparison.lost]
        return tuple(sorted(flips, key=lambda pair: (pair[1].change, pair[0], pair[1].sample_id)))

    @property
    def won(self) -> int:
        """The number of samples that pass in the run only."""
        return sum(len(comparison.won) for comparison in self.comparisons)
