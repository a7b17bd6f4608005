"""Schemas in the dialect of each provider, and answers that are not objects."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.models import wire as schemas
from proctor.models.answer_format import JsonFormat
from proctor.models.wire import ANTHROPIC, GEMINI, OPENAI, fit_schema, unwrap_answer, wrap_schema
from tests.tables import each_row


class Inner(msgspec.Struct):
    name: str
    size: int = 3


class Verdict(msgspec.Struct):
    rating: Literal["good", "bad"]
    parts: list[Inner]
    reason: str | None = None


class Tree(pydantic.BaseModel):
    label: str = pydantic.Field(min_length=1, description="what it is called")
    weight: float = pydantic.Field(ge=0, le=1)
    children: list[Tree] = []


def objects(schema: Any) -> list[dict[str, Any]]:
    """Every schema of an object inside a schema."""
    if isinstance(schema, list):
        return [result for each in schema for result in objects(each)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [result for each in schema.values() for result in objects(each)]


@pytest.mark.parametrize("kind", [Verdict, Tree])
def test_openai_gets_closed_objects_with_all_fields(kind: type) -> None:
    """Strict mode wants every object closed and every property required."""
    result = fit_schema(JsonFormat(kind).schema, OPENAI)
    assert result is not None
    assert objects(result)
    for each in objects(result):
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])


def test_bounds_are_sent_only_to_providers_that_support_them() -> None:
    """OpenAI and Gemini support a minimum, Anthropic does not; none supports a minimum length."""
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
            "s": {"type": "string", "minLength": 1, "format": "secret"},
            "d": {"type": "string", "format": "date", "description": "a day"},
        },
        "required": ["n"],
    }
    bounded = {"type": "number", "minimum": 0, "maximum": 1}
    day = {"type": "string", "format": "date", "description": "a day"}
    openai, anthropic, gemini = (fit_schema(schema, each) for each in (OPENAI, ANTHROPIC, GEMINI))
    assert openai is not None
    assert openai["properties"] == {"n": bounded, "s": {"type": "string"}, "d": day}
    assert anthropic == {
        "type": "object",
        "properties": {"n": {"type": "number"}, "s": {"type": "string"}, "d": day},
        "required": ["n"],
        "additionalProperties": False,
    }
    assert gemini is not None
    assert gemini["properties"]["n"] == bounded
    assert "additionalProperties" not in gemini


@each_row(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "array", "items": {"allOf": [{"type": "string"}]}},
        {"type": "array", "prefixItems": [{"type": "string"}]},
    ],
)
def test_unsupported_schemas_are_recognised(schema: dict[str, Any]) -> None:
    """Free mappings, any type and tuples do not exist in the closed dialects."""
    assert fit_schema(schema, OPENAI) is None
    assert fit_schema(schema, ANTHROPIC) is None


def test_gemini_supports_open_objects_and_tuples() -> None:
    """Known keywords are kept at all levels, and constants become enumerations."""
    schema = {
        "type": "object",
        "additionalProperties": {"const": "x", "title": "X"},
        "properties": {"t": {"type": "array", "prefixItems": [{"const": 1}]}},
    }
    assert fit_schema(schema, GEMINI) == {
        "type": "object",
        "additionalProperties": {"enum": ["x"], "title": "X"},
        "properties": {"t": {"type": "array", "prefixItems": [{"enum": [1]}]}},
    }


def test_a_reference_has_no_other_keywords() -> None:
    """References stay, their definitions are fitted too, and alternatives become `anyOf`."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/A", "description": "gone"},
            "b": {"oneOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "discriminator": {}},
        },
        "$defs": {"A": {"type": "object", "properties": {"x": {"const": 1}}}},
    }
    result = fit_schema(schema, OPENAI)
    assert result is not None
    assert result["properties"] == {
        "a": {"$ref": "#/$defs/A"},
        "b": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
    }
    assert result["$defs"]["A"]["required"] == ["x"]


def test_the_callers_schema_is_not_changed() -> None:
    """It is used again in the next call."""
    schema = JsonFormat(Tree).schema
    before = msgspec.json.encode(schema)
    for dialect in (OPENAI, ANTHROPIC, GEMINI):
        fit_schema(schema, dialect)
    wrap_schema({"type": "array", "$defs": {}})
    assert msgspec.json.encode(schema) == before


def test_other_schemas_are_wrapped_in_an_object() -> None:
    """The definitions stay at the root, where references expect them."""
    schema = {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "string"}}}
    assert wrap_schema(schema) == {
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"$ref": "#/$defs/A"}}},
        "required": ["value"],
        "$defs": {"A": {"type": "string"}},
    }
    plain = {"type": "object", "properties": {}}
    assert wrap_schema(plain) is plain


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), st.lists, max_leaves=9))
def test_wrapped_answers_are_unwrapped(value: Any) -> None:
    """Any value is returned as the same JSON."""
    text = msgspec.json.encode({"value": value}).decode()
    assert msgspec.json.decode(unwrap_answer(text, {"type": "array"})) == value


@pytest.mark.parametrize("text", ["[1]", "no JSON", '{"value": 1, "more": 2}', '{"other": 1}', ""])
def test_other_answers_are_not_changed(text: str) -> None:
    """The parser reports what is wrong with them."""
    assert unwrap_answer(text, {"type": "array"}) == text


def test_object_answers_are_not_unwrapped() -> None:
    """Also if they have a field `value`."""
    text = '{"value": 1}'
    assert unwrap_answer(text, {"type": "object"}) == text
    assert unwrap_answer(text, None) == text


def test_the_schema_cache_is_bounded() -> None:
    """Each schema is encoded once, up to a limit."""
    values: list[Any] = []

    def make(schema: dict[str, Any]) -> dict[str, Any]:
        values.append(schema)
        return schema

    encode = schemas.cache_schemas(make)
    for number in range(schemas.MAX_CACHED_SCHEMAS + 1):
        encode({"const": number})
        encode({"const": number})
    assert len(values) == schemas.MAX_CACHED_SCHEMAS + 1
    encode({"const": 0})
    assert len(values) == schemas.MAX_CACHED_SCHEMAS + 2
