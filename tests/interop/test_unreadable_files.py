"""What holds for every reader: it recognizes its own files only, and explains a file that is damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import Dataset, EvalReport
from proctor.errors import DatasetError, ProctorError
from proctor.interop.formats import read_file
from proctor.interop.imported import ImportedFile
from proctor.interop.readers import (
    braintrust,
    huggingface,
    langsmith,
    lm_eval,
    mlflow,
    opik,
    phoenix,
    pydantic_evals,
    ragas,
)
from proctor.reports import json as reports_json
from proctor.reports.json import JSONReporter
from tests.interop.support import FORMATS, needs_public_files, read_head

READERS: dict[str, Any] = {
    "pydantic-evals": pydantic_evals,
    "lm-eval": lm_eval,
    "langsmith": langsmith,
    "braintrust": braintrust,
    "phoenix": phoenix,
    "opik": opik,
    "mlflow": mlflow,
    "ragas": ragas,
}
# Schemas and tasks are no data; these tables have no mark of their tool, so the general reader takes them.
NOT_DATA = ("tasks/", "_schema.json")
GENERAL = ("dataset_openai_evals.jsonl", "dataset_openai_ft.jsonl", "support_triage.csv", "discount_benchmark.csv")

SMALL_FILES: dict[str, list[tuple[str, Any]]] = {
    "pydantic-evals": [
        ("dataset.json", {"cases": [{"name": "a", "inputs": 1, "evaluators": [{"Contains": "x"}]}], "evaluators": ["A"],
                          "report_evaluators": []}),
        ("report.json", {
            "cases": [{"name": "a", "inputs": 1, "output": 2, "scores": {"s": {"value": 0.5}}, "metrics": {"m": 1},
                       "evaluator_failures": [{"name": "e", "error_message": "no"}]}],
            "failures": [{"name": "b", "inputs": 1, "error_message": "E: x"}],
        }),
    ],
    "lm-eval": [("results_1.json", {"results": {"t": {"alias": "t", "acc,none": 1.0}},
                                    "n-samples": {"t": {"effective": 2}}})],
    "langsmith": [("rows.json", [{"run": {"inputs": {"q": 1}, "error": None}, "example": {"id": "e"},
                                  "evaluation_results": [{"key": "k", "score": 1}]}])],
    "braintrust": [("rows.json", [{"input": 1, "output": 2, "expected": 2, "scores": {"s": 0.5}, "metadata": {"a": 1},
                                   "metrics": {"start": 1.0, "end": 2.0}, "tags": ["t"]}])],
    "phoenix": [
        ("experiment.json", [{"example_id": "e", "repetition_number": 1, "input": 1, "latency_ms": 2.5,
                              "annotations": [{"name": "n", "score": 0.5, "label": "l"}]}]),
        ("spans.json", [{"name": "n", "span_kind": "LLM", "context": {"trace_id": "t", "span_id": "s"},
                         "attributes": {"input.value": "x"}, "start_time": "2026-01-01T00:00:00Z"}]),
    ],
    "opik": [
        ("experiment.json", {"experiment": {"name": "x", "dataset_name": "d", "trace_count": 1,
                                            "feedback_scores": [{"name": "n", "value": 1.0}]},
                             "items": [{"dataset_item_id": "1", "dataset_item_data": {"input": 1},
                                        "feedback_scores": [{"name": "n", "value": 1.0}]}]}),
        ("trace.json", {"trace": {"id": "t", "project_id": None, "input": 1, "usage": {"prompt_tokens": 1}},
                        "spans": [{"id": "s", "type": "llm", "name": "c", "input": {}, "usage": {}}]}),
    ],
    "mlflow": [
        ("traces.json", [{"info": {"trace_id": "t", "trace_location": {}, "state": "ERROR",
                                   "trace_metadata": {"a": "b"},
                                   "assessments": [{"assessment_name": "n", "feedback": {"value": "yes"}}]},
                          "data": {"spans": [{"span_id": "s", "attributes": {}, "events": [{"name": "exception"}]}]}}]),
        ("dataset.json", {"records": [{"inputs": {"q": 1}, "expectations": {"expected_response": "x"}}]}),
    ],
    "ragas": [("samples.json", [{"user_input": [{"type": "human", "content": "x", "tool_calls": []}], "score": 0.5}])],
}  # fmt: skip


def damage(value: Any) -> Iterator[Any]:
    """Yield copies of a document, each with one value replaced by another type or removed."""
    yield from (None, 7, "text", [3], {"a": [None]})
    if isinstance(value, dict):
        for key, item in value.items():
            yield {name: part for name, part in value.items() if name != key}
            yield from ({**value, key: damaged} for damaged in damage(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from ([*value[:index], damaged, *value[index + 1 :]] for damaged in damage(item))


@pytest.mark.parametrize("tool", READERS)
def test_a_damaged_file_is_explained(tool: str, tmp_path: Path) -> None:
    """Whatever part of a file is missing or of another type, it is read or refused with an error that names it."""
    read_count = 0
    for name, content in SMALL_FILES[tool]:
        path = tmp_path / name
        path.write_text(json.dumps(content))
        assert READERS[tool].recognize(path, read_head(path))
        assert isinstance(read_file(path, tool), ImportedFile)
        for damaged in damage(content):
            path.write_text(json.dumps(damaged))
            try:
                read_count += isinstance(read_file(path, tool), ImportedFile)
            except ProctorError as error:
                assert name in str(error)  # noqa: PT017
    assert read_count > 0


@pytest.mark.parametrize("tool", ["ragas", "openai-evals"])
def test_a_line_that_is_not_utf8_is_refused_with_its_number(tool: str, tmp_path: Path) -> None:
    """Replacing its bytes would change what was evaluated."""
    path = tmp_path / "samples.jsonl"
    path.write_bytes(b'{"user_input": "a", "ideal": "b"}\n{"user_input": "caf\xe9", "ideal": "b"}\n')
    with pytest.raises(DatasetError, match=r"samples\.jsonl:2.*(?s:.*)Fix: convert the file to UTF-8"):
        read_file(path, tool)


def list_public_files() -> list[Path]:
    """Return all public files, of these tools and of others."""
    return sorted(path for path in FORMATS.rglob("*") if path.is_file() and path.parent != FORMATS)


@needs_public_files
@pytest.mark.parametrize("head_bytes", [4096, 65536])
def test_every_public_file_is_recognized_by_its_own_reader_only(head_bytes: int) -> None:
    """Of more than 200 files of 25 tools, each reader takes its own; the reader for plain tables must come last."""
    mistakes = []
    for path in list_public_files():
        name = str(path.relative_to(FORMATS))
        owner = name.partition("/")[0]
        is_expected = owner in READERS and not any(mark in name for mark in NOT_DATA) and path.name not in GENERAL
        expected = [owner] if is_expected else []
        recognized = [tool for tool, reader in READERS.items() if reader.recognize(path, read_head(path, head_bytes))]
        if recognized != expected:
            mistakes.append((name, recognized))
    assert mistakes == []
    assert len(list_public_files()) > 200


@needs_public_files
def test_imported_files_are_datasets_and_reports() -> None:
    """The samples of every public file are a valid dataset, and the results of its runs survive storing as JSON."""
    count = 0
    for path in list_public_files():
        for reader in READERS.values():
            if not reader.recognize(path, read_head(path)):
                continue
            file = reader.read(path)
            assert Dataset(file.samples, path.name).inspect().length == len(file.samples)
            for run in file.runs:
                report = EvalReport(run.results)
                stored = reports_json.load(JSONReporter().generate(report))
                assert [result.outcome for result in stored.results] == [result.outcome for result in run.results]
                assert {r.sample_id for r in run.results} <= {sample.id for sample in file.samples}
            count += 1
    assert count >= 40


@needs_public_files
def test_the_reader_for_tables_takes_no_json_documents() -> None:
    """It is the last in line, and takes only rows: Parquet, Arrow, CSV and JSON Lines."""
    taken = {path.suffix for path in list_public_files() if huggingface.recognize(path, read_head(path))}
    assert taken == {".parquet", ".arrow", ".csv", ".jsonl"}
