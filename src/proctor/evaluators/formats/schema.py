"""Load and compile JSON Schemas, and describe validation errors."""

from __future__ import annotations

import dataclasses
import functools
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.core import imports as importing
from proctor.core import optional as extras
from proctor.core.resources import describe_os_error
from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.errors import EvaluatorError, UsageError, suggest_name
from proctor.evaluators.formats.json_text import check_json
from proctor.evaluators.score_conversion import preview

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

Draft = typing.Literal["4", "6", "7", "2019-09", "2020-12"]

WHERE = "schema_match"
_META_SCHEMAS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
# Formats that drafts before 2019-09 do not define, although their schemas use them.
_NEWER_FORMATS = ("uuid", "duration")
_ADDRESS = re.compile(r"(?!\w:[\\/])[\w./\\-]+:[A-Za-z_][\w.]*")
# Replaces the value in the validator's messages, because it may be very long.
_MASK = "\x00"
_FIX = "pass a mapping, a boolean, the path of a JSON or YAML file, a class, or its address (module:Class)"


def load_schema(source: Any) -> dict[str, Any] | bool:
    """Return the schema in a mapping, a string, a file, a class, or the class at an address."""
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, str) and source.lstrip().startswith("{"):
        source = _parse_json(source, WHERE)
    elif isinstance(source, str) and _ADDRESS.fullmatch(source):
        try:
            source = importing.import_object(source)
        except UsageError as error:
            raise EvaluatorError(error.what, where=WHERE, fix=error.fix) from None
    elif isinstance(source, Path) or (isinstance(source, str) and source.strip()):
        source = _read_file(Path(source))
    if isinstance(source, dict | bool):
        return source
    if extras.is_pydantic_model(source):
        return dict(source.model_json_schema())
    is_class = isinstance(source, type) and source.__module__ != "builtins"
    if is_class or dataclasses.is_dataclass(source) or typing.get_origin(source) is not None:
        try:
            return dict(msgspec.json.schema(source))
        except TypeError as error:
            raise EvaluatorError(f"{preview(source)} has no schema: {error}", where=WHERE) from None
    raise EvaluatorError(f"{preview(source)} is not a schema", where=WHERE, fix=_FIX)


def compile_schema(
    schema: dict[str, Any] | bool,
    *,
    draft: str | None = None,
    formats: bool = True,
    referenced_schemas: Mapping[str, Any] | None = None,
) -> Validator:
    """Return a validator, or an error that explains the problem with the schema; nothing is downloaded.

    `referenced_schemas` contains the targets of `$ref` by address. With `formats`, "format" is validated in every
    draft; without it, the meta-schema decides.
    """
    import jsonschema_rs

    if draft is not None and draft not in _META_SCHEMAS:
        fix = suggest_name(str(draft), _META_SCHEMAS)
        raise EvaluatorError(f"unknown draft {draft!r}", where=WHERE, fix=fix)
    if draft is not None and not isinstance(schema, bool):
        schema = {"$schema": _META_SCHEMAS[draft]} | schema
    declared = "" if isinstance(schema, bool) else str(schema.get("$schema", ""))
    # Before the 2019 draft, formats are only annotations; since then the meta-schema decides.
    formats_by_draft = False if "draft-0" in declared else None
    resources = [(uri, load_schema(other)) for uri, other in (referenced_schemas or {}).items()]
    try:
        registry = jsonschema_rs.Registry(resources, retriever=_reject_download) if resources else None
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=formats or formats_by_draft,
            formats={name: _load_newer_format(name).is_valid for name in _NEWER_FORMATS} if formats else None,
            email_options=jsonschema_rs.EmailOptions(allow_display_text=False),
            retriever=_reject_download,
            registry=registry,
            mask=_MASK,
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=1_000_000),
        )
    except jsonschema_rs.ValidationError as error:
        what = format_schema_error(".".join(map(str, error.instance_path)), _get_message(error))
        is_reference = error.kind.name == "$ref"
        fix = 'put the target into "$defs", or pass schemas={…}; nothing is downloaded' if is_reference else ""
        raise EvaluatorError(f"the JSON Schema is invalid: {what}", where=WHERE, fix=fix) from None
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        raise EvaluatorError(f"the JSON Schema is invalid: {error}", where=WHERE) from None


@functools.cache
def _load_newer_format(name: str) -> Validator:
    import jsonschema_rs

    return jsonschema_rs.validator_for({"$schema": _META_SCHEMAS["2020-12"], "format": name}, validate_formats=True)


def find_schema_errors(validator: Validator, instance: Any) -> Iterator[dict[str, Any]]:
    """Yield each error with its path, message and rule."""
    return map(_describe, validator.iter_errors(instance))


def _describe(error: ValidationError) -> dict[str, Any]:
    description: dict[str, Any] = {
        "path": ".".join(map(str, error.instance_path)),
        "message": _get_message(error),
        "rule": error.kind.name,
    }
    branches = getattr(error.kind, "context", None)
    if branches and error.kind.name in ("anyOf", "oneOf"):
        description["branches"] = [
            [format_schema_error(inner["path"], inner["message"]) for inner in map(_describe, branch)]
            for branch in branches
        ]
    return description


def format_schema_error(path: str, message: str) -> str:
    """Return an error on one line."""
    return f"{path}: {message}" if path else message


def is_undecided(error: Mapping[str, Any]) -> bool:
    """Return True if a pattern took too long, so that the result of the validation is unknown."""
    return str(error["message"]).startswith("Error executing regex")


def _get_message(error: ValidationError) -> str:
    return error.message.replace(_MASK, preview(error.instance))


def _read_file(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        what = describe_os_error(error, "the schema cannot be read")
        raise EvaluatorError(what, where=str(path), fix=_FIX) from None
    if path.suffix in (".yaml", ".yml"):
        try:
            return load_yaml(text)
        except InvalidYAML as error:
            what = f"not valid YAML: {error.what}"
            raise EvaluatorError(what, where=error.where(path), fix=error.fix) from None
    return _parse_json(text, str(path))


def _parse_json(text: str, where: str) -> Any:
    error = check_json(text).error
    if error is not None:
        raise EvaluatorError(f"the schema is not JSON: {error}", where=where)
    return msgspec.json.decode(text)


def _reject_download(uri: str) -> Any:
    raise ValueError(f"{uri} is not in schemas")
