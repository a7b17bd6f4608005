"""Read untrusted JSON: each helper returns a value of one type, or an empty value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from proctor.records.numbers import token_count

_EMPTY: Mapping[str, Any] = {}

as_count = token_count


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, dict) else _EMPTY


def as_list(value: Any) -> Sequence[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else ()


def as_text(value: Any) -> str | None:
    """Return the value if it is a nonempty string."""
    return value if isinstance(value, str) and value else None


def as_number(value: Any) -> float | None:
    """Return the value if it is a finite number of 0 or more."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300:
        return float(value)
    return None


def first_count(fields: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of the named fields that is a count."""
    return next((n for name in names if (n := as_count(fields.get(name))) is not None), None)


def omit_keys(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a copy of the mapping without some keys."""
    return {key: value for key, value in fields.items() if key not in names}


def remaining_fields(fields: Mapping[str, Any], parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are missing from `parsed` or have a different value there."""
    return {key: value for key, value in fields.items() if key not in parsed or value != parsed[key]}
