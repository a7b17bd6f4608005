"""Check that the output has the required structure: JSON, a JSON Schema, or another format."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.core import imports as importing
from proctor.core import optional as extras
from proctor.core.resources import describe_os_error
from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.errors import EvaluatorError, UsageError, suggest_name
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.formats.format_error import strip_allowed_fence
from proctor.evaluators.formats.json_text import check_json, explain_unserializable
from proctor.evaluators.plain_values import NO_OUTPUT
from proctor.evaluators.score_conversion import preview
from proctor.records import codec
from proctor.records.score import Score

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

_MAX_IN_REASON = 3
_MAX_IN_DETAILS = 100
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


@evaluator(category="structural", pure=True)
def json_validity(output: Any, *, allow_fences: bool = False) -> Score:
    """Passes if the output is valid JSON according to RFC 8259.

    A string, or UTF-8 bytes, must be JSON from start to end: no NaN or Infinity, no comments or trailing commas, no
    byte order mark, no text around it. `allow_fences` accepts a Markdown code fence around it. Duplicate keys are
    valid, and the details list them. An output that is already data is valid if it has only values of JSON: mappings,
    lists, strings, numbers, booleans and None, but no sets, bytes, dates or Decimals. Keys may be numbers, booleans or
    None, which `json.dumps` writes as strings. The fields of a model, struct or dataclass may be dates, Decimals, UUIDs
    or enums, which it writes as strings. None is invalid, the string "null" is valid.

    >>> json_validity('{"city": "Paris"}').passed
    True
    >>> json_validity("{'city': 'Paris'}").reason
    'line 1, column 2: strings need double quotes, not single quotes'
    """
    details: dict[str, Any] = {"method": "rfc8259"}
    if output is None:
        return Score(0.0, False, NO_OUTPUT, details)
    if not isinstance(output, str | bytes | bytearray):
        problem = explain_unserializable(output)
        return Score(0.0 if problem else 1.0, not problem, problem, details)
    text, lines_before = strip_allowed_fence(output, allow_fences)
    error, duplicates = check_json(text)
    if duplicates:
        details["duplicate_keys"] = duplicates
    if error is not None:
        error = error.move_down(lines_before)
        return Score(0.0, False, str(error), {**details, **error.position})
    reason = f"valid, but has duplicate keys: {', '.join(duplicates)}" if duplicates else ""
    return Score(1.0, True, reason, details)


@evaluator(category="structural", factory=True, needs=())
def schema_match(
    schema: Any,
    draft: Draft | None = None,
    formats: bool = True,
    parse: bool = True,
    allow_fences: bool = False,
    schemas: Mapping[str, Any] | None = None,
) -> Callable[[Any], Score]:
    """Passes if the output is valid against a JSON Schema; the details list all errors with their paths.

    `schema` is a mapping, the path of a JSON or YAML file, a pydantic model, a struct or a dataclass, or the address of
    a class (`module:Class`). The draft comes from its `$schema`, then from `draft`, and is 2020-12 by default.
    "format" is validated unless `formats` is False. Nothing is downloaded: `schemas` contains the targets of `$ref` by
    address. A string is parsed as JSON first (with `allow_fences` also inside a Markdown fence); with `parse=False` it
    is a plain string.

    >>> adult = schema_match({"properties": {"age": {"type": "integer", "minimum": 18}}})
    >>> adult('{"age": 21}').passed
    True
    >>> adult({"age": 9}).reason
    'age: 9 is less than the minimum of 18'
    """
    plain = load_schema(schema)
    validator = compile_schema(plain, draft=draft, formats=formats, referenced_schemas=schemas)

    def evaluate(output: Any) -> Score:
        details: dict[str, Any] = {"method": "json_schema"}
        data, score = _read_data(output, parse, allow_fences)
        if score is not None:
            return score
        try:
            errors = list(islice(find_schema_errors(validator, data), _MAX_IN_DETAILS + 1))
        except UnicodeEncodeError:
            # JSON can escape half a surrogate pair; validators cannot read it.
            return Score.error("the output contains a lone surrogate, which cannot be validated", details)
        if not errors:
            return Score(1.0, True, "", details)
        details |= {"error_count": len(errors), "errors": errors[:_MAX_IN_DETAILS]}
        if all(is_undecided(error) for error in errors):
            return Score.error(errors[0]["message"], details)
        return Score(0.0, False, _summarize(errors), details)

    options = {"draft": draft, "formats": formats, "parse": parse, "allow_fences": allow_fences}
    # Store the schema itself, so that a changed file changes the identity of the run.
    others = {uri: load_schema(other) for uri, other in (schemas or {}).items()}
    return tag_evaluator(evaluate, factory=schema_match, schema=plain, schemas=others or None, **options)


@evaluator(category="structural", factory=True, needs=())
def format_compliance(
    format: str | Sequence[str],  # noqa: A002 - the name in eval files
    pattern: str | None = None,
    columns: int | Sequence[str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    schemes: Sequence[str] | None = None,
    allow_fences: bool = False,
) -> Callable[[Any], Score]:
    """Passes if the output matches a format, or any of several formats.

    Formats: email, url, uri, hostname, ipv4, ipv6, phone (E.164: + and digits without spaces, as in +14155550123),
    uuid, date, time, datetime (ISO 8601), rfc3339, duration, number, integer, boolean, base64, base64url, hex, semver,
    regex (`pattern` must match the whole output, with JSON Schema syntax and a time limit), json, yaml, toml, python,
    xml, html, markdown, csv and tsv (`columns` is their number or their names, `header` is True if the first row
    contains the names, `delimiter` replaces the comma of csv). For url, `schemes` lists the allowed schemes. Whitespace
    around single values is ignored. `allow_fences` accepts a Markdown code fence around it. Only the form is checked,
    not whether an address exists.

    >>> format_compliance("date")("2023-02-29").reason
    '2023-02-29 is not a date: day is out of range for month'
    >>> format_compliance(["ipv4", "hostname"])("example.org").details["format"]
    'hostname'
    """
    names = list(format) if isinstance(format, list | tuple) else [format]
    options = {
        "pattern": pattern,
        "columns": columns if columns is None or isinstance(columns, int) else tuple(columns),
        "header": header,
        "delimiter": delimiter,
        "schemes": None if schemes is None else tuple(schemes),
    }
    # Slow to import, and needed only for this evaluator.
    from proctor.evaluators.formats.catalogue import score_formats, select_formats

    formats, checked_options = select_formats(names, options)

    def evaluate(output: Any) -> Score:
        return score_formats(output, formats, checked_options, allow_fences)

    return tag_evaluator(evaluate, factory=format_compliance, format=format, **options, allow_fences=allow_fences)


def _read_data(output: Any, parse: bool, allow_fences: bool) -> tuple[Any, Score | None]:
    """Return the data to validate, or a score if there is no data."""
    details: dict[str, Any] = {"method": "json_schema"}
    if isinstance(output, str | bytes | bytearray) and parse:
        text, lines_before = strip_allowed_fence(output, allow_fences)
        error = check_json(text).error
        if error is not None:
            error = error.move_down(lines_before)
            return None, Score(0.0, False, f"not JSON: {error}", details | error.position)
        try:
            return json.loads(text, parse_float=_parse_float), None
        except (RecursionError, ValueError) as exception:
            problem = "it is too deeply nested" if isinstance(exception, RecursionError) else str(exception)
            return None, Score.error(f"the JSON cannot be read: {problem}", details)
    if problem := explain_unserializable(output):
        return None, Score(0.0, False, f"not JSON: {problem}", details)
    return codec.to_plain(output), None


def _parse_float(text: str) -> float | Decimal:
    # JSON numbers may be too large for a float.
    number = float(text)
    return number if isfinite(number) else Decimal(text)


def _summarize(errors: Sequence[Mapping[str, Any]]) -> str:
    summary = "; ".join(format_schema_error(error["path"], error["message"]) for error in errors[:_MAX_IN_REASON])
    more = len(errors) - _MAX_IN_REASON
    if len(errors) > _MAX_IN_DETAILS:
        return f"{summary}; and more than {_MAX_IN_DETAILS - _MAX_IN_REASON} more"
    return f"{summary}; and {more} more" if more > 0 else summary


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
