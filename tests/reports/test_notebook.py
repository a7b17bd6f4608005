"""The report in a notebook and as text: small, escaped, without scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from proctor.comparison.report import EvalReport
from proctor.records.metric import MetricValue
from proctor.records.score import Score
from proctor.records.trial import Failure
from proctor.reports.console import render_text
from tests.reports.examples import mixed_report, result, run, two_configurations

ALLOWED = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre"}


class Tags(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def tags_of(report: EvalReport) -> list[str]:
    page = report._repr_html_()
    assert page is not None
    parser = Tags()
    parser.feed(page)
    assert set(parser.tags) <= ALLOWED
    assert parser.attributes == []
    return parser.tags


def hostile_report(text: str) -> EvalReport:
    scores = {text: Score(0.0, False, text)}
    results = [result(text, scores, output=text), result("x", error=Failure(text, text))]
    return EvalReport(results, run(name=text, warnings=(text,)), {text: MetricValue(0.5, 2, note=text)})


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "</pre></td></table><img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "&lt;b&gt; \" ' `",
        "javascript:alert(1)",
        "<!-- x",
        "<style>*{display:none}</style>",
    ],
)
def test_no_text_is_markup(text: str) -> None:
    """The page has the same tags as with a harmless text, and no attributes at all."""
    assert tags_of(hostile_report(text)) == tags_of(hostile_report("harmless"))


def test_the_table_of_a_notebook() -> None:
    """Headlines, metrics with intervals for each configuration, and the worst failures folded."""
    page = two_configurations()._repr_html_()
    assert page is not None
    assert page.startswith("<div>\n<p><strong>careful: 2 of 2 passed (100.0%, 95% interval 34.2–100.0%)</strong></p>\n")
    assert "<th>metric</th><th>careful</th><th>fast</th>" in page
    assert "<td>pass_rate</td><td>100.0% (34.2–100.0%)</td><td>0.0% (0.0–79.3%)</td>" in page
    assert "<details><summary>Worst failures (2 shown)</summary>" in page
    assert len(page) < 3000


def test_print_is_the_table_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """str() is what `proctor show` prints; repr() stays one line."""
    monkeypatch.setenv("COLUMNS", "80")
    report = mixed_report()
    assert str(report) + "\n" == render_text(report, width=80)
    assert str(report).startswith("2 of 4 judged passed (50.0%, 95% interval 15.0–85.0%), 2 errors, 1 skipped\nrun ")
    assert repr(report) == "<EvalReport 20240127-143000-abc123: 2 passed, 2 failed, 2 errors, 1 skipped>"
    assert str(EvalReport([])) == "No results"
    assert not re.search("\x1b", str(report))
