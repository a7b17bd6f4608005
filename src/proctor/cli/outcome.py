"""What a finished run leads to: reports on disk, words on the screen, and an exit code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from proctor import codec
from proctor.gates import shortfalls
from proctor.records.report import EvalReport

BELOW_THRESHOLD = 1


def conclude(
    report: EvalReport,
    *,
    thresholds: Mapping[str, float],
    output: Path | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Write and print what was asked for; 1 if something is below its threshold."""
    below = shortfalls(report, thresholds)
    written = write_reports(report, output) if output else []
    if as_json:
        click.echo(codec.encode_pretty({**overview(report), "below_threshold": below}))
    elif not quiet:
        from proctor.reports.console import show

        show(report)
        for path in written:
            click.echo(f"wrote {path}")
    for sentence in below:
        click.secho(f"below threshold: {sentence}", fg="red", err=True)
    return BELOW_THRESHOLD if below else 0


def write_reports(report: EvalReport, folder: Path) -> list[Path]:
    """The report as Markdown and as JSON."""
    from proctor.reports.json import JSONReporter
    from proctor.reports.markdown import MarkdownReporter

    paths = [folder / "report.md", folder / "report.json"]
    MarkdownReporter().save(report, paths[0])
    JSONReporter().save(report, paths[1])
    return paths


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
    }
