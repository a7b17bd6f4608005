"""`proctor delete`: delete runs from the history."""

from __future__ import annotations

import click

from proctor.cli.options import history_option, json_option


@click.command("delete")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Do not ask.")
@history_option()
@json_option()
def command(runs: tuple[str, ...], yes: bool, history: str | None, as_json: bool) -> None:
    """Delete runs and all their results."""
    from proctor import codec
    from proctor.lookback import open_history

    kept = open_history(history)
    found = list({run.run_id: run for run in map(kept.find, runs)}.values())
    names = ", ".join(f"{run.run_id} ({run.name})" for run in found)
    if not yes and not click.confirm(f"delete {names}?"):
        click.echo("nothing was deleted")
        return
    for run in found:
        with kept.hold(run.run_id):
            kept.delete(run.run_id)
    deleted = {"deleted": [run.run_id for run in found]}
    click.echo(codec.encode_pretty(deleted) if as_json else f"deleted {names}")
