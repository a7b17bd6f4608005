"""`proctor` without arguments: what to type next in this folder."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from proctor.cli.evaluation import DEFAULT_FILE
from proctor.errors import ProctorError
from proctor.version import VERSION


def show_next_steps() -> None:
    """Print the commands that fit what is in this folder."""
    steps = list(_list_steps())
    width = max(len(command) for command, _ in steps)
    click.echo(f"Proctor {VERSION} evaluates LLM programs and agents. Next:\n")
    for command, purpose in steps:
        click.echo(f"  {command:<{width}}  {purpose}")


def _list_steps() -> Iterator[tuple[str, str]]:
    file = _find_eval_file()
    latest = _find_latest_run()
    if file is not None:
        yield (
            ("proctor run" if file == DEFAULT_FILE else f"proctor run {shlex.quote(str(file))}"),
            f"run {file} in this folder",
        )
    elif latest is None:
        yield "proctor demo", "see a complete evaluation, without a key or a network"
        yield "proctor init my-evals", "create a small project that you can run and change"
    if latest is not None:
        yield "proctor view", f"look at the runs in a browser; the latest is {latest}"
        yield "proctor show latest --outcome failed", "list its failed samples with the reasons"
    yield "proctor doctor", "check what is installed, configured and reachable"
    yield "proctor --help", "list all commands"


def _find_eval_file() -> Path | None:
    """Return eval.yaml, or the only other file that is named like an eval file."""
    if DEFAULT_FILE.is_file():
        return DEFAULT_FILE
    files = [path for path in sorted(Path().glob("*eval*")) if path.suffix in (".yaml", ".yml") and path.is_file()]
    return files[0] if len(files) == 1 else None


def _find_latest_run() -> str | None:
    from proctor.wiring.open_history import history_file, open_history

    file = history_file()
    # A history on a server may take long to answer.
    if file is None or not file.is_file():
        return None
    try:
        history = open_history()
        runs = history.runs(limit=1)
        history.close()
    except (ProctorError, OSError):
        return None
    return f"{runs[0].name} ({runs[0].run_id})" if runs else None
