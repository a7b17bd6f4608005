"""Experiments and examples of LangSmith."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.errors import DatasetError
from proctor.interop.readers.langsmith import read, recognize
from tests.interop.support import FORMATS, needs_public_files, outcomes, read_head, reference, values

FOLDER = FORMATS / "langsmith"


def test_repeated_examples_are_epochs(tmp_path: Path) -> None:
    """Two runs of one example are two epochs of one sample; a failed evaluator is an error, not a zero."""
    rows = [
        {
            "run": {"inputs": {"q": "a"}, "outputs": {"a": text}, "error": None, "session_name": "exp"},
            "example": {"id": "e1", "inputs": {"q": "a"}, "outputs": {"a": "A"}},
            "evaluation_results": {
                "results": [
                    {"key": "same", "score": text == "A"},
                    {"key": "judge", "score": None, "comment": "429", "extra": {"error": True}},
                ]
            },
        }
        for text in ("A", "b")
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert recognize(path, read_head(path))
    file = read(path)
    (run,) = file.runs
    assert run.name == "exp"
    assert [(result.sample_id, result.trial.epoch) for result in run.results] == [("e1", 0), ("e1", 1)]
    assert values(run, "same") == [1.0, 0.0]
    assert [result.scores["judge"].status for result in run.results] == ["error", "error"]


def test_a_file_without_inputs_is_an_error(tmp_path: Path) -> None:
    """The error says what to export."""
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n')
    assert not recognize(path, read_head(path))
    with pytest.raises(DatasetError, match="neither runs nor inputs"):
        read(path)


@needs_public_files
@pytest.mark.parametrize("name", ["experiment_results.csv", "experiment_rows.jsonl"])
def test_public_experiment(name: str) -> None:
    """Both exports have 4 rows and 1 error; the scores that LangSmith gives the failed row are kept apart."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    file = read(path)
    (run,) = file.runs
    assert outcomes(run) == {"results": 4, "errors": 1}
    assert (values(run, "exact"), values(run, "overlap")) == ([1.0, 0.0, 0.0], [1.0, 0.25, 0.0])
    failed = run.results[3]
    assert (failed.error, failed.output, failed.scores) == ("ValueError: target failed", None, {})
    assert run.details["scores_of_failed_trials"] == {failed.sample_id: [{"exact": 1.0, "overlap": 0.0}]}
    assert [result.scores["label"].details for result in run.results[:3]] == [{"label": "ok"}] * 3
    assert run.results[0].trial.sample.input == {"question": "France?"}
    assert run.results[0].output == run.results[0].trial.sample.expected == {"answer": "Paris"}
    assert "left out: 2 scores of failed trials; the run's details have them" in file.warnings


@needs_public_files
def test_public_examples() -> None:
    """All examples are samples; one has no expected output."""
    path = FOLDER / "dataset_examples.jsonl"
    assert recognize(path, read_head(path))
    file = read(path)
    assert len(file.samples) == reference("langsmith/dataset_examples.jsonl")["lines"]
    assert [sample.expected for sample in file.samples][2:] == [{"answer": "Tokyo"}, None]
    assert file.samples[0].metadata["topic"] == "eu"
    assert (
        len(read(FOLDER / "experiment_rows.jsonl").runs[0].results)
        == reference("langsmith/experiment_rows.jsonl")["lines"]
    )
