"""Rows and summaries of Braintrust experiments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.errors import DatasetError
from proctor.interop.readers.braintrust import read, recognize
from proctor.records.results import ResultList
from tests.interop.support import FORMATS, needs_public_files, outcomes, read_head, reference, values

FOLDER = FORMATS / "braintrust"


def test_spans_inside_a_trace_are_not_rows(tmp_path: Path) -> None:
    """Rows of an export are the roots of its traces; usage is counted once, from the root."""
    root = {
        "id": "r1", "is_root": True, "input": "a", "output": "A", "expected": "A", "scores": {"same": 1, "style": 0.25},
        "metrics": {"start": 10.0, "end": 10.5, "prompt_tokens": 7, "completion_tokens": 2}, "tags": ["easy"],
    }  # fmt: skip
    span = {**root, "id": "s1", "is_root": False, "span_parents": ["r1"]}
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, (root, span))))
    assert recognize(path, read_head(path))
    file = read(path)
    ((result,),) = (run.results for run in file.runs)
    assert (result.latency_ms, result.trial.usage.total_tokens) == (500.0, 9)  # type: ignore[union-attr]
    assert result.trial.sample.tags == ("easy",)
    assert [(score.value, score.passed) for score in result.scores.values()] == [(1.0, True), (0.25, False)]
    assert file.warnings == (
        "left out: 1 span inside a trace",
        "assumed: 1 score without a verdict, passed from 0.5; choose with --pass-at NAME=NUMBER",
    )


def test_rows_without_scores_are_another_format(tmp_path: Path) -> None:
    """The error says what to export."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"input": "a"}\n')
    assert not recognize(path, read_head(path))
    with pytest.raises(DatasetError, match="no input and scores"):
        read(path)


@needs_public_files
def test_public_rows() -> None:
    """8 rows are 4 samples in 2 epochs; errors of the task and of a scorer are not zeros."""
    path = FOLDER / "eval_results.jsonl"
    assert recognize(path, read_head(path))
    file = read(path)
    (run,) = file.runs
    numbers = reference("braintrust/eval_results.jsonl")
    assert outcomes(run) == {"results": numbers["lines"], "errors": numbers["errors"]}
    assert len(file.samples) == 4
    assert (sum(values(run, "exact")), len(values(run, "exact"))) == (numbers["exact_sum"], numbers["exact_n"])
    assert (sum(values(run, "Overlap")), len(values(run, "Overlap"))) == (numbers["overlap_sum"], numbers["overlap_n"])
    # Metrics count 2 errors of the task, and for Overlap 2 of the scorer.
    columns = [ResultList(run.results).column(name) for name in ("exact", "Overlap")]
    assert [(column.errors, column.skipped) for column in columns] == [(2, 0), (4, 0)]
    errors = [r.scores["Overlap"] for r in run.results if "Overlap" in r.scores and not r.scores["Overlap"].ok]
    assert [score.reason for score in errors] == ["ValueError: scorer failed"] * 2


@needs_public_files
def test_public_summary_equals_the_rows() -> None:
    """The reported means are the means of the imported scores."""
    path = FOLDER / "experiment_summary.json"
    assert recognize(path, read_head(path))
    (summary,) = read(path).runs
    (run,) = read(FOLDER / "eval_results.jsonl").runs
    assert summary.reported == {n: sum(values(run, n)) / len(values(run, n)) for n in ("exact", "Overlap")}
