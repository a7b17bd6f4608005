"""Reports for people and programs: console, Markdown, JSON, CSV, JUnit."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "ports": ("Reporter",),
    "reports.csv": ("CSVReporter",),
    "reports.formats": ("write_reports",),
    "reports.json": ("JSONReporter",),
    "reports.junit": ("JUnitReporter",),
    "reports.markdown": ("MarkdownReporter",),
}

__all__ = ["CSVReporter", "JSONReporter", "JUnitReporter", "MarkdownReporter", "Reporter", "write_reports"]

__getattr__, __dir__ = lazy_names("proctor.reports", EXPORTS)
