"""`proctor baseline`: names for the runs that others are compared with."""

from __future__ import annotations

import click

from proctor.cli.options import Subcommands, history_option, json_option, shown


@click.group("baseline", cls=Subcommands)
def command() -> None:
    """Name a run, to compare others with it: `baseline:NAME` stands for it wherever a run is named.

    Retention keeps the runs that are baselines.
    """


@command.command("set")
@click.argument("name")
@click.argument("run")
@click.option("--force", is_flag=True, help="Also a run that did not come to its end, or has no verdict.")
@history_option()
@json_option()
def set_(name: str, run: str, force: bool, history: str | None, as_json: bool) -> None:
    """Let NAME stand for RUN; a name that is taken moves.

    \b
    proctor baseline set main latest
    """
    from proctor.comparison.gates.gaps import worst_of_all
    from proctor.errors import UsageError
    from proctor.records import codec
    from proctor.wiring.open_history import open_history, standing

    kept = open_history(history)
    found = standing(kept, kept.find(run))
    if (found.status != "completed" or found.stopped_early) and not force:
        stands = "stopped early" if found.stopped_early else found.status
        raise UsageError(
            f"run {found.run_id} is {stands}: a baseline should have come to its end",
            fix="resume it first, or say --force",
        )
    counts = kept.results(found.run_id).counts()
    if not counts.passed + counts.failed and not force:
        raise UsageError(
            f"run {found.run_id} has no verdict on anything: nothing can be compared with it",
            fix=f"see what went wrong: proctor show {found.run_id}; or say --force",
        )
    before = kept.baselines().get(name)
    kept.set_baseline(name, found.run_id)
    metric, gap = worst_of_all(kept.report(found.run_id))
    if as_json:
        moved = before.run_id if before and before.run_id != found.run_id else None
        told = {"name": name, "run_id": found.run_id, "before": moved, "missing": gap.missing}
        click.echo(codec.encode_pretty(told))
        return
    click.echo(f"the baseline {shown(name)} is run {found.run_id} ({shown(found.name)})")
    if gap.evaluator:
        click.echo(shown(gap.told("it")))
    elif gap.missing:
        lacking = f"{gap.missing:,} of {gap.of:,} values of {shown(metric)}"
        click.echo(f"missing in it: {lacking}, for something failed")
    if before is not None and before.run_id != found.run_id:
        click.echo(f"it was {before.run_id} ({shown(before.name)})")
    if kept.find(name).run_id != found.run_id:
        click.echo(f"a run is called {name} too: write baseline:{name} for the baseline")


@command.command("list")
@history_option()
@json_option()
def list_(history: str | None, as_json: bool) -> None:
    """List the baselines and their runs."""
    from proctor.records import codec
    from proctor.reports.listing import show_baselines
    from proctor.wiring.open_history import open_history, standing

    kept = open_history(history)
    found = {name: standing(kept, run) for name, run in kept.baselines().items()}
    if as_json:
        click.echo(codec.encode_pretty(found))
    elif found:
        show_baselines([(name, run, kept.report(run.run_id)) for name, run in found.items()])
    else:
        click.echo("no baselines yet; `proctor baseline set NAME RUN` names one")


@command.command("drop")
@click.argument("name")
@history_option()
@json_option()
def drop(name: str, history: str | None, as_json: bool) -> None:
    """Forget the baseline NAME; its run stays."""
    from proctor.records import codec
    from proctor.wiring.open_history import open_history

    kept = open_history(history)
    run = kept.baseline(name)
    kept.drop_baseline(name)
    if as_json:
        click.echo(codec.encode_pretty({"dropped": name, "run_id": run.run_id}))
    else:
        click.echo(f"the baseline {name} is forgotten; run {run.run_id} ({shown(run.name)}) stays")
