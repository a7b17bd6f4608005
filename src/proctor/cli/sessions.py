"""`proctor sessions`: list, show and score recorded sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.evaluation import pattern_option
from proctor.cli.options import PATH, CommandGroup, combine, echo_stderr, json_option, print_json
from proctor.cli.session_learning import learn
from proctor.cli.session_scoring import evaluate, evaluate_batch, id_option, log_format_option, rubrics
from proctor.records.formatting import format_count
from proctor.reports.format import single_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from proctor.sessions.importers.imported_session import ImportedSession
    from proctor.sessions.importers.session_files import SessionFiles

MAX_PROBLEMS = 20
ID_WIDTH, INPUT_WIDTH, SOURCE_WIDTH = 80, 60, 300

source_options = combine(click.argument("path", type=PATH), log_format_option, pattern_option)


@click.group("sessions", cls=CommandGroup)
def command() -> None:
    """List, show and score recorded sessions: chat logs and traces."""


@command.command("show")
@source_options
@id_option
@json_option
def show(path: Path, session_id: str | None, form: str | None, pattern: str | None, as_json: bool) -> None:
    """Show a recorded session as a transcript.

    \b
    proctor sessions show chat.jsonl
    proctor sessions show traces.json --format otlp --id 4bf92f3577b3
    """
    from proctor.datasets.sessions import select_session
    from proctor.records import codec
    from proctor.reports.transcript import render_transcript
    from proctor.sessions.importers.session_files import SessionFiles

    files = SessionFiles(path, form, pattern=pattern)
    name, session = select_session(files, session_id)
    _show_problems(files)
    if as_json:
        details = {"id": name, "session_id": session.id, "problems": list(map(str, files.problems))}
        print_json({**codec.to_plain(session), **details})
        return
    for label, value in _describe_session(name, session):
        click.echo(f"{label}: {single_line(value, SOURCE_WIDTH)}")
    click.echo()
    click.echo(render_transcript(session.session))


@command.command("list")
@source_options
@json_option
def list_(path: Path, form: str | None, pattern: str | None, as_json: bool) -> None:
    """List the sessions in a file, or in all files in a folder.

    \b
    proctor sessions list ~/.claude/projects
    proctor sessions list logs/ --pattern "*.jsonl"

    `sessions show`, `sessions evaluate` and `proctor run` accept these ids.
    """
    from proctor.datasets.sessions import name_sessions_uniquely
    from proctor.sessions.importers.session_files import SessionFiles

    files = SessionFiles(path, form, pattern=pattern)
    rows = []
    number = 0
    for name, session in name_sessions_uniquely(files):
        number += 1
        row = _build_row(name, session)
        if as_json:
            rows.append(row)
        else:
            click.echo("\n".join(_render_row(row)))
    _show_problems(files)
    if as_json:
        content = {"sessions": rows, "files": files.files, "damaged": files.problem_count}
        print_json({**content, "problems": list(map(str, files.problems))})
        return
    click.echo(f"{format_count(number, 'session')} in {format_count(files.files, 'file')}")


for _subcommand in (evaluate, evaluate_batch, rubrics, learn):
    command.add_command(_subcommand)


def _render_row(row: Mapping[str, Any]) -> Iterator[str]:
    counts = [format_count(row["messages"], "message"), format_count(row["tool_calls"], "tool call")]
    if row["tokens"] is not None:
        counts.append(format_count(row["tokens"], "token"))
    if unknown_count := sum(row["passed_over"].values()):
        counts.append(format_count(unknown_count, "unknown part"))
    yield f"{single_line(row['id'], ID_WIDTH)}  {row['format']}  {', '.join(counts)}"
    yield f"    {single_line(row['source'], SOURCE_WIDTH)}"
    if row["input"] is not None:
        yield f"    {single_line(row['input'], INPUT_WIDTH)}"


def _describe_session(name: str, session: ImportedSession) -> Iterator[tuple[str, Any]]:
    yield "session", name
    if name != session.id:
        yield "recorded as", session.id
    yield "format", session.format
    yield "source", session.source
    for key in ("title", "started_at", "ended_at", "scores"):
        if session.recorded.get(key) is not None:
            yield key.removesuffix("_at"), session.recorded[key]
    usage = session.session.known_usage()
    if usage is not None and usage.total_tokens is not None:
        cached = f", {usage.cached_tokens:,} of them from a cache" if usage.cached_tokens else ""
        yield "tokens", f"{usage.input_tokens or 0:,} + {usage.output_tokens or 0:,}{cached}"
    if session.unknown_parts:
        parts = ", ".join(f"{name} ({n})" for name, n in session.unknown_parts.items())
        yield "unknown parts, stored unchanged", parts


def _build_row(name: str, session: ImportedSession) -> dict[str, Any]:
    from proctor.evaluators.tool_calls import read_calls
    from proctor.records.session import Message

    return {
        "id": name,
        "session_id": session.id,
        "format": session.format,
        "source": session.source,
        "input": session.input,
        "messages": len(session.session[Message]),
        "tool_calls": len(read_calls(session.session.view())),
        "tokens": session.session.usage.total_tokens,
        "passed_over": session.unknown_parts,
    }


def _show_problems(files: SessionFiles) -> None:
    for problem in files.read_problems.by_file[:MAX_PROBLEMS]:
        echo_stderr(str(problem))
    if (more := files.read_problems.files - MAX_PROBLEMS) > 0:
        echo_stderr(f"… and {more:,} more files with problems")
