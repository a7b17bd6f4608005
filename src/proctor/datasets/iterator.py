"""Samples from a file or from any iterable, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.datasets.faults import (
    WHOLE_DATASET,
    Fault,
    InvalidRecord,
    Rows,
    SharedLine,
    raise_first,
    sample_error,
)
from proctor.datasets.files import check_file
from proctor.datasets.inspection import DatasetInspection, IdTable
from proctor.datasets.record import RecordReader, Rules, read_items
from proctor.errors import DatasetError
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample


class FileStream:
    """Reads the samples of a file without holding them in memory."""

    def __init__(self, path: Path, rows: Rows, reader: RecordReader) -> None:
        check_file(path)
        self.path = path
        # Absolute: a target may change the current folder while the file is read.
        self.file = path.absolute()
        self._rows = rows
        self._reader = reader
        self._inspected: tuple[tuple[int, int], DatasetInfo] | None = None
        # Facts about the format; a pass over the file may set them.
        self.details: dict[str, str] = {}

    def samples(self) -> Iterator[Sample[Any, Any]]:
        """Yield the samples; the first invalid one raises an error."""
        report = raise_first(self._locate)
        if not self._reader.types_declared:
            for _, sample in self._rows(report):
                yield sample
            return
        for position, sample in self._rows(report):
            try:
                typed = self._reader.typed(sample)
            except InvalidRecord as invalid:
                raise sample_error(self._locate(position), invalid.faults) from None
            yield typed

    def inspect(self) -> DatasetInfo:
        """Read and describe the file; the result is cached until the file changes."""
        check_file(self.file)
        stat = self.file.stat()
        state = stat.st_size, stat.st_mtime_ns
        if self._inspected is None or self._inspected[0] != state:
            self._inspected = state, self._inspect(None)
        return self._inspected[1]

    def load(self) -> tuple[list[Sample[Any, Any]], DatasetInfo]:
        """Return all samples and the description in one pass."""
        samples: list[Sample[Any, Any]] = []
        info = self._inspect(samples)
        return samples, info

    def _inspect(self, samples: list[Sample[Any, Any]] | None) -> DatasetInfo:
        info = DatasetInfo(self.path.name, source=str(self.path))
        try:
            info = DatasetInspection(self._rows, self._reader).run(info, self._locate, samples)
        except DatasetError as error:
            recognized = self.details.get("recognised")
            if recognized is None or recognized in error.what:
                raise
            fix = f"{error.fix};\n  " if error.fix else ""
            raise DatasetError(
                f"{error.what}, read as {recognized}",
                where=error.where,
                fix=f"{fix}to read the file in another format, name it: --format",
                problems=error.problems,
            ) from None
        return msgspec.structs.replace(info, details=dict(self.details))

    def _locate(self, line: int) -> str:
        if isinstance(line, SharedLine):
            return f"{self.path}:{line}, sample {line.sample}"
        return f"{self.path}:{line}" if line else str(self.path)


class FileDataset:
    """The methods that datasets in files share."""

    stream: FileStream

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return self.stream.samples()

    def __len__(self) -> int:
        return self.inspect().length or 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.stream.path)!r})"

    def inspect(self) -> DatasetInfo:
        """Read the file once and describe it; one error reports every problem."""
        return self.stream.inspect()

    @property
    def info(self) -> DatasetInfo:
        """The same as `inspect()`."""
        return self.inspect()


class IteratorDataset:
    """Samples from an iterator, which can be read once and are not held in memory.

    Each item is checked when it is read; an error names its index, from 0. `length`, if known, is the number
    of items that a run plans for; a run that gets fewer is not completed. After the pass it is the actual
    number. There is no fingerprint, so the run cannot be resumed.

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
            raise DatasetError(f"length must be 0 or more, got {length}", where=name)
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
                "this dataset was already read, and an iterator can be read only once",
                where=self._name,
                fix="create a new one, or load the samples into memory: Dataset.of(items)",
            )
        self._started = True
        return self._samples()

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError(f"the length of {self._name!r} is unknown until it is read")
        return self._length

    def __repr__(self) -> str:
        return f"IteratorDataset(name={self._name!r}, length={self._length})"

    def inspect(self) -> DatasetInfo:
        """Describe the dataset without reading it: the name and, if given, the length."""
        return DatasetInfo(self._name, source="iterator", length=self._length)

    @property
    def info(self) -> DatasetInfo:
        """The same as `inspect()`."""
        return self.inspect()

    def _samples(self) -> Iterator[Sample[Any, Any]]:
        ids = IdTable()
        count = 0
        for index, sample in read_items(self._items, self._reader)(raise_first(self._locate)):
            # Earlier items are gone, so only hashes can be compared: with a million ids, the chance of a
            # false duplicate is 1 in 30 million.
            if not ids.add(hash(sample.id)):
                fault = Fault("id", f"{sample.id!r} was used before", "give every sample a unique id")
                raise sample_error(self._locate(index), [fault])
            try:
                typed = self._reader.typed(sample)
            except InvalidRecord as invalid:
                raise sample_error(self._locate(index), invalid.faults) from None
            yield typed
            count += 1
        self._length = count

    def _locate(self, index: int) -> str:
        return self._name if index == WHOLE_DATASET else f"{self._name}, item {index}"
