"""Plain values into declared types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Optional, TypedDict

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from proctor.datasets.problems import InvalidRecord
from proctor.datasets.type_readers import field_type, make_reader
from proctor.errors import DatasetError
from tests.tables import each_row


@dataclass
class Point:
    x: int
    names: list[str] = field(default_factory=list)


class Line(msgspec.Struct, forbid_unknown_fields=True):
    start: Point
    end: Optional[Point] = None  # noqa: UP045 - the older way of writing it works, too


class Box(TypedDict):
    width: float


class Model(pydantic.BaseModel):
    n: int
    when: dt.date | None = None


@pydantic.dataclasses.dataclass
class Checked:
    n: int

    @pydantic.field_validator("n")
    @classmethod
    def _positive(cls, value: int) -> int:
        if value < 1:
            raise ValueError("must be positive")
        return value


@dataclass
class Holder:
    model: Model


class Colour(Enum):
    RED = "red"


class Stranger:
    pass


POINT, MODEL = Point(1), Model(n=1)


def read(kind: Any, value: Any) -> Any:
    reader = make_reader(kind, "input")
    return value if reader is None else reader(value)


def problems(kind: Any, value: Any) -> list[str]:
    with pytest.raises(InvalidRecord) as caught:
        read(kind, value)
    return [str(problem) for problem in caught.value.problems]


@each_row(
    ("kind", "value", "made"),
    [
        (Any, {"a": [1]}, {"a": [1]}),
        (object, 3, 3),
        (str, "a", "a"),
        (int, 3, 3),
        (float, 3, 3.0),
        (bool, True, True),
        (list, [1, "a"], [1, "a"]),
        (dict, {"a": 1}, {"a": 1}),
        (list[float], [1, 2.5], [1.0, 2.5]),
        (Mapping[str, int], {"a": 1}, {"a": 1}),
        (int | None, None, None),
        (int | str | list[int], [1], [1]),
        (Literal["a", "b"], "b", "b"),
        (Colour, "red", Colour.RED),
        (dt.date, "2024-02-29", dt.date(2024, 2, 29)),
        (Point, {"x": 1, "names": ["a"]}, Point(1, ["a"])),
        (Point, POINT, POINT),
        (Line, {"start": {"x": 1}}, Line(Point(1))),
        (Box, {"width": 1}, {"width": 1.0}),
        (Point | Line, {"start": {"x": 1}}, Line(Point(1))),
        (Model, {"n": 1, "when": "2024-02-29"}, Model(n=1, when=dt.date(2024, 2, 29))),
        (Model, MODEL, MODEL),
        (list[Model], [{"n": 1}], [MODEL]),
        (Model | None, None, None),
        (Checked, {"n": 1}, Checked(1)),
        (Holder, {"model": {"n": 1}}, Holder(MODEL)),
        (Holder, {"model": MODEL}, Holder(MODEL)),
        (Point | Line | Any, "x", "x"),
    ],
)
def test_a_value_that_fits_is_read(kind: Any, value: Any, made: Any) -> None:
    """Ruling (loop): lists, mappings, Optional, unions, dataclasses, structs and models work."""
    result = read(kind, value)
    assert result == made
    assert type(result) is type(made)


@each_row(
    ("kind", "value", "told"),
    [
        (str, 42, ["input must be a string, got a number: 42"]),
        (int, True, ["input must be an integer, got a boolean: true"]),
        (int, 2.0, ["input must be an integer, got a number: 2.0"]),
        (float, "1", ["input must be a number, got a string: '1'"]),
        (str, None, ["input must be a string, got null"]),
        (int | None, "x", ["input must be an integer or null, got a string: 'x'"]),
        (str, ["a"], ["input must be a string, got a list"]),
        (str, {"a": 1}, ["input must be a string, got a mapping"]),
        (
            dict[str, int],
            {"a": "b", "c": 1, "d": None},
            ["input.a must be an integer, got a string: 'b'", "input.d must be an integer, got null"],
        ),
        (dict[str, Any], {1: 2}, ["a key of input must be a string, got a number: 1"]),
        (list[dict[str, int]], [{"a": "b"}], ["input[0].a must be an integer, got a string: 'b'"]),
        (tuple[int, int], [1], ["input must be a list of 2, got 1"]),
        (Literal["a"], "b", ["input must be 'a', got a string: 'b'"]),
        (Point, {}, ["input.x is missing"]),
        (Point, {"x": 1, "names": ["a", 2]}, ["input.names[1] must be a string, got a number: 2"]),
        (Line, {"start": {"x": "1"}}, ["input.start.x must be an integer, got a string: '1'"]),
        (Line, {"start": {"x": 1}, "z": 1}, ["input.z is unknown"]),
        (Point | Line, 3, ["input must be Point or Line, got a number: 3"]),
        (Stranger, 3, ["input must be Stranger, got a number: 3"]),
        (
            list[Model],
            [{"n": True, "when": 1.5}, {}],
            [
                "input[0].n must be a valid integer, got a boolean: true",
                "input[0].when must be a valid date, got a number: 1.5",
                "input[1].n is missing",
            ],
        ),
        (Checked, {"n": 0}, ["input.n must be positive, got a number: 0"]),
        (Holder, {"model": {"n": "1"}}, ["input.model.n must be a valid integer, got a string: '1'"]),
        (str, 10**80, ["input must be a string, got a number: 1" + "0" * 58 + "…"]),
    ],
)
def test_a_value_of_the_wrong_type_is_explained(kind: Any, value: Any, told: list[str]) -> None:
    """Ruling (loop): bool is not int; the message has the path, what was expected, and found."""
    assert problems(kind, value) == told


@pytest.mark.parametrize("kind", ["str", 3, list[3]])  # type: ignore[valid-type]
def test_an_invalid_type_is_refused_when_declared(kind: Any) -> None:
    """A wrong declaration is found before anything is read."""
    with pytest.raises(DatasetError, match="is not a type that values can be converted to"):
        make_reader(kind, "input")


@each_row(
    ("kind", "key", "part"),
    [
        (Point, "x", int),
        (Point, "y", Any),
        (Box, "width", float),
        (Model, "n", int),
        (dict[str, float], "any", float),
        (dict, "any", Any),
        (Point | None, "x", Any),
        (Any, "x", Any),
    ],
)
def test_the_type_of_a_part(kind: Any, key: str, part: Any) -> None:
    """Parts have the type that their field is declared with, or any."""
    assert field_type(kind, key) == part
