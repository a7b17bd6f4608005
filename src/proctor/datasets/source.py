"""Make a dataset from anything that a user passes as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.datasets.dataset import Dataset
from proctor.datasets.faults import WHOLE_DATASET
from proctor.datasets.formats import open_file
from proctor.datasets.inspection import DatasetInspection
from proctor.datasets.iterator import IteratorDataset
from proctor.datasets.record import RecordReader, Rules, read_items, read_typed
from proctor.errors import DatasetError
from proctor.ports import DatasetLike, SampleSource
from proctor.records import codec
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample, type_name


class UserDataset:
    """A dataset made from any object that can be iterated repeatedly.

    The object's `info`, if it is a mapping, is stored with the run.
    """

    def __init__(self, items: Iterable[Any], rules: Rules | None = None) -> None:
        self._items = items
        self._reader = RecordReader(rules or Rules())
        self._name = type(items).__name__

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        rows = read_items(self._items, self._reader)
        return (sample for _, sample in read_typed(rows, self._reader, self._locate))

    def __len__(self) -> int:
        return len(self._items)  # type: ignore[arg-type]  # raises TypeError if it has no length

    def __repr__(self) -> str:
        return f"UserDataset({self._items!r})"

    def inspect(self) -> DatasetInfo:
        """Read, check and describe the dataset."""
        user_info = getattr(self._items, "info", None)
        details = codec.plain(dict(user_info)) if isinstance(user_info, Mapping) else {}
        info = DatasetInfo(
            str(details.get("name", self._name)), source=str(details.get("source", self._name)), details=details
        )
        return DatasetInspection(read_items(self._items, self._reader), self._reader).run(info, self._locate)

    @property
    def info(self) -> DatasetInfo:
        """The same as `inspect()`."""
        return self.inspect()

    def _locate(self, index: int) -> str:
        return self._name if index == WHOLE_DATASET else f"{self._name}, item {index}"


def make_source(
    dataset: DatasetLike,
    input_type: Any = Any,
    expected_type: Any = Any,
    *,
    mapping: Mapping[str, str] | None = None,
    generate_ids: bool = False,
    format: str | None = None,  # noqa: A002 - public name
) -> SampleSource:
    """Make a dataset from a path, a list of records, an iterator, or any iterable object."""
    options: dict[str, Any] = {
        "input_type": input_type,
        "expected_type": expected_type,
        "mapping": mapping,
        "generate_ids": generate_ids,
    }
    rules = Rules(**options)
    if isinstance(dataset, SampleSource) and not isinstance(dataset, type):
        if rules != Rules():
            raise DatasetError(
                "types, mapping and generate_ids cannot be set for an existing dataset",
                where=repr(dataset),
                fix="set them when you create the dataset",
            )
        return dataset
    if isinstance(dataset, str | Path):
        return open_file(dataset, rules, format)
    if isinstance(dataset, list | tuple):
        return Dataset.of(dataset, **options)
    if isinstance(dataset, Iterator):
        return IteratorDataset(dataset, **options)
    if hasattr(dataset, "__iter__") and not isinstance(dataset, Mapping | bytes | type):
        return UserDataset(dataset, rules)
    name = f"the type {dataset.__name__}" if isinstance(dataset, type) else type_name(dataset)
    raise DatasetError(
        f"{name} is not a dataset",
        fix="pass a path, a Dataset, a list of records, an iterator, or an object that yields records",
    )
