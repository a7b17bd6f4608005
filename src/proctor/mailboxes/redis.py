"""Mailboxes on a Redis server: every move of a message is a script that runs in it as a whole."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from proctor.errors import ConfigError, MailboxError, MessageTooLarge
from proctor.mailboxes import limits
from proctor.mailboxes.redis_scripts import (
    CHUNK,
    DEFAULT_RETRY,
    NO_RETRY,
    RetryLimit,
    StoredMessage,
    WrongType,
    one_line,
    open_connection,
    read_address,
    read_dead_letter,
    replace_invalid,
    script,
    split_chunks,
    to_datetime,
    to_milliseconds,
    wrap_client,
)
from proctor.ports import Mailbox, Message
from proctor.records.mail import DeadLetter

BodyT = TypeVar("BodyT")


class Owner(Protocol):
    """The mailbox of a message, as far as the message needs it."""

    @property
    def name(self) -> str: ...

    def settle(self, move: str, args: Sequence[Any]) -> None:
        """Run a script that says whether the message was still the caller's."""
        ...

    def beside(self, name: str, body_type: type[Any] | None) -> Mailbox[Any]: ...


class RedisMessage(Generic[BodyT]):
    """One delivery from a mailbox on Redis."""

    __slots__ = ("_mailbox", "_sent_ms", "body", "delivery_count", "id", "receipt_handle", "reply_to")

    def __init__(self, mailbox: Owner, letter: StoredMessage, deliveries: int, receipt: str, body: BodyT) -> None:
        self._mailbox = mailbox
        self._sent_ms = letter.sent_ms
        self.id = letter.id
        self.receipt_handle = f"{letter.id}:{receipt}"
        self.delivery_count = deliveries
        self.reply_to = letter.reply_to
        self.body = body

    @property
    def enqueued_at(self) -> datetime:
        """When the server took it in."""
        return to_datetime(self._sent_ms)

    @property
    def _receipt(self) -> list[str]:
        return self.receipt_handle.split(":")

    def acknowledge(self) -> None:
        """It is done: it goes for good."""
        self._mailbox.settle("acknowledge", [self.receipt_handle])

    def nack(self, visibility_timeout: float = 0, *, reason: str = "", counts: bool = True) -> None:
        """Give it back, to be seen again after so many seconds."""
        limits.check_seconds("visibility_timeout", visibility_timeout, where=self._mailbox.name)
        told = one_line(reason) or limits.RETURNED
        delay = to_milliseconds(visibility_timeout)
        self._mailbox.settle("nack", [*self._receipt, delay, told, int(counts)])

    def extend_visibility(self, timeout: float) -> None:
        """Keep it for so many seconds from now."""
        limits.check_seconds("timeout", timeout, where=self._mailbox.name)
        self._mailbox.settle("extend", [*self._receipt, to_milliseconds(timeout)])

    def confirm_delivery(self) -> None:
        """Make a provisional delivery count: from now on losing it is held against the message."""
        self._mailbox.settle("confirm", self._receipt)

    def reject(self, reason: str) -> None:
        """Set it aside as a dead letter at once."""
        self._mailbox.settle("reject", [*self._receipt, replace_invalid(reason), 1])

    def reply(self, body: Any) -> str:
        """Send an answer to `reply_to`; gives the id of the answer."""
        if self.reply_to is None:
            raise limits.no_reply_to_error(self._mailbox.name)
        answers = self._mailbox.beside(self.reply_to, None)
        try:
            return answers.send(body)
        finally:
            answers.close()


MAX_BODY_BYTES = 16 * 1024 * 1024
_MARK_BYTES = 12
# The endings of the names that a key of the wrong type may be moved to: one for each time.
_MOVED = (b"", *(b":%d" % number for number in range(2, 17)))
SENT = 1


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a mailbox takes and how often it delivers; None for any number."""

    capacity: int | None = None
    max_deliveries: int | None = None
    max_body_bytes: int = MAX_BODY_BYTES


class _Lease(NamedTuple):
    """How long deliveries are leased, in milliseconds, and whether losing them is forgiven."""

    ms: int
    provisional: bool


class RedisMailbox(Generic[BodyT]):
    """A mailbox on a Redis server or cluster, for processes on many machines.

    Give it a client of redis-py (`redis.Redis` or `redis.cluster.RedisCluster`), which stays yours,
    or the `url` of the server. Bodies are JSON; they come back in the `body_type`, or as plain data
    without one. A message that was delivered `max_deliveries` times and comes back is set aside;
    of dead letters the newest 10,000 are kept. Nothing that was not received ever runs out.

    >>> from proctor.testing import RedisServer
    >>> with RedisServer() as server:
    ...     requests = RedisMailbox(name="eval-requests", client=server.client())
    ...     _ = requests.send({"question": "2 + 2"})
    ...     [message] = requests.receive(wait_time_seconds=1)
    ...     message.acknowledge()
    >>> message.body
    {'question': '2 + 2'}
    """

    def __init__(
        self,
        name: str,
        client: Any = None,
        body_type: type[BodyT] | None = None,
        *,
        url: str | None = None,
        capacity: int | None = None,
        max_deliveries: int | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self._name = limits.check_name(name)
        limits.check_bound("capacity", capacity, where=name)
        limits.check_bound("max_deliveries", max_deliveries, where=name)
        limits.check_bound("max_body_bytes", max_body_bytes, where=name)
        self._bodies = limits.BodyCodec(body_type)
        if (client is None) == (url is None):
            raise ConfigError(
                "a mailbox on Redis needs a client or a url, and not both",
                where=name,
                fix="write RedisMailbox(name, client=redis.Redis(…)) or RedisMailbox(name, url=…)",
            )
        self._settings = Settings(capacity, max_deliveries, max_body_bytes)
        self._line = (open_connection(url) if url is not None else wrap_client(client)).hold()
        # One tag, so that all keys of a mailbox lie on one node of a cluster.
        self._tag = f"proctor:{{{name}}}:".encode()
        kinds = (b"ready", b"later", b"mail", b"leases", b"bell", b"dead", b"gone")
        self._keys = tuple(self._tag + kind for kind in kinds)
        # Where keys of the wrong type are moved to, as repair.lua reads them.
        self._moved_keys = tuple(
            self._tag + b"broken:" + kind + suffix for kind in kinds[:-1] for suffix in _MOVED
        )
        self._own_bell = self._tag + b"wake:" + os.urandom(8).hex().encode()
        self._lock = threading.Lock()
        self._waiting = 0
        # Counts wake() and close(), so that those who wait see that they are meant.
        self._wakes = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"RedisMailbox({self._name!r} at {self._line.where})"

    @property
    def name(self) -> str:
        """The name it is known by on the server."""
        return self._name

    @property
    def closed(self) -> bool:
        """True once it was closed."""
        return self._closed

    @property
    def max_deliveries(self) -> int | None:
        """After how many deliveries a message is set aside; None for never."""
        return self._settings.max_deliveries

    def send(
        self, body: BodyT, *, reply_to: str | Mailbox[Any] | None = None, delay_seconds: float = 0
    ) -> str:
        """Put a message in, to be seen after so many seconds; gives its id."""
        limits.check_seconds("delay_seconds", delay_seconds, where=self._name)
        self._check_open()
        return self._put([self._written(body)], reply_to, delay_seconds)[0]

    def send_all(self, bodies: Iterable[BodyT], *, reply_to: str | Mailbox[Any] | None = None) -> list[str]:
        """Put several messages in, in order, about a hundred in one round trip."""
        self._check_open()
        ids: list[str] = []
        for chunk in split_chunks(map(self._written, bodies)):
            ids += self._put(chunk, reply_to, 0)
        return ids

    def as_received(self, body: BodyT) -> BodyT:
        """The body as a receiver gets it; raises `MessageRefused` or ValueError if it cannot."""
        return self._bodies.read(self._bodies.write(body))

    def receive(
        self,
        *,
        max_messages: int = 1,
        visibility_timeout: float = 30,
        wait_time_seconds: float = 0,
        provisional: bool = False,
    ) -> Sequence[Message[BodyT]]:
        """Lease up to `max_messages` for `visibility_timeout` seconds.

        With nothing there it waits up to `wait_time_seconds`, and returns as soon as something is.
        A server that goes away meanwhile and comes back ends nothing. Losing a `provisional`
        delivery does not count towards `max_deliveries` until it is confirmed.
        """
        limits.check_receive(max_messages, visibility_timeout, wait_time_seconds, where=self._name)
        self._check_open()
        wakes = self._wakes
        until = time.monotonic() + wait_time_seconds
        lease = _Lease(to_milliseconds(visibility_timeout), provisional)
        messages, due = self._look(max_messages, lease)
        if messages or wait_time_seconds <= 0:
            return messages
        with self._lock:
            self._waiting += 1
        self._line.hold()
        try:
            return self._waited(max_messages, lease, until, due, wakes)
        finally:
            with self._lock:
                self._waiting -= 1
            self._line.release()

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        """Acknowledge several, passing over those that are no longer one's own; says how many."""
        self._check_open()
        done = 0
        for start in range(0, len(messages), CHUNK):
            some = messages[start : start + CHUNK]
            receipts = " ".join(message.receipt_handle for message in some)
            done += self._run("acknowledge", [receipts])
        return done

    def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """What was set aside, the newest first; the newest 10,000 are kept."""
        limits.check_bound("limit", limit, where=self._name)
        self._check_open()
        return [read_dead_letter(died, fields or ()) for died, fields in self._run("letters", [limit])]

    def purge(self) -> int:
        """Drop every message, those in flight too; says how many. Dead letters stay."""
        self._check_open()
        return int(self._run("purge", [0]))

    def approximate_count(self) -> int:
        """How many there are: waiting, delayed and in flight; here the number is exact."""
        self._check_open()
        return int(self._run("count", []))

    def beside(self, name: str, body_type: type[Any] | None) -> RedisMailbox[Any]:
        """The mailbox of another name on the same server, over the same client.

        By the own name it is this mailbox again, with its bounds, for bodies of another type.
        """
        self._check_open()
        bounds = self._settings if name == self._name else Settings()
        return RedisMailbox(
            name,
            self._line,
            body_type,
            capacity=bounds.capacity,
            max_deliveries=bounds.max_deliveries,
            max_body_bytes=self._settings.max_body_bytes,
        )

    def wake(self) -> None:
        """Let those who wait in `receive` of this object return at once, with nothing."""
        with self._lock:
            self._wakes += 1
            waiting = self._waiting
        if waiting:
            # Who cannot be rung because the server is away sees by itself that it was woken.
            with contextlib.suppress(MailboxError):
                self._line.run(script("wake", alone=True), [self._bell()], [waiting], NO_RETRY)

    def close(self) -> None:
        """Use it no more from here; what is in it stays there."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.wake()
        self._line.release()

    def remove(self, *, for_good: bool = False) -> None:
        """Take it from the server with all that is in it, dead letters too, and close it."""
        self._check_open()
        self._run("purge", [2 if for_good else 1], extra_keys=self._moved_keys)
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise limits.closed_error(self._name)

    def _bell(self) -> bytes:
        # A process that was forked off has a bell of its own.
        return b"%s:%d" % (self._own_bell, os.getpid())

    def _run(
        self, move: str, args: Sequence[Any], patience: RetryLimit = DEFAULT_RETRY, extra_keys: tuple[bytes, ...] = ()
    ) -> Any:
        keys = self._keys + extra_keys
        try:
            return self._line.run(script(move), keys, args, patience)
        except WrongType:
            self._repair()
            return self._line.run(script(move), keys, args, patience)

    def _repair(self) -> None:
        """Move keys that somebody has overwritten with another type out of the way."""
        self._line.run(script("repair"), self._keys + self._moved_keys, [])

    def _written(self, body: BodyT) -> bytes:
        data = self._bodies.write(body)
        most = self._settings.max_body_bytes
        if len(data) > most:
            raise MessageTooLarge(
                f"the body has {len(data):,} bytes, and {most:,} are taken",
                where=self._name,
                fix="send a reference to what is large, or raise max_body_bytes",
            )
        return data

    def _put(self, bodies: Sequence[bytes], reply_to: str | Mailbox[Any] | None, delay: float) -> list[str]:
        mark = os.urandom(_MARK_BYTES).hex()
        capacity = self._settings.capacity or 0
        args = (capacity, to_milliseconds(delay), limits.reply_name(reply_to) or "", mark, *bodies)
        done = self._run("send", args)
        if done != SENT:
            raise limits.full_error(self._name, capacity) if done == 0 else limits.removed_error(self._name)
        return [f"{mark}{number:02d}" for number in range(len(bodies))]

    def _look(
        self, most: int, lease: _Lease, *, leaving: bool = False, patience: RetryLimit = DEFAULT_RETRY
    ) -> tuple[list[RedisMessage[BodyT]], int]:
        """What can be had now, and in how many ms something is due (-1: nothing is)."""
        too_many = self._settings.max_deliveries or 0
        while True:
            receipt = os.urandom(8).hex()
            args = (most, lease.ms, receipt, too_many, int(leaving), int(lease.provisional))
            due, counts, *letters = self._run("receive", args, patience)
            opened = map(self._opened, letters, map(int, counts.split()), repeat(receipt))
            messages = [message for message in opened if message is not None]
            if messages or not (letters or due == 0):
                return messages, due

    def _waited(
        self, most: int, lease: _Lease, until: float, due: int, wakes: int
    ) -> list[RedisMessage[BodyT]]:
        def woken() -> bool:
            return self._wakes != wakes

        rest = until - time.monotonic()
        while rest > 0 and not woken():
            seconds = min(rest, self._line.longest_listen, due / 1000 if due > 0 else rest)
            try:
                self._line.listen((self._bell(), self._keys[4]), seconds)
            except WrongType:
                self._repair()
            if woken():
                break
            rest = until - time.monotonic()
            try:
                patience = RetryLimit(max(DEFAULT_RETRY.seconds, rest), woken)
                messages, due = self._look(most, lease, leaving=rest <= 0, patience=patience)
            except MailboxError:
                if woken():
                    break
                raise
            if messages:
                return messages
        if woken():
            self._hand_over()
        return []

    def _hand_over(self) -> None:
        """Ring for another who waits: the token for what is there may have been ours."""
        with contextlib.suppress(MailboxError):
            self._run("receive", (0, 0, "", 0, 1, 0), NO_RETRY)

    def _opened(self, text: bytes, deliveries: int, receipt: str) -> RedisMessage[BodyT] | None:
        """The message, or None if it was set aside because it cannot be read."""
        letter = StoredMessage.read(text)
        try:
            body = self._bodies.read(letter.body)
        except ValueError as error:
            # Should that fail it comes again; what came with it must not be lost by it.
            with contextlib.suppress(MailboxError):
                self._run("reject", [letter.id, receipt, replace_invalid(limits.describe_unreadable(error)), 0])
            return None
        return RedisMessage(self, letter, deliveries, receipt, body)

    def settle(self, move: str, args: Sequence[Any]) -> None:
        """For its messages: acknowledge, give back, extend or set aside."""
        self._check_open()
        if not self._run(move, args):
            raise limits.expired_error(self._name)


def connect(
    address: str,
    body_type: type[BodyT] | None = None,
    *,
    capacity: int | None = None,
    max_deliveries: int | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> RedisMailbox[BodyT]:
    """The mailbox at `redis://[user:password@]host:port/db/NAME`, or `rediss://` for TLS.

    After a question mark stand options of redis-py, and `cluster=true` for a Redis cluster.

    >>> connect("redis://:secret@localhost:6379/0/requests")
    RedisMailbox('requests' at localhost:6379)
    """
    place = read_address(address)
    return RedisMailbox(
        place.name,
        open_connection(place.url, cluster=place.cluster),
        body_type,
        capacity=capacity,
        max_deliveries=max_deliveries,
        max_body_bytes=max_body_bytes,
    )
