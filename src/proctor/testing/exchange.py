"""What the model server was asked and what it says, the same for every wire format."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from proctor.records.model import TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage

Told = Literal["retry-after", "date", "milliseconds", "openai", "anthropic", "nothing"]
FOREVER = 3600.0


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What goes wrong with one answer. Use the named ones; fields can be put together, too.

    The answer waits `delay` seconds. Then the connection ends without a word (`silent`, or with a
    reset: `reset`); or the answer goes out with its status, headers and body replaced by what is
    given here, `chunk` bytes at a time with `pause` seconds between them, declaring `extra_length`
    bytes more than there are, and breaking off after `cut_after` bytes of the body. With `hang_up`
    the connection closes after the answer, unannounced.

    >>> Fault.status(429, retry_after=2).headers
    {'retry-after': '2'}
    """

    code: int | None = None
    headers: dict[str, str] = {}
    content: bytes | None = None
    change: Callable[[dict[str, Any]], object] | None = None
    delay: float = 0.0
    silent: bool = False
    reset: bool = False
    chunk: int | None = None
    pause: float = 0.0
    extra_length: int = 0
    cut_after: int | None = None
    hang_up: bool = False

    @classmethod
    def status(
        cls,
        code: int,
        *,
        retry_after: float | str | datetime | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Fault:
        """A status such as 429 or 500 with the provider's error, or with a body of your own."""
        told = dict(headers or {})
        if isinstance(retry_after, datetime):
            told["retry-after"] = format_datetime(retry_after.astimezone(UTC), usegmt=True)
        elif retry_after is not None:
            told["retry-after"] = str(retry_after)
        return cls(code=code, headers=told, content=body)

    @classmethod
    def limited(cls, seconds: float, told: Told = "retry-after", now: datetime | None = None) -> Fault:
        """A 429 that tells how long to wait in one of the ways that providers have.

        >>> Fault.limited(90, "openai").headers["x-ratelimit-reset-requests"]
        '1m30s'
        """
        return cls(code=429, headers=_waiting(seconds, told, now or datetime.now(UTC)))

    @classmethod
    def hang(cls, seconds: float = FOREVER) -> Fault:
        """Nothing is said for so long; then the connection closes."""
        return cls(delay=seconds, silent=True)

    @classmethod
    def slow(cls, seconds: float) -> Fault:
        """The right answer, but late."""
        return cls(delay=seconds)

    @classmethod
    def drip(cls, chunk: int = 16, pause: float = 0.01) -> Fault:
        """The right answer, a few bytes at a time."""
        return cls(chunk=chunk, pause=pause)

    @classmethod
    def cut(cls, after: int = 20) -> Fault:
        """The connection closes in the middle of the body."""
        return cls(cut_after=after)

    @classmethod
    def closed(cls) -> Fault:
        """The connection closes before anything is said."""
        return cls(silent=True)

    @classmethod
    def farewell(cls) -> Fault:
        """The right answer; then the connection closes, though it was to be kept."""
        return cls(hang_up=True)

    @classmethod
    def dropped(cls) -> Fault:
        """The connection is reset before anything is said."""
        return cls(reset=True)

    @classmethod
    def body(cls, content: bytes | str, content_type: str = "application/json", code: int = 200) -> Fault:
        """Another body: no JSON, half of it, a page of HTML, JSON of another shape."""
        data = content.encode() if isinstance(content, str) else content
        return cls(code=code, headers={"content-type": content_type}, content=data)

    @classmethod
    def changed(cls, change: Callable[[dict[str, Any]], object]) -> Fault:
        """The right answer, but `change` may first take out or put in what it likes.

        >>> Fault.changed(lambda answer: answer.pop("usage", None)).code is None
        True
        """
        return cls(change=change)

    @classmethod
    def huge(cls, size: int) -> Fault:
        """A body of so many bytes."""
        return cls.body(b" " * size)

    @classmethod
    def wrong_length(cls, extra: int = 10) -> Fault:
        """The right answer, but a Content-Length that promises so many bytes more."""
        return cls(extra_length=extra)


def _waiting(seconds: float, told: Told, now: datetime) -> dict[str, str]:
    until = now + timedelta(seconds=seconds)
    match told:
        case "retry-after":
            return {"retry-after": f"{seconds:g}"}
        case "date":
            return {"retry-after": format_datetime(until.astimezone(UTC), usegmt=True)}
        case "milliseconds":
            return {"retry-after-ms": f"{seconds * 1000:g}"}
        case "openai":
            return {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": _duration(seconds)}
        case "anthropic":
            return {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": until.isoformat().replace("+00:00", "Z"),
            }
        case "nothing":
            return {}


def _duration(seconds: float) -> str:
    """Seconds as OpenAI writes them: 6m0s, 1.5s, 120ms."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g}m{rest:g}s" if minutes else f"{rest:g}s"


T = TypeVar("T")
WireName = Literal["openai", "anthropic", "gemini"]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request that the model server got, as the same request to any provider.

    `settings` holds what was set of `temperature`, `max_tokens`, `seed` and `top_logprobs`;
    `must_call` the tool that has to be called; `texts` what is to be embedded. `headers` have
    lower-case names, `body` is the JSON as it came, `number` counts the requests from 0.

    >>> Asked("openai", "/v1/chat/completions", messages=(Message("user", "Hello"),)).text
    'Hello'
    """

    wire: WireName
    path: str
    model: str = ""
    messages: tuple[Message, ...] = ()
    schema: dict[str, Any] | None = None
    tools: tuple[ToolSpec, ...] = ()
    must_call: str | None = None
    settings: dict[str, Any] = {}
    texts: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    number: int = 0

    @property
    def text(self) -> str:
        """What the last message says; empty if there is none or it is not text."""
        content = self.messages[-1].content if self.messages else ""
        return content if isinstance(content, str) else ""


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the model server answers, where a plain text is not enough.

    `finish_reason` is one of Proctor's words ("stop", "length", "tool_calls", "refusal") or the
    provider's own. Without `usage` words are counted; `Usage()` leaves it out of the answer.

    >>> Said("Paris", usage=Usage(input_tokens=12, output_tokens=1)).usage.total_tokens
    13
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    refusal: str | None = None
    usage: Usage | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()

    @property
    def reason(self) -> str:
        """Why it ended, in Proctor's words, also where that was not said."""
        if self.finish_reason is not None:
            return self.finish_reason
        if self.refusal is not None:
            return "refusal"
        return "tool_calls" if self.tool_calls else "stop"


class Received(NamedTuple):
    """A request as it came over HTTP."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    number: int = 0


class Refused(Exception):
    """The server does not take a request, as the real one would not: status and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Wire(Protocol):
    """A wire format: how requests are read, and answers, models and errors written."""

    def read(self, received: Received) -> Asked:
        """What is asked; raises `Refused` where the real server would refuse it."""
        ...

    def key(self, headers: dict[str, str]) -> str:
        """The key that was sent, or nothing."""
        ...

    def answer(self, asked: Asked, said: Said) -> dict[str, Any]: ...

    def models(self, names: tuple[str, ...]) -> dict[str, Any]: ...

    def error(self, code: int, message: str) -> dict[str, Any]: ...


def body_of(received: Received, kind: type[T]) -> tuple[dict[str, Any], T]:
    """The JSON of a request, and the same as a record; what does not fit is refused."""
    try:
        body = msgspec.json.decode(received.body)
        return body, msgspec.convert(body, kind)
    except msgspec.DecodeError as error:
        raise Refused(400, f"the request cannot be read: {error}") from None


def given(**settings: Any) -> dict[str, Any]:
    """The settings that were set.

    >>> given(temperature=0.0, seed=None)
    {'temperature': 0.0}
    """
    return {name: value for name, value in settings.items() if value is not None}


def counted(asked: Asked, said: Said) -> Usage:
    """What an exchange used: as told, or its words."""
    if said.usage is not None:
        return said.usage
    heard = sum(len(str(message.content).split()) for message in asked.messages)
    return Usage(heard, len(said.text.split()), 0)


def joined(parts: list[dict[str, Any]]) -> Any:
    """Parts of a message as one text, if all of them are text; else as they are.

    >>> joined([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])
    'onetwo'
    """
    if all(isinstance(part.get("text"), str) for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


LONGEST_HEAD = 64 * 1024
_REASONS = {status.value: status.phrase for status in HTTPStatus}
# Close at once and send a reset.
_RESET = struct.pack("ii", 1, 0)


class Outgoing(NamedTuple):
    """An answer before anything goes wrong with it."""

    code: int
    body: bytes
    headers: dict[str, str]


async def receive(reader: asyncio.StreamReader) -> Received | None:
    """The next request on a connection, or None if there is none any more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
        return None
    return Received(method, path.partition("?")[0], headers, body)


async def send(writer: asyncio.StreamWriter, answer: Outgoing, fault: Fault | None) -> bool:
    """Send an answer; True if the connection can be used again."""
    if fault is None:
        writer.write(_head(answer, len(answer.body), last=False) + answer.body)
        await writer.drain()
        return True
    if fault.delay:
        await asyncio.sleep(fault.delay)
    if fault.silent:
        return False
    if fault.reset:
        held = writer.get_extra_info("socket")
        held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()
        return False
    last = fault.cut_after is not None or fault.extra_length != 0
    writer.write(_head(answer, len(answer.body) + fault.extra_length, last=last))
    await _drip(writer, answer.body[: fault.cut_after], fault)
    return not (last or fault.hang_up)


async def _drip(writer: asyncio.StreamWriter, body: bytes, fault: Fault) -> None:
    size = fault.chunk or max(1, len(body))
    for start in range(0, len(body), size):
        if start:
            await asyncio.sleep(fault.pause)
        writer.write(body[start : start + size])
        await writer.drain()


def _head(answer: Outgoing, length: int, *, last: bool) -> bytes:
    headers = {
        "content-type": "application/json",
        "content-length": str(length),
        "connection": "close" if last else "keep-alive",
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {answer.code} {_REASONS.get(answer.code, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def end(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever has become of it."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
