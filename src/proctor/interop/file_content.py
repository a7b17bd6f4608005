"""Read the content of other tools' files: JSON, JSON Lines, tables, YAML, and Python values in cells."""

from __future__ import annotations

import ast
import contextlib
import csv
import functools
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from proctor.core.resources import describe_conversion, describe_decode_error, describe_json_error
from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.datasets.files import MAX_LINE_BYTES, open_data
from proctor.errors import DatasetError, ProctorError
from proctor.interop.imported import ImportedFile
from proctor.records.sample import type_name

_CUT = "check that the file is complete, and export it again"


def explain_malformed(read: Callable[[Path], ImportedFile]) -> Callable[[Path], ImportedFile]:
    """Make a reader raise one error that names the file if a part of it has an unexpected type or is missing."""

    @functools.wraps(read)
    def read_or_explain(path: Path) -> ImportedFile:
        try:
            return read(path)
        except ProctorError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            tool = read.__module__.rpartition(".")[2]
            what = f"not a file of {tool} as Proctor knows it: {type(error).__name__}: {error}"
            raise DatasetError(what, where=str(path), fix=_CUT) from error

    return read_or_explain


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file; gzip files are decompressed."""
    with open_data(path) as file:
        try:
            return file.read().decode()
        except UnicodeDecodeError as error:
            raise DatasetError(
                describe_decode_error(error), where=str(path), fix=describe_conversion(file=str(path))
            ) from None


def read_json(path: Path) -> Any:
    """Return the value of a JSON document; the word NaN, which some tools write, is a float."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DatasetError(describe_json_error(error), where=f"{path}:{error.lineno}", fix=_CUT) from None


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file with one JSON object per line."""
    records = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DatasetError(describe_json_error(error), where=f"{path}:{number}", fix=_CUT) from None
        records.append(require_mapping(record, f"{path}:{number}"))
    return records


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a .csv, .tsv, .jsonl or .json file; a JSON file is a list of objects."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return list(read_table(path))
    if suffix in (".jsonl", ".ndjson"):
        return read_json_lines(path)
    content = read_json(path)
    if not isinstance(content, list):
        raise DatasetError(f"must be a list of objects, got {type_name(content)}", where=str(path), fix=_CUT)
    return [require_mapping(record, f"{path}, record {number}") for number, record in enumerate(content, start=1)]


def read_table(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV or TSV file; an empty cell is None."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    delimiter = "\t" if ".tsv" in path.suffixes else ","
    rows = csv.reader(StringIO(read_text(path), newline=""), delimiter=delimiter)
    try:
        header = next(rows, [])
        return [{name: cell or None for name, cell in zip(header, row, strict=False)} for row in rows if row]
    except csv.Error as error:
        raise DatasetError(f"line {rows.line_num}: {error}", where=str(path), fix=_CUT) from None


def read_yaml(path: Path) -> Any:
    """Return the value of a YAML document."""
    try:
        return load_yaml(read_text(path))
    except InvalidYAML as error:
        raise DatasetError(str(error), where=str(path), fix="correct the YAML") from None


def require_mapping(value: Any, where: str) -> dict[str, Any]:
    """Return a JSON object, or raise an error for any other value."""
    if not isinstance(value, dict):
        raise DatasetError(f"must be an object, got {type_name(value)}", where=where, fix=_CUT)
    return value


def parse_python(text: Any) -> Any:
    """Return the value of a cell that holds a Python literal, such as "['a', 'b']"; other cells stay as they are.

    >>> parse_python("['a', 'b']"), parse_python("plain"), parse_python(None)
    (['a', 'b'], 'plain', None)
    """
    if isinstance(text, str) and text[:1] in ("[", "{", "("):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(text)
    return text


def parse_json(text: Any) -> Any:
    """Return the value of a string that holds JSON; other values stay as they are."""
    if isinstance(text, str):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def parse_time(value: Any) -> datetime | None:
    """Read an ISO 8601 time, or a number of (milli-, nano-)seconds since 1970; None if it is neither.

    >>> parse_time("2026-01-02 03:04:05+00:00") == parse_time(1767323045) == parse_time(1767323045000)
    True
    """
    with contextlib.suppress(ValueError, OverflowError, OSError):
        if isinstance(value, str) and value:
            time = datetime.fromisoformat(value)
            return time if time.tzinfo else time.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            for limit, factor in ((1e11, 1), (1e14, 1e3), (1e20, 1e9)):
                if value < limit:
                    return datetime.fromtimestamp(value / factor, UTC)
    return None


def nest_columns(row: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the columns that start with a prefix, without it, as a mapping; empty cells are left out.

    >>> nest_columns({"inputs.question": "Why?", "inputs.n": None, "id": "1"}, "inputs.")
    {'question': 'Why?'}
    """
    return {
        name.removeprefix(prefix): value for name, value in row.items() if name.startswith(prefix) and value is not None
    }


def has_all(head: bytes, keys: Iterable[str]) -> bool:
    """True if the first bytes of a JSON file contain all these keys."""
    return all(f'"{key}"'.encode() in head for key in keys)


def read_header(path: Path, head: bytes) -> list[str]:
    """Return the column names of a .csv or .tsv file from its first bytes; none for any other file."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if not {".csv", ".tsv"} & set(suffixes) or b"\n" not in head:
        return []
    line = head.decode("utf-8-sig", "replace").splitlines()[0]
    return next(csv.reader([line], delimiter="\t" if ".tsv" in suffixes else ","), [])
