"""Lists for the terminal: runs in a history, results of a run, evaluators in a catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.reports.excerpts import excerpt, line
from proctor.reports.figures import percent
from proctor.reports.transcript import transcripts

RESULT_WIDTH = 300


def show_runs(
    runs: Sequence[tuple[RunMetadata, EvalReport]], baselines: Mapping[str, str] | None = None
) -> None:
    """One line for each run: id, name, how it stands and came out, which baselines it is, tags."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("run", "name", "status", "results", "pass rate", "errors", "tags"):
        right = heading in ("results", "pass rate", "errors")
        table.add_column(
            heading,
            justify="right" if right else "left",
            no_wrap=heading != "tags",
            overflow="fold" if heading == "tags" else "ellipsis",
        )
    for run, report in runs:
        total = f"{report.total:,}" + (
            f" of {run.total:,}"
            if run.total and (run.status != "completed" or run.stopped_early)
            else ""
        )
        named = [f"baseline:{n}" for n, its in (baselines or {}).items() if its == run.run_id]
        tags = ", ".join([*named, *(f"{key}={value}" for key, value in run.tags.items())])
        cells = (
            run.run_id,
            run.name,
            run.status,
            total,
            _rate(run, report),
            f"{report.errors:,}",
            tags,
        )
        table.add_row(*(Text(line(cell, RESULT_WIDTH)) for cell in cells))
    Console(highlight=False).print(table)


def show_baselines(found: Sequence[tuple[str, RunMetadata, EvalReport]]) -> None:
    """One line for each baseline: its name, its run, and how that came out."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("baseline", "run", "name", "status", "results", "pass rate"):
        right = heading in ("results", "pass rate")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for name, run, report in found:
        cells = (name, run.run_id, run.name, run.status, f"{report.total:,}", _rate(run, report))
        table.add_row(*(Text(line(cell, RESULT_WIDTH)) for cell in cells))
    Console(highlight=False).print(table)


def _rate(run: RunMetadata, report: EvalReport) -> str:
    """A run's pass rate; of several configurations the lowest and the highest."""
    if len(run.configurations) == 1:
        return "—" if report.pass_rate is None else percent(report.pass_rate)
    rates = [table.get("pass_rate") for table in report.by_configuration.values()]
    known = [rate.value for rate in rates if rate is not None and rate.value is not None]
    if not known:
        return "—"
    low, high = percent(min(known)), percent(max(known))
    return high if low == high else f"{low.removesuffix(' %')}–{high}"


def show_results(results: Iterable[EvalResult], *, sessions: bool = False) -> None:
    """Each result in full, long values cut; with what was said to models, if that is wanted."""
    told = [
        f"{describe(result)}\n\n{transcripts(result)}" if sessions else describe(result)
        for result in results
    ]
    print("\n\n".join(told) or "no such results")


def describe(result: EvalResult) -> str:
    """One result in words."""
    trial = result.trial
    heading = f"{line(result.sample_id, RESULT_WIDTH)}  {result.outcome}  ({trial.configuration}"
    heading += f", epoch {trial.epoch}" if trial.epoch else ""
    heading += "" if trial.latency_ms is None else f", {trial.latency_ms:,.1f} ms"
    heading += f", {trial.attempts} attempts" if trial.attempts > 1 else ""
    heading += ", cached)" if trial.cached else ")"
    facts = [
        ("input", excerpt(trial.sample.input, RESULT_WIDTH)),
        ("output", excerpt(trial.output, RESULT_WIDTH) if result.success else None),
        ("expected", _known(trial.sample.expected)),
        ("error", _known(result.error)),
        (
            "where",
            excerpt(trial.error.traceback.rstrip(), 4 * RESULT_WIDTH) if trial.error else None,
        ),
    ]
    opinions = [(name, _opinion(score)) for name, score in result.scores.items()]
    told = [(name, text) for name, text in [*facts, *opinions] if text]
    width = max(len(name) for name, _ in told)
    indent = "\n" + " " * (width + 4)
    lines = [f"  {name:<{width}}  {text.replace(chr(10), indent)}" for name, text in told]
    return "\n".join([heading, *lines])


def _opinion(score: Score) -> str:
    verdict: str = score.status
    if score.value is not None:
        verdict = f"{score.value:.3g} {'passed' if score.passed else 'failed'}"
    return f"{verdict}  {line(score.reason, RESULT_WIDTH)}".rstrip()


def _known(value: object) -> str | None:
    return None if value is None else excerpt(value, RESULT_WIDTH)
