"""`proctor runs`: the runs in the history, all or those that are asked for."""

from __future__ import annotations

from typing import Any

import click

from proctor.cli.filters import asked, filter_options, nothing_fits
from proctor.cli.options import history_option, json_option


@click.command("runs")
@filter_options()
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True,
              help="Show at most N runs.")  # fmt: skip
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip the first N runs.")
@history_option()
@json_option()
def command(limit: int, offset: int, history: str | None, as_json: bool, **filters: Any) -> None:
    """List the runs in the history, newest first; everything that is asked must hold.

    \b
    proctor runs
    proctor runs --name exam --since 7d
    proctor runs --evaluator exact_match --tag branch=main --until 2026-01-31
    """
    from proctor.core.clock import SystemClock
    from proctor.records import codec
    from proctor.reports.listing import show_runs
    from proctor.wiring.open_history import open_history, standing

    kept = open_history(history)
    wanted = asked(filters, SystemClock().now())
    runs = [standing(kept, run) for run in kept.runs(limit=limit, offset=offset, **wanted)]
    if as_json:
        click.echo(codec.encode_pretty(runs))
    elif runs:
        baselines = {name: run.run_id for name, run in kept.baselines().items()}
        show_runs([(run, kept.report(run.run_id)) for run in runs], baselines)
    else:
        click.echo(nothing_fits(kept, wanted))
