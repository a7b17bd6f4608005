"""Small functions of `proctor.reports`, each by an example."""

from __future__ import annotations

from pathlib import Path

from proctor.comparison.report import EvalReport
from proctor.records.comparison import Comparison
from proctor.records.formatting import format_cost, format_count
from proctor.records.gate import Check
from proctor.records.metric import MetricValue, Trend
from proctor.records.session import Message, Session, Usage
from proctor.reports.comparison import render_comparison
from proctor.reports.console import render_report
from proctor.reports.files import is_stream
from proctor.reports.format import (
    disable_links,
    escape,
    excerpt,
    format_bounds,
    format_duration,
    format_interval,
    format_metric,
    format_missing,
    format_percent,
    markdown_bullet,
    markdown_table,
    render_parts,
    single_line,
)
from proctor.reports.gate import comment_marker, describe_check, render_error_markdown
from proctor.reports.json import JSONReporter, load
from proctor.reports.live import _format_seconds
from proctor.reports.rubric_files import FileNames, _format_distinctly
from proctor.reports.rubrics import JudgeUsage, describe_judge_usage, percentage, round_half_up
from proctor.reports.summary import collect_notes, describe_partial, headlines, score_distributions
from proctor.reports.transcript import render_transcript
from proctor.reports.trend import _average_neighbors, _block, _tick_step, render_sparkline, render_svg


def test_render_comparison() -> None:
    """Return the conclusion, the table, the flipped samples, and the notes."""
    assert render_comparison(Comparison("new", "old", "They share no samples.")) == "They share no samples." + "\n"


def test_render_report() -> None:
    """Return the report as lines of at most `width` columns."""
    assert render_report(EvalReport([])) == "No results" + "\n"


def test_is_stream() -> None:
    """Tell whether a path names an open stream such as /dev/stdout."""
    assert (is_stream(Path("/dev/stdout")), is_stream(Path("/dev/fd/63")), is_stream(Path("a.md"))) == (
        True,
        True,
        False,
    )


def test_excerpt() -> None:
    """Return a value as text of about `limit` characters; line breaks stay."""
    assert excerpt({"city": "Paris"}, 100) == '{"city":"Paris"}'
    assert excerpt("abcdefgh", 5) == "abcde… (3 more characters)"


def test_single_line() -> None:
    """Return an excerpt on one line, with line breaks shown as ⏎."""
    assert single_line("to be\nor not", 100) == "to be ⏎ or not"


def test_format_percent() -> None:
    """Format a share as a percentage; only an exact 1 is 100.0% and only an exact 0 is 0.0%."""
    assert (format_percent(41 / 60), format_percent(0.9999), format_percent(1.0)) == ("68.3%", ">99.9%", "100.0%")


def test_format_cost() -> None:
    """Format an amount in US dollars with at least two significant digits."""
    assert (format_cost(12.5), format_cost(0.5), format_cost(0.00000334)) == ("$12.50", "$0.5000", "$0.0000033")


def test_format_count() -> None:
    """Format a number with the singular or plural of a noun."""
    assert (format_count(1, "error"), format_count(1200, "sample")) == ("1 error", "1,200 samples")


def test_format_metric() -> None:
    """Format the value of a metric with its unit."""
    assert (format_metric(MetricValue(0.5, 10, kind="rate")), format_metric(MetricValue(None, 0))) == ("50.0%", "—")


def test_format_interval() -> None:
    """Format the 95% interval of a metric, or a dash."""
    assert format_interval(MetricValue(0.683, 60, interval=(0.558, 0.787), kind="rate")) == "55.8–78.7%"


def test_format_missing() -> None:
    """Say how many results a metric could not use."""
    assert format_missing(MetricValue(0.5, 10, errors=2, skipped=1)) == "2 errors, 1 skipped"


def test_format_bounds() -> None:
    """Say how far missing results could move a metric; empty if few are missing."""
    assert (
        format_bounds(MetricValue(0.5, 8, errors=2, kind="rate"))
        == "2 of 10 are missing: 40.0–60.0%, depending on whether they fail or pass"
    )


def test_format_duration() -> None:
    """Format a duration."""
    assert (format_duration(45.21), format_duration(185), format_duration(7380)) == (
        "45.2 seconds",
        "3 min 05 s",
        "2 h 03 min",
    )


def test_render_parts() -> None:
    """Render parts below each other, in lines of at most `width` columns."""
    assert render_parts(["one", "two"], 80, color=False) == "one\ntwo\n"


def test_escape() -> None:
    """Escape one line of text for Markdown."""
    assert escape("a|b <script> pass_rate *") == "a\\|b \\<script> pass_rate \\*"


def test_disable_links() -> None:
    """Break mentions and links with zero-width spaces, which readers do not see."""
    assert (disable_links("@ada") == "@ada", disable_links("Ada")) == (False, "Ada")


def test_markdown_table() -> None:
    """Return a Markdown table; the first column is left-aligned, the others right-aligned."""
    assert (
        markdown_table(["Error type", "Count"], [["TimeoutError", "5"]])
        == "| Error type | Count |\n| :--- | ---: |\n| TimeoutError | 5 |"
    )


def test_markdown_bullet() -> None:
    """Return a list item; text of several lines becomes a code block below the label."""
    assert markdown_bullet("Input", "2 + 2") == "- **Input**: 2 + 2"


def test_describe_check() -> None:
    """Return the numbers of a check on one line, or its sentence if it has no difference."""
    check = Check("pass_rate", "pass", "", "", 0.8, 0.79, 0.01, (-0.01, 0.03), 0.02, 500, kind="rate")
    assert describe_check(check) == (
        "pass_rate 80.0% vs. 79.0%, +1.0 points (95% interval -1.0 to +3.0), margin 2.0, 500 samples"
    )


def test_render_error_markdown() -> None:
    """Return the error that prevented a decision as Markdown."""
    assert (
        render_error_markdown("unknown run 'x'", "exam")
        == "<!-- proctor gate: exam -->\n## Gate not decided: exam\n\nunknown run 'x'" + "\n"
    )


def test_comment_marker() -> None:
    """Return the line by which a bot finds its comment."""
    assert comment_marker("exam --> x") == "<!-- proctor gate: exam-x -->"


def test_load() -> None:
    """Load a report from JSON text or from a file."""
    assert load(JSONReporter().generate(EvalReport([]))).pass_rate is None


def test__format_seconds() -> None:
    """Format a number of seconds."""
    assert (_format_seconds(7), _format_seconds(61), _format_seconds(3700)) == ("7 s", "1 min 1 s", "1 h 1 min")


def test__format_distinctly() -> None:
    """Format numbers with enough digits to make them different."""
    assert (_format_distinctly([0.0, 12.5]), _format_distinctly([1000000.0, 1000000.5])) == (
        ["0", "12.5"],
        ["1000000", "1000000.5"],
    )


def test_file_names() -> None:
    """File names made from session ids: safe on every system and unique."""
    names = FileNames()
    assert (
        names.make_unique("../etc/passwd"),
        names.make_unique("a b"),
        names.make_unique("A_b"),
        names.make_unique(""),
    ) == ("etc_passwd", "a_b", "A_b_2", "session")
    assert names.make_unique("a b") == "a_b"


def test_round_half_up() -> None:
    """Round a number; halves go up."""
    assert (round_half_up(2.675), round_half_up(4.142857), round_half_up(2.5, 0), round_half_up(-0.125)) == (
        2.68,
        4.14,
        3.0,
        -0.12,
    )
    assert round_half_up(1e27) == 1e27


def test_percentage() -> None:
    """Return a score in percent of the maximum; None if the maximum is not positive."""
    assert percentage(4.142857142857143, 5) == 82.86


def test_describe_judge_usage() -> None:
    """Describe judge usage: tokens, cost, and reused answers."""
    assert (
        describe_judge_usage(JudgeUsage(Usage(1000, 200, cost=0.5), 12, 2))
        == "1,200 tokens, $0.5000, 2 of 12 answers reused"
    )


def test_headlines() -> None:
    """Summarize the run in one sentence, or in one sentence for each configuration."""
    assert headlines(EvalReport([])) == ["No results"]


def test_describe_partial() -> None:
    """Say how many totals were computed without all rubrics."""
    assert describe_partial(MetricValue(4.5, 80, partial=36)) == "36 of 80 totals leave out the score of a rubric"


def test_score_distributions() -> None:
    """Group the score percentiles by evaluator."""
    assert score_distributions({"exact.p50": MetricValue(1.0, 3, kind="quantile")})["exact"]["p50"].value == 1.0


def test_collect_notes() -> None:
    """Return each note once, with the names of its metrics."""
    assert collect_notes({"a": MetricValue(0.5, 9, note="clustered"), "b": MetricValue(1.0, 9)}) == {"clustered": "a"}


def test_render_transcript() -> None:
    """Return one session as text, event by event."""
    assert render_transcript(Session([Message("user", "Capital of France?")])) == "user:\n    Capital of France?"


def test_render_sparkline() -> None:
    """Return one line for each configuration: blocks, first and last value, range, number of runs."""
    assert render_sparkline(Trend("pass_rate", ())) == "pass_rate: no runs"


def test__block() -> None:
    """Return the block for a value between the lowest and the highest; a middle one if all are equal."""
    assert ("".join(_block(value, 0, 1) for value in (0, 0.5, 1)), _block(3, 3, 3)) == ("▁▅█", "▄")


def test__average_neighbors() -> None:
    """Reduce values to at most `limit` by averaging neighbors."""
    assert (_average_neighbors([1, 3, 5, 7], 2), _average_neighbors([1, 3], 40)) == ([2.0, 6.0], [1, 3])


def test_render_svg() -> None:
    """Return a chart with one line for each configuration, 95% intervals, dates, and a legend."""
    assert render_svg(Trend("pass_rate", ())).startswith("<svg")


def test__tick_step() -> None:
    """Return a round distance between ticks: 1, 2 or 5 times a power of ten."""
    assert (_tick_step(1.0), _tick_step(0.37), _tick_step(900)) == (0.2, 0.1, 200.0)
