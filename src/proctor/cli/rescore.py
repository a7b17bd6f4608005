"""`proctor rescore`: score the outputs of a run again."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import budget_from, budget_option, history_option, json_option, pairs


@click.command("rescore")
@click.argument("run", default="latest")
@click.option("--evaluator", "-e", metavar="NAME", multiple=True, help="A name or module:attr.")
@click.option(
    "--set",
    "parameters",
    metavar="EVALUATOR.PARAMETER=VALUE",
    multiple=True,
    help="Set a parameter of an evaluator. Example: contains.case_sensitive=false.",
)
@click.option("--file", type=click.Path(path_type=Path), help="Take the evaluators of a file.")
@click.option(
    "--plugin",
    metavar="MODULE:OBJECT",
    multiple=True,
    help="Register an evaluator or a metric; with no evaluator named, use it.",
)
@click.option("--name", help="The name of the new run; that of the old one if left out.")
@click.option("--tag", metavar="KEY=VALUE", multiple=True, help="Kept with the new run.")
@click.option("--fail-under", metavar="[METRIC=]VALUE", multiple=True, help="Exit 1 below it.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path), help="Write reports.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no table.")
@budget_option()
@history_option()
@json_option()
def command(
    run: str,
    evaluator: tuple[str, ...],
    parameters: tuple[str, ...],
    file: Path | None,
    plugin: tuple[str, ...],
    name: str | None,
    tag: tuple[str, ...],
    fail_under: tuple[str, ...],
    output: Path | None,
    quiet: bool,
    budget: tuple[str, ...],
    history: str | None,
    as_json: bool,
) -> int:
    """Score the outputs of a stored run with other evaluators; the target is not called.

    \b
    proctor rescore latest -e contains --set contains.case_sensitive=false
    proctor rescore latest --file eval.yaml
    """
    from proctor.cli.evaluation import thresholds, with_parameters
    from proctor.cli.outcome import conclude, prints_aside
    from proctor.cli.outputs import check_reports
    from proctor.core import bridge
    from proctor.engine.start import Conduct
    from proctor.errors import ConfigError
    from proctor.reports.live import live_display
    from proctor.wiring.config import load
    from proctor.wiring.evaluate import score_again
    from proctor.wiring.open_history import open_history
    from proctor.wiring.registry import Registry

    check_reports(output, history)
    loaded = load(file) if file else None
    registry = Registry.standard()
    registry.load_plugins(loaded.plugins if loaded else ())
    brought = registry.load_plugins(plugin)
    chosen = list(evaluator) or (loaded.evaluation.evaluators if loaded else list(brought))
    if not chosen:
        raise ConfigError("give the evaluators: --evaluator NAME, --plugin, or --file eval.yaml")
    asked = loaded.evaluation if loaded else None
    least = {**(asked.fail_under if asked else {}), **thresholds(fail_under)}
    with prints_aside(as_json):
        report = bridge.run(
            score_again(
                run,
                with_parameters(chosen, parameters, registry),
                open_history(history),
                Conduct(watch=live_display(not (quiet or as_json))),
                metrics=asked.metrics if asked else (),
                registry=registry,
                name=name,
                tags=pairs(tag, "--tag"),
                fail_under=least,
                budget=budget_from(budget, asked and asked.options.get("budget")),
            )
        )
    return conclude(report, thresholds=least, output=output, quiet=quiet, as_json=as_json)
