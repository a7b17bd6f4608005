"""Samples from a generator or any iterable, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from proctor.datasets.faults import WHOLE, Fault, Unfit, one_bad, refuse_at_once
from proctor.datasets.id_table import IdTable
from proctor.datasets.record import RecordReader, Rules, item_rows
from proctor.errors import DatasetError
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample


class IteratorDataset:
    """Samples that come one after the other and are not kept: they can be read once.

    Each item is checked as it comes, and an error names its index, from 0. `length`, if it is
    known, is how many items a run plans for: one that gets fewer is not completed. When the pass is
    over the true number takes its place. There is no fingerprint, so a run cannot be resumed.

    >>> stream = IteratorDataset(({"id": n, "input": n * n} for n in range(3)), length=3)
    >>> [sample.input for sample in stream]
    [0, 1, 4]
    """

    def __init__(
        self,
        iterable: Iterable[Any],
        length: int | None = None,
        *,
        input_type: Any = Any,
        expected_type: Any = Any,
        mapping: Mapping[str, str] | None = None,
        generate_ids: bool = False,
        name: str = "iterator",
    ) -> None:
        if length is not None and length < 0:
            raise DatasetError(f"length={length} is less than nothing", where=name)
        rules = Rules(
            input_type=input_type,
            expected_type=expected_type,
            mapping=mapping,
            generate_ids=generate_ids,
        )
        self._reader = RecordReader(rules)
        self._items = iter(iterable)
        self._length = length
        self._name = name
        self._started = False

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        if self._started:
            raise DatasetError(
                "this dataset was read already, and an iterator gives its items only once",
                where=self._name,
                fix="make a new one, or hold the samples: Dataset.of(items)",
            )
        self._started = True
        return self._samples()

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError(f"the length of {self._name!r} is not known before it is read")
        return self._length

    def __repr__(self) -> str:
        return f"IteratorDataset(name={self._name!r}, length={self._length})"

    def inspect(self) -> DatasetInfo:
        """What is known without reading: the name and, if it was given, the length."""
        return DatasetInfo(self._name, source="iterator", length=self._length)

    @property
    def info(self) -> DatasetInfo:
        """What `inspect` gives."""
        return self.inspect()

    def _samples(self) -> Iterator[Sample[Any, Any]]:
        ids = IdTable()
        count = 0
        for index, sample in item_rows(self._items, self._reader)(refuse_at_once(self._place)):
            # What is past cannot be looked at again, so that hashes must do: among a million ids
            # two are taken for one with a chance of 1 in 30 million.
            if not ids.add(hash(sample.id)):
                told = Fault("id", f"{sample.id!r} was used before", "give every sample its own id")
                raise one_bad(self._place(index), [told])
            try:
                made = self._reader.typed(sample)
            except Unfit as unfit:
                raise one_bad(self._place(index), unfit.faults) from None
            yield made
            count += 1
        self._length = count

    def _place(self, index: int) -> str:
        return self._name if index == WHOLE else f"{self._name}, item {index}"
