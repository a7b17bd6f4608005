"""Mailboxes on a Redis server: every operation is an atomic Lua script."""

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
    """The part of a mailbox that its messages use."""

    @property
    def name(self) -> str: ...

    def run_leased(self, name: str, args: Sequence[Any]) -> None: ...

    def beside(self, name: str, body_type: type[Any] | None) -> Mailbox[Any]: ...


class RedisMessage(Generic[BodyT]):
    """One delivery from a mailbox on Redis."""

    __slots__ = ("_mailbox", "_sent_ms", "body", "delivery_count", "id", "receipt_handle", "reply_to")

    def __init__(
        self, mailbox: Owner, stored: StoredMessage, deliveries: int, receipt: str, body: BodyT
    ) -> None:
        self._mailbox = mailbox
        self._sent_ms = stored.sent_ms
        self.id = stored.id
        self.receipt_handle = f"{stored.id}:{receipt}"
        self.delivery_count = deliveries
        self.reply_to = stored.reply_to
        self.body = body

    @property
    def enqueued_at(self) -> datetime:
        """When the server received it."""
        return to_datetime(self._sent_ms)

    @property
    def _receipt(self) -> list[str]:
        return self.receipt_handle.split(":")

    def acknowledge(self) -> None:
        self._mailbox.run_leased("acknowledge", [self.receipt_handle])

    def nack(self, visibility_timeout: float = 0, *, reason: str = "", counts: bool = True) -> None:
        limits.check_seconds("visibility_timeout", visibility_timeout, where=self._mailbox.name)
        delay, text = to_milliseconds(visibility_timeout), one_line(reason) or limits.RETURNED
        self._mailbox.run_leased("nack", [*self._receipt, delay, text, int(counts)])

    def extend_visibility(self, timeout: float) -> None:
        limits.check_seconds("timeout", timeout, where=self._mailbox.name)
        self._mailbox.run_leased("extend", [*self._receipt, to_milliseconds(timeout)])

    def confirm_delivery(self) -> None:
        self._mailbox.run_leased("confirm", self._receipt)

    def reject(self, reason: str) -> None:
        self._mailbox.run_leased("reject", [*self._receipt, replace_invalid(reason), 1])

    def reply(self, body: Any) -> str:
        if self.reply_to is None:
            raise limits.no_reply_to_error(self._mailbox.name)
        answers = self._mailbox.beside(self.reply_to, None)
        try:
            return answers.send(body)
        finally:
            answers.close()


MAX_BODY_BYTES = 16 * 1024 * 1024
_MARK_BYTES = 12
# Suffixes of the names to which keys of the wrong type are moved, one for each time.
_MOVED = (b"", *(b":%d" % number for number in range(2, 17)))
SENT = 1


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The limits of a mailbox; None for no limit."""

    capacity: int | None = None
    max_deliveries: int | None = None
    max_body_bytes: int = MAX_BODY_BYTES


class _Lease(NamedTuple):
    """The duration of leases in milliseconds, and whether deliveries are provisional."""

    ms: int
    provisional: bool


class RedisMailbox(Generic[BodyT]):
    """A mailbox on a Redis server or cluster, for processes on many machines.

    Pass a redis-py client (`redis.Redis` or `redis.cluster.RedisCluster`), which you close yourself,
    or the `url` of the server. Bodies are JSON; they are decoded into `body_type`, or into plain data
    without one. A message that returns after `max_deliveries` becomes a dead letter; the newest
    10,000 dead letters are kept. Messages do not expire.

    Example:

        requests = RedisMailbox(name="eval-requests", url="redis://localhost:6379/0")
        requests.send({"question": "2 + 2"})
        for message in requests.receive(wait_time_seconds=1):
            print(message.body)
            message.acknowledge()
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
        self._connection = (open_connection(url) if url is not None else wrap_client(client)).acquire()
        # One hash tag, so that all keys of a mailbox are on one node of a cluster.
        self._tag = f"proctor:{{{name}}}:".encode()
        suffixes = (b"ready", b"later", b"mail", b"leases", b"bell", b"dead", b"gone")
        self._keys = tuple(self._tag + suffix for suffix in suffixes)
        # The names to which repair.lua moves keys of the wrong type.
        self._moved_keys = tuple(
            self._tag + b"broken:" + suffix + number for suffix in suffixes[:-1] for number in _MOVED
        )
        self._own_wake_key = self._tag + b"wake:" + os.urandom(8).hex().encode()
        self._lock = threading.Lock()
        self._waiting = 0
        # Counts wake() and close(), so that waiting receivers notice them.
        self._wakes = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"RedisMailbox({self._name!r} at {self._connection.where})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def max_deliveries(self) -> int | None:
        return self._settings.max_deliveries

    def send(
        self, body: BodyT, *, reply_to: str | Mailbox[Any] | None = None, delay_seconds: float = 0
    ) -> str:
        limits.check_seconds("delay_seconds", delay_seconds, where=self._name)
        self._check_open()
        return self._put([self._encode(body)], reply_to, delay_seconds)[0]

    def send_all(self, bodies: Iterable[BodyT], *, reply_to: str | Mailbox[Any] | None = None) -> list[str]:
        """Send several messages in order, about a hundred per round trip."""
        self._check_open()
        ids: list[str] = []
        for chunk in split_chunks(map(self._encode, bodies)):
            ids += self._put(chunk, reply_to, 0)
        return ids

    def as_received(self, body: BodyT) -> BodyT:
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

        A wait survives a restart of the server.
        """
        limits.check_receive(max_messages, visibility_timeout, wait_time_seconds, where=self._name)
        self._check_open()
        wakes = self._wakes
        deadline = time.monotonic() + wait_time_seconds
        lease = _Lease(to_milliseconds(visibility_timeout), provisional)
        messages, due = self._poll(max_messages, lease)
        if messages or wait_time_seconds <= 0:
            return messages
        with self._lock:
            self._waiting += 1
        self._connection.acquire()
        try:
            return self._wait(max_messages, lease, deadline, due, wakes)
        finally:
            with self._lock:
                self._waiting -= 1
            self._connection.release()

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        """Acknowledge messages, skip expired ones, and return how many were acknowledged."""
        self._check_open()
        done = 0
        for start in range(0, len(messages), CHUNK):
            receipts = " ".join(message.receipt_handle for message in messages[start : start + CHUNK])
            done += self._run("acknowledge", [receipts])
        return done

    def dead_letters(self, limit: int = 100) -> Sequence[DeadLetter]:
        """The dead letters, newest first; the newest 10,000 are kept."""
        limits.check_bound("limit", limit, where=self._name)
        self._check_open()
        return [read_dead_letter(died, fields or ()) for died, fields in self._run("letters", [limit])]

    def purge(self) -> int:
        """Drop all messages, including leased ones, but not dead letters; return how many."""
        self._check_open()
        return int(self._run("purge", [0]))

    def approximate_count(self) -> int:
        """Count waiting, delayed and leased messages; exact here."""
        self._check_open()
        return int(self._run("count", []))

    def beside(self, name: str, body_type: type[Any] | None) -> RedisMailbox[Any]:
        """Open another mailbox on the same server, with the same client.

        Its own name opens this mailbox again, with its limits, for bodies of another type.
        """
        self._check_open()
        settings = self._settings if name == self._name else Settings()
        return RedisMailbox(
            name,
            self._connection,
            body_type,
            capacity=settings.capacity,
            max_deliveries=settings.max_deliveries,
            max_body_bytes=self._settings.max_body_bytes,
        )

    def wake(self) -> None:
        """Make waiting `receive` calls of this object return without messages."""
        with self._lock:
            self._wakes += 1
            waiting = self._waiting
        if waiting:
            # If the server is down, receivers notice the change of the counter.
            with contextlib.suppress(MailboxError):
                self._connection.run(script("wake", standalone=True), [self._wake_key()], [waiting], NO_RETRY)

    def close(self) -> None:
        """Close this object; the messages stay on the server."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.wake()
        self._connection.release()

    def remove(self, *, for_good: bool = False) -> None:
        """Delete the mailbox with its messages and dead letters, and close it."""
        self._check_open()
        self._run("purge", [2 if for_good else 1], extra_keys=self._moved_keys)
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise limits.closed_error(self._name)

    def _wake_key(self) -> bytes:
        # A forked process needs a separate key.
        return b"%s:%d" % (self._own_wake_key, os.getpid())

    def _run(
        self,
        name: str,
        args: Sequence[Any],
        retry: RetryLimit = DEFAULT_RETRY,
        extra_keys: tuple[bytes, ...] = (),
    ) -> Any:
        keys = self._keys + extra_keys
        try:
            return self._connection.run(script(name), keys, args, retry)
        except WrongType:
            self._repair()
            return self._connection.run(script(name), keys, args, retry)

    def _repair(self) -> None:
        """Rename keys that another program has overwritten with another type."""
        self._connection.run(script("repair"), self._keys + self._moved_keys, [])

    def _encode(self, body: BodyT) -> bytes:
        data = self._bodies.write(body)
        limit = self._settings.max_body_bytes
        if len(data) > limit:
            raise MessageTooLarge(
                f"the body has {len(data):,} bytes, the limit is {limit:,}",
                where=self._name,
                fix="send a reference to large data, or raise max_body_bytes",
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

    def _poll(
        self, limit: int, lease: _Lease, *, leaving: bool = False, retry: RetryLimit = DEFAULT_RETRY
    ) -> tuple[list[RedisMessage[BodyT]], int]:
        """Lease available messages; also return in how many ms the next is due (-1: none is)."""
        max_deliveries = self._settings.max_deliveries or 0
        while True:
            receipt = os.urandom(8).hex()
            args = (limit, lease.ms, receipt, max_deliveries, int(leaving), int(lease.provisional))
            due, counts, *texts = self._run("receive", args, retry)
            decoded = map(self._decode, texts, map(int, counts.split()), repeat(receipt))
            messages = [message for message in decoded if message is not None]
            if messages or not (texts or due == 0):
                return messages, due

    def _wait(
        self, limit: int, lease: _Lease, deadline: float, due: int, wakes: int
    ) -> list[RedisMessage[BodyT]]:
        def is_woken() -> bool:
            return self._wakes != wakes

        rest = deadline - time.monotonic()
        while rest > 0 and not is_woken():
            seconds = min(rest, self._connection.max_listen_seconds, due / 1000 if due > 0 else rest)
            try:
                self._connection.listen((self._wake_key(), self._keys[4]), seconds)
            except WrongType:
                self._repair()
            if is_woken():
                break
            rest = deadline - time.monotonic()
            try:
                retry = RetryLimit(max(DEFAULT_RETRY.seconds, rest), is_woken)
                messages, due = self._poll(limit, lease, leaving=rest <= 0, retry=retry)
            except MailboxError:
                if is_woken():
                    break
                raise
            if messages:
                return messages
        if is_woken():
            self._wake_another()
        return []

    def _wake_another(self) -> None:
        """Wake another receiver, because this one may have taken the wake item for a message."""
        with contextlib.suppress(MailboxError):
            self._run("receive", (0, 0, "", 0, 1, 0), NO_RETRY)

    def _decode(self, text: bytes, deliveries: int, receipt: str) -> RedisMessage[BodyT] | None:
        """Decode a message; None if it was rejected because it cannot be decoded."""
        stored = StoredMessage.read(text)
        try:
            body = self._bodies.read(stored.body)
        except ValueError as error:
            # If that fails, it comes again; the other messages must not be lost.
            with contextlib.suppress(MailboxError):
                self._run(
                    "reject", [stored.id, receipt, replace_invalid(limits.describe_unreadable(error)), 0]
                )
            return None
        return RedisMessage(self, stored, deliveries, receipt, body)

    def run_leased(self, name: str, args: Sequence[Any]) -> None:
        """Run a script for a message; raise `ReceiptExpired` if its lease is over."""
        self._check_open()
        if not self._run(name, args):
            raise limits.expired_error(self._name)


def connect(
    address: str,
    body_type: type[BodyT] | None = None,
    *,
    capacity: int | None = None,
    max_deliveries: int | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> RedisMailbox[BodyT]:
    """Open the mailbox at `redis://[user:password@]host:port/db/NAME`, or `rediss://` for TLS.

    Options of redis-py follow a question mark, and `cluster=true` for a Redis cluster.

    >>> connect("redis://:secret@localhost:6379/0/requests")
    RedisMailbox('requests' at localhost:6379)
    """
    parsed = read_address(address)
    return RedisMailbox(
        parsed.name,
        open_connection(parsed.url, cluster=parsed.cluster),
        body_type,
        capacity=capacity,
        max_deliveries=max_deliveries,
        max_body_bytes=max_body_bytes,
    )
