"""`proctor sessions evaluate`, `evaluate-batch` and `rubrics`: score sessions with rubrics."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli import options as cli
from proctor.cli.evaluation import pattern_option
from proctor.errors import ConfigError, ProctorError, RunInterrupted
from proctor.records.formatting import format_count

if TYPE_CHECKING:
    from proctor.comparison.report import EvalReport
    from proctor.engine.start import RunControls
    from proctor.ports import RunView
    from proctor.records.rubric import RubricSet
    from proctor.records.sample import Sample
    from proctor.reports.rubric_files import FileNames, ResultFiles
    from proctor.wiring.prepare import Evaluation

JUDGE_VARIABLE = "PROCTOR_JUDGE"
JUDGE_HELP = f"Score with this model. Example: openai:gpt-4o. Default: ${JUDGE_VARIABLE}."
RESUME = "resume the run"


def judge_options(declaration: str = "--model --judge MODEL", judge_help: str = JUDGE_HELP) -> cli.Decorator:
    return cli.combine(
        cli.option(declaration, judge_help),
        cli.option(
            "--scale LOW HIGH",
            "Score on this scale if the rubrics do not define one. Default: 1 5.",
            type=float,
            nargs=2,
            callback=_check_scale,
        ),
        cli.option("--temperature --llm-temperature T", "Call the judge with this temperature.", default=0.1),
        cli.option(
            "--max-tokens --llm-max-tokens N",
            "Limit each answer of the judge to N tokens.",
            type=cli.POSITIVE_INTEGER,
            default=1024,
        ),
        cli.option("--timeout SECONDS", "Stop scoring a rubric after SECONDS.", default=60.0),
        cli.option(
            "--judge-concurrency --max-concurrent N",
            "Run up to N judge calls concurrently, across all sessions and rubrics.",
            type=cli.POSITIVE_INTEGER,
            default=10,
            into="max_concurrent",
        ),
    )


def _check_scale(_context: Any, _option: Any, scale: tuple[float, float] | None) -> Any:
    if scale and not scale[0] < scale[1]:
        low, high = sorted(scale)
        fix = f"write --scale {low:g} {high:g}" if low < high else "write --scale 1 5"
        raise ConfigError("the lowest score must come first", where="--scale", fix=fix)
    return scale


def judge_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for calls of the judge."""
    settings = {
        "temperature": options["temperature"],
        "max_tokens": options["max_tokens"],
        "timeout": options["timeout"],
    }
    return {**settings, "scale": options["scale"]} if options["scale"] else settings


id_option = cli.option("--id ID", "Use the session with this id, if there are several.", into="session_id")
log_format_option = cli.option(
    "--format NAME", "Read the logs in this format. Example: otlp. Default: detected from the content.", into="form"
)
scoring_options = cli.combine(
    cli.option(
        "--rubrics FILE",
        'Score with the rubrics in this file; "starter" selects the built-in rubrics.',
        type=str,
        required=True,
    ),
    judge_options(),
    cli.option("--prompt --template FILE", "Use the judge prompt in this file."),
    log_format_option,
    cli.option("--no-cache --fresh", "Ignore cached scores and call the judge again.", into="fresh"),
    cli.name_option,
    cli.redact_option("secrets"),
    cli.canary_option,
    cli.quiet_option,
    cli.budget_option,
    cli.common_options,
)


@click.command("evaluate")
@cli.option("--session FILE", "Score the session in this file.", required=True)
@id_option
@cli.option("--output FILE", "Write the result to this JSON file.")
@scoring_options
def evaluate(session: Path, session_id: str | None, output: Path | None, **options: Any) -> int:
    """Score one recorded session with rubrics.

    \b
    proctor sessions evaluate --rubrics starter --session chat.jsonl --output result.json

    The judge's answers are cached: after an interruption, run the command again.
    """
    from proctor.datasets.sessions import SessionDataset
    from proctor.records.rubric import read_run_columns
    from proctor.reports.rubric_files import add_run_details, add_source_path, write_json
    from proctor.reports.rubrics import session_result
    from proctor.wiring.open_history import load_report, open_history

    _check_output(output, session, options)
    dataset = SessionDataset.for_session(session, session_id, options["form"])
    evaluation = _build_evaluation(dataset, options, session.stem)
    display = cli.progress(options, outcomes=lambda _: [])
    is_interrupted = False
    try:
        with replace_resume_fix(lambda: "run the command again"):
            report = _run(evaluation, options, _build_controls(options, watch=display))
    except RunInterrupted as stopped:
        is_interrupted = True
        report = load_report(open_history(options["history"]), stopped.run_id)
        if not len(report.results):
            click.echo("interrupted: the judge's answers are cached; to continue, run the command again", err=True)
            return cli.INTERRUPTED
    content = session_result(report.results[0], read_run_columns(report.metadata))
    result = add_run_details(add_source_path(content, session), report)
    if output is not None:
        write_json(output, result)
    _show_outcome(report, options, result, "" if output is None else f"wrote {output}")
    if is_interrupted:
        return cli.INTERRUPTED
    return 0 if result["summary"]["rubrics_evaluated"] else cli.ERROR


@click.command("evaluate-batch")
@cli.option("--sessions-dir DIR", "Score the sessions in this folder.", required=True)
@cli.option("--output-dir DIR", "Write the results to this folder.", required=True)
@pattern_option
@cli.option("--concurrency --parallel N", "Score up to N sessions concurrently.", type=cli.POSITIVE_INTEGER, default=5)
@cli.option("--limit N", "Score only the first N sessions.", type=cli.POSITIVE_INTEGER)
@cli.resume_options
@scoring_options
def evaluate_batch(sessions_dir: Path, output_dir: Path, **options: Any) -> int:
    """Score all recorded sessions in a folder with rubrics.

    \b
    proctor sessions evaluate-batch --rubrics rubrics.json --sessions-dir logs --output-dir results

    Writes NAME_result.json after each session, and summary.json at the end.
    """
    from proctor.reports.rubric_files import SUMMARY_FILE, FileNames, ResultFiles
    from proctor.wiring.scoring.manifest import ObservedSessions, rubric_columns

    _reject_folder(output_dir, sessions_dir, options["history"])
    names = FileNames()
    dataset = ObservedSessions(sessions_dir, options["form"], pattern=options["pattern"], on_session=names.make_unique)
    _reject_existing_files(output_dir, dataset, names)
    evaluation = _build_evaluation(dataset, options, sessions_dir.resolve().name)
    files = ResultFiles(output_dir, rubric_columns(evaluation), names, sessions_dir)
    display = cli.progress(options, outcomes=files.describe_progress)

    def watch(view: RunView) -> AbstractContextManager[object]:
        files.set_run(view)
        return contextlib.nullcontext() if display is None else display(view)

    report = _run(evaluation, options, _build_controls(options, watch=watch, on_result=files.add_result))
    summary = files.finish(report)
    message = f"wrote {output_dir / SUMMARY_FILE} and {format_count(len(files), 'result')}"
    _show_outcome(report, options, summary, message)
    _warn_of_other_runs(files, output_dir)
    return 0 if summary["details"]["sessions_scored"] else cli.ERROR


@contextlib.contextmanager
def replace_resume_fix(describe: Callable[[], str]) -> Iterator[None]:
    """Replace "resume the run" in the fix of an error, for commands that resume in another way."""
    try:
        yield
    except ProctorError as stopped:
        stopped.fix = stopped.fix.replace(RESUME, describe())
        raise


def reject_other_scale(rubrics: RubricSet, scale: tuple[float, float] | None) -> None:
    """Reject --scale if the rubric file names another scale, which its criteria were written for."""
    if scale and rubrics.scale is not None and tuple(rubrics.scale) != tuple(scale):
        low, high = rubrics.scale
        raise ConfigError(
            f"the rubrics are written for a scale from {low:g} to {high:g}",
            where="--scale",
            fix="leave it out, or change `scale` and the criteria in a copy of the file",
        )


def choose_judge(option: str | None) -> str:
    model = option or os.environ.get(JUDGE_VARIABLE)
    if not model:
        raise ConfigError(
            "no judge model is set",
            fix=f"add --model openai:gpt-4o, or set {JUDGE_VARIABLE}; `proctor models` lists the models",
        )
    return model


def _check_output(output: Path | None, session: Path, options: dict[str, Any]) -> None:
    from proctor.cli.outputs import RESULT, check_file, reject_overwriting_inputs
    from proctor.evaluators.rubric_files import STARTER

    rubrics = None if options["rubrics"] == STARTER else Path(options["rubrics"])
    reject_overwriting_inputs(output, {"--session": session, "--rubrics": rubrics, "--prompt": options["prompt"]})
    check_file(output, RESULT, "--output", options["history"])


def _reject_folder(output_dir: Path, sessions_dir: Path, history: str | None) -> None:
    """Reject a folder whose results would be overwritten, or read as sessions by the next batch."""
    from proctor.cli.outputs import SUMMARY, check_file, check_folder, is_within
    from proctor.reports.rubric_files import SUMMARY_FILE, find_foreign_result

    check_folder(output_dir, "--output-dir")
    problem = ""
    if is_within(output_dir, sessions_dir):
        is_same = is_within(sessions_dir, output_dir)
        place = "this folder contains the sessions" if is_same else "this folder is inside the folder of the sessions"
        problem = f"{place}, so the next batch would read its results as sessions"
    elif other := find_foreign_result(output_dir, sessions_dir):
        problem = f"this folder contains results of other sessions ({other}), which would be overwritten"
    if problem:
        raise ConfigError(problem, where=f"--output-dir {output_dir}", fix="write to a separate folder")
    check_file(output_dir / SUMMARY_FILE, SUMMARY, "--output-dir", history)


def _reject_existing_files(output_dir: Path, sessions: Iterable[Sample[Any, Any]], names: FileNames) -> None:
    from proctor.cli.outputs import RESULT, check_file
    from proctor.reports.rubric_files import RESULT_SUFFIX

    foreign = {path for path in output_dir.glob(f"*{RESULT_SUFFIX}") if not RESULT.matches(path)}
    for sample in sessions if foreign else ():
        path = output_dir / f"{names.make_unique(sample.id)}{RESULT_SUFFIX}"
        if path in foreign:
            check_file(path, RESULT, "--output-dir")


def _warn_of_other_runs(files: ResultFiles, output_dir: Path) -> None:
    for run_id in files.overwritten_runs():
        cli.echo_stderr(f"overwrote results of run {run_id} in {output_dir}; `proctor show {run_id}` still shows them")
    if foreign := files.foreign_files():
        cli.echo_stderr(
            f"{output_dir} also contains {format_count(len(foreign), 'result')} of other runs, such as "
            f"{foreign[0]}: move them, or write to a separate folder"
        )


@click.command("rubrics", short_help="Check a rubric file and list its rubrics.")
@click.argument("file", required=False)
@cli.option("--text", "Print the content of the file instead.", into="as_text")
@cli.json_option
def rubrics(file: str | None, as_text: bool, as_json: bool) -> None:
    """Check a rubric file and list its rubrics; without FILE, list the built-in rubrics.

    \b
    proctor sessions rubrics mine.yaml
    proctor sessions rubrics --text > mine.yaml
    """
    from proctor.evaluators.rubric_files import STARTER, load_rubrics, read_rubric_text
    from proctor.records.rubric import DEFAULT_SCALE, describe_unknown_keys, find_scale

    rubric_set = load_rubrics(file or STARTER)
    for record in (rubric_set, *rubric_set):
        if warning := describe_unknown_keys(record):
            cli.echo_stderr(f"warning: {warning}")
    if as_text:
        click.echo(read_rubric_text(file or STARTER), nl=False)
    elif as_json:
        cli.print_json(rubric_set)
    else:
        for rubric in rubric_set:
            low, high = find_scale(rubric, rubric_set.scale or DEFAULT_SCALE)
            weight = f"weight {rubric.weight:g}, scale {low:g} to {high:g}"
            click.echo(f"{cli.display_name(rubric.id)}: {cli.display_name(rubric.name)} ({weight})")


def _build_evaluation(dataset: Any, options: dict[str, Any], name: str) -> Evaluation:
    from proctor.evaluators.rubric_files import load_rubrics
    from proctor.records.rubric import describe_unknown_keys
    from proctor.wiring.scoring.manifest import Scoring, build_scoring

    rubric_set = load_rubrics(options["rubrics"])
    if warning := describe_unknown_keys(rubric_set):
        cli.echo_stderr(f"warning: {warning}")
    reject_other_scale(rubric_set, options["scale"])
    scoring = Scoring(
        concurrency=options.get("concurrency", 1),
        max_concurrent=options["max_concurrent"],
        budget=cli.parse_budget(options["budget"]),
        limit=options.get("limit"),
        judge_options={"prompt": options["prompt"], **judge_settings(options)},
        redact=options["redact"],
        canary=options["canary"],
    )
    judge = choose_judge(options["model"])
    return build_scoring(dataset, rubric_set, judge, scoring, name=options["name"] or name)


def _build_controls(options: dict[str, Any], **callbacks: Any) -> RunControls:
    from proctor.engine.start import RunControls

    cli.check_resume_options(options)
    return RunControls(
        allow_changes=bool(options.get("allow_changes")),
        retry_errors=bool(options.get("retry_errors")),
        fresh=options["fresh"],
        **callbacks,
    )


def _run(evaluation: Evaluation, options: dict[str, Any], controls: RunControls) -> EvalReport:
    from proctor.core import bridge
    from proctor.wiring.evaluate import execute
    from proctor.wiring.open_history import open_history

    resume = options.get("resume")
    with cli.redirect_prints(options["as_json"]):
        history = open_history(options["history"])
        resume_from = True if resume == cli.LATEST_UNFINISHED else resume or False
        return bridge.run(execute(evaluation, history, controls, resume_from=resume_from))


def _show_outcome(report: EvalReport, options: dict[str, Any], content: Any, message: str) -> None:
    """Print the scores and their cost; print warnings even with --quiet."""
    from proctor.reports.rubrics import describe_scores, general_warnings

    with cli.tolerate_closed_pipe():
        if options["as_json"]:
            cli.print_json(content)
        elif not options["quiet"]:
            click.echo(describe_scores(report, content))
            if message:
                click.echo(message)
    for warning in general_warnings(report):
        cli.echo_stderr(f"warning: {warning}")
