"""`proctor history`: tidy the history up, see how numbers went, take runs out and in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.delete import agreed, refuse_silence, told
from proctor.cli.filters import asked, chosen, filter_options, nothing_fits, time_options
from proctor.cli.options import Decorator, Subcommands, complain, history_option, json_option, shown
from proctor.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from proctor.history.exchange.read import Imported
    from proctor.ports import History
    from proctor.records.run import Pruned, RunMetadata


FORMATS = ("jsonl", "csv", "parquet")


def _format_option() -> Decorator:
    return click.option(
        "--format", "as_", type=click.Choice(FORMATS), help="Default: what the file's ending says."
    )


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, metavar="RUN...")
@_format_option()
@filter_options()
@history_option()
@json_option()
def export(
    file: Path, runs: tuple[str, ...], as_: Any, history: str | None, as_json: bool, **filters: Any
) -> None:
    """Write runs into FILE: those that are named, those that fit, or all.

    \b
    proctor history export runs.jsonl
    proctor history export exam.csv latest
    proctor history export month.parquet --since 30d --name exam

    Nothing is lost, whatever the format: `proctor history import` brings back the same runs.
    Parquet needs `pip install "proctor[parquet]"`.
    """
    from proctor.cli.outputs import EXPORTS, check_file
    from proctor.core.clock import SystemClock
    from proctor.history.exchange.parts import format_of
    from proctor.history.exchange.write import exported
    from proctor.records import codec
    from proctor.reports import files
    from proctor.wiring.open_history import open_history

    written_as = format_of(file, as_)
    check_file(file, EXPORTS[written_as], "FILE", history)
    kept = open_history(history)
    found = chosen(kept, runs, filters, SystemClock().now())
    if not runs:
        busy = [run for run in found if kept.is_held(run.run_id)]
        for run in busy:
            complain(f"left out: run {run.run_id} ({run.name}) is being worked on")
        found = [run for run in found if run not in busy]
    if not found:
        raise UsageError("there is no run to export that has ended")
    files.write(file, exported(kept, found, written_as), what="the export")
    if as_json:
        told = {"file": file, "format": written_as, "runs": [run.run_id for run in found]}
        click.echo(codec.encode_pretty(told))
    else:
        click.echo(f"wrote {len(found)} run{'s' * (len(found) != 1)} to {file}")


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@_format_option()
@click.option("--move-baselines", is_flag=True,
              help="Baselines that another run is here become the one in the file.")  # fmt: skip
@history_option()
@json_option()
def import_(
    files: tuple[Path, ...], as_: Any, move_baselines: bool, history: str | None, as_json: bool
) -> None:
    """Take runs in that `proctor history export` wrote, each as a whole or not at all.

    A run that is there already is passed over if it is the same, and refused if it is not. The
    names of baselines come with their runs; one that another run has here stays with that, unless
    --move-baselines is said.
    """
    from proctor.records import codec
    from proctor.wiring.open_history import open_history

    kept = open_history(history)
    found = []
    for one in _each(kept, files, as_, move_baselines):
        found.append(one)
        if not as_json:
            _print_counts(one)
    if as_json:
        click.echo(codec.encode_pretty({"runs": found}))


def _each(kept: History, files: tuple[Path, ...], as_: Any, move_baselines: bool) -> Iterator[Imported]:
    from proctor.history.exchange.read import imported

    for file in files:
        yield from imported(kept, file, as_, move_baselines=move_baselines)


def _print_counts(one: Imported) -> None:
    what = f"run {one.run_id} ({shown(one.name)}), {one.results:,} results"
    click.echo(f"imported {what}" if one.new else f"there already: {what}")
    for name in one.baselines:
        before = f"; it was {one.moved[name]}" if name in one.moved else ""
        click.echo(f"  it is the baseline {shown(name)}{before}")
    for name in one.taken:
        click.echo(
            f"  the baseline {shown(name)} is another run here, and stays that; --move-baselines moves it"
        )


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
    from proctor.records import codec
    from proctor.reports.format import count
    from proctor.wiring.open_history import open_history

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
    from proctor.core.clock import SystemClock
    from proctor.records import codec
    from proctor.records.run import Pruned, Retention
    from proctor.wiring.open_history import open_history

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
    from proctor.reports.format import count

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
    from proctor.cli.outputs import PICTURE, check_file
    from proctor.core.clock import SystemClock
    from proctor.history import trends
    from proctor.records import codec
    from proctor.reports import files
    from proctor.reports import trend as drawn
    from proctor.reports import trend as trend_svg
    from proctor.wiring.open_history import open_history

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
