"""A fixed number of worker processes: those that die are replaced."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

END_SECONDS = 20


class WorkerCrew:
    """`size` processes of `proctor worker`; those that died by themselves are counted."""

    def __init__(self, command: Sequence[str], folder: Path, size: int, **environment: str) -> None:
        self._command = [sys.executable, "-m", "proctor", "worker", *command]
        self._folder = folder
        self._environment = os.environ | environment
        self._size = size
        self._alive: dict[int, subprocess.Popen[bytes]] = {}
        self.killed: list[int] = []
        self.died: list[int] = []

    def __enter__(self) -> WorkerCrew:
        self.fill_up()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._alive.values():
            process.kill()
            process.wait()
        self._alive.clear()

    @property
    def pids(self) -> set[int]:
        """The processes that were alive when last looked at."""
        return set(self._alive)

    def fill_up(self) -> None:
        """Replace those that have ended."""
        for pid, process in list(self._alive.items()):
            if process.poll() is not None:
                del self._alive[pid]
                if pid not in self.killed:
                    self.died.append(pid)
        while len(self._alive) < self._size:
            self._start()

    def kill_one_of(self, pids: set[int], chance: random.Random) -> bool:
        """SIGKILL one of these by its pid, if one is alive."""
        results = sorted(pid for pid in pids & self.pids if self._alive[pid].poll() is None)
        if not results:
            return False
        pid = chance.choice(results)
        self.killed.append(pid)
        self._alive[pid].send_signal(signal.SIGKILL)
        self._alive[pid].wait(END_SECONDS)
        return True

    def end(self) -> list[int]:
        """SIGTERM to all; their exit codes."""
        for process in self._alive.values():
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(END_SECONDS) for process in self._alive.values()]
        self._alive.clear()
        return codes

    def _start(self) -> None:
        with (self._folder / "workers.log").open("ab") as text:
            process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=text,
                stderr=text,
            )
        self._alive[process.pid] = process
