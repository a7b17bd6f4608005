"""`proctor rescore`: score the outputs of a stored run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.evaluation import evaluator_option, plugin_option, set_option
from proctor.cli.options import (
    PATH,
    budget_option,
    fail_under_option,
    history_option,
    json_option,
    output_option,
    parse_budget,
    parse_pairs,
    quiet_option,
    tag_option,
)


@click.command("rescore")
@click.argument("run", default="latest")
@evaluator_option
@set_option
@click.option("--file", metavar="FILE", type=PATH, help="Use the evaluators of this eval file.")
@plugin_option
@click.option("--name", help="Store the new run under this name. Default: the name of the old run.")
@tag_option
@fail_under_option
@output_option
@quiet_option
@budget_option
@history_option
@json_option
def command(run: str, file: Path | None, **options: Any) -> int:
    """Score the outputs of a stored run with other evaluators, without calling the target.

    \b
    proctor rescore latest -e contains --set contains.case_sensitive=false
    proctor rescore latest --file eval.yaml
    """
    from proctor.cli.evaluation import parse_thresholds, set_parameters
    from proctor.cli.outcome import conclude, redirect_prints
    from proctor.cli.outputs import check_reports
    from proctor.core import bridge
    from proctor.engine.start import RunControls
    from proctor.errors import ConfigError
    from proctor.reports.live import live_display
    from proctor.wiring.config import load_eval_file
    from proctor.wiring.evaluate import execute_rescore
    from proctor.wiring.open_history import open_history
    from proctor.wiring.registry import Registry

    quiet, as_json = options["quiet"], options["as_json"]
    check_reports(options["output"], options["history"])
    loaded = load_eval_file(file) if file else None
    evaluation = loaded.evaluation if loaded else None
    registry = Registry.standard()
    registry.load_plugins(loaded.plugins if loaded else ())
    plugin_evaluators = registry.load_plugins(options["plugin"])
    from_file = evaluation.evaluators if evaluation else list(plugin_evaluators)
    evaluators = list(options["evaluator"]) or from_file
    if not evaluators:
        raise ConfigError("no evaluators given", fix="add --evaluator NAME, --plugin, or --file eval.yaml")
    thresholds = {**(evaluation.fail_under if evaluation else {}), **parse_thresholds(options["fail_under"])}
    with redirect_prints(as_json):
        report = bridge.run(
            execute_rescore(
                run,
                set_parameters(evaluators, options["parameters"], registry),
                open_history(options["history"]),
                RunControls(watch=live_display(not (quiet or as_json))),
                metrics=evaluation.metrics if evaluation else (),
                registry=registry,
                name=options["name"],
                tags=parse_pairs(options["tag"], "--tag"),
                fail_under=thresholds,
                budget=parse_budget(options["budget"], evaluation and evaluation.options.get("budget")),
            )
        )
    return conclude(report, thresholds=thresholds, output=options["output"], quiet=quiet, as_json=as_json)
