"""`proctor submit`: send the samples of a run to workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli import options as cli
from proctor.cli.evaluation import (
    dataset_options,
    epochs_option,
    file_argument,
    limit_option,
    load_evaluation,
    open_mailbox,
    subject_options,
)
from proctor.records.formatting import format_count


@click.command("submit")
@file_argument
@dataset_options
@cli.option("--format NAME", "Alias of --dataset-format.", hidden=True)
@subject_options
@cli.requests_option
@cli.name_option
@epochs_option
@limit_option
@cli.tag_option
@cli.common_options
def command(file: Path | None, **options: Any) -> int:
    """Send the samples of a run to workers and return immediately.

    \b
    proctor submit eval.yaml --requests redis://localhost:6379/0/evals
    proctor collect RUN --requests redis://localhost:6379/0/evals

    The history stores the run as submitted; `proctor collect` adds the results. Until then, no
    process monitors the run, so a budget or an error limit cannot stop it.
    """
    from proctor.models.connect import hide_credentials
    from proctor.records import codec
    from proctor.records.mail import EvalRequest
    from proctor.wiring.dispatch import submit
    from proctor.wiring.open_history import open_history
    from proctor.wiring.registry import Registry

    options["form"] = options["form"] or options["format"]
    registry = Registry.standard()
    with cli.redirect_prints(options["as_json"]):
        evaluation = load_evaluation(file, options, registry).evaluation
        requests = open_mailbox(options["requests"], EvalRequest)
        run = submit(evaluation, requests, open_history(options["history"]), registry=registry)
    stopping_options = {
        "budget": run.options.budget is not None,
        "max_errors": run.options.max_errors is not None,
        "on_error": run.options.on_error != "continue",
    }
    if ignored := [name for name, is_set in stopping_options.items() if is_set]:
        cli.echo_stderr(f"ignored, because no process monitors a submitted run: {', '.join(ignored)}")
    if options["as_json"]:
        click.echo(codec.encode({"run_id": run.run_id, "submitted": run.total}))
    else:
        click.echo(f"submitted {format_count(run.total or 0, 'request')} as run {run.run_id}")
        address = hide_credentials(options["requests"])
        click.echo(f"to collect the results: proctor collect {run.run_id} --requests {address}")
    return 0
