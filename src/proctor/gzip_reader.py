"""Read gzip files, and stop at one that unpacks into something enormous.

A gzip file of a few kilobytes can hold gigabytes of zeros. Data and logs compress by a factor of 5
to 50, so a file that has unpacked into much more is refused before it fills the memory.
"""

from __future__ import annotations

import errno
import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# This much is always unpacked, whatever the ratio; beyond it, the ratio decides.
ALWAYS_BYTES = 64 * 1024 * 1024
LARGEST_RATIO = 200
# What reading a damaged or enormous file raises.
UNREADABLE = (OSError, EOFError, zlib.error)

Explain = Callable[[Exception], Exception]


class _BoundedGzip(io.RawIOBase):
    """The unpacked bytes of a gzip file; an OSError once there are implausibly many."""

    def __init__(self, path: Path, explain: Explain) -> None:
        self._unpacked = gzip.open(path, "rb")  # noqa: SIM115 - closed with this stream
        self._limit = max(ALWAYS_BYTES, path.stat().st_size * LARGEST_RATIO)
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
                    f"it unpacks into more than {self._limit / 1024**2:,.0f} MB, more than "
                    f"{LARGEST_RATIO} times its size; unpack it first if it is meant to be so",
                )
        except UNREADABLE as error:
            raise self._explain(error) from None
        return count

    def close(self) -> None:
        self._unpacked.close()
        super().close()


def open_gzip(path: Path, explain: Explain = lambda error: error) -> BinaryIO:
    """Open a gzip file for reading, within bounds.

    Reading a damaged file, or one that unpacks into too much, raises what `explain` makes of the
    error; by default one of `UNREADABLE`.
    """
    return cast(BinaryIO, io.BufferedReader(_BoundedGzip(path, explain), 1 << 16))
