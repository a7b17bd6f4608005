"""`proctor sessions`: list, show and score recorded sessions, and learn rubrics from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli import options as cli
from proctor.cli.evaluation import pattern_option
from proctor.cli.options import PATH, CommandGroup, combine, echo_stderr, json_option, print_json
from proctor.cli.session_scoring import (
    evaluate,
    evaluate_batch,
    id_option,
    judge_options,
    judge_settings,
    log_format_option,
    replace_resume_fix,
    rubrics,
)
from proctor.errors import ConfigError, RunInterrupted
from proctor.records.formatting import format_count
from proctor.reports.format import single_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from proctor.records.rubric import RubricSet
    from proctor.sessions.importers.imported_session import ImportedSession
    from proctor.sessions.importers.session_files import SessionFiles
    from proctor.wiring.scoring.learning import Agreement, LearningResult
    from proctor.wiring.scoring.manifest import ScoredSession


MAX_PROBLEMS = 20


@click.command("learn", short_help="Learn rubrics from sessions with known scores.")
@cli.option("--manifest FILE", "Learn from the sessions in this JSON or YAML file: [{path, score}, …].", required=True)
@cli.option("--model MODEL", "Propose rubrics with this model. Example: openai:gpt-4o.", required=True)
@judge_options("--judge MODEL", "Score the held-out sessions with this model. Default: the same as --model.")
@cli.option("--output FILE", "Write the rubrics to this .json file.", required=True)
@cli.option("--overwrite", "Replace an existing rubric file.")
@cli.option(
    "--held-out PERCENT", "Check the rubrics on this share of the sessions.", type=cli.Share(0, 0.9), default="30%"
)
@cli.option("--max-rubrics --most N", "Keep at most N rubrics.", type=cli.POSITIVE_INTEGER, default=6, into="most")
@cli.option(
    "--rounds N", "Propose rubrics N times, each time from different sessions.", type=cli.POSITIVE_INTEGER, default=5
)
@cli.option("--embedder ADDRESS", "Find near-duplicate rubrics with this embedder. Example: local:minilm.")
@cli.seed_option
@cli.option(
    "--check-only --resume", "Only check the rubrics in the --output file; do not propose new ones.", into="resume"
)
@cli.redact_option("secrets")
@cli.quiet_option
@cli.budget_option
@cli.common_options
def learn(manifest: Path, output: Path, overwrite: bool, **options: Any) -> int:
    """Learn rubrics from sessions with known scores, and check them on held-out sessions.

    \b
    proctor sessions learn --manifest scored.json --model openai:gpt-4o --output rubrics.json

    The check measures the rank correlation (Kendall's tau) between the known scores and the rubrics'
    scores. With too few
    sessions the check is inconclusive, and the output says so. The rubrics are written before the check:
    after an interruption, continue with --check-only.
    """
    from proctor.evaluators.rubric_files import load_rubrics
    from proctor.records import codec
    from proctor.reports.rubric_files import write_json

    _check_output(output, manifest, options["history"], overwrite=overwrite or options["resume"])
    proposed_rubrics = load_rubrics(output) if options["resume"] else None
    is_saved = proposed_rubrics is not None

    def describe_resume() -> str:
        return "add --check-only to the same command" if is_saved else "run the command again"

    def save(rubrics: RubricSet) -> None:
        nonlocal is_saved
        is_saved = True
        write_json(output, codec.to_plain(rubrics))
        if not (options["quiet"] or options["as_json"]):
            learned = rubrics.metadata["learned"]
            click.echo(
                f"learned {format_count(len(rubrics), 'rubric')} from "
                f"{format_count(learned['learned_from'], 'session')}; checking them on "
                f"{format_count(learned['held_out'], 'held-out session')}",
                err=True,
            )

    try:
        with cli.redirect_prints(options["as_json"]), replace_resume_fix(describe_resume):
            scored_sessions, warnings = _read_manifest(manifest, output)
            learned = _learn(scored_sessions, options, proposed_rubrics, save)
    except RunInterrupted:
        click.echo(f"interrupted: the rubrics are in {output}; add --check-only to continue", err=True)
        return cli.INTERRUPTED
    write_json(output, codec.to_plain(learned.rubrics))
    learned = learned._replace(notes=(*warnings, *learned.notes))
    for note in learned.notes:
        cli.echo_stderr(note)
    _show_learned(learned, output, options)
    return 0


def _check_output(output: Path, manifest: Path, history: str | None, *, overwrite: bool) -> None:
    from proctor.cli.outputs import RUBRICS, check_file, reject_overwriting_inputs

    reject_overwriting_inputs(output, {"--manifest": manifest})
    if output.suffix.lower() != ".json":
        raise ConfigError(
            f"must end in .json, got {output}", where="--output", fix=f"write --output {output.with_suffix('.json')}"
        )
    check_file(output, RUBRICS, "--output", history)
    if output.exists() and output.stat().st_size and not overwrite:
        raise ConfigError(
            "the file already exists",
            where=f"--output {output}",
            fix="name another file; --overwrite replaces it, --check-only checks the rubrics in it",
        )


def _read_manifest(manifest: Path, output: Path) -> tuple[list[ScoredSession], list[str]]:
    """Return the sessions with their scores, and warnings about unreadable files."""
    from proctor.reports.rubric_files import is_from
    from proctor.sessions import current as sessions
    from proctor.wiring.scoring.manifest import read_manifest

    warnings: list[str] = []
    token = sessions.warnings.set(warnings)
    try:
        scored_sessions = read_manifest(manifest)
    finally:
        sessions.warnings.reset(token)
    for session in scored_sessions:
        if is_from(session.sample.metadata["source"], output):
            raise ConfigError(
                f"session {session.sample.id!r} of the manifest is in this file, which would be overwritten",
                where=f"--output {output}",
                fix="name another file",
            )
    return scored_sessions, warnings


def _learn(
    scored_sessions: list[ScoredSession], options: dict[str, Any], proposed_rubrics: Any, save: Any
) -> LearningResult:
    from proctor.core import bridge
    from proctor.engine.start import RunControls
    from proctor.records.rubric import DEFAULT_SCALE
    from proctor.wiring.open_history import open_history
    from proctor.wiring.scoring.learning import learn_rubrics
    from proctor.wiring.scoring.manifest import Scoring

    display = cli.progress(options, outcomes=lambda _: [])
    learned: LearningResult = bridge.run(
        learn_rubrics(
            scored_sessions,
            options["model"],
            judge=options["judge"],
            history=open_history(options["history"]),
            controls=RunControls(watch=display),
            scoring=Scoring(
                max_concurrent=options["max_concurrent"],
                budget=cli.parse_budget(options["budget"]),
                judge_options=judge_settings(options),
                redact=options["redact"],
            ),
            max_rubrics=options["most"],
            held_out_share=options["held_out"],
            **{name: options[name] for name in ("rounds", "seed", "embedder")},
            scale=options["scale"] or DEFAULT_SCALE,
            proposed=proposed_rubrics,
            save=save,
        )
    )
    return learned


def _show_learned(learned: LearningResult, output: Path, options: dict[str, Any]) -> None:
    from proctor.reports.rubrics import describe_judge_usage

    with cli.tolerate_closed_pipe():
        if options["as_json"]:
            values = {**learned._asdict(), "output": str(output)}
            cli.print_json({**values, "asked": values.pop("usage").content()})
        elif not options["quiet"]:
            for rubric in learned.rubrics:
                agreement = _describe_agreement(learned.by_rubric[rubric.id])
                click.echo(f"{cli.display_name(rubric.name)}: {agreement}")
            click.echo(f"total: {_describe_agreement(learned.total)}")
            if usage := describe_judge_usage(learned.usage):
                click.echo(f"models: {usage}")
            if learned.run_id:
                click.echo(f"run {learned.run_id}")
            click.echo(f"wrote {output}")


def _describe_agreement(agreement: Agreement) -> str:
    sessions = format_count(agreement.n, "held-out session")
    if agreement.tau is None:
        return f"{agreement.verdict} ({sessions})"
    bounds = agreement.interval
    interval = "" if bounds is None else f", 95% interval {bounds[0]:.2f} to {bounds[1]:.2f}"
    note = f" ({agreement.note})" if agreement.note else ""
    return f"tau {agreement.tau:.2f} over {sessions}{interval}: {agreement.verdict}{note}"


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
    if session.error is not None:
        yield "error", session.error
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
        echo_stderr(f"… and {format_count(more, 'more file')} with problems")
