"""Read gzip files, and stop at one that unpacks into something enormous.

A gzip file of a few kilobytes can hold gigabytes of zeros. Logs compress by a factor of 5 to 50, so
a file that has unpacked into much more is refused before it fills the memory.
"""

from __future__ import annotations

import errno
import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Whatever the ratio, this much is always unpacked, and never more than the largest.
ALWAYS_BYTES = 64 * 1024 * 1024
LARGEST_BYTES = 4 * 1024 * 1024 * 1024
LARGEST_RATIO = 200


class _BoundedGzip(io.RawIOBase):
    """The unpacked bytes of a gzip file; an OSError once there are implausibly many."""

    def __init__(self, path: Path) -> None:
        self._unpacked = gzip.open(path, "rb")  # noqa: SIM115 - closed with this stream
        packed = path.stat().st_size
        self._limit = min(LARGEST_BYTES, max(ALWAYS_BYTES, packed * LARGEST_RATIO))
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self._unpacked.readinto(buffer)
        self._read += count
        if self._read > self._limit:
            raise OSError(
                errno.EFBIG,
                f"it unpacks into more than {self._limit // 1024**2:,} MB; unpack it first",
            )
        return count

    def close(self) -> None:
        self._unpacked.close()
        super().close()


def open_gzip(path: Path) -> BinaryIO:
    """Open a gzip file for reading; reading fails with an OSError if it unpacks into too much."""
    return cast(BinaryIO, io.BufferedReader(_BoundedGzip(path), 1 << 16))
