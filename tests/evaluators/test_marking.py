"""A mark gives a function its name and category without changing it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import pytest
from inline_snapshot import snapshot

from proctor.errors import EvaluatorError
from proctor.evaluators.combination import all_of, negate
from proctor.evaluators.decorator import (
    EvaluatorInfo,
    describe_evaluator,
    evaluator,
    get_callable,
    get_info,
    get_mark,
    get_name,
    is_factory,
    needs_session,
    tag_evaluator,
)
from proctor.evaluators.matching import exact_match, within_tolerance
from proctor.evaluators.options import ParameterInfo
from tests.tables import each_row


def plain(output: str, expected: str) -> bool:
    """Says yes.

    And more that the catalogue leaves out.
    """
    return True


class Named:
    """An object with a name."""

    name = "its_name"

    def evaluate(self, output: Any) -> bool:
        """Says yes."""
        return True


class Nameless:
    """An object without one."""

    def __init__(self, limit: int = 3) -> None:
        self.limit = limit

    def __call__(self, output: Any) -> bool:
        """Says yes."""
        return True

    @property
    def name(self) -> str:
        """Known of an object only."""
        return f"within_{self.limit}"


def test_the_marked_function_is_the_same_function() -> None:
    """Marking wraps nothing."""
    assert evaluator(plain) is plain
    del plain.__evaluator__  # type: ignore[attr-defined]
    assert exact_match("a", "a").passed


def test_the_mark_describes_the_function() -> None:
    """Name, category, first line, options and needs are read from the function."""

    @evaluator(name="long_enough", category="length", pure=True, threshold=0.7)
    def judge(output: str, expected: str, session: Any, *, unit: Literal["word", "letter"] = "word", n: int) -> float:
        """Passes if it is long enough."""
        return 1.0

    assert get_info(judge) == snapshot(
        EvaluatorInfo(
            name="long_enough",
            category="length",
            summary="Passes if it is long enough.",
            parameters=(
                ParameterInfo(name="unit", type="'word' | 'letter'", default="word", required=False),
                ParameterInfo(name="n", type="int", default=None, required=True),
            ),
            needs=("expected", "session"),
            pure=True,
            factory=False,
            parts="",
            threshold=0.7,
        )
    )


def test_a_factory_is_described_by_all_its_parameters() -> None:
    """The mark says what its product needs."""
    assert get_info(within_tolerance) == snapshot(
        EvaluatorInfo(
            name="within_tolerance",
            category="matching",
            summary="Passes if a number differs from the expected number by at most the tolerance.",
            parameters=(
                ParameterInfo(name="tolerance", type="float", default=None, required=True),
                ParameterInfo(name="relative", type="bool", default=False, required=False),
            ),
            needs=("expected",),
            pure=True,
            factory=True,
            parts="",
            threshold=0.5,
        )
    )
    assert is_factory(within_tolerance)
    assert not is_factory(within_tolerance(0.1))


def test_parameters_that_hold_evaluators_say_so() -> None:
    """The catalogue shows where other evaluators go."""
    assert [p.type for p in describe_evaluator(all_of).parameters] == ["list[evaluator]", "'skip' | 'ignore'"]
    assert [p.type for p in describe_evaluator(negate).parameters] == ["evaluator"]


def test_unmarked_evaluators_can_be_described_too() -> None:
    """Functions, objects and classes; classes are factories."""
    assert describe_evaluator(plain) == EvaluatorInfo("plain", summary="Says yes.", needs=("expected",))
    assert describe_evaluator(Named()).name == "its_name"
    assert describe_evaluator(Nameless).factory is True
    assert [p.name for p in describe_evaluator(Nameless).parameters] == ["limit"]
    assert describe_evaluator(functools.partial(plain, expected="x")).summary == "Says yes."


def test_an_object_of_a_marked_class_is_an_evaluator_not_a_factory() -> None:
    """The mark on the class gives its objects a name and category."""

    @evaluator(category="style", factory=True)
    class Style:
        def evaluate(self, output: str) -> bool:
            return True

    assert is_factory(Style)
    assert not is_factory(Style())
    assert describe_evaluator(Style()).factory is False


def test_the_session_mark_works_in_either_order() -> None:
    """The catalogue shows the session as needed whichever mark comes first."""

    @needs_session
    @evaluator
    def outside(*evidence: Any) -> bool:
        return True

    @evaluator
    @needs_session
    def inside(*evidence: Any) -> bool:
        return True

    assert [describe_evaluator(one).needs for one in (outside, inside)] == [("session",), ("session",)]


def test_an_evaluator_knows_its_factory_and_options() -> None:
    """So that it can be stored as a name with parameters."""
    marking = get_mark(within_tolerance(0.1))
    assert marking is not None
    assert marking.info.name == "within_tolerance"
    assert marking.options == {"tolerance": 0.1, "relative": False}


def test_unmarked_factories_can_tell_it_too() -> None:
    """`made` works with any factory."""

    def at_most(limit: int) -> Callable[[str], bool]:
        def evaluate(output: str) -> bool:
            return len(output) <= limit

        return tag_evaluator(evaluate, factory=at_most, limit=limit)

    info = get_info(at_most(3))
    assert info is not None
    assert info.name == "at_most"


def factory_of_the_spec(limit: int) -> Any:
    """A factory as the loop spec writes them."""

    def evaluate(output: str, expected: str) -> bool:
        return len(output) <= limit

    return evaluate


@each_row(
    ("thing", "name"),
    [
        (plain, "plain"),
        (exact_match, "exact_match"),
        (functools.partial(functools.partial(exact_match)), "exact_match"),
        (lambda output: True, "lambda"),
        (Named(), "its_name"),
        (Named().evaluate, "its_name"),
        (Named, "its_name"),
        (Nameless, "Nameless"),
        (Nameless(5), "within_5"),
        (Nameless(5).__call__, "within_5"),
        (object(), "object"),
        (factory_of_the_spec(3), "factory_of_the_spec"),
        (all_of(exact_match), "all_of"),
    ],
)
def test_every_evaluator_has_its_familiar_name(thing: Any, name: str) -> None:
    """Marks and names come first; a factory's inner `evaluate` goes by the factory."""
    assert get_name(thing) == name


def test_objects_that_cannot_be_called_are_refused() -> None:
    """A name is not an evaluator, nor is a number."""
    with pytest.raises(EvaluatorError, match="'exact_match' is the name of an evaluator"):
        get_callable("exact_match", "it")
    with pytest.raises(EvaluatorError, match="3 is not callable and has no `evaluate`"):
        get_callable(3, "it")
