"""`proctor runs`: list the runs in the history."""

from __future__ import annotations

import click

from proctor.cli.options import history_option, json_option, pairs


@click.command("runs")
@click.option("--limit", default=20, show_default=True, help="At most so many.")
@click.option("--tag", metavar="KEY=VALUE", multiple=True, help="Only runs with this tag.")
@history_option()
@json_option()
def command(limit: int, tag: tuple[str, ...], history: str | None, as_json: bool) -> None:
    """List the runs in the history, newest first."""
    from proctor import codec
    from proctor.lookback import open_history, standing
    from proctor.reports.listing import show_runs

    kept = open_history(history)
    runs = [standing(kept, run) for run in kept.runs(limit=limit, tags=pairs(tag, "--tag"))]
    if as_json:
        click.echo(codec.encode_pretty(runs))
    elif runs:
        show_runs([(run, kept.report(run.run_id)) for run in runs])
    else:
        click.echo("no runs yet; `proctor demo` makes one")
