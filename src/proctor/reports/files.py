"""Write files atomically."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path

from proctor.core.resources import describe_os_error
from proctor.errors import UsageError

_STREAM = re.compile(r"/(?:dev|proc/self)/fd/(?P<number>\d+)|/dev/std(?:out|err)")


def write_file(path: str | os.PathLike[str], chunks: Iterable[bytes], *, what: str = "the report") -> None:
    """Write chunks to a file; an existing file is replaced only when the new file is complete.

    Missing folders are created. Devices, pipes and /dev/stdout are written to directly. `what` describes the content in
    error messages.
    """
    path = Path(path)
    if path.is_dir():
        raise UsageError(
            "this is a folder, not a file", where=str(path), fix=f"name the file, such as {path / 'report.md'}"
        )
    try:
        if is_stream(path):
            _append_to_stream(path, chunks)
        elif path.exists() and not path.is_file():
            _write_chunks(path, chunks, mode="wb")
        else:
            _replace(path.resolve(), chunks)
    except OSError as error:
        raise UsageError(
            describe_os_error(error, f"{what} cannot be written"),
            where=str(path),
            fix="choose a path that is writable and has free space",
        ) from error


def is_stream(path: Path) -> bool:
    """Return whether a path names an open stream such as /dev/stdout."""
    return _STREAM.fullmatch(str(path)) is not None


def _append_to_stream(path: Path, chunks: Iterable[bytes]) -> None:
    # Opening a redirected stream by its name would truncate the file behind it.
    match = _STREAM.fullmatch(str(path))
    assert match is not None
    number = match["number"] or {"/dev/stdout": 1, "/dev/stderr": 2}[str(path)]
    sys.stdout.flush()
    with os.fdopen(os.dup(int(number)), "wb") as file:
        file.writelines(chunks)


def _replace(path: Path, chunks: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _write_chunks(temporary, chunks, mode="xb")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_chunks(path: Path, chunks: Iterable[bytes], mode: str) -> None:
    with path.open(mode) as file:
        file.writelines(chunks)
