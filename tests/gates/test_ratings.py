"""An evaluator that rates from 1 to 5: its 1, the worst, is read as a full score, so nothing is decided by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from proctor import EvalReport, Score, evaluate, exact_match
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.gates.gaps import find_worst_gap
from tests.support import samples

WARNING = (
    "the scores of rating are not reliable: it returned 5, so it seems to rate on a scale and a 1 is not a full score. "
    "Fix: convert its ratings to numbers from 0 to 1: (rating - lowest) / (highest - lowest), "
    "with the ends of its scale"
)


def rated(returned: Callable[[int], Any], *others: Any) -> EvalReport:
    """A run whose evaluator returns the ratings 1 (the worst) to 5 in turn."""

    def rating(output: str) -> Any:
        return returned(int(output) % 5 + 1)

    return evaluate(lambda text: text.split()[1], samples(100), [rating, *others], history=False)


@pytest.mark.parametrize(
    "returned",
    [lambda rating: rating, float, lambda rating: {"score": rating}, lambda rating: Score(rating, rating > 2)],
    ids=["int", "float", "mapping", "score"],
)
def test_a_scale_is_named_in_a_warning(returned: Callable[[int], Any]) -> None:
    """However the evaluator returns its ratings; the highest one is in the fix."""
    report = rated(returned)
    assert report.metadata is not None
    assert WARNING in report.metadata.warnings


@pytest.mark.parametrize("returned", [lambda rating: (rating - 1) / 4, lambda rating: 1 + 1e-9, lambda rating: -rating])
def test_numbers_up_to_1_are_no_scale(returned: Callable[[int], Any]) -> None:
    """Neither are rounding errors and negative numbers, which are errors of their own."""
    report = rated(returned)
    assert report.metadata is not None
    assert not any("scale" in warning for warning in report.metadata.warnings)


@pytest.mark.parametrize("metric", ["strict_pass_rate", "pass_rate", "mean_score", "rating"])
def test_a_gate_on_ratings_is_inconclusive(metric: str) -> None:
    """With a baseline and a threshold, and for lost samples; even if the same share is missing in both."""
    new, old = rated(lambda rating: rating), rated(lambda rating: rating)
    config = GateConfig({metric: 0.2}, {"pass_rate": 0.1}, max_flips=10)
    result = decide([(new.side(name="new"), old.side(name="old"))], config, report=new)
    assert [check.verdict for check in result.checks] == ["inconclusive"] * 3
    assert "the scores of rating in this run are not reliable (it returned 5" in result.answer
    assert WARNING in result.warnings


def test_other_evaluators_of_the_run_are_still_checked() -> None:
    """A scale concerns its own evaluator and what combines all of them."""
    sides = [rated(lambda rating: rating, exact_match).side(name=name) for name in ("new", "old")]
    assert decide([(sides[0], sides[1])], GateConfig({"exact_match": 0.2})).verdict == "pass"
    assert decide([(sides[0], sides[1])], GateConfig({"mean_score": 0.2})).verdict == "inconclusive"


def test_a_threshold_of_a_run_is_inconclusive_too() -> None:
    """`proctor run --fail-under` uses the same gap."""
    gap = find_worst_gap(rated(lambda rating: rating), "strict_pass_rate")
    assert (gap.missing, gap.total, gap.evaluator) == (100, 100, "rating")
