"""`proctor run`: evaluate a target on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.evaluation import (
    concurrency_option,
    dataset_options,
    file_argument,
    loaded,
    name_option,
    refuse_memory,
    subject_options,
    tag_option,
)
from proctor.cli.options import (
    budget_option,
    canary_option,
    complain,
    history_option,
    json_option,
    output_option,
    quiet_option,
    redact_option,
    skipped_option,
)
from proctor.errors import ConfigError

EVAL_FILE_ENDINGS = (".yaml", ".yml", ".json", ".py")
UNFINISHED = "the latest unfinished run"


@click.command("run")
@file_argument()
@dataset_options()
@subject_options()
@name_option()
@click.option("--baseline", metavar="CONFIGURATION", help="What the others are compared with.")
@click.option("--timeout", type=float, help="Seconds for each call of the target. Default: 30.")
@concurrency_option()
@click.option("--epochs", type=int, help="How often each sample is run. Default: 1.")
@click.option("--limit", type=int, help="Run only the first N samples.")
@click.option(
    "--shuffle",
    metavar="[SEED]",
    is_flag=False,
    flag_value="0",
    help="Run samples in random order; with --limit, a random part of them.",
)
@click.option("--retries", type=int, help="Further attempts after a passing trouble.")
@click.option("--max-errors", type=int, help="Stop after N samples whose target or evaluator failed.")
@click.option(
    "--max-output-bytes",
    type=int,
    metavar="N",
    help="Count an output of more than N bytes as an error. Default: 10000000.",
)
@click.option("--on-error", type=click.Choice(["continue", "raise"]), help="Stop at an error?")
@tag_option()
@click.option("--cache", is_flag=True, default=None, help="Reuse outputs of equal calls.")
@redact_option()
@skipped_option()
@canary_option()
@budget_option()
@click.option("--workers", metavar="ADDRESS", help="Let workers run it: redis://host:6379/0/NAME.")
@click.option("--patience", type=float, help="Seconds to wait for any worker. Default: 3600.")
@click.option("--on", metavar="CLUSTER", help="Run it on a cluster: ray, or ray://HOST:PORT.")
@click.option("--resume", metavar="[ID]", is_flag=False, flag_value=UNFINISHED, help="Run what is missing.")
@click.option("--allow-changes", is_flag=True, help="Resume although something has changed.")
@click.option("--retry-errors", is_flag=True, help="With --resume: run failed samples again.")
@click.option("--fail-under", metavar="[METRIC=]VALUE", multiple=True, help="Exit 1 below it.")
@output_option()
@quiet_option()
@history_option()
@json_option()
def command(file: Path | None, **options: Any) -> int:
    """Evaluate a target on a dataset.

    \b
    proctor run                  the eval.yaml in this folder
    proctor run eval.yaml
    proctor run --dataset qa.jsonl --target app.py:answer -e exact_match

    What FILE says can be overridden by options. The run is kept in the history; --output writes
    report.md and report.json too. Exit codes: 0 good, 1 below --fail-under, 2 usage, 3 trouble, 4
    not below it, but more than a tenth of its numbers is missing.
    """
    from proctor.cli.outcome import conclude, prints_aside
    from proctor.cli.outputs import check_reports, refuse_among, reports_in
    from proctor.core import bridge
    from proctor.engine.start import Conduct
    from proctor.reports.live import live_display
    from proctor.wiring.config import Loaded
    from proctor.wiring.evaluate import execute
    from proctor.wiring.open_history import open_history
    from proctor.wiring.registry import Registry

    file, resume = _file_and_resume(file, options["resume"])
    file, options["shuffle"] = _file_and_seed(file, options["shuffle"])
    check_reports(options["output"], options["history"])
    if not resume and (options["retry_errors"] or options["allow_changes"]):
        raise ConfigError("--retry-errors and --allow-changes go with --resume")
    registry = Registry.standard()
    with prints_aside(options["as_json"]):
        found: Loaded = loaded(file, options, registry)
    refuse_among(found.evaluation.dataset, reports_in(options["output"]))
    quiet = options["quiet"] or options["as_json"]
    with prints_aside(options["as_json"]), _place(found, file, options) as place:
        how = Conduct(
            watch=live_display(not quiet),
            allow_changes=options["allow_changes"],
            retry_errors=options["retry_errors"],
            place=place,
        )
        report = bridge.run(
            execute(
                found.evaluation, open_history(options["history"]), how, resume_from=resume, registry=registry
            )
        )
    if not quiet:
        _say_recognised(found.evaluation.dataset, report)
    return conclude(
        report,
        thresholds=found.evaluation.fail_under,
        output=options["output"],
        quiet=options["quiet"],
        as_json=options["as_json"],
    )


def _say_recognised(dataset: Any, report: Any) -> None:
    """Say what a file was read as, where its content decided."""
    from proctor.wiring.open_dataset import recognised

    info = report.metadata.dataset
    if what := recognised(dataset, info):
        complain(f"{info.name} is read as {what}; --format reads it as something else", "dataset: ")


def _place(found: Any, file: Path | None, options: dict[str, Any]) -> Any:
    """Where the trials are carried out."""
    from proctor.wiring import backends as places

    if options["workers"]:
        _check_workers(options)
    return places.chosen(
        found.evaluation,
        workers=options["workers"],
        on=options["on"],
        patience=options["patience"] or places.PATIENCE_SECONDS,
        plugins=[*found.plugins, *options["plugin"]],
        modules=[file.parent] if file else [],
    )


def _check_workers(options: dict[str, Any]) -> None:
    """Say what is the workers' affair, and refuse a mailbox that no worker could reach."""
    refuse_memory(options["workers"])
    theirs = [name for name in ("timeout", "concurrency", "retries") if options[name] is not None]
    if theirs:
        said = ", ".join(f"--{name}" for name in theirs)
        complain(f"{said}: with --workers that is the workers' own setting and changes nothing")


def _file_and_resume(file: Path | None, resume: str | None) -> tuple[Path | None, str | bool]:
    """`--resume eval.yaml` means the file, not a run of that name."""
    if resume is None or resume == UNFINISHED:
        return file, resume is not None
    if file is None and resume.endswith(EVAL_FILE_ENDINGS):
        return Path(resume), True
    return file, resume


def _file_and_seed(file: Path | None, seed: str | None) -> tuple[Path | None, int | str | None]:
    """`--shuffle eval.yaml` means the file; what is no whole number is refused with the options."""
    if file is None and seed is not None and seed.endswith(EVAL_FILE_ENDINGS):
        return Path(seed), 0
    try:
        return file, None if seed is None else int(seed)
    except ValueError:
        return file, seed
