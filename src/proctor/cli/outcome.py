"""What a finished run leads to: reports on disk, words on the screen, and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from proctor.cli.comparing import as_markdown, comparisons, show_beside
from proctor.cli.options import complain
from proctor.comparison.gates.gaps import TENTH, worst_gap
from proctor.comparison.gates.thresholds import in_own_unit, shortfalls
from proctor.records import codec
from proctor.records.report import EvalReport
from proctor.records.rubric import columns_in
from proctor.reports.format import escape

BELOW_THRESHOLD, NO_VERDICT, INCONCLUSIVE = 1, 3, 4


def conclude(
    report: EvalReport,
    *,
    thresholds: Mapping[str, float],
    output: Path | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Write and print what was asked for; 1 if something is below its threshold.

    3 if nothing but errors came out: a wrong key, a server that is down. 4 if a threshold is
    reached by what is there, and more than a tenth is missing.
    """
    below = shortfalls(report, thresholds)
    thresholds = in_own_unit(thresholds, columns_in(report.metadata))
    doubts = [] if below else list(_doubts(report, thresholds))
    gate = _gate(thresholds, below, doubts)
    written = write_reports(report, output, gate) if output else []
    with until_nobody_reads():
        if as_json:
            click.echo(
                codec.encode_pretty({**overview(report), "below_threshold": below, "inconclusive": doubts})
            )
        elif not quiet:
            from proctor.reports.console import show

            show(report)
            show_beside(report)
            for path in written:
                click.echo(f"wrote {path}")
    if report.pass_rate is None:
        complain(f"no result has a verdict: {report.errors} errors, {report.counts.skipped} skipped")
    for sentence in below:
        complain(f"threshold not reached: {sentence}")
    for sentence in doubts:
        complain(f"inconclusive: {sentence}")
    if below:
        return BELOW_THRESHOLD
    counts = report.counts
    if counts.total and counts.passed + counts.failed == 0:
        return NO_VERDICT
    return INCONCLUSIVE if doubts else 0


def write_reports(report: EvalReport, folder: Path, gate: str = "") -> list[Path]:
    """The report as Markdown, with the gate's verdict on top if there is one, and as JSON."""
    from proctor.reports.files import write
    from proctor.reports.json import JSONReporter
    from proctor.reports.markdown import MarkdownReporter

    paths = [folder / "report.md", folder / "report.json"]
    title, _, rest = MarkdownReporter().generate(report).partition("\n")
    text = "\n".join([title, *([f"\n{gate}"] if gate else []), rest])
    if found := comparisons(report):
        text += f"\n{as_markdown(found)}"
    write(paths[0], [text.encode(errors="replace")])
    JSONReporter().save(report, paths[1])
    return paths


@contextlib.contextmanager
def prints_aside(as_json: bool) -> Iterator[None]:
    """With --json, what targets and evaluators print goes to standard error: JSON stays JSON.

    Whatever they put in the place of the standard streams is gone afterwards.
    """
    streams = sys.stdout, sys.stderr
    try:
        if as_json:
            sys.stdout = sys.stderr
        yield
    finally:
        sys.stdout, sys.stderr = streams


@contextlib.contextmanager
def until_nobody_reads() -> Iterator[None]:
    """Stop printing when the reader has gone (`| head`); the exit code stays what it is."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _doubts(report: EvalReport, thresholds: Mapping[str, float]) -> Iterator[str]:
    """What reaches its threshold by too few of the results to say so."""
    for metric, least in thresholds.items():
        gap = worst_gap(report, metric)
        if gap.exceeds(TENTH):
            yield (
                f"{metric} is at least {least:g}, but {gap.told('this run')}: score them again, or "
                f"allow it: proctor gate {report.run_id} --fail-under {metric}={least:g} "
                f"--max-missing {gap.missing}"
            )


def _gate(thresholds: Mapping[str, float], below: list[str], doubts: list[str]) -> str:
    if not thresholds:
        return ""
    asked = ", ".join(f"{metric} at least {least:g}" for metric, least in thresholds.items())
    if below:
        return f"**Gate: failed.** {escape('; '.join(below))}."
    if doubts:
        return f"**Gate: inconclusive.** {escape('; '.join(doubts))}."
    return f"**Gate: passed.** {escape(asked)}."


def overview(report: EvalReport) -> dict[str, Any]:
    """A report without its results, for programs."""
    return {
        "run_id": report.run_id,
        "metadata": report.metadata,
        "total": report.total,
        "errors": report.errors,
        "pass_rate": report.pass_rate,
        "strict_pass_rate": report.strict_pass_rate,
        "mean_score": report.mean_score,
        "mean_latency_ms": report.mean_latency_ms,
        "metrics": report.metrics,
        "by_configuration": report.by_configuration,
        **({"comparisons": found} if (found := comparisons(report)) else {}),
    }
