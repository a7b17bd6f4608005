"""What a gate is about, from the command line: a run and its baseline, fit to be decided on."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.errors import ConfigError, ProctorError, RunNotFound, nearest
from proctor.history.finding import PREFIX
from proctor.ports import History
from proctor.records.report import EvalReport
from proctor.reports.summary import status
from proctor.side_by_side import AT, Meant, opened
from proctor.version import VERSION

if TYPE_CHECKING:
    from proctor.comparison.sides import Side
    from proctor.engine.plan import Plan
    from proctor.gates.decision import Demand
    from proctor.prepare import Evaluation
    from proctor.records.sample import Sample


# The command that scores many sessions, as it stands in the provenance of what it ran.
BATCH = "evaluate-batch"


def opened_baseline(history: History, reference: str, configuration: str | None = None) -> Meant:
    """A baseline by its name, before any run that is called the same; else as any run."""
    known = history.baselines()
    name, at, _ = reference.rpartition(AT)
    if reference in known or (at and name in known):
        found = opened(PREFIX + reference, history, configuration)
        return found._replace(called=found.called.removeprefix(PREFIX))
    try:
        return opened(reference, history, configuration)
    except RunNotFound:
        fix = nearest(reference, known) if known else f"proctor baseline set {reference} RUN"
        raise RunNotFound(f"there is no baseline or run {reference!r}", fix=fix) from None


def refuse_incomplete(report: EvalReport) -> None:
    """Refuse to decide on part of a run, or on one that nothing came out of."""
    run = report.metadata
    if run is not None and run.status != "completed":
        of = "sessions evaluate-batch" if BATCH in run.provenance.command else "run"
        rest = f"proctor {of} … --resume {run.run_id}"
        if run.status == "submitted":
            fix = f"collect its results: proctor collect {run.run_id}"
        elif run.status == "running":
            fix = f"wait until it has ended; if it was killed, run the rest: {rest}"
        else:
            fix = f"run the rest: {rest}"
        raise ProctorError(
            f"run {run.run_id} is {status(report, run)}: a gate decides on whole runs", fix=fix
        )
    counts = report.counts
    if _has_no_verdict(report):
        raise ProctorError(
            f"no result of run {report.run_id} has a verdict: {counts.total:,} errors",
            fix=f"look at one: proctor show {report.run_id} --outcome error --limit 1",
        )


def refuse_no_verdict(old: Meant) -> None:
    """Refuse a baseline that nothing came out of: everything is as good as that."""
    if _has_no_verdict(old.report):
        raise ConfigError(
            f"no result of the baseline {old.called} (run {old.report.run_id}) has a verdict, and "
            "everything is as good as that",
            where="--baseline",
            fix=f"name a run that went well: proctor baseline set {old.called} RUN",
        )


def _has_no_verdict(report: EvalReport) -> bool:
    counts = report.counts
    return counts.passed + counts.failed == 0


def refuse_beforehand(
    evaluation: Evaluation, registry: Any, old: Meant, demand: Demand, *, early: bool
) -> None:
    """Refuse before a run is paid for what is known to lead to no verdict."""
    from proctor.prepare import prepare

    before = [old.report.side(name) for name in old.configurations]
    plan = prepare(evaluation, registry)
    _refuse_other_evaluators(plan, old, before, demand)
    # What can be read only once is not looked into.
    if plan.dataset.inspect().source != "iterator":
        from proctor.engine.plan import samples_in_turn

        known = {name for side in before for name in side.samples}
        shared = [one for _, one in samples_in_turn(plan) if one.id in known]
        if not shared and (early or demand.max_flips is not None):
            raise ConfigError(
                f"the dataset and {old.called} have no sample in common, and "
                f"{'--until-decided' if early else '--max-flips'} is about pairs",
                where="--baseline",
                fix="leave it out: the runs are then compared as two groups",
            )
        if early:
            _refuse_clusters(shared)
            _refuse_other_contents(shared, old)


def _refuse_other_evaluators(
    plan: Plan, old: Meant, before: Sequence[Side], demand: Demand
) -> None:
    """Refuse evaluators that are not the baseline's, as the run would have them on record."""
    from proctor.comparison.comparing import compare
    from proctor.engine.redacting import described
    from proctor.gates.decision import refuse_unlike, refuse_unmeasured

    run = old.report.metadata
    if run is None:
        return
    new = described(
        msgspec.structs.replace(
            run,
            run_id="",
            evaluators=tuple(one.spec for one in plan.evaluators),
            options=plan.options,
            environment={"proctor": VERSION, "python": platform.python_version()},
        )
    )
    own = tuple(f"{spec.name}." for spec in new.evaluators)
    for side in before:
        scores = {n: held for n, held in side.scores.items() if f"{n}.".startswith(own)}
        mine = msgspec.structs.replace(side, name="the file", run=new, scores=scores)
        named = msgspec.structs.replace(side, name=old.called)
        accepted = demand.accept_changes
        found = compare(mine, named, better=demand.better, accept_changes=accepted)
        refuse_unlike(found, demand)
        refuse_unmeasured(mine, named, demand)


def _refuse_clusters(samples: Iterable[Sample[Any, Any]]) -> None:
    """Refuse samples that belong together: no verdict holds at every moment for these."""
    first: dict[str, str] = {}
    for one in samples:
        if one.cluster is not None and first.setdefault(one.cluster, one.id) != one.id:
            raise ConfigError(
                f"samples {first[one.cluster]!r} and {one.id!r} share the cluster {one.cluster!r}, "
                "and no verdict holds at every moment for samples that are not independent",
                where="--until-decided",
                fix="leave it out: a gate on all samples allows for clusters",
            )


def _refuse_other_contents(samples: Iterable[Sample[Any, Any]], old: Meant) -> None:
    """Refuse samples that ask something else than the baseline's of their id."""
    from proctor.comparison.contents import content_of

    if old.report.metadata is not None and old.report.metadata.redacted:
        return
    now = {one.id: content_of(one) for one in samples}
    then = (one for one in old.report.results.samples() if one.id in now)
    other = [one.id for one in then if now[one.id] not in (None, content_of(one))]
    if other:
        raise ConfigError(
            f"sample {other[0]!r} is another one in {old.called}, under the same id",
            where="--until-decided",
            fix="leave it out: a gate on all samples tells them apart",
        )


def notes_on(old: Meant, alone: tuple[str, ...]) -> list[str]:
    """What must be said of a baseline that is not whole, and of configurations without partner."""
    run = old.report.metadata
    unlike = [f"{name} has no partner and is not checked" for name in alone]
    if run is not None and run.stopped_early is not None:
        said = "was stopped early, when it looked best or worst: what it found is not quite even"
        return [f"the baseline {old.called} {said}", *unlike]
    if run is None or run.status == "completed":
        return unlike
    return [f"the baseline {old.called} is {status(old.report, run)}", *unlike]


def narrowed(found: Meant) -> EvalReport:
    """A run with nothing but the configuration that is meant, if one is: for thresholds."""
    report, chosen = found.report, found.configuration
    if chosen is None or len(report.by_configuration) < 2:
        return report
    table = report.by_configuration.get(chosen, {})
    return EvalReport(report.results.only(chosen), report.metadata, table, {chosen: table})
