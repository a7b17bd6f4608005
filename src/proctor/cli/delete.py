"""`proctor delete`: delete runs from the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from proctor.cli.options import common_options, display_name, option, print_json
from proctor.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from proctor.records.run import RunMetadata

yes_option = option("--yes", "Delete without asking for confirmation.")


@click.command("delete")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@yes_option
@common_options
def command(runs: tuple[str, ...], yes: bool, history: str | None, as_json: bool) -> None:
    """Delete runs with all their results, and the baselines that point to them.

    \b
    proctor delete latest
    proctor delete 20260101-1200 exam --yes
    """
    from proctor.wiring.open_history import open_history

    require_yes(yes, as_json)
    store = open_history(history)
    selected = list({run.run_id: run for run in map(store.find, runs)}.values())
    if not yes and not confirm(f"Delete run {list_runs(selected, store.baselines())}?"):
        click.echo("nothing was deleted")
        return
    baselines: list[str] = []
    for run in selected:
        with store.claim(run.run_id):
            baselines += store.delete(run.run_id)
    if as_json:
        print_json({"deleted": [run.run_id for run in selected], "baselines": baselines})
        return
    click.echo(f"deleted run {list_runs(selected)}")
    for name in baselines:
        click.echo(f"the baseline {display_name(name)} was deleted with its run")


def require_yes(yes: bool, as_json: bool) -> None:
    """Reject --json without --yes."""
    if as_json and not yes:
        raise ConfigError("--json cannot prompt for confirmation", fix="add --yes")


def confirm(question: str) -> bool:
    """Ask for confirmation; raise an error if standard input is closed."""
    try:
        return click.confirm(question)
    except click.Abort as abort:
        # click raises Abort for Ctrl-C and for the end of the input.
        if isinstance(abort.__context__, EOFError):
            click.echo()
            raise UsageError("no confirmation was given, so nothing was done", fix="add --yes") from None
        raise


def list_runs(runs: Sequence[RunMetadata], baselines: Mapping[str, RunMetadata] | None = None) -> str:
    """List runs by id and name, with the baselines that point to them."""
    descriptions = []
    for run in runs:
        names = [name for name, baseline_run in (baselines or {}).items() if baseline_run.run_id == run.run_id]
        suffix = "".join(f'; baseline "{display_name(name)}"' for name in names)
        descriptions.append(f"{run.run_id} ({display_name(run.name)}{suffix})")
    return ", ".join(descriptions)
