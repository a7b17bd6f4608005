"""Records, cells and columns of tables and JSON files; well-known column names say which column is the input."""

from __future__ import annotations

import ast
import contextlib
import csv
import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from proctor.core import resources
from proctor.core.yaml_text import load_yaml
from proctor.interop.files import damaged_file, read_json, read_json_lines, read_table
from proctor.interop.run_builder import Notes, make_sample, number_duplicates
from proctor.records.sample import Sample, type_name

# Roles of messages in older chat datasets.
_ROLES = {"human": "user", "gpt": "assistant", "ai": "assistant"}


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a .csv, .tsv, .jsonl or .json file; a JSON file is a list of objects."""
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return read_rows(path)
    if suffix in (".jsonl", ".ndjson"):
        return read_objects(path)
    content = read_json(path)
    if not isinstance(content, list):
        raise damaged_file(f"must be a list of objects, got {type_name(content)}", path)
    return [require_object(record, f"{path}, record {number}") for number, record in enumerate(content, start=1)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV or TSV file by column; an empty cell is None."""
    header, rows = read_table(path)
    return [{name: cell or None for name, cell in zip(header, row, strict=False)} for row in rows]


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file."""
    return [require_object(value, f"{path}:{number}") for number, value in read_json_lines(path)]


def require_object(value: Any, where: str | Path) -> dict[str, Any]:
    """Return a JSON object, or raise an error for any other value."""
    if not isinstance(value, dict):
        raise damaged_file(f"must be an object, got {type_name(value)}", where)
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


def parse_number(text: Any) -> Any:
    """Return the number of a cell; other cells stay as they are."""
    if isinstance(text, str):
        with contextlib.suppress(ValueError):
            return float(text)
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


@functools.cache
def load_columns() -> dict[str, list[str]]:
    """Return the known column names of each part of a sample."""
    names: dict[str, list[str]] = load_yaml(resources.text("interop", "readers", "columns.yaml"))
    return names


def find_column(part: str, columns: Iterable[str]) -> str | None:
    """Return the column of a part of a sample ("input", "expected" …), or None."""
    present = set(columns)
    return next((name for name in load_columns()[part] if name in present), None)


def make_samples(rows: Sequence[Mapping[str, Any]], notes: Notes, prefix: str = "") -> list[Sample[Any, Any]]:
    """Make a sample of each row; the columns of input and expected value are in the warnings.

    Without a known input column the whole row is the input. The last answer of a chat is the expected value.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    roles = {part: find_column(part, columns) for part in ("id", "input", "expected")}
    if roles["input"] is None:
        roles["expected"] = None
        notes.add("columns", "row", "with all columns as input, because none has a usual name", len(rows))
    else:
        others = f" and {roles['expected']} as expected value" if roles["expected"] else ""
        notes.add("columns", "row", f"with {roles['input']} as input{others}", len(rows))
    ids = [str(row.get(roles["id"] or "") or number) for number, row in enumerate(rows, start=1)]
    return [_make_sample(row, f"{prefix}{name}", roles) for row, name in zip(rows, number_duplicates(ids), strict=True)]


def _make_sample(row: Mapping[str, Any], name: str, roles: Mapping[str, str | None]) -> Sample[Any, Any]:
    taken = set(roles.values())
    rest = {column: value for column, value in row.items() if column not in taken and value is not None}
    if roles["input"] is None:
        return Sample(name, rest)
    value: Any = row.get(roles["input"])
    expected = row.get(roles["expected"] or "")
    if is_chat(value):
        value = [normalize_message(message) for message in value]
        if expected is None and value[-1].get("role") == "assistant" and len(value) > 1:
            *value, last = value
            expected = last.get("content")
    return make_sample(name, value, expected, rest)


def is_chat(value: Any) -> bool:
    """True for a list of messages."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and {"role", "from"} & item.keys() for item in value)
    )


def normalize_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with the keys role and content."""
    role = str(message.get("role") or message.get("from"))
    rest = {key: value for key, value in message.items() if key not in ("role", "from", "content", "value")}
    known = {key: value for key, value in rest.items() if value is not None}
    return {"role": _ROLES.get(role, role), "content": message.get("content", message.get("value")), **known}
