"""`proctor gate`: is a run as good as its baseline? Pass, fail, or not enough evidence."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from proctor.cli.evaluation import concurrency_option, name_option, tag_option
from proctor.cli.options import (
    complain,
    history_option,
    json_option,
    number,
    output_option,
    pairs,
    quiet_option,
)
from proctor.errors import ConfigError, ProctorError, RunInterrupted, RunNotFound, nearest
from proctor.history.finding import PREFIX
from proctor.ports import History
from proctor.records.report import EvalReport
from proctor.reports.summary import status
from proctor.version import VERSION
from proctor.wiring.compare_runs import AT, Meant, opened

if TYPE_CHECKING:
    from proctor.cli.gate_outputs import Papers
    from proctor.comparison.gates.decision import Demand
    from proctor.comparison.gates.early import EarlyGate
    from proctor.comparison.sides import Side
    from proctor.engine.plan import Plan
    from proctor.ports import History
    from proctor.records.gate import GateResult
    from proctor.records.sample import Sample
    from proctor.wiring.compare_runs import Meant
    from proctor.wiring.prepare import Evaluation


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
    from proctor.wiring.prepare import prepare

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


def _refuse_other_evaluators(plan: Plan, old: Meant, before: Sequence[Side], demand: Demand) -> None:
    """Refuse evaluators that are not the baseline's, as the run would have them on record."""
    from proctor.comparison.compare import compare
    from proctor.comparison.gates.decision import refuse_unlike, refuse_unmeasured
    from proctor.engine.redacting import described

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


INTERRUPTED = 130
EVAL_FILE_ENDINGS = (".yaml", ".yml", ".json", ".py")
# What an eval file is run with; a stored run is as it is.
OF_A_RUN = ("name", "tag", "concurrency")
OF_A_COMPARISON = ("margin", "metric", "better", "max_flips", "unpaired", "until_decided")


@click.command("gate")
@click.argument("run", metavar="RUN|FILE")
@click.option("--baseline", metavar="NAME", help="A baseline's name, or any run.")
@click.option("--margin", metavar="2%", help="How much worse is allowed. Default: 2%.")
@click.option(
    "--metric", metavar="NAME[=MARGIN]", multiple=True, help="What is compared. Default: strict_pass_rate."
)
@click.option("--better", metavar="NAME=higher|lower", multiple=True, help="Which way, of a field.")
@click.option("--fail-under", metavar="[METRIC=]VALUE", multiple=True, help="Fail below it.")
@click.option("--max-flips", type=int, metavar="N", help="Fail if more samples were lost.")
@click.option(
    "--inconclusive",
    type=click.Choice(["code", "pass", "fail"]),
    default="code",
    show_default=True,
    help="What too few samples lead to; code is exit code 4.",
)
@click.option("--accept-changes", is_flag=True, help="Decide although evaluators or samples are others.")
@click.option("--unpaired", is_flag=True, help="Compare all samples of both, as two groups.")
@click.option(
    "--max-missing", metavar="N|P%", help="Inconclusive if more samples have no number. Default: 10%."
)
@click.option("--configuration", metavar="NAME", help="Only this one.")
@click.option("--until-decided", is_flag=True, help="Stop the run as soon as it is decided.")
@name_option()
@tag_option()
@concurrency_option()
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write JUnit XML.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Write a comment.")
@output_option()
@quiet_option("No progress, and nothing but the answer.")
@history_option()
@json_option()
def command(run: str, **options: Any) -> int:
    """Decide whether a run is as good as its baseline, but for a margin.

    \b
    proctor run eval.yaml
    proctor baseline set main latest
    proctor gate eval.yaml --baseline main --margin 5%
    proctor gate latest --baseline main --metric strict_pass_rate --metric tokens.mean=10%

    An eval file is run first, with --name, --tag and --concurrency as in `proctor run`; with
    --until-decided only as far as it takes. Margins are points of rates and scores, and percent of
    the baseline's value for other numbers. In GitHub Actions the step summary is written too. Exit
    codes: 0 pass, 1 fail, 2 usage, 3 trouble, 4 inconclusive, 130 interrupted.
    """
    from proctor.cli.gate_outputs import Papers

    papers = Papers(options)
    try:
        result = _answered(run, options, papers)
    except RunInterrupted as stopped:
        papers.trouble(stopped, f"interrupted; what was finished is kept as run {stopped.run_id}")
        click.echo(_how_to_go_on(run, stopped.run_id, options), err=True)
        return INTERRUPTED
    except (Exception, KeyboardInterrupt) as error:
        papers.trouble(error, str(error) or "interrupted")
        raise
    return papers.conclude(result)


def _answered(run: str, options: dict[str, Any], papers: Papers) -> GateResult:
    """What the gate says; whatever is wrong is told before a run is paid for, if it can be."""

    from proctor.wiring.open_history import open_history

    demand = _demand(options)
    history = open_history(options["history"])
    is_file = Path(run).is_file() or run.endswith(EVAL_FILE_ENDINGS)
    job = _loaded(Path(run), options) if is_file else None
    if job is not None:
        papers.name = job.found.evaluation.name or ""
        papers.refuse_among(job.found.evaluation.dataset)
    reference, chosen = options["baseline"], options["configuration"]
    old = None if reference is None else opened_baseline(history, reference, chosen)
    if old is not None:
        refuse_no_verdict(old)
    gate: EarlyGate | None = None
    if job is None:
        new = _stored(run, history, options)
    else:
        new, gate, demand = _run_file(job, old, demand, history, options)
    papers.about(new.report)
    refuse_incomplete(new.report)
    return _decided(new, old, demand, gate)


def _how_to_go_on(run: str, run_id: str, options: dict[str, Any]) -> str:
    """How the rest is run, and the gate asked again: it has no --resume of its own."""
    import shlex

    where = f" --history {shlex.quote(options['history'])}" if options["history"] else ""
    against = f" --baseline {shlex.quote(options['baseline'])}" if options["baseline"] else ""
    but = " but --until-decided" if options["until_decided"] else ""
    return (
        f"interrupted: what was finished is kept; to go on: proctor run {shlex.quote(run)} "
        f"--resume {run_id}{where}; then: proctor gate {run_id}{against}{where}, with the other "
        f"options as before{but}"
    )


def _demand(options: dict[str, Any]) -> Demand:
    """What the options ask for."""
    from proctor.cli.evaluation import thresholds
    from proctor.comparison.gates.decision import DEFAULT_MARGIN, Demand, metrics_asked
    from proctor.comparison.gates.gaps import TENTH

    margin = DEFAULT_MARGIN if options["margin"] is None else _margin(options["margin"], "--margin")
    given: dict[str, float | None] = {}
    for text in options["metric"]:
        name, equals, own = text.partition("=")
        given[name] = _margin(own, f"--metric {name}") if equals else None
    needs = [name for name in OF_A_COMPARISON if options[name] not in (None, (), False)]
    if options["baseline"] is None and needs:
        raise ConfigError(
            f"--{needs[0].replace('_', '-')} needs something to compare with", fix=_how_to_compare()
        )
    demand = Demand(
        metrics_asked(given, margin) if options["baseline"] is not None else {},
        thresholds(options["fail_under"]),
        options["max_flips"],
        _directions(options["better"]),
        options["accept_changes"],
        options["unpaired"],
        TENTH if options["max_missing"] is None else _allowance(options["max_missing"]),
    )
    demand.refuse_wrong()
    return demand


def _how_to_compare() -> str:
    return "name a run: proctor baseline set main RUN; then: proctor gate RUN --baseline main"


def _margin(text: str, option: str) -> float:
    """A margin: 2% or 0.02; 2 or 80 is more than anybody means."""
    share = number(text, option)
    if not math.isfinite(share):
        raise ConfigError(f"{text!r} is no margin", where=option, fix="write 2% or 0.02")
    if not text.endswith("%") and share >= 1:
        raise ConfigError(
            f"a margin of {text} is everything", where=option, fix=f"write {text}% or {share / 100}"
        )
    return share


def _allowance(text: str) -> float:
    """How many may be missing: 5 samples, or 10% of them."""
    return int(text) if text.isdecimal() else number(text, "--max-missing")


def _directions(given: Iterable[str]) -> dict[str, bool]:
    found = pairs(given, "--better")
    for name, way in found.items():
        if way not in ("higher", "lower"):
            raise ConfigError(f"{name} is better higher or lower, not {way!r}", where="--better")
    return {name: way == "higher" for name, way in found.items()}


def _stored(run: str, history: History, options: dict[str, Any]) -> Meant:
    from proctor.wiring.compare_runs import opened

    if options["until_decided"]:
        raise ConfigError(
            "--until-decided goes with an eval file: a stored run is over",
            fix="proctor gate eval.yaml --baseline NAME --until-decided",
        )
    if given := [name for name in OF_A_RUN if options[name]]:
        raise ConfigError(
            f"--{given[0]} goes with an eval file: a stored run is as it is",
            fix="proctor gate eval.yaml --baseline NAME",
        )
    return opened(run, history, options["configuration"])


class _Job(NamedTuple):
    """An eval file, read, and the evaluators that it may name."""

    found: Any
    registry: Any


def _loaded(file: Path, options: dict[str, Any]) -> _Job:
    """What an eval file says, with what the command line puts in its place."""
    from proctor.cli.evaluation import loaded
    from proctor.cli.outcome import prints_aside
    from proctor.wiring.registry import Registry

    registry = Registry.standard()
    with prints_aside(options["as_json"]):
        # The baseline of a file is one of its configurations, that of a gate is a run.
        return _Job(loaded(file, {name: options[name] for name in OF_A_RUN}, registry), registry)


def _run_file(
    job: _Job, old: Meant | None, demand: Demand, history: History, options: dict[str, Any]
) -> tuple[Meant, EarlyGate | None, Demand]:
    """Run what an eval file says; whatever is wrong with the gate is told before."""
    import dataclasses

    import msgspec

    from proctor.cli.outcome import prints_aside
    from proctor.comparison.gates.decision import refuse_unknown_metrics
    from proctor.core import bridge
    from proctor.engine.start import Conduct
    from proctor.reports.live import live_display
    from proctor.wiring.compare_runs import opened
    from proctor.wiring.evaluate import execute

    evaluation = job.found.evaluation
    if old is not None:
        refuse_unknown_metrics(demand, [old.report.side(name) for name in old.configurations])
    with prints_aside(options["as_json"]):
        gate = None
        if options["until_decided"] and old is not None:
            gate, seed = _early(evaluation, old, demand, options)
            if evaluation.fail_under:
                complain("fail_under in the file is not checked: the run may stop early")
            evaluation = dataclasses.replace(evaluation, options={**evaluation.options, "shuffle": seed})
        else:
            least = {**evaluation.fail_under, **demand.fail_under}
            demand = msgspec.structs.replace(demand, fail_under=least)
            evaluation = dataclasses.replace(evaluation, fail_under=least)
        _refuse_nothing(old, demand)
        _refuse_unmatched(evaluation, old, options["configuration"])
        if old is not None:
            refuse_beforehand(evaluation, job.registry, old, demand, early=gate is not None)
        how = Conduct(
            watch=live_display(not (options["as_json"] or options["quiet"])),
            decide=None if gate is None else gate.hear,
        )
        report = bridge.run(execute(evaluation, history, how, registry=job.registry))
    return opened(report, configuration=options["configuration"]), gate, demand


def _early(evaluation: Any, old: Meant, demand: Demand, options: dict[str, Any]) -> tuple[EarlyGate, int]:
    """The gate that ends the run, and the order that the samples are drawn in."""
    import secrets

    from proctor.comparison.gates.early import early_gate
    from proctor.wiring.prepare import configurations_from

    mine = [one.name for one in configurations_from(evaluation.configurations)]
    chosen = options["configuration"] or mine[0]
    if options["configuration"] is None and len(mine) > 1:
        raise ConfigError(
            f"the run has {len(mine)} configurations, and one of them decides when it stops",
            where="--until-decided",
            fix=f"name it: --configuration {mine[0]}",
        )
    theirs = old.configurations
    if len(theirs) > 1:
        raise ConfigError(
            f"{old.called} has several configurations, and one is compared with",
            where="--until-decided",
            fix=f"name it: --baseline {old.called}@{theirs[0]}",
        )
    run = old.report.metadata
    gate = early_gate(
        demand,
        old.report.results.only(theirs[0]),
        [spec.name for spec in run.evaluators] if run else (),
        epochs=evaluation.options.get("epochs", 1),
        configuration=chosen,
    )
    seed = evaluation.options.get("shuffle")
    # A new order each time, so that it is not always the same few samples that decide.
    return gate, secrets.randbelow(2**31) if seed is None else seed


def _refuse_unmatched(evaluation: Any, old: Meant | None, chosen: str | None) -> None:
    """Refuse configurations that could not be held against the baseline's."""
    from proctor.errors import nearest
    from proctor.wiring.prepare import configurations_from

    mine = [one.name for one in configurations_from(evaluation.configurations)]
    if chosen is not None and chosen not in mine:
        raise ConfigError(f"the file has no configuration {chosen!r}", fix=nearest(chosen, mine))
    theirs = mine if old is None else old.configurations
    several = chosen is None and max(len(mine), len(theirs)) > 1
    if several and not set(mine) & set(theirs):
        raise ConfigError(
            f"the file ({', '.join(mine)}) and the baseline ({', '.join(theirs)}) have no "
            "configuration in common",
            where="--baseline",
        )


def _refuse_nothing(old: Meant | None, demand: Demand) -> None:
    if old is None and not demand.fail_under:
        raise ConfigError("there is nothing to check", fix=_how_to_compare())


def _decided(new: Meant, old: Meant | None, demand: Demand, gate: EarlyGate | None) -> GateResult:

    from proctor.comparison.gates.decision import decide
    from proctor.comparison.gates.early import judged_again, settled
    from proctor.wiring.compare_runs import beside, paired, sides

    _refuse_nothing(old, demand)
    if old is None:
        return decide([], demand, report=narrowed(new))
    new, old = beside(new, old)
    pairs, alone = paired(new, old)
    compared = [sides(*pair) for pair in pairs]
    told: Any = {"baseline": old.called, "notes": notes_on(old, alone)}
    run = new.report.metadata
    if gate is not None:
        told |= {"accept_changes": demand.accept_changes, "max_missing": demand.max_missing}
        return settled(gate, compared[0], new.report, **told)
    if run is not None and run.stopped_early is not None:
        if len(pairs) > 1:
            raise ConfigError(
                f"run {run.run_id} was stopped early and has {len(pairs)} configurations, and what "
                "holds at every moment is said of one",
                fix=f"name it: --configuration {new.configurations[0]}",
            )
        ([mine], [theirs]) = (one.configurations for one in pairs[0])
        before = old.report.results.only(theirs)
        return judged_again(demand, new.report, before, compared[0], mine, **told)
    return decide(compared, demand, report=narrowed(new), **told)
