"""A gate that ends its run: as soon as it is decided, no further sample is run.

Its verdict is that of the interval which holds at every moment (`gates.early`). The usual interval
is of no use after such a run, for it holds only if nobody looked at it before the end; a run that
was stopped early is therefore judged in the same way when it is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from proctor.comparison.comparing import compare
from proctor.comparison.sides import Side
from proctor.errors import ConfigError
from proctor.gates import words
from proctor.gates.decision import Demand, concluded, delta_named, margin_of, refuse_unlike
from proctor.gates.early import EarlyGate, numbers_of, reader_of, replayed
from proctor.gates.gaps import (
    TENTH,
    Gap,
    Gaps,
    gaps_between,
    without_gaps,
    without_silent,
    without_unmatched,
)
from proctor.records.gate import Check, Early, GateResult
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult

ONE_ONLY = "a gate that may end its run early asks for one metric"


def early_gate(
    demand: Demand,
    baseline: Iterable[EvalResult],
    evaluators: Sequence[str],
    *,
    epochs: int = 1,
    configuration: str | None = None,
) -> EarlyGate:
    """The gate that hears a run: the baseline's results of one configuration are read once."""
    refuse_more_than_one(demand)
    (metric, margin), *_ = demand.metrics.items()
    read = reader_of(metric, evaluators)
    numbers = numbers_of(baseline, read)
    return EarlyGate(
        numbers, read, metric=metric, margin=margin, epochs=epochs, configuration=configuration
    )


def refuse_more_than_one(demand: Demand) -> None:
    """Refuse what a run that stops early cannot answer."""
    demand.refuse_wrong()
    if len(demand.metrics) != 1:
        raise ConfigError(ONE_ONLY, where="metric", fix="name one, or run all samples")
    if demand.unpaired:
        raise ConfigError(
            "a gate that may end its run early compares pairs",
            where="unpaired",
            fix="run all samples",
        )
    for name, asked in (("fail_under", demand.fail_under), ("max_flips", demand.max_flips)):
        if asked not in (None, {}):
            raise ConfigError(
                f"{ONE_ONLY}, and what part of the samples reaches is no answer to {name}",
                where=name,
                fix="leave one of the two out",
            )


def settled(
    gate: EarlyGate,
    pair: tuple[Side, Side],
    report: EvalReport,
    *,
    baseline: str,
    notes: Iterable[str] = (),
    accept_changes: bool = False,
    max_missing: float = TENTH,
) -> GateResult:
    """What a gate that heard a run says of it.

    All its numbers are of the samples that decided it, which may be fewer than those that were run.
    """
    found = compare(_as_if_whole(pair[0]), pair[1], accept_changes=accept_changes)
    means = gate.means
    if means is None:
        raise ConfigError(
            f"{found.a} and {found.b} have no sample in common, so nothing could be decided",
            where="baseline",
        )
    refuse_unlike(found, Demand({gate.metric: gate.margin}))
    delta = delta_named(found, gate.metric)
    check = Check(
        gate.metric,
        gate.verdict,
        "",
        value=means[0],
        baseline=means[1],
        difference=means[0] - means[1],
        interval=gate.interval,
        margin=margin_of(delta, gate.margin),
        n=gate.n,
        kind=delta.kind,
    )
    check = msgspec.structs.replace(
        check, sentence=words.of_metric(check, delta, missing=gate.unscored, further=False)
    )
    lacking = gaps_between(*pair, found, delta.name).baseline
    gaps = Gaps(Gap(gate.unscored, gate.n + gate.unscored), lacking)
    check = without_gaps(check, gaps, max_missing, found.b)
    check = without_silent(check, delta.name, *pair, max_missing)
    if not accept_changes:
        check = without_unmatched(check, found, pair[0])
    early = Early(gate.n, found.samples + len(found.only_a), _planned(report.metadata))
    # Its intervals and probabilities would not hold; nor are samples missing that were not run.
    shown = msgspec.structs.replace(found, answer="", metrics={}, scores={}, fields={}, only_b=())
    return concluded([check], [shown], report, baseline=baseline, notes=notes, early=early)


def judged_again(
    demand: Demand,
    report: EvalReport,
    before: Iterable[EvalResult],
    pair: tuple[Side, Side],
    configuration: str,
    *,
    baseline: str,
    notes: Iterable[str] = (),
) -> GateResult:
    """What a gate says of a stored run that was stopped early, by the interval that holds then."""
    run = report.metadata
    if run is None or run.options.shuffle is None:
        raise ConfigError("the run was not shuffled, so where it was stopped tells nothing")
    names = [spec.name for spec in run.evaluators]
    gate = early_gate(demand, before, names, epochs=run.options.epochs, configuration=configuration)
    heard = replayed(gate, list(report.results), run.options.shuffle)
    return settled(
        heard,
        pair,
        report,
        baseline=baseline,
        notes=notes,
        accept_changes=demand.accept_changes,
        max_missing=demand.max_missing,
    )


def _as_if_whole(side: Side) -> Side:
    """The same side, of which need not be said that usual intervals do not hold."""
    run = side.run and msgspec.structs.replace(side.run, stopped_early=None)
    return msgspec.structs.replace(side, run=run)


def _planned(run: RunMetadata | None) -> int | None:
    """How many samples there are to run, if that is known."""
    if run is None or run.dataset.length is None:
        return None
    return min(run.dataset.length, run.options.limit or run.dataset.length)
