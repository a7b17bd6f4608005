"""`proctor plan`: plan how many samples, epochs and verdicts a gate needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from proctor.cli import options as cli
from proctor.cli.noise import format_points, open_repeats, select_configuration
from proctor.errors import ConfigError
from proctor.records.formatting import format_cost, format_count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from proctor.validity.plan import Plan

# A run with more than this many times the calls of the cheapest one is no way to reach a margin.
MAX_CALL_RATIO = 5


@click.command("plan")
@click.argument("run", required=False)
@cli.option("--margin PERCENT", "Plan a gate with this margin. Default: 2%. Example: --margin 5%.")
@cli.option(
    "--baseline RUN", "Measure how much verdicts vary, and what calls cost, on this stored run; the same as RUN."
)
@cli.option("--pass-rate SHARE", "Expect this pass rate, if there is no run yet. Example: --pass-rate 80%.")
@cli.option("--epochs N", "Plan this many epochs. Default: compare 1, 2, 3 and 5.", type=cli.POSITIVE_INTEGER)
@cli.option("--verdicts N", "Plan this many verdicts on each output. Default: 1.", type=cli.POSITIVE_INTEGER, default=1)
@cli.option("--metric NAME", "Plan for this metric of the baseline. Default: pass_rate.", default="pass_rate")
@cli.option("--power SHARE", "Set the probability that an unchanged run passes the gate. Default: 80%.")
@cli.common_options
def command(run: str | None, **options: Any) -> None:
    """Plan how many samples, epochs and judge calls a gate needs, before anything is run.

    \b
    proctor plan --pass-rate 80% --margin 3%
    proctor plan main --margin 2%

    The plan uses the interval that `proctor gate` uses. It assumes that the run is equal to its baseline and that both
    have the same samples and epochs; a run that is slightly worse needs more samples.
    """
    if run is not None and options["baseline"] is not None:
        raise ConfigError(f"two runs are named, {run} and --baseline {options['baseline']}", fix="leave out --baseline")
    plan = _plan_gate({**options, "baseline": run if options["baseline"] is None else options["baseline"]})
    if options["as_json"]:
        cli.print_json({"plan": plan, "cheapest": plan.cheapest})
        return
    from proctor.reports.format import print_rendered, render_parts

    print_rendered(lambda width, color: render_parts(_plan_parts(plan), width, color))


def _plan_gate(options: dict[str, Any]) -> Plan:
    from proctor.cli.gate import parse_margin
    from proctor.comparison.gates.decision import DEFAULT_MARGIN
    from proctor.validity.plan import EPOCHS_SHOWN, POWER, assume_spread, make_plan

    settings: dict[str, Any] = {
        "margin": DEFAULT_MARGIN if options["margin"] is None else parse_margin(options["margin"], "--margin"),
        "power": POWER if options["power"] is None else _parse_inner_share(options["power"], "--power"),
        "epochs": EPOCHS_SHOWN if options["epochs"] is None else (options["epochs"],),
        "verdicts": options["verdicts"],
    }
    if not settings["margin"]:
        raise ConfigError("a margin of 0 needs infinitely many samples", where="--margin", fix="write --margin 2%")
    if (options["baseline"] is None) == (options["pass_rate"] is None):
        raise ConfigError(
            "a plan needs either a stored run or an expected pass rate",
            fix="write proctor plan latest, or proctor plan --pass-rate 80%",
        )
    if options["baseline"] is None:
        return make_plan(assume_spread(_parse_inner_share(options["pass_rate"], "--pass-rate")), **settings)
    return _plan_from_baseline(options, settings)


def _plan_from_baseline(options: dict[str, Any], settings: dict[str, Any]) -> Plan:
    from proctor.validity.noise import measure_noise
    from proctor.validity.plan import make_plan, read_spread
    from proctor.validity.verdicts import parse_measure
    from proctor.wiring.compare_runs import open_report
    from proctor.wiring.open_history import open_history

    store = open_history(options["history"])
    _, report, configuration, _ = open_report(options["baseline"], store)
    assert report.metadata is not None
    name = select_configuration(report, configuration, f"write --baseline {report.run_id}@{{}}")
    measure = parse_measure(options["metric"], report.metadata)
    repeats = open_repeats(store, report.metadata, measure)
    budget = measure_noise(report, name, options["metric"], repeats=repeats)
    return make_plan(
        read_spread(budget, is_binary=measure.counts_passes),
        **settings,
        prices=budget.prices,
        baseline_samples=budget.design.samples,
        notes=budget.unknown,
    )


def _parse_inner_share(text: str, where: str) -> float:
    share = cli.parse_share(text, where, "80% or 0.8")
    if not 0 < share < 1:
        raise ConfigError(
            f"must be greater than 0% and less than 100%, got {text}", where=where, fix=f"write {where} 80%"
        )
    return share


def _plan_parts(plan: Plan) -> Iterator[RenderableType]:
    from proctor.reports.format import new_table, styled_text

    best = plan.cheapest
    verdicts = f" and {best.verdicts} verdicts on each output" if best.verdicts > 1 else ""
    yield styled_text(
        f"A margin of {format_points(plan.margin)} needs {format_count(best.samples, 'sample')} with "
        f"{format_count(best.epochs, 'epoch')}{verdicts}: an equal run then passes with probability "
        f"{best.pass_probability:.0%}.",
        "bold",
    )
    yield ""
    table = new_table()
    for title in ("Epochs", "Samples", "Target calls", "Judge calls", "Cost", "Equal run passes"):
        table.add_column(title, justify="right")
    for run in plan.runs:
        table.add_row(
            str(run.epochs),
            f"{run.samples:,}",
            f"{run.target_calls:,}",
            f"{run.judge_calls:,}",
            "unknown" if run.cost is None else format_cost(run.cost),
            f"{run.pass_probability:.0%}",
        )
    yield table
    if plan.baseline_samples is not None:
        yield styled_text(_describe_same_samples(plan.baseline_samples, plan))
    yield styled_text(
        f"The spread is {_describe_spread(plan)}. Calls are of one run; the baseline needs as many.", "dim"
    )
    for note in plan.notes:
        yield styled_text(note, "yellow")


def _describe_same_samples(samples: int, plan: Plan) -> str:
    baseline, same, best = f"the {format_count(samples, 'sample')} of the baseline", plan.same_samples, plan.cheapest
    if same is None:
        return f"T{baseline[1:]} are too few for this margin, with any number of epochs."
    calls = [
        format_count(number, noun)
        for number, noun in ((same.target_calls, "target call"), (same.judge_calls, "judge call"))
        if number
    ]
    if same.target_calls > MAX_CALL_RATIO * best.target_calls:
        return (
            f"T{baseline[1:]} cannot reach this margin with epochs alone: near this number of samples epochs barely "
            f"help ({same.epochs:,} of them, {' and '.join(calls)}). Add samples: {best.samples:,} with "
            f"{format_count(best.epochs, 'epoch')} take {format_count(best.target_calls, 'target call')}."
        )
    return f"With {baseline}: {format_count(same.epochs, 'epoch')}, {' and '.join(calls)}."


def _describe_spread(plan: Plan) -> str:
    spread = plan.spread
    flips = f"{spread.variance(1, 1):.0%}"
    if plan.baseline_samples is None:
        return (
            f"the largest for a pass rate of {spread.rate:.0%}: all samples are alike, and {flips} of them change from "
            "run to run. A stored run with epochs (--baseline) shows how many fewer are needed"
        )
    measured = f"measured on {format_count(plan.baseline_samples, 'sample')}"
    if spread.is_upper_bound:
        return f"an upper bound, {measured}, which ran once"
    if not spread.is_binary:
        return f"{measured}: see `proctor noise`"
    low, high = spread.change_interval or (0.0, 1.0)
    return f"{measured}: {flips} of them (95% interval {low:.0%} to {high:.0%}) change from run to run"
