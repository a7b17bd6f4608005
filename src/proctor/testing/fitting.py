"""The smallest value that fits a JSON Schema, and what is not allowed in strict schemas."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

DEEPEST = 24


class _TooDeep(Exception):
    """This way leads in a circle."""


def fitting(schema: dict[str, Any]) -> Any:
    """A small value that fits a schema; patterns are not looked at.

    >>> fitting({"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}},
    ...          "required": ["n"]})
    {'n': 3}
    """
    try:
        return _value(schema, schema, 0)
    except _TooDeep:
        raise ValueError("no finite value fits this schema") from None


def _value(schema: Any, root: dict[str, Any], depth: int) -> Any:
    if depth > DEEPEST:
        raise _TooDeep
    if not isinstance(schema, dict):
        return None
    if "$ref" in schema:
        return _value(_at(root, schema["$ref"]), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return _first(schema[word], root, depth)
    if "allOf" in schema:
        schema = _together(schema, root)
    return _of_type(schema, root, depth)


def _at(root: dict[str, Any], reference: str) -> Any:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        found = found[name] if name else found
    return found


def _first(choices: list[Any], root: dict[str, Any], depth: int) -> Any:
    """The first choice that comes to an end."""
    for choice in choices:
        try:
            return _value(choice, root, depth + 1)
        except _TooDeep:
            continue
    raise _TooDeep


def _together(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {k: v for k, v in schema.items() if k != "allOf"}
    for part in schema["allOf"]:
        while "$ref" in part:
            part = _at(root, part["$ref"])
        whole = {
            **whole,
            **part,
            "properties": {**whole.get("properties", {}), **part.get("properties", {})},
            "required": [*whole.get("required", []), *part.get("required", [])],
        }
    return whole


def _of_type(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    # Gemini's own dialect writes types in capitals.
    match kind.lower():
        case "object":
            properties = schema.get("properties", {})
            return {
                name: _value(properties.get(name, {}), root, depth + 1)
                for name in dict.fromkeys(schema.get("required", []))
            }
        case "array":
            count = int(schema.get("minItems", 0))
            return [_value(schema.get("items", {}), root, depth + 1) for _ in range(count)]
        case "integer" | "number":
            return _number(schema, whole=kind.lower() == "integer")
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "x" * int(schema.get("minLength", 0))


def _number(schema: dict[str, Any], *, whole: bool) -> float | int:
    step = schema.get("multipleOf", 1 if whole else 0)
    above = schema.get("exclusiveMinimum")
    least = schema.get("minimum", above)
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    if least is None:
        least = 0 if most is None or most > 0 else most - 1
    value = math.ceil(least / step) * step if step else least
    if above is not None and value <= above:
        value = value + step if step else (above + most) / 2 if most is not None else above + 1
    return int(value) if whole else value


def objects_in(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema within a schema, itself first.

    >>> [inner["type"] for inner in objects_in({"type": "array", "items": {"type": "null"}})]
    ['array', 'null']
    """
    if isinstance(schema, list):
        for item in schema:
            yield from objects_in(item)
    if not isinstance(schema, dict):
        return
    yield schema
    for word, inner in schema.items():
        if word in ("properties", "$defs", "definitions") and isinstance(inner, dict):
            yield from objects_in(list(inner.values()))
        elif word not in ("enum", "const", "default", "examples", "required"):
            yield from objects_in(inner)
