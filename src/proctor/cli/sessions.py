"""`proctor sessions`: recorded sessions, as logs of chats and traces hold them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import Decorator, complain, json_option
from proctor.cli.session_rubrics import SUBCOMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from proctor.sessions.importers.reading import SessionFiles
    from proctor.sessions.importers.shapes import Imported

PROBLEMS_SHOWN = 20
ASKED_WIDTH = 60
SOURCE_WIDTH = 300


@click.group("sessions")
def command() -> None:
    """Look at recorded sessions: logs of chats, and traces."""


def _format_option() -> Decorator:
    return click.option("--format", "form", metavar="NAME", help="The format; found out by default.")


def _pattern_option() -> Decorator:
    return click.option("--pattern", metavar="GLOB", help="Which files of a folder.")


@command.command("show")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--id", "session_id", metavar="ID", help="Which one, if there are several.")
@_format_option()
@_pattern_option()
@json_option()
def show(path: Path, session_id: str | None, form: str | None, pattern: str | None, as_json: bool) -> None:
    """Show a recorded session as a transcript.

    \b
    proctor sessions show chat.jsonl
    proctor sessions show traces.json --format otlp --id 4bf92f3577b3
    """
    from proctor.datasets.sessions import chosen
    from proctor.records import codec
    from proctor.reports.format import line
    from proctor.reports.transcript import transcript
    from proctor.sessions.importers.reading import SessionFiles

    files = SessionFiles(path, form, pattern=pattern)
    name, found = chosen(files, session_id)
    _complain(files)
    if as_json:
        told = {"id": name, "session_id": found.id, "problems": list(map(str, files.problems))}
        click.echo(codec.encode_pretty({**codec.plain(found), **told}))
        return
    for fact, value in _facts(name, found):
        click.echo(f"{fact}: {line(value, 300)}")
    click.echo()
    click.echo(transcript(found.session))


@command.command("list")
@click.argument("path", type=click.Path(path_type=Path))
@_format_option()
@_pattern_option()
@json_option()
def listed(path: Path, form: str | None, pattern: str | None, as_json: bool) -> None:
    """List the sessions of a file, or of all files in a folder.

    \b
    proctor sessions list ~/.claude/projects
    proctor sessions list logs/ --pattern "*.jsonl"

    The ids are those by which `show`, `evaluate` and runs know them.
    """
    from proctor.datasets.sessions import named_apart
    from proctor.records import codec
    from proctor.reports.format import count
    from proctor.sessions.importers.reading import SessionFiles

    files = SessionFiles(path, form, pattern=pattern)
    rows = []
    number = 0
    for name, found in named_apart(files):
        number += 1
        row = _row(name, found)
        if as_json:
            rows.append(row)
        else:
            click.echo("\n".join(_in_words(row)))
    _complain(files)
    if as_json:
        told = {"sessions": rows, "files": files.files, "damaged": files.damaged}
        click.echo(codec.encode_pretty({**told, "problems": list(map(str, files.problems))}))
        return
    click.echo(f"{count(number, 'session')} in {count(files.files, 'file')}")


def _in_words(row: Mapping[str, Any]) -> Iterator[str]:
    """A session in a list: its id and what is in it, where it stands, what was asked."""
    from proctor.reports.format import count, line

    numbers = [count(row["messages"], "message"), count(row["tool_calls"], "tool call")]
    if row["tokens"] is not None:
        numbers.append(count(row["tokens"], "token"))
    if over := sum(row["passed_over"].values()):
        numbers.append(f"{count(over, 'part')} not understood")
    yield f"{line(row['id'], 80)}  {row['format']}  {', '.join(numbers)}"
    yield f"    {line(row['source'], SOURCE_WIDTH)}"
    if row["input"] is not None:
        yield f"    {line(row['input'], ASKED_WIDTH)}"


def _facts(name: str, found: Imported) -> list[tuple[str, Any]]:
    """What stands above a transcript."""
    usage = found.session.known_usage()
    facts: list[tuple[str, Any]] = [("session", name)]
    if name != found.id:
        facts.append(("recorded as", found.id))
    facts += [("format", found.format), ("source", found.source)]
    facts += [
        (key.removesuffix("_at"), found.recorded[key])
        for key in ("title", "started_at", "ended_at", "scores")
        if found.recorded.get(key) is not None
    ]
    if usage is not None and usage.total_tokens is not None:
        told = f"{usage.input_tokens or 0:,} + {usage.output_tokens or 0:,}"
        if usage.cached_tokens:
            told += f", {usage.cached_tokens:,} of them read from a cache"
        facts.append(("tokens", told))
    if found.passed_over:
        over = ", ".join(f"{kind} ({n})" for kind, n in found.passed_over.items())
        facts.append(("not understood, but kept", over))
    return facts


def _row(name: str, found: Imported) -> dict[str, Any]:
    from proctor.evaluators.tool_calls import calls_of
    from proctor.records.session import Message

    return {
        "id": name,
        "session_id": found.id,
        "format": found.format,
        "source": found.source,
        "input": found.input,
        "messages": len(found.session[Message]),
        "tool_calls": len(calls_of(found.session.view())),
        "tokens": found.session.usage.total_tokens,
        "passed_over": found.passed_over,
    }


def _complain(files: SessionFiles) -> None:
    """Say on standard error what could not be read, file by file."""
    for problem in files.damage.by_file[:PROBLEMS_SHOWN]:
        complain(str(problem))
    if (more := files.damage.files - PROBLEMS_SHOWN) > 0:
        complain(f"… and {more:,} more that cannot be read as they are")


for _scoring in SUBCOMMANDS:
    command.add_command(_scoring)
