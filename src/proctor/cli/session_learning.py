"""`proctor sessions learn`: rubrics learned from sessions with known scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import (
    Share,
    budget_from,
    budget_option,
    complain,
    history_option,
    json_option,
    quiet_option,
    redact_option,
    shown,
)
from proctor.cli.session_scoring import judged_by, judging_options, silent, to_go_on
from proctor.errors import ConfigError, RunInterrupted

if TYPE_CHECKING:
    from proctor.records.rubric import RubricSet
    from proctor.wiring.scoring.learning import Agreement, Learned
    from proctor.wiring.scoring.manifest import Known

INTERRUPTED = 130
PLACE = click.Path(path_type=Path)


@click.command("learn")
@click.option("--manifest", type=PLACE, required=True, metavar="FILE",
              help="Sessions with known scores: [{path, score}, …], JSON or YAML.")  # fmt: skip
@click.option("--model", required=True, metavar="MODEL", help="Who proposes: provider:model.")
@judging_options("Who scores the held-out sessions. Default: --model.")
@click.option("--output", type=PLACE, required=True, metavar="FILE",
              help="The rubric file, which ends in .json.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Write over a rubric file that is there.")
@click.option("--held-out", type=Share(0, 0.9), default=0.3, show_default=True,
              help="The share of sessions that the rubrics are checked with.")  # fmt: skip
@click.option("--most", type=click.IntRange(1), default=6, show_default=True, help="Rubrics.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True,
              help="How often rubrics are proposed, each time from other sessions.")  # fmt: skip
@click.option("--embedder", metavar="ADDRESS", help="What near-duplicates are found by.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the choice of sessions.")
@click.option("--resume", is_flag=True, help="Check the rubrics that --output holds already.")
@redact_option("secrets")
@quiet_option()
@budget_option()
@history_option()
@json_option()
def learn(manifest: Path, output: Path, overwrite: bool, **options: Any) -> int:
    """Learn rubrics from sessions with known scores, and check them on sessions held out.

    \b
    proctor sessions learn --manifest scored.json --model openai:gpt-4o --output rubrics.json

    The check is Kendall's tau between the known scores and those by the rubrics. With few
    sessions it shows nothing, and says so. The rubrics are written as soon as they are proposed:
    what is ended after that is gone on with by --resume.
    """
    from proctor.cli.outcome import prints_aside
    from proctor.evaluators.rubric_files import load_rubrics
    from proctor.records import codec
    from proctor.reports.format import count
    from proctor.reports.rubric_files import write_json

    _check(output, manifest, options["history"], overwrite=overwrite or options["resume"])
    proposed = load_rubrics(output) if options["resume"] else None
    kept = proposed is not None

    def how() -> str:
        return "add --resume to the same command" if kept else "repeat the command"

    def keep(rubrics: RubricSet) -> None:
        nonlocal kept
        kept = True
        write_json(output, codec.plain(rubrics))
        if not silent(options):
            learned = rubrics.metadata["learned"]
            click.echo(
                f"{count(len(rubrics), 'rubric')} proposed from "
                f"{count(learned['learned_from'], 'session')}, to be checked with "
                f"{count(learned['held_out'], 'other')}",
                err=True,
            )

    try:
        with prints_aside(options["as_json"]), to_go_on(how):
            learned = _learned(_known(manifest, output), options, proposed, keep)
    except RunInterrupted:
        click.echo(f"interrupted: the rubrics are in {output}; --resume goes on", err=True)
        return INTERRUPTED
    write_json(output, codec.plain(learned.rubrics))
    for note in learned.notes:
        complain(note)
    _tell(learned, output, options)
    return 0


def _check(output: Path, manifest: Path, history: str | None, *, overwrite: bool) -> None:
    """Refuse a rubric file that cannot be written, or that is somebody's work."""
    from proctor.cli.outputs import RUBRICS, check_file, refuse_what_is_read

    refuse_what_is_read(output, {"--manifest": manifest})
    if output.suffix.lower() != ".json":
        raise ConfigError("rubrics are written as .json", where=str(output))
    check_file(output, RUBRICS, "--output", history)
    if output.exists() and output.stat().st_size and not overwrite:
        raise ConfigError(
            "it is there already",
            where=f"--output {output}",
            fix="name another file; --overwrite writes over it, --resume checks what it holds",
        )


def _known(manifest: Path, output: Path) -> tuple[list[Known], list[str]]:
    """The sessions with their scores, none of which may be written over; what was not read."""
    from proctor.reports.rubric_files import is_of
    from proctor.sessions import current as sessions
    from proctor.wiring.scoring.manifest import read_manifest

    unread: list[str] = []
    heard = sessions.warnings.set(unread)
    try:
        known = read_manifest(manifest)
    finally:
        sessions.warnings.reset(heard)
    for one in known:
        if is_of(one.sample.metadata["source"], output):
            raise ConfigError(
                f"session {one.sample.id!r} of the manifest is in it, and would be written over",
                where=f"--output {output}",
                fix="name another file",
            )
    return known, unread


def _learned(
    found: tuple[list[Known], list[str]], options: dict[str, Any], proposed: Any, keep: Any
) -> Learned:
    from proctor.core import bridge
    from proctor.engine.start import Conduct
    from proctor.records.rubric import USUAL_SCALE
    from proctor.reports.live import live_display
    from proctor.wiring.open_history import open_history
    from proctor.wiring.scoring.learning import learn_rubrics
    from proctor.wiring.scoring.manifest import Scoring

    known, unread = found
    display = live_display(not silent(options), outcomes=lambda _: [])
    learned: Learned = bridge.run(
        learn_rubrics(
            known,
            options["model"],
            judge=options["judge"],
            history=open_history(options["history"]),
            how=Conduct(watch=display),
            scoring=Scoring(
                max_concurrent=options["max_concurrent"],
                budget=budget_from(options["budget"]),
                judged=judged_by(options),
                redact=options["redact"],
            ),
            most=options["most"],
            rounds=options["rounds"],
            held_out=options["held_out"],
            seed=options["seed"],
            embedder=options["embedder"],
            scale=options["scale"] or USUAL_SCALE,
            proposed=proposed,
            keep=keep,
        )
    )
    return learned._replace(notes=(*unread, *learned.notes))


def _tell(learned: Learned, output: Path, options: dict[str, Any]) -> None:
    from proctor.cli.outcome import until_nobody_reads
    from proctor.records import codec
    from proctor.reports.rubrics import asked_in_words

    with until_nobody_reads():
        if options["as_json"]:
            told = {**learned._asdict(), "asked": learned.asked.content(), "output": str(output)}
            click.echo(codec.encode_pretty(told))
        elif not options["quiet"]:
            for rubric in learned.rubrics:
                click.echo(f"{shown(rubric.name)}: {_agreed(learned.by_rubric[rubric.id])}")
            click.echo(f"total: {_agreed(learned.total)}")
            if asked := asked_in_words(learned.asked):
                click.echo(f"models: {asked}")
            if learned.run_id:
                click.echo(f"run {learned.run_id}")
            click.echo(f"wrote {output}")


def _agreed(found: Agreement) -> str:
    """An agreement in words."""
    from proctor.reports.format import count

    sessions = count(found.n, "held-out session")
    if found.tau is None:
        return f"{found.verdict} ({sessions})"
    span = "" if found.interval is None else ", 95 % interval {:.2f} to {:.2f}".format(*found.interval)
    note = f" ({found.note})" if found.note else ""
    return f"tau {found.tau:.2f} over {sessions}{span}: {found.verdict}{note}"
