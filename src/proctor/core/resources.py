"""Files inside the package (SQL, schemas, templates), UTF-8 error texts and bounded gzip."""

from __future__ import annotations

import errno
import gzip
import io
import zlib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def path(*parts: str) -> Path:
    """Return the path of a file that is part of the package."""
    return Path(str(files("proctor").joinpath(*parts)))


def text(*parts: str) -> str:
    """Return the content of a text file that is part of the package."""
    return path(*parts).read_text(encoding="utf-8")


# The most likely encoding of a file that is not UTF-8: many spreadsheets use it.
GUESSED_ENCODING = "Windows-1252"


def describe_byte(data: bytes, position: int) -> str:
    """Describe a byte that is not UTF-8, with its most likely character."""
    byte = data[position : position + 1]
    try:
        character = byte.decode("cp1252")
    except UnicodeDecodeError:
        character = ""
    hint = f", {character!r} in {GUESSED_ENCODING}" if character.isprintable() and character else ""
    return f"byte 0x{byte.hex()}{hint}"


def describe_decode_error(error: UnicodeDecodeError) -> str:
    """Describe the first line of a text that is not UTF-8."""
    data = bytes(error.object)
    line = data.count(b"\n", 0, error.start) + 1
    return f"line {line} is not UTF-8 text: {describe_byte(data, error.start)}"


def describe_conversion(encoding: str = GUESSED_ENCODING, file: str = "FILE") -> str:
    """Describe how to convert a file to UTF-8, with a command."""
    new = "NEW_FILE" if file == "FILE" else f"utf8-{file.rpartition('/')[2]}"
    return f"convert the file to UTF-8, for example: iconv -f {encoding} -t UTF-8 {file} > {new}"


# The ratio limits only files that unpack into more than this.
MIN_LIMIT_BYTES = 64 * 1024 * 1024
MAX_RATIO = 200
# Errors from reading a damaged or oversized file.
READ_ERRORS = (OSError, EOFError, zlib.error)

Explain = Callable[[Exception], Exception]


class _BoundedGzip(io.RawIOBase):
    """The unpacked bytes of a gzip file; raises OSError when there are implausibly many."""

    def __init__(self, path: Path, explain: Explain) -> None:
        self._unpacked = gzip.open(path, "rb")  # noqa: SIM115 - closed with this stream
        self._limit = max(MIN_LIMIT_BYTES, path.stat().st_size * MAX_RATIO)
        self._explain = explain

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._unpacked.seek(offset, whence)

    def readinto(self, buffer: WriteableBuffer) -> int:
        try:
            count = self._unpacked.readinto(buffer)
            if self._unpacked.tell() > self._limit:
                raise OSError(
                    errno.EFBIG,
                    f"the file unpacks into more than {self._limit / 1024**2:,.0f} MB, more than "
                    f"{MAX_RATIO} times its size. Fix: unpack it first, if the size is intended",
                )
        except READ_ERRORS as error:
            raise self._explain(error) from None
        return count

    def close(self) -> None:
        self._unpacked.close()
        super().close()


def open_gzip(path: Path, explain: Explain = lambda error: error) -> BinaryIO:
    """Open a gzip file for reading, with a size limit.

    Reading a damaged or oversized file raises the exception that `explain` returns; by default one of `READ_ERRORS`.
    """
    return cast(BinaryIO, io.BufferedReader(_BoundedGzip(path, explain), 1 << 16))
