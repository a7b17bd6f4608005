"""Opening a data file and reading its lines, with every way in which that fails explained."""

from __future__ import annotations

import codecs
import difflib
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from proctor.datasets.faults import Fault
from proctor.errors import DatasetError

MAX_LINE_BYTES = 32 * 1024 * 1024
SKIP_BYTES = 1024 * 1024
NAMES_LOOKED_AT = 10_000


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
    """Open a UTF-8 data file behind its byte order mark, if it has one."""
    check_file(path)
    try:
        file = path.open("rb")
    except OSError as error:
        raise _unreadable(path, error) from None
    start = file.read(4)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        file.close()
        raise DatasetError("the file is UTF-16", where=str(path), fix="save it as UTF-8")
    file.seek(len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0)
    return file


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
    'not UTF-8: byte 0xe9 at offset 3 of the line'
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        what = f"not UTF-8: byte 0x{line[error.start]:02x} at offset {error.start} of the line"
        return Fault("", what, "save the file as UTF-8")


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
