"""The format of an answer: its schema, and a reader that never guesses."""

from __future__ import annotations

from typing import Literal

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.models.answer_format import JsonFormat
from tests.tables import each_row


class Inner(msgspec.Struct):
    number: int


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    label: Literal["good", "bad"]
    inner: Inner


class Tree(msgspec.Struct):
    value: int
    children: list[Tree] = []


class Strict(pydantic.BaseModel):
    label: Literal["good", "bad"]


def test_a_schema_has_its_type_at_the_root() -> None:
    """Providers look for it there; types that occur twice stay definitions."""
    assert JsonFormat(Inner).schema == {
        "title": "Inner",
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": ["number"],
    }
    outer = JsonFormat(Outer).schema
    assert (outer["type"], list(outer["$defs"])) == ("object", ["Outer", "Inner"])
    tree = JsonFormat(Tree).schema
    assert tree["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Tree" in tree["$defs"]
    assert JsonFormat(list[int]).schema == {"type": "array", "items": {"type": "integer"}}
    assert JsonFormat(Strict).schema["properties"]["label"]["enum"] == ["good", "bad"]


@given(st.text())
def test_only_json_of_the_type_is_read(text: str) -> None:
    """Any other text is refused with words, never read as something."""
    form = JsonFormat(Outer)
    for structured in (True, False):
        with pytest.raises(ValueError, match=r"."):
            form.read(text, structured=structured)


@given(st.sampled_from(["good", "bad"]), st.integers(-(2**60), 2**60), st.booleans())
def test_a_valid_answer_is_parsed(label: Literal["good", "bad"], number: int, bare: bool) -> None:
    """Bare or, from a model without schemas, in a block with words around it."""
    outer = Outer(label, Inner(number))
    text = msgspec.json.encode(outer).decode()
    answer = text if bare else f"Here it is:\n\n```json\n{text}\n```\nAs you see."
    assert JsonFormat(Outer).read(answer, structured=bare) == outer


@each_row("form", [JsonFormat(Outer), JsonFormat(Strict)])
@each_row("text", ["", "   ", "null", '{"label": "so so", "inner": {"number": 1}}', '{"label": "good"} extra'])
def test_near_misses_are_refused(form: JsonFormat, text: str) -> None:
    """Empty, null, another label, words after it."""
    with pytest.raises(ValueError, match=r"."):
        form.read(text, structured=True)
