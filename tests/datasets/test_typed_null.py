"""Declared types decide about null and missing values, and every problem of a value is reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pytest

from proctor.datasets.dataset import Dataset, IteratorDataset, make_source
from proctor.errors import DatasetError


class Mood(Enum):
    """Values that an enum allows."""

    CALM = "calm"
    LOUD = "loud"


class Level(Enum):
    """Numbers that an enum allows."""

    LOW = 1
    HIGH = 2


@dataclass
class Place:
    """A part of a question."""

    city: str
    country: Literal["FR", "DE"]


@dataclass
class Question:
    """A typed input with a nested part."""

    text: str
    year: int
    place: Place
    tags: list[str] = field(default_factory=list)


class Ticket(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """A struct whose keys are written in camel case."""

    ticket_number: int
    open_since: str


class Row(TypedDict):
    """A typed mapping."""

    left: int
    right: int


class Point(NamedTuple):
    """A typed row."""

    x: int
    y: int


def problems(items: list[Any], input_type: Any = Any, expected_type: Any = Any) -> list[str]:
    """The problems of a dataset of records, without their place."""
    with pytest.raises(DatasetError) as caught:
        Dataset.of(items, input_type, expected_type)
    return [problem.what for problem in caught.value.problems]


def record(value: Any, **others: Any) -> dict[str, Any]:
    """A record with an input."""
    return {"id": "1", "input": value, **others}


def test_a_missing_expected_value_is_refused_unless_its_type_is_optional() -> None:
    """`str` needs an expected value in every record; `str | None` and `Any` do not."""
    assert problems([record("q")], str, str) == ["expected must be a string, but it is missing or null"]
    assert Dataset.of([record("q")], str, str | None)[0].expected is None
    assert Dataset.of([record("q")], str, Any)[0].expected is None


def test_a_null_expected_value_is_refused_unless_its_type_is_optional() -> None:
    """Null is a value, and not a string."""
    items = [record("q", expected=None)]
    assert problems(items, str, str) == ["expected must be a string, but it is missing or null"]
    assert Dataset.of(items, str, str | None)[0].expected is None


@pytest.mark.parametrize("kind", [int, list[str], dict[str, int], Place, Ticket, Row, Mood])
def test_no_type_takes_null_by_itself(kind: Any) -> None:
    """Whatever the type, null is refused where it is not declared."""
    (found,) = problems([record("q", expected=None)], str, kind)
    assert found.startswith("expected must be ")
    assert found.endswith(", but it is missing or null")


def test_an_optional_input_accepts_null() -> None:
    """Null is a value of an optional type: it is loaded, sliced and described."""
    dataset = Dataset.of([record(None), {"id": "2", "input": "q"}], str | None)
    assert [sample.input for sample in dataset] == [None, "q"]
    assert [sample.input for sample in dataset[:1]] == [None]
    assert dataset.info.length == 2


def test_an_input_that_is_not_optional_refuses_null_and_a_missing_one() -> None:
    """Without a type, and with a type other than optional, an input is needed."""
    assert problems([record(None)]) == ["input must not be null"]
    assert problems([record(None)], str) == ["input must be a string, got null"]
    assert problems([{"id": "1"}], str | None) == ["input is missing"]


def test_files_and_streams_follow_the_same_rule(tmp_path: Path) -> None:
    """JSONL, CSV, JSON and iterators decide about null as lists of records do."""
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"id": "1", "input": null, "expected": "a"}\n{"id": "2", "input": "q"}\n')
    with pytest.raises(DatasetError) as caught:
        Dataset.load(lines, str | None, str)
    assert [str(problem) for problem in caught.value.problems] == [
        f"{lines}:2: expected must be a string, but it is missing or null"
    ]
    assert Dataset.load(lines, str | None, str | None)[0].input is None
    table = tmp_path / "a.csv"
    table.write_text("id,input,expected\n1,,a\n2,q,\n")
    assert [s.input for s in Dataset.load(table, str | None, str | None)] == [None, "q"]
    with pytest.raises(DatasetError, match=r"a\.csv:3: expected must be a string"):
        Dataset.load(table, str | None, str)
    stream = IteratorDataset([record("q")], expected_type=int)
    with pytest.raises(DatasetError, match="expected must be an integer, but it is missing"):
        list(stream)
    assert [s.input for s in make_source(lines, str | None, Any)] == [None, "q"]


def test_a_literal_lists_what_is_allowed() -> None:
    """The error of a literal names its choices and the nearest one."""
    assert problems([record("gren")], Literal["red", "green"]) == [
        "input must be one of 'red', 'green', got a string: 'gren'; did you mean 'green'?"
    ]
    assert problems([record(3)], Literal[1, 2]) == ["input must be one of 1, 2, got a number: 3"]


def test_an_enum_lists_what_is_allowed() -> None:
    """The error of an enum names its values as a file would write them."""
    assert problems([record("lout")], Mood) == [
        "input must be one of 'calm', 'loud', got a string: 'lout'; did you mean 'loud'?"
    ]
    assert problems([record(3)], Level) == ["input must be one of 1, 2, got a number: 3"]
    assert problems([record(["calm", "x"])], list[Mood]) == [
        "input[1] must be one of 'calm', 'loud', got a string: 'x'"
    ]
    assert problems([record({"a": "x"})], dict[str, Literal["b"]]) == ["input.a must be 'b', got a string: 'x'"]


def test_every_bad_field_of_a_dataclass_is_reported() -> None:
    """Wrong, missing and nested fields and items of lists come in one error."""
    value = {"text": 1, "place": {"city": None, "country": "UK"}, "tags": ["a", 2, 3]}
    assert problems([record(value)], Question) == [
        "input.text must be a string, got a number: 1",
        "input.year is missing",
        "input.place.city must be a string, got null",
        "input.place.country must be one of 'FR', 'DE', got a string: 'UK'",
        "input.tags[1] must be a string, got a number: 2",
        "input.tags[2] must be a string, got a number: 3",
    ]


def test_every_bad_field_of_a_struct_is_reported_under_the_name_in_the_file() -> None:
    """Renamed fields are named as the file must write them; unknown ones come with the nearest."""
    assert problems([record({"ticketNumbr": 3})], Ticket) == [
        "input.ticketNumber is missing",
        "input.openSince is missing",
        "input.ticketNumbr is unknown; did you mean 'ticketNumber'?",
    ]


def test_typed_mappings_rows_tuples_and_unions_report_every_fault() -> None:
    """TypedDict, NamedTuple, tuple, set, mapping and optional members are all looked into."""
    assert problems([record({"left": "a"})], Row) == [
        "input.left must be an integer, got a string: 'a'",
        "input.right is missing",
    ]
    assert problems([record(["a", "b"])], Point) == [
        "input[0] must be an integer, got a string: 'a'",
        "input[1] must be an integer, got a string: 'b'",
    ]
    assert len(problems([record(["a", "b"])], tuple[int, int])) == 2
    assert len(problems([record(["a", "b"])], set[int])) == 2
    assert len(problems([record({"a": "x", "b": "y"})], dict[str, int])) == 2
    assert len(problems([record({"text": 1})], Question | None)) == 3
    assert problems([record([])], int | str) == ["input must be an integer or a string, got a list"]


def test_a_constraint_is_explained() -> None:
    """A number outside its declared bounds is refused with the bound and other problems."""
    positive = Annotated[int, msgspec.Meta(gt=0)]
    assert problems([record({"a": -1, "b": "x"})], dict[str, positive]) == [
        "input.a must be an integer, 1 or more, got a number: -1",
        "input.b must be an integer, got a string: 'x'",
    ]


def test_faults_of_input_and_expected_come_together() -> None:
    """One record with two faulty values gives both."""
    assert problems([record(1, expected="a")], str, int) == [
        "input must be a string, got a number: 1",
        "expected must be an integer, got a string: 'a'",
    ]


def test_what_is_accepted_and_what_is_reported_agree() -> None:
    """For every type and value, there are problems exactly where the value cannot be read."""
    kinds: list[Any] = [
        str, int, float, bool, Mood, Level, Literal["calm", 1], list[int], dict[str, int], Place,
        Question, Ticket, Row, Point, tuple[int, ...], tuple[int, str], int | None, int | str,
        list[Place], dict[str, Mood | None], Annotated[int, msgspec.Meta(ge=0)],
    ]  # fmt: skip
    values: list[Any] = [
        None, 1, -1, 1.5, True, "calm", "x", [], [1], ["a"], [1, "a"], [None], {}, {"a": 1},
        {"a": "calm"}, {"a": None}, {"city": "P", "country": "FR"}, {"left": 1, "right": 2},
        [{"city": "P", "country": "XX"}], {"ticketNumber": 1, "openSince": "x", "more": 1},
    ]  # fmt: skip
    for kind in kinds:
        for value in values:
            try:
                msgspec.convert(value, kind)
                fits = True
            except msgspec.ValidationError:
                fits = False
            try:
                Dataset.of([record("q", expected=value)], str, kind)
                loaded, explained = True, True
            except DatasetError as error:
                loaded = False
                explained = bool(error.problems)
            assert (loaded, explained) == (fits, True), (kind, value)
