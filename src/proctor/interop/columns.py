"""Samples from tables without a fixed schema: well-known column names say which column is the input."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from proctor.core import resources
from proctor.core.yaml_text import load_yaml
from proctor.interop.run_builder import Notes, make_sample, number_duplicates
from proctor.records.sample import Sample

# Names of message fields and roles in older chat datasets.
_ROLES = {"human": "user", "gpt": "assistant", "ai": "assistant"}


@functools.cache
def load_columns() -> dict[str, list[str]]:
    """Return the known column names of each part of a sample."""
    names: dict[str, list[str]] = load_yaml(resources.text("interop", "readers", "columns.yaml"))
    return names


def find_column(part: str, columns: Iterable[str]) -> str | None:
    """Return the column of a part of a sample ("input", "expected" …), or None."""
    present = set(columns)
    return next((name for name in load_columns()[part] if name in present), None)


def read_rows(rows: Sequence[Mapping[str, Any]], notes: Notes, prefix: str = "") -> list[Sample[Any, Any]]:
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
