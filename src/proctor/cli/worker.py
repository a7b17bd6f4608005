"""`proctor worker`: run samples that other processes submit."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import Any

import click

from proctor.cli.evaluation import (
    concurrency_option,
    file_argument,
    load_evaluation,
    open_mailbox,
    retries_option,
    subject_options,
    timeout_option,
)
from proctor.cli.options import POSITIVE_INTEGER, Number, echo_stderr, json_option, option, requests_option
from proctor.core.resources import describe_os_error
from proctor.errors import ConfigError


@click.command("worker")
@file_argument
@subject_options
@requests_option
@option("--results ADDRESS", "Send results to this mailbox. Default: the mailbox that each request specifies.")
@concurrency_option
@timeout_option
@retries_option
@option(
    "--lease SECONDS",
    "Reassign the samples of a worker that has not responded for SECONDS.",
    type=Number(float, 0.1, 43_200),
    default=30.0,
)
@option(
    "--max-deliveries N", "Move a request to the dead letters after N deliveries.", type=POSITIVE_INTEGER, default=5
)
@option("--until-empty", "Exit when the mailbox is empty.")
@option("--alive-file FILE", "Update the timestamp of FILE every two seconds, for liveness probes.")
@option("--name NAME", "Name the worker. Default: the host name and the process id.", default="")
@json_option
def command(file: Path | None, **options: Any) -> int:
    """Run samples that other processes submit: take requests from a mailbox and send results.

    \b
    proctor worker eval.yaml --requests redis://localhost:6379/0/evals
    proctor run eval.yaml --workers redis://localhost:6379/0/evals

    FILE, or --target and --evaluator, must match the submitted run; a request that does not match
    is left for other workers. On SIGTERM or Ctrl-C the worker finishes its running samples and
    returns the rest; a second signal stops the running samples too.
    """
    from proctor.core import bridge
    from proctor.distributed.inbox import StopCondition
    from proctor.distributed.worker import Worker, WorkerConfig, worker_name
    from proctor.records import codec
    from proctor.records.formatting import format_count
    from proctor.records.mail import EvalRequest
    from proctor.records.trial import EvalResult
    from proctor.wiring.prepare import prepare_setup
    from proctor.wiring.registry import Registry

    registry = Registry.standard()
    evaluation = load_evaluation(file, options, registry, ("target", "evaluator")).evaluation
    setup = prepare_setup(
        evaluation.target, evaluation.evaluators, evaluation.options, registry, needs_evaluators=False
    )
    name = options["name"] or worker_name()
    requests = open_mailbox(options["requests"], EvalRequest, max_deliveries=options["max_deliveries"])
    results = open_mailbox(options["results"], EvalResult) if options["results"] else None
    alive_file = options["alive_file"]
    if alive_file:
        alive_file = alive_file.absolute()
        try:
            alive_file.touch()
        except OSError as error:
            raise ConfigError(
                describe_os_error(error, f"the file {str(alive_file)!r} cannot be written"),
                where="--alive-file",
                fix="name a file in a writable folder",
            ) from None
    # A wrong address fails here; if the server goes away later, the worker waits for it.
    requests.approximate_count()
    worker = Worker(setup, WorkerConfig(requests, results, options["lease"], name, alive_file, _log))
    _log(f"{name} runs {worker.expects} for {requests.name!r}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    tally = bridge.run(worker.run(StopCondition(empty=options["until_empty"])))
    requests.close()
    if options["as_json"]:
        click.echo(codec.encode(tally))
    else:
        sent, returned = format_count(tally.sent, "result"), format_count(tally.returned, "request")
        _log(f"{name} ends: {sent} sent, {tally.errors} of them errors; {returned} returned")
    return 0


def _log(text: str) -> None:
    # A worker keeps working after standard error is closed.
    with contextlib.suppress(OSError):
        echo_stderr(text, "worker: ")
