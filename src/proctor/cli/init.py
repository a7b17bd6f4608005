"""`proctor init`: create a small project that runs."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import PATH, json_option, print_json
from proctor.core import resources
from proctor.errors import UsageError
from proctor.records import codec


@click.command("init")
@click.argument("folder", default=".", type=PATH)
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Create a small project in FOLDER: an eval file, a dataset, a target and an evaluator.

    \b
    proctor init my-evals
    """
    from proctor.wiring.eval_file import SCHEMA_FILE, build_schema

    template = resources.path("templates", "project")
    files = sorted(file for file in template.iterdir() if file.is_file())
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is a file", fix="choose a new folder: proctor init my-evals")
    existing = [file.name for file in files if (folder / file.name).exists()]
    if existing:
        raise UsageError(
            f"{folder} already contains {', '.join(existing)}; nothing was written",
            fix="choose an empty folder: proctor init my-evals",
        )
    (folder / ".proctor").mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    with (folder / ".gitignore").open("a", encoding="utf-8") as gitignore:
        gitignore.write(".proctor/history.db*\n")
    (folder / ".proctor" / SCHEMA_FILE).write_bytes(codec.encode_pretty(build_schema()) + b"\n")
    if as_json:
        print_json({"wrote": [folder / file.name for file in files]})
        return
    for file in files:
        click.echo(f"wrote {folder / file.name}")
    change_folder = "" if folder == Path() else f"cd {folder} && "
    click.echo(f"\nnow run it:  {change_folder}proctor run eval.yaml")
