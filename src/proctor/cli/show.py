"""`proctor show`: show a run, its failed samples, or one sample."""

from __future__ import annotations

import shlex
from typing import Any, get_args

import click

from proctor.cli import options as cli
from proctor.errors import ConfigError
from proctor.records.trial import Outcome


# Another argument is most likely a sample, which an option names.
@click.command("show", context_settings={"allow_extra_args": True})
@click.argument("run", default="latest")
@cli.option("--sample ID", "Show everything about this sample.")
@cli.option("--session", "With --sample or --outcome: also show the messages of models and tools.")
@cli.option("--outcome", "List only results with this outcome.", type=cli.Choice(get_args(Outcome)))
@cli.option("--evaluator NAME", "Apply --outcome to this evaluator alone. Default outcome: failed.")
@cli.option("--configuration NAME", "List only results of this configuration.")
@cli.page_options("results")
@cli.output_options
@cli.common_options
def command(run: str, *, session: bool, as_json: bool, **options: Any) -> None:
    """Show a run. RUN is an id, the start of an id, a name, or "latest" (the default); RUN@CONFIGURATION selects one.

    \b
    proctor show
    proctor show latest --outcome failed --limit 5
    proctor show latest --format markdown
    proctor show 20260101-1200 --sample q17 --session

    Without --output, --format prints the report in one format.
    """
    from proctor.cli.outcome import show_report, summarize
    from proctor.cli.outputs import check_reports
    from proctor.reports.formats import find_format, write_reports
    from proctor.reports.listing import show_results
    from proctor.wiring.compare_runs import open_report
    from proctor.wiring.open_history import open_history, select_results

    if others := click.get_current_context().args:
        fix = f"for a sample, write: proctor show {shlex.quote(run)} --sample {shlex.quote(others[0])}"
        raise ConfigError(f"unexpected argument {others[0]!r}: one run is shown at a time", fix=fix)
    prints_format = len(options["formats"]) == 1 and options["output"] is None
    if prints_format and as_json:
        raise ConfigError("--json and --format both print the report", fix="leave out one of them")
    if not prints_format:
        check_reports(options)
    _, report, options["configuration"], _ = open_report(
        run, open_history(options["history"]), options["configuration"]
    )
    if prints_format:
        click.echo(find_format(options["formats"][0]).render(report), nl=False)
        return
    if options["output"]:
        for path in write_reports(report, options["output"], options["formats"]):
            click.echo(f"wrote {path}", err=as_json)
    selection = _read_selection(session, options)
    if not selection:
        if as_json:
            cli.print_json(summarize(report))
        else:
            show_report(report)
        return
    results = select_results(report, **selection, offset=options["offset"], limit=options["limit"])
    if as_json:
        cli.print_json(results)
    else:
        show_results(results, sessions=session)


def _read_selection(session: bool, options: dict[str, Any]) -> dict[str, Any]:
    names = ("sample", "outcome", "evaluator", "configuration")
    selection = {name: options[name] for name in names if options[name] is not None}
    if session and not ("sample" in selection or "outcome" in selection):
        raise ConfigError("--session needs --sample or --outcome", fix="add --sample ID or --outcome failed")
    return {"outcome": "failed", **selection} if "evaluator" in selection else selection
