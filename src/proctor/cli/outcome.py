"""What a finished run leads to: reports on disk, words on the screen, and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from proctor import codec
from proctor.cli.comparing import as_markdown, comparisons, show_beside
from proctor.cli.options import complain
from proctor.errors import ConfigError
from proctor.gates.thresholds import shortfalls
from proctor.records.report import EvalReport
from proctor.reports.markup import escape

BELOW_THRESHOLD, NO_VERDICT = 1, 3


def conclude(
    report: EvalReport,
    *,
    thresholds: Mapping[str, float],
    output: Path | None = None,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Write and print what was asked for; 1 if something is below its threshold.

    3 if nothing but errors came out: a wrong key, a server that is down.
    """
    below = shortfalls(report, thresholds)
    gate = _gate(thresholds, below)
    written = write_reports(report, output, gate) if output else []
    with until_nobody_reads():
        if as_json:
            click.echo(codec.encode_pretty({**overview(report), "below_threshold": below}))
        elif not quiet:
            from proctor.reports.console import show

            show(report)
            show_beside(report)
            for path in written:
                click.echo(f"wrote {path}")
    if report.pass_rate is None:
        complain(
            f"no result has a verdict: {report.errors} errors, {report.counts.skipped} skipped"
        )
    for sentence in below:
        complain(f"below threshold: {sentence}")
    if below:
        return BELOW_THRESHOLD
    counts = report.counts
    return NO_VERDICT if counts.total and counts.error + counts.unscored == counts.total else 0


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


def check_output(folder: Path | None, option: str = "--output") -> None:
    """Refuse a folder that reports cannot be written to, before a run is paid for."""
    if folder is None:
        return
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise ConfigError(f"{str(there)!r} is no folder that can be written to", where=option)


@contextlib.contextmanager
def prints_aside(as_json: bool) -> Iterator[None]:
    """With --json, what targets and evaluators print goes to standard error: JSON stays JSON."""
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def until_nobody_reads() -> Iterator[None]:
    """Stop printing when the reader has gone (`| head`); the exit code stays what it is."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _gate(thresholds: Mapping[str, float], below: list[str]) -> str:
    if not thresholds:
        return ""
    asked = ", ".join(f"{metric} at least {least:g}" for metric, least in thresholds.items())
    if below:
        return f"**Gate: failed.** {escape('; '.join(below))}."
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
