"""Check that the output has the required structure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import Any

from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.formats.format_error import strip_allowed_fence
from proctor.evaluators.formats.json_text import check_json, explain_unserializable
from proctor.evaluators.formats.schema import (
    Draft,
    compile_schema,
    find_schema_errors,
    format_schema_error,
    is_undecided,
    load_schema,
)
from proctor.evaluators.plain_values import NO_OUTPUT
from proctor.records import codec
from proctor.records.score import Score

_MAX_IN_REASON = 3
_MAX_IN_DETAILS = 100


@evaluator(category="structural", pure=True)
def json_validity(output: Any, *, allow_fences: bool = False) -> Score:
    """Passes if the output is valid JSON according to RFC 8259.

    A string, or UTF-8 bytes, must be JSON from start to end: no NaN or Infinity, no comments or trailing commas, no
    byte order mark, no text around it. `allow_fences` accepts a Markdown code fence around it. Duplicate keys are
    valid, and the details list them. An output that is already data is valid if it can be serialized as JSON; None is
    invalid, the string "null" is valid.

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
