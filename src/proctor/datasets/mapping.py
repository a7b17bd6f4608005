"""Where the keys of a record, or the columns of a table, go: `{"question": "input"}`."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Collection, Mapping
from typing import Any

from proctor.errors import DatasetError, Problem, nearest
from proctor.records.sample import CLUSTER, CONTEXT, LABELS, TAGS

FIELDS = ("id", "input", "expected", "metadata")
SHORTHANDS = (LABELS, CONTEXT, CLUSTER, TAGS)
WITH_KEYS = ("input", "expected", "metadata", LABELS)
NEAR = 0.8

# The steps to a place in a sample: ("input",), ("input", "question"), ("metadata", "labels", "x").
Steps = tuple[str, ...]


def read_mapping(mapping: Mapping[str, str] | None) -> dict[str, Steps]:
    """A mapping with its places taken apart, or one error with everything that is wrong in it.

    >>> read_mapping({"question": "input", "topic": "labels.topic"})
    {'question': ('input',), 'topic': ('metadata', 'labels', 'topic')}
    """
    if mapping is not None and not isinstance(mapping, Mapping):
        raise DatasetError(
            f"a mapping is a dict of column to field, not {type(mapping).__name__}",
            fix='write it as {"question": "input", "answer": "expected"}',
        )
    paths: dict[str, Steps] = {}
    problems: list[Problem] = []
    for key, place in (mapping or {}).items():
        path = _path(place)
        if path is None:
            what = f"{place!r} is not a field{_likely(place)}"
            if _path(key) is not None:
                what = f"write it the other way round, the column first: {place}: {key}"
            problems.append(Problem(repr(key), what))
        else:
            problems += _clashes(key, path, paths)
            paths[key] = path
    if problems:
        raise DatasetError(
            "the mapping cannot be used",
            problems=problems,
            fix="map each column to a place of its own: id, input, expected, metadata,\n  "
            "input.<key>, expected.<key>, metadata.<key>, labels.<key>,\n  "
            "labels, context, cluster or tags",
        )
    return paths


def absent_keys(paths: Mapping[str, Steps], keys: Collection[str]) -> list[tuple[str, str]]:
    """Keys that a mapping names and that are not there, each with the one probably meant.

    >>> absent_keys({"questoin": ("input",)}, ["id", "question"])
    [('questoin', "did you mean 'question'?")]
    """
    return [(key, nearest(key, keys)) for key in paths if key not in keys]


@functools.lru_cache(maxsize=1024)
def near_field(key: str) -> str | None:
    """The field that a key was probably meant to be, if it looks like a slip of the pen.

    >>> near_field("expeced"), near_field("ID"), near_field("topic")
    ('expected', 'id', None)
    """
    plain = key.strip().lower()
    # "id" is too short for likeness: half of all two-letter words would look like it.
    if plain == "id":
        return "id"
    close = difflib.get_close_matches(plain, FIELDS[1:], n=1, cutoff=NEAR)
    return close[0] if close else None


def _path(place: Any) -> Steps | None:
    """The steps that a place in a mapping means, or None if it means nothing."""
    if not isinstance(place, str):
        return None
    if place in FIELDS:
        return (place,)
    if place in SHORTHANDS:
        return ("metadata", place)
    field, dot, key = place.partition(".")
    if not dot or not key or field not in WITH_KEYS:
        return None
    if field == LABELS:
        return ("metadata", LABELS, key)
    return _path(key) if field == "metadata" and key.startswith(f"{LABELS}.") else (field, key)


def _likely(place: Any) -> str:
    close = difflib.get_close_matches(str(place), FIELDS + SHORTHANDS, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _clashes(key: str, path: Steps, others: Mapping[str, Steps]) -> list[Problem]:
    """What of the mapping so far goes to the same place, or to a part or the whole of it."""
    problems = []
    for other, taken in others.items():
        if taken == path:
            what = f"goes to {'.'.join(path)}, where {other!r} goes already"
            problems.append(Problem(repr(key), what))
        elif _overlap(taken, path):
            what = f"goes to {'.'.join(path)}, but {other!r} goes to {'.'.join(taken)}"
            problems.append(Problem(repr(key), what))
    return problems


def _overlap(left: Steps, right: Steps) -> bool:
    """True if one place is a part of the other; whole metadata and its single keys are merged."""
    whole, part = sorted((left, right), key=len)
    return part[: len(whole)] == whole and whole != ("metadata",)
