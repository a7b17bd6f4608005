"""Whatever a user calls a dataset, made into what the engine reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.datasets.census import Census
from proctor.datasets.dataset import Dataset
from proctor.datasets.faults import WHOLE, Unfit, one_bad, refuse_at_once
from proctor.datasets.formats import open_file
from proctor.datasets.iterator import IteratorDataset
from proctor.datasets.record import RecordReader, Rules, item_rows
from proctor.errors import DatasetError
from proctor.ports import SampleSource
from proctor.records import codec
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample, kind_of


class UserDataset:
    """Any object that can be iterated again and again, made a dataset.

    What it says of itself in `info`, if that is a mapping, is kept with the run.

    >>> class Sums:
    ...     info = {"source": "arithmetic"}
    ...     def __iter__(self):
    ...         return iter([{"id": "1", "input": "2 + 2", "expected": "4"}])
    >>> UserDataset(Sums()).inspect().source
    'arithmetic'
    """

    def __init__(self, items: Iterable[Any], rules: Rules | None = None) -> None:
        self._items = items
        self._reader = RecordReader(rules or Rules())
        self._name = type(items).__name__

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        refuse = refuse_at_once(self._place)
        for index, sample in item_rows(self._items, self._reader)(refuse):
            try:
                made = self._reader.typed(sample)
            except Unfit as unfit:
                raise one_bad(self._place(index), unfit.faults) from None
            yield made

    def __len__(self) -> int:
        return len(self._items)  # type: ignore[arg-type]  # as long as theirs, if it has a length

    def __repr__(self) -> str:
        return f"UserDataset({self._items!r})"

    def inspect(self) -> DatasetInfo:
        """Read everything once, check it, and describe it."""
        told = getattr(self._items, "info", None)
        details = codec.plain(dict(told)) if isinstance(told, Mapping) else {}
        info = DatasetInfo(
            str(details.get("name", self._name)),
            source=str(details.get("source", self._name)),
            details=details,
        )
        return Census(item_rows(self._items, self._reader), self._reader).take(info, self._place)

    @property
    def info(self) -> DatasetInfo:
        """What `inspect` gives."""
        return self.inspect()

    def _place(self, index: int) -> str:
        return self._name if index == WHOLE else f"{self._name}, item {index}"


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
        input_type=input_type, expected_type=expected_type, mapping=mapping, generate_ids=generate_ids
    )
    if isinstance(thing, SampleSource) and not isinstance(thing, type):
        return _unchanged(thing, rules)
    if isinstance(thing, str | Path):
        return open_file(thing, rules, format)
    if isinstance(thing, list | tuple):
        return Dataset.of(thing, input_type, expected_type, mapping=mapping, generate_ids=generate_ids)
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
