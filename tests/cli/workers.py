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

from tests.servers import RedisServer

LONG = 120.0


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as started:
        yield started


class WorkerProcess:
    """A `proctor worker` in a separate process; its output goes to files."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.said_in = folder / f"worker-{time.monotonic_ns()}.log"
        self.printed_in = self.said_in.with_suffix(".out")
        with self.said_in.open("w") as message, self.printed_in.open("w") as printed:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "proctor", "worker", *args],
                cwd=folder,
                env=os.environ | {"NO_COLOR": "1", "COLUMNS": "100"},
                stdout=printed,
                stderr=message,
            )

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
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LONG)


@contextlib.contextmanager
def worker(folder: Path, *args: str, ready: bool = True) -> Iterator[WorkerProcess]:
    """Run a worker until the block ends; with `ready`, wait until it serves requests."""
    started = WorkerProcess(folder, *args)
    try:
        if ready:
            started.wait_for(" runs ")
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
