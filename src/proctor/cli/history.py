"""`proctor history`: tidy the history up, see how numbers went, take runs out and in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.delete import agreed, refuse_silence, told
from proctor.cli.exchange import export, import_
from proctor.cli.filters import asked, nothing_fits, time_options
from proctor.cli.options import history_option, json_option, shown
from proctor.cli.subcommands import Subcommands
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.records.retention import Pruned
    from proctor.records.run import RunMetadata

SHOWN = 10


@click.group("history", cls=Subcommands)
def command() -> None:
    """Tidy up the history, see how a number went from run to run, export and import runs."""


command.add_command(export)
command.add_command(import_)


@command.command("info")
@history_option()
@json_option()
def info(history: str | None, as_json: bool) -> None:
    """Say where the history is and how much is in it."""
    from proctor import codec
    from proctor.lookback import open_history
    from proctor.reports.figures import count

    found = open_history(history).holdings()
    if as_json:
        click.echo(codec.encode_pretty(found))
        return
    click.echo(found.where)
    if not found.schema:
        click.echo("nothing yet: it is made when the first run begins")
        return
    held = f"{count(found.runs, 'run')}, {count(found.results, 'result')}"
    if found.outputs:
        held += f", {count(found.outputs, 'cached output')}"
    click.echo(f"{held}, {found.size_bytes / 1e6:,.1f} MB, schema version {found.schema}")


@command.command("prune")
@click.option("--days", type=click.FloatRange(min=0, min_open=True),
              help="Keep the runs of the last N days.")  # fmt: skip
@click.option("--count", "count_", type=click.IntRange(min=1),
              help="Keep the last N runs of each name.")  # fmt: skip
@click.option("--cache", is_flag=True,
              help="Also delete the outputs that the cache keeps: those older than --days, "
              "without it all.")  # fmt: skip
@click.option("--name", help="Only runs of this name.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@history_option()
@json_option()
def prune(
    days: float | None,
    count_: int | None,
    cache: bool,
    name: str | None,
    dry_run: bool,
    yes: bool,
    history: str | None,
    as_json: bool,
) -> None:
    """Delete old runs: one stays while it is within the days or within the count.

    Baselines stay, and so do runs that somebody works on.

    \b
    proctor history prune --days 30 --count 100 --dry-run
    proctor history prune --cache
    """
    from proctor import codec
    from proctor.clock import SystemClock
    from proctor.lookback import open_history
    from proctor.records.retention import Pruned, Retention

    if days is None and count_ is None and not cache:
        raise ConfigError("say what is to be kept: --days, --count, or both; or --cache")
    if cache and name is not None:
        raise ConfigError("outputs in the cache belong to no name", fix="leave --name out")
    refuse_silence(yes or dry_run, as_json)
    kept, retention, now = open_history(history), Retention(days, count_), SystemClock().now()
    before = None if days is None else now - timedelta(days=days)
    found = kept.prune(retention, now=now, name=name, dry_run=True)
    outputs = kept.forget_outputs(before=before, dry_run=True) if cache else 0
    declined = False
    if (found.gone or outputs) and not dry_run:
        declined = not (yes or agreed(f"delete {_listed(found.gone, outputs)}?"))
        if declined:
            found, outputs = Pruned(staying=found.staying), 0
        else:
            listed = [run.run_id for run in found.gone]
            found = kept.prune(retention, now=now, name=name, only=listed)
            outputs = kept.forget_outputs(before=before) if cache else 0
    if as_json:
        gone = [run.run_id for run in found.gone]
        said = {"dry_run": dry_run, "deleted": gone, "outputs": outputs, "kept": found.staying}
        click.echo(codec.encode_pretty(said))
    elif declined:
        click.echo("nothing was deleted")
    elif name is not None and not found.gone and not kept.runs(limit=1, name=name):
        click.echo(nothing_fits(kept, {"name": name}))
    else:
        _say(found, outputs, dry_run)


def _listed(going: Sequence[RunMetadata], outputs: int) -> str:
    from proctor.reports.figures import count

    more = f", … and {len(going) - SHOWN} more" if len(going) > SHOWN else ""
    runs = [f"{count(len(going), 'run')}: {told(going[:SHOWN])}{more}"] if going else []
    return "; ".join([*runs, *([count(outputs, "cached output")] if outputs else [])])


def _say(found: Pruned, outputs: int, dry_run: bool) -> None:
    would = "would delete" if dry_run else "deleted"
    listed = _listed(found.gone, outputs)
    click.echo(f"{would} {listed}" if listed else "nothing to delete")
    for run_id, why in found.staying.items():
        click.echo(f"stays although it is over: {run_id} ({shown(why)})")


@command.command("trend")
@click.argument("metric")
@click.option("--name", help="Only runs of this name.")
@click.option("--configuration", metavar="NAME", multiple=True, help="Only this configuration.")
@time_options()
@click.option("--table", is_flag=True, help="Every run's value below.")
@click.option("--svg", metavar="FILE", type=click.Path(path_type=Path), help="Draw it into a file.")
@history_option()
@json_option()
def trend(
    metric: str,
    name: str | None,
    configuration: tuple[str, ...],
    table: bool,
    svg: Path | None,
    history: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show how a metric, or the mean of a field or evaluator, went from run to run.

    \b
    proctor history trend pass_rate --name exam
    proctor history trend latency_ms.p95 --since 30d --svg latency.svg
    """
    from proctor import codec, trends
    from proctor.cli.outputs import PICTURE, check_file
    from proctor.clock import SystemClock
    from proctor.lookback import open_history
    from proctor.reports import files, trend_svg
    from proctor.reports import trend as drawn

    check_file(svg, PICTURE, "--svg", history)
    kept = open_history(history)
    wanted = {**asked(filters, SystemClock().now()), "name": name}
    found = trends.trend(kept, metric, configurations=configuration or None, **wanted)
    if svg is not None:
        files.write(svg, [trend_svg.svg(found).encode()], what="the picture")
        click.echo(f"wrote {svg}", err=as_json)
    if as_json:
        click.echo(codec.encode_pretty(found))
    elif not found.points:
        click.echo(nothing_fits(kept, wanted))
    else:
        click.echo(drawn.sparkline(found))
        if table:
            click.echo(f"\n{drawn.table(found)}")
