"""Samples from a file or from any iterable, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.datasets.faults import WHOLE_DATASET, Fault, ReportFaults, SharedLine, sample_error
from proctor.datasets.files import check_file
from proctor.datasets.inspection import DatasetInspection, IdTable
from proctor.datasets.record import RecordReader, Rules, read_items, read_typed
from proctor.errors import DatasetError
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample


class FileDataset:
    """Samples of a file, read on each pass and never held in memory; subclasses define `_rows`."""

    def __init__(
        self,
        path: str | Path,
        input_type: Any = Any,
        expected_type: Any = Any,
        *,
        mapping: Mapping[str, str] | None = None,
        generate_ids: bool = False,
    ) -> None:
        self._reader = RecordReader(Rules(input_type, expected_type, mapping, generate_ids))
        self.path = Path(path)
        check_file(self.path)
        # Absolute: a target may change the current folder while the file is read.
        self._file = self.path.absolute()
        self._inspected: tuple[tuple[int, int], DatasetInfo] | None = None
        # Facts about the format; a pass over the file may set them.
        self.details: dict[str, str] = {}

    def _rows(self, report: ReportFaults) -> Iterator[tuple[int, Sample[Any, Any]]]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return (sample for _, sample in read_typed(self._rows, self._reader, self._locate))

    def __len__(self) -> int:
        return self.inspect().length or 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    @property
    def info(self) -> DatasetInfo:
        """The same as `inspect()`."""
        return self.inspect()

    def inspect(self) -> DatasetInfo:
        """Read the file once and describe it; one error reports every problem."""
        check_file(self._file)
        stat = self._file.stat()
        state = stat.st_size, stat.st_mtime_ns
        if self._inspected is None or self._inspected[0] != state:
            self._inspected = state, self._inspect(None)
        return self._inspected[1]

    def load(self) -> tuple[list[Sample[Any, Any]], DatasetInfo]:
        """Return all samples and the description in one pass."""
        samples: list[Sample[Any, Any]] = []
        return samples, self._inspect(samples)

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
                fix=f"{fix}to read the file in another format, name it: --dataset-format",
                problems=error.problems,
            ) from None
        return msgspec.structs.replace(info, details=dict(self.details))

    def _locate(self, line: int) -> str:
        if isinstance(line, SharedLine):
            return f"{self.path}:{line}, sample {line.sample}"
        return f"{self.path}:{line}" if line else str(self.path)


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
        self._reader = RecordReader(Rules(input_type, expected_type, mapping, generate_ids))
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
        rows = read_items(self._items, self._reader)
        for index, sample in read_typed(rows, self._reader, self._locate):
            # Earlier items are gone, so only hashes can be compared: with a million ids, the chance of a
            # false duplicate is 1 in 30 million.
            if not ids.add(hash(sample.id)):
                fault = Fault("id", f"{sample.id!r} was used before", "give every sample a unique id")
                raise sample_error(self._locate(index), [fault])
            yield sample
            count += 1
        self._length = count

    def _locate(self, index: int) -> str:
        return self._name if index == WHOLE_DATASET else f"{self._name}, item {index}"
