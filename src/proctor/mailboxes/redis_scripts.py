"""The line to a Redis server: scripts, patience with a server that is away, and plain errors."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from proctor.core import optional as extras
from proctor.core import resources
from proctor.errors import ConfigError, MailboxError
from proctor.mailboxes import limits
from proctor.models.connect import hidden
from proctor.records.mail import DeadLetter

# So much goes to the server in one go, to let others have their turn.
CHUNK = 100
CHUNK_BYTES = 1024 * 1024
_LONGEST_LINE = 1000
_MOST_DIGITS = 10
# The last millisecond of the year 9999.
_LAST_MOMENT = 253_402_300_799_999


class StoredMessage(NamedTuple):
    """A message as it was kept, with its body still written.

    >>> Letter.read(b"7f 1735689600000 results\\n[1]")
    Letter(id='7f', sent_ms=1735689600000, reply_to='results', body=b'[1]')
    """

    id: str
    sent_ms: int
    reply_to: str | None
    body: bytes

    @classmethod
    def read(cls, text: bytes) -> StoredMessage:
        head, _, body = text.partition(b"\n")
        key, sent, reply_to = head.decode().split(" ")
        return cls(key, int(sent), reply_to or None, body)


def read_dead_letter(died: bytes, fields: Sequence[bytes]) -> DeadLetter:
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
        letter = StoredMessage.read(record)
        enqueued_at = to_datetime(letter.sent_ms)
    except (ValueError, OverflowError, OSError):
        key = _text(entry.get(b"id", b"")) or died.decode()
        letter, enqueued_at = StoredMessage(key, died_ms, None, record), to_datetime(died_ms)
        fault = limits.BAD_HEADER
    deliveries = _number(entry.get(b"count", b""))
    past = _text(entry.get(b"past", b""))
    reason = _text(entry.get(b"reason", b"")) or fault or limits.describe_deliveries(deliveries)
    return DeadLetter(
        id=letter.id,
        body=_text(letter.body),
        reason=reason,
        delivery_count=deliveries,
        enqueued_at=enqueued_at,
        died_at=to_datetime(died_ms),
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
    return limits.history_line(int(delivery), reason or limits.LEASE_EXPIRED)


def split_chunks(bodies: Iterable[bytes]) -> Iterator[list[bytes]]:
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


def to_datetime(ms: int) -> datetime:
    """A time of the server.

    >>> moment(1735689600250).isoformat()
    '2025-01-01T00:00:00.250000+00:00'
    """
    return datetime.fromtimestamp(ms / 1000, UTC)


def to_milliseconds(seconds: float) -> int:
    """Seconds as the scripts count them; never shorter than asked for."""
    return math.ceil(seconds * 1000)


def one_line(reason: str) -> str:
    """A reason as a line of a history.

    >>> one_line("first\\n  second")
    'first second'
    """
    return replace_invalid(" ".join(reason.split())[:_LONGEST_LINE])


def replace_invalid(reason: str) -> str:
    """A reason as it can be sent: what is no character at all is replaced."""
    return reason.encode("utf-8", "replace").decode()


# Pauses between tries. The first is none: a connection that lay idle may just have been closed.
_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
# Who waits looks again after so long at the latest (WATCH in mailbox.lua), and sooner where the
# client would take the silence for a lost connection.
_LONGEST_LISTEN = 5.0
_SOCKET_TIMEOUT = 10.0
_CONNECT_TIMEOUT = 5.0
_HEALTH_CHECK = 15
# What redis-py takes where a connection pool was made without saying it.
_UNSAID_TIMEOUT = 5.0
# Errors that pass, among those that redis-py has no class for.
_TRANSIENT = ("BUSY ", "UNBLOCKED ", "MASTERDOWN ", "NOREPLICAS ", "LOADING ", "CLUSTERDOWN ")
_WHY = "a mailbox on Redis"


class Script(NamedTuple):
    """A move of messages that the server does in one go."""

    text: str
    sha: str


@cache
def script(name: str, *, alone: bool = False) -> Script:
    """The script of that name, after what all of them share unless it stands alone."""
    shared = "" if alone else resources.text("mailboxes", "scripts", "mailbox.lua")
    text = shared + resources.text("mailboxes", "scripts", f"{name}.lua")
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


class RetryLimit(NamedTuple):
    """How many seconds a server may be away before a call fails, and what ends it before that."""

    seconds: float = 2.5
    given_up: Callable[[], bool] = lambda: False


DEFAULT_RETRY = RetryLimit()
NO_RETRY = RetryLimit(0)


class WrongType(MailboxError):
    """A key of the mailbox holds a value of another type than ours."""


class Address(NamedTuple):
    """An address of a mailbox, taken apart: where the server is, and the mailbox's name."""

    url: str
    name: str
    cluster: bool


def read_address(address: str) -> Address:
    """Take `redis://[user:password@]host:port/db/NAME?option=…` apart.

    >>> read_address("redis://localhost:6379/0/requests")
    Address(url='redis://localhost:6379/0', name='requests', cluster=False)
    """
    try:
        split = urlsplit(address)
        _ = split.port
    except ValueError:
        raise _bad_address(address) from None
    parts = [unquote(part) for part in split.path.split("/") if part]
    db = parts.pop(0) if parts and parts[0].isdecimal() else "0"
    if split.scheme not in ("redis", "rediss") or not split.hostname or len(parts) > 1:
        raise _bad_address(address)
    options = dict(parse_qsl(split.query))
    cluster = options.pop("cluster", "false").lower() in ("true", "yes", "1")
    url = split._replace(path=f"/{db}", query=urlencode(options), fragment="").geturl()
    return Address(url, parts[0] if parts else "proctor", cluster)


class RedisConnection:
    """A client that is asked patiently, shared by the mailboxes that lie beside each other.

    Whoever uses it holds it; a client that was made here is closed when nobody does any more.
    """

    def __init__(self, client: Any, *, owned: bool) -> None:
        redis = extras.require("redis", extra="redis", why=_WHY)
        self._errors = redis.exceptions
        self._client = client
        self._execute = client.execute_command
        self._owned = owned
        self._holders = 0
        self._lock = threading.Lock()
        self.where, self.longest_listen = _told(client)

    def hold(self) -> RedisConnection:
        """Say that one more uses it."""
        with self._lock:
            self._holders += 1
        return self

    def release(self) -> None:
        """Say that one uses it no more."""
        with self._lock:
            self._holders -= 1
            last = self._holders == 0
        if last and self._owned:
            self._client.close()

    def run(self, move: Script, keys: Sequence[bytes], args: Sequence[Any], patience: RetryLimit = DEFAULT_RETRY) -> Any:
        """Run a script; a server that is away for a moment is waited for."""
        # A client that tries again by itself uses up the same patience.
        deadline = time.monotonic() + patience.seconds
        tries = 0
        while True:
            try:
                return self._once(move, keys, args)
            except Exception as error:
                self._check_passing(error)
                pause = _PAUSES[min(tries, len(_PAUSES) - 1)]
                if patience.given_up() or time.monotonic() + pause > deadline:
                    raise self._plain(error) from None
            time.sleep(pause)
            tries += 1

    def listen(self, keys: Sequence[bytes], seconds: float) -> None:
        """Wait until one of the bells rings, at most so long; a lost connection ends it early."""
        # 0 would be for ever.
        rounded = max(round(seconds, 3), 0.001)
        try:
            self._execute("BLPOP", *keys, rounded, NEVER_DECODE=True)
        except Exception as error:
            self._check_passing(error)
            time.sleep(min(seconds, _PAUSES[1]))

    def _once(self, move: Script, keys: Sequence[bytes], args: Sequence[Any]) -> Any:
        # Bodies are bytes, also for a client that is set to decode.
        try:
            return self._execute("EVALSHA", move.sha, len(keys), *keys, *args, NEVER_DECODE=True)
        except self._errors.NoScriptError:
            # A server that was restarted has forgotten it. This makes it known again, too.
            return self._execute("EVAL", move.text, len(keys), *keys, *args, NEVER_DECODE=True)

    def _check_passing(self, error: Exception) -> None:
        """Raise what will not pass by waiting: Redis errors in plain words, others as they are."""
        known = self._errors
        if not isinstance(error, known.RedisError | known.RedisClusterException):
            raise error
        lasting = (known.AuthenticationError, known.AuthorizationError)
        passing = (
            known.ConnectionError,
            known.TimeoutError,
            known.ReadOnlyError,
            known.TryAgainError,
            known.ClusterError,
            known.RedisClusterException,
        )
        if isinstance(error, lasting) or not (isinstance(error, passing) or str(error).startswith(_TRANSIENT)):
            raise self._plain(error) from None

    def _plain(self, error: Exception) -> MailboxError:
        known = self._errors
        kinds: tuple[tuple[Any, str, str], ...] = (
            (
                (known.AuthenticationError, known.AuthorizationError),
                "the server wants another user or password",
                "check them in the address",
            ),
            (
                known.NoPermissionError,
                f"the server does not allow it: {error}",
                "let the user run EVAL, EVALSHA and BLPOP, and all that concerns keys proctor:*",
            ),
            (
                known.AskError,
                "the server is one of a cluster",
                "add ?cluster=true to the address, or give a RedisCluster as the client",
            ),
            (
                known.OutOfMemoryError,
                "the server has no memory left",
                "let workers catch up, or raise its maxmemory",
            ),
            (
                (known.ConnectionError, known.TimeoutError, known.RedisClusterException),
                f"the server cannot be reached: {error}",
                "check that it runs and that the address is right",
            ),
        )
        for kind, what, fix in kinds:
            if isinstance(error, kind):
                return MailboxError(what, where=self.where, fix=fix)
        if str(error).startswith("WRONGTYPE "):
            return WrongType(f"a key has the wrong type: {error}", where=self.where)
        return MailboxError(f"the server refuses: {error}", where=self.where)


def wrap_client(client: Any) -> RedisConnection:
    """A line over a client of redis-py that the user holds."""
    if isinstance(client, RedisConnection):
        return client
    redis = extras.require("redis", extra="redis", why=_WHY)
    if not isinstance(client, redis.Redis | redis.cluster.RedisCluster):
        raise ConfigError(
            f"a {type(client).__qualname__} is not a client of Redis",
            fix="give a redis.Redis or a redis.cluster.RedisCluster (the ones without async)",
        )
    return RedisConnection(client, owned=False)


def open_connection(url: str, *, cluster: bool = False) -> RedisConnection:
    """A line to the server at a URL, over a client of its own."""
    redis = extras.require("redis", extra="redis", why=_WHY)
    timeouts = {
        "socket_timeout": _SOCKET_TIMEOUT,
        "socket_connect_timeout": _CONNECT_TIMEOUT,
        "socket_keepalive": True,
        "health_check_interval": _HEALTH_CHECK,
    }
    try:
        if cluster:
            return RedisConnection(redis.cluster.RedisCluster.from_url(url, **timeouts), owned=True)
        # A line tries again by itself, and knows better how long.
        once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        client = redis.Redis.from_url(url, retry=once, **timeouts)
        # It is not connected yet, but refuses options that it does not know.
        client.connection_pool.make_connection()
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"the address cannot be used: {error}",
            where=hidden(url),
            fix="write it as redis://host:6379/0/NAME; its options are those of redis-py",
        ) from None
    except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
        raise MailboxError(
            f"the cluster cannot be reached: {error}",
            where=hidden(url),
            fix="check that it runs and that the address and the password are right",
        ) from None
    return RedisConnection(client, owned=True)


def _told(client: Any) -> tuple[str, float]:
    """Where a client's server is, and how long it may be listened to in one go."""
    if hasattr(client, "connection_pool"):
        said = client.connection_pool.connection_kwargs
        host, port = said.get("host", "localhost"), said.get("port", 6379)
        where = str(said["path"]) if "path" in said else f"{host}:{port}"
    else:
        said = client.get_connection_kwargs()
        node = client.get_default_node()
        where = f"{node.host}:{node.port}"
    timeout = said.get("socket_timeout", _UNSAID_TIMEOUT)
    return where, _LONGEST_LISTEN if timeout is None else min(_LONGEST_LISTEN, timeout / 2)


def _bad_address(address: str) -> ConfigError:
    return ConfigError(
        f"{hidden(address)!r} is not the address of a mailbox on Redis",
        fix="write it as redis://host:6379/0/NAME, or rediss://… for TLS; signs such as @, / and "
        "# in a password are written as %40, %2F and %23",
    )
