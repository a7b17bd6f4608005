"""`proctor run`: evaluate a target on a dataset."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli import filters
from proctor.cli import options as cli
from proctor.cli.evaluation import (
    EVAL_FILE_ENDINGS,
    WATCH_VARIABLE,
    cache_option,
    concurrency_option,
    dataset_options,
    epochs_option,
    file_argument,
    limit_option,
    load_evaluation,
    reject_memory_mailbox,
    retries_option,
    subject_options,
    timeout_option,
)
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.cli.watch_files import FileRecorder

# The key of the arguments in the context of click.
TYPED = "proctor.arguments"


class WatchableCommand(click.Command):
    """A command that keeps its arguments as they were typed, to run again with them."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        typed = tuple(args)
        context = super().make_context(info_name, args, parent, **extra)
        context.meta[TYPED] = typed
        return context


@click.command("run", cls=WatchableCommand)
@file_argument
@dataset_options
@subject_options
@cli.name_option
@cli.option("--baseline CONFIGURATION", "Compare the other configurations of the run with this one.")
@timeout_option
@concurrency_option
@epochs_option
@limit_option
@cli.option("--sample ID", "Run only this sample; repeat for more.", multiple=True, into="samples")
@filters.where_option
@filters.sample_tag_option
@cli.option("--failed-of RUN", "Run only the samples that did not pass in RUN, in any configuration.")
@cli.option(
    "--shuffle [SEED]",
    "Run the samples in random order; with --limit, run a random subset. Default seed: 0.",
    is_flag=False,
    flag_value="0",
)
@retries_option
@cli.option(
    "--max-errors N", "Stop after N samples with an error of the target or an evaluator.", type=cli.POSITIVE_INTEGER
)
@cli.option(
    "--max-output-bytes N",
    "Count an output of more than N bytes as an error. Default: 10000000.",
    type=cli.POSITIVE_INTEGER,
)
@cli.option(
    "--on-error", "Continue after an error, or stop the run. Default: continue.", type=cli.Choice(["continue", "raise"])
)
@cli.tag_option
@cache_option
@cli.redact_option()
@cli.skipped_option
@cli.canary_option
@cli.budget_option
@cli.option(
    "--workers ADDRESS", "Run the samples on the workers of this mailbox. Example: --workers redis://host:6379/0/evals."
)
@cli.option(
    "--worker-timeout --patience SECONDS", "With --workers: stop if no worker responds for SECONDS. Default: 3600."
)
@cli.option("--cluster --on CLUSTER", "Run the samples on a cluster: ray, or ray://HOST:PORT.")
@cli.option("--watch", "Run again when the eval file, the dataset or the target's files change, until Ctrl-C.")
@cli.resume_options
@cli.report_options
def command(file: Path | None, watch: bool, **options: Any) -> int:
    """Evaluate a target on a dataset.

    \b
    proctor run                  run the eval.yaml in this folder
    proctor run eval.yaml
    proctor run --dataset qa.jsonl --target app.py:answer -e exact_match
    proctor run --where topic=billing --failed-of latest

    Options override FILE. The history stores the run; --output also writes report.md
    and report.json, or the formats of --format. Exit codes: 0 ok, 1 below --fail-under, 2 usage error, 3 other error, 4
    inconclusive: not below --fail-under, but more than 10% of the values are missing.
    """
    if not watch and WATCH_VARIABLE not in os.environ:
        return _run(file, options)
    from proctor.cli.watch_files import FileRecorder, watch_files

    if watch:
        return watch_files(click.get_current_context().meta[TYPED], file, options)
    recorder = FileRecorder(file)
    try:
        return _run(file, options, recorder)
    finally:
        recorder.write_report()


def _run(file: Path | None, options: dict[str, Any], recorder: FileRecorder | None = None) -> int:
    with cli.pause_garbage_collection():
        from proctor.cli.outcome import report_outcome, show_card_lines
        from proctor.cli.outputs import check_reports, reject_outputs_in_dataset
        from proctor.core import bridge
        from proctor.engine.start import RunControls
        from proctor.wiring.evaluate import execute
        from proctor.wiring.open_history import open_history
        from proctor.wiring.registry import Registry

    file, resume = _split_resume(file, options["resume"])
    file, options["shuffle"] = _split_seed(file, options["shuffle"])
    _split_formats(options)
    report_files = check_reports(options)
    cli.check_resume_options(options)
    options["select"] = filters.build_select(options)
    registry = Registry.standard()
    with cli.show_cli_option_names(), cli.redirect_prints(options["as_json"]):
        loaded = load_evaluation(file, options, registry)
    evaluation = loaded.evaluation
    reject_outputs_in_dataset(evaluation.dataset, report_files)
    with (
        cli.show_cli_option_names(),
        cli.redirect_prints(options["as_json"]),
        _open_backend(loaded, file, options) as backend,
    ):
        controls = RunControls(
            watch=cli.progress(options),
            allow_changes=options["allow_changes"],
            retry_errors=options["retry_errors"],
            backend=backend,
        )
        history = open_history(options["history"])
        report = bridge.run(execute(evaluation, history, controls, resume_from=resume, registry=registry))
    if recorder is not None:
        recorder.run_id = report.run_id
    if not (options["quiet"] or options["as_json"]):
        _show_detected_format(evaluation.dataset, report)
    code = report_outcome(report, evaluation.fail_under, options)
    if not (options["quiet"] or options["as_json"]):
        show_card_lines(history, report)
    history.close()
    return code


def _show_detected_format(dataset: Any, report: Any) -> None:
    from proctor.wiring.open_dataset import describe_detected

    info = report.metadata.dataset
    if detected := describe_detected(dataset, info):
        cli.echo_stderr(f"{info.name} is read as {detected}; --dataset-format selects another format", "dataset: ")


def _open_backend(loaded: Any, file: Path | None, options: dict[str, Any]) -> Any:
    from proctor.wiring.evaluate import WORKER_TIMEOUT, open_backend

    if options["workers"]:
        reject_memory_mailbox(options["workers"])
        ignored = [f"--{name}" for name in ("timeout", "concurrency", "retries") if options[name] is not None]
        if ignored:
            cli.echo_stderr(f"ignored with --workers: {', '.join(ignored)}; set them on `proctor worker`")
    return open_backend(
        loaded.evaluation,
        workers=options["workers"],
        cluster=options["cluster"],
        worker_timeout=options["worker_timeout"] or WORKER_TIMEOUT,
        plugins=[*loaded.plugins, *options["plugin"]],
        modules=[file.parent] if file else [],
    )


def _split_resume(file: Path | None, resume: str | None) -> tuple[Path | None, str | bool]:
    """Read `--resume eval.yaml` as the eval file, not as a run id."""
    if resume is None or resume == cli.LATEST_UNFINISHED:
        return file, resume is not None
    if file is None and resume.endswith(EVAL_FILE_ENDINGS):
        return Path(resume), True
    return file, resume


def _split_formats(options: dict[str, Any]) -> None:
    """Treat --format as --dataset-format if only datasets have the format, or if --output is missing."""
    from proctor.core.imports import REPORTERS, plugin_names
    from proctor.wiring.open_dataset import known_formats

    formats = options["formats"]
    if formats and options["form"] is None:
        has_reports = options["output"] is not None
        only_datasets = set(known_formats()) - set(plugin_names(REPORTERS))
        names = [name for name in formats if "," not in name and (not has_reports or name in only_datasets)]
        if names and not options["dataset"]:
            fix = "to write a report, add --output DIR"
            if names[0] in known_formats():
                fix += f"; for the dataset of the eval file, write --dataset-format {names[0]}"
            raise ConfigError("--format without --output needs --dataset", fix=fix)
        options["form"] = names[0] if names else None
        options["formats"] = tuple(name for name in formats if name != options["form"])


def _split_seed(file: Path | None, seed: str | None) -> tuple[Path | None, int | str | None]:
    """Read `--shuffle eval.yaml` as the eval file; a seed that is not an integer is rejected later."""
    if file is None and seed is not None and seed.endswith(EVAL_FILE_ENDINGS):
        return Path(seed), 0
    try:
        return file, None if seed is None else int(seed)
    except ValueError:
        return file, seed
