"""Mailboxes on a Redis server: every operation is an atomic Lua script."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from proctor.errors import ConfigError, MailboxError, MessageTooLarge
from proctor.mailboxes import core
from proctor.mailboxes.core import BodyT, LeasedMessage, StoredMailbox
from proctor.mailboxes.redis_connection import (
    CHUNK,
    CHUNK_BYTES,
    DEFAULT_RETRY,
    NO_RETRY,
    RetryLimit,
    StoredMessage,
    WrongType,
    load_script,
    open_connection,
    read_address,
    read_dead_letter,
    replace_invalid,
    to_milliseconds,
    to_one_line,
    wrap_client,
)
from proctor.ports import Mailbox, Message
from proctor.records.mail import DeadLetter

MAX_BODY_BYTES = 16 * 1024 * 1024
_MARK_BYTES = 12
# Suffixes of the names to which repair.lua renames keys of the wrong type: one for each repair.
_MOVED = (b"", *(b":%d" % number for number in range(2, 17)))
SENT = 1


class _Lease(NamedTuple):
    """The duration of leases in milliseconds, and whether deliveries are provisional."""

    ms: int
    provisional: bool


class RedisMailbox(StoredMailbox[BodyT]):
    """A mailbox on a Redis server or cluster, for processes on many machines.

    Pass a redis-py client (`redis.Redis` or `redis.cluster.RedisCluster`), which you close yourself, or the
    `url` of the server. Bodies are JSON; they are decoded into `body_type`, or into plain data without a type. A
    message that returns after `max_deliveries` becomes a dead letter; only the newest 10,000 dead letters are
    stored. Messages do not expire.

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
        super().__init__(name, body_type, max_deliveries)
        core.check_bound("capacity", capacity, where=name)
        core.check_bound("max_body_bytes", max_body_bytes, where=name)
        if (client is None) == (url is None):
            raise ConfigError(
                "a Redis mailbox needs either a client or a URL",
                where=name,
                fix="write RedisMailbox(name, client=redis.Redis(…)) or RedisMailbox(name, url=…)",
            )
        self._capacity, self._max_body_bytes = capacity, max_body_bytes
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
        # The number of wake() and close() calls, so that waiting receivers notice them.
        self._wakes = 0

    def __repr__(self) -> str:
        return f"RedisMailbox({self._name!r} at {self._connection.where})"

    def acknowledge_all(self, messages: Sequence[Message[BodyT]]) -> int:
        self.check_open()
        done = 0
        for start in range(0, len(messages), CHUNK):
            receipts = " ".join(message.receipt_handle for message in messages[start : start + CHUNK])
            done += self._run("acknowledge", [receipts])
        return done

    def purge(self) -> int:
        self.check_open()
        return int(self._run("purge", [0]))

    def approximate_count(self) -> int:
        self.check_open()
        return int(self._run("count", []))

    def open_mailbox(self, name: str, body_type: type[Any] | None) -> RedisMailbox[Any]:
        """Open another mailbox on the same server, with the same client.

        This mailbox's name opens it again, with the same limits, for bodies of another type.
        """
        self.check_open()
        is_same = name == self._name
        return RedisMailbox(
            name,
            self._connection,
            body_type,
            capacity=self._capacity if is_same else None,
            max_deliveries=self._max_deliveries if is_same else None,
            max_body_bytes=self._max_body_bytes,
        )

    def wake(self) -> None:
        with self._lock:
            self._wakes += 1
            waiting = self._waiting
        if waiting:
            # If the server is down, receivers notice the change of the counter.
            with contextlib.suppress(MailboxError):
                self._connection.run(load_script("wake", standalone=True), [self._wake_key()], [waiting], NO_RETRY)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self.wake()
        self._connection.release()

    def remove(self, *, for_good: bool = False) -> None:
        self.check_open()
        self._run("purge", [2 if for_good else 1], extra_keys=self._moved_keys)
        self.close()

    def _wake_key(self) -> bytes:
        # A forked process needs a separate key.
        return b"%s:%d" % (self._own_wake_key, os.getpid())

    def _run(
        self, name: str, args: Sequence[Any], retry: RetryLimit = DEFAULT_RETRY, extra_keys: tuple[bytes, ...] = ()
    ) -> Any:
        keys = self._keys + extra_keys
        try:
            return self._connection.run(load_script(name), keys, args, retry)
        except WrongType:
            self._repair()
            return self._connection.run(load_script(name), keys, args, retry)

    def _repair(self) -> None:
        """Rename keys that another program has overwritten with a different type."""
        self._connection.run(load_script("repair"), self._keys + self._moved_keys, [])

    def _encode(self, body: BodyT) -> bytes:
        data = self._bodies.write(body)
        limit = self._max_body_bytes
        if len(data) > limit:
            raise MessageTooLarge(
                f"the body has {len(data):,} bytes, the limit is {limit:,}",
                where=self._name,
                fix="send a reference to large data, or raise max_body_bytes",
            )
        return data

    def _put(self, bodies: Iterable[BodyT], reply_to: str | Mailbox[Any] | None, delay: float) -> list[str]:
        """Send messages in order, about a hundred per round trip."""
        ids: list[str] = []
        capacity, name = self._capacity or 0, core.get_reply_name(reply_to) or ""
        encoded = ((data, len(data)) for data in map(self._encode, bodies))
        for chunk in core.split_batches(encoded, CHUNK, CHUNK_BYTES):
            batch_id = os.urandom(_MARK_BYTES).hex()
            done = self._run("send", (capacity, to_milliseconds(delay), name, batch_id, *chunk))
            if done != SENT:
                raise core.full_error(self._name, capacity) if done == 0 else core.removed_error(self._name)
            ids += [f"{batch_id}{number:02d}" for number in range(len(chunk))]
        return ids

    def _receive(self, limit: int, lease_seconds: float, wait: float, provisional: bool) -> Sequence[Message[BodyT]]:
        """Lease messages; waiting continues after a restart of the server."""
        wakes = self._wakes
        deadline = time.monotonic() + wait
        lease = _Lease(to_milliseconds(lease_seconds), provisional)
        messages, due = self._poll(limit, lease)
        if messages or wait <= 0:
            return messages
        with self._lock:
            self._waiting += 1
        self._connection.acquire()
        try:
            return self._wait(limit, lease, deadline, due, wakes)
        finally:
            with self._lock:
                self._waiting -= 1
            self._connection.release()

    def _poll(
        self, limit: int, lease: _Lease, *, leaving: bool = False, retry: RetryLimit = DEFAULT_RETRY
    ) -> tuple[list[LeasedMessage[BodyT]], int]:
        """Lease available messages; also return in how many milliseconds the next message is due (-1 if there is
        none)."""
        max_deliveries = self._max_deliveries or 0
        while True:
            receipt = os.urandom(8).hex()
            args = (limit, lease.ms, receipt, max_deliveries, int(leaving), int(lease.provisional))
            due, counts, *texts = self._run("receive", args, retry)
            decoded = map(self._decode, texts, map(int, counts.split()), repeat(receipt))
            messages = [message for message in decoded if message is not None]
            if messages or not (texts or due == 0):
                return messages, due

    def _wait(self, limit: int, lease: _Lease, deadline: float, due: int, wakes: int) -> list[LeasedMessage[BodyT]]:
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
        """Wake another receiver, because this receiver may have consumed the wake item of a message."""
        with contextlib.suppress(MailboxError):
            self._run("receive", (0, 0, "", 0, 1, 0), NO_RETRY)

    def _decode(self, text: bytes, deliveries: int, receipt: str) -> LeasedMessage[BodyT] | None:
        """Decode a message; None if it was rejected because it cannot be decoded."""
        stored = StoredMessage.read(text)
        try:
            body = self._bodies.read(stored.body)
        except ValueError as error:
            # If this fails, the message is redelivered; the other messages must not be lost.
            with contextlib.suppress(MailboxError):
                self._run("reject", [stored.id, receipt, replace_invalid(core.describe_unreadable(error)), 0])
            return None
        return LeasedMessage(
            self,
            (stored.id, receipt),
            body,
            stored.id,
            f"{stored.id}:{receipt}",
            deliveries,
            core.to_datetime(stored.sent_ms),
            stored.reply_to,
        )

    def _read_dead_letters(self, limit: int) -> Sequence[DeadLetter]:
        return [read_dead_letter(entry_id, fields or ()) for entry_id, fields in self._run("letters", [limit])]

    def _acknowledge(self, message: LeasedMessage[Any]) -> None:
        self._run_leased("acknowledge", [message.receipt_handle])

    def _give_back(self, message: LeasedMessage[Any], delay: float, reason: str, counts: bool) -> None:
        text = to_one_line(reason) or core.RETURNED
        self._run_leased("nack", [*message.lease, to_milliseconds(delay), text, int(counts)])

    def _extend(self, message: LeasedMessage[Any], seconds: float) -> None:
        self._run_leased("extend", [*message.lease, to_milliseconds(seconds)])

    def _confirm(self, message: LeasedMessage[Any]) -> None:
        self._run_leased("confirm", message.lease)

    def _reject(self, message: LeasedMessage[Any], reason: str) -> None:
        self._run_leased("reject", [*message.lease, replace_invalid(reason), 1])

    def _reply(self, message: LeasedMessage[Any], name: str, body: Any) -> str:  # noqa: ARG002
        replies = self.open_mailbox(name, None)
        try:
            return replies.send(body)
        finally:
            replies.close()

    def _run_leased(self, name: str, args: Sequence[Any]) -> None:
        """Run a script for a message; raise `ReceiptExpired` if its lease has expired."""
        if not self._run(name, args):
            raise core.expired_error(self._name)


def connect(
    address: str,
    body_type: type[BodyT] | None = None,
    *,
    capacity: int | None = None,
    max_deliveries: int | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> RedisMailbox[BodyT]:
    """Open the mailbox at `redis://[user:password@]host:port/db/NAME`, or `rediss://` for TLS.

    Options of redis-py follow a question mark; add `cluster=true` for a Redis cluster.
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
