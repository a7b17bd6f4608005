"""An imported session, and helpers for the records of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import msgspec

from proctor.records.sample import type_name
from proctor.records.session import CustomEvent, Session
from proctor.sessions.importers.json_values import as_text

_EXTENSIONS = (".gz", ".jsonl", ".ndjson", ".json")


class ImportedSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One recorded session: its events, first input and last output.

    `id` is the id of the session in the log, `source` the file or file:line. `recorded` contains other data of the log:
    scores, model, title, times, tags. `unknown_parts` counts, by type, the elements that the importer does not
    understand; each is a `CustomEvent` of the session. `is_named` is True if the log identifies the session explicitly,
    so that it may be empty. `error` is the error that the session ended with.
    """

    id: str
    session: Session
    format: str
    source: str
    input: Any = None
    output: Any = None
    recorded: dict[str, Any] = {}
    unknown_parts: dict[str, int] = {}
    is_named: bool = False
    error: str | None = None


def wrap_raw_event(kind: str, data: Any) -> CustomEvent:
    """Wrap log data so that no reader mistakes it for a call."""
    return CustomEvent(kind, {"found": data})


def default_session_id(source: str) -> str:
    """Return the file name without extensions, for a session without an id."""
    name, colon, line = source.rpartition(":")
    if not (colon and line.isdigit()):
        name, colon, line = source, "", ""
    name = PurePath(name).name
    for extension in _EXTENSIONS:
        name = name.removesuffix(extension)
    return f"{name or 'session'}{colon}{line}"


def flatten_lists(values: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Yield the values of a file with their lines; a list yields its items."""
    for line, value in values:
        if isinstance(value, list) and value:
            for item in value:
                yield line, item
        else:
            yield line, value


def flatten_values(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the values of a file; a list yields its items."""
    return (item for _, item in flatten_lists((0, value) for value in values))


def describe_type(value: Any) -> str:
    """Return a short name for a value in an unknown format: its `type`, or its keys."""
    if not isinstance(value, dict):
        return type_name(value)
    if (declared := as_text(value.get("type"))) is not None:
        return declared[:60]
    keys = [str(key)[:20] for key in list(value)[:4]]
    return f"mapping with {', '.join(keys)}" if keys else "an empty mapping"


def describe_value(value: Any) -> str:
    """Describe an unknown file for an error message: keys, roles, first items."""
    if value == []:
        return "an empty list"
    if not isinstance(value, dict):
        return _describe_list(value) or type_name(value)
    if not value:
        return "an empty object"
    lists = ((key, value[key], _describe_list(value[key])) for key in list(value)[:6])
    fields = (_describe_field(key, item) + (f" ({inner})" if inner else "") for key, item, inner in lists)
    return f"an object with the keys {', '.join(fields)}"


def _describe_list(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return ""
    first = value[0]
    if isinstance(first, dict) and first:
        fields = (_describe_field(key, first[key]) for key in list(first)[:6])
        description = f"an object with the keys {', '.join(fields)}"
    else:
        description = describe_type(first)
    return f"a list of {len(value):,}, first {description}"


def _describe_field(key: str, value: Any) -> str:
    is_type = key in ("role", "type", "from") and isinstance(value, str)
    return f'{key} "{value[:20]}"' if is_type else key[:20]


def parse_time(value: Any) -> datetime | None:
    """Parse an ISO 8601 time with a time zone; return None for anything else."""
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return time if time.tzinfo is not None else None


def format_epoch(seconds: Any) -> str | None:
    """Return the ISO 8601 time of a number of seconds since 1970; None for anything else."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (TypeError, ValueError, OverflowError, OSError):
        return None
