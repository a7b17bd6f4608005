"""Worker processes for the tests of the command line, on a Redis of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.testing import RedisServer

LONG = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as started:
        yield started


class WorkerProcess:
    """A `proctor worker` in a process of its own; what it says goes into a file."""

    def __init__(self, folder: Path, *args: str, ready: bool = True) -> None:
        self.said_in = folder / f"worker-{time.monotonic_ns()}.log"
        self.printed_in = self.said_in.with_suffix(".out")
        with self.said_in.open("w") as said, self.printed_in.open("w") as printed:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "proctor", "worker", *args],
                cwd=folder,
                env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"},
                stdout=printed,
                stderr=said,
            )
        if ready:
            self.wait_for(" runs ")

    @property
    def said(self) -> str:
        return self.said_in.read_text()

    @property
    def printed(self) -> str:
        return self.printed_in.read_text()

    def wait_for(self, text: str) -> None:
        wait_until(lambda: text in self.said or self.process.poll() is not None)
        assert text in self.said, self.said

    def terminate(self) -> int:
        """End it as an operator would, and give its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LONG)


@contextlib.contextmanager
def worker(folder: Path, *args: str, ready: bool = True) -> Iterator[WorkerProcess]:
    """A worker while the block lasts."""
    started = WorkerProcess(folder, *args, ready=ready)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait(LONG)


def wait_until(is_true: Any) -> None:
    """Wait until something holds."""
    ends = time.monotonic() + LONG
    while not is_true():
        assert time.monotonic() < ends, "it did not come true in time"
        time.sleep(0.01)
