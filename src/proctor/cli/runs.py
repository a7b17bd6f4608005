"""`proctor runs`: list the runs in the history."""

from __future__ import annotations

from typing import Any

import click

from proctor.cli.filters import explain_no_match, filter_options, parse_filters
from proctor.cli.options import common_options, page_options, print_json


@click.command("runs")
@filter_options
@page_options("runs")
@common_options
def command(limit: int, offset: int, history: str | None, as_json: bool, **filters: Any) -> None:
    """List the runs in the history, newest first. A run must match all filters.

    \b
    proctor runs
    proctor runs --name exam --since 7d
    proctor runs --evaluator exact_match --tag branch=main --until 2026-01-31
    """
    from proctor.core.clock import SystemClock
    from proctor.reports.listing import show_runs
    from proctor.wiring.open_history import current_status, open_history

    store = open_history(history)
    query = parse_filters(filters, SystemClock().now())
    runs = [current_status(store, run) for run in store.runs(limit=limit, offset=offset, **query)]
    if as_json:
        print_json(runs)
    elif runs:
        baselines = {name: run.run_id for name, run in store.baselines().items()}
        show_runs([(run, store.report(run.run_id)) for run in runs], baselines)
    else:
        click.echo(explain_no_match(store, query))
