"""`proctor history`: prune, export and import runs, and show trends."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli import options as cli
from proctor.cli.delete import confirm, list_runs, require_yes, yes_option
from proctor.cli.filters import explain_no_match, filter_options, parse_filters, select_runs, time_options
from proctor.core.clock import SystemClock
from proctor.errors import ConfigError, UsageError
from proctor.records.formatting import format_count
from proctor.reports import files as report_files

if TYPE_CHECKING:
    from proctor.history.exchange.read import ImportedRun
    from proctor.records.run import PruneResult, RunMetadata

MAX_RUNS = 10

format_option = cli.option(
    "--format",
    "Use this file format. Default: detected from the file extension.",
    type=cli.Choice(["jsonl", "csv", "parquet"]),
    into="file_format",
)


@click.group("history", cls=cli.CommandGroup)
def command() -> None:
    """Prune, export and import the runs of the history, and show trends."""


command.elsewhere = dict.fromkeys(("list", "ls", "query"), "proctor runs")


@command.command("export", short_help="Write runs to a file.")
@click.argument("file", type=cli.PATH)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@format_option
@filter_options
@cli.common_options
def export(
    file: Path, runs: tuple[str, ...], file_format: Any, history: str | None, as_json: bool, **filters: Any
) -> None:
    """Write runs to FILE: the named runs, the runs that match the filters, or all runs.

    \b
    proctor history export runs.jsonl
    proctor history export exam.csv latest
    proctor history export month.parquet --since 30d --name exam

    Every format is lossless: `proctor history import` restores the same runs. Parquet needs `pip
    install "proctor[parquet]"`.
    """
    from proctor.cli.outputs import EXPORTS, check_file
    from proctor.history.exchange.parts import detect_format
    from proctor.history.exchange.write import export_runs
    from proctor.wiring.open_history import open_history

    file_format = detect_format(file, file_format)
    check_file(file, EXPORTS[file_format], "FILE", history)
    store = open_history(history)
    selected = select_runs(store, runs, filters, SystemClock().now())
    if not runs:
        running = [run for run in selected if store.is_claimed(run.run_id)]
        for run in running:
            cli.echo_stderr(f"skipped: run {run.run_id} ({run.name}) is still running")
        selected = [run for run in selected if run not in running]
    if not selected:
        raise UsageError("no run has finished", fix="wait until a run has ended")
    report_files.write_file(file, export_runs(store, selected, file_format), what="the export")
    if as_json:
        cli.print_json({"file": file, "format": file_format, "runs": [run.run_id for run in selected]})
    else:
        click.echo(f"wrote {format_count(len(selected), 'run')} to {file}")


@command.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=cli.PATH)
@format_option
@cli.option("--move-baselines", "Point existing baselines of the same name to the imported runs.")
@cli.common_options
def import_(
    files: tuple[Path, ...], file_format: Any, move_baselines: bool, history: str | None, as_json: bool
) -> None:
    """Import runs that `proctor history export` wrote.

    A run is imported completely or not at all. A run that already exists is skipped if it is
    identical, and rejected if it differs. Baselines are imported with their runs; an existing baseline
    keeps its run unless you add --move-baselines.
    """
    from proctor.history.exchange.read import import_runs
    from proctor.wiring.open_history import open_history

    store = open_history(history)
    runs = []
    for file in files:
        for run in import_runs(store, file, file_format, move_baselines=move_baselines):
            runs.append(run)
            if not as_json:
                _show_imported(run)
    if as_json:
        cli.print_json({"runs": runs})


def _show_imported(run: ImportedRun) -> None:
    description = f"run {run.run_id} ({cli.display_name(run.name)}), {format_count(run.results, 'result')}"
    click.echo(f"imported {description}" if run.new else f"already stored: {description}")
    for name in run.baselines:
        previous = f" (previously: {run.moved[name]})" if name in run.moved else ""
        click.echo(f"  baseline {cli.display_name(name)} now points to this run{previous}")
    for name in run.conflicting_baselines:
        click.echo(
            f"  baseline {cli.display_name(name)} already points to another run; add --move-baselines to replace it"
        )


@command.command("info")
@cli.common_options
def info(history: str | None, as_json: bool) -> None:
    """Show the location and the size of the history."""
    from proctor.wiring.open_history import open_history

    info = open_history(history).describe()
    if as_json:
        cli.print_json(info)
        return
    click.echo(info.where)
    if not info.schema:
        click.echo("empty: the first run creates it")
        return
    counts = f"{format_count(info.runs, 'run')}, {format_count(info.results, 'result')}"
    if info.outputs:
        counts += f", {format_count(info.outputs, 'cached output')}"
    click.echo(f"{counts}, {info.size_bytes / 1e6:,.1f} MB, schema version {info.schema}")


@command.command("prune")
@cli.option("--days N", "Keep the runs of the last N days.", type=cli.Number(float, 0, exclusive=True))
@cli.option("--count N", "Keep the last N runs of each name.", type=cli.POSITIVE_INTEGER)
@cli.option("--cache", "Also delete cached outputs: those older than --days, or all of them without --days.")
@cli.option("--name NAME", "Prune only runs with this name.")
@cli.option("--dry-run", "Show what would be deleted, without deleting it.")
@yes_option
@cli.common_options
def prune(
    days: float | None,
    count: int | None,
    cache: bool,
    name: str | None,
    dry_run: bool,
    yes: bool,
    history: str | None,
    as_json: bool,
) -> None:
    """Delete old runs. A run is kept if it is within --days or within --count.

    Baselines and runs in progress are never deleted.

    \b
    proctor history prune --days 30 --count 100 --dry-run
    proctor history prune --cache
    """
    from proctor.records.run import PruneResult, Retention
    from proctor.wiring.open_history import open_history

    if days is None and count is None and not cache:
        raise ConfigError("no limit is set", fix="add --days N, --count N, or --cache")
    if cache and name is not None:
        raise ConfigError(
            "--cache and --name cannot be combined",
            fix=f"run two commands: proctor history prune --name {shlex.quote(name)} --days 30; "
            "proctor history prune --cache",
        )
    require_yes(yes or dry_run, as_json)
    store, retention, now = open_history(history), Retention(days, count), SystemClock().now()
    before = None if days is None else now - timedelta(days=days)
    prune_result = store.prune(retention, now=now, name=name, dry_run=True)
    outputs = store.delete_outputs(before=before, dry_run=True) if cache else 0
    is_declined = False
    if (prune_result.deleted or outputs) and not dry_run:
        is_declined = not (yes or confirm(f"Delete {_describe_deletions(prune_result.deleted, outputs)}?"))
        if is_declined:
            prune_result, outputs = PruneResult(exempt=prune_result.exempt), 0
        else:
            run_ids = [run.run_id for run in prune_result.deleted]
            prune_result = store.prune(retention, now=now, name=name, only=run_ids)
            outputs = store.delete_outputs(before=before) if cache else 0
    if as_json:
        deleted = [run.run_id for run in prune_result.deleted]
        cli.print_json({"dry_run": dry_run, "deleted": deleted, "outputs": outputs, "kept": prune_result.exempt})
    elif is_declined:
        click.echo("nothing was deleted")
    elif name is not None and not prune_result.deleted and not store.runs(limit=1, name=name):
        click.echo(explain_no_match(store, {"name": name}))
    else:
        _show_pruned(prune_result, outputs, dry_run)


def _describe_deletions(runs: Sequence[RunMetadata], outputs: int) -> str:
    parts = []
    if runs:
        more = f", … and {len(runs) - MAX_RUNS} more" if len(runs) > MAX_RUNS else ""
        parts.append(f"{format_count(len(runs), 'run')}: {list_runs(runs[:MAX_RUNS])}{more}")
    if outputs:
        parts.append(format_count(outputs, "cached output"))
    return "; ".join(parts)


def _show_pruned(prune_result: PruneResult, outputs: int, dry_run: bool) -> None:
    deletions = _describe_deletions(prune_result.deleted, outputs)
    verb = "would delete" if dry_run else "deleted"
    click.echo(f"{verb} {deletions}" if deletions else "nothing to delete")
    for run_id, reason in prune_result.exempt.items():
        click.echo(f"kept although it is old: {run_id} ({cli.display_name(reason)})")


@command.command("trend", short_help="Show how a metric changes from run to run.")
@click.argument("metric")
@cli.option("--name NAME", "Show only runs with this name.")
@cli.option("--configuration NAME", "Show only this configuration; repeat for more.", multiple=True)
@time_options
@cli.option("--table", "Also list the value of every run.")
@cli.option("--svg FILE", "Also write the trend to FILE, as an SVG chart.")
@cli.option("--alarm", "With --name: exit with 1 if a control chart shows a change, 4 with too few runs.")
@cli.common_options
def trend(
    metric: str,
    name: str | None,
    configuration: tuple[str, ...],
    table: bool,
    svg: Path | None,
    alarm: bool,
    history: str | None,
    as_json: bool,
    **filters: Any,
) -> int:
    """Show how a metric, or the mean of a field or evaluator, changes from run to run.

    \b
    proctor history trend pass_rate --name exam
    proctor history trend latency_ms.p95 --since 30d --svg latency.svg
    proctor history trend pass_rate --name exam --alarm

    `proctor watch` also finds the cause of an alarm.
    """
    from proctor.cli.outputs import PICTURE, check_file
    from proctor.cli.watch import EXIT_CODES, chart_runs, describe_alarm
    from proctor.history import trends
    from proctor.reports import trend as trend_report
    from proctor.wiring.open_history import open_history

    check_file(svg, PICTURE, "--svg", history)
    if alarm and name is None:
        raise ConfigError("--alarm charts the runs of one name", fix="add --name NAME")
    store = open_history(history)
    query = {**parse_filters(filters, SystemClock().now()), "name": name}
    series = trends.trend(store, metric, configurations=configuration or None, **query)
    if svg is not None:
        report_files.write_file(
            svg, [trend_report.render_svg(series).encode(errors="backslashreplace")], what="the picture"
        )
        click.echo(f"wrote {svg}", err=as_json)
    state = chart_runs(store, query, metric, next(iter(configuration), None)) if alarm and series.points else None
    if as_json:
        cli.print_json(series if state is None else {"trend": series, "alarm": state})
    elif not series.points:
        click.echo(explain_no_match(store, query))
    else:
        click.echo(trend_report.render_sparkline(series))
        if table:
            click.echo(f"\n{trend_report.render_table(series)}")
        for line in describe_alarm(state) if state is not None else ():
            click.echo(line)
    return EXIT_CODES["cannot tell" if state is None else state.status] if alarm else 0
