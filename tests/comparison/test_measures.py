"""Runs that other evaluators judged: what all of them say together does not compare."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from proctor.comparison.compare import compare, find_evaluator_changes
from proctor.comparison.sides import Side
from proctor.records.run import EvaluatorSpec, RunMetadata
from tests.comparison.made_up import numbers

RIGHT = EvaluatorSpec("right", "app.py:right", identity="1")
GRADED = EvaluatorSpec("graded", "app.py:graded", identity="2")
EASY = EvaluatorSpec("easy", "app.py:easy", identity="3")
HERE = {"python": "3.12.1", "proctor": "1.0"}


def run(name: str, *evaluators: EvaluatorSpec, **known: Any) -> RunMetadata:
    started = datetime(2026, 1, 1, tzinfo=UTC)
    return RunMetadata(name, "exam", started, "completed", evaluators=evaluators, environment=HERE, **known)


def side(name: str, value: float, of: RunMetadata) -> Side:
    """Forty samples that all came to the same."""
    values = numbers(*[value] * 40)
    metrics = {"pass_rate": values, "strict_pass_rate": values, "mean_score": values}
    scores = {spec.name: values for spec in of.evaluators}
    return Side(name, metrics, scores, samples=tuple(values), run=of)


def test_evaluators_that_are_swapped_leave_the_pass_rate_without_a_verdict() -> None:
    """Whoever drops the evaluator that fails is not better: it is said first, and no p is given."""
    new, old = run("1", EASY, GRADED), run("2", RIGHT, GRADED)
    result = compare(side("new", 1.0, new), side("old", 0.0, old))
    assert result.answer == (
        "new and old were not scored by the same evaluators, so pass_rate cannot be compared: "
        "only new has the evaluator easy; only old has the evaluator right. Better: graded."
    )
    rate, graded = result.metrics["pass_rate"], result.scores["graded"]
    assert (rate.verdict, rate.p_adjusted, rate.absolute) == ("not comparable", None, 1.0)
    assert graded.verdict == "better"


def test_changes_can_be_accepted() -> None:
    """Then it is only mentioned."""
    new, old = run("1", GRADED), run("2", RIGHT, GRADED)
    result = compare(side("new", 1.0, new), side("old", 0.0, old), accept_changes=True)
    assert result.answer.startswith("new is better than old: pass_rate 100.0% vs. 0.0%")
    assert (result.evaluator_differences, result.notes) == ((), ("only old has the evaluator right",))


def test_a_score_does_not_compare_where_its_own_evaluator_was_changed() -> None:
    """Other parameters, or other code: the name is the same, the measure is not."""
    strict = msgspec.structs.replace(GRADED, parameters={"least": 3})
    result = compare(side("new", 1.0, run("1", RIGHT, strict)), side("old", 0.0, run("2", RIGHT, GRADED)))
    assert result.scores["graded"].verdict == "not comparable"
    assert result.scores["right"].verdict == "better"
    other_code = msgspec.structs.replace(GRADED, identity="9")
    assert find_evaluator_changes(run("1", other_code), run("2", GRADED)).changed == ("graded",)


def test_bytecode_of_another_python_is_a_doubt_and_no_change() -> None:
    """A baseline of a laptop is compared with a run in CI; a note says what is unknown."""
    forward = msgspec.structs.replace(
        run("2", msgspec.structs.replace(GRADED, identity="9")), environment={**HERE, "python": "3.11.9"}
    )
    result = compare(side("new", 1.0, run("1", GRADED)), side("old", 0.0, forward))
    assert result.answer.startswith("new is better than old")
    [note] = result.notes
    assert note.startswith("the runs used different versions of Python or Proctor")
    assert note.endswith("whether the code of graded is the same")
    # Only the first two parts of a Python's version have a bytecode of their own.
    patched = msgspec.structs.replace(forward, environment={**HERE, "python": "3.12.9"})
    assert find_evaluator_changes(run("1", GRADED), patched).changed == ("graded",)


def rubric(name: str, adapter: str = "python:judge", **more: Any) -> EvaluatorSpec:
    """A rubric as runs keep it; its options are part of its identity."""
    result = {"id": name, "name": name, "description": "Was it solved?", "weight": 2.0}
    result |= {"scoring_criteria": "5: yes", **more}
    parameters = {"adapter": adapter, "rubric": result}
    return EvaluatorSpec(name, "rubric", parameters, identity=str(parameters))


def test_differences_between_runs_are_mentioned() -> None:
    """Which option, and how; of long texts only that they are others; those alike together."""
    new = run("1", rubric("a", "python:other"), rubric("b", "python:other"))
    old = run("2", rubric("a"), rubric("b"))
    [result] = find_evaluator_changes(new, old).describe("new", "old")
    assert result == (
        "the evaluators a, b are not the same in both runs: adapter is python:other in new and python:judge in old"
    )
    long = run("1", rubric("a", description="Was it solved, in the end, to their satisfaction?"))
    [result] = find_evaluator_changes(long, run("2", rubric("a"))).describe("new", "old")
    assert result.endswith("in both runs: rubric.description differs")
    more = run("1", rubric("a", scale=[0, 10]))
    [result] = find_evaluator_changes(more, run("2", rubric("a"))).describe("new", "old")
    assert result.endswith("rubric.scale is [0,10] in new and the default in old")
    [result] = find_evaluator_changes(run("1", msgspec.structs.replace(RIGHT, identity="9")), run("2", RIGHT)).describe(
        "new", "old"
    )
    assert result == "the evaluator right is not the same in both runs: its code, or code and constants that it uses"


def test_another_weight_changes_the_total_and_not_the_rubric() -> None:
    """What the rubric itself says, and what passed, is the same measure."""
    new, old = run("1", rubric("a", weight=3.0), rubric("b")), run("2", rubric("a"), rubric("b"))
    sides = [
        msgspec.structs.replace(item, metrics={**item.metrics, "total_score": item.scores["a"]})
        for item in (side("new", 1.0, new), side("old", 0.0, old))
    ]
    result = compare(*sides)
    assert result.scores["a"].verdict == result.metrics["pass_rate"].verdict == "better"
    assert result.metrics["total_score"].verdict == "not comparable"
    assert (result.evaluator_differences, result.notes) == ((), ("the weight of a is 3.0 in new and 2.0 in old",))
