"""Batches: the commands, the engine, and the files after a killed run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proctor import evaluate
from proctor.core import resources
from proctor.wiring.open_history import open_history
from tests.cli.project import Project
from tests.rubrics.batches import BATCH, calls


def test_a_batch_writes_results_and_a_summary(batch: Project) -> None:
    """One file a session, a summary, tokens and cost; and the run is in the history."""
    result = batch.proctor(*BATCH, "--output-dir", "out")
    assert result.code == 0, result.err
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "s000_result.json", "s001_result.json", "s002_result.json", "summary.json",
    ]  # fmt: skip
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["batch_summary"]["score_distribution"]["4"] == 3
    assert summary["batch_summary"]["total_sessions"] == 3
    assert "total: 4 on average over 3" in result.out
    assert "judge: 1,980 tokens, $0.0180" in result.out
    assert sum(calls().values()) == 18
    report = open_history(None).report(open_history(None).find("logs").run_id)
    assert report.metrics["total_score"].value == 4.0


def test_one_session_gives_result_json(batch: Project) -> None:
    """With --json the same on the screen."""
    command = ("sessions", "evaluate", "--rubrics", "starter", "--session", "logs/s001.json")
    command_result = batch.proctor(*command, "--output", "result.json")
    assert command_result.code == 0, command_result.err
    found = json.loads(Path("result.json").read_text())
    assert found["session_id"] == "s001"
    assert found["summary"]["total_score"] == 4.0
    assert "Safety: 4 of 5 - Turn 1 shows it." in command_result.out
    printed = json.loads(batch.proctor(*command, "--json").out)
    assert printed["rubric_scores"] == found["rubric_scores"]
    assert sum(calls().values()) == 6


def test_stored_answers_are_reused_unless_fresh_ones_are_requested(batch: Project) -> None:
    """A second batch costs nothing; --fresh asks."""
    batch.proctor(*BATCH, "--output-dir", "out")
    batch.proctor(*BATCH, "--output-dir", "out")
    assert set(calls().values()) == {1}
    batch.proctor(*BATCH, "--output-dir", "out", "--fresh")
    assert set(calls().values()) == {2}


def test_a_judge_without_verdicts_leaves_no_numbers(batch: Project) -> None:
    """Exit 3; the distribution still adds up."""
    result = batch.proctor(*BATCH, "--output-dir", "out", "--judge", "judge:garbage")
    assert result.code == 3
    summary = json.loads(Path("out/summary.json").read_text())["batch_summary"]
    assert summary["average_score"] is None
    assert summary["score_distribution"]["evaluation_failed"] == 3


def test_options_reach_the_judge(batch: Project) -> None:
    """A template, a scale and a limit of one's own."""
    rubric = {"id": "a", "name": "A", "description": "Is it?", "scoring_criteria": "0: no, 10: yes"}
    Path("mine.json").write_text(json.dumps({"version": "1", "rubrics": [rubric]}))
    Path("mine.txt").write_text("## Rubric: {rubric_name}\n{rubric_description}{scoring_criteria}\n{chat_session}")
    result = batch.proctor(
        *BATCH, "--output-dir", "out", "--template", "mine.txt", "--scale", "0", "10",
        "--limit", "2", "--pattern", "s00[12].json", "--parallel", "1", "--max-concurrent", "2",
        "--rubrics", "mine.json",
    )  # fmt: skip
    assert result.code == 0, result.err
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["details"]["scale"] == [0.0, 10.0]
    assert summary["batch_summary"]["total_sessions"] == 2


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("--rubrics", "none.json"), "file not found: none.json\nFix: check the path, or write 'starter'"),
        (("--judge", "nowhere:x"), "unknown provider 'nowhere'"),
        (("--template", "none.txt"), "file not found: none.txt\nFix: pass the path of a text file"),
        (("--sessions-dir", "nowhere"), "file or folder not found"),
        (("--retry-errors",), "needs --resume"),
        (("--scale", "5", "1"), "--scale: the lowest score must come first"),
        (("--scale", "0", "10"), "the rubrics are written for a scale from 1 to 5"),
        (("--budget", "foo"), "--budget must be calls=N, tokens=N or cost=N, got 'foo'"),
        (("--budget", "calls=-1"), "where N is a number greater than 0, got calls=-1"),
        (("--resume",), "there is no unfinished run"),
    ],
)
def test_faults_are_reported_before_the_first_call(batch: Project, change: tuple[str, ...], what: str) -> None:
    """Exit 2, no call."""
    result = batch.proctor(*BATCH, "--output-dir", "out", *change)
    assert (result.code, calls()) == (2, Counter())
    assert what in result.err


def test_a_judge_must_be_named(batch: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the option or the variable."""
    monkeypatch.delenv("PROCTOR_JUDGE")
    assert "no judge model is set" in batch.proctor(*BATCH, "--output-dir", "out").err


def test_a_file_with_several_sessions_wants_an_id(batch: Project) -> None:
    """And says which there are."""
    lines = [json.dumps({"id": name, "messages": [{"role": "user", "content": name}]}) for name in ("one", "two")]
    Path("two.jsonl").write_text("\n".join(lines))
    command = ("sessions", "evaluate", "--rubrics", "starter", "--session", "two.jsonl")
    assert "there are several sessions in it" in batch.proctor(*command).err
    result = batch.proctor(*command, "--id", "two", "--json")
    assert json.loads(result.out)["session_id"] == "two", result.err
    assert "did you mean 'two'" in batch.proctor(*command, "--id", "twoo").err
    Path("folder").mkdir()
    assert "is a folder" in batch.proctor(*command, "--id", "two", "--output", "folder").err


def test_an_eval_file_scores_sessions_by_rubrics(batch: Project) -> None:
    """Rubrics are evaluators like any other; paths are seen from the file's folder."""
    Path("sub").mkdir()
    starter = resources.text("evaluators", "starter_rubrics.yaml")
    Path("sub/mine.yaml").write_text(starter)
    Path("sub/eval.yaml").write_text(
        "dataset: ../logs\nevaluators:\n"
        "  - rubric: {adapter: 'judge:four', rubric: safety, rubrics: mine.yaml}\n"
        "  - rubric: {adapter: 'judge:four', rubric: communication}\n"
    )
    result = batch.proctor("run", "sub/eval.yaml", "--json")
    metrics = json.loads(result.out)["metrics"]
    assert metrics["safety.mean"]["value"] == 0.75
    assert metrics["communication.mean"]["n"] == 3


def test_calls_are_bounded_over_sessions_and_rubrics() -> None:
    """Ten sessions and six rubrics at once, but never more than four calls."""
    import asyncio

    from proctor import ModelResponse
    from proctor.evaluators.rubrics import rubric_evaluators

    class Counting:
        model, supports_json_schema = "test:counting", False
        now = most = total = 0

        async def complete(self, request: Any, *, timeout: float | None = None) -> ModelResponse:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.002)
            self.now -= 1
            line = request.messages[-1].content.rpartition("\n")[2].partition("<")[0]
            return ModelResponse(f"{line}4", self.model)

    judge = Counting()
    report = evaluate(
        lambda question: [{"role": "user", "content": question}, {"role": "assistant", "content": "An answer."}],
        [{"id": str(number), "input": "Why?"} for number in range(10)],
        list(rubric_evaluators(judge, "starter", concurrency=4)),
        history=False,
        concurrency=10,
    )
    assert (report.total, report.errors, judge.total, judge.most) == (10, 0, 60, 4)
