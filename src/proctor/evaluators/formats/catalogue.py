"""The formats by name with their options, and the check of an output against them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date as calendar_day
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from proctor.errors import EvaluatorError, Problem, suggest_name
from proctor.evaluators.formats import json_text, markup, scalars
from proctor.evaluators.formats.format_error import FormatError, FormatOptions, make_error_at, strip_allowed_fence
from proctor.evaluators.formats.json_text import LONE_SURROGATE, SURROGATE, explain_unserializable
from proctor.evaluators.formats.scalars import Check, compile_regex, make_pattern_check, make_validator_check
from proctor.evaluators.score_conversion import preview
from proctor.records import codec
from proctor.records.sample import type_name
from proctor.records.score import Score

if TYPE_CHECKING:
    from yaml.nodes import Node


def check_csv(text: str, options: FormatOptions) -> FormatError | None:
    """Check a table according to RFC 4180: rows of equal length and closed quotation marks; empty lines are ignored.

    With `header`, the first row contains unique column names.
    """
    return _check_rows(_read_csv_rows(text, options.delimiter), options)


def check_tsv(text: str, options: FormatOptions) -> FormatError | None:
    """Check a table with tabs between the values and without quotation marks."""
    return _check_rows(_read_tsv_rows(text), options)


def _read_csv_rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]] | FormatError]:
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    start = 1
    while True:
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "limit" in str(error):
                raise EvaluatorError(f"a value is too long to be read: {error}") from None
            yield FormatError(str(error), start)
            break
        if row:
            yield start, row
        start = reader.line_num + 1


def _read_tsv_rows(text: str) -> Iterator[tuple[int, list[str]] | FormatError]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line:
            yield number, line.split("\t")


def _check_rows(rows: Iterator[tuple[int, list[str]] | FormatError], options: FormatOptions) -> FormatError | None:
    width = None
    for row in rows:
        if isinstance(row, FormatError):
            return row
        number, values = row
        if width is None:
            width = len(values)
            if error := _check_first_row(number, values, options):
                return error
        elif len(values) != width:
            unit = "value" if len(values) == 1 else "values"
            return FormatError(f"the row has {len(values)} {unit}, the first row has {width}", number)
    return FormatError("there is no row") if width is None else None


def _check_first_row(line: int, values: list[str], options: FormatOptions) -> FormatError | None:
    columns = options.columns
    if columns is None and len(values) == 1:
        return FormatError("it has only one column (columns=1 allows that)", line)
    if isinstance(columns, int) and columns != len(values):
        unit = "column" if len(values) == 1 else "columns"
        return FormatError(f"it has {len(values)} {unit}, not {columns}", line)
    if isinstance(columns, tuple) and list(columns) != values:
        return FormatError(f"the columns are {', '.join(values)}, not {', '.join(columns)}", line)
    if not options.header:
        return None
    names = [name.strip() for name in values]
    if "" in names:
        return FormatError(f"column {names.index('') + 1} has no name", line)
    name, count = Counter(names).most_common(1)[0]
    return FormatError(f"{count} columns are called {name!r}", line) if count > 1 else None


_POSITION = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)\Z")
_MERGE = "tag:yaml.org,2002:merge"
# The parsers of YAML and TOML take quadratic time for deeper nesting.
_MAX_DEPTH = 200
_MAX_LINE = 20_000
_BRACKETS = re.compile(r"[\[\]{}]")
_LONG_KEY = re.compile(rf"(?<![\w.-])(?:[\w-]++\.){{{_MAX_DEPTH}}}")
_TOO_DEEP = FormatError("it is too deeply nested")


def check_json(text: str, _: FormatOptions) -> FormatError | None:
    """Check JSON (RFC 8259)."""
    return json_text.check_json(text).error


def check_toml(text: str, _: FormatOptions) -> FormatError | None:
    """Check TOML 1.0 with the standard library's parser."""
    import tomllib

    if not text.strip():
        return FormatError("it is empty")
    if max(map(len, text.splitlines()), default=0) > _MAX_LINE:
        # The standard library's parser takes quadratic time for a long dotted key.
        raise EvaluatorError(f"a line in it has more than {_MAX_LINE:,} characters")
    if _LONG_KEY.search(text):
        raise EvaluatorError(f"a key in it has more than {_MAX_DEPTH} parts")
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = _POSITION.sub("", str(error))
        position = _POSITION.search(str(error))
        if position is None or position[1] is None:
            return make_error_at(text, len(text), what)
        return FormatError(what, int(position[1]), int(position[2]))
    except RecursionError:
        return _TOO_DEEP
    return None


def check_yaml(text: str, _: FormatOptions) -> FormatError | None:
    """Check YAML 1.1 that builds only plain data, with a mapping or a list at the top.

    Prose, which YAML reads as a single string, and duplicate keys are errors.
    """
    from yaml import SafeLoader, YAMLError, compose

    steps = (1 if match[0] in "[{" else -1 for match in _BRACKETS.finditer(text))
    if max(accumulate(steps), default=0) > _MAX_DEPTH:
        raise EvaluatorError(f"it has more than {_MAX_DEPTH} nested brackets")
    try:
        node = compose(text, Loader=SafeLoader)
        if node is None:
            return FormatError("it is empty")
        if not isinstance(node.value, list):
            return FormatError("it is a single value, not a mapping or a list")
        return next(_find_invalid_nodes(node), None)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = str(getattr(error, "problem", None) or error).partition("\n")[0]
        return FormatError(what) if mark is None else FormatError(what, mark.line + 1, mark.column + 1)
    except RecursionError:
        return _TOO_DEEP


def check_python(text: str, _: FormatOptions) -> FormatError | None:
    """Check that Python code parses, in the version that Proctor runs on; nothing is run."""
    import ast
    import warnings

    if not text.strip():
        return FormatError("it is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return FormatError(error.msg, error.lineno or 0, error.offset or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return _TOO_DEEP if not isinstance(error, ValueError) else FormatError(str(error))
    return None


def _find_invalid_nodes(top: Node) -> Iterator[FormatError]:
    """Yield tags that do not build plain data, and duplicate keys."""
    from yaml import MappingNode, SafeLoader, ScalarNode

    visited: set[int] = set()
    pending: list[Any] = [top]
    while pending:
        node = pending.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        if node.tag not in SafeLoader.yaml_constructors and node.tag != _MERGE:
            yield FormatError(f"the tag {node.tag} does not create plain data", line, column)
        if isinstance(node, MappingNode):
            keys = [key for key, _ in node.value if isinstance(key, ScalarNode)]
            yield from _find_duplicate_keys(keys)
        if not isinstance(node, ScalarNode):
            children = [child for item in node.value for child in (item if isinstance(item, tuple) else (item,))]
            pending += reversed(children)


def _find_duplicate_keys(keys: list[Any]) -> Iterator[FormatError]:
    seen_keys = set()
    for key in keys:
        if (key.tag, key.value) in seen_keys:
            mark = key.start_mark
            yield FormatError(f"the key {key.value!r} occurs twice", mark.line + 1, mark.column + 1)
        seen_keys.add((key.tag, key.value))


_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?")
_TO_THE_SECOND = re.compile(r":[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})\Z")
_AMOUNT = r"[0-9]+(?:[.,][0-9]+)?"
_DURATION = re.compile(
    rf"P(?=[0-9T])(?:{_AMOUNT}W|(?:{_AMOUNT}Y)?(?:{_AMOUNT}M)?(?:{_AMOUNT}D)?"
    rf"(?:T(?=[0-9])(?:{_AMOUNT}H)?(?:{_AMOUNT}M)?(?:{_AMOUNT}S)?)?)"
)
# Only the smallest unit may have a fraction.
_EARLY_FRACTION = re.compile(r"[.,][0-9]+[A-Z].*[0-9]")


def check_date(text: str, _: FormatOptions) -> FormatError | None:
    """Check a calendar date in the form YYYY-MM-DD."""
    match = _DATE.fullmatch(text)
    if match is None:
        return FormatError(f"{preview(text)} does not have the form YYYY-MM-DD")
    try:
        calendar_day(*map(int, match.groups()))
    except ValueError as error:
        return FormatError(f"{text} is not a date: {error}")
    return None


def check_time(text: str, _: FormatOptions) -> FormatError | None:
    """Check a time of day in the form HH:MM or HH:MM:SS, with an optional offset."""
    match = _TIME.fullmatch(text)
    if match is None:
        return FormatError(f"{preview(text)} does not have the form HH:MM[:SS], with or without an offset")
    hour, minute, second = (int(digits or 0) for digits in match.groups()[:3])
    is_midnight = (hour, minute, second) == (24, 0, 0)
    # Second 60 is a leap second.
    if not is_midnight and (hour > 23 or minute > 59 or second > 60):
        return FormatError(f"{text} is not a time of day")
    offset = re.findall("[0-9]{2}", match[4] or "")
    if any(int(digits) > limit for digits, limit in zip(offset, (23, 59), strict=False)):
        return FormatError(f"{match[4]} is not an offset")
    return None


def check_datetime(text: str, options: FormatOptions) -> FormatError | None:
    """Check a date and a time (ISO 8601), with T or a space between them."""
    day, _, clock = text.replace("t", "T", 1).replace(" ", "T", 1).partition("T")
    if not clock:
        return FormatError(f"{preview(text)} does not have the form YYYY-MM-DDTHH:MM:SS")
    return check_date(day, options) or check_time(clock, options)


def check_rfc3339(text: str, options: FormatOptions) -> FormatError | None:
    """Check a timestamp according to RFC 3339: with seconds and an offset."""
    error = check_datetime(text, options)
    if error is None and not _TO_THE_SECOND.search(text):
        return FormatError(f"{preview(text)} has no seconds, or no offset such as Z or +01:00")
    if error is None and text[11:13] == "24":
        return FormatError("RFC 3339 writes midnight as 00:00:00")
    return error


def check_duration(text: str, _: FormatOptions) -> FormatError | None:
    """Check a duration (ISO 8601), such as P3DT12H or PT0.5S."""
    if _DURATION.fullmatch(text) and not _EARLY_FRACTION.search(text):
        return None
    return FormatError(f"{preview(text)} is not a duration such as P3DT12H, PT0.5S or P2W")


class Format(NamedTuple):
    """The check and the options of a format, and whether to remove surrounding whitespace.

    `data` lists other types whose values have the format.
    """

    check: Check
    options: tuple[str, ...] = ()
    strip: bool = True
    data: tuple[type, ...] = ()


FORMATS: dict[str, Format] = {
    "email": Format(make_validator_check("email", "an email address (RFC 5321)")),
    "url": Format(scalars.check_url, ("schemes",)),
    "uri": Format(scalars.check_uri),
    "hostname": Format(make_validator_check("hostname", "the name of a host (RFC 1123)")),
    "ipv4": Format(scalars.check_ipv4),
    "ipv6": Format(scalars.check_ipv6),
    "phone": Format(make_pattern_check(r"\+[1-9][0-9]{1,14}", "+ and up to 15 digits, the first not 0 (E.164)")),
    "uuid": Format(make_validator_check("uuid", "a UUID (RFC 9562)")),
    "date": Format(check_date),
    "time": Format(check_time),
    "datetime": Format(check_datetime),
    "rfc3339": Format(check_rfc3339),
    "duration": Format(check_duration),
    "number": Format(make_pattern_check(_NUMBER, "a number"), data=(int, float)),
    "integer": Format(make_pattern_check(r"[+-]?[0-9]+", "an integer"), data=(int,)),
    "boolean": Format(make_pattern_check(r"(?i)true|false", "true or false"), data=(bool,)),
    "base64": Format(scalars.check_base64),
    "base64url": Format(scalars.check_base64_url),
    "hex": Format(make_pattern_check(r"(?:0[xX])?[0-9a-fA-F]+", "hexadecimal digits")),
    "semver": Format(make_pattern_check(scalars.SEMVER, "a semantic version (such as 1.4.0 or 2.0.0-rc.1)")),
    "regex": Format(scalars.check_regex, ("pattern",), strip=False),
    "json": Format(check_json, strip=False, data=(object,)),
    "yaml": Format(check_yaml, strip=False),
    "toml": Format(check_toml, strip=False),
    "python": Format(check_python, strip=False),
    "xml": Format(markup.check_xml),
    "html": Format(markup.check_html, strip=False),
    "markdown": Format(markup.check_markdown, strip=False),
    "csv": Format(check_csv, ("columns", "header", "delimiter"), strip=False),
    "tsv": Format(check_tsv, ("columns", "header"), strip=False),
}
ALIASES = {
    "date-time": "datetime", "iso8601": "datetime", "e164": "phone", "int": "integer", "bool": "boolean",
    "md": "markdown", "yml": "yaml",
}  # fmt: skip
WHERE = "format_compliance"


def select_formats(names: Sequence[Any], options: Mapping[str, Any]) -> tuple[dict[str, Format], FormatOptions]:
    """Return the formats with these names and their options, or an error that describes what is invalid."""
    formats = {name: _find_format(name) for name in names}
    return formats, _check_options(formats, {name: value for name, value in options.items() if value is not None})


def score_formats(output: Any, formats: Mapping[str, Format], options: FormatOptions, allow_fences: bool) -> Score:
    """Pass if the output matches one of the formats; if none matches and a check was abandoned, return an error."""
    errors: dict[str, FormatError] = {}
    abandoned_reason = ""
    for name, expected in formats.items():
        try:
            error = _check_output(output, expected, options, allow_fences)
        except EvaluatorError as exception:
            abandoned_reason = f"it is unknown whether it is {name}: {exception.what}"
            continue
        if error is None:
            return Score(1.0, True, "", {"method": "parser", "format": name})
        errors[name] = error
    details: dict[str, Any] = {"method": "parser", "formats": list(formats)}
    if abandoned_reason:
        return Score.error(abandoned_reason, details)
    if len(errors) == 1:
        (error,) = errors.values()
        return Score(0.0, False, str(error), details | error.position)
    reasons = (f"not {name}: {error}" for name, error in errors.items())
    return Score(0.0, False, "; ".join(reasons), details)


def _find_format(name: Any) -> Format:
    known_format = FORMATS.get(ALIASES.get(name, name)) if isinstance(name, str) else None
    if known_format is None:
        fix = suggest_name(str(name), [*FORMATS, *ALIASES])
        raise EvaluatorError(f"unknown format {name!r}", where=WHERE, fix=fix)
    return known_format


def _check_options(formats: Mapping[str, Format], options: Mapping[str, Any]) -> FormatOptions:
    if not formats:
        raise EvaluatorError("no format is selected", where=WHERE, fix='write format="date"')
    known_options = {option for expected in formats.values() for option in expected.options}
    problems = [
        Problem(option, f"not an option of {', '.join(formats)}") for option in options if option not in known_options
    ]
    if "pattern" in known_options and "pattern" not in options:
        problems.append(Problem("pattern", "the format regex requires a pattern"))
    delimiter = options.get("delimiter", ",")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        problems.append(Problem("delimiter", f"must be one character other than a quotation mark, got {delimiter!r}"))
    if problems:
        available = ", ".join(sorted(known_options)) or "no options"
        fix = f"{', '.join(formats)} takes: {available}"
        raise EvaluatorError("the options are invalid", where=WHERE, fix=fix, problems=problems)
    if "pattern" in options:
        compile_regex(options["pattern"])
    return FormatOptions(**options)


def _check_output(output: Any, expected: Format, options: FormatOptions, allow_fences: bool) -> FormatError | None:
    if not isinstance(output, str | bytes | bytearray):
        plain = output if object in expected.data else codec.to_plain(output)
        if object in expected.data or (
            isinstance(plain, expected.data) and isinstance(plain, bool) == (bool in expected.data)
        ):
            reason = explain_unserializable(plain)
            return FormatError(reason) if reason else None
        if not isinstance(plain, str):
            return FormatError(f"it is {type_name(plain)}, not a string: {preview(plain)}")
        output = plain
    text, before = strip_allowed_fence(output, allow_fences)
    if isinstance(text, bytes):
        try:
            text = text.decode()
        except UnicodeDecodeError:
            return FormatError("the bytes are not UTF-8")
    if expected.strip:
        before += text[: len(text) - len(text.lstrip())].count("\n")
        text = text.strip()
    broken = SURROGATE.search(text)
    error = expected.check(text, options) if broken is None else make_error_at(text, broken.start(), LONE_SURROGATE)
    return None if error is None else error.move_down(before)
