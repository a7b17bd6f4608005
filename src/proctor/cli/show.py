"""`proctor show`: show a run, its failed samples, or one sample."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from proctor.cli.options import history_option, json_option, output_option, page_options
from proctor.errors import ConfigError
from proctor.records.trial import Outcome


@click.command("show")
@click.argument("run", default="latest")
@click.option("--sample", metavar="ID", help="Show everything about this sample.")
@click.option(
    "--session", is_flag=True, help="With --sample or --outcome: also show the messages of models and tools."
)
@click.option("--outcome", type=click.Choice(get_args(Outcome)), help="List only results with this outcome.")
@click.option(
    "--evaluator", metavar="NAME", help="Apply --outcome to this evaluator alone. Default outcome: failed."
)
@click.option("--configuration", metavar="NAME", help="List only results of this configuration.")
@page_options("results")
@output_option
@history_option
@json_option
def command(
    run: str,
    sample: str | None,
    session: bool,
    outcome: Outcome | None,
    evaluator: str | None,
    configuration: str | None,
    limit: int,
    offset: int,
    output: Path | None,
    history: str | None,
    as_json: bool,
) -> None:
    """Show a run. RUN is an id, the start of an id, a name, or "latest" (the default).

    \b
    proctor show
    proctor show latest --outcome failed --limit 5
    proctor show 20260101-1200 --sample q17 --session
    """
    from proctor.cli.outcome import show_report, summarize, write_reports
    from proctor.cli.outputs import check_reports
    from proctor.records import codec
    from proctor.reports.listing import show_results
    from proctor.wiring.open_history import load_report, open_history, select_results

    check_reports(output, history)
    report = load_report(open_history(history), run)
    if output:
        for path in write_reports(report, output):
            click.echo(f"wrote {path}", err=as_json)
    if session and sample is None and outcome is None:
        raise ConfigError("--session needs --sample or --outcome", fix="add --sample ID or --outcome failed")
    if evaluator is not None and outcome is None:
        outcome = "failed"
    if sample is None and outcome is None and configuration is None:
        if as_json:
            click.echo(codec.encode_pretty(summarize(report)))
        else:
            show_report(report)
        return
    results = select_results(
        report,
        sample=sample,
        outcome=outcome,
        evaluator=evaluator,
        configuration=configuration,
        offset=offset,
        limit=limit,
    )
    if as_json:
        click.echo(codec.encode_pretty(results))
    else:
        show_results(results, sessions=session)
