"""`proctor init`: write a first project that runs."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import json_option
from proctor.core import resources
from proctor.errors import UsageError
from proctor.records import codec


@click.command("init")
@click.argument("folder", default=".", type=click.Path(path_type=Path))
@json_option()
def command(folder: Path, as_json: bool) -> None:
    """Write a first project into FOLDER: an eval file, a dataset, a target and an evaluator."""
    from proctor.wiring.eval_file import SCHEMA_FILE, schema

    template = resources.path("templates", "project")
    files = sorted(file for file in template.iterdir() if file.is_file())
    taken = [file.name for file in files if (folder / file.name).exists()]
    if taken:
        raise UsageError(
            f"{folder} has {', '.join(taken)} already; nothing was written",
            fix="choose an empty folder: proctor init my-evals",
        )
    (folder / ".proctor").mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    with (folder / ".gitignore").open("a", encoding="utf-8") as ignored:
        ignored.write(".proctor/history.db*\n")
    (folder / ".proctor" / SCHEMA_FILE).write_bytes(codec.encode_pretty(schema()) + b"\n")
    if as_json:
        click.echo(codec.encode_pretty({"wrote": [folder / file.name for file in files]}))
        return
    for file in files:
        click.echo(f"wrote {folder / file.name}")
    change = "" if folder == Path() else f"cd {folder} && "
    click.echo(f"\nnow run it:  {change}proctor run eval.yaml")
