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
_MOST_DIGITS = 10
# The last millisecond of the year 9999.
_LAST_MOMENT = 253_402_300_799_999


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
    """Read an entry of the stream of dead letters, whatever it holds; its key says when it died.

    >>> dead_letter(b"1735689600000-0", [b"letter", b"junk", b"id", b"7f"]).reason
    'unreadable: its record has no valid header'
    """
    entry = dict(zip(fields[::2], fields[1::2], strict=False))
    died_ms = min(int(died.partition(b"-")[0]), _LAST_MOMENT)
    record = entry.get(b"letter", b"")
    # Unreadable records are exactly what is set aside, and strangers may add to the stream.
    fault = ""
    try:
        letter = Letter.read(record)
        enqueued_at = moment(letter.sent_ms)
    except (ValueError, OverflowError, OSError):
        key = _text(entry.get(b"id", b"")) or died.decode()
        letter, enqueued_at = Letter(key, died_ms, None, record), moment(died_ms)
        fault = limits.BAD_HEADER
    deliveries = _number(entry.get(b"count", b""))
    past = _text(entry.get(b"past", b""))
    reason = _text(entry.get(b"reason", b"")) or fault or limits.too_often(deliveries)
    return DeadLetter(
        id=letter.id,
        body=_text(letter.body),
        reason=reason,
        delivery_count=deliveries,
        enqueued_at=enqueued_at,
        died_at=moment(died_ms),
        history=tuple(map(_history_line, past.split("\n"))) if past else (),
        reply_to=letter.reply_to,
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(data: bytes) -> int:
    return int(data) if data.isdigit() and len(data) < _MOST_DIGITS else 0


def _history_line(line: str) -> str:
    delivery, _, reason = line.partition(" ")
    if not (delivery.isascii() and delivery.isdigit() and len(delivery) < _MOST_DIGITS):
        return line
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
