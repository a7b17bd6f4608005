"""The runner spec: reporters."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from proctor import EvalReport, JSONReporter, MarkdownReporter, Score, evaluate, exact_match
from proctor.reports.json import load
from tests.spec.clauses import clause
from tests.spec.runner_examples import FRANCE, FollowUps, double, report_of

ROWS = [("ex-1", "a", "aa"), ("ex-2", "b", "x"), ("ex-3", "bad", "x"), ("ex-4", "c", "cc")]


def graded(output: str, expected: str) -> Score:
    """A score that is not only yes or no, whose percentiles are worth showing."""
    return Score(1.0, True) if output == expected else Score(0.25, False, "not the same")


def sections(report: EvalReport) -> dict[str, str]:
    """The text under each heading of the second level."""
    parts = re.split(r"^## (.+)$", MarkdownReporter().generate(report), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@clause("003.REPORTER.1", "6. Reporters")
def test_save_writes_what_generate_returns(tmp_path: Path) -> None:
    """A reporter's `save` writes the text that its `generate` returns."""
    report = evaluate(str.upper, [{"id": "a", "input": "x", "expected": "X"}], [exact_match])
    reporter = MarkdownReporter()
    reporter.save(report, tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == reporter.generate(report)


@clause("003.REPORTER.2", "6. Reporters")
def test_a_path_may_be_a_text(tmp_path: Path) -> None:
    """`save` takes a path as a text or as a path object."""
    JSONReporter().save(report_of(ROWS), str(tmp_path / "report.json"))
    assert load(tmp_path / "report.json").total == 4


@clause("003.REPORTER.3", "6. Reporters")
def test_the_number_of_failing_samples_can_be_chosen() -> None:
    """`include_examples` is how many failing samples are shown, and 10 if it is not set."""
    report = report_of([(f"ex-{n}", "a", "x") for n in range(12)])
    usual = MarkdownReporter().generate(report)
    assert usual.count("### Sample: ") == 10
    assert MarkdownReporter(include_examples=3).generate(report).count("### Sample: ") == 3
    assert "Top Failing" not in MarkdownReporter(include_examples=0).generate(report)


@clause("003.REPORTER.4", "6. Reporters")
def test_the_distribution_can_be_left_out() -> None:
    """`include_distribution` decides whether the spread of the scores is shown; by default it is."""
    report = report_of(ROWS, graded)
    assert "## Score Distribution" in MarkdownReporter().generate(report)
    plain = MarkdownReporter(include_distribution=False).generate(report)
    assert "## Score Distribution" not in plain


@clause("003.REPORTER.5", "6. Reporters")
def test_json_is_indented_by_two() -> None:
    """The JSON report is indented by 2 spaces; `indent` sets another width."""
    report = report_of(ROWS[:1])
    assert JSONReporter().generate(report).splitlines()[1].startswith('  "')
    assert JSONReporter(indent=4).generate(report).splitlines()[1].startswith('    "')


@clause("003.REPORTER.6", "6. Reporters")
def test_the_json_report_holds_everything() -> None:
    """The JSON report has the metadata, the metrics, and every result with its scores."""
    report = report_of(ROWS)
    data = json.loads(JSONReporter().generate(report))
    assert data["metadata"]["run_id"] == report.run_id
    assert data["metrics"]["exact_match.pass_rate"]["value"] == pytest.approx(2 / 3)
    assert [result["trial"]["sample"]["id"] for result in data["results"]] == [
        "ex-1", "ex-2", "ex-3", "ex-4",
    ]  # fmt: skip
    assert data["results"][0]["scores"]["exact_match"]["value"] == 1.0


@clause("003.MARKDOWN.1", "Markdown Report Structure")
def test_the_report_begins_with_a_title() -> None:
    """The Markdown report begins with a heading of the first level."""
    first = MarkdownReporter().generate(report_of(ROWS)).splitlines()[0]
    assert first == "# Proctor Evaluation Report"


@clause("003.MARKDOWN.2", "Markdown Report Structure")
def test_the_sections_come_in_the_order_of_the_spec() -> None:
    """Summary, metrics, distribution, failing samples and errors follow in this order."""
    assert list(sections(report_of(ROWS, graded))) == [
        "Run Summary", "Overall Metrics", "Score Distribution (graded)",
        "Top Failing Examples", "Error Breakdown",
    ]  # fmt: skip


@clause("003.MARKDOWN.3", "Markdown Report Structure")
def test_the_summary_has_the_id_and_the_time_of_the_run() -> None:
    """The run summary names the run and when it began, in UTC."""
    report = report_of(ROWS)
    assert report.metadata is not None
    text = sections(report)["Run Summary"]
    assert f"- **Run ID**: {report.run_id}" in text
    began = report.metadata.started_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert f"- **Timestamp**: {began}" in text


@clause("003.MARKDOWN.4", "Markdown Report Structure")
def test_the_summary_has_the_version() -> None:
    """The run summary names the version of Proctor."""
    from proctor import __version__

    assert f"- **Proctor Version**: {__version__}" in sections(report_of(ROWS))["Run Summary"]


@clause("003.MARKDOWN.5", "Markdown Report Structure")
def test_the_summary_has_the_dataset_and_its_size(tmp_path: Path) -> None:
    """The run summary names the dataset and how many samples it has."""
    path = tmp_path / "my_dataset.jsonl"
    path.write_text('{"id": "1", "input": "a"}\n{"id": "2", "input": "b"}\n', encoding="utf-8")
    text = sections(evaluate(double, path, exact_match, history=False))["Run Summary"]
    assert re.search(r"- \*\*Dataset\*\*: my\\?_dataset\.jsonl \(2 samples\)", text)


@clause("003.MARKDOWN.6", "Markdown Report Structure")
def test_the_summary_has_the_duration() -> None:
    """The run summary contains the duration of the run."""
    text = sections(report_of(ROWS))["Run Summary"]
    assert re.search(r"- \*\*Duration\*\*: [\d.]+ (ms|s)", text)


@clause("003.MARKDOWN.7", "Markdown Report Structure")
def test_the_metrics_are_a_table() -> None:
    """The overall metrics are a table of name and value, the success rate among them."""
    text = sections(report_of(ROWS))["Overall Metrics"]
    assert re.search(r"^\| Metric +\| Value +\|", text, re.MULTILINE)
    assert re.search(r"^\| success\\?_rate +\| 75\.0% ", text, re.MULTILINE)
    assert re.search(r"^\| exact\\?_match\.mean +\| 0\.667 ", text, re.MULTILINE)


@clause("003.MARKDOWN.8", "Markdown Report Structure")
def test_the_distribution_lists_the_percentiles() -> None:
    """The score distribution of an evaluator lists P25, the median, P75 and P95."""
    report = report_of([("1", "a", "aa"), ("2", "b", "x"), ("3", "c", "cc")], graded)
    lines = sections(report)["Score Distribution (graded)"].strip().splitlines()
    assert lines == [
        "- **P25**: 0.625", "- **P50 (Median)**: 1.000", "- **P75**: 1.000", "- **P95**: 1.000",
    ]  # fmt: skip


@clause("003.MARKDOWN.9", "Markdown Report Structure")
def test_a_failing_sample_is_headed_by_its_id_and_score() -> None:
    """Each failing sample has a heading with its id and its score."""
    text = sections(report_of(ROWS))["Top Failing Examples"]
    assert "### Sample: ex-2 (score 0.00)" in text


@clause("003.MARKDOWN.10", "Markdown Report Structure")
def test_a_failing_sample_shows_input_output_and_expected() -> None:
    """A failing sample is shown with its input, the output, and the expected value."""
    target = FollowUps({"What is the capital of France?": "Would you like more?"})
    text = sections(evaluate(target, [FRANCE], exact_match, history=False))["Top Failing Examples"]
    assert "What is the capital of France?" in text
    assert "Paris." in text
    assert "Would you like more?" in text
    assert "Interested in learning about Paris landmarks?" in text
    assert [name for name in ("Input", "Output", "Expected") if f"- **{name}**:" not in text] == []


@clause("003.MARKDOWN.11", "Markdown Report Structure")
def test_a_failing_sample_shows_its_error() -> None:
    """A sample that failed to run is shown with its error."""
    text = sections(report_of(ROWS))["Top Failing Examples"]
    assert "- **Error**: ValueError: no such word" in text


@clause("003.MARKDOWN.12", "Markdown Report Structure")
def test_the_worst_samples_come_first() -> None:
    """Failing samples are shown from the worst score up."""

    def share(output: str) -> float:
        return float(output)

    data = [{"id": f"s{n}", "input": text} for n, text in enumerate(["0.4", "0.1", "0.3"])]
    report = evaluate(lambda text: text, data, {"share": share}, history=False)
    result = re.findall(r"### Sample: (s\d) ", sections(report)["Top Failing Examples"])
    assert result == ["s1", "s2", "s0"]


@clause("003.MARKDOWN.13", "Markdown Report Structure")
def test_errors_are_counted_by_kind() -> None:
    """The error breakdown is a table of error type and count."""

    def target(text: str) -> str:
        raise {"v": ValueError, "t": TypeError}[text]("no")

    data = [{"id": str(n), "input": text} for n, text in enumerate("vtv")]
    report = evaluate(target, data, exact_match, history=False)
    text = sections(report)["Error Breakdown"]
    assert re.search(r"^\| Error Type +\| Count +\|", text, re.MULTILINE)
    assert re.search(r"^\| ValueError +\| 2 +\|", text, re.MULTILINE)
    assert re.search(r"^\| TypeError +\| 1 +\|", text, re.MULTILINE)


@clause("003.MARKDOWN.14", "Markdown Report Structure")
def test_a_run_without_errors_has_no_error_breakdown() -> None:
    """Sections with nothing to say are left out."""
    result = sections(report_of(ROWS[:1]))
    assert "Error Breakdown" not in result
    assert "Top Failing Examples" not in result
