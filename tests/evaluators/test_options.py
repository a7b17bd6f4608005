"""Options are described, checked all at once, and stored as data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pytest
from inline_snapshot import snapshot

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.matching import contains
from proctor.evaluators.options import (
    Model,
    call_factory,
    format_type,
    get_address,
    read_factory_options,
    read_option,
    resolve_hints,
    to_data,
)
from tests.tables import each_row

if TYPE_CHECKING:
    from decimal import Decimal


class Length:
    """A class that is an evaluator once it is made."""

    def __init__(self, limit: int, unit: Literal["word", "letter"] = "word") -> None:
        self.limit, self.unit = limit, unit

    def __call__(self, output: str, *, loud: bool = False) -> bool:
        """Passes if the output is short enough."""
        return len(output) <= self.limit


def unresolved(amount: Decimal, limit: int) -> None: ...
def spread(first: int, /, second: int = 2, *parts: int, third: int = 3, **more: int) -> Any:
    """Returns its arguments."""
    return first, second, parts, third, more


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(EvaluatorError) as caught:
        call_factory(Length, {"limits": 3, "unit": "line"}, "length")
    assert str(caught.value) == snapshot("""\
length: its parameters are invalid
  - unknown parameter 'limits'; did you mean 'limit'?
  - limit is missing (int)
  - unit must be 'word' or 'letter', got 'line'
Fix: its parameters are limit: int, unit: 'word' | 'letter' = 'word'\
""")


@pytest.mark.parametrize("given", [{"limit": True}, {"limit": "3"}, {"limit": 1.5}, {"limit": None}, {"limit": [3]}])
def test_values_must_fit_their_types(given: dict[str, Any]) -> None:
    """A boolean is not a number, and neither is a text."""
    with pytest.raises(EvaluatorError, match="limit must be of type int, got"):
        call_factory(Length, given, "length")


def test_integers_are_accepted_as_floats() -> None:
    """As JSON and people write them."""
    assert call_factory(float_, {"share": 1}, "it") == 1.0


def float_(share: float) -> float:
    """Returns its arguments."""
    assert isinstance(share, float)
    return share


def test_types_that_cannot_be_resolved_are_not_checked() -> None:
    """Names known to type checkers only are left to the evaluator."""
    assert resolve_hints(unresolved) == {}
    assert [p.type for p in read_factory_options(unresolved, "it").describe()] == ["Decimal", "int"]


def test_types_that_only_python_can_check_are_not_checked() -> None:
    """A union of foreign classes is left to the evaluator."""

    def judge(output: str, *, by: Length | str = "x") -> bool:
        return True

    assert attach(judge, parameters={"by": 3}).spec.parameters == {"by": 3}


def test_arguments_find_their_places() -> None:
    """Positional-only, spread and open-ended parameters are all given by name."""
    given = {"first": 1, "parts": [4, 5], "third": 6, "fourth": 7}
    assert call_factory(spread, given, "it") == (1, 2, (4, 5), 6, {"fourth": 7})
    with pytest.raises(EvaluatorError, match="parts must be of type list"):
        call_factory(spread, {"first": 1, "parts": 4}, "it")


def test_a_failing_factory_is_named() -> None:
    def broken(limit: int) -> None:
        raise ValueError("limit must be even")

    with pytest.raises(EvaluatorError, match="creating it failed with ValueError: limit must be even"):
        call_factory(broken, {"limit": 3}, "it")


@each_row(
    ("hint", "text"),
    [
        (int, "int"),
        (str | None, "str | None"),
        (list[str], "list[str]"),
        (tuple[str, ...], "tuple[str]"),
        (Mapping[str, float], "dict[str, float]"),
        (Mapping, "dict"),
        (Literal["a", 1], "'a' | 1"),
        (Any, "any"),
        ("Decimal", "Decimal"),
        (Length, "Length"),
        (None, "None"),
        (Model, "model"),
        (Annotated[int, "years"], "int"),
        (Annotated[list[str], msgspec.Meta(min_length=1)], "list[str]"),
    ],
)
def test_types_are_described_in_plain_words(hint: Any, text: str) -> None:
    assert format_type(hint) == text


def test_hints_are_found_inside_partials_objects_and_classes() -> None:
    assert resolve_hints(functools.partial(float_))["share"] is float
    assert resolve_hints(Length)["limit"] is int
    assert resolve_hints(Length(3))["loud"] is bool


def test_data_is_the_same_in_the_next_process() -> None:
    """No address in memory, no order by chance; evaluators become their specs."""
    value: dict[Any, Any] = {
        "function": float_,
        "class": Length,
        "object": Length(3),
        "set": {"b", "a"},
        1: (1, 2),
        "part": attach(contains, name="has"),
    }
    written = to_data(value)
    assert written.pop("part")["uses"] == "contains"
    assert written == {
        "function": "tests.evaluators.test_options:float_",
        "class": "tests.evaluators.test_options:Length",
        "object": {"$type": "Length"},
        "set": ["a", "b"],
        "1": [1, 2],
    }


def test_an_object_has_the_address_of_its_class() -> None:
    assert get_address(Length(3)) == "tests.evaluators.test_options:Length"


def test_arbitrary_options_are_accepted() -> None:
    """An evaluator with `**options` takes any."""

    def judge(output: str, **options: Any) -> bool:
        return options == {"a": 1}

    judge_typed: Callable[..., bool] = judge
    assert attach(judge_typed, parameters={"a": 1})("x").passed


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("threshold", "80%", 0.8), ("near", "12.5 %", 0.125), ("threshold", 0.8, 0.8), ("pattern", "80%", "80%")],
)
def test_a_share_may_be_written_as_a_percentage(name: str, value: Any, expected: Any) -> None:
    """Only options that are a share from 0 to 1 in every evaluator."""
    assert read_option(name, value) == expected
