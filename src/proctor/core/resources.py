"""Files inside the package (SQL, schemas, templates), UTF-8 error messages and bounded gzip."""

from __future__ import annotations

import difflib
import errno
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def path(*parts: str) -> Path:
    """Return the path of a file that is part of the package."""
    return Path(__file__).parent.parent.joinpath(*parts)


def text(*parts: str) -> str:
    """Return the content of a text file that is part of the package."""
    return path(*parts).read_text(encoding="utf-8")


MAX_NAMES_SEARCHED = 10_000
# The most likely encoding of a file that is not UTF-8: many spreadsheets use it.
GUESSED_ENCODING = "Windows-1252"


def describe_byte(data: bytes, position: int, place: str = "") -> str:
    """Describe a byte that is not UTF-8, and its place, with its most likely character."""
    byte = data[position : position + 1]
    try:
        character = byte.decode("cp1252")
    except UnicodeDecodeError:
        character = ""
    hint = f" ({character!r} in {GUESSED_ENCODING})" if character.isprintable() and character else ""
    return f"byte 0x{byte.hex()}{place}{hint}"


def describe_os_error(error: Exception, what: str) -> str:
    """Describe why a file cannot be used; `what` is the failed step, such as "the prompt cannot be read"."""
    if isinstance(error, FileNotFoundError):
        return "file not found" if "read" in what else f"{what}: its folder does not exist"
    if isinstance(error, IsADirectoryError):
        return "this is a folder, not a file"
    reason = getattr(error, "strerror", None) or str(error)
    return f"{what}: {reason[:1].lower()}{reason[1:]}"


def suggest_file(path: Path, suffixes: Sequence[str] = ()) -> str:
    """Suggest a file in the folder with a similar stem and, if there are `suffixes`, one of them."""
    try:
        files = sorted(islice(path.parent.iterdir(), MAX_NAMES_SEARCHED))
    except OSError:
        return f"check the path: folder not found: {str(path.parent)!r}"
    stems = {file.name.partition(".")[0]: file for file in files if not suffixes or file.suffix in suffixes}
    close = difflib.get_close_matches(path.name.partition(".")[0], stems, n=1)
    return f"did you mean {str(stems[close[0]])!r}?" if close else "check the path"


def quote_yaml(text: str) -> str:
    """Quote a string for a list or mapping in YAML, if it needs quotes."""
    return text if re.fullmatch(r"[\w./-]+", text) else json.dumps(text, ensure_ascii=False)


def describe_json_error(error: json.JSONDecodeError) -> str:
    """Describe an error of Python's JSON parser without its position: "expected a value"."""
    return _JSON_ERRORS.get(error.msg.rstrip(":"), error.msg[:1].lower() + error.msg[1:])


_JSON_ERRORS = {
    "Expecting value": "expected a value",
    "Expecting ',' delimiter": "expected ','",
    "Expecting ':' delimiter": "expected ':'",
    "Expecting property name enclosed in double quotes": "expected a key in double quotes",
    "Illegal trailing comma before end of object": "a comma before '}'",
    "Illegal trailing comma before end of array": "a comma before ']'",
    "Unterminated string starting at": "the string is not closed",
    "Invalid control character at": "a control character in a string",
    "Invalid \\escape": "an invalid escape",
    "Invalid \\uXXXX escape": "an invalid \\u escape",
    "Extra data": "unexpected text after the end",
}


def describe_decode_error(error: UnicodeDecodeError) -> str:
    """Describe the first line of a text that is not UTF-8."""
    data = bytes(error.object)
    line = data.count(b"\n", 0, error.start) + 1
    return f"line {line} is not UTF-8 text: {describe_byte(data, error.start)}"


def describe_conversion(encoding: str = GUESSED_ENCODING, file: str = "FILE") -> str:
    """Describe how to convert a file to UTF-8, with a command."""
    new = "NEW_FILE" if file == "FILE" else f"utf8-{file.rpartition('/')[2]}"
    return f"convert the file to UTF-8, for example: iconv -f {encoding} -t UTF-8 {file} > {new}"


# The compression ratio is limited only for files that unpack to more than this.
MIN_LIMIT_BYTES = 64 * 1024 * 1024
MAX_RATIO = 200
# Errors from reading a damaged or oversized file.
READ_ERRORS = (OSError, EOFError, zlib.error)

Explain = Callable[[Exception], Exception]


class _BoundedGzip(io.RawIOBase):
    """The unpacked bytes of a gzip file; raises OSError if they exceed a plausible size."""

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

    Reading a damaged or oversized file raises the exception that `explain` returns; the default is one of
    `READ_ERRORS`.
    """
    return cast(BinaryIO, io.BufferedReader(_BoundedGzip(path, explain), 1 << 16))
