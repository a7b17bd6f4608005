"""HTTP/1.1 as far as the model server needs it: requests in, answers out, well or badly."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from http import HTTPStatus
from typing import NamedTuple

from proctor.testing.exchange import Received
from proctor.testing.fault import Fault

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
