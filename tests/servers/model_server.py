"""A model server that also speaks the wire formats of Anthropic and Gemini, and runs as a process."""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import time
from collections.abc import Sequence

import proctor.testing
from proctor.testing import Fault, RecordedRequest
from proctor.testing.wire_openai import EMBEDDINGS, OPENAI
from tests.servers.wire_anthropic import ANTHROPIC
from tests.servers.wire_gemini import GEMINI


class ModelServer(proctor.testing.ModelServer):
    """A server on 127.0.0.1 for OpenAI, Anthropic and Gemini clients.

    OpenAI's base URL is `server.url + "/v1"`; those of Anthropic and Gemini are `server.url`.
    """

    formats = (ANTHROPIC, GEMINI, OPENAI, EMBEDDINGS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted, and print the URL: `python -m tests.servers.model_server`."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.servers.model_server",
        description="Serve a loopback model for OpenAI, Anthropic and Gemini clients.",
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 (default): any free port")
    parser.add_argument("--limited", type=float, default=0.0, help="fraction of requests that get a 429")
    parser.add_argument("--broken", type=float, default=0.0, help="fraction of requests that get a 500")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each response")
    parser.add_argument("--seed", type=int, default=0, help="seed that selects the failing requests")
    options = parser.parse_args(arguments)
    generator = random.Random(options.seed)

    def misbehave(_: RecordedRequest) -> Fault | None:
        chance = generator.random()
        if chance < options.limited:
            return Fault.status(429)
        if chance < options.limited + options.broken:
            return Fault.status(500)
        return Fault.slow(options.delay) if options.delay else None

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ModelServer(choose_fault=misbehave, port=options.port) as server:
        print(server.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    main()
