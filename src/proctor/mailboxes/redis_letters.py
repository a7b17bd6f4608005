"""Messages as the scripts on the server keep them, read back; and what is handed to the scripts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from proctor.mailboxes import limits
from proctor.records.mail import DeadLetter

# So much goes to the server in one go, to let others have their turn.
CHUNK = 100
CHUNK_BYTES = 1024 * 1024
_LONGEST_LINE = 1000


class Letter(NamedTuple):
    """A message as it was kept, with its body still written.

    >>> Letter.read(b"7f 1735689600000 results\\n[1]")
    Letter(id='7f', sent_ms=1735689600000, reply_to='results', body=b'[1]')
    """

    id: str
    sent_ms: int
    reply_to: str | None
    body: bytes

    @classmethod
    def read(cls, text: bytes) -> Letter:
        head, _, body = text.partition(b"\n")
        key, sent, reply_to = head.decode().split(" ")
        return cls(key, int(sent), reply_to or None, body)


def dead_letter(died: bytes, fields: Sequence[bytes]) -> DeadLetter:
    """An entry of the stream of dead letters; its key tells when it was set aside."""
    found = dict(zip(fields[::2], fields[1::2], strict=True))
    letter = Letter.read(found[b"letter"])
    deliveries = int(found[b"count"])
    return DeadLetter(
        id=letter.id,
        body=letter.body.decode("utf-8", "replace"),
        reason=found[b"reason"].decode() or limits.too_often(deliveries),
        delivery_count=deliveries,
        enqueued_at=moment(letter.sent_ms),
        died_at=moment(int(died.partition(b"-")[0])),
        history=tuple(map(_told, found[b"past"].decode().split("\n"))) if found[b"past"] else (),
        reply_to=letter.reply_to,
    )


def _told(line: str) -> str:
    delivery, _, reason = line.partition(" ")
    return limits.history_line(int(delivery), reason or limits.LEASE_RAN_OUT)


def chunked(bodies: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Bodies in chunks that the server takes in one go.

    >>> [len(chunk) for chunk in chunked([b"1"] * 120)]
    [100, 20]
    """
    chunk: list[bytes] = []
    size = 0
    for body in bodies:
        if chunk and (len(chunk) == CHUNK or size + len(body) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(body)
        size += len(body)
    if chunk:
        yield chunk


def moment(ms: int) -> datetime:
    """A time of the server.

    >>> moment(1735689600250).isoformat()
    '2025-01-01T00:00:00.250000+00:00'
    """
    return datetime.fromtimestamp(ms / 1000, UTC)


def in_ms(seconds: float) -> int:
    """Seconds as the scripts count them; never shorter than asked for."""
    return math.ceil(seconds * 1000)


def one_line(reason: str) -> str:
    """A reason as a line of a history.

    >>> one_line("first\\n  second")
    'first second'
    """
    return text_of(" ".join(reason.split())[:_LONGEST_LINE])


def text_of(reason: str) -> str:
    """A reason as it can be sent: what is no character at all is replaced."""
    return reason.encode("utf-8", "replace").decode()
