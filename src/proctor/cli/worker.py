"""`proctor worker`: run samples for others."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import Any

import click

from proctor.cli.evaluation import file_argument, loaded, subject_options
from proctor.cli.options import complain, json_option


@click.command("worker")
@file_argument()
@subject_options()
@click.option("--requests", metavar="ADDRESS", required=True, help="redis://host:6379/0/NAME, sqs://NAME.")
@click.option("--results", metavar="ADDRESS", help="Default: where each request says.")
@click.option("--concurrency", type=int, help="How many samples run at once. Default: 20.")
@click.option("--timeout", type=float, help="Seconds for each call of the target. Default: 30.")
@click.option("--retries", type=int, help="Further attempts after a passing trouble.")
@click.option(
    "--lease",
    type=click.FloatRange(min=0.1, max=43_200),
    default=30.0,
    show_default=True,
    help="Seconds until a dead worker's samples go to another.",
)
@click.option(
    "--max-deliveries",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Set a request aside after N deliveries.",
)
@click.option("--until-empty", is_flag=True, help="End when nothing is left to do.")
@click.option(
    "--alive-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file to touch every other second.",
)
@click.option("--name", default="", help="The worker's name. Default: host and process.")
@json_option()
def command(file: Path | None, **options: Any) -> int:
    """Run samples for others: take requests out of a mailbox, run and score them, answer.

    \b
    proctor worker eval.yaml --requests redis://localhost:6379/0/evals
    proctor run eval.yaml --workers redis://localhost:6379/0/evals

    FILE, or --target and --evaluator, say what is run; they must be what the run is made of, else
    the request is left to another worker. On SIGTERM or Ctrl-C it finishes what it runs and
    returns the rest; a second one drops that too.
    """
    from proctor.core import bridge
    from proctor.distributed.inbox import Until
    from proctor.distributed.worker import Post, Worker, worker_name
    from proctor.models.connect import mailbox
    from proctor.records import codec
    from proctor.records.mail import EvalRequest
    from proctor.records.trial import EvalResult
    from proctor.wiring.prepare import prepare_setup
    from proctor.wiring.registry import Registry

    registry = Registry.standard()
    found = loaded(file, options, registry, ("target", "evaluator")).evaluation
    setup = prepare_setup(found.target, found.evaluators, found.options, registry)
    name = options["name"] or worker_name()
    limit = options["max_deliveries"]
    requests = mailbox(options["requests"], EvalRequest, max_deliveries=limit)
    results = mailbox(options["results"], EvalResult) if options["results"] else None
    # A wrong address ends it now; a server that goes away later is waited for.
    requests.approximate_count()
    if options["alive_file"]:
        options["alive_file"] = options["alive_file"].absolute()
        options["alive_file"].touch()
    post = Post(requests, results, options["lease"], name, options["alive_file"], _say)
    worker = Worker(setup, post)
    _say(f"{name} runs {worker.expects} for {requests.name!r}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    tally = bridge.run(worker.run(Until(empty=options["until_empty"])))
    requests.close()
    if options["as_json"]:
        click.echo(codec.encode(tally))
    else:
        _say(
            f"{name} ends: {tally.sent} results sent, {tally.errors} of them errors; "
            f"{tally.returned} requests returned"
        )
    return 0


def _say(text: str) -> None:
    # A worker goes on working where nobody listens any more.
    with contextlib.suppress(OSError):
        complain(text, "worker: ")
