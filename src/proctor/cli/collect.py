"""`proctor collect`: the results of a submitted run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.options import history_option, json_option

INCOMPLETE = 3


@click.command("collect")
@click.argument("run", default="latest")
@click.option("--requests", metavar="ADDRESS", required=True, help="Where the run was submitted to.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Seconds to wait for results.",
)
@click.option(
    "--file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The run's eval file, for its own metrics and thresholds.",
)
@click.option("--fail-under", metavar="[METRIC=]VALUE", multiple=True, help="Exit 1 below it.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path), help="Write reports.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no table.")
@history_option()
@json_option()
def command(run: str, **options: Any) -> int:
    """Collect the results of a submitted run into the history, and report.

    When the time is up the report shows what there is and says what is missing (exit code 3); the
    run can be collected again.
    """
    from proctor.cli.outcome import conclude, prints_aside
    from proctor.cli.outputs import check_reports
    from proctor.models.connect import mailbox
    from proctor.records.mail import EvalRequest
    from proctor.reports.live import live_display
    from proctor.wiring.dispatch import collect
    from proctor.wiring.open_history import open_history

    check_reports(options["output"], options["history"])
    with prints_aside(options["as_json"]):
        metrics, thresholds = _measures(options["file"], options["fail_under"])
    requests = mailbox(options["requests"], EvalRequest)
    report = collect(
        run,
        requests,
        open_history(options["history"]),
        timeout=options["timeout"],
        metrics=metrics,
        watch=live_display(not (options["quiet"] or options["as_json"])),
    )
    code = conclude(
        report,
        thresholds=thresholds,
        output=options["output"],
        quiet=options["quiet"],
        as_json=options["as_json"],
    )
    assert report.metadata is not None
    return code or (0 if report.metadata.status == "completed" else INCOMPLETE)


def _measures(file: Path | None, fail_under: tuple[str, ...]) -> tuple[Any, dict[str, float]]:
    """The user's own metrics, and what must be reached: by the eval file and the command line."""
    from proctor.cli.evaluation import thresholds
    from proctor.wiring.config import load
    from proctor.wiring.prepare import check_thresholds, load_metrics
    from proctor.wiring.registry import Registry

    wanted = thresholds(fail_under)
    if file is None:
        return (), wanted
    found = load(file)
    registry = Registry.standard()
    registry.load_plugins(found.plugins)
    evaluators = registry.build_all(found.evaluation.evaluators)
    metrics = load_metrics((*found.evaluation.metrics, *registry.metrics), evaluators)
    wanted = {**found.evaluation.fail_under, **wanted}
    check_thresholds(wanted, evaluators, metrics)
    return metrics, wanted
