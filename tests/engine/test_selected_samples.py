"""Runs of selected samples: which samples run, what the run records, and what resume, compare and gate make of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor import InMemoryMailbox, SQLiteHistory, compare, evaluate, rescore
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.report import EvalReport
from proctor.errors import ProctorError, ResumeRefused
from proctor.records.selection import Selection
from proctor.wiring.dispatch import submit
from proctor.wiring.prepare import Evaluation
from tests.tables import each_row

ROWS = [
    {"id": f"s{n}", "input": n, "expected": n, "metadata": {"topic": "x" if n % 2 else "y", "tags": ["big"] * (n > 6)}}
    for n in range(10)
]


@pytest.fixture
def history(tmp_path: Path) -> SQLiteHistory:
    return SQLiteHistory(tmp_path / "runs.db")


def mistaken(number: int) -> int:
    """Wrong for 2 and 7, and an error for 4."""
    if number == 4:
        raise ValueError("no fours")
    return -1 if number in (2, 7) else number


def run(history: SQLiteHistory | bool, **options: Any) -> EvalReport:
    """Evaluate the ten samples."""
    return evaluate(mistaken, ROWS, "exact_match", name="exam", history=history, progress=False, **options)


def ids(report: EvalReport) -> str:
    """The numbers of the samples that ran, in the order of the plan."""
    return "".join(result.sample_id.removeprefix("s") for result in report.results)


@each_row(
    "options, expected",
    [
        ({"select": {"samples": ["s3", "s1"]}}, "13"),
        ({"select": {"where": ["topic=x"]}}, "13579"),
        ({"select": {"where": ["topic=x"]}, "limit": 2}, "13"),
        ({"select": {"where": ["topic=x"], "tags": ["big"]}}, "79"),
        ({"select": {"failed_of": "first"}}, "247"),
        ({"select": {"failed_of": "first", "where": ["topic=x"]}}, "7"),
        ({"select": Selection(where=("topic!=x",))}, "02468"),
        ({"select": {}}, "0123456789"),
        ({"select": None}, "0123456789"),
    ],
)
def test_only_selected_samples_run(history: SQLiteHistory, options: dict[str, Any], expected: str) -> None:
    """A limit counts the selected samples; failed samples are those that did not pass, errors included."""
    if not history.runs():
        evaluate(mistaken, ROWS, "exact_match", name="first", history=history, progress=False)
    report = run(history, **options)
    assert ids(report) == expected
    assert report.metadata is not None
    assert (report.metadata.total, report.metadata.planned_length) == (len(expected), len(expected))


def test_the_run_records_its_selection(history: SQLiteHistory) -> None:
    """The stored run has the rules, with the run by its id, the number of samples, and a warning."""
    first = run(history)
    stored = history.find(run(history, select={"failed_of": "latest", "where": ["topic=y"]}).run_id)
    assert stored.options.select == Selection(where=("topic=y",), failed_of=first.run_id)
    assert stored.selected is not None
    assert (stored.selected.count, stored.selected.failed_in) == (2, (first.run_id,))
    assert f"only 2 of 10 samples were selected: topic=y, not passed in run {first.run_id}" in stored.warnings


@each_row(
    "select, text",
    [
        ({"where": ["topik=x"]}, "did you mean 'topic'?"),
        ({"where": "topic=x"}, "select.where must be a list, got a string"),
        ({"when": ["topic=x"]}, "did you mean 'where'?"),
        ({"failed_of": "nosuch"}, "unknown run 'nosuch'"),
        ({"failed_of": "nosuch", "samples": ["s77"]}, "the selection of samples has 2 problems"),
        ({"failed_of": "perfect"}, "every sample passed in run"),
        (["topic=x"], "select must be a mapping"),
    ],
)
def test_invalid_selections_are_refused(history: SQLiteHistory, select: Any, text: str) -> None:
    """Before anything runs or is stored."""
    if not history.runs(name="perfect"):
        evaluate(lambda number: number, ROWS, "exact_match", name="perfect", history=history, progress=False)
    with pytest.raises(ProctorError) as raised:
        run(history, select=select)
    assert text in str(raised.value)
    assert not history.runs(name="exam")


def test_samples_of_an_iterator_or_a_submission_cannot_be_selected(history: SQLiteHistory) -> None:
    """An iterator is read only once; a submission counts its requests by position."""
    with pytest.raises(ProctorError, match="samples of an iterator cannot be selected"):
        evaluate(mistaken, iter(ROWS), "exact_match", history=False, progress=False, select={"samples": ["s1"]})
    evaluation = Evaluation("math:floor", ROWS, "exact_match", options={"select": {"samples": ["s1"]}})
    with pytest.raises(ProctorError, match="selected samples cannot be submitted"):
        submit(evaluation, InMemoryMailbox("requests"), history)


def test_a_run_is_resumed_with_its_own_selection(history: SQLiteHistory) -> None:
    """Another selection, or none, is a change; the same one runs what is missing."""
    first = run(history, select={"where": ["topic=y"]})
    for select, text in (
        (None, "was topic=y, is all samples"),
        ({}, "was topic=y, is all samples"),
        ({"where": ["topic=x"]}, "was topic=y, is topic=x"),
    ):
        with pytest.raises(ResumeRefused, match=text):
            run(history, select=select, resume=first.run_id)
    history.delete_errors(first.run_id)
    resumed = run(history, select={"where": ["topic=y"]}, resume=first.run_id)
    assert (ids(resumed), resumed.run_id) == ("02468", first.run_id)
    mixed = run(history, resume=first.run_id, allow_changes=True)
    assert mixed.total == 10


def test_failures_that_changed_are_noticed_on_resume(history: SQLiteHistory) -> None:
    """The same rule that selects other samples now is a change."""
    first = run(history)
    second = run(history, select={"failed_of": first.run_id})
    history.delete_errors(first.run_id)
    with pytest.raises(ResumeRefused, match="select other samples now"):
        run(history, select={"failed_of": first.run_id}, resume=second.run_id)


def test_failed_samples_are_not_compared_with_the_run_that_chose_them(history: SQLiteHistory) -> None:
    """Chosen by failure, samples get better by chance alone: no metric has a verdict, and a gate is inconclusive."""
    first = run(history)
    second = run(history, select={"failed_of": first.run_id})
    for other in (first, rescore(first.run_id, "exact_match", history=history, progress=False)):
        comparison = compare(second, other)
        assert "has only samples that did not pass in run" in comparison.biased
        assert comparison.biased in comparison.answer
        assert {delta.verdict for delta in comparison.all_deltas()} == {"not comparable"}
    unrelated = compare(second, run(history))
    assert unrelated.biased == ""


def test_two_groups_of_other_selections_are_not_compared(history: SQLiteHistory) -> None:
    """Topic x against topic y is no comparison of two groups of the same kind."""
    first, second = (run(history, select={"where": [f"topic={topic}"]}) for topic in "xy")
    comparison = compare(first, second)
    assert "they are different selections of samples" in comparison.biased
    same = compare(first, run(history, select={"where": ["topic=x"]}))
    assert same.biased == ""


def test_a_gate_does_not_pass_on_a_part_of_its_baseline(history: SQLiteHistory) -> None:
    """Half of the samples pass alone, and the others were left out on purpose: inconclusive, unless accepted."""
    base, part = run(history), run(history, select={"where": ["topic=x"]})
    for accept_changes, verdict in ((False, "inconclusive"), (True, "pass")):
        config = GateConfig({"strict_pass_rate": 0.9}, accept_changes=accept_changes)
        gate = decide([(part.side("default", "new"), base.side("default", "main"))], config, report=part)
        assert gate.verdict == verdict
    assert any("only 5 of 10 samples were selected" in warning for warning in gate.warnings)
