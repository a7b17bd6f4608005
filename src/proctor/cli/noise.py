"""`proctor noise`: show what makes a run's numbers uncertain, and what to run next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from proctor.cli import options as cli
from proctor.errors import ConfigError
from proctor.records.formatting import format_cost, format_count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from proctor.comparison.report import EvalReport
    from proctor.ports import History
    from proctor.records.run import RunMetadata
    from proctor.validity.noise import Component, Design, NoiseBudget, Step
    from proctor.validity.verdicts import Measure

MAX_RUNS = 1_000
# What doubles or multiplies a number of verdicts, epochs or samples.
ACTIONS = {"samples": "run more samples", "epochs": "run more epochs", "verdicts": "ask the judge more often"}


@click.command("noise")
@click.argument("run", default="latest")
@cli.option(
    "--metric NAME",
    "Split the noise of this metric: pass_rate, mean_score, an evaluator's name, or EVALUATOR.pass_rate.",
    default="pass_rate",
)
@cli.option("--margin PERCENT", "Find what a 95% interval of ±PERCENT requires. Example: --margin 3%.")
@cli.option("--configuration NAME", "Use this configuration. Default: the only one.")
@cli.common_options
def command(
    run: str, metric: str, margin: str | None, configuration: str | None, history: str | None, as_json: bool
) -> None:
    """Split the noise of a metric of RUN into samples, agent and judge, and price what would make it more precise.

    \b
    proctor noise latest
    proctor noise latest --metric correct.pass_rate --margin 3%

    The noise of the agent shows in epochs (`proctor run --epochs 3`), that of the judge in repeated verdicts: judges
    with `samples: 3`, or `proctor rescore` of the same run with the same evaluators.
    """
    from proctor.cli.gate import parse_margin
    from proctor.validity.noise import measure_noise
    from proctor.validity.verdicts import parse_measure
    from proctor.wiring.compare_runs import open_report
    from proctor.wiring.open_history import open_history

    store = open_history(history)
    _, report, configuration, _ = open_report(run, store, configuration)
    assert report.metadata is not None
    name = select_configuration(report, configuration, "add --configuration {}")
    measure = parse_measure(metric, report.metadata)
    budget = measure_noise(
        report,
        name,
        metric,
        margin=None if margin is None else parse_margin(margin, "--margin"),
        repeats=open_repeats(store, report.metadata, measure),
    )
    if as_json:
        cli.print_json(budget)
    else:
        show_noise(budget)


def select_configuration(report: EvalReport, configuration: str | None, fix: str) -> str:
    """Return the name of the configuration, or of the only one; `fix` says how to choose one of several."""
    if configuration is None and len(report.configurations) > 1:
        raise ConfigError(
            f"run {report.run_id} has {len(report.configurations)} configurations: {', '.join(report.configurations)}",
            fix=fix.format(report.configurations[0]),
        )
    return report.side(configuration).name


def open_repeats(store: History, run: RunMetadata, measure: Measure) -> list[EvalReport]:
    """Open the runs that scored the outputs of a run again, with the same evaluators."""
    from proctor.validity.verdicts import find_repeats
    from proctor.wiring.open_history import load_report

    others = store.runs(limit=MAX_RUNS)
    return [load_report(store, run_id) for run_id in find_repeats(run, others, measure)]


def show_noise(budget: NoiseBudget) -> None:
    """Print the noise budget."""
    from proctor.reports.format import print_rendered, render_parts

    print_rendered(lambda width, color: render_parts(_noise_parts(budget), width, color))


def _noise_parts(budget: NoiseBudget) -> Iterator[RenderableType]:
    from proctor.reports.format import new_table, styled_text

    yield styled_text(_headline(budget), "bold")
    yield ""
    table = new_table()
    table.add_column("Noise")
    for title in ("Share", "95% interval", "Variance of one"):
        table.add_column(title, justify="right")
    is_only = len(budget.components) == 1
    for part in budget.components:
        interval = "none: the only source measured" if is_only else describe_range(part.interval)
        table.add_row(part.source, f"{part.share:.0%}", interval, f"{part.variance:.3g}")
    yield table
    yield styled_text(
        "Share: of the variance of the metric with all samples, epochs and verdicts. Variance: of one sample, of one "
        "epoch, of one verdict. Intervals: Fieller's method with jackknife standard errors over samples (or clusters). "
        "±: 1.96 standard errors. Use it to compare rows; `proctor show` prints an asymmetric interval.",
        "dim",
    )
    if budget.paired_half_width is not None:
        yield styled_text(
            "Against an equal run on the same samples, whose differences cancel: "
            f"±{format_points(budget.paired_half_width)}",
            "dim",
        )
    yield ""
    yield from _step_parts(budget)
    for sentence in (*budget.unknown, *budget.notes):
        yield styled_text(sentence[:1].upper() + sentence[1:], "yellow")


def _headline(budget: NoiseBudget) -> str:
    missing = f", {format_count(budget.missing, 'trial')} without a verdict" if budget.missing else ""
    return (
        f"{budget.metric} {100 * budget.value:.1f}% ± {format_points(budget.half_width)} "
        f"({describe_design(budget.design)}{missing})"
    )


def _step_parts(budget: NoiseBudget) -> Iterator[RenderableType]:
    from proctor.reports.format import new_table, styled_text

    for sentence in advise(budget):
        yield styled_text(sentence, "bold")
    table = new_table()
    table.add_column("Run next")
    for title in ("95% interval", "Target calls", "Judge calls", "Cost"):
        table.add_column(title, justify="right")
    for step in budget.steps:
        reached = "" if step.reaches is not False else f"cannot reach {format_points(budget.margin or 0)}; "
        table.add_row(
            f"{step.more}: {_describe_size(step)}",
            f"{reached}±{format_points(step.half_width)}",
            f"+{step.target_calls:,}",
            f"+{step.judge_calls:,}",
            "unknown" if step.cost is None else format_cost(step.cost, "+"),
        )
    yield table


def _describe_size(step: Step) -> str:
    sizes = {"samples": step.design.samples, "epochs": step.design.epochs, "verdicts": step.design.verdicts}
    return f"{sizes[step.more]:,.3g}" if step.more != "samples" else f"{step.design.samples:,}"


def describe_design(design: Design) -> str:
    """Describe the size of a run, such as "50 samples, 3 epochs, 1 verdict each"."""
    epochs = f"{design.epochs:.3g} {'epoch' if design.epochs == 1 else 'epochs'}"
    verdicts = f"{design.verdicts:.3g} {'verdict' if design.verdicts == 1 else 'verdicts'}"
    return f"{format_count(design.samples, 'sample')}, {epochs}, {verdicts} each"


def advise(budget: NoiseBudget) -> Iterator[str]:
    """Yield what to run next, in one or two sentences; a tie has no winner."""
    from proctor.validity.noise import MIN_AGREEMENT

    if budget.margin is not None and budget.half_width <= budget.margin:
        yield f"The interval is already within ±{format_points(budget.margin)}: nothing more needs to run."
        return
    if budget.best is None:
        reason = "no single step reaches the margin" if budget.margin else "the scores do not vary"
        yield f"No advice: {reason}."
        return
    steps = {step.more: step for step in budget.steps}
    best = steps[budget.best]
    largest, *others = sorted(budget.components, key=lambda part: -part.share)
    if any(other.interval[1] >= largest.interval[0] for other in others):
        yield f"Cannot tell which noise is largest, the intervals overlap: {_list_shares([largest, *others])}."
    elif others:
        yield (
            f"{largest.share:.0%} of the noise (95% interval {describe_range(largest.interval)}) comes from "
            f"{'the ' if largest.source != 'samples' else ''}{largest.source}."
        )
    purchase = f"{ACTIONS[budget.best]} ({_describe_size(best)}), {_describe_purchase(best)}"
    if budget.best_agreement is not None and budget.best_agreement < MIN_AGREEMENT:
        yield (
            f"Cannot tell which step is cheapest; in {budget.best_agreement:.0%} of the resamples, and with these "
            f"numbers, it is: {purchase}."
        )
    else:
        yield f"The cheapest step: {purchase}."
    for step in budget.steps:
        is_useful = step is not best and step.reaches is not False and step.half_width < 0.999 * budget.half_width
        if is_useful and (ratio := _compare_costs(step, best)):
            yield f"Instead {step.more} {_describe_size(step)}: ±{format_points(step.half_width)} for {ratio}."


def _list_shares(parts: Sequence[Component]) -> str:
    return ", ".join(
        f"{'the ' if part.source != 'samples' else ''}{part.source} {part.share:.0%} "
        f"(95% interval {describe_range(part.interval)})"
        for part in parts
    )


def _describe_purchase(step: Step) -> str:
    calls = [
        format_count(number, f"more call of the {noun}", f"more calls of the {noun}")
        for number, noun in ((step.target_calls, "target"), (step.judge_calls, "judge"))
        if number
    ]
    cost = "at an unknown price" if step.cost is None else f"about {format_cost(step.cost)}"
    return f"±{format_points(step.half_width)} for {' and '.join(calls)}, {cost}"


def _compare_costs(step: Step, best: Step) -> str:
    def compare(amount: float, other: float, noun: str) -> str:
        ratio = f"{amount / other:.2g}"
        return f"about the same {noun}" if ratio == "1" else f"{ratio} times the {noun}"

    if step.cost is not None and best.cost:
        return compare(step.cost, best.cost, "price")
    calls = best.target_calls + best.judge_calls
    return compare(step.target_calls + step.judge_calls, calls, "calls") if calls else ""


def describe_range(interval: tuple[float, float]) -> str:
    """Describe an interval of shares; ends that round to the same percentage get a decimal, or a limit.

    >>> describe_range((0.12, 0.345)), describe_range((0.997, 1.0)), describe_range((0.0, 0.0001))
    ('12–34%', '99.7–100.0%', 'at most 0.1%')
    """
    low, high = (100 * end for end in interval)
    if f"{low:.0f}" != f"{high:.0f}":
        return f"{low:.0f}–{high:.0f}%"
    if f"{low:.1f}" != f"{high:.1f}":
        return f"{low:.1f}–{high:.1f}%"
    return "at most 0.1%" if high < 0.1 else "at least 99.9%" if low > 99.9 else f"about {low:.1f}%"


def format_points(share: float) -> str:
    """Format a difference of rates or scores in points.

    >>> format_points(0.0312)
    '3.1 points'
    """
    return f"{100 * share:.2g} points" if share < 0.1 else f"{100 * share:.0f} points"
