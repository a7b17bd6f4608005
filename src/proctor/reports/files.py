"""Reports as files: whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path

from proctor.errors import UsageError

_STREAM = re.compile(r"/(?:dev|proc/self)/fd/(?P<number>\d+)|/dev/std(?:out|err)")


def write(path: str | os.PathLike[str], chunks: Iterable[bytes], *, what: str = "the report") -> None:
    """Write chunks to a file. It takes the place of an older one only when it is complete.

    Folders that are missing are made. A path that is a device or a pipe is written to directly, and
    so is /dev/stdout, wherever that leads.
    `what` it is, is told if it cannot be written.
    """
    wanted = Path(path)
    if wanted.is_dir():
        raise UsageError(
            "this is a folder, not a file",
            where=str(path),
            fix=f"name the file, such as {wanted / 'report.md'}",
        )
    try:
        if is_stream(wanted):
            _write_on(wanted, chunks)
        elif wanted.exists() and not wanted.is_file():
            _write(wanted, chunks, mode="wb")
        else:
            _replace(wanted.resolve(), chunks)
    except OSError as error:
        raise UsageError(
            f"{what} cannot be written: {error.strerror or error}",
            where=str(path),
            fix="choose a place that can be written to and has room",
        ) from error


def is_stream(path: Path) -> bool:
    """True if a path stands for something that is open already, such as /dev/stdout.

    >>> is_stream(Path("/dev/stdout")), is_stream(Path("/dev/fd/63")), is_stream(Path("a.md"))
    (True, True, False)
    """
    return _STREAM.fullmatch(str(path)) is not None


def _write_on(path: Path, chunks: Iterable[bytes]) -> None:
    """Go on where others have written: opened by its name, a file would begin anew."""
    found = _STREAM.fullmatch(str(path))
    assert found is not None
    number = found["number"] or {"/dev/stdout": 1, "/dev/stderr": 2}[str(path)]
    sys.stdout.flush()
    with os.fdopen(os.dup(int(number)), "wb") as file:
        file.writelines(chunks)


def _replace(path: Path, chunks: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _write(unfinished, chunks, mode="xb")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write(path: Path, chunks: Iterable[bytes], mode: str) -> None:
    with path.open(mode) as file:
        file.writelines(chunks)
