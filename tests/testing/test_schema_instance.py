"""The smallest value that fits a schema."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.testing.schema_instance import iter_subschemas, minimal_instance


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
def test_it_fits_every_schema_of_a_type(kinds: list[Any]) -> None:
    """Whatever record is asked for, the value made from its schema is such a record."""
    fields = [(f"field_{place}", kind) for place, kind in enumerate(kinds)]
    record = msgspec.defstruct("Record", fields)
    msgspec.convert(minimal_instance(msgspec.json.schema(record)), record)


@pytest.mark.parametrize(
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
        (
            {
                "$ref": "#/$defs/a~1b",
                "$defs": {"a/b": {"anyOf": [{"$ref": "#/$defs/a~1b"}, {"const": "end"}]}},
            },
            "end",
        ),
    ],
)
def test_it_is_the_smallest(schema: dict[str, Any], value: Any) -> None:
    """Limits are kept, only what is required is there, and circles are left."""
    assert minimal_instance(schema) == value


def test_a_schema_that_nothing_fits_is_refused() -> None:
    """A record that must hold itself has no finite value."""
    circle = {"type": "object", "properties": {"again": {"$ref": "#"}}, "required": ["again"]}
    with pytest.raises(ValueError, match="no finite value"):
        minimal_instance(circle)
    with pytest.raises(ValueError, match="no finite value"):
        minimal_instance({"anyOf": [{"$ref": "#"}]})


def test_every_schema_within_a_schema_is_found() -> None:
    """Properties called like a keyword are looked into; constants are not."""
    schema = {
        "type": "object",
        "properties": {"enum": {"type": "string"}, "list": {"items": [{"type": "null"}]}},
        "enum": [{"type": "no schema"}],
    }
    kinds = [inner.get("type") for inner in iter_subschemas(schema)]
    assert kinds == ["object", "string", None, "null"]
