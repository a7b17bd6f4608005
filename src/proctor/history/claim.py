"""One process works on a run at a time: a lock that the system frees when the process dies."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from proctor.errors import ResumeRefused

# Windows has no flock; the lock is then not taken.
fcntl = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None


@contextlib.contextmanager
def claim(folder: Path, run_id: str) -> Iterator[None]:
    """Hold a run for this process until the block ends or the process dies."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run_id}.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _lock(handle):
            raise ResumeRefused(
                f"run {run_id} is being worked on by another process",
                fix="wait for it to end, or stop that process first",
            )
        yield
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    finally:
        os.close(handle)


def is_claimed(folder: Path, run_id: str) -> bool:
    """True if a living process works on the run."""
    try:
        handle = os.open(folder / f"{run_id}.lock", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    if fcntl is None:  # pragma: no cover - only on Windows
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
