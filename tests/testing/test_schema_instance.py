"""The smallest value that is valid for a schema."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.testing.schema_instance import iter_subschemas, minimal_instance
from tests.tables import each_row


class Leaf(msgspec.Struct):
    word: Literal["yes", "no"]
    share: float = 0.0


class Tree(msgspec.Struct):
    name: str
    leaves: list[Leaf]
    score: int | None
    inner: Tree | None = None


KINDS = st.recursive(
    st.sampled_from([int, str, float, bool, None, Literal["a", "b"], Literal[1], Leaf, Tree]),
    lambda kind: kind.map(lambda k: list[k]) | kind.map(lambda k: dict[str, k]),  # type: ignore[valid-type]
    max_leaves=3,
)


@given(st.lists(KINDS, min_size=1, max_size=4))
def test_the_instance_is_valid_for_every_type(kinds: list[Any]) -> None:
    """Property: it can be converted to the record type."""
    fields = [(f"field_{place}", kind) for place, kind in enumerate(kinds)]
    record = msgspec.defstruct("Record", fields)
    msgspec.convert(minimal_instance(msgspec.json.schema(record)), record)


@each_row(
    ("schema", "value"),
    [
        ({"type": "integer"}, 0),
        ({"type": "integer", "minimum": 1, "maximum": 5}, 1),
        ({"type": "integer", "exclusiveMinimum": 1}, 2),
        ({"type": "integer", "minimum": 3, "multipleOf": 4}, 4),
        ({"type": "integer", "maximum": -3}, -4),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1}, 0.5),
        ({"type": "number", "exclusiveMinimum": 0}, 1),
        ({"type": "number", "minimum": 0.25}, 0.25),
        ({"type": "string", "minLength": 3}, "xxx"),
        ({"type": ["string", "null"]}, ""),
        ({"type": "STRING"}, ""),
        ({"type": "boolean"}, False),
        ({"type": "null"}, None),
        ({"const": 7}, 7),
        ({"enum": ["b", "a"]}, "b"),
        ({"type": "array", "minItems": 2, "items": {"type": "integer"}}, [0, 0]),
        ({"oneOf": [{"type": "array"}, {"type": "null"}]}, []),
        ({"properties": {"a": {}, "b": {}}, "required": ["a"]}, {"a": ""}),
        ({"type": "object", "required": ["a"], "properties": {"a": True}}, {"a": None}),
        (
            {
                "allOf": [{"$ref": "#/$defs/A"}, {"required": ["b"]}],
                "properties": {"b": {"const": 1}},
                "$defs": {"A": {"properties": {"a": {"const": 2}}, "required": ["a"]}},
            },
            {"a": 2, "b": 1},
        ),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"anyOf": [{"$ref": "#/$defs/a~1b"}, {"const": "end"}]}}}, "end"),
    ],
)
def test_the_instance_is_minimal(schema: dict[str, Any], value: Any) -> None:
    """It respects limits and contains only required fields."""
    assert minimal_instance(schema) == value


def test_a_schema_without_a_finite_value_is_refused() -> None:
    """A record that must contain itself."""
    circle = {"type": "object", "properties": {"again": {"$ref": "#"}}, "required": ["again"]}
    with pytest.raises(ValueError, match="no finite value"):
        minimal_instance(circle)
    with pytest.raises(ValueError, match="no finite value"):
        minimal_instance({"anyOf": [{"$ref": "#"}]})


def test_subschemas_are_found() -> None:
    """Also below properties that are named like keywords; not in constants."""
    schema = {
        "type": "object",
        "properties": {"enum": {"type": "string"}, "list": {"items": [{"type": "null"}]}},
        "enum": [{"type": "no schema"}],
    }
    kinds = [inner.get("type") for inner in iter_subschemas(schema)]
    assert kinds == ["object", "string", None, "null"]
