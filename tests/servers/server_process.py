"""A server process with its folder and port; nothing of it is left behind."""

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
# Another process may take a port between our check and the server's start.
_TRIES = 3
# Kills the server and deletes its folder if this process dies, which closes the pipe.
_WATCH = 'read -r _; kill -9 "$0"; rm -rf "$1"'

# Builds the command for the current port.
Command = Callable[[], Sequence[str | Path]]


class ServerProcess:
    """A server on a free port of this machine, in a temporary folder.

    `is_ready` must return True within `patience` seconds. `soft` and `hard` are the signals that stop
    the server. It stops with `drop()`, or with this process.
    """

    def __init__(
        self,
        name: str,
        is_ready: Callable[[], bool],
        patience: float,
        *,
        soft: signal.Signals = signal.SIGTERM,
        hard: signal.Signals = signal.SIGKILL,
        **options: Any,
    ) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"proctor-{name.lower()}-"))
        self.port = 0
        self._is_ready = is_ready
        self._patience = patience
        self._signals = {False: soft, True: hard}
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    def start(self, command: Command) -> None:
        """Start it on a free port, and return as soon as it is ready."""
        for _ in range(_TRIES):
            self.port = free_port()
            if self._launch(command()):
                return
        raise self.error("it could not be started")

    def restart(self, command: Command, *, hard: bool = False, pause: float = 0.0) -> None:
        """Stop it, wait for `pause` seconds, and start it on the same port."""
        self.stop(hard=hard)
        time.sleep(pause)
        if not self._launch(command()):
            raise self.error("it could not be started again")

    def stop(self, *, hard: bool) -> None:
        """Stop both processes, the watch first, so that it cannot kill a process with a reused id."""
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
        """Stop it and delete its folder."""
        self.stop(hard=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def error(self, what: str) -> UsageError:
        """Return the error to raise, with the end of the server's log."""
        log = self.folder / "log"
        last = log.read_text("utf-8", "replace").splitlines()[-20:] if log.exists() else []
        return UsageError("\n".join([f"{what}; its log ends with:", *last]), where=self.name)

    def _launch(self, command: Sequence[str | Path]) -> bool:
        """Start the process; return True as soon as it is ready, False if it ended before."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C interrupts the tests, which then stop the server.
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
                self.stop(hard=True)
                return False
            if self._is_ready():
                return True
            time.sleep(0.01)
        raise self.error(f"it does not answer after {self._patience:g} s")


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
