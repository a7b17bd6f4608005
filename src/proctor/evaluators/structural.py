"""Structural: whether the output has the form it should have, whatever it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import Any

from proctor.evaluators.formats.fault import without_fence
from proctor.evaluators.formats.json_text import read, unwritable
from proctor.evaluators.formats.schema import Draft, compiled, complaints, line, schema_from, undecided
from proctor.evaluators.marking import evaluator, made
from proctor.records import codec
from proctor.records.score import Score

NO_OUTPUT = "the output is None: the target returned nothing"
_TOLD_AT_MOST = 3
_KEPT_AT_MOST = 100


@evaluator(category="structural", pure=True)
def json_validity(output: Any, *, allow_fences: bool = False) -> Score:
    """Passes if the output is valid JSON, to the letter of RFC 8259.

    A text, or bytes in UTF-8, is read as a whole: no NaN or Infinity, no comments or trailing
    commas, no byte order mark, no prose around it, at any depth. `allow_fences` accepts a
    Markdown code fence around it. Keys that repeat are allowed by the standard; the details name
    them. An output that is data already is valid if it can be written as JSON; None is no output,
    the text "null" is valid.

    >>> json_validity('{"city": "Paris"}').passed
    True
    >>> json_validity("{'city': 'Paris'}").reason
    'line 1, column 2: strings stand in double quotes, not in single ones'
    """
    details: dict[str, Any] = {"method": "rfc8259"}
    if output is None:
        return Score(0.0, False, NO_OUTPUT, details)
    if not isinstance(output, str | bytes | bytearray):
        why = unwritable(output)
        return Score(0.0 if why else 1.0, not why, why, details)
    text, before = without_fence(output, allow_fences)
    fault, duplicates = read(text)
    if duplicates:
        details["duplicate_keys"] = duplicates
    if fault is not None:
        fault = fault.below(before)
        return Score(0.0, False, str(fault), {**details, **fault.place})
    repeated = f"valid, but keys repeat: {', '.join(duplicates)}" if duplicates else ""
    return Score(1.0, True, repeated, details)


@evaluator(category="structural", factory=True, needs=())
def schema_match(
    schema: Any,
    draft: Draft | None = None,
    formats: bool = False,
    parse: bool = True,
    allow_fences: bool = False,
    schemas: Mapping[str, Any] | None = None,
) -> Callable[[Any], Score]:
    """Passes if the output fits a JSON Schema; all that does not fit is listed with its path.

    `schema` is a mapping, the path of a JSON or YAML file, a pydantic model, a struct or a
    dataclass, or the address of one (`module:Class`). The draft is what its `$schema` says, else
    `draft`, else 2020-12. `formats` asserts "format", which otherwise is a note. Nothing is ever
    fetched: `schemas` holds what `$ref` refers to, by address. A text is read as JSON first (with
    `allow_fences` also out of a Markdown fence); with `parse=False` it is a plain string.

    >>> adult = schema_match({"properties": {"age": {"type": "integer", "minimum": 18}}})
    >>> adult('{"age": 21}').passed
    True
    >>> adult({"age": 9}).reason
    'age: 9 is less than the minimum of 18'
    """
    plain = schema_from(schema)
    validator = compiled(plain, draft=draft, formats=formats, others=schemas)

    def evaluate(output: Any) -> Score:
        details: dict[str, Any] = {"method": "json_schema"}
        data, score = _data_of(output, parse, allow_fences)
        if score is not None:
            return score
        try:
            errors = list(islice(complaints(validator, data), _KEPT_AT_MOST + 1))
        except UnicodeEncodeError:
            # JSON can escape one; no text that a validator reads can hold it.
            return Score.error("it holds half a surrogate pair, which cannot be judged", details)
        if not errors:
            return Score(1.0, True, "", details)
        details |= {"error_count": len(errors), "errors": errors[:_KEPT_AT_MOST]}
        if all(undecided(error) for error in errors):
            return Score.error(errors[0]["message"], details)
        return Score(0.0, False, _summary(errors), details)

    options = {"draft": draft, "formats": formats, "parse": parse, "allow_fences": allow_fences}
    # The schema itself, so that a run is told from another when the file has changed.
    others = {uri: schema_from(other) for uri, other in (schemas or {}).items()}
    return made(evaluate, by=schema_match, schema=plain, schemas=others or None, **options)


@evaluator(category="structural", factory=True, needs=())
def format_compliance(
    format: str | Sequence[str],  # noqa: A002 - the word people use
    pattern: str | None = None,
    columns: int | Sequence[str] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    schemes: Sequence[str] | None = None,
    allow_fences: bool = False,
) -> Callable[[Any], Score]:
    """Passes if the output is written in a format; of several formats any will do.

    Formats: email, url, uri, hostname, ipv4, ipv6, phone (E.164: + and digits without spaces, as in
    +14155550123), uuid, date, time, datetime (ISO 8601), rfc3339, duration, number, integer,
    boolean, base64, base64url, hex, semver,
    regex (`pattern` matches all of it; as in JSON Schema, and given up rather than run away),
    json, yaml, toml, python, xml, html, markdown, csv and tsv (`columns` is their number or their
    names, `header` says whether the first row names them, `delimiter` stands for the comma of
    csv). For url, `schemes` are those allowed. White space around single values does not matter.
    `allow_fences` accepts a Markdown code fence around it. The form is checked, never whether
    what is named exists; how far html and markdown are checked is told in their docstrings.

    >>> format_compliance("date")("2023-02-29").reason
    'there is no day 2023-02-29: day is out of range for month'
    >>> format_compliance(["ipv4", "hostname"])("example.org").details["format"]
    'hostname'
    """
    names = list(format) if isinstance(format, list | tuple) else [format]
    given = {
        "pattern": pattern,
        "columns": columns if columns is None or isinstance(columns, int) else tuple(columns),
        "header": header,
        "delimiter": delimiter,
        "schemes": None if schemes is None else tuple(schemes),
    }
    # The parsers are loaded for those who ask for one.
    from proctor.evaluators.formats.compliance import agreed, verdict

    wanted, terms = agreed(names, given)

    def evaluate(output: Any) -> Score:
        return verdict(output, wanted, terms, allow_fences)

    options = {**given, "allow_fences": allow_fences}
    return made(evaluate, by=format_compliance, format=format, **options)


def _data_of(output: Any, parse: bool, allow_fences: bool) -> tuple[Any, Score | None]:
    """The data to hold against a schema, or the score where there is none."""
    details: dict[str, Any] = {"method": "json_schema"}
    if isinstance(output, str | bytes | bytearray) and parse:
        text, before = without_fence(output, allow_fences)
        fault = read(text).fault
        if fault is not None:
            fault = fault.below(before)
            return None, Score(0.0, False, f"not JSON: {fault}", details | fault.place)
        try:
            return json.loads(text, parse_float=_float), None
        except (RecursionError, ValueError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
            return None, Score.error(f"the JSON cannot be read: {why}", details)
    if why := unwritable(output):
        return None, Score(0.0, False, f"not JSON: {why}", details)
    return codec.plain(output), None


def _float(written: str) -> float | Decimal:
    """A number as JSON means it, also where it is too great for a float."""
    number = float(written)
    return number if isfinite(number) else Decimal(written)


def _summary(errors: Sequence[Mapping[str, Any]]) -> str:
    told = "; ".join(line(one["path"], one["message"]) for one in errors[:_TOLD_AT_MOST])
    more = len(errors) - _TOLD_AT_MOST
    if len(errors) > _KEPT_AT_MOST:
        return f"{told}; and more than {_KEPT_AT_MOST - _TOLD_AT_MOST} more"
    return f"{told}; and {more} more" if more > 0 else told
