"""The report as Markdown: what it says, and that no data can break it."""

from __future__ import annotations

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from markdown_it import MarkdownIt
from markdown_it.token import Token

from proctor.comparison.report import EvalReport
from proctor.records.metric import MetricValue
from proctor.records.run import DatasetInfo, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Failure, Trial
from proctor.reports import MarkdownReporter
from proctor.reports.format import excerpt, single_line
from tests.reports.examples import METRICS, RIGHT, mixed_report, result, run, two_configurations


def test_a_mixed_run() -> None:
    """Errors and skips follow the pass rate; wrong answers come before errors."""
    assert MarkdownReporter().generate(mixed_report()) == snapshot("""\
# Proctor Evaluation Report

## Run Summary

- **Result**: 2 of 4 judged passed (50.0%, 95% interval 15.0–85.0%), 2 errors, 1 skipped
- **Run ID**: 20240127-143000-abc123
- **Name**: capitals
- **Timestamp**: 2024-01-27T14:30:00Z
- **Proctor Version**: 1.2.3
- **Target**: geographer (python)
- **Dataset**: capitals.jsonl (7 samples)
- **Duration**: 45.2 seconds

## Overall Metrics

| Metric | Value | 95% interval | n | Missing |
| :--- | ---: | ---: | ---: | ---: |
| pass_rate | 50.0% | 15.0–85.0% | 4 | 2 errors, 1 skipped |
| strict_pass_rate | 33.3% | 9.7–70.0% | 6 | 1 skipped |
| exact.mean | 0.550 | 0.000–1.000 | 4 | 2 errors, 1 skipped |
| latency_ms.mean | 120 ms | 88.4–152 ms | 7 | 0 |
| length | — | — | 0 | 0 |

- **pass_rate**: 3 of 7 are missing: 28.6–71.4%, depending on whether they fail or pass
- **strict_pass_rate**: 1 of 7 is missing: 28.6–42.9%, depending on whether they fail or pass
- **exact.mean**: 3 of 7 are missing: 0.314–0.743, depending on whether they fail or pass
- **exact.mean**: clustered
- **length**: the metric failed: ZeroDivisionError: division by zero

## Score Distribution (exact)

- **P25**: 0.150
- **P50 (Median)**: 0.600
- **P75**: 1.000
- **P95**: 1.000

## Top Failing Examples

### Sample: q4 (score 0.00)

- **Input**: What is the capital of France?
- **Output**: Lyon
- **Expected**: Paris
- **exact**: 0.00, failed: expected 'Paris', found 'Lyon'

### Sample: q2 (score 0.20)

- **Input**: What is the capital of France?
- **Output**:

  ```text
  Lyon,
  I think
  ```
- **Expected**: Paris
- **exact**: 0.20, failed: not the same

### Sample: q6 (unscored)

- **Input**: What is the capital of France?
- **Output**: Lyon
- **Expected**: Paris
- **exact**: error: the judge gave no verdict

### Sample: q5 (error)

- **Input**: What is the capital of France?
- **Expected**: Paris
- **Error**: TimeoutError: no answer after 30 s

## Error Breakdown

| Error Type | Count | Example |
| :--- | ---: | ---: |
| TimeoutError | 1 | q5: no answer after 30 s |
| evaluation failed (no verdict) | 1 | q6: the judge gave no verdict |
""")


def test_two_configurations() -> None:
    """Configurations are side by side, and yes-or-no scores have no percentiles."""
    assert MarkdownReporter().generate(two_configurations()) == snapshot("""\
# Proctor Evaluation Report

## Run Summary

- **Result**: careful: 2 of 2 passed (100.0%, 95% interval 34.2–100.0%)
- **Result**: fast: 0 of 1 judged passed (0.0%, 95% interval 0.0–79.3%), 1 error
- **Run ID**: 20240127-143000-abc123
- **Name**: capitals
- **Timestamp**: 2024-01-27T14:30:00Z
- **Proctor Version**: 1.2.3
- **Target**: geographer (python)
- **Dataset**: capitals.jsonl (7 samples)
- **Configurations**: careful, fast
- **Duration**: 45.2 seconds

## Overall Metrics

| Metric | careful (n = 2) | fast (n = 1, 1 error) |
| :--- | ---: | ---: |
| pass_rate | 100.0% (34.2–100.0%) | 0.0% (0.0–79.3%) |
| latency_ms.mean | — | 12.5 ms, n = 2 |

- **fast: pass_rate**: 1 of 2 is missing: 0.0–50.0%, depending on whether they fail or pass

95% intervals in parentheses.

## Top Failing Examples

### Sample: q1, configuration fast (score 0.00)

- **Input**: What is the capital of France?
- **Output**: Lyon
- **Expected**: Paris
- **exact**: 0.00, failed: expected 'Paris', found 'Lyon'

### Sample: q2, configuration fast (error)

- **Input**: What is the capital of France?
- **Expected**: Paris
- **Error**: TimeoutError

## Error Breakdown

| Error Type | Count | Example |
| :--- | ---: | ---: |
| TimeoutError | 1 | q2: |
""")


def test_a_run_that_did_not_finish() -> None:
    """Status, warnings and tags are shown if there are any."""
    report = EvalReport(
        [result("q1", {"exact": RIGHT})],
        run(status="interrupted", warnings=("time-outs are cooperative",), tags={"model": "m1"}),
    )
    assert MarkdownReporter().generate(report) == snapshot("""\
# Proctor Evaluation Report

## Run Summary

- **Result**: 1 of 1 passed (100.0%)
- **Run ID**: 20240127-143000-abc123
- **Name**: capitals
- **Status**: interrupted, with 1 of 7 results
- **Timestamp**: 2024-01-27T14:30:00Z
- **Proctor Version**: 1.2.3
- **Target**: geographer (python)
- **Dataset**: capitals.jsonl (7 samples)
- **Duration**: 45.2 seconds
- **Tags**: model=m1
- **Warning**: time-outs are cooperative
""")


def test_a_run_about_which_little_is_known() -> None:
    """What is unknown is left out: length of a stream, kind of target, planned total."""
    metadata = run(status="running", total=None, dataset=DatasetInfo("stream"), target=TargetSpec("bot", ""))
    text = MarkdownReporter().generate(EvalReport([result("q1")], metadata))
    assert "- **Result**: No result has a verdict, 1 skipped\n" in text
    assert "- **Status**: running, with 1 result\n" in text
    assert "- **Target**: bot\n- **Dataset**: stream\n" in text


def test_examples_and_distribution_can_be_left_out() -> None:
    """`include_examples=0` and `include_distribution=False` drop their sections."""
    text = MarkdownReporter(include_examples=0, include_distribution=False).generate(mixed_report())
    headings = [row for row in text.split("\n") if row.startswith("#")]
    assert headings == ["# Proctor Evaluation Report", "## Run Summary", "## Overall Metrics", "## Error Breakdown"]


def test_the_worst_examples_come_first_and_the_rest_is_counted() -> None:
    """Of four failing results the two with the lowest scores are shown."""
    text = MarkdownReporter(include_examples=2).generate(mixed_report())
    assert "The worst 2 of 4." in text
    assert [row for row in text.split("\n") if row.startswith("### ")] == [
        "### Sample: q4 (score 0.00)",
        "### Sample: q2 (score 0.20)",
    ]


def test_an_epoch_is_named() -> None:
    """A sample that was asked again says which time failed."""
    trial = Trial(Sample("q1", "?"), "no", epoch=2)
    report = EvalReport([EvalResult(trial, {"exact": Score(0.0, False)})])
    assert "### Sample: q1, epoch 3 (score 0.00)" in MarkdownReporter().generate(report)


def test_the_same_report_gives_the_same_text() -> None:
    """Nothing but the report decides what is written."""
    texts = {MarkdownReporter().generate(mixed_report()) for _ in range(3)}
    assert len(texts) == 1


def test_long_values_are_cut_with_a_mark() -> None:
    """A long output does not drown the report."""
    report = EvalReport([result("q1", {"exact": Score(0.0, False)}, output="x" * 5000)])
    text = MarkdownReporter().generate(report)
    assert "x… (4,000 more characters)" in text
    assert len(text) < 2000


HOSTILE = [
    "a|b",
    "\\|",
    "\\",
    "``` \n```",
    "`",
    "# x",
    "x #",
    "<script>alert(1)</script>",
    "<!-- ",
    "&lt;b&gt;",
    "&#124;",
    "[link](http://x)",
    "![i](x)",
    "**bold** _em_ __x__ ~~gone~~",
    "\n\n---\n\n# Heading\n\n| a | b |\n|---|---|\n",
    "- item\n1. one\n> quote",
    "$x$",
    "<https://x>",
    "\x00\x1b[31m",
    "    code",
    "***",
    "[ref]: http://x",
]
PIECES = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=4), min_size=1, max_size=4)
TEXTS = PIECES.map(" ".join).filter(lambda text: single_line(text, 100) != "")


def report_about(text: str) -> EvalReport:
    """A report with the same text in every place that data can reach."""
    scores = {text: Score(0.0, False, text)}
    results = [
        EvalResult(Trial(Sample(text, text, text), text), scores),
        EvalResult(Trial(Sample(text, text, text), error=Failure(text, text))),
    ]
    metrics = {text: MetricValue(0.5, 3, note=text), f"{text}.p50": MetricValue(0.5, 3, kind="quantile")}
    metadata = run(
        run_id=text,
        name=text,
        warnings=(text,),
        tags={text: text},
        target=TargetSpec(text, text),
        dataset=DatasetInfo(text),
        environment={"proctor": text},
    )
    by_configuration = {text: metrics, text + "2": metrics}
    return EvalReport(results, metadata, metrics, by_configuration)


def parsed(report: EvalReport) -> list[Token]:
    """The report as a Markdown reader sees it: blocks and, within them, runs of inline content."""
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = reader.parse(MarkdownReporter().generate(report))
    return [inner for token in tokens for inner in (token, *(token.children or ()))]


def skeleton(tokens: list[Token]) -> list[str]:
    """The shape of a document. Values of several lines are code blocks in place of text."""
    return [token.type for token in tokens if token.type not in ("inline", "text", "text_special", "fence")]


@settings(max_examples=20)
@given(TEXTS)
@example(" ".join(HOSTILE))
@example("\n".join(HOSTILE))
def test_no_data_changes_the_structure_of_the_document(text: str) -> None:
    """Tables, headings and lists are the same whatever the data, and no HTML gets through."""
    shape = skeleton(parsed(report_about(text)))
    plain = "one\ntwo" if "\n" in excerpt(text, 1000) else "one"
    assert shape == skeleton(parsed(report_about(plain)))
    assert "html_block" not in shape
    assert "html_inline" not in shape


@given(TEXTS)
def test_data_reads_as_it_was_written(text: str) -> None:
    """After escaping and reading, a name in a table is the text that went in."""
    reader = MarkdownIt("commonmark").enable(["table"])
    name = single_line(text, 100)
    assume(len(name) <= 100)  # a longer one is cut again
    document = MarkdownReporter().generate(EvalReport([], metrics={name: MetricValue(0.5, 3)}))
    cells = [
        "".join(child.content for child in token.children or ())
        for token in reader.parse(document)
        if token.type == "inline"
    ]
    assert name.split() in [cell.split() for cell in cells]


def test_every_metric_of_the_example_is_in_one_table() -> None:
    """Percentiles have their own section; unknown tokens have no row."""
    rows = [row for row in MarkdownReporter().generate(mixed_report()).split("\n") if "| " in row]
    names = {name for name in METRICS if any(row.startswith(f"| {name} |") for row in rows)}
    assert set(METRICS) - names == {"exact.p25", "exact.p50", "exact.p75", "exact.p95", "tokens.total"}
