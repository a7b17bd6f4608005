"""The format of an answer: a user's type as JSON Schema, and a strict JSON reader for it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from proctor.core import optional as extras
from proctor.errors import ModelError
from proctor.records import codec
from proctor.records.validation import explain

# The last block counts: earlier blocks may belong to the model's reasoning.
_CODE_BLOCK = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL)


class JsonFormat:
    """Answers in JSON of one type: a struct, dataclass, pydantic model, list, Literal, ….

    A model without structured outputs may put the JSON into a code block. Any other text is an error; answers are never
    repaired by guessing.
    """

    def __init__(self, output_type: Any) -> None:
        self._type = output_type
        self._is_pydantic = extras.is_pydantic_model(output_type)
        if self._is_pydantic:
            self.schema = dict(output_type.model_json_schema())
            return
        try:
            self.schema = inline_root(msgspec.json.schema(output_type))
        except TypeError as error:
            raise ModelError(f"an answer cannot have the type {output_type!r}: {error}") from None

    @property
    def instructions(self) -> str:
        """The instructions for a model without structured outputs."""
        return schema_instructions(self.schema)

    def read(self, text: str, *, structured: bool) -> Any:
        text = text.strip()
        if not structured and (blocks := _CODE_BLOCK.findall(text)):
            text = blocks[-1].strip()
        if not text:
            raise ValueError("it is empty")
        if self._is_pydantic:
            return self._type.model_validate_json(text)
        try:
            return msgspec.json.decode(text, type=self._type)
        except msgspec.DecodeError as error:
            raise ValueError(explain(error)) from None


def decode_pydantic(value_type: Any, value: Any) -> Any:
    """Decode a pydantic model inside another type: a `dec_hook` of msgspec."""
    if not extras.is_pydantic_model(value_type):
        raise TypeError(f"the type {value_type.__qualname__} cannot be read from JSON")
    try:
        # Validate as JSON, because strict mode then accepts dates and enums as strings.
        return value_type.model_validate_json(codec.encode(value), strict=True)
    except ValueError as error:
        raise ValueError(describe_error(error)) from None


def describe_error(error: ValueError) -> str:
    """Describe an error in one line; pydantic may report several errors together."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in errors())


def is_json(text: str | bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def schema_instructions(schema: dict[str, Any]) -> str:
    """Return the instructions that replace a schema for a model without structured outputs."""
    return (
        "Answer with JSON alone, nothing before or after it. It must fit this JSON Schema:\n"
        f"{codec.encode(schema).decode()}"
    )


def inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace the reference that msgspec puts at the root of a schema with its type."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    definitions = schema["$defs"]
    root = definitions[reference.rpartition("/")[2]]
    is_only_definition = len(definitions) == 1 and reference not in str(root)
    return root if is_only_definition else {**root, "$defs": definitions}
