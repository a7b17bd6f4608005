"""Map keys of records or columns of tables to fields: `{"question": "input"}`."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from proctor.errors import DatasetError, Problem, suggest_name
from proctor.records.sample import CLUSTER, CONTEXT, LABELS, TAGS

EVALUATORS = "evaluators"
FIELDS = ("id", "input", "expected", "metadata", EVALUATORS)
SHORTHANDS = (LABELS, CONTEXT, CLUSTER, TAGS)
WITH_KEYS = ("input", "expected", "metadata", LABELS)
MIN_SIMILARITY = 0.8
MAX_TYPOS = 1000

# The path to a value in a sample: ("input",), ("input", "question"), ("metadata", "labels", "x").
FieldPath = tuple[str, ...]


def read_mapping(mapping: Mapping[str, str] | None) -> dict[str, FieldPath]:
    """Parse a mapping, or raise one error with all its problems."""
    if mapping is not None and not isinstance(mapping, Mapping):
        raise DatasetError(
            f"mapping must be a dict of column to field, not {type(mapping).__name__}",
            fix='write it as {"question": "input", "answer": "expected"}',
        )
    paths: dict[str, FieldPath] = {}
    problems: list[Problem] = []
    for key, field in (mapping or {}).items():
        path = _parse_field(field)
        if path is None:
            close = difflib.get_close_matches(str(field), FIELDS + SHORTHANDS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            what = f"{field!r} is not a field{hint}"
            if _parse_field(key) is not None:
                what = f"write it the other way round, the column first: {field}: {key}"
            problems.append(Problem(repr(key), what))
        else:
            problems += _find_conflicts(key, path, paths)
            paths[key] = path
    if problems:
        raise DatasetError(
            "the mapping is invalid",
            problems=problems,
            fix="map each column to a different field: id, input, expected, metadata, evaluators,\n  "
            "input.<key>, expected.<key>, metadata.<key>, labels.<key>,\n  "
            "labels, context, cluster or tags",
        )
    return paths


def find_missing_keys(paths: Mapping[str, FieldPath], keys: Collection[str]) -> list[tuple[str, str]]:
    """Return the keys of a mapping that do not exist, each with a suggestion."""
    return [(key, suggest_name(key, keys)) for key in paths if key not in keys]


def missing_key_problem(key: str, keys: Sequence[str], what: str) -> Problem:
    """Return the problem for a mapping of a key or column that does not exist."""
    existing = ", ".join(keys) or "none"
    return Problem("mapping", f"unknown {what} {key!r}; there are: {existing}", suggest_name(key, keys))


class MappedKeys:
    """Checks during one pass whether the records have the keys of a mapping.

    A key that no record has is a problem of the mapping. A key that a single record lacks is a missing value,
    unless the record has a similar key that is not mapped: a typo.
    """

    def __init__(self, paths: Mapping[str, FieldPath]) -> None:
        self._paths = paths
        self._unseen_keys = set(paths)
        self._present_keys: dict[str, None] = {}
        self._typos: list[tuple[int, str, str]] = []
        # Pairs of keys that occur together, so neither is a typo of the other.
        self._pairs: set[tuple[str, str]] = set()

    def add(self, position: int, record: Mapping[str, Any]) -> None:
        """Register the keys of a record."""
        if not self._paths:
            return
        if self._unseen_keys:
            self._present_keys.update(dict.fromkeys(map(str, record)))
            self._unseen_keys.difference_update(record)
        for key in self._paths:
            if key not in record:
                self._add_typos(position, key, record)
            elif self._typos:
                self._pairs.update((key, str(other)) for other in record)

    def _add_typos(self, position: int, key: str, record: Mapping[str, Any]) -> None:
        for other in record:
            if (
                isinstance(other, str)
                and other not in self._paths
                and other not in FIELDS
                and len(self._typos) < MAX_TYPOS
                and _is_similar(key, other)
            ):
                self._typos.append((position, key, other))

    def problems(self, *, dataset_position: int) -> Iterator[tuple[int, list[Problem]]]:
        """Yield the problems after the last record; `dataset_position` is the position of the dataset itself."""
        if not self._present_keys and not self._typos:
            return
        keys = list(self._present_keys)
        if missing := [key for key in self._paths if key in self._unseen_keys]:
            yield dataset_position, [missing_key_problem(key, keys, "key") for key in missing]
        for position, key, other in self._typos:
            if key not in self._unseen_keys and (key, other) not in self._pairs:
                what = f"is not a known name; did you mean {key!r}?"
                yield position, [Problem(other, what, f"rename it: {other} to {key}")]


@functools.lru_cache(maxsize=4096)
def _is_similar(key: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, key.lower(), other.lower()).ratio() >= MIN_SIMILARITY


@functools.lru_cache(maxsize=1024)
def guess_field(key: str) -> str | None:
    """Return the field that a misspelled key probably refers to, or None."""
    lowered = key.strip().lower()
    # "id" is too short to compare: many two-letter words are similar.
    if lowered == "id":
        return "id"
    # "evaluator" is a common key of metadata: the person who wrote or rated a sample.
    close = difflib.get_close_matches(lowered, ("input", "expected", "metadata"), n=1, cutoff=MIN_SIMILARITY)
    return close[0] if close else None


def _parse_field(text: Any) -> FieldPath | None:
    """Return the path of a field in a mapping, or None if it is not a field."""
    if not isinstance(text, str):
        return None
    if text in FIELDS:
        return (text,)
    if text in SHORTHANDS:
        return ("metadata", text)
    field, _, key = text.partition(".")
    if not key or field not in WITH_KEYS:
        return None
    if field == LABELS:
        return ("metadata", LABELS, key)
    return _parse_field(key) if field == "metadata" and key.startswith(f"{LABELS}.") else (field, key)


def _find_conflicts(key: str, path: FieldPath, others: Mapping[str, FieldPath]) -> Iterator[Problem]:
    """Report the mapped keys whose field equals, contains or is inside `path`."""
    for other, other_path in others.items():
        outer, inner = sorted((path, other_path), key=len)
        if outer == inner:
            yield Problem(repr(key), f"is mapped to {'.'.join(path)}, like {other!r}")
        # Metadata and its keys are merged.
        elif inner[: len(outer)] == outer and outer != ("metadata",):
            what = f"is mapped to {'.'.join(path)}, but {other!r} is mapped to {'.'.join(other_path)}"
            yield Problem(repr(key), what)
