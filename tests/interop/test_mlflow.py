"""Datasets, result tables and traces of MLflow."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from proctor.errors import DatasetError
from proctor.interop.imported import ImportedRun
from proctor.interop.readers.mlflow import read, recognize
from proctor.records.session import CustomEvent, ModelCall, ToolCall
from tests.interop.support import FORMATS, needs_public_files, outcomes, read_head, reference, values

FOLDER = FORMATS / "mlflow"


def test_assessments_become_scores(tmp_path: Path) -> None:
    """Words of a verdict, labels, replaced assessments and errors of a scorer each have their own meaning."""
    assessments = [
        {"assessment_name": "safe", "feedback": {"value": "no"}, "rationale": "a threat"},
        {"assessment_name": "tone", "feedback": {"value": "rude"}},
        {"assessment_name": "rank", "feedback": {"value": 4}},
        {"assessment_name": "old", "feedback": {"value": True}, "valid": False},
        {"assessment_name": "judge", "feedback": {"value": None, "error": {"error_message": "429"}}},
        {"assessment_name": "expected_response", "expectation": {"value": "hi"}},
    ]
    trace = {
        "info": {
            "trace_id": "tr-1", "trace_location": {}, "state": "OK", "execution_duration_ms": 7,
            "trace_metadata": {"mlflow.traceInputs": '{"q": "hello"}', "mlflow.traceOutputs": '"go away"'},
            "assessments": assessments,
        },
        "data": {"spans": []},
    }  # fmt: skip
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(trace))
    assert recognize(path, read_head(path))
    file = read(path)
    ((result,),) = (run.results for run in file.runs)
    sample = result.trial.sample
    assert (sample.id, sample.input, sample.expected, result.output) == ("tr-1", {"q": "hello"}, "hi", "go away")
    assert {name: (score.status, score.value) for name, score in result.scores.items()} == {
        "safe": ("ok", 0.0), "tone": ("skipped", None), "rank": ("skipped", None), "judge": ("error", None),
    }  # fmt: skip
    assert (result.latency_ms, result.trial.session) == (7.0, None)
    assert "left out: 1 assessment that a newer one replaces" in file.warnings


def test_other_documents_are_errors(tmp_path: Path) -> None:
    """A document without numbers is nothing of MLflow."""
    path = tmp_path / "a.json"
    path.write_text('{"a": "b"}')
    assert not recognize(path, read_head(path))
    with pytest.raises(DatasetError, match="no records, traces or metrics"):
        read(path)


def mean_with_failures(run: ImportedRun, name: str) -> float:
    """Return MLflow's mean, which includes the scores of failed rows."""
    failed = run.details["scores_of_failed_trials"].values()
    return fmean([*values(run, name), *(scores[name] for group in failed for scores in group)])


@needs_public_files
@pytest.mark.parametrize("name", ["evaluate_result_df.json", "traces.jsonl"])
def test_public_results(name: str) -> None:
    """Both exports have 4 rows and 1 error; with the scores of the error, the means are MLflow's."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    (run,) = read(path).runs
    assert outcomes(run) == {"results": 4, "errors": 1}
    metrics = FOLDER / "evaluate_metrics.json"
    assert recognize(metrics, read_head(metrics))
    ((reported,),) = ([run.reported for run in read(metrics).runs],)
    assert reported == {f"{name}/mean": mean_with_failures(run, name) for name in ("exact", "sometimes", "overlap")}
    # Without the crashed row, which has no output to judge, one of three outputs is exact.
    assert sum(values(run, "exact")) == 1
    assert len(values(run, "exact")) == 3
    scorer_errors = [r.scores["sometimes"].reason for r in run.results if r.scores and not r.scores["sometimes"].ok]
    assert scorer_errors == ["scorer failed"]


@needs_public_files
def test_public_traces() -> None:
    """Spans become events, tokens count once, and expectations become expected values."""
    path = FOLDER / "traces.jsonl"
    (run,) = read(path).runs
    assert len(run.results) == reference("mlflow/traces.jsonl")["lines"]
    spans = [
        sum(isinstance(event, ModelCall | ToolCall | CustomEvent) for event in result.trial.session or ())
        for result in run.results
    ]
    assert spans == [3, 4, 4, 4]
    assert str(run.results[0].error) == "ValueError: no such city"
    usages = [result.trial.usage for result in run.results]
    assert [usage and usage.total_tokens for usage in usages] == [None, 15, 15, 15]
    expected = [(r.trial.sample.expected, r.trial.sample.metadata) for r in run.results]
    assert expected == [
        (None, {}), ("Tokyo", {}), ("Rome", {}), ("Paris", {"expectations": {"expected_facts": ["Paris"]}}),
    ]  # fmt: skip
    first = FOLDER / "trace_first.json"
    assert recognize(first, read_head(first))
    assert read(first).runs[0].results == run.results[:1]
    table = read(FOLDER / "evaluate_result_df.json")
    assert {s.id: s.expected for s in table.samples} == {s.id: s.expected for s in read(path).samples}


@needs_public_files
@pytest.mark.parametrize("name", ["evaluation_dataset.json", "evaluation_dataset_records.json"])
def test_public_dataset(name: str) -> None:
    """Both exports have the same 4 records."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    samples = read(path).samples
    assert [(s.input["question"], s.expected) for s in samples] == [
        ("France?", "Paris"), ("crash", None), ("Italy?", "Rome"), ('日本 "Japan"?\n', "Tokyo"),
    ]  # fmt: skip
    assert samples[0].metadata["expectations"] == {"expected_facts": ["Paris"]}


@needs_public_files
def test_public_tables() -> None:
    """An artefact table is a run without scores, and a question set is a dataset."""
    table = FOLDER / "table_eval_data.json"
    assert recognize(table, read_head(table))
    (run,) = read(table).runs
    assert (outcomes(run), run.results[0].latency_ms) == ({"results": 2, "errors": 0}, 7788.29999999702)
    assert all(result.output.startswith(" Here is an outline") for result in run.results)
    questions = FOLDER / "static_evaluation_dataset.csv"
    assert recognize(questions, read_head(questions))
    file = read(questions)
    assert (len(file.samples), file.warnings) == (56, ("columns: 56 rows with question as input",))
