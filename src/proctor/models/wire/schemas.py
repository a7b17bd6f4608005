"""JSON Schemas in the subset that a provider can enforce.

Keywords that a provider does not know are left out. The answer is validated strictly afterwards,
so a violated bound is still detected; it then costs a reminder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records import codec
from proctor.records.model import ModelRequest

# The property that wraps an answer where the provider requires an object.
WRAPPER = "value"
MAX_CACHED_SCHEMAS = 64

_SHAPE = frozenset({"type", "properties", "items", "enum", "anyOf", "required", "description"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
# Keywords that the decoders of strict providers do not support.
_UNSUPPORTED = frozenset(
    {"allOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas", "contains"}
)
_TYPE_KEYWORDS = frozenset({"type", "enum", "const", "anyOf", "oneOf", "$ref"})


class Dialect(NamedTuple):
    """The keywords that a provider knows, and whether objects must list all their fields."""

    keywords: frozenset[str]
    is_closed: bool = True
    all_required: bool = False


OPENAI = Dialect(
    _SHAPE
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minItems", "maxItems", "pattern", "format"},
    all_required=True,
)
ANTHROPIC = Dialect(_SHAPE | {"format"})
GEMINI = Dialect(
    _SHAPE
    | {"minimum", "maximum", "minItems", "maxItems", "format", "prefixItems", "title"}
    | {"additionalProperties"},
    is_closed=False,
)


class SchemaCache:
    """Encoded schemas, each made once: runs send the same few again and again.

    >>> cache = SchemaCache(lambda schema: {"format": schema})
    >>> bytes(cache.get({"type": "string"}))
    b'{"format":{"type":"string"}}'
    """

    def __init__(self, make: Callable[[dict[str, Any]], Any]) -> None:
        self._make = make
        self._encoded: dict[bytes, msgspec.Raw] = {}

    def get(self, schema: dict[str, Any]) -> msgspec.Raw:
        """Return the encoded part of the request that asks for a schema."""
        key = codec.encode(schema)
        encoded = self._encoded.get(key)
        if encoded is None:
            if len(self._encoded) >= MAX_CACHED_SCHEMAS:
                self._encoded.clear()
            encoded = self._encoded[key] = msgspec.Raw(codec.encode(self._make(schema)))
        return encoded


class _UnsupportedSchema(Exception):
    """The provider cannot enforce this schema."""


def wrap_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an object schema unchanged; put any other schema into an object.

    >>> wrap_schema({"type": "array"})["properties"]
    {'value': {'type': 'array'}}
    """
    if schema.get("type") == "object":
        return schema
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer = {"type": "object", "properties": {WRAPPER: inner}, "required": [WRAPPER]}
    return outer | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def unwrap_answer(text: str, schema: dict[str, Any] | None) -> str:
    """Undo `wrap_schema` in an answer; return an answer without the wrapper unchanged.

    >>> unwrap_answer('{"value": [1, 2]}', {"type": "array"})
    '[1, 2]'
    """
    if schema is None or schema.get("type") == "object":
        return text
    try:
        outer = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return text
    return bytes(outer[WRAPPER]).decode() if list(outer) == [WRAPPER] else text


def rejects_schema(message: str, request: ModelRequest, names: Sequence[str]) -> bool:
    """Return True if an error message names the part of the request that asks for a schema."""
    return request.schema is not None and any(name in message for name in names)


def fit_schema(schema: dict[str, Any], dialect: Dialect) -> dict[str, Any] | None:
    """Reduce a schema to a provider's dialect; return None if the provider cannot enforce it.

    >>> fit_schema({"type": "object", "properties": {"a": {"const": 1, "title": "A"}}}, OPENAI)
    {'type': 'object', 'properties': {'a': {'enum': [1]}}, 'additionalProperties': False, \
'required': ['a']}
    >>> fit_schema({"type": "object"}, OPENAI) is None
    True
    """
    try:
        return _fit_node(schema, dialect)
    except _UnsupportedSchema:
        return None


def _fit_node(node: Any, dialect: Dialect) -> dict[str, Any]:
    if not isinstance(node, dict) or (dialect.is_closed and _is_unsupported(node)):
        raise _UnsupportedSchema
    definitions = {name: _fit_node(inner, dialect) for name, inner in node.get("$defs", {}).items()}
    suffix = {"$defs": definitions} if definitions else {}
    if "$ref" in node:
        # A reference allows no other keywords next to it.
        return {"$ref": node["$ref"], **suffix}
    portable = dict(node)
    if "oneOf" in portable:
        portable["anyOf"] = portable.pop("oneOf")
    if "const" in portable:
        portable["enum"] = [portable.pop("const")]
    fitted = {key: value for key, value in portable.items() if key in dialect.keywords}
    if dialect.is_closed and fitted.get("format", "date") not in _FORMATS:
        del fitted["format"]
    return _fit_children(fitted, dialect) | suffix


def _is_unsupported(node: dict[str, Any]) -> bool:
    is_open_object = node.get("type") == "object" and (
        not node.get("properties") or node.get("additionalProperties") not in (None, False)
    )
    return is_open_object or bool(_UNSUPPORTED & node.keys()) or not _TYPE_KEYWORDS & node.keys()


def _fit_children(node: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    if "properties" in node:
        node["properties"] = {name: _fit_node(child, dialect) for name, child in node["properties"].items()}
        if dialect.is_closed:
            node["additionalProperties"] = False
        if dialect.all_required:
            node["required"] = list(node["properties"])
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            node[key] = _fit_node(node[key], dialect)
    for key in ("anyOf", "prefixItems"):
        if key in node:
            node[key] = [_fit_node(child, dialect) for child in node[key]]
    return node
