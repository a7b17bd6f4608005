"""`proctor judge`: how far a judge can be trusted, and what to label next."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

import click

from proctor.cli import options as cli
from proctor.errors import ConfigError, UsageError, list_names
from proctor.history.run_finder import LATEST
from proctor.records.label import LabelledItem, Strategy

if TYPE_CHECKING:
    from proctor.ports import History
    from proctor.records.run import RunMetadata

LISTED = 10


@click.group("judge", cls=cli.CommandGroup)
def command() -> None:
    """Show how far a judge can be trusted, and what to label next."""


@command.command("card")
@click.argument("evaluator")
@click.argument("run", required=False)
@cli.option(
    "--run RUN",
    "Show the card of the evaluator as it is in RUN, or RUN@CONFIGURATION. Default: the newest run that has it.",
    into="run_option",
)
@cli.option("--by KEY", "Also show the agreement for each value of this metadata key, or for tags.")
@cli.option("--mistakes", "Also list the labelled outputs on which the judge differs from people.")
@cli.common_options
def card(
    evaluator: str,
    run: str | None,
    run_option: str | None,
    by: str | None,
    mistakes: bool,
    history: str | None,
    as_json: bool,
) -> None:
    """Show the card of a judge: its agreement with people, its biases, and the corrected pass rate of a run.

    \b
    proctor judge card helpful
    proctor judge card helpful --mistakes
    proctor judge card helpful 20260101-1200 --by topic

    A card belongs to one version of a judge: prompt, model, options and code. The corrected pass rate uses labels of
    RUN that were drawn at random or stratified, never labels of disagreements.
    """
    from proctor.validity.cards import build_card, list_mistakes
    from proctor.validity.describe_card import describe_card, describe_mistakes, describe_worth
    from proctor.validity.label_files import show_item

    if run and run_option:
        raise UsageError(f"two runs are named, {run} and --run {run_option}", fix="leave out --run")
    reference = run or run_option or _find_newest_run(evaluator, history)
    store, metadata, configuration = _open(reference, history)
    built = build_card(store, metadata, evaluator, by=by, configuration=configuration)
    differing, labelled = list_mistakes(store, metadata, evaluator) if mistakes else ([], 0)
    if as_json:
        items = [{**show_item(x.output.item), "people": x.people, "judge": x.output.passed} for x in differing]
        listed = {"mistakes": items, "labelled": labelled} if mistakes else {}
        cli.print_json({"card": built, "sentence": describe_worth(built), **listed})
        return
    for line in describe_card(built):
        click.echo(line)
    for line in ("", *describe_mistakes(differing, labelled)) if mistakes else ():
        click.echo(line)


def _find_newest_run(evaluator: str, history: str | None) -> str:
    """Return the newest run that has an evaluator, and name it if newer runs do not have it."""
    from proctor.validity.cards import RUNS_SEARCHED
    from proctor.wiring.open_history import open_history

    store = open_history(history)
    runs = store.runs(evaluator=evaluator, limit=RUNS_SEARCHED) if evaluator else ()
    run_id = next((run.run_id for run in runs if any(spec.name == evaluator for spec in run.evaluators)), None)
    if run_id is None:
        return LATEST
    if run_id != store.find(LATEST).run_id:
        cli.echo_stderr(f"run {run_id} is the newest with {cli.display_name(evaluator)}", is_problem=False)
    return run_id


@command.command("next")
@click.argument("run")
@cli.option("--evaluator NAME", "List outputs for this evaluator. Default: the only judge of the run.")
@cli.option("--limit N", "List at most N outputs in each list.", type=cli.POSITIVE_INTEGER, default=LISTED)
@cli.common_options
def next_(run: str, evaluator: str | None, limit: int, history: str | None, as_json: bool) -> None:
    """List what to label next: for the pass rate (at random), and for the judge's mistakes (disagreements).

    \b
    proctor judge next latest --evaluator helpful
    """
    from proctor.validity.drawing import draw, list_judged_outputs
    from proctor.validity.label_files import show_item

    store, metadata, configuration = _open(run, history)
    name = _select_judge(store, metadata) if evaluator is None else evaluator
    results = store.results(metadata.run_id)
    if configuration is not None:
        results = results.for_configuration(configuration)
    outputs = list(list_judged_outputs(metadata.run_id, results, name))
    done = {label.item for label in store.labels(run_id=metadata.run_id, evaluator=name)}
    lists: dict[Strategy, list[LabelledItem]] = {"random": [], "disagreement": []}
    reasons: dict[Strategy, str] = {}
    for strategy in lists:
        try:
            drawn = draw(outputs, strategy, len(outputs))
        except UsageError as error:
            reasons[strategy] = error.what
            continue
        lists[strategy] = [each.output.item for each in drawn if each.output.item not in done][:limit]
    if as_json:
        items = {strategy: [show_item(item) for item in listed] for strategy, listed in lists.items()}
        cli.print_json({"run_id": metadata.run_id, "evaluator": name, "labelled": len(done), **items})
        return
    titles: dict[Strategy, str] = {
        "random": "For the pass rate, at random",
        "disagreement": "For the judge's mistakes, disagreements",
    }
    for strategy, listed in lists.items():
        click.echo(f"{titles[strategy]}: {reasons.get(strategy) or f'next {len(listed)}'}")
        for item in listed:
            click.echo(f"  {cli.display_name(item.sample_id)} ({item.configuration}, epoch {item.epoch + 1})")
        if listed:
            size = len(done) + limit if strategy == "random" else limit
            typed = f"proctor label {metadata.run_id} --evaluator {shlex.quote(name)} --strategy {strategy}"
            click.echo(f"  {typed} --sample-size {size}")


def _select_judge(store: History, run: RunMetadata) -> str:
    from proctor.validity.describe_card import list_judges

    names = list_judges(store, run) or [spec.name for spec in run.evaluators]
    if len(names) != 1:
        raise ConfigError(
            f"run {run.run_id} has several evaluators: {', '.join(names)}" if names else "the run has no evaluator",
            fix=f"add --evaluator {names[0]}" if names else "choose another run: proctor runs",
        )
    return names[0]


def _open(reference: str, history: str | None) -> tuple[History, RunMetadata, str | None]:
    from proctor.wiring.compare_runs import open_report
    from proctor.wiring.open_history import open_history

    store = open_history(history)
    opened = open_report(reference, store)
    if opened.report.metadata is None:
        raise ConfigError(f"run {reference} has no metadata", fix="choose another run: proctor runs")
    if opened.configuration is not None and opened.configuration not in opened.report.configurations:
        fix = list_names(opened.configuration, opened.report.configurations)
        raise ConfigError(f"the run has no configuration {opened.configuration!r}", where=reference, fix=fix)
    return store, opened.report.metadata, opened.configuration


@command.command("panel")
@click.argument("run")
@click.argument("judges", nargs=-1)
@cli.option("--evaluator NAME", "Compare with the labels of this question. Default: the overall verdict.", default="")
@cli.common_options
def panel(run: str, judges: tuple[str, ...], evaluator: str, history: str | None, as_json: bool) -> None:
    """Show how many independent judges the evaluators of a run are worth, and which one to drop.

    \b
    proctor judge panel latest strict lenient local --evaluator strict

    Needs 30 labels that were drawn at random. JUDGES are evaluators of the run; all of them by default.
    """
    from proctor.validity.describe_card import describe_panel
    from proctor.validity.drawing import find_evaluator
    from proctor.validity.panels import MIN_PANEL_LABELS, build_panel

    store, metadata, _ = _open(run, history)
    names = judges or tuple(spec.name for spec in metadata.evaluators)
    if len(names) < 2:
        raise ConfigError("a panel needs two judges or more", fix="add judges with `proctor rescore`")
    measured = build_panel(store, metadata, evaluator, [find_evaluator(metadata, name).name for name in names])
    if measured is None:
        counts = Counter(label.evaluator for label in store.labels(run_id=metadata.run_id))
        [(question, count)] = counts.most_common(1) or [("", 0)]
        fix = f"proctor label {metadata.run_id}{f' --evaluator {shlex.quote(evaluator)}' if evaluator else ''}"
        if question != evaluator and count >= MIN_PANEL_LABELS:
            fix = (
                f"add --evaluator {shlex.quote(question)}, which has {count:,} labels"
                if question
                else "leave out --evaluator"
            )
        raise UsageError(
            f"fewer than {MIN_PANEL_LABELS} outputs that all judges scored have a label of "
            f"{evaluator or 'the overall verdict'}",
            fix=fix,
        )
    if as_json:
        cli.print_json(measured)
        return
    for line in describe_panel(measured):
        click.echo(line)
