"""The verdict of an imported result: never better than its tool's, and never made of a score that has no value."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor import ConversationTarget, RecordedTarget, compare, contains, evaluate, tool_called
from proctor.interop.formats import read_file
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import apply_pass_marks
from proctor.records.trial import EvalResult
from proctor.wiring.store_imports import make_report, store_file
from tests.interop.examples import inspect_log, openai_log, promptfoo_results, promptfoo_row
from tests.tables import each_row

NAN = float("nan")


def write(path: Path, content: Any) -> Path:
    """Write JSON, JSON Lines for a list in a .jsonl file, or text."""
    if isinstance(content, str):
        text = content
    elif path.suffix == ".jsonl":
        text = "\n".join(map(json.dumps, content))
    else:
        text = json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, name: str, content: Any, format_name: str) -> tuple[ImportedFile, ImportedRun]:
    """Return a file and its only run."""
    imported = read_file(write(folder / name, content), format_name)
    (run,) = imported.runs
    return imported, run


def inspect_samples(*scores: dict[str, Any], **sample: Any) -> dict[str, Any]:
    """Return a log with one sample for each mapping of scorers to values."""
    base = {"input": "?", "target": "1", "messages": [], "output": {"completion": "1"}, "epoch": 1, **sample}
    samples = [
        {**base, "id": number, "scores": {name: {"value": value} for name, value in values.items()}}
        for number, values in enumerate(scores, start=1)
    ]
    return inspect_log(samples=samples, results={}, stats={})


def deepeval_case(*metrics: dict[str, Any], **case: Any) -> dict[str, Any]:
    """Return a test case with its metrics."""
    return {"name": "a", "input": "?", "actualOutput": "1", "metricsData": list(metrics), **case}


def deepeval_file(*cases: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a test run."""
    return {"testCases": list(cases), "metricsScores": [], **fields}


EXACT = {"name": "Exact Match", "threshold": 1.0, "success": True, "score": 1.0}
RAISED = {"name": "Bias", "threshold": 0.5, "success": False}


def metric(score: Any, success: bool | None, name: str = "Hallucination", threshold: float = 0.5) -> dict[str, Any]:
    return {"name": name, "threshold": threshold, "success": success, "score": score}


# Files of one result that its tool calls failed: name, content and format.
FAILED = [
    (
        "opik.json",
        {"experiment": {"name": "e"}, "items": [
            {"dataset_item_id": "a", "dataset_item_data": {"input": "?"}, "evaluation_task_output": {},
             "feedback_scores": [{"name": "x", "value": 1}],
             "assertion_results": [{"value": "is short", "passed": True}, {"value": "is kind", "passed": False}]}
        ]},
    ),
    ("promptfoo.json", {**promptfoo_results(), "results": {"results": [promptfoo_row(0, 0, success=False, score=1)]}}),
    ("deepeval.json", deepeval_file(deepeval_case(EXACT, RAISED, success=False))),
    ("deepeval.json", deepeval_file(deepeval_case(EXACT, success=False))),
    ("deepeval.json", deepeval_file(deepeval_case(EXACT, metric(7, False), success=False))),
    ("deepeval.json", deepeval_file(deepeval_case(EXACT, metric(0.9, False), success=False))),
    ("deepeval.json", deepeval_file(deepeval_case(EXACT, metric(NAN, False), success=False))),
    ("deepeval.json", deepeval_file(deepeval_case(success=False))),
    (
        "openai-evals.jsonl",
        [
            {"spec": {"eval_name": "a", "run_config": {}}},
            {"sample_id": "a.0", "type": "match", "data": {"correct": False}},
            {"sample_id": "a.0", "type": "metrics", "data": {"f1": 1.0}},
        ],
    ),
    (
        "pydantic-evals.json",
        {"cases": [{"name": "a", "inputs": "?", "output": "1", "assertions": {"ok": {"value": False}},
                    "scores": {"s": {"value": 1.0}}}], "failures": []},
    ),
    (
        "mlflow.jsonl",
        [{"info": {"trace_id": "t", "assessments": [
            {"assessment_name": "ok", "feedback": {"value": "no"}}, {"assessment_name": "s", "feedback": {"value": 1}}
        ]}, "data": {"spans": []}}],
    ),
]  # fmt: skip


@each_row("name, content", FAILED)
def test_a_result_that_its_tool_called_failed_is_never_passed(tmp_path: Path, name: str, content: Any) -> None:
    """In every format with verdicts, also if the failed metric has no score, NaN or a number outside 0 to 1."""
    _, run = read(tmp_path, name, content, name.partition(".")[0])
    assert [result.passed for result in run.results] == [False]


Scored = Callable[[Any], Any]
# Files of one result with a score of 1 and another score of the given value.
VALUES: list[tuple[str, Scored]] = [
    ("inspect.json", lambda value: inspect_samples({"match": "C", "other": value})),
    ("deepeval.json", lambda value: deepeval_file(deepeval_case(EXACT, metric(value, None, "other")))),
    (
        "openai-evals.jsonl",
        lambda value: [
            {"spec": {"eval_name": "a", "run_config": {}}},
            {"sample_id": "a.0", "type": "metrics", "data": {"match": 1.0, "other": value}},
        ],
    ),
    (
        "pydantic-evals.json",
        lambda value: {
            "cases": [{"name": "a", "inputs": "?", "output": "1",
                       "scores": {"x": {"value": 1}, "other": {"value": value}}}],
            "failures": [],
        },
    ),
    (
        "lm-eval.jsonl",
        lambda value: [{"doc_id": 0, "doc": {}, "target": "1", "filtered_resps": ["1"], "acc": 1, "other": value}],
    ),
    (
        "langsmith.jsonl",
        lambda value: [
            {"run": {"inputs": {}, "outputs": {}}, "evaluation_results": [
                {"key": "x", "score": 1}, {"key": "other", "score": value}
            ]}
        ],
    ),
    (
        "braintrust.jsonl",
        lambda value: [{"input": "?", "output": "1", "expected": "1", "scores": {"x": 1, "other": value}}],
    ),
    (
        "phoenix.json",
        lambda value: [
            {"example_id": "a", "repetition_number": 1, "input": "?", "output": "1", "annotations": [
                {"name": "x", "score": 1}, {"name": "other", "score": value}
            ]}
        ],
    ),
    (
        "opik.json",
        lambda value: {"experiment": {"name": "e"}, "items": [
            {"dataset_item_id": "a", "dataset_item_data": {"input": "?"}, "evaluation_task_output": {},
             "feedback_scores": [{"name": "x", "value": 1}, {"name": "other", "value": value}]}
        ]},
    ),
    (
        "mlflow.jsonl",
        lambda value: [{"info": {"trace_id": "t", "assessments": [
            {"assessment_name": "x", "feedback": {"value": 1}},
            {"assessment_name": "other", "feedback": {"value": value}},
        ]}, "data": {"spans": []}}],
    ),
    ("ragas.jsonl", lambda value: [{"user_input": "?", "response": "1", "x": 1, "other": value}]),
]  # fmt: skip


@each_row("name, make", VALUES)
def test_a_score_of_nan_is_an_error_and_counted(tmp_path: Path, name: str, make: Scored) -> None:
    """An evaluator that ran and gave no number leaves the result without a verdict, and the run says so."""
    imported, run = read(tmp_path, name, make(NAN), name.partition(".")[0])
    (result,) = run.results
    assert (result.scores["other"].status, result.outcome) == ("error", "unscored")
    metadata, report = make_report(imported, run, "run-1", tmp_path / name)
    assert report.counts.unscored == 1
    assert any("NaN" in text or "error" in text for text in metadata.warnings)


@each_row("name, make", [row for row in VALUES if row[0] != "openai-evals.jsonl"])
def test_a_score_without_a_value_stays_and_is_counted(tmp_path: Path, name: str, make: Scored) -> None:
    """Null is an error where the tool writes it for a metric that raised, else a skipped score."""
    tool = name.partition(".")[0]
    imported, run = read(tmp_path, name, make(None), tool)
    expected = "error" if tool in ("deepeval", "ragas") else "skipped"
    assert run.results[0].scores["other"].status == expected
    _, report = make_report(imported, run, "run-1", tmp_path / name)
    counted = report.metrics["other.mean"]
    assert (counted.n, counted.errors + counted.skipped) == (0, 1)


def test_a_deepeval_metric_that_raised_without_a_text_is_an_error(tmp_path: Path) -> None:
    """The case has no verdict, or failed if another metric did; the difference has a reason and stays in the run."""
    failed = metric(0.0, False, "Exact Match", 1.0)
    content = deepeval_file(
        deepeval_case(EXACT, RAISED, success=False),
        deepeval_case(failed, RAISED, success=False, name="b"),
        deepeval_case(EXACT, success=True, name="c"),
        testPassed=1,
        testFailed=2,
    )
    imported, run = read(tmp_path, "run.json", content, "deepeval")
    assert [result.outcome for result in run.results] == ["unscored", "failed", "passed"]
    (stored,) = store_file(imported, tmp_path / "run.json", None)
    (text,) = [text for text in stored.warnings if text.startswith("failed is 2 in deepeval and 1 here: ")]
    assert "1 result without a verdict" in text


LOWER = [
    # Scores and verdicts, and the imported values; threshold 0.5.
    ("less is better", [(0.0, True), (1.0, False)], [1.0, 0.0]),
    ("all passed at 0", [(0.0, True), (0.0, True)], [1.0, 1.0]),
    ("all failed at 1", [(1.0, False)], [0.0]),
    ("more is better", [(1.0, True), (0.0, False)], [1.0, 0.0]),
    ("all at the threshold", [(0.5, True)], [0.5]),
    ("a rule of its own", [(0.9, True), (0.8, False), (0.1, False)], [0.9, 0.8, 0.1]),
    ("numbers without a limit", [(30.0, False), (0.2, True)], [0.0, 1.0]),
    ("more is better, without a limit", [(30.0, True), (0.2, False)], [1.0, 0.0]),
]


@each_row("label, scores, values", LOWER)
def test_a_deepeval_metric_of_which_less_is_better_is_turned(
    tmp_path: Path, label: str, scores: list[tuple[float, bool]], values: list[float]
) -> None:
    """The verdicts show the direction; a turned score is 1 - score, its mean as well, and the verdicts stay."""
    cases = [deepeval_case(metric(*each), name=str(number), success=each[1]) for number, each in enumerate(scores)]
    totals = [{"metric": "Hallucination", "scores": [score for score, _ in scores]}]
    imported, run = read(tmp_path, "run.json", deepeval_file(*cases, metricsScores=totals), "deepeval")
    found = [result.scores["Hallucination"] for result in run.results]
    assert [score.value for score in found] == pytest.approx(values), label
    assert [score.passed for score in found] == [success for _, success in scores]
    is_turned = any("less is better" in text for text in imported.warnings)
    assert is_turned == (label in ("less is better", "all passed at 0", "all failed at 1", "numbers without a limit"))
    (stored,) = store_file(imported, tmp_path / "run.json", None)
    if "limit" not in label:
        assert not any(number.differs for number in stored.numbers)


@each_row("scores", [[0.0, 0.0], [0.0, 1.0]])
def test_a_strict_deepeval_metric_is_turned_in_a_perfect_run_too(tmp_path: Path, scores: list[float]) -> None:
    """Its threshold is 0, so that 0 passes in both directions; the runs stay comparable."""
    cases = [
        deepeval_case({**metric(score, score == 0), "threshold": 0}, name=str(number), success=score == 0)
        for number, score in enumerate(scores)
    ]
    _, run = read(tmp_path, "run.json", deepeval_file(*cases), "deepeval")
    assert [result.scores["Hallucination"].value for result in run.results] == [1 - score for score in scores]


def test_runs_in_which_a_score_decides_or_not_are_not_comparable(tmp_path: Path) -> None:
    """The numbers of a log show whether a score is graded, so another log may have another rule."""
    reports = {}
    for name, values in {"graded": (0.2, 0.4), "decides": (0.0, 1.0)}.items():
        log = inspect_samples(*({"choice": "C", "closeness": value} for value in values))
        imported, run = read(tmp_path, f"{name}.json", log, "inspect")
        _, reports[name] = make_report(imported, run, name, tmp_path / f"{name}.json")
    comparison = compare(reports["graded"], reports["decides"])
    assert {delta.verdict for delta in comparison.all_deltas() if delta.name == "pass_rate"} == {"not comparable"}


def outcomes(results: tuple[EvalResult, ...]) -> list[str]:
    return [result.outcome for result in results]


def test_a_graded_scorer_does_not_decide(tmp_path: Path) -> None:
    """Grades of C and I decide; closeness keeps its values and its mean, and a note names the pass mark."""
    log = inspect_samples(
        {"choice": "C", "closeness": 0.1}, {"choice": "C", "closeness": 1.0}, {"choice": "I", "closeness": 0.9}
    )
    imported, run = read(tmp_path, "log.json", log, "inspect")
    assert outcomes(run.results) == ["passed", "passed", "failed"]
    assert [result.scores["closeness"].value for result in run.results] == [0.1, 1.0, 0.9]
    (note,) = [text for text in imported.warnings if text.startswith("closeness: 3 graded scores without a verdict")]
    assert "choice decides" in note
    assert "--pass-at closeness=" in note
    marked = apply_pass_marks(imported, {"closeness": 0.5})
    assert outcomes(marked.runs[0].results) == ["failed", "passed", "failed"]
    assert marked.runs[0].details["evaluators"]["closeness"] == {"threshold": 0.5}
    assert [text for text in marked.warnings if "closeness" in text] == [
        "closeness: a score passes from 0.5 (--pass-at)"
    ]


GRADED = [
    ("alone", [{"f1": 0.4}, {"f1": 0.6}], ["failed", "passed"]),
    ("with an error", [{"f1": 0.4, "judge": NAN}], ["unscored"]),
    ("with a null", [{"f1": 0.4, "judge": None}, {"f1": 0.9, "judge": "C"}], ["failed", "passed"]),
    ("partly correct is no number", [{"judge": "P"}, {"judge": "C"}], ["failed", "passed"]),
    ("a number as text", [{"f1": "0.4", "judge": "C"}], ["passed"]),
    ("zero and one decide", [{"f1": 0.0, "judge": "C"}, {"f1": 1, "judge": True}], ["failed", "passed"]),
    ("outside 0 to 1", [{"length": 22, "judge": "C"}], ["passed"]),
]


@each_row("label, scores, expected", GRADED)
def test_the_verdict_of_inspect_scores(
    tmp_path: Path, label: str, scores: list[dict[str, Any]], expected: list[str]
) -> None:
    """A number between 0 and 1 follows the other scorers, and passes from 0.5 where no other one has a verdict."""
    _, run = read(tmp_path, "log.json", inspect_samples(*scores), "inspect")
    assert outcomes(run.results) == expected, label


def test_a_graded_metric_of_openai_evals_does_not_decide(tmp_path: Path) -> None:
    """Fuzzy match records accuracy and f1 without a match event: accuracy decides."""
    lines = [{"spec": {"eval_name": "a", "run_config": {}}}] + [
        {"sample_id": f"a.{number}", "type": "metrics", "data": {"accuracy": accuracy, "f1_score": f1}}
        for number, (accuracy, f1) in enumerate([(1.0, 0.4), (0.0, 0.2)])
    ]
    _, run = read(tmp_path, "log.jsonl", lines, "openai-evals")
    assert outcomes(run.results) == ["passed", "failed"]
    invalid = write(tmp_path / "graded.jsonl", openai_log())
    assert outcomes(read_file(invalid).runs[0].results) == ["passed", "unscored"]


def test_a_mean_over_missing_epochs_says_why_it_differs(tmp_path: Path) -> None:
    """Inspect averages each sample first: (1/2 + 1)/2 is not 2/3."""
    log = inspect_samples({"match": "C"}, {"match": "C"})
    log["samples"].append({**log["samples"][0], "epoch": 2, "scores": {"match": {"value": "I"}}})
    log["results"] = {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.75}}}]}
    imported, _ = read(tmp_path, "log.json", log, "inspect")
    (stored,) = store_file(imported, tmp_path / "log.json", None)
    (text,) = [text for text in stored.warnings if text.startswith("match.accuracy is 0.75")]
    assert "inspect takes the mean of each sample first" in text


def test_inspect_samples_are_in_the_order_of_the_dataset(tmp_path: Path) -> None:
    """A log has them in the order in which they ended; ids of digits are numbers."""
    log = inspect_samples(*[{"match": "C"}] * 3)
    log["samples"] = [{**log["samples"][0], "id": name} for name in ("10", "9", "b", "a")]
    assert [sample.id for sample in read(tmp_path, "a.json", log, "inspect")[0].samples] == ["9", "10", "a", "b"]
    log["eval"]["dataset"] = {"sample_ids": ["b", 9, 10, "a"]}
    assert [sample.id for sample in read(tmp_path, "a.json", log, "inspect")[0].samples] == ["b", "9", "10", "a"]


def test_limits_and_cancelled_samples_of_inspect(tmp_path: Path) -> None:
    """A limit is counted and in the details of the scores; a cancelled sample has a short text."""
    log = inspect_samples({"match": "I"}, {"match": "C"}, limit={"type": "time", "limit": 2.0})
    log["samples"].append({
        **log["samples"][0], "id": 3, "limit": None,
        "error": {"message": "CancelledError('Cancelled via cancel scope ffff by <Task …>')", "traceback": "…"},
    })  # fmt: skip
    imported, run = read(tmp_path, "log.json", log, "inspect")
    assert [text for text in imported.warnings if text.startswith("a time limit ended 2 trials")]
    assert run.results[0].scores["match"].details["limit"] == {"type": "time", "limit": 2.0}
    assert run.results[2].error == "CancelledError: the sample was cancelled"


def test_a_note_about_a_score_is_given_once(tmp_path: Path) -> None:
    """The reader says why `length` is no score, so the run does not say that it has no verdict."""
    imported, _ = read(tmp_path, "log.json", inspect_samples({"match": "C", "length": 22}), "inspect")
    (stored,) = store_file(imported, tmp_path / "log.json", None)
    assert len([text for text in stored.warnings if text.startswith("length")]) == 1


def test_deepeval_cases_with_one_name_keep_stable_ids(tmp_path: Path) -> None:
    """Only repeated names get a suffix, which depends on the content, so that a new case renames none."""
    cases = [deepeval_case(EXACT, name=name, input=text) for name, text in [("a", "?"), ("loop", "x"), ("loop", "y")]]
    _, run = read(tmp_path, "run.json", deepeval_file(*cases), "deepeval")
    first, *loop = [result.sample_id for result in run.results]
    assert (first, [name[:5] for name in loop], len(set(loop))) == ("a", ["loop-", "loop-"], 2)
    added = deepeval_case(EXACT, name="loop", input="z")
    _, run = read(tmp_path, "run.json", deepeval_file(cases[0], added, *cases[1:]), "deepeval")
    ids = [result.sample_id for result in run.results]
    assert [ids[0], *ids[2:]] == [first, *loop]
    _, run = read(tmp_path, "run.json", deepeval_file(cases[1], cases[1]), "deepeval")
    assert [result.sample_id for result in run.results] == [loop[0], f"{loop[0]}-2"]


def test_the_latest_test_run_of_deepeval_is_read(tmp_path: Path) -> None:
    """`.deepeval/.latest_test_run.json` has the test run below a key."""
    content = {"testRunData": deepeval_file(deepeval_case(EXACT))}
    (run,) = read_file(write(tmp_path / ".latest_test_run.json", content)).runs
    assert outcomes(run.results) == ["passed"]


def test_a_golden_with_an_output_is_a_recording(tmp_path: Path) -> None:
    """The recorded target returns the output; its session has the tools, if the golden names them."""
    tool = {"name": "search", "inputParameters": {"q": "x"}, "output": "Paris"}
    goldens = [
        {"input": "Capital?", "expected_output": "Paris", "actual_output": "Paris", "tools_called": tools}
        for tools in ([tool], ["search"], [], None)
    ]
    path = write(tmp_path / "goldens.json", goldens)
    report = evaluate(RecordedTarget(), read_file(path).samples, [contains, tool_called("search")], history=False)
    assert [result.output for result in report.results] == ["Paris"] * 4
    assert [result.scores["tool_called"].passed for result in report.results] == [True, True, False, None]


def test_a_conversational_golden_is_a_persona(tmp_path: Path) -> None:
    """A simulated user reads its goal, and the first message if the golden has turns."""
    goldens = [
        {"scenario": "a refund", "expected_outcome": "yes", "user_description": "impatient",
         "turns": [{"role": "user", "content": "Money back!"}]},
        {"scenario": "a question", "expected_outcome": "no", "turns": []},
    ]  # fmt: skip
    samples = read_file(write(tmp_path / "goldens.json", goldens), "deepeval").samples
    assert samples[0].input == {"persona": "impatient", "goal": "a refund", "opening": "Money back!"}
    turns: list[str] = []

    def play_user(prompt: str) -> str:
        turns.append(prompt)
        return '{"message": "thanks", "status": "goal_reached"}'

    target = ConversationTarget(lambda messages: "yes", user=play_user, max_turns=2)
    report = evaluate(target, samples, contains, history=False)
    assert [result.error for result in report.results] == [None, None]
    assert turns
