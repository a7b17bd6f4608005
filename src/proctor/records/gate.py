"""A gate's answer, as data: pass, fail or inconclusive, and what every check of it found."""

from __future__ import annotations

from typing import Literal

import msgspec

from proctor.records.comparison import Comparison, Flip, Interval
from proctor.records.wording import Kind

GateVerdict = Literal["pass", "fail", "inconclusive"]


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that a gate asks, and what came out; `sentence` says it with its numbers.

    `value` and `baseline` are the metric in the run and in the baseline, `difference` the one minus
    the other, and `interval` (95 %) where that truly lies. `margin` is how much worse it may be, in
    the metric's own unit. `n` samples decided it; `more_samples` is about how many more would,
    where they do not. `configuration` is empty where there is only one, `clusters` is how many
    groups of samples that belong together there are, None where each stands alone. `missing` are
    the samples of the run that should have a number and have none, or a total that lacks a rubric
    which failed; `baseline_missing` are those of the baseline. Where the runs are compared as two
    groups instead of pair by pair, `n` samples are in the run and `baseline_n` in the baseline.
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
    """That a gate was decided while its run went on, or tried to be.

    `n` samples decided it, `run` were run when it had, `of` how many there are, if that is known.
    """

    n: int
    run: int
    of: int | None = None

    @property
    def saved(self) -> int:
        """How many samples need not be run."""
        return 0 if self.of is None else max(0, self.of - self.run)


class GateResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a gate says of a run: its verdict, in a sentence, and every check.

    It passes if every check does, fails if any does, and is inconclusive if none fails and the
    samples are too few to say. `comparisons` are the run's configurations beside the baseline;
    `notes` what makes the two unlike. `early` is there if the run could stop when it was decided:
    its comparisons then have flips and no intervals, for these would not hold.
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

    @property
    def lost(self) -> tuple[tuple[str, Flip], ...]:
        """The samples that passed before and do not now, worst first, each with its side's name."""
        found = [(one.a, flip) for one in self.comparisons for flip in one.lost]
        return tuple(sorted(found, key=lambda pair: (pair[1].change, pair[0], pair[1].sample_id)))

    @property
    def won(self) -> int:
        """How many samples pass now and did not before."""
        return sum(len(one.won) for one in self.comparisons)
