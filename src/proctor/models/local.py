"""Language models on this machine: a server process loads the weights and answers requests."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, NoReturn

import msgspec

from proctor.core import optional as extras
from proctor.core import stopwatch
from proctor.core.threads import run_in_thread
from proctor.errors import CallFailed, ModelError, ProctorError
from proctor.models import weights
from proctor.models.openai import OpenAIAdapter
from proctor.models.prices import Prices
from proctor.records.model import ModelRequest, ModelResponse


def start(file: str, *, context: int, parallel: int, threads: int) -> Any:
    """Load a model file and start a server, which runs as long as the returned object exists."""
    llama = extras.require("xllamacpp", extra="local", why="a local language model")
    settings = llama.CommonParams()
    settings.model.path = file
    # Concurrent requests share the context.
    settings.n_ctx = context * parallel
    settings.n_parallel = parallel
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    for cpu_settings in (settings.cpuparams, settings.cpuparams_batch):
        cpu_settings.n_threads = threads
    # Log only errors.
    settings.verbosity = 1
    return llama.Server(settings)


def main(args: list[str]) -> NoReturn:
    """Serve one model until standard input is closed."""
    parser = argparse.ArgumentParser(prog="proctor.models.local")
    parser.add_argument("file")
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--parallel", type=int, default=1)
    # Half of the processors, because the run needs some too.
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 1) // 2))
    options = parser.parse_args(args)
    try:
        server = start(options.file, context=options.context, parallel=options.parallel, threads=options.threads)
    except (ProctorError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        _exit(3)
    print(server.listening_address, flush=True)
    # The parent reads only the address; a full pipe would block the server.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdin.buffer.read()
    _exit(0)


def _exit(code: int) -> NoReturn:
    """Exit immediately: the server's threads may still be busy, and waiting for them may never end."""
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])


START_SECONDS = 120.0
END_SECONDS = 5.0
LOG_TAIL_BYTES = 600
# Weights that are not language models.
EMBEDDERS = frozenset({"minilm", "multilingual"})
# Small models may never stop, for example inside a JSON string.
MAX_TOKENS = 512


def connect(
    address: str,
    *,
    context: int = 4096,
    concurrency: int = 1,
    max_tokens: int = MAX_TOKENS,
    timeout: float | None = None,
) -> LocalAdapter:
    """Connect a model on this machine: `local:smollm2`, `local:qwen-judge`, or `local:FILE.gguf`.

    `context` is the maximum number of tokens of a prompt and its answer together, `max_tokens` the length limit of
    answers whose request sets no limit. `concurrency` is the number of concurrent requests. They share the processor,
    so each takes longer; waiting for another request does not count towards a time limit. `timeout` limits one request
    in seconds and is at least 120 by default. The time limit of the target or the evaluator applies as well.
    """
    name = address.partition(":")[2]
    if name in EMBEDDERS:
        raise ModelError(
            "this is an embedding model, which cannot answer prompts",
            where=address,
            fix="use it as an embedder, or choose local:smollm2 or local:qwen-judge",
        )
    file = Path(name).expanduser() if name.endswith(".gguf") else weights.path(name)
    if not file.is_file():
        raise ModelError("the file does not exist", where=address, fix="check the path after local:")
    if importlib.util.find_spec("xllamacpp") is None:
        extras.require("xllamacpp", extra="local", why="a local language model")
    numbers = {"context": context, "concurrency": concurrency, "max_tokens": max_tokens}
    problems = [name for name, value in numbers.items() if value < 1]
    if problems:
        raise ModelError(f"{', '.join(problems)} must be 1 or more", where=address, fix=f"leave out {problems[0]}")
    return LocalAdapter(address, LocalServer(file.resolve(), context, concurrency), timeout, max_tokens)


class LocalAdapter:
    """A model on this machine. The first request starts its server, which ends with this process."""

    supports_json_schema = True

    def __init__(self, address: str, server: LocalServer, timeout: float | None, max_tokens: int) -> None:
        self.model = address
        # A different limit may truncate the answer, so it changes the identity.
        self.identity = "" if max_tokens == MAX_TOKENS else f"max_tokens={max_tokens}"
        self._max_tokens = max_tokens
        self._server = server
        self._timeout = timeout
        self._connection: tuple[str, OpenAIAdapter] | None = None

    def __repr__(self) -> str:
        return f"LocalAdapter({self.model!r})"

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Send the request to the server, and start the server if necessary; the cost is 0."""
        started = time.perf_counter()
        if request.max_tokens is None:
            request = msgspec.structs.replace(request, max_tokens=self._max_tokens)
        url = self._server.find_url() or await self._start(timeout)
        if timeout is not None:
            timeout = max(0.0, timeout - (time.perf_counter() - started))
        if self._connection is None or self._connection[0] != url:
            self._connection = url, self._connect(url)
        try:
            return await self._connection[1].complete(request, timeout=timeout)
        except CallFailed as error:
            if (log := self._server.describe_exit()) is None:
                raise
            raise CallFailed(f"{self.model}: its server process ended{log}", retryable=error.retryable) from error

    async def _start(self, timeout: float | None) -> str:
        try:
            # The start does not count towards the time limit of the request.
            with stopwatch.paused():
                async with asyncio.timeout(timeout):
                    url: str = await run_in_thread(self._server.start)
                    return url
        except TimeoutError:
            # The start continues, and the next request uses the server.
            raise CallFailed(
                f"{self.model}: its server process did not start within {timeout:g} s", retryable=True
            ) from None

    def _connect(self, url: str) -> OpenAIAdapter:
        adapter = OpenAIAdapter(
            "local",
            base_url=f"{url}/v1",
            # No key from the environment, because this server needs none.
            api_key="none",
            timeout=self._timeout,
            # A server that has ended does not restart.
            retries=1,
            prices=Prices.free(),
            name=self.model,
        )
        # Further requests would wait in the server, where the wait counts as latency.
        adapter.limit_concurrency(self._server.parallel)
        return adapter


# The process, the file, the context and the number of parallel requests.
ServerKey = tuple[int, Path, int, int]


class LocalServer:
    """A file of weights and its server process, which all adapters of this process share."""

    def __init__(self, file: Path, context: int, parallel: int) -> None:
        self._file = file
        self._context, self.parallel = context, parallel

    @property
    def _key(self) -> ServerKey:
        # A forked process must not use, or stop, the server of its parent.
        return os.getpid(), self._file, self._context, self.parallel

    @property
    def _start_lock(self) -> threading.Lock:
        return _START_LOCKS.setdefault(self._key, threading.Lock())

    def find_url(self) -> str | None:
        """Return the URL of the server, or None if it is not running."""
        server = _SERVERS.get(self._key)
        return server.url if server is not None and server.process.poll() is None else None

    def start(self) -> str:
        """Start the server unless it is running, and return its URL. This blocks."""
        with self._start_lock:
            url = self.find_url()
            if url is None:
                options = ["--context", str(self._context), "--parallel", str(self.parallel)]
                server = _ServerProcess([str(self._file), *options])
                _SERVERS[self._key] = server
                url = server.url
            return url

    def describe_exit(self) -> str | None:
        """Return the end of the log of a server that has ended, or None if it is running."""
        server = _SERVERS.get(self._key)
        if server is None or server.process.poll() is None:
            return None
        return server.describe_exit()


class _ServerProcess:
    """One server process; it ends when its standard input is closed, or with this process."""

    def __init__(self, args: Iterable[str]) -> None:
        # A file, not a pipe: a full pipe would block the server.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_stop`
        self.process = subprocess.Popen(
            [sys.executable, "-m", "proctor.models.local", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._stop = weakref.finalize(self, _stop, self.process, self._log, os.getpid())
        self.url = self._read_url()

    def _read_url(self) -> str:
        timer = threading.Timer(START_SECONDS, self.process.kill)
        timer.start()
        try:
            assert self.process.stdout is not None
            url = self.process.stdout.readline().decode().strip()
        finally:
            timer.cancel()
        if url:
            return url
        self.process.wait()
        log = self.describe_exit()
        self._stop()
        raise CallFailed(f"the local model did not start: its server process ended{log}")

    def describe_exit(self) -> str:
        code = self.process.returncode
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_TAIL_BYTES))
        log = self._log.read().decode(errors="replace").strip()
        return f" with status {code}" + (f": …{log}" if log else "")


def _stop(process: subprocess.Popen[bytes], log: IO[bytes], owner: int) -> None:
    """Close a server's input, which ends it; only in the process that started it."""
    if os.getpid() != owner:
        return
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    log.close()


# One server for each file: loading is slow and needs as much memory as the file is large.
_SERVERS: dict[ServerKey, _ServerProcess] = {}
# One lock for each server, so that a small file does not wait for a large one.
_START_LOCKS: dict[ServerKey, threading.Lock] = {}
