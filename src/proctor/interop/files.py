"""Read other tools' files: they are untrusted, so size, nesting and compression are limited."""

from __future__ import annotations

import csv
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from proctor.core.optional import require
from proctor.core.resources import describe_conversion, describe_decode_error, describe_json_error
from proctor.core.yaml_text import InvalidYAML, load_yaml
from proctor.datasets.files import open_data, read_numbered_lines
from proctor.errors import DatasetError, ProctorError
from proctor.sessions.importers.session_files import REPAIRED, decode_line

MAX_BYTES = 512 * 1024 * 1024
MAX_MEMBERS = 200_000
MAX_CELL_CHARACTERS = 16 * 1024 * 1024
CHECK_FILE = "check that the file is complete, or export it again"
# The compression methods of zip files.
_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")


def damaged_file(what: str, where: str | Path, fix: str = CHECK_FILE) -> DatasetError:
    """Return the error for a file that cannot be read."""
    return DatasetError(what, where=str(where), fix=fix)


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file; gzip files are decompressed."""
    with open_data(path) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise damaged_file(f"the file is larger than {MAX_BYTES:,} bytes", path, "split the file")
    return _decode_text(data, path, path)


def _decode_text(data: bytes, where: str | Path, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise damaged_file(describe_decode_error(error), where, describe_conversion(file=str(path))) from None


def read_json(path: Path) -> Any:
    """Return the value of a JSON file; NaN and infinity become strings, which are no numbers."""
    return decode_json(read_text(path).encode(), str(path))


def decode_json(data: bytes, where: str) -> Any:
    """Return the value of a JSON document, or raise an error with the line of the damage."""
    value, problem = decode_line(data)
    if problem in (None, REPAIRED):
        return value
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        where = f"{where}:{error.lineno}"
        problem = f"not valid JSON: {describe_json_error(error)}, at character {error.colno} of the line"
    except (ValueError, RecursionError):
        pass
    raise damaged_file(str(problem), where)


def read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the values of a JSON Lines file with their line numbers."""
    with open_data(path) as file:
        for number, line in read_numbered_lines(file):
            if line is None:
                raise damaged_file("the line is too long", f"{path}:{number}")
            if not line.strip():
                continue
            _decode_text(line, f"{path}:{number}", path)
            value, problem = decode_line(line)
            if problem not in (None, REPAIRED):
                raise damaged_file(str(problem), f"{path}:{number}")
            yield number, value


def read_yaml(path: Path) -> Any:
    """Return the value of a YAML file, read without tags that create objects."""
    try:
        return load_yaml(read_text(path))
    except InvalidYAML as error:
        raise damaged_file(error.what, error.where(path), error.fix or CHECK_FILE) from None


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a CSV or TSV file; names in the header may repeat."""
    delimiter = "\t" if ".tsv" in path.suffixes else ","
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL_CHARACTERS))
    try:
        rows = [
            row for row in csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True) if row
        ]
    except csv.Error as error:
        raise damaged_file(f"not a CSV table: {error}", path) from None
    if not rows:
        raise damaged_file("the table is empty", path)
    header, *body = rows
    # Spreadsheets leave out empty cells at the end of a row.
    return header, [row + [""] * (len(header) - len(row)) for row in body]


class ZipReader:
    """The members of a zip file, decompressed within limits; nothing is written to disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise damaged_file(f"not a zip file: {error}", path) from None
        self._members = {info.filename: info for info in self._zip.infolist()}
        self._remaining = MAX_BYTES
        if len(self._members) > MAX_MEMBERS:
            raise damaged_file(f"the file has more than {MAX_MEMBERS:,} members", path)

    def __enter__(self) -> ZipReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """The names of the members, in the order of the file."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """Return the content of a member, whatever size its header claims."""
        info, where = self._members[name], f"{self.path}, {name}"
        try:
            with self._open(info) as stream:
                data: bytes = stream.read(self._remaining + 1)
        except ProctorError:
            raise
        except Exception as error:
            # Each decompressor has errors of its own.
            raise damaged_file(f"the member cannot be decompressed: {error}", where) from None
        if len(data) > self._remaining:
            raise damaged_file(f"the members are larger than {MAX_BYTES:,} bytes in all", where, "split the file")
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise damaged_file("the member is damaged: its size or its checksum (CRC-32) is wrong", where)
        self._remaining -= len(data)
        return data

    def read_json(self, name: str) -> Any:
        """Return the value of a JSON member."""
        return decode_json(self.read(name), f"{self.path}, {name}")

    def _open(self, info: zipfile.ZipInfo) -> Any:
        if info.compress_type != _ZSTANDARD:
            return self._zip.open(info)
        # Python reads this compression from 3.14.
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            signature, name_length, extra_length = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            if signature != b"PK\3\4":
                raise zipfile.BadZipFile("a member has no header")
            file.seek(name_length + extra_length, io.SEEK_CUR)
            return _open_zstandard(io.BytesIO(file.read(info.compress_size)))


def _open_zstandard(file: BinaryIO) -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        zstandard = require("zstandard", extra="inspect", why="this file is compressed with Zstandard; reading it")
        return zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(file, read_across_frames=True)
    return zstd.ZstdFile(file)
