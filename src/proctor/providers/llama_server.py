"""A local language model behind an OpenAI-compatible server, in a process of its own.

`python -m proctor.providers.llama_server FILE` prints the server's address as its first line, and
ends when its input is closed. So it never outlives the process that started it, however that ends.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from proctor import extras
from proctor.errors import ProctorError


def start(file: str, *, context: int, parallel: int) -> Any:
    """Load a model file and listen; the server lives as long as the object that is given back."""
    llama = extras.require("xllamacpp", extra="local", why="a local language model")
    settings = llama.CommonParams()
    settings.model.path = file
    # The context is shared out among those who are answered at once.
    settings.n_ctx = context * parallel
    settings.n_parallel = parallel
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    # Only what is wrong is told.
    settings.verbosity = 1
    return llama.Server(settings)


def main(args: list[str]) -> int:
    """Serve one model until the input is closed."""
    asked = argparse.ArgumentParser(prog="proctor.providers.llama_server")
    asked.add_argument("file")
    asked.add_argument("--context", type=int, default=4096)
    asked.add_argument("--parallel", type=int, default=1)
    given = asked.parse_args(args)
    try:
        server = start(given.file, context=given.context, parallel=given.parallel)
    except (ProctorError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 3
    print(server.listening_address, flush=True)
    sys.stdin.buffer.read()
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Not an orderly exit: threads of the server may be in the middle of an answer.
    os._exit(code)
