"""Keep user code from ending the process before a run is complete.

`os._exit(0)` in a target ends the process immediately: no report, no output, and exit code 0. While a block is active,
`os._exit`, `os.execv` and `os.execve` (and functions that call them, such as `os.execvp`) raise `ProcessExitBlocked`
instead. Child processes keep the real functions: multiprocessing and `os.fork` need them. An exit in C code cannot be
blocked.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

_NAMES = ("_exit", "execv", "execve")
# `os` re-exports the functions of this module; user code can call either.
_SYSTEM = sys.modules.get(os.name, os)


class ProcessExitBlocked(SystemExit):
    """User code tried to end or replace the process; the message names the call."""


class _Block:
    """A period in which the process must not end; `exit_code` is set at its end."""

    def __init__(self, report: Callable[[str], object] | None) -> None:
        self.pid = os.getpid()
        self.report = report
        self.exit_code: int | None = None


_lock = threading.Lock()
_blocks: list[_Block] = []
_real: dict[str, Callable[..., Any]] = {}


@contextlib.contextmanager
def exit_blocked(report: Callable[[str], object] | None = None) -> Iterator[None]:
    """Block `os._exit` and the exec functions; `report` receives a message for every attempt."""
    block = _start(report)
    try:
        yield
    finally:
        with _lock:
            _blocks.remove(block)
            if not _blocks:
                _restore()


def run_and_exit(command: Callable[[], int]) -> NoReturn:
    """Run a command and end the process with its exit code, which user code cannot change.

    Functions that run at the end of the process (`atexit`) and threads may still call
    `os._exit(0)` then, which would hide that the command failed.
    """
    block = _start(None)
    block.exit_code = code = command()
    sys.exit(code)


def _start(report: Callable[[str], object] | None) -> _Block:
    block = _Block(report)
    with _lock:
        if not _blocks:
            _install()
        _blocks.append(block)
    return block


def _install() -> None:
    for name in _NAMES:
        _real[name] = getattr(os, name)
        blocked = _make_blocked(name, _real[name])
        for module in (os, _SYSTEM):
            setattr(module, name, blocked)


def _restore() -> None:
    for name, function in _real.items():
        for module in (os, _SYSTEM):
            # Other code may have replaced it in the meantime.
            if getattr(getattr(module, name), "_real", None) is function:
                setattr(module, name, function)


def _make_blocked(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def blocked(*args: Any, **kwargs: Any) -> Any:
        pid = os.getpid()
        active = [block for block in _blocks if block.pid == pid]
        if not active:
            return real(*args, **kwargs)
        if name == "_exit" and active[-1].exit_code is not None:
            real(active[-1].exit_code or args[0])
        call = f"os._exit({args[0] if args else ''})" if name == "_exit" else f"os.{name}(…)"
        text = (
            f"{call} would end the process in the middle of the run, so Proctor blocked it. "
            "Fix: raise an exception, or call it in a separate process"
        )
        for block in active:
            if block.report is not None:
                block.report(text)
        raise ProcessExitBlocked(text)

    blocked._real = real  # type: ignore[attr-defined]
    blocked.__name__ = name
    return blocked
