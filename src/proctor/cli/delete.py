"""`proctor delete`: delete runs from the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from proctor.cli.options import history_option, json_option, shown
from proctor.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from proctor.records.run import RunMetadata


@click.command("delete")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Do not ask.")
@history_option()
@json_option()
def command(runs: tuple[str, ...], yes: bool, history: str | None, as_json: bool) -> None:
    """Delete runs and all their results; the names of baselines go with their runs."""
    from proctor.records import codec
    from proctor.wiring.open_history import open_history

    refuse_silence(yes, as_json)
    kept = open_history(history)
    found = list({run.run_id: run for run in map(kept.find, runs)}.values())
    if not yes and not agreed(f"delete {told(found, kept.baselines())}?"):
        click.echo("nothing was deleted")
        return
    baselines: list[str] = []
    for run in found:
        with kept.hold(run.run_id):
            baselines += kept.delete(run.run_id)
    if as_json:
        deleted = {"deleted": [run.run_id for run in found], "baselines": baselines}
        click.echo(codec.encode_pretty(deleted))
        return
    click.echo(f"deleted {told(found)}")
    for name in baselines:
        click.echo(f"the baseline {shown(name)} is gone with its run")


def refuse_silence(yes: bool, as_json: bool) -> None:
    """A program cannot be asked, and a question is no JSON."""
    if as_json and not yes:
        raise ConfigError("with --json nobody is asked", fix="say --yes")


def agreed(question: str) -> bool:
    """Ask; where nobody can answer, nothing is done."""
    try:
        return click.confirm(question)
    except click.Abort as abort:
        # click tells the end of the input and Ctrl-C apart only by what they come from.
        if isinstance(abort.__context__, EOFError):
            click.echo()
            raise UsageError("nobody answered: nothing was deleted", fix="say --yes") from None
        raise


def told(runs: Sequence[RunMetadata], baselines: Mapping[str, RunMetadata] | None = None) -> str:
    """Runs by id and name, and which baselines they are."""
    said = []
    for run in runs:
        known = [name for name, its in (baselines or {}).items() if its.run_id == run.run_id]
        which = f", the baseline {', '.join(map(shown, known))}" if known else ""
        said.append(f"{run.run_id} ({shown(run.name)}{which})")
    return ", ".join(said)
