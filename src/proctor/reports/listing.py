"""Tables for the terminal: runs of a history, baselines, and results of a run."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.records.metric import MetricValue
from proctor.records.numbers import is_number
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.reports.format import DASH, excerpt, format_interval, format_metric, format_percent, single_line
from proctor.reports.summary import name_epoch
from proctor.reports.transcript import render_transcripts

GAP, MIN_WIDTH, ELLIPSIS = 2, 8, "…"
VALUE_LIMIT = 300
CONFIGURATIONS_SHOWN = 3


def align_columns(
    rows: Sequence[Sequence[str]], width: int, *, right: Collection[int] = (), shrinkable: Collection[int] = ()
) -> list[str]:
    """Align rows of cells in columns; the first row holds the headings.

    If `width` is too small, the widest `shrinkable` columns are truncated to no less than eight characters. Other
    columns are never truncated, so a line may be longer than `width`.

    >>> for text in align_columns([("id", "name"), ("20260101", "a long name")], 20, shrinkable=[1]):
    ...     print(text)
    id        name
    20260101  a long na…
    """
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    minimum = {index: min(widths[index], MIN_WIDTH) for index in shrinkable}
    while sum(widths) + GAP * (len(widths) - 1) > width:
        wide = [index for index in shrinkable if widths[index] > minimum[index]]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1

    def cell(text: str, index: int) -> str:
        if cell_len(text) > widths[index]:
            return set_cell_size(text, widths[index] - 1).rstrip() + ELLIPSIS
        padding = " " * (widths[index] - cell_len(text))
        return padding + text if index in right else text + padding

    return [(" " * GAP).join(cell(text, index) for index, text in enumerate(row)).rstrip() for row in rows]


def show_runs(runs: Sequence[tuple[RunMetadata, EvalReport]], baselines: Mapping[str, str] | None = None) -> None:
    """Print one line for each run: id, name, status, results by outcome, pass rate, baselines and tags.

    The pass rate covers the results with a verdict; that of several configurations is the lowest and the highest, and
    each of them is named with its interval. Tags, and a name that does not fit, go on a line below the run if the
    terminal is too narrow.
    """
    # A column of zeros would make the table too wide for a terminal.
    has_skipped = any(report.counts.skipped for _, report in runs)
    rows: list[tuple[str, ...]] = [
        ("run", "name", "status", "results", "judged", "pass rate", *(["skipped"] if has_skipped else []), "errors")
    ]
    tags = ["tags"]
    for run, report in runs:
        counts = report.counts
        is_complete = run.status == "completed" and not run.stopped_early
        total = f"{report.total:,}" if is_complete else _format_progress(report.total, run.total)
        names = [f"baseline:{name}" for name, run_id in (baselines or {}).items() if run_id == run.run_id]
        names += _describe_configurations(run, report)
        names += [f"rescored from {run.rescored_from}"] if run.rescored_from else []
        tags.append(single_line(", ".join([*names, *(f"{k}={v}" for k, v in run.tags.items())]), VALUE_LIMIT))
        rows.append(
            _cells(
                run.run_id,
                run.name,
                run.status,
                total,
                f"{counts.passed + counts.failed:,}",
                _format_pass_rate(run, report),
                *([f"{counts.skipped:,}"] if has_skipped else []),
                f"{report.errors:,}",
            )
        )
    _print_table(rows, right=range(3, len(rows[0])), shrinkable=(1,), last_column=tags)


def show_baselines(baselines: Sequence[tuple[str, RunMetadata, EvalReport]]) -> None:
    """Print one line for each baseline: its name, its run, and the run's results."""
    rows: list[tuple[str, ...]] = [("baseline", "run", "name", "status", "results", "pass rate", "errors")]
    for name, run, report in baselines:
        count = f" ({len(run.configurations)} configurations)" if len(run.configurations) > 1 else ""
        pass_rate = _format_pass_rate(run, report) + count
        errors = f"{report.errors:,}/{report.total:,}"
        rows.append(_cells(name, run.run_id, run.name, run.status, f"{report.total:,}", pass_rate, errors))
    _print_table(rows, right=(4, 5, 6), shrinkable=(2,))


def show_imported(runs: Sequence[Any], tool: str, *, is_dry_run: bool = False) -> None:
    """Print one line for each imported run, and the tool's numbers next to those computed from the results."""
    rows: list[tuple[str, ...]] = [("run", "name", "results", "passed", "failed", "errors", "no verdict", "")]
    for run in runs:
        counts = run.counts
        state = "new" if run.new else "already imported"
        state = "not stored" if is_dry_run else state if run.stored else "no results, not stored"
        total = f"{run.results:,}" if run.total == run.results else _format_progress(run.results, run.total)
        numbers = (counts.passed, counts.failed, counts.error, counts.unscored + counts.skipped)
        rows.append(_cells(run.run_id, run.name, total, *(f"{number:,}" for number in numbers), state))
    _print_table(rows, right=range(2, 7), shrinkable=(1,))
    for run in runs:
        _show_numbers(run, tool)


def _show_numbers(run: Any, tool: str) -> None:
    table: list[tuple[str, ...]] = [("number", tool, "Proctor", "95% interval", "n", "")]
    for number in (number for number in run.numbers if number.computed is not None):
        bounds = "" if number.interval is None else f"{number.interval[0]:.3g} to {number.interval[1]:.3g}"
        values = (f"{number.reported:.6g}", f"{number.computed:.6g}", bounds or DASH, f"{number.n:,}")
        table.append(_cells(number.name, *values, "warning: they differ" if number.differs else ""))
    if len(table) > 1:
        _print_table(table, right=range(1, 5), shrinkable=(0,))
    others = [f"{number.name} {number.reported:.6g}" for number in run.numbers if number.computed is None]
    if others:
        print(single_line(f"also reported by {tool}: {', '.join(others)}", VALUE_LIMIT))


def _format_progress(results: int, planned: int | None) -> str:
    return f"{results:,} of {'?' if planned is None else f'{planned:,}'}"


def _cells(*texts: str) -> tuple[str, ...]:
    return tuple(single_line(text, VALUE_LIMIT) for text in texts)


def _print_table(
    rows: Sequence[tuple[str, ...]],
    *,
    right: Collection[int],
    shrinkable: Collection[int],
    last_column: Sequence[str] = (),
) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    last = last_column if any(last_column[1:]) else [""] * len(rows)
    lines = align_columns([(*row, text) for row, text in zip(rows, last, strict=True)], 0, right=right)
    if max(map(cell_len, lines)) > console.width:
        # A pipe gets whole names; a terminal shows a shortened name, and the whole name on the next line.
        lines = align_columns(rows, console.width, right=right, shrinkable=shrinkable if sys.stdout.isatty() else ())
        for number, (row, text) in enumerate(zip(rows, ("", *last[1:]), strict=True)):
            cut_names = [row[index] for index in shrinkable if row[index] not in lines[number]]
            lines[number] += "".join(f"\n  {more}" for more in (*cut_names, text) if more)
    # rich would end the program on a closed pipe, so its output is captured and printed here.
    with console.capture() as captured:
        for number, text in enumerate(lines):
            console.print(Text(text, style="" if number else "bold"), soft_wrap=True)
    print(captured.get(), end="")


def _format_pass_rate(run: RunMetadata, report: EvalReport) -> str:
    if len(run.configurations) == 1:
        return DASH if report.pass_rate is None else format_percent(report.pass_rate)
    rates = [rate.value or 0.0 for rate in _list_pass_rates(report).values()]
    if not rates:
        return DASH
    low, high = format_percent(min(rates)), format_percent(max(rates))
    return high if low == high else f"{low} … {high}"


def _list_pass_rates(report: EvalReport) -> dict[str, MetricValue]:
    rates = {name: table.get("pass_rate") for name, table in report.by_configuration.items()}
    return {name: rate for name, rate in rates.items() if rate is not None and rate.value is not None}


def _describe_configurations(run: RunMetadata, report: EvalReport) -> list[str]:
    if len(run.configurations) < 2:
        return []
    if len(run.configurations) > CONFIGURATIONS_SHOWN:
        sizes = sorted(rate.n for rate in _list_pass_rates(report).values()) or [0]
        count = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
        more = f"the lowest and the highest rate; intervals: proctor show {run.run_id}"
        return [f"{len(run.configurations)} configurations of n = {count}, {more}"]
    return [
        f"{name} {format_metric(rate)} (95% interval {format_interval(rate)}, n = {rate.n:,})"
        for name, rate in _list_pass_rates(report).items()
    ]


def show_results(results: Iterable[EvalResult], epochs: int = 1, *, sessions: bool = False, hint: str = "") -> None:
    """Print each result of a run with `epochs`, with long values truncated; `sessions` adds the transcripts.

    `hint` says which results there are if there are none of these.
    """
    texts = [
        describe_result(result, epochs) + (f"\n\n{render_transcripts(result)}" if sessions else "")
        for result in results
    ]
    print("\n\n".join(texts) or f"no such results{hint}")


def describe_result(result: EvalResult, epochs: int = 1) -> str:
    """Return a result as a heading and one line for each property."""
    trial = result.trial
    heading = [
        single_line(trial.configuration, VALUE_LIMIT),
        name_epoch(result, epochs),
        "" if trial.latency_ms is None else f"{trial.latency_ms:,.1f} ms",
        f"{trial.attempts} attempts" if trial.attempts > 1 else "",
        "cached" if trial.cached else "",
    ]
    facts = [
        ("input", excerpt(trial.sample.input, VALUE_LIMIT)),
        ("output", excerpt(trial.output, VALUE_LIMIT) if result.success else ""),
        ("expected", "" if trial.sample.expected is None else excerpt(trial.sample.expected, VALUE_LIMIT)),
        ("error", "" if result.error is None else excerpt(result.error, VALUE_LIMIT)),
        ("where", excerpt(trial.error.traceback.rstrip(), 4 * VALUE_LIMIT) if trial.error else ""),
        *((single_line(name, VALUE_LIMIT), _describe_score(score)) for name, score in result.scores.items()),
    ]
    facts = [(name, text) for name, text in facts if text]
    notes = ", ".join(filter(None, heading))
    width = max(len(name) for name, _ in facts)
    indent = "\n" + " " * (width + 4)
    return "\n".join(
        [
            f"{single_line(result.sample_id, VALUE_LIMIT)}  {result.outcome}  ({notes})",
            *(f"  {name:<{width}}  {text.replace(chr(10), indent)}" for name, text in facts),
        ]
    )


def _describe_score(score: Score) -> str:
    verdict: str = score.status
    if score.value is not None:
        value = f"{score.value:.3g}"
        points, maximum = score.details.get("score"), score.details.get("max")
        if is_number(points) and is_number(maximum):
            value = f"{points:g} of {maximum:g} ({value})"
        verdict = f"{value} {'passed' if score.passed else 'failed'}"
    return f"{verdict}  {single_line(score.reason, VALUE_LIMIT)}".rstrip()
