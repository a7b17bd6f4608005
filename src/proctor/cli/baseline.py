"""`proctor baseline`: name the runs that other runs are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from proctor.cli.options import CommandGroup, common_options, display_name, option, parse_max_missing, print_json
from proctor.errors import UsageError

if TYPE_CHECKING:
    from proctor.comparison.gates.gaps import Gap


@click.group("baseline", cls=CommandGroup)
def command() -> None:
    """Name the runs to compare other runs with.

    Write `baseline:NAME` wherever a command takes a run. Pruning never deletes a baseline.
    """


@command.command("set")
@click.argument("name")
@click.argument("run")
@option("--max-missing N|P%", "Refuse a run in which more than N results, or P% of them, have no verdict.")
@option("--force", "Accept a run that is incomplete or has no verdict.")
@common_options
def set_(name: str, run: str, max_missing: str | None, force: bool, history: str | None, as_json: bool) -> None:
    """Set the baseline NAME to RUN, replacing any earlier run.

    \b
    proctor baseline set main latest
    """
    from proctor.comparison.gates.gaps import Gap, find_worst_metric
    from proctor.engine.start import selection_warnings
    from proctor.wiring.open_history import current_status, open_history

    store = open_history(history)
    metadata = current_status(store, store.find(run))
    run_id = metadata.run_id
    if (metadata.status != "completed" or metadata.stopped_early) and not force:
        status = "stopped early" if metadata.stopped_early else metadata.status
        finish = f"resume it: proctor run eval.yaml --resume {run_id}"
        if metadata.rescored_from is not None:
            finish = f"resume run {metadata.rescored_from} and rescore it"
        if status == "submitted":
            finish = f"collect its results: proctor collect {run_id} --requests ADDRESS"
        raise UsageError(
            f"run {run_id} is {status}; a baseline must be a complete run", fix=f"{finish}, or add --force"
        )
    counts = store.results(run_id).counts()
    if not counts.passed + counts.failed and not force:
        raise UsageError(
            f"no result of run {run_id} has a verdict, so nothing can be compared with it",
            fix=f"see why: proctor show {run_id} --outcome {counts.first_problem()}; or add --force",
        )
    metric, gap = find_worst_metric(store.report(run_id))
    ignored = counts.skipped if metadata.options.skipped == "ignore" else 0
    total = counts.total - ignored
    missing = total - counts.passed - counts.failed
    if max_missing is not None and Gap(missing, total).exceeds(parse_max_missing(max_missing)) and not force:
        raise UsageError(
            f"{missing:,} of {total:,} results of run {run_id} have no verdict, more than --max-missing {max_missing}",
            fix=f"see why: proctor show {run_id} --outcome {counts.first_problem()}; or add --force",
        )
    previous_run = store.baselines().get(name)
    has_moved = previous_run is not None and previous_run.run_id != run_id
    store.set_baseline(name, run_id)
    if as_json:
        previous = previous_run.run_id if previous_run and has_moved else None
        print_json({"name": name, "run_id": run_id, "before": previous, "missing": gap.missing})
        return
    click.echo(f"baseline {display_name(name)} now points to run {run_id} ({display_name(metadata.name)})")
    for warning in (*selection_warnings(metadata), *_describe_gap(metric, gap)):
        click.echo(f"warning: {display_name(warning)}")
    if previous_run and has_moved:
        click.echo(f"previously: {previous_run.run_id} ({display_name(previous_run.name)})")
    if store.find(name).run_id != run_id:
        click.echo(f"a run is also named {name}: write baseline:{name} for the baseline")


def _describe_gap(metric: str, gap: Gap) -> Iterator[str]:
    if gap.evaluator:
        yield gap.describe("this run")
    elif gap.missing:
        verb = "has" if gap.missing == 1 else "have"
        yield f"{gap.missing:,} of {gap.total:,} {gap.unit} {verb} no value of {metric}"


@command.command("list")
@common_options
def list_(history: str | None, as_json: bool) -> None:
    """List the baselines and their runs."""
    from proctor.reports.listing import show_baselines
    from proctor.wiring.open_history import current_status, open_history

    store = open_history(history)
    baselines = {name: current_status(store, run) for name, run in store.baselines().items()}
    if as_json:
        print_json(baselines)
    elif baselines:
        show_baselines([(name, run, store.report(run.run_id)) for name, run in baselines.items()])
    else:
        click.echo("no baselines yet; `proctor baseline set NAME RUN` creates one")


@command.command("drop")
@click.argument("name")
@common_options
def drop(name: str, history: str | None, as_json: bool) -> None:
    """Delete the baseline NAME, but not its run."""
    from proctor.wiring.open_history import open_history

    store = open_history(history)
    run = store.baseline(name)
    store.drop_baseline(name)
    if as_json:
        print_json({"dropped": name, "run_id": run.run_id})
    else:
        run_name = display_name(run.name)
        click.echo(f"deleted the baseline {name}; run {run.run_id} ({run_name}) is still stored")
