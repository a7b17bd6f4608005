"""Results and samples of lm-evaluation-harness."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from proctor.errors import DatasetError
from proctor.interop.readers.lm_eval import companions, read, recognize
from tests.interop.support import FORMATS, mean_by_sample, needs_public_files, read_head, reference, values

FOLDER = FORMATS / "lm-eval"
NEW, OLD = "2026-11-16T04-26-40.126139", "2026-01-21T03-44-18.458309"


def write_results(tmp_path: Path) -> Path:
    """Write results with a lower-is-better metric and a standard error that is not known."""
    line = {
        "doc_id": 3,
        "doc": {"q": "2 + 2?"},
        "target": "4",
        "arguments": [["Q: 2 + 2?", {"until": []}]],
        "resps": [["four", "4"]],
        "filtered_resps": ["4"],
        "filter": "vote",
        "metrics": ["exact_match", "edits", "ppl"],
        "exact_match": 1.0,
        "edits": 0.25,
        "ppl": float("nan"),
    }
    (tmp_path / "samples_sums_2026-01-01T00-00-00.jsonl").write_text(json.dumps(line) + "\n")
    results = {
        "results": {"sums": {"alias": "sums", "exact_match,vote": 1.0, "exact_match_stderr,vote": "N/A"}},
        "higher_is_better": {"sums": {"exact_match": True, "edits": False}},
        "n-samples": {"sums": {"original": 9, "effective": 5}},
        "lm_eval_version": "0.4.13",
    }
    path = tmp_path / "results_2026-01-01T00-00-00.json"
    path.write_text(json.dumps(results))
    return path


def test_results_and_samples_are_read_together(tmp_path: Path) -> None:
    """A results file takes in the samples of its time: filters name scores, and NaN is an error."""
    path = write_results(tmp_path)
    assert recognize(path, read_head(path))
    file = read(path)
    (run,) = file.runs
    (result,) = run.results
    assert (result.sample_id, result.trial.sample.input, result.trial.sample.expected) == ("sums/3", "Q: 2 + 2?", "4")
    assert (result.output, result.trial.raw_output) == ("4", [["four", "4"]])
    assert {name: (score.value, score.status) for name, score in result.scores.items()} == {
        "exact_match_vote": (1.0, "ok"),
        "edits_vote": (None, "skipped"),
        "ppl_vote": (None, "error"),
    }
    assert (run.reported, run.total) == ({"exact_match_vote": 1.0}, 5)
    assert file.warnings == (
        "left out: 1 reported number written as 'N/A' (exact_match_stderr,vote)",
        "without a value: 1 score of edits: lower is better; the details have the number",
        "errors: 1 score with the value NaN",
    )


def test_a_samples_file_alone_has_the_same_run(tmp_path: Path) -> None:
    """A samples file is read with the numbers of the results file beside it."""
    path = write_results(tmp_path)
    (samples,) = companions(path)
    assert read(samples).runs == read(path).runs
    path.unlink()
    assert read(samples).runs[0].reported == {}


def test_a_line_without_a_document_is_an_error(tmp_path: Path) -> None:
    """The error names the line."""
    path = tmp_path / "samples_a_2026-01-01T00-00-00.jsonl"
    path.write_text('{"q": 1}\n')
    with pytest.raises(DatasetError, match=r'jsonl:1: "doc_id" is missing'):
        read(path)


@needs_public_files
@pytest.mark.parametrize("time", [NEW, OLD])
def test_public_results(time: str) -> None:
    """Reported numbers and totals equal the reference; samples are read where there are some."""
    path = FOLDER / f"results_{time}.json"
    assert recognize(path, read_head(path))
    file = read(path)
    numbers = reference(f"lm-eval/{path.name}")
    assert file.version == numbers["lm_eval_version"]
    assert {run.name: run.total for run in file.runs} == {
        name: counts["effective"] for name, counts in numbers["n-samples"].items()
    }
    for run in file.runs:
        metrics = {key: value for key, value in numbers["results"][run.name].items() if "," in key}
        assert run.reported == {key.replace(",none", "").replace(",", "_"): value for key, value in metrics.items()}


@needs_public_files
@pytest.mark.parametrize(("task", "time"), [("demo_mc", NEW), ("demo_gen", NEW), ("math_perturbed_full", OLD)])
def test_public_samples(task: str, time: str) -> None:
    """Documents are counted once, however many filters they have, and our means equal the reference."""
    path = FOLDER / f"samples_{task}_{time}.jsonl"
    assert recognize(path, read_head(path))
    file = read(path)
    (run,) = file.runs
    numbers: dict[str, Any] = reference(f"lm-eval/{path.name}")
    assert len(run.results) == len(file.samples) == numbers["docs"]
    assert sum(len(result.scores) for result in run.results) == numbers["lines"] * len(numbers["metric_means"])
    for metric, mean in numbers["metric_means"].items():
        for filter_name in numbers["filters"]:
            name = metric if filter_name == "none" else f"{metric}_{filter_name}"
            assert mean_by_sample(run, name) == mean


@needs_public_files
def test_means_and_errors_equal_the_reported_ones() -> None:
    """The mean and the standard error of every metric, computed from the imported scores, are the reported numbers."""
    for run in read(FOLDER / f"results_{NEW}.json").runs:
        for name, mean in run.reported.items():
            if "_stderr" not in name:
                scores = values(run, name)
                assert fmean(scores) == mean
                error = next(value for key, value in run.reported.items() if is_error_of(key, name))
                assert stdev(scores) / len(scores) ** 0.5 == pytest.approx(error)


def is_error_of(key: str, name: str) -> bool:
    """True if a reported number is the standard error of a metric: acc_stderr, exact_match_stderr_strict."""
    return "_stderr" in key and key.replace("_stderr", "") == name


@needs_public_files
def test_multiple_choice_has_texts_instead_of_indexes() -> None:
    """The answer is the most likely choice and the expected answer the right one; equal if acc is 1."""
    (run,) = read(FOLDER / f"samples_demo_mc_{NEW}.jsonl").runs
    for result in run.results:
        sample = result.trial.sample
        assert result.output in sample.metadata["choices"]
        assert (result.output == sample.expected) == result.scores["acc"].passed
