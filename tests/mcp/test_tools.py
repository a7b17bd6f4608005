"""The tools: metadata by default, contents on request in a fence, paging, limits, and errors with a fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import Sample, evaluate, rescore
from proctor.errors import ProctorError
from proctor.mcp.toolbox import MAX_ANSWER, WARNING, Toolbox
from proctor.reports.console import render_report
from tests.mcp.conftest import INJECTION, SECRET

PAIR = {"new": "bad", "reference": "good"}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_runs", {}),
    ("show_run", {"run": "bad"}),
    ("list_samples", {"run": "bad", "outcome": "failed"}),
    ("list_samples", {"run": "bad", "outcome": "error"}),
    ("show_sample", {"run": "bad", "sample": "case-005"}),
    ("compare_runs", PAIR),
    ("regressed_cases", PAIR),
]


def test_no_answer_has_contents_unless_they_are_requested(history: Path) -> None:
    """Neither outputs, inputs, reasons nor error messages; kinds of errors are metadata."""
    toolbox = Toolbox(str(history))
    for name, arguments in CALLS:
        text = toolbox.call(name, arguments)
        for content in (INJECTION[:6], "What is", "expected '", "no answer to", WARNING):
            assert content not in text, (name, content)
    assert "case-031 error: TimeoutError" in toolbox.call("list_samples", {"run": "bad", "outcome": "error"})


def test_contents_are_redacted_and_inside_a_fence(history: Path) -> None:
    """The delimiter is no part of the contents, and nothing recorded stands outside of it."""
    text = Toolbox(str(history), "always").call("show_sample", {"run": "bad", "sample": "case-005"})
    before, fenced = text.split(WARNING)
    assert "case-005 [default] failed: exact_match 0.00 failed; contains 0.00 failed" in before
    delimiter = fenced.split("<<<INPUT ")[1].split("\n")[0]
    assert f"<<<INPUT {delimiter}\nWhat is 3 times 5\n{delimiter} INPUT>>>" in fenced
    assert f"<<<EXPECTED {delimiter}\n15\n" in fenced
    assert INJECTION in fenced
    assert SECRET not in fenced
    assert "[secret: assigned secret]" in fenced
    assert delimiter not in INJECTION


def test_a_server_that_never_sends_contents_says_how_to_get_them(history: Path) -> None:
    toolbox = Toolbox(str(history), "never")
    assert WARNING not in toolbox.call("regressed_cases", PAIR)
    with pytest.raises(ProctorError, match="Fix: leave out include_content, or start the server with"):
        toolbox.call("regressed_cases", {**PAIR, "include_content": True})


def test_pages_list_every_regressed_case_once(history: Path) -> None:
    """45 cases in pages of any size; the hint says where to continue, and the last page has none."""
    toolbox = Toolbox(str(history))
    for limit, include_content in ((7, False), (100, True)):
        seen, offset = [], 0
        while True:
            options = {**PAIR, "limit": limit, "offset": offset, "include_content": include_content}
            text = toolbox.call("regressed_cases", options)
            seen += [line.split()[1] for line in text.splitlines() if line.startswith("- ")]
            if "more: offset=" not in text:
                break
            offset = int(text.rsplit("offset=", 1)[1])
        lost = [f"case-{i:03}" for i in range(1, 201) if i % 5 == 0 or i % 31 == 0]
        assert sorted(seen) == lost


def test_the_largest_page_of_regressed_cases_has_fewer_than_2000_tokens(history: Path) -> None:
    """All cases with their reasons are requested; the page ends early, at the worst 2.75 characters per token."""
    text = Toolbox(str(history), "always").call("regressed_cases", {**PAIR, "limit": 100})
    assert "more: offset=" in text
    assert 4_000 < len(text) <= 2_000 * 2.75


def test_a_comparison_has_intervals_n_and_a_verdict(history: Path) -> None:
    text = Toolbox(str(history)).call("compare_runs", PAIR)
    assert "strict_pass_rate: 77.5% vs 100.0%, -22.5 points (95% -" in text
    assert "n = 200, p <0.0001: worse" in text
    assert "200 common samples: 45 lost, 0 won, 0 only new, 0 only reference" in text


def test_a_sample_has_a_summary_of_its_session(history: Path) -> None:
    toolbox = Toolbox(str(history))
    arguments = {"run": "bad", "sample": "case-007"}
    assert "  session: 2 messages, 0 model calls, tool calls multiply ×1" in toolbox.call("show_sample", arguments)
    assert "tool multiply(x=7)" in toolbox.call("show_sample", {**arguments, "include_content": True})


def test_long_texts_are_cut(tmp_path: Path) -> None:
    """Each text at max_characters, the whole answer at a fixed size, and a name on one line."""
    evaluate(lambda text: text, [Sample("a\nb", "x" * 50_000)], ["letter_case"], name="n" * 300, history=tmp_path / "h")
    toolbox = Toolbox(str(tmp_path / "h"), "always")
    arguments = {"run": "latest", "sample": "a\nb"}
    assert len(toolbox.call("show_sample", arguments)) < 5_000
    text = toolbox.call("show_sample", {**arguments, "max_characters": 8_000})
    assert len(text) <= MAX_ANSWER + 100
    assert text.startswith("a ⏎ b [default]")
    assert len(toolbox.call("list_runs", {})) < 300
    assert toolbox.call("list_runs", {"offset": 99}) == "no more runs"


def test_wrong_arguments_are_listed_together() -> None:
    toolbox = Toolbox("no-history.db")
    cases: list[tuple[str, dict[str, Any], list[str]]] = [
        ("show_sample", {"rum": "x", "run": 3}, ["run must be a string, got 3", "sample is missing", "rum is unknown"]),
        ("list_runs", {"limit": 0}, ["limit must be an integer from 1 to 100, got 0"]),
        ("list_runs", {"limit": True}, ["limit must be an integer, got true"]),
        ("list_runs", {"offset": -1}, ["offset must be an integer, 0 or more, got -1"]),
        ("list_samples", {"outcome": "bad"}, ["outcome must be one of passed, failed"]),
    ]
    for name, arguments, texts in cases:
        with pytest.raises(ProctorError) as caught:
            toolbox.call(name, arguments)
        assert all(text in str(caught.value) for text in (*texts, "Fix: ")), str(caught.value)


def test_the_catalogue_lists_evaluators_by_category_and_shows_one_with_its_limits() -> None:
    toolbox = Toolbox("no-history.db")
    assert "matching: contains, exact_match" in toolbox.call("list_evaluators", {})
    assert "contains: Passes if" in toolbox.call("list_evaluators", {"category": "matching"})
    text = toolbox.call("show_evaluator", {"name": "contains"})
    assert "- case_sensitive: bool, default True" in text
    assert "cannot: " in text
    for name, arguments in (("show_evaluator", {"name": "contain"}), ("list_evaluators", {"category": "match"})):
        with pytest.raises(ProctorError, match="Fix: did you mean"):
            toolbox.call(name, arguments)


def test_an_empty_history_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ProctorError, match="has no run\nFix: proctor run "):
        Toolbox(str(tmp_path / "h.db")).call("list_runs", {})


def test_epochs_count_from_one_and_a_sample_is_listed_once(tmp_path: Path) -> None:
    """q1 fails in two of its three epochs; a rescored run names its source, an unknown sample a tool call."""
    answers = iter("BBAAAA")
    samples = [Sample("q1", "a", "A"), Sample("q2", "b", "A")]
    file = tmp_path / "history.db"
    report = evaluate(lambda _: next(answers), samples, ["exact_match"], epochs=3, history=file, concurrency=1)
    failed = {(r.sample_id, r.trial.epoch + 1) for r in report.results if r.outcome == "failed"}
    toolbox = Toolbox(str(file))
    lines = toolbox.call("list_samples", {"outcome": "failed"}).splitlines()
    for sample in {name for name, _ in failed}:
        count = sum(name == sample for name, _ in failed)
        assert [line for line in lines if line.startswith(sample)] == [
            f"{sample} ({count} of 3 epochs failed) failed: exact_match 0.00 failed"
        ]
        shown = toolbox.call("show_sample", {"run": "latest", "sample": sample})
        assert [f"epoch {number} " in shown for number in range(5)] == [False, True, True, True, False]
        label = f"{sample}, {count} of 3 epochs failed  score 0.00"
        assert render_report(report).count(label) == 1
    rescore(report.run_id, ["contains"], history=file)
    assert f"rescored from {report.run_id}" in toolbox.call("list_runs", {})
    with pytest.raises(ProctorError, match=r"Fix: call list_samples\(run='latest'\)"):
        toolbox.call("show_sample", {"run": "latest", "sample": "q9"})


def test_hints_at_contents_are_given_only_where_they_help(history: Path, tmp_path: Path) -> None:
    """Not with the contents, and not from a server that never sends them; passed samples have no reasons."""
    sample = {"run": "bad", "sample": "case-005"}
    assert Toolbox(str(history)).call("show_sample", sample).endswith("texts: include_content=true")
    assert "include_content" not in Toolbox(str(history)).call("show_sample", {**sample, "include_content": True})
    assert "include_content" not in Toolbox(str(history), "never").call("show_sample", sample)
    passed = Toolbox(str(history), "always").call("list_samples", {"run": "good", "limit": 3})
    assert "no reasons are recorded for these samples\nmore: offset=3" in passed


def test_runs_without_a_common_sample_have_no_verdict(tmp_path: Path) -> None:
    file = tmp_path / "history.db"
    for name in ("x", "y"):
        samples = [Sample(f"{name}{i}", "a", "A") for i in range(8)]
        evaluate(str.upper, samples, ["exact_match"], name=name, history=file)
    for tool in ("compare_runs", "regressed_cases"):
        with pytest.raises(ProctorError, match="x and y are not comparable: they have no sample in common"):
            Toolbox(str(file)).call(tool, {"new": "x", "reference": "y"})
