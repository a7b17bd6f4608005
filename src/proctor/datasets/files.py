"""Samples from a file: open the file, read its lines, describe it, and explain every failure."""

from __future__ import annotations

import codecs
import errno
import gzip
import stat
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from proctor.core.resources import describe_byte, describe_conversion, describe_os_error, open_gzip, suggest_file
from proctor.datasets.inspection import DatasetInspection
from proctor.datasets.problems import ReportProblems, SharedLine
from proctor.datasets.record import RecordReader, Rules, read_typed
from proctor.errors import DatasetError, Problem
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

MAX_LINE_BYTES = 32 * 1024 * 1024
SKIP_BYTES = 1024 * 1024
GZIP = b"\x1f\x8b"


class FileDataset:
    """Samples from a file, read on each pass and never held in memory; subclasses define `_rows`."""

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
        # Absolute, because a target may change the working directory while the file is read.
        self._file = self.path.absolute()
        self._inspected: tuple[tuple[int, int], DatasetInfo] | None = None
        # Properties of the format, which a pass over the file may set.
        self.details: dict[str, str] = {}

    def _rows(self, report: ReportProblems) -> Iterator[tuple[int, Sample[Any, Any]]]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return (sample for _, sample in read_typed(self._rows, self._reader, self._locate))

    def located(self) -> Iterator[tuple[str, Sample[Any, Any]]]:
        """Return the samples with their locations, such as qa.jsonl:3."""
        rows = read_typed(self._rows, self._reader, self._locate)
        return ((self._locate(line), sample) for line, sample in rows)

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


def check_file(path: Path) -> None:
    """Raise an error unless a path is a readable regular file."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise _unreadable_file_error(path, error) from None
    if stat.S_ISDIR(mode):
        raise DatasetError(
            "this is a folder, not a file",
            where=str(path),
            fix="name a file in this folder; for recorded sessions use SessionDataset(path)",
        )
    if not stat.S_ISREG(mode):
        raise DatasetError(
            "this is not a regular file, so it cannot be read twice",
            where=str(path),
            fix="write it to a file, or read it yourself and pass the records to IteratorDataset",
        )


def open_data(path: Path) -> BinaryIO:
    """Open a UTF-8 data file after its byte order mark; gzip files are decompressed."""
    check_file(path)
    try:
        file: BinaryIO = path.open("rb")
    except OSError as error:
        raise _unreadable_file_error(path, error) from None
    if file.peek(2).startswith(GZIP) or path.name.lower().endswith(".gz"):  # type: ignore[attr-defined]
        file.close()
        file = open_gzip(path, partial(_explain_gzip_error, path))
    start = file.read(4)
    if encoding := _detect_other_encoding(start):
        file.close()
        raise DatasetError(
            f"the file is {encoding}, not UTF-8", where=str(path), fix=describe_conversion(encoding, str(path))
        )
    file.seek(len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0)
    return file


def _detect_other_encoding(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # Text does not start with a null character, so null bytes belong to wider characters.
    if b"\0" not in start[:2]:
        return ""
    return "UTF-32" if start.count(0) > 2 else "UTF-16"


def _explain_gzip_error(path: Path, error: Exception) -> DatasetError:
    what = f"the file cannot be decompressed: {error}"
    fix = "check that the file is complete and compressed with gzip"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        what, fix = f"the compressed file is rejected: {error.strerror}", f"decompress it: gunzip {path}"
    elif isinstance(error, gzip.BadGzipFile) and str(error).startswith("Not a gzipped file"):
        what = "the file name ends in .gz, but the file is not compressed with gzip"
        fix = f"rename it to {path.name[:-3]}, or compress it with gzip"
    return DatasetError(what, where=str(path), fix=fix)


def read_numbered_lines(file: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines of a file with their numbers; None for a line that is too long."""
    number = 0
    while line := file.readline(max_line_bytes + 1):
        number += 1
        is_complete = line.endswith(b"\n") and len(line.rstrip(b"\r\n")) <= max_line_bytes
        if len(line) <= max_line_bytes or is_complete:
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(SKIP_BYTES)
        yield number, None


def decode_line(line: bytes) -> str | Problem:
    """Decode a line as UTF-8, or return the problem with its position."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        return encoding_problem(line, error.start, error.start)


def encoding_problem(data: bytes, position: int, offset: int) -> Problem:
    """Return the problem of a byte that is not UTF-8, `offset` bytes into its line."""
    what = f"not UTF-8: {describe_byte(data, position, f' at offset {offset} of the line')}"
    return Problem("", what, describe_conversion())


def long_line_problem(max_line_bytes: int = MAX_LINE_BYTES) -> Problem:
    """Return the problem for a line that is too long."""
    what = f"the line is longer than {max_line_bytes:,} bytes"
    return Problem("", what, "write one sample per line, or give JSONLDataset a larger max_line_bytes")


def _unreadable_file_error(path: Path, error: OSError | ValueError) -> DatasetError:
    where = str(path)
    if isinstance(error, FileNotFoundError):
        return DatasetError("file not found", where=where, fix=suggest_file(path))
    fix = "check the file's permissions" if isinstance(error, PermissionError) else "check the path"
    return DatasetError(describe_os_error(error, "the file cannot be read"), where=where, fix=fix)
