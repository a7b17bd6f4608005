"""The same rubrics through every door: a batch, an eval file, a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import EvaluatorError
from proctor.lookback import look_up, open_history
from proctor.registry import Registry
from tests.cli.project import Project
from tests.rubrics.batches import BATCH

WHOLE = """\
dataset: logs/
evaluators:
  - rubric: {adapter: "judge:four", rubrics: starter}
"""


def test_a_set_is_named_in_one_line_and_is_the_same_as_in_a_batch(batch: Project) -> None:
    """Evaluators, scores and the total: so either can be held against the other."""
    Path("eval.yaml").write_text(WHOLE)
    assert batch.proctor(*BATCH, "--output-dir", "out", "--name", "batch").code == 0
    assert batch.proctor("run", "eval.yaml", "--name", "file").code == 0
    history = open_history(None)
    one, other = history.find("batch"), history.find("file")
    assert one.evaluators == other.evaluators
    totals = [look_up(history, run.run_id).metrics["total_score"].value for run in (one, other)]
    assert totals == [4, 4]
    told = batch.proctor("gate", "file", "--baseline", "batch", "--metric", "total_score")
    assert "total_score 4.000 against 4.000" in told.out
    assert "3 samples" in told.out


def test_one_rubric_of_a_set_is_that_one(batch: Project) -> None:
    """By its id, with a threshold of its own."""
    registry = Registry.standard()
    one = {"rubric": {"adapter": "judge:four", "rubric": "safety", "threshold": 0.5}}
    assert [built.spec.name for built in registry.build_all([one])] == ["safety"]


def test_a_set_that_is_not_there_is_told_with_its_place(batch: Project) -> None:
    """As every other fault of an entry."""
    missing = {"rubric": {"adapter": "judge:four", "rubrics": "nowhere.yaml"}}
    with pytest.raises(EvaluatorError) as told:
        Registry.standard().build_all(["exact_match", missing])
    assert "evaluators[1]" in str(told.value)
    assert "nowhere.yaml" in str(told.value)


def test_a_batch_scored_again_has_a_total_and_a_name_of_its_own(batch: Project) -> None:
    """By other rubrics, whose version is not that of the first; the batch is still found."""
    Path("eval.yaml").write_text(WHOLE.replace("starter}", "starter, rubric: safety}"))
    assert batch.proctor(*BATCH, "--output-dir", "out", "--name", "batch").code == 0
    assert batch.proctor("rescore", "batch", "--file", "eval.yaml", "--name", "again").code == 0
    history = open_history(None)
    before, after = history.find("batch"), history.find("again")
    assert after.rescored_from == before.run_id
    assert ("rubrics_version" in before.tags, "rubrics_version" in after.tags) == (True, False)
    assert look_up(history, after.run_id).metrics["total_score"].value == 4
    assert "total_score" in batch.proctor("compare", "again", "batch").out
