"""`proctor sessions evaluate` and `evaluate-batch`: sessions scored by rubrics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import (
    Decorator,
    budget_from,
    budget_option,
    canary_option,
    complain,
    history_option,
    json_option,
    quiet_option,
    redact_option,
    shown,
    together,
)
from proctor.cli.session_learning import learn
from proctor.cli.session_scoring import (
    judge_of,
    judged_by,
    judging_options,
    refuse_other_scale,
    silent,
    to_go_on,
)
from proctor.errors import ConfigError, RunInterrupted

if TYPE_CHECKING:
    from proctor.engine.start import Conduct
    from proctor.ports import RunView
    from proctor.records.report import EvalReport
    from proctor.records.sample import Sample
    from proctor.reports.rubric_files import Names, ResultFiles
    from proctor.wiring.prepare import Evaluation

NO_VERDICT, INTERRUPTED = 3, 130
UNFINISHED = "the latest unfinished run"
PLACE = click.Path(path_type=Path)


def scoring_options() -> Decorator:
    """By what, by whom and how sessions are scored."""
    return together(
        click.option("--rubrics", required=True, metavar="FILE",
                     help='A rubric file, or "starter".'),
        judging_options(),
        click.option("--template", type=PLACE, metavar="FILE",
                     help="A judge template of your own."),
        click.option("--format", "form", metavar="NAME", help="The format of the logs."),
        click.option("--fresh", is_flag=True, help="Ask again what was answered in earlier runs."),
        click.option("--name", help="The name under which the run is kept."),
        redact_option("secrets"),
        canary_option(),
        quiet_option(),
        budget_option(),
        history_option(),
        json_option(),
    )  # fmt: skip


@click.command("evaluate")
@click.option("--session", type=PLACE, required=True, metavar="FILE", help="One recorded session.")
@click.option("--id", "session_id", metavar="ID", help="Which one, where the file holds several.")
@click.option("--output", type=PLACE, metavar="FILE", help="Where the result is written.")
@scoring_options()
def evaluate(session: Path, session_id: str | None, output: Path | None, **options: Any) -> int:
    """Score one recorded session by rubrics.

    \b
    proctor sessions evaluate --rubrics starter --session chat.jsonl --output result.json

    What was answered before is found again, so after an interruption just repeat the command.
    """
    from proctor.datasets.sessions import SessionDataset
    from proctor.records.rubric import columns_in
    from proctor.reports.live import live_display
    from proctor.reports.rubric_files import placed, with_run, write_json
    from proctor.reports.rubrics import session_result

    _check(output, session, options)
    dataset = SessionDataset.one(session, session_id, options["form"])
    told = _evaluation(dataset, options, session.stem)
    display = live_display(not silent(options), outcomes=lambda _: [])
    interrupted = False
    try:
        with to_go_on(lambda: "repeat the command"):
            report = _run(told, options, _conduct(options, watch=display))
    except RunInterrupted as stopped:
        interrupted, report = True, _kept(stopped, options)
        if not len(report.results):
            click.echo("interrupted: what was answered is kept; repeat the command to go on", err=True)
            return INTERRUPTED
    content = session_result(report.results[0], columns_in(report.metadata))
    result = with_run(placed(content, session), report)
    if output is not None:
        write_json(output, result)
    _tell(report, options, result, "" if output is None else f"wrote {output}")
    if interrupted:
        return INTERRUPTED
    return 0 if result["summary"]["rubrics_evaluated"] else NO_VERDICT


@click.command("evaluate-batch")
@click.option("--sessions-dir", type=PLACE, required=True, metavar="DIR", help="Recorded sessions.")
@click.option("--output-dir", type=PLACE, required=True, metavar="DIR", help="For the results.")
@click.option("--pattern", metavar="GLOB", help="Only files that fit it, such as *.jsonl.")
@click.option("--parallel", type=click.IntRange(1), default=5, show_default=True,
              help="Sessions in hand at a time.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), help="Score only the first N sessions.")
@click.option("--resume", metavar="[ID]", is_flag=False, flag_value=UNFINISHED,
              help="Go on with what is missing.")  # fmt: skip
@click.option("--allow-changes", is_flag=True, help="Resume although something has changed.")
@click.option("--retry-errors", is_flag=True,
              help="With --resume: score sessions again whose rubrics failed.")  # fmt: skip
@scoring_options()
def evaluate_batch(sessions_dir: Path, output_dir: Path, **options: Any) -> int:
    """Score all recorded sessions of a folder by rubrics.

    \b
    proctor sessions evaluate-batch --rubrics rubrics.json --sessions-dir logs --output-dir results

    Writes NAME_result.json as soon as a session is scored, and summary.json when all are.
    """
    from proctor.reports.format import count
    from proctor.reports.live import live_display
    from proctor.reports.rubric_files import SUMMARY, Names, ResultFiles
    from proctor.wiring.scoring.manifest import ToldSessions, columns_for

    _refuse_folder(output_dir, sessions_dir, options["history"])
    names = Names()
    dataset = ToldSessions(sessions_dir, options["form"], pattern=options["pattern"], told=names.of)
    _refuse_names(output_dir, dataset, names)
    told = _evaluation(dataset, options, sessions_dir.resolve().name)
    files = ResultFiles(output_dir, columns_for(told), names, sessions_dir)
    display = live_display(not silent(options), outcomes=files.words)

    def watch(view: RunView) -> AbstractContextManager[object]:
        files.begun(view)
        return contextlib.nullcontext() if display is None else display(view)

    report = _run(told, options, _conduct(options, watch=watch, heard=files.heard))
    summary = files.finish(report)
    written = f"wrote {output_dir / SUMMARY} and {count(len(files), 'result')}"
    _tell(report, options, summary, written)
    _tell_of_others(files, output_dir)
    return 0 if summary["details"]["sessions_scored"] else NO_VERDICT


def _check(output: Path | None, session: Path, options: dict[str, Any]) -> None:
    """Refuse a file that cannot be written, or that is read."""
    from proctor.cli.outputs import RESULT, check_file, refuse_what_is_read
    from proctor.evaluators.rubric_files import STARTER

    rubrics = options["rubrics"]
    refuse_what_is_read(
        output,
        {
            "--session": session,
            "--rubrics": None if rubrics == STARTER else Path(rubrics),
            "--template": options["template"],
        },
    )
    check_file(output, RESULT, "--output", options["history"])


def _refuse_folder(output_dir: Path, sessions_dir: Path, history: str | None) -> None:
    """Refuse a folder whose results would be lost, or taken for sessions the next time."""
    from proctor.cli.outputs import SUMMARY, check_file, check_folder, is_within
    from proctor.reports.rubric_files import SUMMARY as SUMMARY_FILE
    from proctor.reports.rubric_files import other_sessions_in

    check_folder(output_dir, "--output-dir")
    fix = "write to a folder of its own"
    if is_within(output_dir, sessions_dir):
        same = is_within(sessions_dir, output_dir)
        what = "the sessions lie in it" if same else "it lies among the sessions"
        why = f"{what}, so the next batch would read its results as sessions"
        raise ConfigError(why, where=f"--output-dir {output_dir}", fix=fix)
    if other := other_sessions_in(output_dir, sessions_dir):
        what = f"it holds results of other sessions, {other}, that would be written over"
        raise ConfigError(what, where=f"--output-dir {output_dir}", fix=fix)
    check_file(output_dir / SUMMARY_FILE, SUMMARY, "--output-dir", history)


def _refuse_names(output_dir: Path, sessions: Iterable[Sample[Any, Any]], names: Names) -> None:
    """Refuse a folder in which something else has the name of a result to come."""
    from proctor.cli.outputs import RESULT, check_file
    from proctor.reports.rubric_files import ENDING

    strange = {path for path in output_dir.glob(f"*{ENDING}") if not RESULT.is_in(path)}
    for sample in sessions if strange else ():
        path = output_dir / f"{names.of(sample.id)}{ENDING}"
        if path in strange:
            check_file(path, RESULT, "--output-dir")


def _tell_of_others(files: ResultFiles, output_dir: Path) -> None:
    from proctor.reports.format import count

    for run_id in files.replaced():
        complain(
            f"results of run {run_id} in {output_dir} were written over; `proctor show {run_id}` "
            "still has them"
        )
    if strangers := files.strangers():
        complain(
            f"{output_dir} holds {count(len(strangers), 'result')} of other runs too, such as "
            f"{strangers[0]}: take them away, or write to a folder of its own"
        )


@click.command("rubrics")
@click.argument("file", required=False)
@click.option("--text", "as_text", is_flag=True, help="Print the file itself.")
@json_option()
def rubrics(file: str | None, as_text: bool, as_json: bool) -> None:
    """Check a rubric file and list its rubrics; without FILE those that ship.

    \b
    proctor sessions rubrics mine.yaml
    proctor sessions rubrics --text > mine.yaml
    """
    from proctor.evaluators.rubric_files import STARTER, load_rubrics, text_of
    from proctor.records import codec
    from proctor.records.rubric import USUAL_SCALE, further_keys, scale_of

    found = load_rubrics(file or STARTER)
    for part in (found, *found):
        if warning := further_keys(part):
            complain(f"warning: {warning}")
    if as_text:
        click.echo(text_of(file or STARTER), nl=False)
    elif as_json:
        click.echo(codec.encode_pretty(found))
    else:
        for one in found:
            low, high = scale_of(one, found.scale or USUAL_SCALE)
            weight = f"weight {one.weight:g}, scale {low:g} to {high:g}"
            click.echo(f"{shown(one.id)}: {shown(one.name)} ({weight})")


SUBCOMMANDS = (evaluate, evaluate_batch, rubrics, learn)


def _evaluation(dataset: Any, options: dict[str, Any], name: str) -> Evaluation:
    from proctor.evaluators.rubric_files import load_rubrics
    from proctor.records.rubric import further_keys
    from proctor.wiring.scoring.manifest import Scoring, scoring_of

    rubrics = load_rubrics(options["rubrics"])
    if warning := further_keys(rubrics):
        complain(f"warning: {warning}")
    refuse_other_scale(rubrics, options["scale"])
    scoring = Scoring(
        parallel=options.get("parallel", 1),
        max_concurrent=options["max_concurrent"],
        budget=budget_from(options["budget"]),
        limit=options.get("limit"),
        judged={"template": options["template"], **judged_by(options)},
        redact=options["redact"],
        canary=options["canary"],
    )
    judge = judge_of(options["judge"])
    return scoring_of(dataset, rubrics, judge, scoring, name=options["name"] or name)


def _conduct(options: dict[str, Any], **how: Any) -> Conduct:
    from proctor.engine.start import Conduct

    allow, retry = bool(options.get("allow_changes")), bool(options.get("retry_errors"))
    if not options.get("resume") and (allow or retry):
        raise ConfigError("--retry-errors and --allow-changes go with --resume")
    return Conduct(allow_changes=allow, retry_errors=retry, fresh=options["fresh"], **how)


def _run(told: Evaluation, options: dict[str, Any], how: Conduct) -> EvalReport:
    from proctor.cli.outcome import prints_aside
    from proctor.core import bridge
    from proctor.wiring.evaluate import execute
    from proctor.wiring.open_history import open_history

    resume = options.get("resume")
    with prints_aside(options["as_json"]):
        history = open_history(options["history"])
        from_run = True if resume == UNFINISHED else resume or False
        return bridge.run(execute(told, history, how, resume_from=from_run))


def _kept(stopped: RunInterrupted, options: dict[str, Any]) -> EvalReport:
    """What an interrupted run has finished."""
    from proctor.wiring.open_history import look_up, open_history

    return look_up(open_history(options["history"]), stopped.run_id)


def _tell(report: EvalReport, options: dict[str, Any], content: Any, written: str) -> None:
    """What came of it on the screen, and what it cost; warnings in any case."""
    from proctor.cli.outcome import until_nobody_reads
    from proctor.records import codec
    from proctor.reports.rubrics import in_words, warnings_of

    with until_nobody_reads():
        if options["as_json"]:
            click.echo(codec.encode_pretty(content))
        elif not options["quiet"]:
            click.echo(in_words(report, content))
            if written:
                click.echo(written)
    for warning in warnings_of(report):
        complain(f"warning: {warning}")
