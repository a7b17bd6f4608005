"""`proctor mutate`: test the evaluators of a run with changed outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from proctor.cli import options as cli
from proctor.cli.delete import confirm, require_yes
from proctor.cli.evaluation import evaluator_option, plugin_option, set_option, set_parameters
from proctor.errors import ConfigError, list_names, suggest_name

if TYPE_CHECKING:
    from proctor.records.run import RunMetadata
    from proctor.records.score import Score
    from proctor.records.trial import Trial
    from proctor.validity.mutation_test import MutationPlan

# An error of the registry has its own advice, which does not fit a stored run.
FIX = "Fix:"


@click.command("mutate")
@click.argument("run", default="latest")
@evaluator_option
@set_option
@cli.option("--file FILE", "Test the evaluators of this eval file.")
@plugin_option
@cli.option(
    "--mutation NAME", "Apply only this mutation; repeat for more. Example: --mutation changed_number.", multiple=True
)
@cli.option(
    "--sample-size N",
    "Change up to N outputs that an evaluator passes, drawn at random; a judge without verdicts in RUN is asked about "
    "N outputs first.",
    type=cli.POSITIVE_INTEGER,
    default=50,
)
@cli.seed_option
@cli.option("--survivors N", "Show up to N faults that an evaluator passes.", type=cli.NATURAL_NUMBER, default=5)
@cli.option("--max-calls N", "Call judges at most N times; leave out the remaining mutants.", type=cli.POSITIVE_INTEGER)
@cli.option("--yes", "Call judges without asking for confirmation.")
@cli.option(
    "--format NAME", "Print text or markdown.", type=cli.Choice(["text", "markdown"]), default="text", into="form"
)
@cli.common_options
def command(run: str, **options: Any) -> None:
    """Test the evaluators of a stored run: plant faults in its outputs, and see which are noticed.

    Outputs that an evaluator passes are changed by rule, in ways that should matter (another number, date, name or
    unit, a negation, a missing sentence, a contradiction, a leaked key, a wrong tool call) and in ways that should not
    (other words, white space, Markdown, case). They are scored again; the target is not called and nothing is stored.

    \b
    proctor mutate latest
    proctor mutate latest -e contains --sample-size 100
    proctor mutate latest -e judge --max-calls 200 --yes
    """
    from proctor.core import bridge
    from proctor.records.run import Budget
    from proctor.validity import mutation_report
    from proctor.validity.mutation_test import limit_calls, run_mutation_test
    from proctor.wiring.evaluate import score_trials
    from proctor.wiring.open_history import open_history

    history = open_history(options["history"])
    metadata = history.find(run)
    evaluators = {built.spec.name: built for built in _build_evaluators(metadata, options)}
    plans = _plan(metadata, history.results(metadata.run_id), evaluators, options)
    if options["max_calls"]:
        limit_calls(plans, options["max_calls"])
    if not _confirm_calls(plans, options):
        return

    def score(name: str, trials: Sequence[Trial]) -> list[Score | None]:
        is_judge = bool(evaluators[name].spec.judges_inside)
        budget = Budget(calls=options["max_calls"]) if options["max_calls"] and is_judge else None
        watch = cli.progress(options) if is_judge else None
        scored = bridge.run(score_trials(trials, [evaluators[name]], metadata, budget=budget, watch=watch))
        return [scores.get(name) for scores in scored]

    with cli.redirect_prints(options["as_json"]):
        report = run_mutation_test(plans, score, run_id=metadata.run_id, run_name=metadata.name, seed=options["seed"])
    if options["as_json"]:
        cli.print_json(report)
    elif options["form"] == "markdown":
        click.echo(mutation_report.render_markdown(report, options["survivors"]))
    else:
        from proctor.reports.format import print_rendered

        print_rendered(lambda width, _color: mutation_report.render_text(report, width, options["survivors"]))


def _build_evaluators(run: RunMetadata, options: dict[str, Any]) -> Sequence[Any]:
    """Build the evaluators of the command line or of a file; without them, the evaluators of the run."""
    from proctor.wiring.config import load_eval_file
    from proctor.wiring.registry import Registry

    loaded = load_eval_file(options["file"]) if options["file"] else None
    registry = Registry.standard()
    registry.load_plugins(loaded.plugins if loaded else ())
    registry.load_plugins(options["plugin"])
    stored = {spec.name: spec for spec in run.evaluators}
    entries: list[Any] = [stored.get(name, name) for name in options["evaluator"]]
    entries = entries or (list(loaded.evaluation.evaluators) if loaded else list(run.evaluators))
    try:
        return registry.build_all(set_parameters(entries, options["parameters"], registry))
    except ConfigError:
        raise
    except Exception as error:
        known = {*stored, *(info.name for info in registry.evaluators())}
        unknown = [name for name in options["evaluator"] if name not in known and ":" not in name]
        if unknown:
            raise ConfigError(
                f"run {run.run_id} has no evaluator {unknown[0]!r}",
                where="-e",
                fix=f"{list_names(unknown[0], stored)}; or name a built-in evaluator: proctor evaluators lists them",
            ) from None
        addresses = [name for name in options["evaluator"] if name not in stored]
        if addresses:
            what, _, fix = str(error).partition(FIX)
            raise ConfigError(
                f"{', '.join(addresses)} cannot be loaded: {what.strip()}",
                where="-e",
                fix=fix.strip() or f"check the file and the name; the run itself has {', '.join(stored)}",
            ) from error
        raise ConfigError(
            f"the evaluators of run {run.run_id} cannot be built: {str(error).partition(FIX)[0].strip()}",
            fix="add --file eval.yaml or --plugin MODULE:OBJECT, or select evaluators with -e NAME",
        ) from error


def _plan(run: RunMetadata, results: Any, evaluators: dict[str, Any], options: dict[str, Any]) -> list[MutationPlan]:
    from proctor.validity.mutation_test import plan_mutants
    from proctor.validity.mutations import MUTATIONS

    for name in options["mutation"]:
        if name not in MUTATIONS:
            raise ConfigError(f"unknown mutation {name!r}", where="--mutation", fix=suggest_name(name, MUTATIONS))
    selected = [MUTATIONS[name] for name in dict.fromkeys(options["mutation"])] or list(MUTATIONS.values())
    # The verdicts of an evaluator that has changed since are not those of today's evaluator.
    return [
        plan_mutants(
            built.spec,
            results,
            is_scored=built.spec in run.evaluators,
            sample_size=options["sample_size"],
            seed=options["seed"],
            mutations=selected,
        )
        for built in evaluators.values()
    ]


def _confirm_calls(plans: Sequence[MutationPlan], options: dict[str, Any]) -> bool:
    """Print how often judges will be asked, and ask whether to go on."""
    judged = {plan.spec.name: plan.calls for plan in plans if plan.calls}
    if not judged:
        return True
    require_yes(options["yes"], options["as_json"])
    counts = ", ".join(f"{cli.display_name(name)} {calls:,}" for name, calls in judged.items())
    click.echo(f"Expected calls of judges: {sum(judged.values()):,} ({counts})", err=True)
    if options["yes"] or confirm("Ask the judges?"):
        return True
    click.echo("nothing was scored")
    return False
