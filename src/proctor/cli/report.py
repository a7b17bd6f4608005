"""`proctor report`: write a stored run to a file, such as one HTML page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli import options as cli
from proctor.errors import ConfigError
from proctor.reports.formats import ReportFormat, select_formats

if TYPE_CHECKING:
    from proctor.comparison.report import EvalReport

DEFAULT_FORMAT = "html"
# The format of a file without --format.
FORMATS_BY_ENDING = {
    ".csv": "csv",
    ".htm": "html",
    ".html": "html",
    ".json": "json",
    ".md": "markdown",
    ".txt": "text",
    ".xml": "junit",
}
STDOUT = "-"
# The parameter of a report format that receives the cards of a run's judges.
CARDS = "cards"


@click.command("report")
@click.argument("run", default="latest")
@cli.option(
    "--format NAME",
    "Write this format: html, markdown, json, csv, junit, text, inspect, promptfoo-csv, "
    "every-eval-ever, a plugin's name, or module:attribute; repeat for more. "
    "Default: the format of the --output file, else html.",
    multiple=True,
    into="formats",
)
@cli.option("--output PATH", "Write to this file or folder; - prints the report. Default: this folder.", default=".")
@cli.option(
    "--option NAME=VALUE",
    "Set an option of the format; repeat for more. Example: model=openai/gpt-5.",
    multiple=True,
    into="settings",
)
@cli.history_option
def command(run: str, *, formats: tuple[str, ...], output: str, settings: tuple[str, ...], history: str | None) -> None:
    """Write the report of a run to a file. RUN is an id, a name, or "latest" (the default); RUN@CONFIGURATION selects
    one.

    \b
    proctor report                          write report.html
    proctor report latest --output run.csv
    proctor report main --format markdown --format junit --output reports
    proctor report --format csv --output -  print it
    proctor report --format every-eval-ever --output shared \\
      --option model=openai/gpt-5 --option organization=Lab --option relationship=third_party
    """
    from proctor.cli.outputs import OutputType, check_file, check_folder
    from proctor.wiring.compare_runs import open_report
    from proctor.wiring.open_history import open_history

    names = formats or [FORMATS_BY_ENDING.get(Path(output).suffix.lower(), DEFAULT_FORMAT)]
    selected = select_formats(names, cli.parse_pairs(settings, "--option", "NAME=VALUE"))
    paths = _choose_paths(selected, output)
    if paths and paths[0].suffix.lower() == ".eval":
        fix = f"name a .json file: --output {paths[0].with_suffix('.json')}"
        raise ConfigError("a .eval file is an archive, and the log is written as JSON", where="--output", fix=fix)
    for path, report_format in zip(paths, selected, strict=False):
        if report_format.is_folder:
            check_folder(path, "--output")
            continue
        check_folder(path.parent, "--output")
        check_file(path, OutputType("a report", report_format.signature.encode()), "--output", history)
    store = open_history(history)
    opened = open_report(run, store)
    report = opened.report if opened.configuration is None else opened.report.for_configuration(opened.configuration)
    if opened.report.metadata is not None and any(each.accepts(CARDS) for each in selected):
        from proctor.validity.describe_card import list_cards

        cards = list_cards(store, opened.report.metadata)
        selected = [each._replace(options={**each.options, CARDS: cards}) for each in selected]
    paths = [_name_file(path, each, report, history) for path, each in zip(paths, selected, strict=False)]
    if output == STDOUT:
        click.echo(selected[0].render(report), nl=False)
    for path, report_format in zip(paths, selected, strict=False):
        if not path.parent.exists():
            click.echo(f"created the folder {path.parent}")
        report_format.write(report, path)
        click.echo(f"wrote {path}")


def _name_file(path: Path, report_format: ReportFormat, report: EvalReport, history: str | None) -> Path:
    """Return the path of a report in a folder, with the name that the format gives to this run, if it gives one."""
    from proctor.cli.outputs import OutputType, check_file

    name_file = getattr(report_format.plugin, "name_file", None)
    if report_format.is_folder or path.name != report_format.file_name or name_file is None:
        return path
    named = path.with_name(str(name_file(report_format.plugin(), report)))
    check_file(named, OutputType("a report", report_format.signature.encode()), "--output", history)
    return named


def _choose_paths(selected: list[ReportFormat], output: str) -> list[Path]:
    """Return the file of each format; none if the report is printed."""
    path = Path(output)
    is_folder = path.is_dir() or output.endswith(("/", os.sep)) or not (path.suffix or path.exists())
    if len(selected) > 1 and (output == STDOUT or not is_folder):
        raise ConfigError(
            f"{len(selected)} formats do not fit into one file",
            where=f"--output {output}",
            fix="name a folder: --output reports",
        )
    if output == STDOUT:
        return []
    return [path / report_format.file_name for report_format in selected] if is_folder else [path]
