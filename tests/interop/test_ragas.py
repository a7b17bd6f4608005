"""Samples and results of ragas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.interop.readers.ragas import read, recognize
from proctor.records.session import Message
from tests.interop.support import FORMATS, mean_by_sample, needs_public_files, outcomes, read_head, reference

FOLDER = FORMATS / "ragas"


def test_nan_is_an_error(tmp_path: Path) -> None:
    """A metric that could not be computed is NaN in JSON and empty in CSV, and is an error in both."""
    rows = [{"user_input": "a?", "response": "A", "reference": "A", "faithfulness": float("nan"), "recall": 0.25}]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(rows))
    table = tmp_path / "result.csv"
    table.write_text("user_input,response,reference,faithfulness,recall\na?,A,A,,0.25\n")
    for file in (path, table):
        assert recognize(file, read_head(file))
        ((result,),) = (run.results for run in read(file).runs)
        assert {name: (score.value, score.status) for name, score in result.scores.items()} == {
            "faithfulness": (None, "error"),
            "recall": (0.25, "ok"),
        }
        assert "errors: 1 score with the value NaN" in read(file).warnings


def test_text_in_brackets_stays_text(tmp_path: Path) -> None:
    """Only list columns of a table are Python text; a question or an answer in brackets is text."""
    path = tmp_path / "samples.csv"
    path.write_text("user_input,response,retrieved_contexts\n[1],{},\"['a', 'b']\"\n")
    ((result,),) = (run.results for run in read(path).runs)
    assert (result.trial.sample.input, result.output, result.trial.sample.context) == ("[1]", "{}", ["a", "b"])


@needs_public_files
@pytest.mark.parametrize("name", ["ragas_single_turn.jsonl", "ragas_single_turn.csv"])
def test_public_samples(name: str) -> None:
    """Both files have the same 3 samples with responses and no scores."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    file = read(path)
    assert len(file.samples) == reference("ragas/ragas_single_turn.jsonl")["lines"]
    assert [(s.input, s.expected, s.context) for s in file.samples] == [
        ("Capital of France?", "Paris", ["Paris is the capital of France.", "Lyon is a city."]),
        ('日本 "q"\nline', "東京", []),
        ("no reference", None, None),
    ]
    (run,) = file.runs
    assert [(result.output, result.scores) for result in run.results] == [("Paris", {}), ("東京", {}), ("x", {})]


@needs_public_files
def test_public_conversation() -> None:
    """A multi-turn sample is a session with tool calls; its last answer is the output."""
    path = FOLDER / "ragas_multi_turn.jsonl"
    assert recognize(path, read_head(path))
    file = read(path)
    assert len(file.samples) == reference("ragas/ragas_multi_turn.jsonl")["lines"]
    ((result,),) = (run.results for run in file.runs)
    assert (result.trial.sample.input, result.output) == ("Weather in Rome?", "It rains.")
    messages = result.trial.session[Message]  # type: ignore[index]
    assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[1].tool_calls[0].arguments == {"city": "Rome"}


@needs_public_files
@pytest.mark.parametrize("name", ["ragas_result.json", "ragas_result.csv"])
def test_public_results(name: str) -> None:
    """Both files have 2 rows, and every metric has the mean 1."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    (run,) = read(path).runs
    assert outcomes(run) == {"results": 2, "errors": 0}
    for metric in ("exact_match", "string_present", "non_llm_string_similarity"):
        assert mean_by_sample(run, metric) == 1.0


@needs_public_files
@pytest.mark.parametrize(("name", "rows"), [("support_triage.csv", 20), ("discount_benchmark.csv", 10)])
def test_public_tables(name: str, rows: int) -> None:
    """Tables without the fields of ragas are datasets; a warning names the columns."""
    file = read(FOLDER / name)
    assert (len(file.samples), file.runs) == (rows, ())
    assert file.warnings[0].startswith(f"columns: {rows} rows with ")
