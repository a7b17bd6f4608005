"""Language models on this machine: a file of weights, served by a process of its own."""

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
from proctor.core.threads import in_thread
from proctor.errors import CallFailed, ModelError, ProctorError
from proctor.models import weights
from proctor.models.openai import OpenAIAdapter
from proctor.models.prices import Prices
from proctor.records.model import ModelRequest, ModelResponse


def start(file: str, *, context: int, parallel: int, threads: int) -> Any:
    """Load a model file and listen; the server lives as long as the object that is given back."""
    llama = extras.require("xllamacpp", extra="local", why="a local language model")
    settings = llama.CommonParams()
    settings.model.path = file
    # The context is shared out among those who are answered at once.
    settings.n_ctx = context * parallel
    settings.n_parallel = parallel
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    for work in (settings.cpuparams, settings.cpuparams_batch):
        work.n_threads = threads
    # Only what is wrong is told.
    settings.verbosity = 1
    return llama.Server(settings)


def main(args: list[str]) -> NoReturn:
    """Serve one model until the input is closed; the process ends with it."""
    asked = argparse.ArgumentParser(prog="proctor.models.local")
    asked.add_argument("file")
    asked.add_argument("--context", type=int, default=4096)
    asked.add_argument("--parallel", type=int, default=1)
    # Half of the processors: who asks, and what else runs here, need some too.
    asked.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 1) // 2))
    given = asked.parse_args(args)
    try:
        server = start(given.file, context=given.context, parallel=given.parallel, threads=given.threads)
    except (ProctorError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        _leave(3)
    print(server.listening_address, flush=True)
    # The address is all that is read from us; a full pipe would stop the server.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdin.buffer.read()
    _leave(0)


def _leave(code: int) -> NoReturn:
    """Not an orderly exit: threads of the server may be in the middle of an answer, and to wait
    for them can take for ever.
    """
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])


START_SECONDS = 120.0
END_SECONDS = 5.0
LAST_WORDS = 600
# Weights that are no language models.
EMBEDDERS = frozenset({"minilm"})
# Small models may go on for ever, inside a JSON string for one.
MAX_TOKENS = 512


def connect(
    address: str,
    *,
    context: int = 4096,
    parallel: int = 1,
    max_tokens: int = MAX_TOKENS,
    timeout: float | None = None,
) -> LocalAdapter:
    """A model on this machine: `local:smollm2`, `local:qwen-judge`, or `local:FILE.gguf`.

    `context` is the number of tokens that a prompt and its answer may have together, `max_tokens`
    the length limit of answers whose request sets none. `parallel` is the number of requests that
    the model answers at the same time. They share the processor, so each takes longer; waiting
    for another request to end does not count towards a time limit. `timeout` limits one request in
    seconds and is at least 120 by default. The time limit of the target or the evaluator applies
    as well.
    """
    name = address.partition(":")[2]
    if name in EMBEDDERS:
        raise ModelError(
            "this is an embedding model, not a language model; it cannot answer prompts",
            where=address,
            fix="use it as an embedder, or choose local:smollm2 or local:qwen-judge",
        )
    file = Path(name).expanduser() if name.endswith(".gguf") else weights.path(name)
    if not file.is_file():
        raise ModelError("there is no such file", where=address, fix="check the path")
    if importlib.util.find_spec("xllamacpp") is None:
        extras.require("xllamacpp", extra="local", why="a local language model")
    numbers = {"context": context, "parallel": parallel, "max_tokens": max_tokens}
    problems = [name for name, value in numbers.items() if value < 1]
    if problems:
        raise ModelError(
            f"{', '.join(problems)} must be 1 or more",
            where=address,
            fix=f"set {problems[0]}=1 or more, or leave it out",
        )
    return LocalAdapter(address, LocalServer(file.resolve(), context, parallel), timeout, max_tokens)


class LocalAdapter:
    """A model on this machine. Its server is started by the first question and ends with us."""

    fits_schema = True

    def __init__(self, address: str, served: LocalServer, timeout: float | None, max_tokens: int) -> None:
        self.model = address
        # An answer that is cut off earlier is another answer.
        self.identity = "" if max_tokens == MAX_TOKENS else f"max_tokens={max_tokens}"
        self._max_tokens = max_tokens
        self._served = served
        self._timeout = timeout
        self._talk: tuple[str, OpenAIAdapter] | None = None

    def __repr__(self) -> str:
        return f"LocalAdapter({self.model!r})"

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Ask the server, which is started if it does not run; it costs nothing."""
        began = time.perf_counter()
        if request.max_tokens is None:
            request = msgspec.structs.replace(request, max_tokens=self._max_tokens)
        url = self._served.running() or await self._started(timeout)
        if timeout is not None:
            timeout = max(0.0, timeout - (time.perf_counter() - began))
        if self._talk is None or self._talk[0] != url:
            self._talk = url, self._adapter(url)
        try:
            return await self._talk[1].complete(request, timeout=timeout)
        except CallFailed as error:
            if (words := self._served.last_words()) is None:
                raise
            raise CallFailed(f"{self.model}: its server ended{words}", retryable=error.retryable) from error

    async def _started(self, timeout: float | None) -> str:
        try:
            # Starting is no part of the time that a question may take.
            with stopwatch.halted():
                async with asyncio.timeout(timeout):
                    url: str = await in_thread(self._served.start)
                    return url
        except TimeoutError:
            # It goes on starting, and the next question finds it.
            raise CallFailed(
                f"{self.model}: its server did not start within {timeout:g} s", retryable=True
            ) from None

    def _adapter(self, url: str) -> OpenAIAdapter:
        adapter = OpenAIAdapter(
            "local",
            base_url=f"{url}/v1",
            # Not one from the environment: a key has no business with this server.
            api_key="none",
            timeout=self._timeout,
            # A server that has ended does not come back by waiting.
            retries=1,
            prices=Prices.free(),
            name=self.model,
        )
        # More would wait in the server, where waiting counts as time of the model.
        adapter.limit_concurrency(self._served.parallel)
        return adapter


class LocalServer:
    """A file of weights and the process that serves it, one in each process for each file."""

    def __init__(self, file: Path, context: int, parallel: int) -> None:
        self._file = file
        self._context, self.parallel = context, parallel

    @property
    def _key(self) -> tuple[int, Path, int, int]:
        # A process that was forked off must not use, or end, the server of its parent.
        return os.getpid(), self._file, self._context, self.parallel

    def running(self) -> str | None:
        """The address of the server, or None if it does not run."""
        server = _SERVERS.get(self._key)
        return server.url if server is not None and server.process.poll() is None else None

    def start(self) -> str:
        """Start the server unless another thread just did; gives its address. Blocks."""
        with _starting(self._key):
            url = self.running()
            if url is None:
                room = ["--context", str(self._context), "--parallel", str(self.parallel)]
                server = _Server([str(self._file), *room])
                _SERVERS[self._key] = server
                url = server.url
            return url

    def last_words(self) -> str | None:
        """What the server said before it ended, or None if it runs."""
        server = _SERVERS.get(self._key)
        if server is None or server.process.poll() is None:
            return None
        return server.last_words()


class _Server:
    """One server process; it ends when its input is closed, which our own end does too."""

    def __init__(self, args: Iterable[str]) -> None:
        # A file, not a pipe: nobody reads along, and a full pipe would stop the server.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        self.process = subprocess.Popen(
            [sys.executable, "-m", "proctor.models.local", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._end = weakref.finalize(self, _end, self.process, self._log, os.getpid())
        self.url = self._address()

    def _address(self) -> str:
        late = threading.Timer(START_SECONDS, self.process.kill)
        late.start()
        try:
            assert self.process.stdout is not None
            said = self.process.stdout.readline().decode().strip()
        finally:
            late.cancel()
        if said:
            return said
        self.process.wait()
        words = self.last_words()
        self._end()
        raise CallFailed(f"the local model did not start: its server ended{words}")

    def last_words(self) -> str:
        """How it ended, and the end of what it wrote."""
        code = self.process.returncode
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LAST_WORDS))
        words = self._log.read().decode(errors="replace").strip()
        return f" with status {code}" + (f": …{words}" if words else "")


def _end(process: subprocess.Popen[bytes], log: IO[bytes], owner: int) -> None:
    """Close a server's input, which ends it; only by the process that started it."""
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


# One server for a file, however many adapters: loading takes a second and as much memory as the
# file is long. They end with this process, through their finalizers and through their closed input.
_SERVERS: dict[tuple[int, Path, int, int], _Server] = {}
# One lock for each, so that a large file does not keep a small one waiting.
_STARTING: dict[tuple[int, Path, int, int], threading.Lock] = {}


def _starting(key: tuple[int, Path, int, int]) -> threading.Lock:
    # One step, whichever threads ask: all get the same lock.
    return _STARTING.setdefault(key, threading.Lock())
