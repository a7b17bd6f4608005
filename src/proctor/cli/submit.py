"""`proctor submit`: send a run's samples to workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.evaluation import dataset_options, file_argument, loaded, subject_options
from proctor.cli.options import complain, history_option, json_option


@click.command("submit")
@file_argument()
@dataset_options()
@subject_options()
@click.option("--requests", metavar="ADDRESS", required=True, help="redis://host:6379/0/NAME, sqs://NAME.")
@click.option("--name", help="The name under which the run is kept.")
@click.option("--epochs", type=int, help="How often each sample is run. Default: 1.")
@click.option("--limit", type=int, help="Run only the first N samples.")
@click.option("--tag", metavar="KEY=VALUE", multiple=True, help="Kept with the run.")
@history_option()
@json_option()
def command(file: Path | None, **options: Any) -> int:
    """Send a run's samples to workers, and do not wait.

    \b
    proctor submit eval.yaml --requests redis://localhost:6379/0/evals
    proctor collect RUN --requests redis://localhost:6379/0/evals

    The run is opened in the history; `proctor collect` puts the results there. Nobody watches the
    run meanwhile, so that neither a budget nor a number of errors ends it.
    """
    from proctor.cli.outcome import prints_aside
    from proctor.models.connect import hidden, mailbox
    from proctor.records import codec
    from proctor.records.mail import EvalRequest
    from proctor.wiring.dispatch import submit
    from proctor.wiring.open_history import open_history
    from proctor.wiring.registry import Registry

    registry = Registry.standard()
    with prints_aside(options["as_json"]):
        found = loaded(file, options, registry)
        requests = mailbox(options["requests"], EvalRequest)
        history = open_history(options["history"])
        run = submit(found.evaluation, requests, history, registry=registry)
    if ignored := _ignored(run.options):
        complain(f"not heeded, for nobody watches while workers run it: {', '.join(ignored)}")
    if options["as_json"]:
        click.echo(codec.encode({"run_id": run.run_id, "submitted": run.total}))
    else:
        click.echo(f"submitted {run.total:,} requests as run {run.run_id}")
        # Without the password that may stand in it.
        address = hidden(options["requests"])
        click.echo(f"collect them with: proctor collect {run.run_id} --requests {address}")
    return 0


def _ignored(options: Any) -> list[str]:
    """The options of a run that end it early, as far as they are set."""
    is_set = {
        "budget": options.budget is not None,
        "max_errors": options.max_errors is not None,
        "on_error": options.on_error != "continue",
    }
    return [name for name, given in is_set.items() if given]
