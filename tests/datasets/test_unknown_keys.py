"""A key that the declared type does not have is refused, not dropped."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from proctor.datasets.jsonl import JSONLDataset
from proctor.datasets.type_readers import make_reader
from proctor.errors import DatasetError
from tests.tables import each_row


@dataclass
class In:
    km: float
    unit: str = "km"


@dataclass
class Trip:
    legs: list[In] = field(default_factory=list)
    by_name: dict[str, In] = field(default_factory=dict)
    last: In | None = None


class Typed(TypedDict):
    km: float
    unit: NotRequired[str]


class TypedTrip(TypedDict):
    leg: Typed


class Struct(msgspec.Struct):
    km: float
    unit: str = "km"


class Renamed(msgspec.Struct, rename="camel", tag_field="kind", tag="r"):
    km_driven: float = 0.0


class Model(pydantic.BaseModel):
    km: float
    unit: str = "km"


class ModelTrip(pydantic.BaseModel):
    legs: list[Model]


class Open(pydantic.BaseModel, extra="allow"):
    km: float


class Aliased(pydantic.BaseModel):
    km: float = pydantic.Field(alias="kilometres")
    unit: str = pydantic.Field("km", validation_alias=pydantic.AliasChoices("u", "unit_of"))


class Early(pydantic.BaseModel):
    km: float

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_miles(cls, value: Any) -> Any:
        return {"km": value["miles"] * 1.6} if "miles" in value else value


WRONG = {"km": 3, "unti": "mi"}
RIGHT = {"km": 3, "unit": "mi"}


def refused(kind: Any, value: Any, tmp_path: Path) -> str:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"id": "1", "input": value}) + "\n")
    with pytest.raises(DatasetError) as caught:
        JSONLDataset(path, input_type=kind).inspect()
    return str(caught.value)


@pytest.mark.parametrize("kind", [In, Typed, Struct, Model, In | None, Model | None])
def test_a_misspelt_key_is_refused_with_the_likely_one(kind: Any, tmp_path: Path) -> None:
    """`unti` must not be dropped silently, with `unit` at its default."""
    said = refused(kind, WRONG, tmp_path)
    assert "input.unti: is unknown; did you mean 'unit'?" in said or (
        "input.unti is unknown; did you mean 'unit'?" in said
    )


@pytest.mark.parametrize(
    ("kind", "value", "where"),
    [
        (list[In], [RIGHT, WRONG], "input[1].unti"),
        (dict[str, In], {"a": WRONG}, "input.a.unti"),
        (Trip, {"legs": [WRONG]}, "input.legs[0].unti"),
        (Trip, {"by_name": {"a": WRONG}}, "input.by_name.a.unti"),
        (Trip, {"last": WRONG}, "input.last.unti"),
        (TypedTrip, {"leg": WRONG}, "input.leg.unti"),
        (ModelTrip, {"legs": [RIGHT, WRONG]}, "input.legs[1].unti"),
    ],
)
def test_nested_keys_are_checked_as_well(kind: Any, value: Any, where: str, tmp_path: Path) -> None:
    """The place is named by its path."""
    said = refused(kind, value, tmp_path)
    assert where in said
    assert "did you mean 'unit'?" in said


def test_other_faults_and_unknown_keys_are_named_together(tmp_path: Path) -> None:
    """One run of the check is enough to correct the file."""
    said = refused(In, {"km": "far", "unti": "mi"}, tmp_path)
    assert "input.km" in said
    assert "input.unti" in said


@each_row(
    ("kind", "value"),
    [
        (In, RIGHT),
        (Typed, {"km": 3}),
        (dict[str, Any], WRONG),
        (Open, WRONG),
        (Aliased, {"kilometres": 3, "u": "mi"}),
        (Renamed, {"kind": "r", "kmDriven": 3}),
        (Early, {"miles": 3}),
        (In, In(3.0)),
    ],
)
def test_known_keys_and_open_types_are_taken(kind: Any, value: Any) -> None:
    """Aliases, tags, converted keys, validators of their own and declared extra keys."""
    read = make_reader(kind, "input")
    assert read is not None
    read(value)
