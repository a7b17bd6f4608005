"""Whatever a user calls a dataset, made into what the engine reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.datasets.dataset import Dataset
from proctor.datasets.formats import open_file
from proctor.datasets.iterator import IteratorDataset
from proctor.datasets.record import Rules
from proctor.datasets.user_dataset import UserDataset
from proctor.errors import DatasetError
from proctor.ports import SampleSource
from proctor.records.sample import kind_of


def as_source(
    thing: Any,
    input_type: Any = Any,
    expected_type: Any = Any,
    *,
    mapping: Mapping[str, str] | None = None,
    generate_ids: bool = False,
    format: str | None = None,  # noqa: A002 - the word people use
) -> SampleSource:
    """A dataset from a path, a list of records, an iterator, or an object of the user's own.

    >>> source = as_source([{"id": "1", "input": "2 + 2", "expected": "4"}])
    >>> [sample.input for sample in source]
    ['2 + 2']
    """
    rules = Rules(
        input_type=input_type,
        expected_type=expected_type,
        mapping=mapping,
        generate_ids=generate_ids,
    )
    if isinstance(thing, SampleSource) and not isinstance(thing, type):
        return _unchanged(thing, rules)
    if isinstance(thing, str | Path):
        return open_file(thing, rules, format)
    if isinstance(thing, list | tuple):
        return Dataset.of(
            thing, input_type, expected_type, mapping=mapping, generate_ids=generate_ids
        )
    if isinstance(thing, Iterator):
        return IteratorDataset(
            thing,
            input_type=input_type,
            expected_type=expected_type,
            mapping=mapping,
            generate_ids=generate_ids,
        )
    if _is_collection(thing):
        return UserDataset(thing, rules)
    raise DatasetError(
        f"{_described(thing)} is not a dataset",
        fix="give a path, a Dataset, a list of records, an iterator, or an object that can be "
        "iterated and gives records",
    )


def _unchanged(source: SampleSource, rules: Rules) -> SampleSource:
    """A dataset is taken as it is: its types and mapping were settled when it was made."""
    if rules != Rules():
        raise DatasetError(
            "types, mapping and generate_ids cannot be given for a dataset that is made already",
            where=repr(source),
            fix="give them where it is made",
        )
    return source


def _is_collection(thing: Any) -> bool:
    """True if it can be iterated for records; a mapping or a type cannot."""
    return hasattr(thing, "__iter__") and not isinstance(thing, Mapping | bytes | type)


def _described(thing: Any) -> str:
    return f"the type {thing.__name__}" if isinstance(thing, type) else kind_of(thing)
