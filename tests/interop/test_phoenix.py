"""Experiments, datasets and spans of Phoenix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.errors import DatasetError
from proctor.interop.readers.phoenix import read, recognize
from proctor.records.session import CustomEvent, ModelCall, ToolCall
from tests.interop.support import FORMATS, needs_public_files, outcomes, read_head, reference, values

FOLDER = FORMATS / "phoenix"


def test_repetitions_and_failed_evaluators(tmp_path: Path) -> None:
    """Repetitions are epochs; an evaluator's error is an error; a text input in JSON stays text."""
    rows = [
        {
            "example_id": "e", "repetition_number": number, "input": "42", "reference_output": {"a": 1}, "output": "x",
            "error": None, "latency_ms": 3.5, "prompt_token_count": 5, "completion_token_count": 2,
            "annotations": [
                {"name": "judge", "label": None, "score": None, "error": "timeout"},
                {"name": "tone", "label": "kind", "score": None, "error": None},
            ],
        }
        for number in (1, 2)
    ]  # fmt: skip
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(rows))
    assert recognize(path, read_head(path))
    (run,) = read(path).runs
    assert [(r.sample_id, r.trial.epoch, r.trial.sample.input, r.latency_ms) for r in run.results] == [
        ("e", 0, "42", 3.5), ("e", 1, "42", 3.5),
    ]  # fmt: skip
    assert [(n, s.status, s.reason) for n, s in run.results[0].scores.items()] == [
        ("judge", "error", "timeout"), ("tone", "skipped", "label: kind"),
    ]  # fmt: skip
    assert run.results[0].trial.usage.total_tokens == 7  # type: ignore[union-attr]


def test_another_list_is_an_error(tmp_path: Path) -> None:
    """A list of other objects is no export of Phoenix."""
    path = tmp_path / "rows.json"
    path.write_text('[{"a": 1}]')
    assert not recognize(path, read_head(path))
    with pytest.raises(DatasetError, match="no experiment, dataset or list of spans"):
        read(path)


@needs_public_files
@pytest.mark.parametrize("name", ["experiment.json", "experiment.csv"])
def test_public_experiment(name: str) -> None:
    """Both exports have 3 runs and 1 error; the zeros of the failed run are kept apart."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    file = read(path)
    (run,) = file.runs
    numbers = reference("phoenix/experiment.json")
    assert outcomes(run) == {"results": numbers["runs"], "errors": numbers["errors"]}
    assert (values(run, "exact"), values(run, "overlap")) == ([1.0, 0.0], [1.0, 0.25])
    failed = run.results[2]
    assert failed.error == "ValueError: task failed"
    assert run.details["scores_of_failed_trials"] == {failed.sample_id: [{"exact": 0.0, "overlap": 0.0}]}
    assert run.results[0].trial.sample.input == {"question": "France?"}
    assert run.results[0].scores["overlap"].details == {"label": "some"}


@needs_public_files
@pytest.mark.parametrize("name", ["dataset.csv", "dataset_examples.json"])
def test_public_dataset(name: str) -> None:
    """Both exports have the same 3 samples."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    samples = read(path).samples
    assert [(s.input, s.expected, s.metadata) for s in samples] == [
        ({"question": "France?"}, {"answer": "Paris"}, {"topic": "eu"}),
        ({"question": "Italy?"}, {"answer": "Rome"}, {"topic": "eu"}),
        ({"question": "日本?"}, {"answer": "Tokyo"}, {"topic": "asia"}),
    ]


@needs_public_files
@pytest.mark.parametrize("name", ["dataset_openai_evals.jsonl", "dataset_openai_ft.jsonl"])
def test_empty_chats_are_counted(name: str) -> None:
    """The exports without messages have no samples, and a warning says what to do."""
    file = read(FOLDER / name)
    assert file.samples == ()
    assert file.warnings == ("left out: 3 examples without messages: export the dataset as CSV or JSON",)


@needs_public_files
@pytest.mark.parametrize("name", ["spans.json", "spans_dataframe.json", "spans_otlp.json"])
def test_public_spans(name: str) -> None:
    """The three shapes give the same sessions: 12 spans, an error inside a tool, and 45 tokens counted once."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    (run,) = read(path).runs
    numbers = reference("phoenix/spans.json")
    events = [event for result in run.results for event in result.trial.session]  # type: ignore[union-attr]
    kinds = {
        "LLM": sum(isinstance(event, ModelCall) for event in events),
        "TOOL": sum(isinstance(event, ToolCall) for event in events),
        **{
            kind: sum(isinstance(event, CustomEvent) and event.kind == f"span: {kind.lower()}" for event in events)
            for kind in ("AGENT", "RETRIEVER")
        },
    }
    assert kinds == numbers["kinds"]
    assert sum(kinds.values()) == numbers["spans"] == reference("phoenix/spans_otlp.json")["spans"]
    assert sum(isinstance(event, ToolCall) and not event.success for event in events) == numbers["errors"]
    assert outcomes(run) == {"results": 3, "errors": 0}
    assert sum(result.trial.usage.total_tokens for result in run.results) == 45  # type: ignore[union-attr, misc]
    assert {(r.trial.sample.input, r.output) for r in run.results} == {
        ("France?", "Paris"), ("Italy?", "the city of Rome"), ("日本?", None),
    }  # fmt: skip


@needs_public_files
def test_annotations_without_their_spans_are_counted() -> None:
    """A file of annotations alone has no results."""
    path = FOLDER / "span_annotations.json"
    assert recognize(path, read_head(path))
    assert read(path).warnings == ("left out: 2 annotations of spans, which are in another file",)
