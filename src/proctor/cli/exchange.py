"""`proctor history export` and `import`: runs into a file, and out of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.filters import chosen, filter_options
from proctor.cli.options import Decorator, complain, history_option, json_option, shown
from proctor.errors import UsageError

if TYPE_CHECKING:
    from proctor.interchange.importing import Imported
    from proctor.ports import History

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
    file: Path,
    runs: tuple[str, ...],
    as_: Any,
    history: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Write runs into FILE: those that are named, those that fit, or all.

    \b
    proctor history export runs.jsonl
    proctor history export exam.csv latest
    proctor history export month.parquet --since 30d --name exam

    Nothing is lost, whatever the format: `proctor history import` brings back the same runs.
    Parquet needs `pip install "proctor[parquet]"`.
    """
    from proctor import codec
    from proctor.cli.outputs import EXPORTS, check_file
    from proctor.clock import SystemClock
    from proctor.interchange.exporting import exported
    from proctor.interchange.parts import format_of
    from proctor.lookback import open_history
    from proctor.reports import files

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
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
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
    from proctor import codec
    from proctor.lookback import open_history

    kept = open_history(history)
    found = []
    for one in _each(kept, files, as_, move_baselines):
        found.append(one)
        if not as_json:
            _say(one)
    if as_json:
        click.echo(codec.encode_pretty({"runs": found}))


def _each(
    kept: History, files: tuple[Path, ...], as_: Any, move_baselines: bool
) -> Iterator[Imported]:
    from proctor.interchange.importing import imported

    for file in files:
        yield from imported(kept, file, as_, move_baselines=move_baselines)


def _say(one: Imported) -> None:
    what = f"run {one.run_id} ({shown(one.name)}), {one.results:,} results"
    click.echo(f"imported {what}" if one.new else f"there already: {what}")
    for name in one.baselines:
        before = f"; it was {one.moved[name]}" if name in one.moved else ""
        click.echo(f"  it is the baseline {shown(name)}{before}")
    for name in one.taken:
        click.echo(
            f"  the baseline {shown(name)} is another run here, and stays that; "
            "--move-baselines moves it"
        )
