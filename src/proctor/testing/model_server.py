"""A model server on this machine that speaks three wire formats and misbehaves on demand."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Self

import msgspec

from proctor.errors import UsageError
from proctor.records.session import ToolCall
from proctor.testing import wire_anthropic, wire_gemini, wire_openai
from proctor.testing.exchange import (
    LONGEST_HEAD,
    Asked,
    Fault,
    Outgoing,
    Received,
    Refused,
    Said,
    Wire,
    end,
    receive,
    send,
)
from proctor.testing.fitting import fitting

Answer = Callable[[Asked], str | Said]
Embed = Callable[[str], Sequence[float]]
Misbehave = Callable[[Asked], Fault | None]

GREETING = "This is the loopback model."
DIMENSIONS = 16
_WIRES: dict[str, Wire] = {"openai": wire_openai, "anthropic": wire_anthropic, "gemini": wire_gemini}


def default_answer(asked: Asked) -> str | Said:
    """The smallest answer that fits: a call where a tool must be called, JSON where it is asked.

    >>> default_answer(Asked("openai", "/", schema={"type": "array"}))
    '[]'
    """
    if asked.must_call is not None:
        schema = next((tool.parameters for tool in asked.tools if tool.name == asked.must_call), {})
        arguments = fitting(schema) if schema.get("type") == "object" else {}
        return Said(tool_calls=(ToolCall(asked.must_call, arguments),))
    if asked.schema is not None:
        return msgspec.json.encode(fitting(asked.schema)).decode()
    return GREETING


def default_embed(text: str) -> list[float]:
    """A vector of length 1 that counts the letters of a text.

    >>> default_embed("ab") == default_embed("ba")
    True
    """
    counts = [0.0] * DIMENSIONS
    for letter in text:
        counts[ord(letter) % DIMENSIONS] += 1.0
    length = sum(count * count for count in counts) ** 0.5 or 1.0
    return [count / length for count in counts]


class ModelServer:
    """A server that speaks the wire formats of OpenAI, Anthropic and Gemini on 127.0.0.1.

    `answer` is a function from what was asked to a text or a `Said`; it runs in the server's own
    thread and should be quick, and what it raises is answered with status 400. `embed` makes a
    vector of a text. What was asked stands in `calls`. `faults` are used up in order, one for each
    request (None: behave); after that `misbehave` is asked. With `key` or `models`, requests with
    another key or model are refused. Requests that the real servers would refuse are refused.

    OpenAI's base URL is `server.url + "/v1"`; those of Anthropic and Gemini are `server.url`.

    >>> import urllib.request
    >>> with ModelServer() as server:
    ...     with urllib.request.urlopen(server.url + "/v1/models") as answer:
    ...         print(msgspec.json.decode(answer.read())["data"][0]["id"])
    loopback
    """

    def __init__(
        self,
        answer: Answer = default_answer,
        *,
        embed: Embed = default_embed,
        misbehave: Misbehave | None = None,
        key: str | None = None,
        models: Sequence[str] | None = None,
        port: int = 0,
    ) -> None:
        self.answer = answer
        self.embed = embed
        self.misbehave = misbehave
        self.faults: deque[Fault | None] = deque()
        self._key = key
        self._models = None if models is None else tuple(models)
        self._port = port
        self._calls: list[Asked] = []
        self._count = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] = lambda: None
        self._url = ""

    @property
    def url(self) -> str:
        """Where it listens, such as "http://127.0.0.1:40123"."""
        if not self._url:
            raise UsageError("the server is not running", fix="use it in `with ModelServer() as …`")
        return self._url

    @property
    def calls(self) -> list[Asked]:
        """What was asked so far, in order; a copy, to be read from any thread."""
        return self._calls.copy()

    def __enter__(self) -> Self:
        ready = threading.Event()
        failure: list[BaseException] = []

        def work() -> None:
            try:
                asyncio.run(self._serve(ready))
            except BaseException as error:
                failure.append(error)
            finally:
                ready.set()

        self._thread = threading.Thread(target=work, name="proctor-model-server", daemon=True)
        self._thread.start()
        ready.wait()
        if failure:
            raise failure[0]
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and drop every connection; the address answers no more."""
        if self._thread is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed: it has ended already
                self._stop()
            self._thread.join()
            self._thread = None

    async def _serve(self, ready: threading.Event) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(over.set)
        listening = await asyncio.start_server(
            self._connected, "127.0.0.1", self._port, limit=LONGEST_HEAD, backlog=4096
        )
        self._url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        ready.set()
        try:
            await over.wait()
        finally:
            listening.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until either side ends it."""
        try:
            while (received := await receive(reader)) is not None:
                answer, fault = self._respond(received._replace(number=self._count))
                again = await send(writer, answer, fault)
                if not again or received.headers.get("connection", "").lower() == "close":
                    break
        except OSError:
            pass  # the client has gone; it knows why
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            await end(writer)

    def _respond(self, received: Received) -> tuple[Outgoing, Fault | None]:
        self._count += 1
        wire = _wire(received)
        if wire is None:
            return Outgoing(404, b'{"error":{"message":"no such path"}}', {}), None
        try:
            if self._key is not None and wire.key(received.headers) != self._key:
                raise Refused(401, "Incorrect API key provided")
            asked = _listing(received) if received.method == "GET" else wire.read(received)
            if self._models is not None and asked.model not in (*self._models, ""):
                raise Refused(404, f"The model `{asked.model}` does not exist")
        except Refused as refused:
            return _encoded(refused.code, wire.error(refused.code, refused.message)), None
        except (KeyError, TypeError, AttributeError) as error:
            what = f"a part of the request cannot be read: {type(error).__name__}: {error}"
            return _encoded(400, wire.error(400, what)), None
        self._calls.append(asked)
        fault = self._fault(asked)
        return _spoiled(self._answered(wire, asked, fault), wire, fault), fault

    def _fault(self, asked: Asked) -> Fault | None:
        with contextlib.suppress(IndexError):
            return self.faults.popleft()
        return None if self.misbehave is None else self.misbehave(asked)

    def _answered(self, wire: Wire, asked: Asked, fault: Fault | None) -> dict[str, Any]:
        if fault is not None and (fault.content is not None or (fault.code or 200) >= 400):
            return {}
        if asked.path.endswith("/models"):
            return wire.models(("loopback",) if self._models is None else self._models)
        try:
            if asked.texts:
                return wire_openai.embeddings(asked, [self.embed(text) for text in asked.texts])
            said = self.answer(asked)
            return wire.answer(asked, Said(said) if isinstance(said, str) else said)
        except Exception as error:
            # Status 400, so that no client tries again: the test should hear of it at once.
            what = f"the server's answer function failed: {type(error).__name__}: {error}"
            return {"failed": wire.error(400, what)}


def _wire(received: Received) -> Wire | None:
    method, path = received.method, received.path
    if path == "/v1beta/models" and method == "GET":
        return wire_gemini
    if path == "/v1/models" and method == "GET":
        return wire_anthropic if "anthropic-version" in received.headers else wire_openai
    if method != "POST":
        return None
    if path in ("/v1/chat/completions", "/v1/embeddings"):
        return wire_openai
    if path == "/v1/messages":
        return wire_anthropic
    gemini = path.startswith("/v1beta/models/") and path.endswith(wire_gemini.METHOD)
    return wire_gemini if gemini else None


def _listing(received: Received) -> Asked:
    wire = next(name for name, module in _WIRES.items() if module is _wire(received))
    return Asked(
        wire,  # type: ignore[arg-type]
        received.path,
        headers=received.headers,
        number=received.number,
    )


def _spoiled(answer: dict[str, Any], wire: Wire, fault: Fault | None) -> Outgoing:
    """An answer as bytes, with what the fault puts in its place."""
    if "failed" in answer:
        return _encoded(400, answer["failed"])
    if fault is None:
        return _encoded(200, answer)
    code = fault.code or 200
    if fault.content is not None:
        return Outgoing(code, fault.content, fault.headers)
    if code >= 400:
        return _encoded(code, wire.error(code, f"a fault was asked for: {code}"), fault.headers)
    if fault.change is not None:
        fault.change(answer)
    return _encoded(code, answer, fault.headers)


def _encoded(code: int, body: Any, headers: dict[str, str] | None = None) -> Outgoing:
    return Outgoing(code, msgspec.json.encode(body), headers or {})


def _in_proportion(limited: float, broken: float, delay: float, seed: int) -> Misbehave:
    """Some of the requests are refused, some fail, and the rest take a while."""
    chance = random.Random(seed)

    def misbehave(asked: Asked) -> Fault | None:  # noqa: ARG001
        drawn = chance.random()
        if drawn < limited:
            return Fault.status(429)
        if drawn < limited + broken:
            return Fault.status(500)
        return Fault.slow(delay) if delay else None

    return misbehave


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until told to stop, and say where: `python -m proctor.testing.model_server`."""
    parser = argparse.ArgumentParser(
        prog="python -m proctor.testing.model_server",
        description="A model server on this machine for OpenAI, Anthropic and Gemini clients.",
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one")
    parser.add_argument("--limited", type=float, default=0.0, help="part answered with 429")
    parser.add_argument("--broken", type=float, default=0.0, help="part answered with 500")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--seed", type=int, default=0, help="which requests are hit")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    misbehave = _in_proportion(given.limited, given.broken, given.delay, given.seed)
    with ModelServer(misbehave=misbehave, port=given.port) as server:
        print(server.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    main()
