"""`proctor watch`: raise an alarm when the runs of a name change, and find why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli import options as cli
from proctor.cli.evaluation import evaluator_option, plugin_option, set_option
from proctor.cli.filters import parse_filters, time_options
from proctor.core.clock import SystemClock
from proctor.errors import ConfigError, UsageError, suggest_name
from proctor.records.formatting import format_count

if TYPE_CHECKING:
    from proctor.ports import History
    from proctor.validity.alarms import Alarm, Blame

EXIT_CODES = {"healthy": 0, "alarm": cli.FAILED, "cannot tell": cli.INCONCLUSIVE}

every_option = cli.option(
    "--false-alarm-every N",
    "Accept one false alarm in N healthy runs on average. Default: 200.",
    type=cli.Number(float, 5, 100_000),
    default=200.0,
)


@click.command("watch")
@click.argument("name")
@cli.option("--metric NAME", "Watch this metric. Default: pass_rate.", default="pass_rate")
@cli.option("--configuration NAME", "Watch this configuration. Default: the only one.")
@every_option
@cli.option("--file FILE", "On an alarm, judge stored outputs again with the evaluators of this eval file.")
@evaluator_option
@set_option
@plugin_option
@cli.budget_option
@time_options
@cli.common_options
def command(name: str, file: Path | None, as_json: bool, history: str | None, **options: Any) -> int:
    """Watch the runs NAME with a control chart; on an alarm, find the cause: judge, data or agent.

    \b
    proctor watch nightly --file eval.yaml
    proctor watch nightly --metric correct.pass_rate --since 2026-03-01

    Exit codes: 0 no alarm, 1 alarm, 4 undecided, with fewer than 6 runs. On an alarm, the outputs of the
    last healthy run are scored with today's evaluators, without calling the target. To start again after a change that
    you accept, add --since with the date of the first run after it.
    """
    from proctor.wiring.open_history import open_history

    store = open_history(history)
    query = {**parse_filters({**options, "configuration": None}, SystemClock().now()), "name": name}
    alarm = chart_runs(store, query, options["metric"], options["configuration"], options["false_alarm_every"])
    blame = None
    if alarm.status == "alarm":
        settings = {**options, "history": history, "as_json": as_json, "quiet": True, "fail_under": (), "tag": ()}
        blame = _find_cause(store, alarm, file, {**settings, "name": f"{name}.rescored"})
    if as_json:
        cli.print_json({"alarm": alarm, "shift": alarm.shift, "blame": blame})
    else:
        for line in (*describe_alarm(alarm), *(() if blame is None else _describe_blame(blame))):
            click.echo(line)
    return EXIT_CODES[alarm.status]


def chart_runs(
    store: History, query: dict[str, Any], metric: str, configuration: str | None, every: float = 200.0
) -> Alarm:
    """Chart a metric of the runs of one name."""
    from proctor.history import trends
    from proctor.validity.alarms import watch_runs

    series = trends.trend(store, metric, **query)
    configurations = list(dict.fromkeys(point.configuration for point in series.points))
    if configuration is None and len(configurations) > 1:
        raise ConfigError(
            f"the runs have {len(configurations)} configurations", fix=f"add --configuration {configurations[0]}"
        )
    if not series.points:
        raise UsageError(
            f"no run named {query['name']!r} has the metric {metric}",
            fix="name runs that `proctor runs` lists, or another --metric",
        )
    if configuration is not None and configuration not in configurations:
        fix = suggest_name(configuration, configurations)
        raise ConfigError(f"the runs have no configuration {configuration!r}", where="--configuration", fix=fix)
    return watch_runs(series, query["name"], configuration or configurations[0], every)


def _find_cause(store: History, alarm: Alarm, file: Path | None, options: dict[str, Any]) -> Blame:
    from proctor.cli.rescore import rescore_stored_run
    from proctor.validity.alarms import can_judge_move, find_cause
    from proctor.wiring.open_history import load_report

    assert alarm.healthy_run is not None
    healthy, latest = load_report(store, alarm.healthy_run), load_report(store, alarm.runs[-1].run_id)
    assert healthy.metadata is not None
    assert latest.metadata is not None
    rescored = None
    has_evaluators = file is not None or options["evaluator"] or options["plugin"]
    if has_evaluators and can_judge_move(healthy.metadata, latest.metadata):
        rescored, _ = rescore_stored_run(alarm.healthy_run, file, options)
    return find_cause(alarm, healthy, latest, rescored)


def describe_alarm(alarm: Alarm) -> Iterator[str]:
    """Yield the state of the chart in sentences."""
    from proctor.validity.alarms import MIN_RUNS

    latest = alarm.runs[-1]
    count = format_count(len(alarm.runs), "run")
    promise = (
        f"false alarms: one in {alarm.false_alarm_every:,.0f} healthy runs on average; a change by one standard "
        f"deviation takes about {alarm.detection_runs:.0f} runs after a long healthy history"
    )
    if alarm.status == "cannot tell":
        yield (
            f"Cannot tell yet: {alarm.metric} of {alarm.name} has {count}, and the chart needs {MIN_RUNS}. "
            f"Fix: add {format_count(MIN_RUNS - len(alarm.runs), 'run')}"
        )
        return
    if alarm.status == "healthy":
        yield (
            f"Healthy: {alarm.metric} of {alarm.name} shows no change in {count}; "
            f"latest {_format(latest.value, alarm)} (n = {latest.n:,})"
        )
        yield f"Sums: {latest.rise:.1f} up, {latest.fall:.1f} down, alarm above {alarm.limit:.2f}; {promise}"
        return
    shift = alarm.shift or 0.0
    changed = next(index for index, run in enumerate(alarm.runs) if run.run_id == alarm.changed_run)
    yield (
        f"ALARM: {alarm.metric} of {alarm.name} {'rose' if shift > 0 else 'fell'} from "
        f"{_format(alarm.before or 0.0, alarm)} ({format_count(changed, 'run')}) to "
        f"{_format(alarm.after or 0.0, alarm)} ({format_count(len(alarm.runs) - changed, 'run')})"
    )
    if alarm.shift_interval is not None:
        scale, unit = (1.0, "") if alarm.kind == "number" else (100.0, " points")
        low, high = (f"{scale * end:+.3g}" for end in alarm.shift_interval)
        yield (
            f"Change {scale * shift:+.3g}{unit} (95% interval {low} to {high}, from "
            f"{format_count(len(alarm.runs), 'run')}; the chart chose where to cut, so it may overstate)"
        )
    yield f"First changed run: about {alarm.changed_run}; alarm at {alarm.alarm_run}; {promise}"


def _format(value: float, alarm: Alarm) -> str:
    return f"{value:.4g}" if alarm.kind == "number" else f"{100 * value:.1f}%"


def _describe_blame(blame: Blame) -> Iterator[str]:
    yield f"Cause: {'cannot tell' if blame.cause == 'cannot tell' else f'the {blame.cause}'}"
    yield from (f"  - {text}" for text in blame.evidence)
    if blame.fix:
        yield f"Fix: {blame.fix}"
