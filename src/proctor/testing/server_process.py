"""A server as a process of its own: its folder, its port, and that nothing of it is left behind."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from proctor.errors import UsageError

_SHUT_DOWN = 10.0
# Another process may take a port between our look and the server's.
_TRIES = 3
# Ends the server and its folder when this process dies without a word: then the pipe closes.
_WATCH = 'read -r _; kill -9 "$0"; rm -rf "$1"'

# The command for a port, and whether the server answers there.
Command = Callable[[], Sequence[str | Path]]


class ServerProcess:
    """The process of a server on a free port of this machine, in a temporary folder.

    `answers` tells whether it can be used; it must within `patience` seconds. `soft` and `hard` are
    the signals that end it. It ends with `drop()`, or with this process.
    """

    def __init__(
        self,
        name: str,
        answers: Callable[[], bool],
        patience: float,
        *,
        soft: signal.Signals = signal.SIGTERM,
        hard: signal.Signals = signal.SIGKILL,
        **options: Any,
    ) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"proctor-{name.lower()}-"))
        self.port = 0
        self._answers = answers
        self._patience = patience
        self._signals = {False: soft, True: hard}
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    def start(self, command: Command) -> None:
        """Start it on a free port, and return as soon as it answers."""
        for _ in range(_TRIES):
            self.port = free_port()
            if self._launched(command()):
                return
        raise self.failed("it could not be started")

    def start_again(self, command: Command, *, hard: bool = False, away: float = 0.0) -> None:
        """End it and start it on the same port; it stays away for so many seconds."""
        self.end(hard=hard)
        time.sleep(away)
        if not self._launched(command()):
            raise self.failed("it could not be started again")

    def end(self, *, hard: bool) -> None:
        """End our own two processes, the watch first, so that it cannot hit another's."""
        if self._watch is not None:
            self._watch.kill()
            self._watch.communicate()
            self._watch = None
        if self._process is not None:
            self._process.send_signal(self._signals[hard])
            try:
                self._process.wait(_SHUT_DOWN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def drop(self) -> None:
        """End it, and what it held goes."""
        self.end(hard=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def failed(self, what: str) -> UsageError:
        """The error to raise, with the end of the server's log."""
        log = self.folder / "log"
        last = log.read_text("utf-8", "replace").splitlines()[-20:] if log.exists() else []
        return UsageError("\n".join([f"{what}; its log ends with:", *last]), where=self.name)

    def _launched(self, command: Sequence[str | Path]) -> bool:
        """Start the process; True as soon as it answers, False if it ended before."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the tests; what they end, they end.
                start_new_session=True,
                **self._options,
            )
        self._watch = subprocess.Popen(
            ["sh", "-c", _WATCH, str(self._process.pid), str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        deadline = time.monotonic() + self._patience
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self.end(hard=True)
                return False
            if self._answers():
                return True
            time.sleep(0.01)
        raise self.failed(f"it does not answer after {self._patience:g} s")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
