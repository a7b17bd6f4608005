"""JSON Schemas in the words that a provider can hold an answer to.

What a provider does not know is left out. The answer is read strictly afterwards, so a bound that
it could not be held to is still found; it then costs a reminder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records import codec
from proctor.records.model import ModelRequest

# What an answer is put under where the provider wants an object and the schema is none.
WRAPPER = "value"
MOST_REMEMBERED = 64

_SHAPE = frozenset({"type", "properties", "items", "enum", "anyOf", "required", "description"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
# Schemas that say more than these providers' decoders can follow.
_BEYOND = frozenset(
    {"allOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas", "contains"}
)


class Dialect(NamedTuple):
    """What a provider knows: keywords, and whether objects must name all their fields."""

    known: frozenset[str]
    closed: bool = True
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
    closed=False,
)


class Written:
    """Schemas as they are sent, each made once: the same few are asked for again and again.

    >>> written = Written(lambda schema: {"format": schema})
    >>> bytes(written.of({"type": "string"}))
    b'{"format":{"type":"string"}}'
    """

    def __init__(self, make: Callable[[dict[str, Any]], Any]) -> None:
        self._make = make
        self._made: dict[bytes, msgspec.Raw] = {}

    def of(self, schema: dict[str, Any]) -> msgspec.Raw:
        """The part of a request that asks for a schema."""
        key = codec.encode(schema)
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= MOST_REMEMBERED:
                self._made.clear()
            found = self._made[key] = msgspec.Raw(codec.encode(self._make(schema)))
        return found


class _Beyond(Exception):
    """The provider cannot be held to this schema."""


def wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself if it is an object's, else an object with the answer in it.

    >>> wrapped({"type": "array"})["properties"]
    {'value': {'type': 'array'}}
    """
    if is_object(schema):
        return schema
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    outer = {"type": "object", "properties": {WRAPPER: inner}, "required": [WRAPPER]}
    return outer | ({"$defs": schema["$defs"]} if "$defs" in schema else {})


def unwrapped(text: str, schema: dict[str, Any] | None) -> str:
    """The answer that `wrapped` put into an object; one that does not look so stays as it is.

    >>> unwrapped('{"value": [1, 2]}', {"type": "array"})
    '[1, 2]'
    """
    if schema is None or is_object(schema):
        return text
    try:
        held = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        return text
    return bytes(held[WRAPPER]).decode() if list(held) == [WRAPPER] else text


def objected(told: str, request: ModelRequest, names: Sequence[str]) -> bool:
    """True if a server's complaint names the part of the request that asks for a schema."""
    return request.schema is not None and any(name in told for name in names)


def is_object(schema: dict[str, Any]) -> bool:
    """True if the answer is an object for sure."""
    return schema.get("type") == "object"


def fitted(schema: dict[str, Any], dialect: Dialect) -> dict[str, Any] | None:
    """The schema in a provider's words, or None if it cannot be held to it.

    >>> fitted({"type": "object", "properties": {"a": {"const": 1, "title": "A"}}}, OPENAI)
    {'type': 'object', 'properties': {'a': {'enum': [1]}}, 'additionalProperties': False, \
'required': ['a']}
    >>> fitted({"type": "object"}, OPENAI) is None
    True
    """
    try:
        return _fitted(schema, dialect)
    except _Beyond:
        return None


def _fitted(node: Any, dialect: Dialect) -> dict[str, Any]:
    if not isinstance(node, dict) or (dialect.closed and _is_beyond(node)):
        raise _Beyond
    definitions = {name: _fitted(each, dialect) for name, each in node.get("$defs", {}).items()}
    ends = {"$defs": definitions} if definitions else {}
    if "$ref" in node:
        # Nothing may stand beside a reference.
        return {"$ref": node["$ref"], **ends}
    found = {key: value for key, value in _spelled(node).items() if key in dialect.known}
    if dialect.closed and found.get("format", "date") not in _FORMATS:
        del found["format"]
    return _inside(found, dialect) | ends


def _is_beyond(node: dict[str, Any]) -> bool:
    says = {"type", "enum", "const", "anyOf", "oneOf", "$ref"}
    open_object = node.get("type") == "object" and (
        not node.get("properties") or node.get("additionalProperties") not in (None, False)
    )
    return open_object or bool(_BEYOND & node.keys()) or not says & node.keys()


def _spelled(node: dict[str, Any]) -> dict[str, Any]:
    """The same with the words that every provider knows."""
    found = dict(node)
    if "oneOf" in found:
        found["anyOf"] = found.pop("oneOf")
    if "const" in found:
        found["enum"] = [found.pop("const")]
    return found


def _inside(found: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    if "properties" in found:
        inner = {name: _fitted(each, dialect) for name, each in found["properties"].items()}
        found["properties"] = inner
        if dialect.closed:
            found["additionalProperties"] = False
        if dialect.all_required:
            found["required"] = list(inner)
    if isinstance(found.get("items"), dict):
        found["items"] = _fitted(found["items"], dialect)
    for key in ("anyOf", "prefixItems"):
        if key in found:
            found[key] = [_fitted(each, dialect) for each in found[key]]
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = _fitted(found["additionalProperties"], dialect)
    return found
