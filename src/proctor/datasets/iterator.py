"""Samples from a generator or any iterable, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.datasets.census import Census, IdTable
from proctor.datasets.faults import WHOLE, Fault, Rows, SharedLine, Unfit, one_bad, refuse_at_once
from proctor.datasets.files import check_file
from proctor.datasets.record import RecordReader, Rules, item_rows
from proctor.errors import DatasetError
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample


class FileStream:
    """A file, how its rows are found, and how they become samples. It holds no sample."""

    def __init__(self, path: Path, rows: Rows, reader: RecordReader) -> None:
        check_file(path)
        self.path = path
        # What is opened: a target may change the current folder while the file is read.
        self.file = path.absolute()
        self._rows = rows
        self._reader = reader
        self._inspected: tuple[tuple[int, int], DatasetInfo] | None = None
        # What the content told about the format; a pass over the file may set it.
        self.details: dict[str, str] = {}

    def samples(self) -> Iterator[Sample[Any, Any]]:
        """One pass; the first line that is not a sample ends it with an error."""
        refuse = refuse_at_once(self._place)
        if not self._reader.types_declared:
            for _, sample in self._rows(refuse):
                yield sample
            return
        typed = self._reader.typed
        for position, sample in self._rows(refuse):
            try:
                made = typed(sample)
            except Unfit as unfit:
                raise one_bad(self._place(position), unfit.faults) from None
            yield made

    def inspect(self) -> DatasetInfo:
        """Read it all and describe it; the next time only if the file has changed."""
        state = self._state()
        if self._inspected is None or self._inspected[0] != state:
            self._inspected = state, self._census(None)
        return self._inspected[1]

    def load(self) -> tuple[list[Sample[Any, Any]], DatasetInfo]:
        """Everything at once, in one reading."""
        samples: list[Sample[Any, Any]] = []
        info = self._census(samples)
        return samples, info

    def _census(self, keep: list[Sample[Any, Any]] | None) -> DatasetInfo:
        info = DatasetInfo(self.path.name, source=str(self.path))
        try:
            counted = Census(self._rows, self._reader).take(info, self._place, keep)
        except DatasetError as error:
            recognised = self.details.get("recognised")
            if recognised is None or recognised in error.what:
                raise
            fix = f"{error.fix};\n  " if error.fix else ""
            raise DatasetError(
                f"{error.what}, read as {recognised}",
                where=error.where,
                fix=f"{fix}to read the file as something else, name its format: --format",
                problems=error.problems,
            ) from None
        return msgspec.structs.replace(counted, details=dict(self.details))

    def _state(self) -> tuple[int, int]:
        check_file(self.file)
        seen = self.file.stat()
        return seen.st_size, seen.st_mtime_ns

    def _place(self, line: int) -> str:
        if isinstance(line, SharedLine):
            return f"{self.path}:{line}, sample {line.sample}"
        return f"{self.path}:{line}" if line else str(self.path)


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
            input_type=input_type, expected_type=expected_type, mapping=mapping, generate_ids=generate_ids
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
