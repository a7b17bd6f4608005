"""Every public file of promptfoo, Inspect, DeepEval and OpenAI evals gives the numbers of its reference."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from proctor.interop.formats import read_file, recognize_format
from proctor.interop.imported import ImportedRun
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall
from proctor.records.session_events import ORPHAN_RESULT
from proctor.records.trial import EvalResult
from tests.support import ROOT
from tests.tables import each_row

FOLDER = ROOT.parent / "shared" / "data" / "11_formats"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the shared data is not next to the checkout")


@cache
def references() -> dict[str, Any]:
    return json.loads((FOLDER / "REFERENCE.json").read_text()) if FOLDER.exists() else {}


def select(tool: str, ending: str, key: str) -> list[tuple[str, dict[str, Any]]]:
    names = (name for name in references() if name.startswith(tool) and name.endswith(ending))
    return [(name, references()[name]) for name in names if key in references()[name]]


def read_run(name: str, tool: str) -> ImportedRun:
    path = FOLDER / name
    assert recognize_format(path) == tool
    (run,) = read_file(path).runs
    return run


def sum_scores(run: ImportedRun) -> dict[str, float]:
    totals: dict[str, float] = {}
    for result in run.results:
        for name, score in result.scores.items():
            totals[name] = totals.get(name, 0) + (score.value or 0)
    return totals


def count_outcomes(run: ImportedRun) -> Counter[str]:
    return Counter(result.outcome for result in run.results)


def sum_usage(results: tuple[EvalResult, ...]) -> dict[str, tuple[int, int]]:
    """Return input and output tokens by model, of targets and evaluators."""
    totals: dict[str, tuple[int, int]] = {}
    for result in results:
        for session in (result.trial.session, *result.sessions.values()):
            for call in session[ModelCall] if session is not None else ():
                before = totals.get(call.model, (0, 0))
                usage = (call.usage.input_tokens or 0, call.usage.output_tokens or 0)
                totals[call.model] = (before[0] + usage[0], before[1] + usage[1])
    return {model: usage for model, usage in totals.items() if any(usage)}


@each_row("name, reference", select("inspect/", "", "samples_logged"))
def test_an_inspect_log_has_its_samples_messages_and_tokens(name: str, reference: dict[str, Any]) -> None:
    """Samples, errors, messages, tool calls and tokens are those that inspect-ai reads."""
    run = read_run(name, "inspect")
    sessions = [result.trial.session for result in run.results if result.trial.session is not None]
    calls = [call for session in sessions for call in session[ToolCall]]
    customs = [event for session in sessions for event in session if isinstance(event, CustomEvent)]
    orphans = [event for event in customs if event.kind == ORPHAN_RESULT]
    messages = [message for session in sessions for message in session[Message]]
    assert len(run.results) == reference["samples_logged"]
    assert sum(not result.success for result in run.results) == reference["sample_errors"]
    # The result of a tool is part of its call.
    assert len(messages) + len(calls) + len(orphans) == reference["messages"]
    assert sum(len(message.tool_calls) for message in messages) == reference["tool_calls"]
    assert len(calls) + len(orphans) == reference["tool_messages"]
    failures = sum(call.error is not None for call in calls) + sum("failure" in event.data for event in orphans)
    assert failures == reference["tool_errors"]
    limits = Counter(event.data["type"] for event in customs if event.kind == "sample_limit")
    assert limits == reference["sample_limits"]
    total = reference["total_samples"]
    assert run.total == total if total is not None else run.total is None or run.total >= len(run.results)
    is_complete = run.total in (None, len(run.results))
    reported = {model: (usage["input"], usage["output"]) for model, usage in reference["model_usage"].items()}
    if is_complete and reference["samples_logged"]:
        assert sum_usage(run.results) == reported
    else:
        usage = run.details.get("model_usage", {})
        assert {model: (u["input_tokens"], u["output_tokens"]) for model, u in usage.items()} == reported


@each_row("name, reference", select("inspect/", "", "metrics"))
def test_an_inspect_log_has_its_scores_and_metrics(name: str, reference: dict[str, Any]) -> None:
    """The metrics of the header are reported, and the mean of the scores is the accuracy that Inspect computed."""
    run = read_run(name, "inspect")
    statuses = {"success": "completed", "error": "failed", "cancelled": "interrupted"}
    assert (run.status, run.name) == (statuses[reference["status"]], reference["task"])
    for key, metrics in reference["metrics"].items():
        score, _, reducer = (*key.split("|"), "mean")[:3]
        suffix = "" if reducer == "mean" else f" ({reducer})"
        for metric, value in metrics.items():
            assert run.reported[f"{score}.{metric}{suffix}"] == pytest.approx(value)
        scores = [result.scores[score] for result in run.results if score in result.scores]
        scores = [item for item in scores if item.status != "error"]
        values: list[Any] = [item.value if item.ok else item.details["value"] for item in scores]
        if run.total in (None, len(run.results)) and reducer == "mean" and values:
            mean = metrics.get("accuracy", metrics.get("mean"))
            assert sum(values) / len(values) == pytest.approx(mean)


def test_an_inspect_score_of_nan_is_an_error() -> None:
    """Of three grades one was not found: two scores, mean one half, and a result without a verdict."""
    names = [name for name in references() if "graded-by-model" in name]
    run = read_run(names[0], "inspect")
    assert count_outcomes(run) == {"passed": 1, "failed": 1, "unscored": 1}
    assert sum_scores(run) == {"model_graded_qa": 1.0}


@each_row("name, reference", select("promptfoo/", ".json", "rows"))
def test_promptfoo_results_have_their_rows_scores_and_usage(name: str, reference: dict[str, Any]) -> None:
    """Errors are not failures, the grader's tokens are apart, and scores and components add up."""
    run = read_run(name, "promptfoo")
    outcomes = count_outcomes(run)
    stats = reference["stats"]
    assert len(run.results) == reference["rows"]
    assert outcomes["passed"] == reference["pass_rows"]
    assert outcomes["failed"] == (stats["failures"] or 0)
    assert outcomes["error"] == (stats["errors"] or 0)
    sums = sum_scores(run)
    assert sums.pop("assertions") == pytest.approx(reference["score_sum"], abs=1e-6)
    assert sums == pytest.approx(reference["named_score_sums"], abs=1e-6)
    parts = [result.scores["assertions"].details.get("parts", {}) for result in run.results if result.success]
    assert sum(map(len, parts)) == reference["component_results"]
    usage = [result.trial.usage for result in run.results if result.trial.usage is not None]
    tokens = reference["tokenUsage"]
    assert sum(item.input_tokens or 0 for item in usage) == (tokens["prompt"] or 0)
    assert sum(item.output_tokens or 0 for item in usage) == (tokens["completion"] or 0)
    if tokens["cached"] is not None:
        assert sum(item.cached_tokens or 0 for item in usage) == tokens["cached"]
    assert sum(item.cost or 0 for item in usage) == pytest.approx(reference["cost"], abs=1e-9)
    graded = sum((result.judging.total_tokens or 0) if result.judging else 0 for result in run.results)
    assert graded == (reference["grading_tokens"] or 0)


def test_promptfoo_repeats_are_epochs_and_columns_are_configurations() -> None:
    """24 test indices of 12 tests run twice, in 5 columns."""
    run = read_run("promptfoo/generated/4-hard/results.json", "promptfoo")
    assert len(run.configurations) == 5
    assert Counter(result.trial.epoch for result in run.results) == {0: 60, 1: 60}
    assert len({result.sample_id for result in run.results}) == 12


def test_a_promptfoo_config_numbers_its_tests_as_its_results_do() -> None:
    """Matrix, files and scenarios give the inputs of the results, in order and with the same ids."""
    folder = FOLDER / "promptfoo" / "generated"
    for name in ("1-simple", "2-csv", "3-assertions", "4-hard"):
        config = read_file(folder / name / "promptfooconfig.yaml").samples
        (run,) = read_file(folder / name / "results.json").runs
        results = {result.sample_id: result.trial.sample for result in run.results}
        assert [(sample.id, sample.input) for sample in config] == [
            (sample.id, sample.input) for sample in results.values()
        ]
        assert [sample.evaluators for sample in config] == [sample.evaluators for sample in results.values()]


@each_row("name", ["1-simple/results", "2-csv/results"])
def test_promptfoo_results_are_equal_in_every_format(name: str) -> None:
    """JSON Lines, YAML and CSV have the same verdicts and scores as JSON."""
    folder = FOLDER / "promptfoo" / "generated"
    (expected,) = read_file(folder / f"{name}.json").runs
    for ending in ("jsonl", "yaml", "csv"):
        if (folder / f"{name}.{ending}").exists():
            (run,) = read_file(folder / f"{name}.{ending}").runs
            assert sum_scores(run) == pytest.approx(sum_scores(expected), abs=0.011)
            assert count_outcomes(run) == count_outcomes(expected)


@each_row("name, reference", select("promptfoo/", "tests.csv", "rows"))
def test_promptfoo_test_files_have_their_rows(name: str, reference: dict[str, Any]) -> None:
    """Every row of a CSV of tests is a sample."""
    assert len(read_file(FOLDER / name).samples) == reference["rows"]


def test_every_promptfoo_config_is_read() -> None:
    """All real configs whose tests are there have samples with distinct ids."""
    for path in sorted(FOLDER.glob("promptfoo/**/promptfooconfig*.yaml")):
        assert recognize_format(path) == "promptfoo"
        if path.parent.name == "eval-f-score":  # its file of tests is not in the folder
            continue
        samples = read_file(path).samples
        assert samples
        assert len({sample.id for sample in samples}) == len(samples)


@each_row("name, reference", select("deepeval/", "", "test_cases"))
def test_a_deepeval_test_run_has_its_scores(name: str, reference: dict[str, Any]) -> None:
    """A metric that raised is an error, not a score of zero."""
    run = read_run(name, "deepeval")
    outcomes = count_outcomes(run)
    assert (len(run.results), outcomes["passed"]) == (reference["test_cases"], reference["passed"])
    assert outcomes["failed"] == reference["failed"]
    for metric, expected in reference["metrics"].items():
        scores = [result.scores[metric] for result in run.results]
        assert [score.value for score in scores] == expected["scores"]
        assert sum(score.passed is True for score in scores) == expected["passed"]
        assert sum(score.status == "error" for score in scores) == expected["errors"]
    if reference["cost"]:
        assert run.reported["judges.cost"] == pytest.approx(reference["cost"])


@each_row("name, reference", [*select("deepeval/", "", "items"), *select("deepeval/", "", "rows")])
def test_deepeval_goldens_have_their_items(name: str, reference: dict[str, Any]) -> None:
    """Goldens and conversational goldens are samples in JSON, JSON Lines and CSV."""
    path = FOLDER / name
    assert recognize_format(path) == "deepeval"
    samples = read_file(path).samples
    assert len(samples) == reference.get("items", reference.get("rows"))
    if "with_expected_output" in reference:
        assert sum(sample.expected is not None for sample in samples) == reference["with_expected_output"]
    if reference.get("turns"):
        assert sum(len(sample.metadata.get("turns", ())) for sample in samples) == reference["turns"]


def test_deepeval_csv_and_json_of_the_same_goldens_differ_only_where_csv_loses() -> None:
    """The context "a|b" is one item in JSON and two in CSV, and the file says so."""
    stored = {ending: read_file(FOLDER / "deepeval" / f"goldens_saved.{ending}") for ending in ("json", "csv", "jsonl")}
    assert stored["json"].samples[1].context == ["a|b", "c;d"]
    assert stored["csv"].samples[1].context == ["a", "b", "c;d"]
    assert stored["csv"].warnings == stored["jsonl"].warnings != stored["json"].warnings
    assert stored["csv"].samples[0] == stored["json"].samples[0]


@each_row("name, reference", select("openai-evals/", "", "final_report"))
def test_an_openai_evals_log_has_its_report(name: str, reference: dict[str, Any]) -> None:
    """Events in any order give the accuracy, f1, score and tokens of the final report."""
    run = read_run(name, "openai-evals")
    report, sums = reference["final_report"], sum_scores(run)
    assert len(run.results) == reference["samples"]
    assert sums.get("match", 0) == reference["correct"]
    if "accuracy" in report:
        assert sums["match"] / len(run.results) == pytest.approx(report["accuracy"])
    if "f1_score" in report:
        assert sums["f1_score"] / len(run.results) == pytest.approx(report["f1_score"])
    (usage,) = sum_usage(run.results).values()
    assert usage == (report["usage_prompt_tokens"], report["usage_completion_tokens"])


def test_an_invalid_grade_of_openai_evals_is_an_error() -> None:
    """The tool counts the invalid choice as 0: 0.3 over five; without it the mean is 0.375 over four."""
    run = read_run("openai-evals/logs/capitals-fact.table-model.jsonl", "openai-evals")
    scores = [result.scores["fact-short"] for result in run.results]
    assert [score.status for score in scores].count("error") == 1
    assert sum(score.value or 0 for score in scores) / 5 == pytest.approx(run.reported["fact-short.mean"])


def test_openai_evals_samples_and_registry_have_their_numbers() -> None:
    """The registry has the samples of its five evals, with the ids of the logs."""
    registry = read_file(FOLDER / "openai-evals" / "registry" / "evals" / "capitals.yaml")
    counts = Counter(sample.metadata["eval"] for sample in registry.samples)
    assert list(counts.values()) == [6, 6, 6, 4, 5]
    run = read_run("openai-evals/logs/capitals-match.table-model.jsonl", "openai-evals")
    assert {result.sample_id for result in run.results} <= {sample.id for sample in registry.samples}
    for name, reference in select("openai-evals/registry/data", ".jsonl", "samples"):
        assert len(read_file(FOLDER / name).samples) == reference["samples"]


def test_files_of_other_formats_are_not_recognized() -> None:
    """Chats, code and grading specs are not taken for evaluations."""
    others: list[Path] = [
        *FOLDER.glob("atif/**/*.json"),
        *FOLDER.glob("pydantic-ai/*.json"),
        *FOLDER.glob("claude/*.jsonl"),
    ]
    assert [path.name for path in others if recognize_format(path) in ("promptfoo", "inspect", "openai-evals")] == []
