"""Limit the threads of the linear algebra in numpy while a local model computes."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

# Where the wheels of numpy keep OpenBLAS, relative to the package.
_FOLDERS = ("../numpy.libs", ".dylibs", "../numpy/.libs", ".libs")
_PREFIXES, _SUFFIXES = ("scipy_openblas", "openblas"), ("64_", "", "64")


class _Library(NamedTuple):
    """The functions of OpenBLAS that read and set its number of threads."""

    get_threads: Any
    set_threads: Any


class _SingleThread:
    """Sets one thread for as long as any caller computes, and restores the number afterwards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers, self._previous = 0, 0

    def enter(self, library: _Library) -> None:
        with self._lock:
            if not self._callers:
                self._previous = library.get_threads()
                library.set_threads(1)
            self._callers += 1

    def leave(self, library: _Library) -> None:
        with self._lock:
            self._callers -= 1
            if not self._callers:
                library.set_threads(self._previous)


_single_thread = _SingleThread()


@contextlib.contextmanager
def use_one_thread(np: Any) -> Iterator[None]:
    """Compute with one thread; the products of a small model are too short to share, and their threads only wait.

    OpenBLAS has one number of threads for the process, so other threads compute with one too until this ends. With
    another library nothing is changed.
    """
    library = _find_openblas(str(Path(np.__file__).parent))
    if library is None:
        yield
        return
    _single_thread.enter(library)
    try:
        yield
    finally:
        _single_thread.leave(library)


@functools.cache
def _find_openblas(package: str) -> _Library | None:
    """Return the OpenBLAS that numpy has loaded; None if it has another library, or a build without these functions."""
    for folder in _FOLDERS:
        for path in sorted(Path(package, folder).glob("*openblas*")):
            with contextlib.suppress(OSError):
                handle = ctypes.CDLL(str(path.resolve()))
                for name in (f"{prefix}_{{}}_num_threads{suffix}" for prefix in _PREFIXES for suffix in _SUFFIXES):
                    with contextlib.suppress(AttributeError):
                        return _Library(handle[name.format("get")], handle[name.format("set")])
    return None
