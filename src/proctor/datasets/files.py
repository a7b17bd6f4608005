"""Opening a data file and reading its lines, with every way in which that fails explained."""

from __future__ import annotations

import codecs
import difflib
import errno
import gzip
import stat
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from proctor.core.resources import describe_byte, how_to_convert, open_gzip
from proctor.datasets.faults import Fault
from proctor.errors import DatasetError

MAX_LINE_BYTES = 32 * 1024 * 1024
SKIP_BYTES = 1024 * 1024
NAMES_LOOKED_AT = 10_000
GZIP = b"\x1f\x8b"


def check_file(path: Path) -> None:
    """Refuse a path that is not a file which can be read."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if stat.S_ISDIR(mode):
        raise DatasetError(
            "this is a folder, not a file",
            where=str(path),
            fix="name one file of it; recorded sessions are read by SessionDataset(path)",
        )
    if not stat.S_ISREG(mode):
        raise DatasetError(
            "this is not a regular file, so it cannot be read twice",
            where=str(path),
            fix="write it to a file, or read it yourself and give IteratorDataset the records",
        )


def open_data(path: Path) -> BinaryIO:
    """Open a UTF-8 data file, decompressed if need be, behind its byte order mark."""
    check_file(path)
    try:
        file: BinaryIO = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from None
    if file.peek(2).startswith(GZIP) or path.name.lower().endswith(".gz"):  # type: ignore[attr-defined]
        file.close()
        file = open_gzip(path, partial(_cannot_decompress, path))
    start = file.read(4)
    if encoding := _other_encoding(start):
        file.close()
        raise DatasetError(
            f"the file is {encoding}, not UTF-8", where=str(path), fix=how_to_convert(encoding, str(path))
        )
    file.seek(len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0)
    return file


def _other_encoding(start: bytes) -> str:
    """The encoding that the first bytes of a file tell, if it is not UTF-8."""
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # No text begins with a null character, so that these are halves of wider ones.
    if b"\0" not in start[:2]:
        return ""
    return "UTF-32" if start.count(0) > 2 else "UTF-16"


def _cannot_decompress(path: Path, error: Exception) -> DatasetError:
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return DatasetError(
            f"the compressed file is refused: {error.strerror}",
            where=str(path),
            fix=f"decompress it first: gunzip {path}",
        )
    if isinstance(error, gzip.BadGzipFile) and str(error).startswith("Not a gzipped file"):
        return DatasetError(
            "it is called .gz and is not a gzip file",
            where=str(path),
            fix=f"rename it to {path.name[:-3]}, or compress it with gzip",
        )
    return DatasetError(
        f"it cannot be decompressed: {error}",
        where=str(path),
        fix="check that the file is complete and compressed with gzip",
    )


def numbered_lines(
    file: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes | None]]:
    """The lines of a file with their numbers; None for one that is too long to be read."""
    number = 0
    while line := file.readline(max_line_bytes + 1):
        number += 1
        if len(line) > max_line_bytes and not _complete(line, max_line_bytes):
            _skip_to_end_of_line(file, line)
            yield number, None
        else:
            yield number, line


def decoded(line: bytes) -> str | Fault:
    """A line as text, or where it stops being UTF-8.

    >>> str(decoded(b"caf\\xe9"))
    "not UTF-8: at offset 3 of the line is byte 0xe9, 'é' in Windows-1252"
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        return not_utf8(line, error.start, error.start)


def not_utf8(data: bytes, position: int, offset: int) -> Fault:
    """The fault of a byte that is not UTF-8, `offset` bytes into its line."""
    what = f"not UTF-8: at offset {offset} of the line is {describe_byte(data, position)}"
    return Fault("", what, how_to_convert())


def _complete(line: bytes, max_line_bytes: int) -> bool:
    return len(line.rstrip(b"\r\n")) <= max_line_bytes and line.endswith(b"\n")


def _skip_to_end_of_line(file: BinaryIO, piece: bytes) -> None:
    while piece and not piece.endswith(b"\n"):
        piece = file.readline(SKIP_BYTES)


def too_long(max_line_bytes: int = MAX_LINE_BYTES) -> Fault:
    """The fault of a line that is too long to be read."""
    return Fault(
        "",
        f"the line is longer than {max_line_bytes:,} bytes",
        "keep one sample on a line; JSONLDataset takes a larger max_line_bytes",
    )


def _unreadable(path: Path, error: OSError | ValueError) -> DatasetError:
    where = str(path)
    if isinstance(error, FileNotFoundError):
        return DatasetError("there is no such file", where=where, fix=_near_file(path))
    if isinstance(error, PermissionError):
        return DatasetError("no permission to read it", where=where, fix="check who may read it")
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return DatasetError(f"it cannot be read: {reason}", where=where, fix="check the path")


def _near_file(path: Path) -> str:
    """Which file of the folder was probably meant."""
    try:
        names = [entry.name for entry in islice(path.parent.iterdir(), NAMES_LOOKED_AT)]
    except OSError:
        return f"check the folder too: there is no {str(path.parent)!r}"
    close = difflib.get_close_matches(path.name, sorted(names), n=1)
    return f"did you mean {str(path.parent / close[0])!r}?" if close else "check the path"
