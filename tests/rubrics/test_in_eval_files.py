"""The same rubrics in a batch, an eval file and a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.errors import EvaluatorError
from proctor.wiring.open_history import load_report, open_history
from proctor.wiring.registry import Registry
from tests.cli.project import Project
from tests.rubrics.batches import BATCH

WHOLE = """\
dataset: logs/
evaluators:
  - rubric: {adapter: "judge:four", rubrics: starter}
"""


def test_a_set_in_an_eval_file_equals_the_same_set_in_a_batch(batch: Project) -> None:
    """Evaluators, scores and total are equal, so the runs can be compared."""
    Path("eval.yaml").write_text(WHOLE)
    assert batch.proctor(*BATCH, "--output-dir", "out", "--name", "batch").code == 0
    assert batch.proctor("run", "eval.yaml", "--name", "file").code == 0
    history = open_history(None)
    one, other = history.find("batch"), history.find("file")
    assert one.evaluators == other.evaluators
    totals = [load_report(history, run.run_id).metrics["total_score"].value for run in (one, other)]
    assert totals == [4, 4]
    result = batch.proctor("gate", "file", "--baseline", "batch", "--metric", "total_score")
    assert "total_score 4.000 vs. 4.000" in result.out
    assert "3 samples" in result.out


def test_one_rubric_of_a_set_is_selected_by_its_id(batch: Project) -> None:
    """It may have another threshold."""
    registry = Registry.standard()
    one = {"rubric": {"adapter": "judge:four", "rubric": "safety", "threshold": 0.5}}
    assert [built.spec.name for built in registry.build_all([one])] == ["safety"]


def test_a_missing_set_is_reported_with_its_location(batch: Project) -> None:
    """As every other fault of an entry."""
    missing = {"rubric": {"adapter": "judge:four", "rubrics": "nowhere.yaml"}}
    with pytest.raises(EvaluatorError) as output:
        Registry.standard().build_all(["exact_match", missing])
    assert "evaluators[1]" in str(output.value)
    assert "nowhere.yaml" in str(output.value)


def test_a_rescored_batch_has_its_own_total_and_name(batch: Project) -> None:
    """It uses rubrics of another version; the first batch is still found."""
    Path("eval.yaml").write_text(WHOLE.replace("starter}", "starter, rubric: safety}"))
    assert batch.proctor(*BATCH, "--output-dir", "out", "--name", "batch").code == 0
    assert batch.proctor("rescore", "batch", "--file", "eval.yaml", "--name", "again").code == 0
    history = open_history(None)
    before, after = history.find("batch"), history.find("again")
    assert after.rescored_from == before.run_id
    assert ("rubrics_version" in before.tags, "rubrics_version" in after.tags) == (True, False)
    assert load_report(history, after.run_id).metrics["total_score"].value == 4
    assert "total_score" in batch.proctor("compare", "again", "batch").out


def test_the_version_of_a_set_is_stored_and_another_is_a_change(batch: Project) -> None:
    """As in a batch: otherwise old results would appear under the new version."""
    rubrics = batch.proctor("sessions", "rubrics", "--json").json
    Path("eval.yaml").write_text(WHOLE.replace("starter", "mine.json"))
    Path("mine.json").write_text(json.dumps({**rubrics, "version": "1.0"}))
    batch.proctor("run", "eval.yaml", "--budget", "calls=8", "--concurrency", "1")
    assert open_history(None).find("latest").tags == {"rubrics_version": "1.0"}
    Path("mine.json").write_text(json.dumps({**rubrics, "version": "2.0"}))
    result = batch.proctor("run", "eval.yaml", "--resume")
    assert result.code == 2
    assert "rubrics_version: was 1.0, is 2.0" in result.err
    first, *others = rubrics["rubrics"]
    changed = [{**first, "weight": 3.0, "description": first["description"] + "!"}, *others]
    Path("mine.json").write_text(json.dumps({**rubrics, "version": "1.0", "rubrics": changed}))
    result = batch.proctor("run", "eval.yaml", "--resume")
    assert "changed: task_completion (rubric.description has changed; " in result.err
    assert f"rubric.weight was {first['weight']}, is 3.0)" in result.err


def test_a_changed_judge_function_is_named(batch: Project) -> None:
    """The run knows the name and the code of a function, so the message says that the code differs."""
    Path("eval.yaml").write_text(WHOLE)
    assert batch.proctor("run", "eval.yaml", "--name", "old").code == 0
    Path("other.py").write_text(Path("judge.py").read_text().replace("score: int = 4", "score=5"))
    Path("eval.yaml").write_text(WHOLE.replace("judge:four", "other:four"))
    assert batch.proctor("run", "eval.yaml", "--name", "new").code == 0
    result = " ".join(batch.proctor("compare", "new", "old").out.split())
    assert "not the same in both runs: the code of python:four, or code and constants that it uses" in result


def test_a_set_of_rubrics_cannot_have_one_name(batch: Project) -> None:
    named = {"uses": "rubric", "name": "quality", "adapter": "judge:four", "rubrics": "starter"}
    with pytest.raises(EvaluatorError, match="'quality' cannot be the name of 6 evaluators") as output:
        Registry.standard().build_all([named])
    assert "delete `name`: each evaluator has a name of its own" in str(output.value)
    one = {**named, "rubric": "safety"}
    assert [built.spec.name for built in Registry.standard().build_all([one])] == ["quality"]
