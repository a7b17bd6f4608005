"""The form of an answer: a type of the user's, as JSON Schema and as a strict reader of JSON."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from proctor.core import optional as extras
from proctor.errors import ModelError
from proctor.records import codec

# The last block counts: what comes before it may be thinking aloud.
_BLOCK = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL)


class JsonForm:
    """Answers that are JSON of one type: a struct, dataclass, pydantic model, list, Literal, ….

    A model that is not held to the schema may put the JSON into a code block; nothing else is
    taken, and nothing is repaired by guessing.

    >>> JsonForm(list[int]).read("[1, 2]", structured=True)
    [1, 2]
    """

    def __init__(self, output_type: Any) -> None:
        self._type = output_type
        self._pydantic = extras.is_pydantic_model(output_type)
        self.schema = self._schema()

    def _schema(self) -> dict[str, Any]:
        if self._pydantic:
            return dict(self._type.model_json_schema())
        try:
            found = msgspec.json.schema(self._type)
        except TypeError as error:
            raise ModelError(f"an answer cannot be of the type {self._type!r}: {error}") from None
        return inlined(found)

    @property
    def instructions(self) -> str:
        """What a model without schemas is told."""
        return in_words(self.schema)

    def read(self, text: str, *, structured: bool) -> Any:
        """The answer in its type."""
        found = text.strip()
        if not structured and (blocks := _BLOCK.findall(found)):
            found = blocks[-1].strip()
        if not found:
            raise ValueError("it is empty")
        if self._pydantic:
            return self._type.model_validate_json(found)
        try:
            return msgspec.json.decode(found, type=self._type)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from None


def is_json(text: str) -> bool:
    """True if a text is JSON of whatever kind.

    >>> is_json('{"a": 1}'), is_json("So: 4")
    (True, False)
    """
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def in_words(schema: dict[str, Any]) -> str:
    """How to answer, for a model that is not held to a schema by its provider."""
    return (
        "Answer with JSON alone, nothing before or after it. It must fit this JSON Schema:\n"
        f"{codec.encode(schema).decode()}"
    )


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with a type at its root, where msgspec puts a reference."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    definitions = schema["$defs"]
    root = definitions[reference.rpartition("/")[2]]
    alone = len(definitions) == 1 and reference not in str(root)
    return root if alone else {**root, "$defs": definitions}
