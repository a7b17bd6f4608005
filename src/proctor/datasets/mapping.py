"""Where the keys of a record, or the columns of a table, go: `{"question": "input"}`."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from proctor.datasets.faults import Fault
from proctor.errors import DatasetError, Problem, nearest
from proctor.records.sample import CLUSTER, CONTEXT, LABELS, TAGS

FIELDS = ("id", "input", "expected", "metadata")
SHORTHANDS = (LABELS, CONTEXT, CLUSTER, TAGS)
WITH_KEYS = ("input", "expected", "metadata", LABELS)
NEAR = 0.8
MOST_SLIPS = 1000

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


def no_such_key(key: str, keys: Sequence[str], what: str) -> Fault:
    """The fault of a mapping that names a key or column which is not there."""
    there = ", ".join(keys) or "none"
    return Fault("mapping", f"there is no {what} {key!r}; there are: {there}", nearest(key, keys))


class MappedKeys:
    """Which of the keys that a mapping names were seen in the records of one pass.

    A key that no record has is a fault of the mapping. One that a single record lacks is a missing
    value, unless the record has a key that looks like it and belongs to nothing else: a slip.
    """

    def __init__(self, paths: Mapping[str, Steps]) -> None:
        self._paths = paths
        self._unseen = set(paths)
        self._present: dict[str, None] = {}
        self._slips: list[tuple[int, str, str]] = []
        self._beside: set[tuple[str, str]] = set()

    def see(self, position: int, record: Mapping[str, Any]) -> None:
        """Take note of the keys of a record."""
        if not self._paths:
            return
        if self._unseen:
            self._present.update(dict.fromkeys(map(str, record)))
            self._unseen.difference_update(record)
        for key in self._paths:
            if key not in record:
                self._note_slip(position, key, record)
            elif self._slips:
                self._beside.update((key, str(other)) for other in record)

    def _note_slip(self, position: int, key: str, record: Mapping[str, Any]) -> None:
        for other in record:
            if (
                isinstance(other, str)
                and other not in self._paths
                and other not in FIELDS
                and len(self._slips) < MOST_SLIPS
                and _look_alike(key, other)
            ):
                self._slips.append((position, key, other))

    def faults(self, *, whole: int) -> Iterator[tuple[int, list[Fault]]]:
        """What is wrong, after the last record; `whole` is the position of the dataset itself."""
        if not self._present and not self._slips:
            return
        keys = list(self._present)
        if missing := [key for key in self._paths if key in self._unseen]:
            yield whole, [no_such_key(key, keys, "key") for key in missing]
        for position, key, other in self._slips:
            if key not in self._unseen and (key, other) not in self._beside:
                what = f"is not a known name; did you mean {key!r}?"
                yield position, [Fault(other, what, f"rename it: {other} to {key}")]


@functools.lru_cache(maxsize=4096)
def _look_alike(key: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, key.lower(), other.lower()).ratio() >= NEAR


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
