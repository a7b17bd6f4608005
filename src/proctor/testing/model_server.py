"""A loopback model server for OpenAI clients that can inject faults."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, Self

import msgspec

from proctor.errors import UsageError
from proctor.records.session import ToolCall
from proctor.testing.faults import Fault
from proctor.testing.schema_instance import minimal_instance
from proctor.testing.wire_format import HttpError, HttpRequest, RecordedRequest, ScriptedReply, WireFormat
from proctor.testing.wire_openai import EMBEDDINGS, OPENAI, render_embeddings

Answer = Callable[[RecordedRequest], str | ScriptedReply]
Embed = Callable[[str], Sequence[float]]
ChooseFault = Callable[[RecordedRequest], Fault | None]

GREETING = "This is the loopback model."
DIMENSIONS = 16
MAX_HEAD_BYTES = 64 * 1024
_STATUS_PHRASES = {status.value: status.phrase for status in HTTPStatus}
# SO_LINGER with a timeout of 0 makes close() send a reset.
_LINGER_RESET = struct.pack("ii", 1, 0)


def default_answer(request: RecordedRequest) -> str | ScriptedReply:
    """Return the smallest valid reply: a call of the required tool, JSON for a schema, or a greeting."""
    if request.must_call is not None:
        schema = next((tool.parameters for tool in request.tools if tool.name == request.must_call), {})
        arguments = minimal_instance(schema) if schema.get("type") == "object" else {}
        return ScriptedReply(tool_calls=(ToolCall(request.must_call, arguments),))
    if request.schema is not None:
        return msgspec.json.encode(minimal_instance(request.schema)).decode()
    return GREETING


def default_embed(text: str) -> list[float]:
    """Return a vector of length 1 that counts the letters of a text."""
    counts = [0.0] * DIMENSIONS
    for letter in text:
        counts[ord(letter) % DIMENSIONS] += 1.0
    length = sum(count * count for count in counts) ** 0.5 or 1.0
    return [count / length for count in counts]


class ModelServer:
    """A server on 127.0.0.1 that uses the wire format of OpenAI.

    `answer` maps a request to a string or a `ScriptedReply`; it runs in the server's thread and should be quick, and an
    exception in it becomes a response with status 400. `embed` maps a text to a vector. `calls` lists the requests so
    far. Each request takes the next item of `faults` (None means no fault); when they are used up, the server calls
    `choose_fault`. With `key` or `models`, the server rejects other keys or models. It also rejects requests that the
    real servers would reject.

    The base URL of clients is `server.url + "/v1"`. For other formats, set `formats` in a subclass.

    >>> import urllib.request
    >>> with ModelServer() as server:
    ...     with urllib.request.urlopen(server.url + "/v1/models") as response:
    ...         print(msgspec.json.decode(response.read())["data"][0]["id"])
    loopback
    """

    formats: Sequence[WireFormat] = (OPENAI, EMBEDDINGS)

    def __init__(
        self,
        answer: Answer = default_answer,
        *,
        embed: Embed = default_embed,
        choose_fault: ChooseFault | None = None,
        key: str | None = None,
        models: Sequence[str] | None = None,
        port: int = 0,
    ) -> None:
        self.answer = answer
        self.embed = embed
        self.choose_fault = choose_fault
        self.faults: deque[Fault | None] = deque()
        self._key = key
        self._models = None if models is None else tuple(models)
        self._port = port
        self._calls: list[RecordedRequest] = []
        self._count = 0
        self._connections: set[asyncio.Task[None]] = set()
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] = lambda: None
        self._url = ""

    @property
    def url(self) -> str:
        """The address of the running server, such as "http://127.0.0.1:40123"."""
        if not self._url:
            raise UsageError("the server is not running", fix="use it in `with ModelServer() as …`")
        return self._url

    @property
    def calls(self) -> list[RecordedRequest]:
        """A copy of the requests so far, in order; safe to read from any thread."""
        return self._calls.copy()

    def __enter__(self) -> Self:
        ready = threading.Event()
        failure: list[BaseException] = []

        def run() -> None:
            try:
                asyncio.run(self._serve(ready))
            except BaseException as error:
                failure.append(error)
            finally:
                ready.set()

        self._thread = threading.Thread(target=run, name="proctor-model-server", daemon=True)
        self._thread.start()
        ready.wait()
        if failure:
            raise failure[0]
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and drop every connection."""
        if self._thread is not None:
            with contextlib.suppress(RuntimeError):  # The event loop has already ended.
                self._stop()
            self._thread.join()
            self._thread = None

    async def _serve(self, ready: threading.Event) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        server = await asyncio.start_server(self._accept, "127.0.0.1", self._port, limit=MAX_HEAD_BYTES, backlog=4096)
        self._url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        try:
            await stopped.wait()
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._handle_connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _receive(reader)) is not None:
                response, fault = self._respond(request._replace(number=self._count))
                can_reuse = await _send(writer, response, fault)
                if not can_reuse or request.headers.get("connection", "").lower() == "close":
                    break
        except OSError:
            pass  # The client has disconnected.
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _respond(self, http: HttpRequest) -> tuple[_HttpResponse, Fault | None]:
        self._count += 1
        wire = next((wire for wire in self.formats if wire.serves(http)), None)
        if wire is None:
            return _HttpResponse(404, b'{"error":{"message":"no such path"}}', {}), None
        try:
            if self._key is not None and wire.read_api_key(http.headers) != self._key:
                raise HttpError(401, "Incorrect API key provided")
            request = RecordedRequest(wire.name, http.path, headers=http.headers, number=http.number)
            if http.method == "POST":
                request = wire.read_request(http)
            if self._models is not None and request.model not in (*self._models, ""):
                raise HttpError(404, f"The model `{request.model}` does not exist")
        except HttpError as error:
            return _encode(error.code, wire.render_error(error.code, error.message)), None
        except (KeyError, TypeError, AttributeError) as error:
            message = f"a part of the request cannot be read: {type(error).__name__}: {error}"
            return _encode(400, wire.render_error(400, message)), None
        self._calls.append(request)
        try:
            fault = self.faults.popleft()
        except IndexError:
            fault = None if self.choose_fault is None else self.choose_fault(request)
        return self._render(wire, request, fault or Fault()), fault

    def _render(self, wire: WireFormat, request: RecordedRequest, fault: Fault) -> _HttpResponse:
        code = fault.code or 200
        if fault.content is not None:
            return _HttpResponse(code, fault.content, fault.headers)
        if code >= 400:
            return _encode(code, wire.render_error(code, f"an injected fault: {code}"), fault.headers)
        try:
            body = self._reply(wire, request)
        except Exception as error:
            # Clients do not retry a 400, so the test sees the error immediately.
            message = f"the server's answer function failed: {type(error).__name__}: {error}"
            return _encode(400, wire.render_error(400, message))
        if fault.change is not None:
            fault.change(body)
        return _encode(code, body, fault.headers)

    def _reply(self, wire: WireFormat, request: RecordedRequest) -> dict[str, Any]:
        if request.path.endswith("/models"):
            return wire.render_models(("loopback",) if self._models is None else self._models)
        if request.texts:
            return render_embeddings(request, [self.embed(text) for text in request.texts])
        reply = self.answer(request)
        return wire.render_reply(request, ScriptedReply(reply) if isinstance(reply, str) else reply)


class _HttpResponse(NamedTuple):
    code: int
    body: bytes
    headers: dict[str, str]

    def encode_head(self, length: int, *, close: bool) -> bytes:
        headers = {
            "content-type": "application/json",
            "content-length": str(length),
            "connection": "close" if close else "keep-alive",
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.code} {_STATUS_PHRASES.get(self.code, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _encode(code: int, body: Any, headers: dict[str, str] | None = None) -> _HttpResponse:
    return _HttpResponse(code, msgspec.json.encode(body), headers or {})


async def _receive(reader: asyncio.StreamReader) -> HttpRequest | None:
    """Read the next request of a connection; None if the connection has ended or does not use HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        pairs = [line.partition(":") for line in lines]
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
        return None
    return HttpRequest(method, path.partition("?")[0], headers, body)


async def _send(writer: asyncio.StreamWriter, response: _HttpResponse, fault: Fault | None) -> bool:
    """Send a response; return True if the connection can be used again."""
    body = response.body
    if fault is None:
        writer.write(response.encode_head(len(body), close=False) + body)
        await writer.drain()
        return True
    if fault.delay:
        await asyncio.sleep(fault.delay)
    if fault.silent:
        return False
    if fault.reset:
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
        writer.transport.abort()
        return False
    is_wrong_length = fault.cut_after is not None or fault.extra_length != 0
    writer.write(response.encode_head(len(body) + fault.extra_length, close=is_wrong_length))
    body = body[: fault.cut_after]
    size = fault.chunk or max(1, len(body))
    for start in range(0, len(body), size):
        if start:
            await asyncio.sleep(fault.pause)
        writer.write(body[start : start + size])
        await writer.drain()
    return not (is_wrong_length or fault.hang_up)
