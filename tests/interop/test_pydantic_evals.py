"""Datasets and reports of pydantic-evals."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from proctor import evaluate
from proctor.errors import DatasetError
from proctor.interop.imported import ImportedRun
from proctor.interop.readers.pydantic_evals import read, recognize
from proctor.wiring.registry import Registry
from tests.interop.support import FORMATS, mean_by_sample, needs_public_files, outcomes, read_head, reference, values

FOLDER = FORMATS / "pydantic-evals"

DATASET = """
name: colours
cases:
- name: sky
  inputs: {what: sky}
  expected_output: blue
  metadata: {hard: false}
  evaluators:
  - Equals: blue
  - Contains: {value: BL, case_sensitive: false}
- name: null
  inputs: grass
evaluators:
- EqualsExpected
- IsInstance: str
- IsInstance: Colour
- MaxDuration: {seconds: 1.5}
- LLMJudge: {rubric: names a colour, model: "openai:gpt-5-mini", include_input: true}
- LLMJudge: says nothing else
- Mine: {limit: 3}
"""


def write(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_evaluators_with_the_same_meaning_are_translated(tmp_path: Path) -> None:
    """Evaluators become entries of an eval file, under the name that pydantic-evals reports."""
    path = write(tmp_path, "colours.yaml", DATASET)
    assert recognize(path, read_head(path))
    file = read(path)
    assert [sample.id for sample in file.samples] == ["sky", "case 2"]
    assert file.samples[0].evaluators == (
        {"uses": "schema_match", "name": "Equals", "schema": {"const": "blue"}, "parse": False},
        {"uses": "regex_match", "name": "Contains", "pattern": "BL", "flags": "i"},
    )
    assert file.evaluators == (
        {"uses": "exact_match", "name": "EqualsExpected"},
        {"uses": "schema_match", "name": "IsInstance", "schema": {"type": "string"}, "parse": False},
        {"uses": "latency", "name": "MaxDuration", "max_ms": 1500.0},
        {
            "uses": "llm_judge",
            "name": "LLMJudge",
            "model": "openai:gpt-5-mini",
            "rubric": "names a colour",
            "show_input": True,
            "reference": False,
        },
    )
    assert [text.partition(",")[0] for text in file.warnings] == [
        "left out: 1 evaluator IsInstance",
        "left out: 1 evaluator LLMJudge",
        "left out: 1 evaluator Mine",
    ]
    assert "llm_judge: {model: openai:MODEL, rubric: 'says nothing else'}" in file.warnings[1]


def test_translated_evaluators_run(tmp_path: Path) -> None:
    """The translated entries of samples are valid evaluators and give the same verdicts as the originals."""
    file = read(write(tmp_path, "colours.yaml", DATASET))
    evaluators = Registry.standard().build_all([*file.samples[0].evaluators, *file.evaluators[:3]])
    report = evaluate(lambda question: "blue", [{"id": "sky", "input": "sky", "expected": "blue"}], evaluators)
    assert {name: score.passed for name, score in report.results[0].scores.items()} == {
        "Equals": True, "Contains": True, "EqualsExpected": True, "IsInstance": True, "MaxDuration": True,
    }  # fmt: skip


def test_an_expected_list_keeps_its_meaning(tmp_path: Path) -> None:
    """EqualsExpected is left out if exact_match would accept one item of an expected list."""
    text = "cases:\n- name: a\n  inputs: x\n  expected_output: [red, blue]\nevaluators: [EqualsExpected]\n"
    file = read(write(tmp_path, "lists.yaml", text))
    assert file.evaluators == ()
    assert file.warnings == ("left out: 1 evaluator EqualsExpected: exact_match accepts any item of an expected list",)


def test_other_files_are_not_recognized(tmp_path: Path) -> None:
    """A document without cases is another format, and reading it says what is missing."""
    path = write(tmp_path, "eval.json", '{"name": "a", "samples": [{"inputs": 1}]}')
    assert not recognize(path, read_head(path))
    with pytest.raises(DatasetError, match=r"no list of cases[\s\S]*Fix: pass a dataset or a report"):
        read(path)


def test_files_of_the_installed_package(tmp_path: Path) -> None:
    """A dataset and a report that the real package writes are read with their numbers."""
    pydantic_evals = pytest.importorskip("pydantic_evals")
    evaluators = pytest.importorskip("pydantic_evals.evaluators")
    reporting = pytest.importorskip("pydantic_evals.reporting")
    cases = [
        pydantic_evals.Case(name="a", inputs="a", expected_output="A", evaluators=[evaluators.Contains("A")]),
        pydantic_evals.Case(name="b", inputs="b", expected_output="x"),
        pydantic_evals.Case(name="c", inputs="c", expected_output="C"),
    ]
    checks = [evaluators.EqualsExpected(), evaluators.MaxDuration(60)]
    dataset: Any = pydantic_evals.Dataset[str, str, Any](name="upper", cases=cases, evaluators=checks)

    def shout(text: str) -> str:
        if text == "c":
            raise ValueError("no voice")
        return text.upper()

    for name in ("upper.yaml", "upper.json"):
        dataset.to_file(tmp_path / name, schema_path=None)
        file = read(tmp_path / name)
        assert recognize(tmp_path / name, read_head(tmp_path / name))
        assert [(sample.id, sample.input, sample.expected) for sample in file.samples] == [
            ("a", "a", "A"), ("b", "b", "x"), ("c", "c", "C"),
        ]  # fmt: skip
        assert [entry["uses"] for entry in file.evaluators] == ["exact_match", "latency"]
        assert [entry["uses"] for entry in file.samples[0].evaluators] == ["regex_match"]
        assert file.warnings == ()

    report = asyncio.run(dataset.evaluate(shout, progress=False, repeat=2))
    path = tmp_path / "report.json"
    path.write_bytes(reporting.EvaluationReportAdapter.dump_json(report))
    assert recognize(path, read_head(path))
    (run,) = read(path).runs
    assert outcomes(run) == {"results": 6, "errors": 2}
    assert {(result.sample_id, result.trial.epoch) for result in run.results} == {(s, e) for s in "abc" for e in (0, 1)}
    assert mean_by_sample(run, "EqualsExpected") == 0.5
    assert {result.error for result in run.results if result.error} == {"ValueError: no voice"}


@needs_public_files
@pytest.mark.parametrize("name", ["capitals_dataset.yaml", "capitals_dataset.json"])
def test_public_dataset_with_own_evaluators(name: str) -> None:
    """The typed dataset has 5 cases, 2 evaluators of cases and 5 of the dataset; those of Proctor are translated."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    file = read(path)
    assert [sample.id for sample in file.samples] == ["fr", "it", "jp", "ke", "crash"]
    assert [entry["uses"] for entry in file.samples[0].evaluators] == ["schema_match"]
    assert [entry["name"] for entry in file.evaluators] == ["EqualsExpected", "MaxDuration"]
    # 7 evaluators in all: 3 translated, 4 left out.
    assert sum(int(text.split()[2]) for text in file.warnings) == 4


@needs_public_files
@pytest.mark.parametrize(
    ("name", "cases", "translated"), [("plain_dataset", 2, 1), ("time_range_v1", 10, 0), ("time_range_v2", 10, 0)]
)
def test_public_datasets(name: str, cases: int, translated: int) -> None:
    """Every case of the other public datasets is read."""
    path = FOLDER / f"{name}.yaml"
    assert recognize(path, read_head(path))
    file = read(path)
    assert (len(file.samples), len(file.evaluators)) == (cases, translated)


@needs_public_files
@pytest.mark.parametrize("name", ["capitals_report", "capitals_report_repeat3"])
def test_public_reports(name: str) -> None:
    """Cases, failures, scores, assertions, metrics and failed evaluators equal the reference numbers."""
    path = FOLDER / f"{name}.json"
    assert recognize(path, read_head(path))
    file = read(path)
    (run,) = file.runs
    numbers = reference(f"pydantic-evals/{name}.json")
    assert outcomes(run) == {"results": numbers["cases"] + numbers["failures"], "errors": numbers["failures"]}
    for score in ("overlap", "overlap_2"):
        assert values(run, score) == numbers["scores"][score]
    assert mean_by_sample(run, "overlap") == 0.625
    assert Counter(str(pair) for pair in list_assertions(run)) == numbers["assertions"]
    errors = sum(score.status == "error" for result in run.results for score in result.scores.values())
    assert errors == numbers["evaluator_failures"]
    for metric, total in numbers["metrics_sum"].items():
        assert sum(sum(counts) for counts in run.details["metrics"][metric].values()) == total
    assert len(file.samples) == 5


def list_assertions(run: ImportedRun, sample_id: str = "") -> list[tuple[str, bool | None]]:
    """Return the verdicts that are not numbers, of all samples or of one."""
    return [
        (name, score.passed)
        for result in run.results
        for name, score in result.scores.items()
        if score.ok and not name.startswith("overlap") and sample_id in ("", result.sample_id)
    ]


@needs_public_files
def test_means_of_assertions() -> None:
    """pydantic-evals takes the mean over all assertions, and with repeats over the cases; both can be computed."""
    (run,) = read(FOLDER / "capitals_report.json").runs
    assert fmean(passed is True for _, passed in list_assertions(run)) == pytest.approx(0.857143, abs=1e-6)
    (repeated,) = read(FOLDER / "capitals_report_repeat3.json").runs
    means = [
        fmean(passed is True for _, passed in list_assertions(repeated, case)) for case in ("fr", "it", "jp", "ke")
    ]
    assert fmean(means) == pytest.approx(0.866667, abs=1e-6)
