"""`proctor show`: a run, its failures, or one sample."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from proctor.cli.options import history_option, json_option
from proctor.errors import ConfigError
from proctor.records.trial import Outcome


@click.command("show")
@click.argument("run", default="latest")
@click.option("--sample", metavar="ID", help="Everything about one sample.")
@click.option("--session", is_flag=True, help="What was said to models and tools as well.")
@click.option("--outcome", type=click.Choice(get_args(Outcome)), help="List such results.")
@click.option("--evaluator", metavar="NAME", help="In the eyes of this one; --outcome failed.")
@click.option("--configuration", metavar="NAME", help="Only of this configuration.")
@click.option("--limit", default=20, show_default=True, help="Show at most N results.")
@click.option("--offset", default=0, help="Skip the first N results.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path), help="Write reports.")
@history_option()
@json_option()
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
    """Show a run: RUN is an id, the beginning of one, a name, or "latest".

    \b
    proctor show
    proctor show latest --outcome failed --limit 5
    proctor show 20260101-1200 --sample q17 --session
    """
    from proctor.cli.comparing import show_beside
    from proctor.cli.outcome import overview, write_reports
    from proctor.cli.outputs import check_reports
    from proctor.records import codec
    from proctor.reports.console import show
    from proctor.reports.listing import show_results
    from proctor.wiring.open_history import look_up, open_history, select

    check_reports(output, history)
    report = look_up(open_history(history), run)
    if output:
        for path in write_reports(report, output):
            click.echo(f"wrote {path}", err=as_json)
    if session and sample is None and outcome is None:
        raise ConfigError("--session goes with --sample or --outcome")
    if evaluator is not None and outcome is None:
        outcome = "failed"
    if sample is None and outcome is None and configuration is None and evaluator is None:
        if as_json:
            click.echo(codec.encode_pretty(overview(report)))
        else:
            show(report)
            show_beside(report)
        return
    chosen = select(
        report,
        sample=sample,
        outcome=outcome,
        evaluator=evaluator,
        configuration=configuration,
        offset=offset,
        limit=limit,
    )
    if as_json:
        click.echo(codec.encode_pretty(chosen))
    else:
        show_results(chosen, sessions=session)
