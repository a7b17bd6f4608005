"""A dataset object of the user's own, read through the same checks as every other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from proctor import codec
from proctor.datasets.census import Census
from proctor.datasets.faults import WHOLE, Unfit, one_bad, refuse_at_once
from proctor.datasets.record import RecordReader, Rules, item_rows
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample


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
