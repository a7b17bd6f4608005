"""The examples of the rubric spec: its template, its two results and its summary."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from proctor import EvalReport
from proctor.cli.main import run_cli
from tests.rubrics.batches import summarize_batch
from tests.rubrics.test_results import result, run, spec

TEMPLATE = """You are an expert evaluator assessing AI agent interaction quality.

## Rubric: {rubric_name}

### Description
{rubric_description}

### Scoring Criteria
{scoring_criteria}

## Chat Session to Evaluate
{chat_session}

## Instructions
Evaluate the chat session above based ONLY on the rubric described.

Provide your evaluation in the following format:
SCORE: [1-5]
REASONING: [2-3 sentences explaining your score]
"""
NAMES = {"rubric_001": "Task Completion Efficiency", "rubric_002": "Clear Communication"}
SHAPE = {
    "version": "1.0",
    "session_id": "0fb7d8cd",
    "evaluated_at": "*",
    "rubrics_version": "1.0",
    "rubric_scores": [
        {
            "rubric_id": "rubric_001",
            "rubric_name": "Task Completion Efficiency",
            "score": 4.0,
            "max_score": 5.0,
            "reasoning": "clear and efficient.",
        },
        {
            "rubric_id": "rubric_002",
            "rubric_name": "Clear Communication",
            "score": 5.0,
            "max_score": 5.0,
            "reasoning": "clear and efficient.",
        },
    ],
    "summary": {"total_score": 4.5, "max_score": 5.0, "percentage": 90.0, "rubrics_evaluated": 2},
}


def judge(prompt: str) -> str:
    """A model that takes the spec's form, and the mark it is told of."""
    line = prompt.rpartition("\n")[2].partition("<")[0]
    score = 4 if NAMES["rubric_001"] in prompt else 5
    return f"{line}{score}\nREASONING: clear and efficient."


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = {"description": "How well?", "scoring_criteria": "1: badly … 5: well"}
    rubrics = [{"id": key, "name": name, **texts, "weight": 1.0} for key, name in NAMES.items()]
    Path("rubrics.json").write_text(json.dumps({"version": "1.0", "rubrics": rubrics}))
    Path("judge_template.txt").write_text(TEMPLATE)
    Path("sessions").mkdir()
    for name in ("0fb7d8cd", "session_002"):
        chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        Path("sessions", f"{name}.json").write_text(json.dumps(chat))
    return tmp_path


COMMON = ["--rubrics", "rubrics.json", "--template", "judge_template.txt", "--quiet",
          "--judge", "tests.rubrics.test_spec_004:judge"]  # fmt: skip


def spelt(found: dict[str, Any]) -> str:
    """Byte for byte, but for the moment."""
    found.pop("details")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["evaluated_at"])
    return json.dumps({**found, "evaluated_at": "*"}, indent=2)


def test_the_result_of_a_session(project: Path) -> None:
    """Keys, order, numbers and spelling of the spec's example."""
    session = ["--session", "sessions/0fb7d8cd.json", "--output", "result.json"]
    assert run_cli(["sessions", "evaluate", *session, *COMMON]) == 0
    assert spelt(json.loads(Path("result.json").read_text())) == json.dumps(SHAPE, indent=2)


def test_the_files_of_a_batch(project: Path) -> None:
    """`summary.json` and one result a session, as the spec's tree shows them."""
    batch = ["--sessions-dir", "./sessions/", "--output-dir", "./results/", "--parallel", "5"]
    assert run_cli(["sessions", "evaluate-batch", *batch, *COMMON]) == 0
    assert sorted(path.name for path in Path("results").iterdir()) == [
        "0fb7d8cd_result.json", "session_002_result.json", "summary.json",
    ]  # fmt: skip
    found = json.loads(Path("results/0fb7d8cd_result.json").read_text())
    assert spelt(found) == json.dumps(SHAPE, indent=2)


def test_the_summary_of_fifty_sessions() -> None:
    """The spec's distribution 2, 5, 12, 20, 11 comes out as it went in, in its shape."""
    counts = {1: 2, 2: 5, 3: 12, 4: 20, 5: 11}
    scores = [score for score, count in counts.items() for _ in range(count)]
    results = [result(str(n), score, score) for n, score in enumerate(scores)]
    found = summarize_batch(EvalReport(results, run(spec(1), spec(2))))
    found.pop("details")
    one = {"average": 3.66, "median": 4.0}
    assert json.dumps(found) == json.dumps(
        {
            "batch_summary": {
                "total_sessions": 50,
                "average_score": 3.66,
                "median_score": 4.0,
                "std_deviation": 1.06,
                "score_distribution": {"1": 2, "2": 5, "3": 12, "4": 20, "5": 11},
            },
            "per_rubric_summary": {
                "rubric_001": {"name": "Rubric 1", **one},
                "rubric_002": {"name": "Rubric 2", **one},
            },
        }
    )
