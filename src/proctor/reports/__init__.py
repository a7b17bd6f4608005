"""Reports for people and programs: console, Markdown, JSON, JUnit."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "ports": ("Reporter",),
    "reports.formats": ("write_reports",),
    "reports.json": ("JSONReporter",),
    "reports.markdown": ("MarkdownReporter",),
}

__all__ = ["JSONReporter", "MarkdownReporter", "Reporter", "write_reports"]

__getattr__, __dir__ = lazy_names("proctor.reports", EXPORTS)
