"""`proctor delete`: delete runs from the history."""

from __future__ import annotations

import click

from proctor.cli.options import history_option


@click.command("delete")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Do not ask.")
@history_option()
def command(runs: tuple[str, ...], yes: bool, history: str | None) -> None:
    """Delete runs and all their results."""
    from proctor.lookback import open_history

    kept = open_history(history)
    found = list({run.run_id: run for run in map(kept.find, runs)}.values())
    names = ", ".join(f"{run.run_id} ({run.name})" for run in found)
    if not yes:
        click.confirm(f"delete {names}?", abort=True)
    for run in found:
        with kept.hold(run.run_id):
            kept.delete(run.run_id)
    click.echo(f"deleted {names}")
