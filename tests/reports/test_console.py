"""The report in the terminal."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.cells import cell_len

from proctor.comparison.report import EvalReport
from proctor.records.metric import MetricValue
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial
from proctor.reports.console import render_report, show_report
from proctor.wiring.evaluate import evaluate
from tests.reports.examples import RIGHT, mixed_report, result, run, two_configurations


def test_a_mixed_run_at_80_columns() -> None:
    """The verdict first, with its interval and its errors; then numbers, errors, failures."""
    assert render_report(mixed_report(), width=80) == snapshot("""\
2 of 4 judged passed (50.0%, 95% interval 15.0–85.0%), 2 errors, 1 skipped
run 20240127-143000-abc123 · target geographer
dataset capitals.jsonl (7 samples) · 45.2 seconds

Metric                      n = 4, 2 errors, 1 skipped
──────────────────────────────────────────────────────
pass_rate                           50.0% (15.0–85.0%)
strict_pass_rate   33.3% (9.7–70.0%), n = 6, 1 skipped
exact.mean                         0.550 (0.000–1.000)
latency_ms.mean            120 ms (88.4–152 ms), n = 7
length                                        —, n = 0
pass_rate: 3 of 7 are missing: 28.6–71.4%, depending on whether they fail or
pass
95% intervals in parentheses, adjusted for related results (clusters, epochs)
length: the metric failed: ZeroDivisionError: division by zero

Errors
      1  TimeoutError
         for example q5: no answer after 30 s
      1  evaluation failed (no verdict)
         for example q6: the judge gave no verdict

Worst failures (3 shown; 2 failed, 2 errors)
  q4  score 0.00
    input     What is the capital of France?
    output    Lyon
    expected  Paris
    reason    expected 'Paris', found 'Lyon' (exact)
  q2  score 0.20
    input     What is the capital of France?
    output    Lyon, ⏎ I think
    expected  Paris
    reason    not the same (exact)
  q6  unscored
    input     What is the capital of France?
    output    Lyon
    expected  Paris
    reason    the judge gave no verdict (exact)
""")


def test_two_configurations_at_80_columns() -> None:
    """Each metric has a row for each configuration, one below the other."""
    assert render_report(two_configurations(), width=80) == snapshot("""\
careful: 2 of 2 passed (100.0%, 95% interval 34.2–100.0%)
fast: 0 of 1 judged passed (0.0%, 95% interval 0.0–79.3%), 1 error
run 20240127-143000-abc123 · target geographer
dataset capitals.jsonl (7 samples) · 45.2 seconds

                               careful               fast
Metric                           n = 2     n = 1, 1 error
─────────────────────────────────────────────────────────
pass_rate         100.0% (34.2–100.0%)   0.0% (0.0–79.3%)
latency_ms.mean                      —     12.5 ms, n = 2
fast: pass_rate: 1 of 2 is missing: 0.0–50.0%, depending on whether they fail or
pass
95% intervals in parentheses

Errors
      1  TimeoutError
         for example q2:

Worst failures (2 shown; 1 failed, 1 error)
  q1, configuration fast  score 0.00
    input     What is the capital of France?
    output    Lyon
    expected  Paris
    reason    expected 'Paris', found 'Lyon' (exact)
  q2, configuration fast  error
    input     What is the capital of France?
    expected  Paris
    error     TimeoutError
""")


def test_an_unfinished_run_with_a_warning() -> None:
    """A run that was interrupted says so, and how far it came."""
    metadata = run(status="interrupted", warnings=("time-outs are cooperative",))
    report = EvalReport([result("q1", {"exact": RIGHT})], metadata)
    assert render_report(report) == snapshot("""\
1 of 1 passed (100.0%)
run 20240127-143000-abc123 · target geographer
dataset capitals.jsonl (7 samples) · 45.2 seconds
This run is interrupted, with 1 of 7 results
Warning: time-outs are cooperative
""")


def test_long_and_wide_values_are_cut_to_the_width() -> None:
    """No line of a failure is wider than the terminal, in columns and not in characters."""
    report = EvalReport([result("q1", {"exact": Score(0.0, False)}, output="東京" * 60)])
    text = render_report(report, width=60)
    assert max(map(cell_len, text.split("\n"))) <= 60
    assert f"\n    output    {'東京' * 6} … (≈ 83 characters) …\n              京{'東京' * 11}\n    expected" in text


def test_only_a_terminal_gets_colours() -> None:
    """Without colour there is no escape code; with it there is."""
    assert "\x1b" not in render_report(mixed_report())
    assert "\x1b[1m2 of 4 judged passed" in render_report(mixed_report(), color=True)


def test_what_is_not_a_terminal_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed into a file or a pipe, the report is the plain text at 80 columns."""
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    out = io.StringIO()
    show_report(mixed_report(), out)
    assert out.getvalue() == render_report(mixed_report(), width=80)


def test_it_prints_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file the report goes where print goes."""
    show_report(EvalReport([]))
    assert capsys.readouterr().out == "No results\n"


@given(st.text(max_size=40), st.sampled_from(["", "[bold]", "[/]", "\x1b[2J", "\r", "\n"]))
def test_no_data_reaches_the_terminal_as_a_command(text: str, piece: str) -> None:
    """Neither markup nor control characters of the data have any effect."""
    hostile = f"{piece}{text}{piece}"
    report = EvalReport(
        [result(hostile, {hostile: Score(0.0, False, hostile)}, output=hostile)],
        run(run_id=hostile),
        {hostile: MetricValue(0.5, 1, note=hostile)},
    )
    output = render_report(report, width=80)
    assert "\x1b" not in output
    assert "\r" not in output
    assert max(map(cell_len, output.split("\n"))) <= 80


def test_what_nobody_expected_is_not_shown() -> None:
    """A sample without an expected value has no such line."""
    trial = Trial(Sample("q1", "Say something"), "No")
    report = EvalReport([EvalResult(trial, {"tone": Score(0.0, False, "rude")})])
    output = render_report(report).split("\n")
    assert output[4:6] == ["    input     Say something", "    output    No"]
    assert output[6:] == ["    reason    rude (tone)", ""]


def test_markup_in_the_data_is_shown_as_it_is() -> None:
    """[bold] in an answer is four letters in brackets, not a style."""
    report = EvalReport([result("q1", {"exact": Score(0.0, False)}, output="[bold]Lyon[/bold]")])
    assert "    output    [bold]Lyon[/bold]\n" in render_report(report)


def test_a_missing_interval_has_its_reason() -> None:
    """20 of 40 samples in one cluster: no number has an interval, and the report says why."""
    samples = [Sample(str(i), "a", "A", metadata={"cluster": "x" if i < 20 else str(i // 3)}) for i in range(40)]
    report = evaluate(lambda question: question.upper(), samples, ["exact_match"])
    assert report.metrics["pass_rate"].interval is None
    text = " ".join(render_report(report).split())
    assert "; clustered, a few clusters have most of the samples: no interval" in text
