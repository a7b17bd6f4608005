"""`proctor gate`: check that a run is as good as its baseline."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import secrets
import shlex
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from proctor.cli import gate_checks
from proctor.cli import options as cli
from proctor.cli import outputs as output_files
from proctor.cli.evaluation import (
    EVAL_FILE_ENDINGS,
    cache_option,
    concurrency_option,
    load_evaluation,
    parse_thresholds,
)
from proctor.cli.filters import RECENT_RUNS
from proctor.comparison.gates import decision, early, margins
from proctor.comparison.gates.gaps import DEFAULT_MAX_MISSING
from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError, ProctorError, RunInterrupted, RunNotFound, UsageError, suggest_name
from proctor.history.run_finder import PREFIX
from proctor.ports import History
from proctor.records.gate import GateResult
from proctor.records.run import RunMetadata
from proctor.reports import gate as gate_report
from proctor.reports.files import write_file
from proctor.reports.format import escape
from proctor.reports.formats import write_reports
from proctor.reports.summary import describe_status
from proctor.wiring import compare_runs
from proctor.wiring.config import name_by_path
from proctor.wiring.open_history import open_history
from proctor.wiring.registry import load_custom_metrics

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
MAX_WIDTH = 100
DEFAULT_MIN_KAPPA = 0.6
# Options that apply to an eval file; a stored run cannot change.
FILE_OPTIONS = ("name", "tag", "concurrency", "cache")
COMPARISON_OPTIONS = ("margin", "metric", "better", "max_flips", "unpaired", "until_decided")


@click.command("gate")
@click.argument("run", metavar="RUN|FILE")
@cli.option("--baseline NAME", "Compare with this baseline or run.")
@cli.option("--margin PERCENT", "Allow the run to be worse by this much. Default: 2%. Example: --margin 5%.")
@cli.option(
    "--metric NAME[=MARGIN]",
    "Compare this metric, with its own margin if given; repeat for more. Default: strict_pass_rate.",
    multiple=True,
)
@cli.option(
    "--better NAME=higher|lower",
    "Set whether higher or lower values of a field are better. Example: --better retries=lower.",
    multiple=True,
)
@cli.option("--plugin MODULE:METRIC", "Load a custom metric for --metric.", multiple=True)
@cli.fail_under_option
@cli.option(
    "--max-flips N", "Fail if more than N samples that passed in the baseline now fail.", type=cli.NATURAL_NUMBER
)
@cli.option(
    "--inconclusive",
    "Exit with status 4 (code), 0 (pass) or 1 (fail) if the gate is inconclusive.",
    type=cli.Choice(["code", "pass", "fail"]),
    default="code",
)
@cli.option("--accept-changes", "Allow evaluators, samples or expected values that differ from those of the baseline.")
@cli.option("--unpaired", "Compare the runs as two groups, not sample by sample.")
@cli.option(
    "--max-missing N|P%",
    "Report the gate as inconclusive if more than N samples, or P% of them, have no value. Default: 10%.",
)
@cli.option(
    "--require-card [MIN_KAPPA]",
    "Report the gate as inconclusive unless every judge has a card: 30 human labels of this version, and this kappa. "
    f"Default: {DEFAULT_MIN_KAPPA}.",
    is_flag=False,
    flag_value=str(DEFAULT_MIN_KAPPA),
    type=cli.Number(float, 0, 1),
)
@cli.option("--configuration NAME", "Check only this configuration.")
@cli.option("--until-decided", "With an eval file: stop the run as soon as the verdict is certain.")
@cli.name_option
@cli.tag_option
@concurrency_option
@cache_option
@cli.option("--junit FILE", "Write the result to FILE, as JUnit XML.")
@cli.option("--markdown FILE", "Write the result to FILE, as Markdown for a pull-request comment.")
@cli.output_options
@cli.option("--quiet -q", "Print only the verdict, without progress.")
@cli.common_options
def command(run: str, **options: Any) -> int:
    """Check that a run is as good as its baseline, within a margin.

    \b
    proctor run eval.yaml
    proctor baseline set main latest
    proctor gate eval.yaml --baseline main --margin 5%
    proctor gate latest --baseline main --metric strict_pass_rate --metric tokens.mean=10%

    An eval file is run first, with --name, --tag, --concurrency and --no-cache as in `proctor run`; with
    --until-decided only until the verdict is certain. Margins are percentage points for rates and
    scores, and percent of the baseline's value for other numbers. In GitHub Actions, the gate also
    writes the step summary. Exit codes: 0 pass, 1 fail, 2 usage error, 3 other error, 4
    inconclusive, 130 interrupted.
    """
    outputs = GateOutputs(run, options)
    try:
        with cli.show_cli_option_names():
            result = _decide(run, options, outputs)
    except RunInterrupted as stopped:
        outputs.report_error(stopped, f"interrupted; finished results are stored as run {stopped.run_id}")
        click.echo(_describe_resume(run, stopped.run_id, options), err=True)
        return cli.INTERRUPTED
    except (Exception, KeyboardInterrupt) as error:
        outputs.report_error(error, str(error) or "interrupted")
        raise
    return outputs.report_outcome(result)


def _decide(run: str, options: dict[str, Any], outputs: GateOutputs) -> GateResult:
    history = open_history(options["history"])
    config = _parse_config(options, run, history)
    is_file = Path(run).is_file() or run.endswith(EVAL_FILE_ENDINGS)
    job = _load_job(Path(run), options) if is_file else None
    if job is not None:
        outputs.name = job.evaluation.name or ""
        outputs.reject_outputs_in_dataset(job.evaluation.dataset)
    baseline = None
    if options["baseline"] is not None:
        baselines = history.baselines()
        baseline = open_baseline(history, baselines, options["baseline"], options["configuration"])
        is_named = baseline.report.run_id in {each.run_id for each in baselines.values()}
        gate_checks.require_usable_baseline(baseline, is_named=is_named)
    custom_metrics = load_custom_metrics(options["plugin"]) if job is None else job.custom_metrics
    if baseline is not None:
        [baseline] = compare_runs.add_custom_metrics(baseline, custom_metrics=custom_metrics)
    gate: early.EarlyGate | None = None
    if job is None:
        candidate = _open_stored(run, history, options)
    else:
        candidate, gate, config = _run_file(job, baseline, config, history, options)
    [candidate] = compare_runs.add_custom_metrics(candidate, custom_metrics=custom_metrics)
    outputs.set_report(candidate.report)
    gate_checks.require_complete_run(candidate.report)
    if job is None:
        gate_checks.require_checks(baseline, config, run, history)
    result = _compare(candidate, baseline, config, gate)
    run_metadata = candidate.report.metadata
    if options["require_card"] is None or run_metadata is None:
        return result
    from proctor.validity.describe_card import require_cards

    # The number of lost samples depends on every evaluator.
    metrics = None if config.max_flips is not None else [*config.metrics, *config.fail_under]
    return require_cards(result, history, run_metadata, options["require_card"], metrics)


def open_baseline(
    history: History, baselines: Mapping[str, RunMetadata], reference: str, configuration: str | None = None
) -> compare_runs.OpenedRun:
    """Open one of the baselines by name, or any run. If both exist, the baseline is used."""
    name, at, _ = reference.rpartition(compare_runs.AT)
    if reference in baselines or (at and name in baselines):
        baseline = compare_runs.open_report(PREFIX + reference, history, configuration)
        return baseline._replace(label=baseline.label.removeprefix(PREFIX))
    try:
        return compare_runs.open_report(reference, history, configuration)
    except RunNotFound:
        fix = _suggest_baseline(history, baselines, reference)
        raise RunNotFound(f"unknown baseline or run {reference!r}", fix=fix) from None


def _suggest_baseline(history: History, baselines: Collection[str], reference: str) -> str:
    """Suggest a similar baseline or run; without baselines, the command that names the latest run."""
    runs = history.runs(limit=RECENT_RUNS)
    hint = suggest_name(reference, {*baselines, *(run.name for run in runs)})
    if baselines or hint.startswith("did you mean"):
        return hint
    command = f"proctor baseline set {shlex.quote(reference)}"
    if not runs:
        return f"store a run and name it: proctor run eval.yaml, then {command} latest"
    return f"no baseline has a name yet; to use the latest run ({runs[0].name}): {command} {runs[0].run_id}"


def _describe_resume(run: str, run_id: str, options: dict[str, Any]) -> str:
    """Describe how to finish the run and repeat the gate, which has no --resume."""
    history = f" --history {shlex.quote(options['history'])}" if options["history"] else ""
    baseline = f" --baseline {shlex.quote(options['baseline'])}" if options["baseline"] else ""
    exception = ", without --until-decided" if options["until_decided"] else ""
    return (
        f"interrupted: finished results are stored; to continue: proctor run {shlex.quote(run)} "
        f"--resume {run_id}{history}; then: proctor gate {run_id}{baseline}{history}, with the other "
        f"options as before{exception}"
    )


def _parse_config(options: dict[str, Any], run: str, history: History) -> decision.GateConfig:
    margin = decision.DEFAULT_MARGIN if options["margin"] is None else parse_margin(options["margin"], "--margin")
    metrics: dict[str, float | None] = {}
    for text in options["metric"]:
        name, equals, own_margin = text.partition("=")
        metrics[name] = parse_margin(own_margin, f"--metric {name}") if equals else None
    needs_baseline = [name for name in COMPARISON_OPTIONS if options[name] not in (None, (), False)]
    if options["baseline"] is None and needs_baseline:
        fix = gate_checks.suggest_comparison(run, history)
        raise ConfigError(f"--{needs_baseline[0].replace('_', '-')} needs --baseline", fix=fix)
    missing = options["max_missing"]
    max_missing = DEFAULT_MAX_MISSING if missing is None else cli.parse_max_missing(missing)
    config = decision.GateConfig(
        margins.resolve_margins(metrics, margin) if options["baseline"] is not None else {},
        parse_thresholds(options["fail_under"]),
        options["max_flips"],
        _parse_directions(options["better"]),
        options["accept_changes"],
        options["unpaired"],
        max_missing,
    )
    config.validate()
    return config


def parse_margin(text: str, where: str) -> float:
    share = cli.parse_share(text, where, "2% or 0.02")
    if not math.isfinite(share):
        raise ConfigError(f"{text!r} is not a margin", where=where, fix="write 2% or 0.02")
    if not text.endswith("%") and share >= 1:
        raise ConfigError(
            f"a margin of {text} would allow everything", where=where, fix=f"write {text}% or {share / 100}"
        )
    if share < 0:
        raise ConfigError(f"a margin must be 0 or more, got {text}", where=where, fix="write 2% or 0.02")
    return share


def _parse_directions(values: tuple[str, ...]) -> dict[str, bool]:
    directions = cli.parse_pairs(values, "--better", "NAME=higher or NAME=lower")
    for name, direction in directions.items():
        if direction not in ("higher", "lower"):
            raise ConfigError(
                f"must be {name}=higher or {name}=lower, got {direction!r}",
                where="--better",
                fix=f"write --better {name}=lower",
            )
    return {name: direction == "higher" for name, direction in directions.items()}


def _open_stored(run: str, history: History, options: dict[str, Any]) -> compare_runs.OpenedRun:
    if options["until_decided"]:
        raise ConfigError(
            "--until-decided needs an eval file: a stored run has already ended",
            fix="proctor gate eval.yaml --baseline NAME --until-decided",
        )
    if file_options := [name for name in FILE_OPTIONS if options[name] not in (None, ())]:
        negation = "no-" if options[file_options[0]] is False else ""
        raise ConfigError(
            f"--{negation}{file_options[0]} needs an eval file: a stored run cannot change",
            fix="proctor gate eval.yaml --baseline NAME",
        )
    return compare_runs.open_report(run, history, options["configuration"])


class _Job(NamedTuple):
    file: Path
    evaluation: Any
    registry: Any

    @property
    def custom_metrics(self) -> tuple[Any, ...]:
        """The custom metrics of the file and of plugins."""
        return tuple(self.registry.load_metric(metric) for metric in (*self.evaluation.metrics, *self.registry.metrics))


def _load_job(file: Path, options: dict[str, Any]) -> _Job:
    from proctor.wiring.registry import Registry

    registry = Registry.standard()
    registry.load_plugins(options["plugin"])
    # `--baseline` is left out: in an eval file `baseline` is a configuration, on this command line a run.
    file_options = {name: options[name] for name in FILE_OPTIONS}
    with cli.redirect_prints(options["as_json"]):
        return _Job(file, load_evaluation(file, file_options, registry).evaluation, registry)


def _run_file(
    job: _Job,
    baseline: compare_runs.OpenedRun | None,
    config: decision.GateConfig,
    history: History,
    options: dict[str, Any],
) -> tuple[compare_runs.OpenedRun, early.EarlyGate | None, decision.GateConfig]:
    from proctor.core import bridge
    from proctor.engine.start import RunControls
    from proctor.wiring.evaluate import execute

    evaluation = job.evaluation
    if baseline is not None:
        margins.require_known_metrics(config, [baseline.side(name) for name in baseline.configurations])
    with cli.redirect_prints(options["as_json"]):
        gate = None
        if options["until_decided"] and baseline is not None:
            gate, seed = _build_early_gate(evaluation, baseline, config, options)
            if evaluation.fail_under:
                cli.echo_stderr("fail_under in the file is not checked: the run may stop early")
            evaluation = dataclasses.replace(evaluation, options={**evaluation.options, "shuffle": seed})
        else:
            thresholds = {**evaluation.fail_under, **config.fail_under}
            config = msgspec.structs.replace(config, fail_under=thresholds)
            evaluation = dataclasses.replace(evaluation, fail_under=thresholds)
        gate_checks.require_checks(baseline, config, str(job.file), history)
        gate_checks.require_matching_configuration(evaluation, baseline, options["configuration"])
        if baseline is not None:
            for warning in gate_checks.check_before_run(
                evaluation, job.registry, baseline, config, early=gate is not None
            ):
                cli.echo_stderr(warning, "warning: ")
        controls = RunControls(watch=cli.progress(options), decide=None if gate is None else gate.add_result)
        report = bridge.run(execute(evaluation, history, controls, registry=job.registry))
    return compare_runs.open_report(report, configuration=options["configuration"]), gate, config


def _build_early_gate(
    evaluation: Any, baseline: compare_runs.OpenedRun, config: decision.GateConfig, options: dict[str, Any]
) -> tuple[early.EarlyGate, int]:
    """Return the gate that stops the run, and the seed of the order of the samples."""
    from proctor.wiring.prepare import build_configurations

    names = [candidate.name for candidate in build_configurations(evaluation.configurations)]
    if options["configuration"] is None and len(names) > 1:
        raise ConfigError(
            f"the run has {len(names)} configurations, and exactly one decides when to stop",
            where="--until-decided",
            fix=f"select it: --configuration {names[0]}",
        )
    baseline_names = baseline.configurations
    if len(baseline_names) > 1:
        raise ConfigError(
            f"{baseline.label} has several configurations, and the gate compares with exactly one",
            where="--until-decided",
            fix=f"select it: --baseline {baseline.label}@{baseline_names[0]}",
        )
    baseline_run = baseline.report.metadata
    gate = early.make_early_gate(
        config,
        baseline.report.results.for_configuration(baseline_names[0]),
        [spec.name for spec in baseline_run.evaluators] if baseline_run else (),
        epochs=evaluation.options.get("epochs", 1),
        configuration=options["configuration"] or names[0],
    )
    seed = evaluation.options.get("shuffle")
    # A new order each time, so that different samples decide.
    return gate, secrets.randbelow(2**31) if seed is None else seed


def _compare(
    candidate: compare_runs.OpenedRun,
    baseline: compare_runs.OpenedRun | None,
    config: decision.GateConfig,
    gate: early.EarlyGate | None,
) -> GateResult:
    if baseline is None:
        return decision.decide([], config, report=_select_configuration(candidate))
    candidate, baseline = compare_runs.check_pair(candidate, baseline)
    pairs, unpaired = compare_runs.pair_configurations(candidate, baseline)
    compared = [compare_runs.build_sides(*pair) for pair in pairs]
    details: Any = {"baseline": baseline.label, "notes": _collect_notes(baseline, unpaired)}
    run = candidate.report.metadata
    if gate is not None:
        details |= {"accept_changes": config.accept_changes, "max_missing": config.max_missing}
        return early.conclude_early_gate(gate, compared[0], candidate.report, **details)
    if run is not None and run.stopped_early is not None:
        if len(pairs) > 1:
            raise ConfigError(
                f"run {run.run_id} was stopped early and has {len(pairs)} configurations; a gate on it "
                "needs exactly one",
                fix=f"select it: --configuration {candidate.configurations[0]}",
            )
        ([name], [baseline_name]) = (side.configurations for side in pairs[0])
        baseline_results = baseline.report.results.for_configuration(baseline_name)
        return early.replay_early_gate(config, candidate.report, baseline_results, compared[0], name, **details)
    result = decision.decide(compared, config, report=_select_configuration(candidate), **details)
    return margins.add_margin_notes(result, compared, config)


def _collect_notes(baseline: compare_runs.OpenedRun, unpaired: tuple[str, ...]) -> list[str]:
    """Return notes about an incomplete baseline and about configurations without a counterpart."""
    run = baseline.report.metadata
    notes = [f"{name} has no counterpart and is not checked" for name in unpaired]
    if run is not None and run.stopped_early is not None:
        return [f"the baseline {baseline.label} was stopped early, so its values are slightly biased", *notes]
    if run is None or run.status == "completed":
        return notes
    return [f"the baseline {baseline.label} is {describe_status(baseline.report, run)}", *notes]


def _select_configuration(candidate: compare_runs.OpenedRun) -> EvalReport:
    report, name = candidate.report, candidate.configuration
    if name is None or len(report.by_configuration) < 2:
        return report
    metrics = report.by_configuration.get(name, {})
    return EvalReport(report.results.for_configuration(name), report.metadata, metrics, {name: metrics})


class GateOutputs:
    """Writes the verdict of a gate, or the error; rejects invalid output files before a run starts.

    `name` is the name of the run, as soon as it is known; after an earlier error, the name that it would have had.
    """

    def __init__(self, run: str, options: dict[str, Any]) -> None:
        self.name = options["name"] or ""
        self._run = run
        self._options = options
        self._report: EvalReport | None = None
        history = options["history"]
        output_files.check_file(options["junit"], output_files.JUNIT, "--junit", history)
        output_files.check_file(options["markdown"], output_files.COMMENT, "--markdown", history)
        files = [options[name] for name in ("junit", "markdown") if options[name]]
        self._paths = [*files, *output_files.check_reports(options)]
        output_files.reject_duplicate_paths(self._paths)

    def reject_outputs_in_dataset(self, dataset: Any) -> None:
        """Reject output files inside the dataset; after an error, none of them is written."""
        try:
            output_files.reject_outputs_in_dataset(dataset, self._paths)
        except ConfigError:
            self._options |= {"junit": None, "markdown": None}
            raise

    def set_report(self, report: EvalReport) -> None:
        self._report = report
        self.name = report.metadata.name if report.metadata else self.name

    def report_outcome(self, result: GateResult) -> int:
        counts_as = self._options["inconclusive"]
        inconclusive = {"code": cli.INCONCLUSIVE, "pass": 0, "fail": cli.FAILED}[counts_as]
        code = {"pass": 0, "fail": cli.FAILED, "inconclusive": inconclusive}[result.verdict]
        with cli.tolerate_closed_pipe():
            if self._options["as_json"]:
                fields = {name: getattr(result, name) for name in result.__struct_fields__}
                cli.print_json({"exit_code": code, **fields})
            else:
                self._show(result)
        run = self._report.metadata if self._report else None
        self._write(
            gate_report.render_markdown(result), gate_report.render_junit(result, run, counts_as), result.answer
        )
        return code

    def report_error(self, error: BaseException, message: str) -> None:
        """Write to all outputs that the gate made no decision; the caller prints the error."""
        error_type = type(error).__name__
        if self._options["as_json"]:
            is_usage = isinstance(error, UsageError)
            code = cli.INTERRUPTED if isinstance(error, KeyboardInterrupt) else cli.USAGE if is_usage else cli.ERROR
            with cli.tolerate_closed_pipe():
                cli.print_json({"exit_code": code, "error": {"kind": error_type, "message": message}})
        name = self.name or _guess_name(self._run, self._options)
        comment = gate_report.render_error_markdown(message, name)
        xml = gate_report.render_error_junit(message, error_type, name)
        try:
            self._write(comment, xml, f"Not decided: {message}")
        except ProctorError as write_error:
            cli.echo_stderr(str(write_error))

    def _show(self, result: GateResult) -> None:
        if self._options["quiet"]:
            click.echo(result.answer)
            return
        click.echo(gate_report.render_gate(result, width=min(MAX_WIDTH, shutil.get_terminal_size().columns)), nl=False)
        counts_as = self._options["inconclusive"]
        if result.verdict == "inconclusive" and counts_as != "code":
            click.echo(f"Inconclusive counts as {counts_as} (--inconclusive).")

    def _write(self, comment: str, xml: bytes, answer: str) -> None:
        text = comment.encode(errors="backslashreplace")
        # First, because it cannot fail.
        _append_step_summary(text)
        if self._options["markdown"]:
            write_file(self._options["markdown"], [text], what="the comment")
        if self._options["junit"]:
            write_file(self._options["junit"], [xml], what="the JUnit file")
        if self._options["output"] and self._report is not None:
            folder, formats = self._options["output"], self._options["formats"]
            write_reports(self._report, folder, formats, f"**Gate.** {escape(answer)}")


def _guess_name(run: str, options: dict[str, Any]) -> str:
    """Return the name of a run that could not be read: it lets a bot find the comment of an earlier gate.

    The baseline of an eval file is a run of the same file, also if the file has become unreadable.
    """
    path = Path(run)
    is_file = path.is_file() or run.endswith(EVAL_FILE_ENDINGS)
    with contextlib.suppress(ProctorError):
        history = open_history(options["history"])
        if not is_file:
            return _read_name(compare_runs.open_report(run, history))
        if options["baseline"] is not None:
            baseline = open_baseline(history, history.baselines(), options["baseline"])
            return _read_name(baseline) or name_by_path(path)
    return name_by_path(path) if is_file else run


def _read_name(opened: compare_runs.OpenedRun) -> str:
    return opened.report.metadata.name if opened.report.metadata else ""


def _append_step_summary(comment: bytes) -> None:
    if not (path := os.environ.get(SUMMARY_VARIABLE)):
        return
    try:
        with Path(path).open("ab") as file:
            file.write(comment + b"\n")
    except OSError as error:
        cli.echo_stderr(f"cannot write the step summary: {error}")
