"""Claim a run for one process with a lock that the system frees when the process dies."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import time
from collections.abc import Iterator
from pathlib import Path

from proctor.errors import HistoryError, ResumeRefused

# Windows has no flock; runs are not locked there.
fcntl = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None

# A process that only checks a claim also takes the lock for a moment.
ATTEMPTS, ATTEMPT_SECONDS = 5, 0.02


@contextlib.contextmanager
def claim(folder: Path, run_id: str) -> Iterator[None]:
    """Hold a run for this process until the block ends or the process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryError(f"the history cannot be written: {error}", where=str(folder)) from None
    path = folder / f"{run_id}.lock"
    handle = _take(path)
    if handle is None:
        raise claimed_error(run_id)
    try:
        yield
    finally:
        # A remaining file is harmless; only the lock counts, and it ends here.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def is_claimed(folder: Path, run_id: str) -> bool:
    """Tell whether a process works on the run."""
    try:
        # Reading is enough for the check; the disk may be read-only.
        handle = os.open(folder / f"{run_id}.lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        return not _lock(handle, shared=True)
    finally:
        os.close(handle)


def claimed_error(run_id: str) -> ResumeRefused:
    """Return the error for a run that another process has claimed."""
    return ResumeRefused(
        f"run {run_id} is being worked on by another process",
        fix="wait for it to end, or stop that process first",
    )


def _take(path: Path) -> int | None:
    """Return the locked file, or None if another process has it."""
    for _ in range(ATTEMPTS):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        if _lock(handle) and _is_still(handle, path):
            return handle
        os.close(handle)
        time.sleep(ATTEMPT_SECONDS)
    return None


def _is_still(handle: int, path: Path) -> bool:
    """Tell whether the file still exists; its last owner may have removed it before the lock."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _lock(handle: int, *, shared: bool = False) -> bool:
    """Lock a file without waiting; checks use shared locks, so that they do not block each other."""
    if fcntl is None:  # pragma: no cover - only on Windows
        return True
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
