"""Build a small value that is valid for a JSON Schema, and iterate over the schemas inside one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 24


class _TooDeep(Exception):
    """The schema refers to itself endlessly."""


def minimal_instance(schema: dict[str, Any]) -> Any:
    """Build a small value that is valid for a schema; `pattern` is ignored."""
    try:
        return _build(schema, schema, 0)
    except _TooDeep:
        raise ValueError("no finite value fits this schema") from None


def _build(schema: Any, root: dict[str, Any], depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _TooDeep
    if not isinstance(schema, dict):
        return None
    if "$ref" in schema:
        return _build(_resolve(root, schema["$ref"]), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return _build_first(schema[keyword], root, depth)
    if "allOf" in schema:
        schema = _merge_all_of(schema, root)
    return _build_type(schema, root, depth)


def _resolve(root: dict[str, Any], reference: str) -> Any:
    target: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        target = target[name] if name else target
    return target


def _build_first(choices: list[Any], root: dict[str, Any], depth: int) -> Any:
    """Build the first choice that has a finite value."""
    for choice in choices:
        with contextlib.suppress(_TooDeep):
            return _build(choice, root, depth + 1)
    raise _TooDeep


def _merge_all_of(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {k: v for k, v in schema.items() if k != "allOf"}
    for branch in schema["allOf"]:
        while "$ref" in branch:
            branch = _resolve(root, branch["$ref"])
        properties = {**merged.get("properties", {}), **branch.get("properties", {})}
        required = [*merged.get("required", []), *branch.get("required", [])]
        merged = {**merged, **branch, "properties": properties, "required": required}
    return merged


def _build_type(schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    type_name = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(type_name, list):
        type_name = type_name[0]
    # Gemini's dialect writes types in capitals.
    match type_name.lower():
        case "object":
            properties = schema.get("properties", {})
            names = dict.fromkeys(schema.get("required", []))
            return {name: _build(properties.get(name, {}), root, depth + 1) for name in names}
        case "array":
            count = int(schema.get("minItems", 0))
            return [_build(schema.get("items", {}), root, depth + 1) for _ in range(count)]
        case "integer" | "number":
            return _build_number(schema, is_integer=type_name.lower() == "integer")
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "x" * int(schema.get("minLength", 0))


def _build_number(schema: dict[str, Any], *, is_integer: bool) -> float | int:
    step = schema.get("multipleOf", 1 if is_integer else 0)
    above = schema.get("exclusiveMinimum")
    minimum = schema.get("minimum", above)
    maximum = schema.get("maximum", schema.get("exclusiveMaximum"))
    if minimum is None:
        minimum = 0 if maximum is None or maximum > 0 else maximum - 1
    value = math.ceil(minimum / step) * step if step else minimum
    if above is not None and value <= above:
        value = value + step if step else (above + maximum) / 2 if maximum is not None else above + 1
    return int(value) if is_integer else value


def iter_subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Iterate over a schema and every schema inside it."""
    if isinstance(schema, list):
        for item in schema:
            yield from iter_subschemas(item)
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword, inner in schema.items():
        if keyword in ("properties", "$defs", "definitions") and isinstance(inner, dict):
            yield from iter_subschemas(list(inner.values()))
        elif keyword not in ("enum", "const", "default", "examples", "required"):
            yield from iter_subschemas(inner)
