"""A set of evaluators is attached as a whole: in order, under names of their own."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor.errors import EvaluatorError
from proctor.evaluators.attach import attach_all
from proctor.evaluators.matching import contains, exact_match


class Judge:
    """An object with `evaluate`."""

    name = "judge"

    def evaluate(self, output: Any) -> bool:
        """Says yes."""
        return True


def same_as(output: Any, expected: Any, *, fold: bool) -> bool:
    """An evaluator with an option that must be given."""
    return True


def test_a_set_of_evaluators_keeps_its_order_and_names() -> None:
    """A list, one thing alone, a generator, or a mapping that names them."""
    names = [one.spec.name for one in attach_all([exact_match, contains])]
    assert names == ["exact_match", "contains"]
    assert [one.spec.name for one in attach_all(exact_match)] == ["exact_match"]
    assert [one.spec.name for one in attach_all(Judge())] == ["judge"]
    assert [one.spec.name for one in attach_all(one for one in [contains])] == ["contains"]
    assert [one.spec.name for one in attach_all({"a": contains, "b": contains})] == ["a", "b"]


def test_all_faults_of_a_set_are_told_at_once() -> None:
    """Clashing names among them, with how to rename."""
    with pytest.raises(EvaluatorError) as caught:
        attach_all([contains, contains, same_as, "exact_match"])
    assert [str(problem) for problem in caught.value.problems] == snapshot(
        [
            "evaluator 3 (same_as), fold: it is required: bool",
            (
                "evaluator 4: 'exact_match' is the name of an evaluator, not an evaluator "
                "(give the function itself, or Registry.standard().build('exact_match'))"
            ),
            (
                "contains: 2 evaluators have this name; give each its own: "
                "attach(…, name=…), {name: evaluator}, or `name:` in an eval file"
            ),
        ]
    )


@pytest.mark.parametrize("nothing", [[], {}, ()])
def test_an_empty_set_is_refused(nothing: Any) -> None:
    """A run without evaluators would say nothing."""
    with pytest.raises(EvaluatorError, match="no evaluator was given"):
        attach_all(nothing)
