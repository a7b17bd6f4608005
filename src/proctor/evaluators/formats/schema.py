"""JSON Schema: a schema from wherever it is, compiled once, and its complaints in words."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.core import imports as importing
from proctor.core import optional as extras
from proctor.core.yaml_text import load_yaml
from proctor.errors import EvaluatorError, UsageError, suggest_name
from proctor.evaluators.formats.json_text import check_json
from proctor.evaluators.score_conversion import preview

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

Draft = typing.Literal["4", "6", "7", "2019-09", "2020-12"]

WHERE = "schema_match"
_META = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
_ADDRESS = re.compile(r"(?!\w:[\\/])[\w./\\-]+:[A-Za-z_][\w.]*")
# Stands in the validator's message for the value, which may be very long.
_VALUE = "\x00"
_TAKEN = "give a mapping, a boolean, the path of a JSON or YAML file, a class, or its address (module:Class)"


def load_schema(source: Any) -> dict[str, Any] | bool:
    """The schema that a mapping, text, file, address or class stands for."""
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, bool):
        return source
    if isinstance(source, str):
        source = _from_text(source)
    elif isinstance(source, Path):
        source = _from_file(source)
    if isinstance(source, dict | bool):
        return source
    if extras.is_pydantic_model(source):
        return dict(source.model_json_schema())
    if _is_type(source):
        try:
            return dict(msgspec.json.schema(source))
        except TypeError as error:
            raise EvaluatorError(f"{preview(source)} has no schema: {error}", where=WHERE) from None
    raise EvaluatorError(f"{preview(source)} is not a schema", where=WHERE, fix=_TAKEN)


def compile_schema(
    schema: dict[str, Any] | bool,
    *,
    draft: str | None = None,
    formats: bool = False,
    others: Mapping[str, Any] | None = None,
) -> Validator:
    """A validator for a schema, or an error that says what is wrong with it; nothing is fetched.

    `others` are the schemas that it may refer to, by their addresses.
    """
    import jsonschema_rs

    if draft is not None:
        schema = _in_draft(schema, draft)
    resources = [(uri, load_schema(other)) for uri, other in (others or {}).items()]
    try:
        registry = jsonschema_rs.Registry(resources, retriever=_refuse) if resources else None
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=formats or _as_the_draft_says(schema),
            retriever=_refuse,
            registry=registry,
            mask=_VALUE,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=1_000_000),
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise _refused(error) from None


def find_schema_errors(validator: Validator, instance: Any) -> Iterator[dict[str, Any]]:
    """Everything that is wrong with data, each with its path and in words."""
    for error in validator.iter_errors(instance):
        yield _complaint(error)


def _complaint(error: ValidationError) -> dict[str, Any]:
    told: dict[str, Any] = {
        "path": ".".join(map(str, error.instance_path)),
        "message": _words(error),
        "rule": error.kind.name,
    }
    branches = getattr(error.kind, "context", None)
    if branches and error.kind.name in ("anyOf", "oneOf"):
        told["branches"] = [[_line(_complaint(one)) for one in branch] for branch in branches]
    return told


def _line(complaint: Mapping[str, Any]) -> str:
    return format_schema_error(complaint["path"], complaint["message"])


def format_schema_error(path: str, message: str) -> str:
    """One complaint in one line."""
    return f"{path}: {message}" if path else message


def is_undecided(complaint: Mapping[str, Any]) -> bool:
    """True if a pattern was given up, so that nobody knows whether the data fits."""
    return str(complaint["message"]).startswith("Error executing regex")


def _words(error: ValidationError) -> str:
    return error.message.replace(_VALUE, preview(error.instance))


def _from_text(text: str) -> Any:
    """What a text stands for: a schema itself, the address of a class, or a file."""
    if text.lstrip().startswith("{"):
        return _decoded(text, WHERE)
    if _ADDRESS.fullmatch(text):
        try:
            return importing.import_object(text)
        except UsageError as error:
            raise EvaluatorError(error.what, where=WHERE, fix=error.fix) from None
    return _from_file(Path(text))


def _from_file(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise EvaluatorError(
            f"the schema {str(path)!r} cannot be read: {error}", where=WHERE, fix=_TAKEN
        ) from None
    if path.suffix in (".yaml", ".yml"):
        import yaml

        try:
            return load_yaml(text)
        except (yaml.YAMLError, ValueError) as error:
            raise EvaluatorError(f"it is not YAML: {error}", where=str(path)) from None
    return _decoded(text, str(path))


def _decoded(text: str, where: str) -> Any:
    fault = check_json(text).fault
    if fault is not None:
        raise EvaluatorError(f"the schema is not JSON: {fault}", where=where)
    return msgspec.json.decode(text)


def _is_type(source: Any) -> bool:
    made = isinstance(source, type) and source.__module__ != "builtins"
    return made or dataclasses.is_dataclass(source) or typing.get_origin(source) is not None


def _in_draft(schema: dict[str, Any] | bool, draft: str) -> dict[str, Any] | bool:
    """The schema with the draft written into it, where it does not say one itself."""
    if draft not in _META:
        raise EvaluatorError(f"there is no draft {draft!r}", where=WHERE, fix=suggest_name(str(draft), _META))
    if isinstance(schema, bool):
        return schema
    return {"$schema": _META[draft]} | schema


def _as_the_draft_says(schema: dict[str, Any] | bool) -> bool | None:
    """Formats are notes to the reader; since 2019 a schema's own meta-schema may say otherwise."""
    declared = "" if isinstance(schema, bool) else str(schema.get("$schema", ""))
    return False if "draft-0" in declared else None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not among the schemas given")


def _refused(error: Exception) -> EvaluatorError:
    import jsonschema_rs

    fix = ""
    if isinstance(error, jsonschema_rs.ValidationError):
        path = ".".join(map(str, error.instance_path))
        told = format_schema_error(path, _words(error))
        if error.kind.name == "$ref":
            fix = 'nothing is fetched: put what it refers to into "$defs", or give schemas={…}'
    else:
        told = str(error)
    return EvaluatorError(f"this is not a sound JSON Schema: {told}", where=WHERE, fix=fix)
