"""The runner spec: reporters."""

from __future__ import annotations

from pathlib import Path

from proctor import MarkdownReporter, evaluate, exact_match
from tests.spec.clauses import clause


@clause("003.REPORTER.1", "6. Reporters")
def test_save_writes_what_generate_returns(tmp_path: Path) -> None:
    """A reporter's `save` writes the text that its `generate` returns."""
    report = evaluate(str.upper, [{"id": "a", "input": "x", "expected": "X"}], [exact_match])
    reporter = MarkdownReporter()
    reporter.save(report, tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == reporter.generate(report)
