"""The samples of a file, read anew at each pass: what JSONL and CSV datasets have in common."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from proctor.datasets.census import Census
from proctor.datasets.faults import Rows, SharedLine, Unfit, one_bad, refuse_at_once
from proctor.datasets.files import check_file
from proctor.datasets.record import RecordReader
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
