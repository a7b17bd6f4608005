"""Datasets, experiments and traces of Opik."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.errors import DatasetError
from proctor.interop.readers.opik import read, recognize
from proctor.records.session import ModelCall, ToolCall
from tests.interop.support import FORMATS, needs_public_files, outcomes, read_head, values

FOLDER = FORMATS / "opik"


def test_items_of_any_shape_and_failed_tasks(tmp_path: Path) -> None:
    """An item without `input` is the input; an error is no failed score; equal items stay apart in a dataset."""
    content = {
        "experiment": {"name": "x", "dataset_name": "d", "trace_count": 2},
        "items": [
            {"dataset_item_id": "1", "dataset_item_data": {"q": "a"}, "evaluation_task_output": {"o": 1},
             "feedback_scores": [{"name": "len", "value": 12.0}]},
            {"dataset_item_id": "2", "dataset_item_data": {"q": "b"}, "evaluation_task_output": None,
             "feedback_scores": [{"name": "len", "value": 0.0}],
             "error_info": {"exception_type": "KeyError", "message": "b"}},
        ],
    }  # fmt: skip
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(content))
    assert recognize(path, read_head(path))
    file = read(path)
    (run,) = file.runs
    assert outcomes(run) == {"results": 2, "errors": 1}
    assert [sample.input for sample in file.samples] == [{"q": "a"}, {"q": "b"}]
    assert (run.results[0].scores["len"].status, run.results[0].scores["len"].details) == ("skipped", {"value": 12.0})
    assert run.results[1].error == "KeyError: b"
    path.write_text(json.dumps({"items": [{"input": "a"}, {"input": "a"}]}))
    first, second = read(path).samples
    assert second.id == f"{first.id}-2"


def test_a_file_without_items_is_an_error(tmp_path: Path) -> None:
    """The error says how to export."""
    path = tmp_path / "a.json"
    path.write_text("{}")
    with pytest.raises(DatasetError, match="no items and no trace"):
        read(path)


@needs_public_files
@pytest.mark.parametrize("name", ["dataset_capitals.json", "dataset_capitals.csv"])
def test_public_dataset(name: str) -> None:
    """Both exports have the same 3 samples with the same ids."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    samples = read(path).samples
    assert [(s.input, s.expected, s.metadata) for s in samples] == [
        ({"question": "France?"}, {"answer": "Paris"}, {"topic": "geo"}),
        ({"question": "Italy?"}, {"answer": "Rome"}, {"topic": "geo"}),
        ({"question": '日本 "q"\nline'}, {"answer": "Tokyo"}, {"topic": "geo"}),
    ]
    assert [s.id for s in samples] == [s.id for s in read(FOLDER / "dataset_capitals.json").samples]


@needs_public_files
def test_public_experiment() -> None:
    """The scores are 1, 0 and 0, and their mean is the reported one; the CSV has the scores without the inputs."""
    for name in ("experiment_exp1_0197f300.json", "experiment_exp1_0197f300.csv"):
        path = FOLDER / name
        assert recognize(path, read_head(path))
        file = read(path)
        (run,) = file.runs
        assert outcomes(run) == {"results": 3, "errors": 0}
        assert values(run, "exact") == [1.0, 0.0, 0.0]
        if path.suffix == ".json":
            assert run.reported == {"exact": sum(values(run, "exact")) / 3}
            assert [result.output["answer"] for result in run.results] == ["Paris", "the city of Rome", "Kyoto"]
            assert (run.total, run.details["usage"]) == (3, {"total_tokens": 45.0})
        else:
            assert file.warnings[0].startswith("without input and output: 3 items")


@needs_public_files
def test_public_traces() -> None:
    """Each trace has 2 spans, 2 scores and 15 tokens, which its model call repeats and which count once."""
    files = sorted(FOLDER.glob("trace_*.json"))
    assert all(recognize(path, read_head(path)) for path in files)
    results = [result for path in files for run in read(path).runs for result in run.results]
    assert len(results) == 3
    for result in results:
        session = result.trial.session
        assert session is not None
        assert (len(session[ModelCall]), len(session[ToolCall])) == (1, 1)
        assert (result.trial.usage.total_tokens, session.usage.total_tokens) == (15, 15)  # type: ignore[union-attr]
        assert list(result.scores) == ["exact", "human"]
    assert [result.scores["exact"].value for result in results] == [1.0, 0.0, 0.0]
