# Written by tools/generate.py from EXPORTS in proctor.reports.
from proctor.ports import Reporter as Reporter
from proctor.reports.csv import CSVReporter as CSVReporter
from proctor.reports.formats import write_reports as write_reports
from proctor.reports.json import JSONReporter as JSONReporter
from proctor.reports.junit import JUnitReporter as JUnitReporter
from proctor.reports.markdown import MarkdownReporter as MarkdownReporter

__all__ = [
    "CSVReporter",
    "JSONReporter",
    "JUnitReporter",
    "MarkdownReporter",
    "Reporter",
    "write_reports",
]
EXPORTS: dict[str, tuple[str, ...]]
