"""A report for people and for programs: Markdown, JSON, and the terminal."""

from proctor.reports.json import JSONReporter
from proctor.reports.markdown import MarkdownReporter

__all__ = ["JSONReporter", "MarkdownReporter"]
