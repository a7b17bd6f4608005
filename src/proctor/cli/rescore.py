"""`proctor rescore`: score the outputs of a stored run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli import options as cli
from proctor.cli.evaluation import evaluator_option, parse_thresholds, plugin_option, set_option, set_parameters
from proctor.errors import ConfigError

if TYPE_CHECKING:
    from proctor.comparison.report import EvalReport


@click.command("rescore")
@click.argument("run", default="latest")
@evaluator_option
@set_option
@cli.option("--file FILE", "Use the evaluators of this eval file.")
@plugin_option
@cli.option(
    "--name NAME",
    "Store the new run under this name. Default: the name of the old run; `proctor runs` marks it as rescored.",
)
@cli.tag_option
@cli.budget_option
@cli.report_options
def command(run: str, file: Path | None, **options: Any) -> int:
    """Score the outputs of a stored run with other evaluators, without calling the target.

    \b
    proctor rescore latest -e contains --set contains.case_sensitive=false
    proctor rescore latest --file eval.yaml
    """
    from proctor.cli.outcome import report_outcome
    from proctor.cli.outputs import check_reports

    check_reports(options)
    report, thresholds = rescore_stored_run(run, file, options)
    return report_outcome(report, thresholds, options)


def rescore_stored_run(run: str, file: Path | None, options: dict[str, Any]) -> tuple[EvalReport, dict[str, float]]:
    """Score a stored run with the evaluators of the options; also return the thresholds of file and options."""
    from proctor.core import bridge
    from proctor.engine.start import RunControls
    from proctor.wiring.config import load_eval_file
    from proctor.wiring.evaluate import execute_rescore
    from proctor.wiring.open_history import open_history
    from proctor.wiring.registry import Registry

    loaded = load_eval_file(file) if file else None
    evaluation = loaded.evaluation if loaded else None
    registry = Registry.standard()
    registry.load_plugins(loaded.plugins if loaded else ())
    plugin_evaluators = registry.load_plugins(options["plugin"])
    from_file = evaluation.evaluators if evaluation else list(plugin_evaluators)
    evaluators = list(options["evaluator"]) or from_file
    history = open_history(options["history"])
    if not evaluators and all(spec.samples is None for spec in history.find(run).evaluators):
        raise ConfigError("no evaluator is selected", fix="add -e NAME, --plugin or --file eval.yaml")
    thresholds = {**(evaluation.fail_under if evaluation else {}), **parse_thresholds(options["fail_under"])}
    with cli.redirect_prints(options["as_json"]):
        report = bridge.run(
            execute_rescore(
                run,
                set_parameters(evaluators, options["parameters"], registry),
                history,
                RunControls(watch=cli.progress(options)),
                metrics=evaluation.metrics if evaluation else (),
                registry=registry,
                name=options["name"],
                tags=cli.parse_pairs(options["tag"], "--tag"),
                fail_under=thresholds,
                budget=cli.parse_budget(options["budget"], evaluation and evaluation.options.get("budget")),
            )
        )
    return report, thresholds
