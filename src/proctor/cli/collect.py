"""`proctor collect`: collect the results of a submitted run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli import options as cli
from proctor.cli.evaluation import open_mailbox


@click.command("collect")
@click.argument("run", default="latest")
@cli.requests_option
@cli.option("--timeout SECONDS", "Wait up to SECONDS for results.", type=cli.Number(float, 0), default=300.0)
@cli.option("--file FILE", "Use the metrics and thresholds of the run's eval file.")
@cli.report_options
def command(run: str, **options: Any) -> int:
    """Collect the results of a submitted run into the history, and show the report.

    After --timeout, the report shows the results so far and lists the missing ones (exit code
    3); collect the run again later.

    \b
    proctor collect latest --requests redis://localhost:6379/0/evals
    """
    from proctor.cli.outcome import report_outcome
    from proctor.cli.outputs import check_reports
    from proctor.records.mail import EvalRequest
    from proctor.wiring.dispatch import collect
    from proctor.wiring.open_history import open_history

    check_reports(options)
    with cli.redirect_prints(options["as_json"]):
        metrics, thresholds = _load_metrics(options["file"], options["fail_under"])
    report = collect(
        run,
        open_mailbox(options["requests"], EvalRequest),
        open_history(options["history"]),
        timeout=options["timeout"],
        metrics=metrics,
        watch=cli.progress(options),
    )
    code = report_outcome(report, thresholds, options)
    assert report.metadata is not None
    return code or (0 if report.metadata.status == "completed" else cli.ERROR)


def _load_metrics(file: Path | None, fail_under: tuple[str, ...]) -> tuple[Any, dict[str, float]]:
    """Return the custom metrics and thresholds of the eval file and the command line."""
    from proctor.cli.evaluation import parse_thresholds
    from proctor.wiring.config import load_eval_file
    from proctor.wiring.prepare import check_thresholds, load_metrics
    from proctor.wiring.registry import Registry

    thresholds = parse_thresholds(fail_under)
    if file is None:
        return (), thresholds
    loaded = load_eval_file(file)
    registry = Registry.standard()
    registry.load_plugins(loaded.plugins)
    specs = [evaluator.spec for evaluator in registry.build_all(loaded.evaluation.evaluators)]
    metrics = load_metrics((*loaded.evaluation.metrics, *registry.metrics), specs)
    thresholds = {**loaded.evaluation.fail_under, **thresholds}
    epochs = loaded.evaluation.options.get("epochs", 1)
    check_thresholds(thresholds, specs, metrics, epochs=epochs if isinstance(epochs, int) else 1)
    return metrics, thresholds
