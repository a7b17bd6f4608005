"""Write reports as JSON and read them back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core.resources import describe_os_error
from proctor.errors import UsageError
from proctor.records import codec
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult
from proctor.reports import files

SCHEMA_VERSION = 1


class JSONReporter:
    """Write a complete report as JSON: metadata, metrics, and every result.

    `indent=0` writes one result per line.

    >>> text = JSONReporter().generate(EvalReport([]))
    >>> load(text).total
    0
    """

    extension = "json"
    signature = r'\{\s*"proctor_report"\s*:'

    def __init__(self, indent: int = 2) -> None:
        if indent < 0:
            raise UsageError(f"indent must be 0 or more, got {indent}", where="JSONReporter")
        self.indent = indent

    def generate(self, report: EvalReport) -> str:
        """Return the report as text."""
        return b"".join(self._chunks(report)).decode()

    def save(self, report: EvalReport, path: str | os.PathLike[str]) -> None:
        """Write the report to a file, one result at a time."""
        files.write_file(path, self._chunks(report))

    def _chunks(self, report: EvalReport) -> Iterator[bytes]:
        head = {
            "proctor_report": SCHEMA_VERSION,
            "metadata": report.metadata,
            "aggregated": _aggregated(report),
            "metrics": report.metrics,
            "by_configuration": report.by_configuration,
        }
        yield b"{"
        for name, value in head.items():
            yield self._line(1) + codec.encode_any_text(name) + b": " + self._indented(value, 1) + b","
        yield self._line(1) + b'"results": ['
        comma = b""
        for result in report.results:
            yield comma + self._line(2) + self._indented(result, 2)
            comma = b","
        yield self._line(1) + b"]\n}\n"

    def _indented(self, value: Any, depth: int) -> bytes:
        # JSON escapes line breaks in data, so every line break belongs to the layout.
        return codec.encode_pretty(value, self.indent).replace(b"\n", self._line(depth))

    def _line(self, depth: int) -> bytes:
        return b"\n" + b" " * (self.indent * depth)


class ReportFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The schema of a report file; `aggregated` is for other programs and is ignored on loading."""

    proctor_report: int
    metadata: RunMetadata | None
    aggregated: dict[str, float | None]
    metrics: dict[str, MetricValue]
    by_configuration: dict[str, dict[str, MetricValue]]
    results: list[EvalResult]


class _Version(msgspec.Struct):
    proctor_report: int | None = None


def load(text_or_path: str | bytes | os.PathLike[str]) -> EvalReport:
    """Load a report from JSON text or from a file."""
    text, where = _read_text(text_or_path)
    _check_version(text, where)
    file = codec.decode(text, ReportFile, where=where)
    return EvalReport(file.results, file.metadata, file.metrics, file.by_configuration)


def _read_text(text_or_path: str | bytes | os.PathLike[str]) -> tuple[bytes | str, str]:
    if isinstance(text_or_path, bytes):
        return text_or_path, ""
    if isinstance(text_or_path, str) and text_or_path.lstrip().startswith("{"):
        return text_or_path, ""
    path = Path(text_or_path)
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        raise UsageError(
            describe_os_error(error, "the report cannot be read"),
            where=str(path),
            fix="pass a file that JSONReporter wrote, or its text",
        ) from None


def _check_version(text: bytes | str, where: str) -> None:
    version = codec.decode(text, _Version, where=where).proctor_report
    if version is None:
        raise UsageError(
            'this is not a report: it has no "proctor_report"', where=where, fix="pass a file that JSONReporter wrote"
        )
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"the report has schema version {version}; this version of Proctor reads {SCHEMA_VERSION}",
            where=where,
            fix="update Proctor to the version that wrote the report",
        )


def _aggregated(report: EvalReport) -> dict[str, float | None]:
    return {
        "total": report.total,
        "successful": report.successful,
        "passed": report.counts.passed,
        "failed": report.counts.failed,
        "errors": report.errors,
        "skipped": report.counts.skipped,
        "pass_rate": report.pass_rate,
        "strict_pass_rate": report.strict_pass_rate,
        "mean_score": report.mean_score,
        "mean_latency_ms": report.mean_latency_ms,
    }
