"""A local language model behind an OpenAI-compatible server, in a process of its own.

`python -m proctor.providers.llama_server FILE` prints the server's address as its first line, and
ends when its input is closed. So it never outlives the process that started it, however that ends.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, NoReturn

from proctor import extras
from proctor.errors import ProctorError


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
    asked = argparse.ArgumentParser(prog="proctor.providers.llama_server")
    asked.add_argument("file")
    asked.add_argument("--context", type=int, default=4096)
    asked.add_argument("--parallel", type=int, default=1)
    # Half of the processors: who asks, and what else runs here, need some too.
    asked.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 1) // 2))
    given = asked.parse_args(args)
    try:
        server = start(
            given.file, context=given.context, parallel=given.parallel, threads=given.threads
        )
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
