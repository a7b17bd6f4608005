"""The connection to a Redis server: scripts, retries, errors and the message format."""

from __future__ import annotations

import hashlib
import math
import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from proctor.core import optional as extras
from proctor.core import resources
from proctor.errors import ConfigError, MailboxError
from proctor.mailboxes import core
from proctor.models.connect import hide_credentials
from proctor.records.mail import DeadLetter

# Limits for one command, so that it does not block other clients for long.
CHUNK = 100
CHUNK_BYTES = 1024 * 1024
_MAX_LINE_LENGTH = 1000
_MAX_DIGITS = 10
# The last millisecond of the year 9999.
_MAX_MILLISECONDS = 253_402_300_799_999


class StoredMessage(NamedTuple):
    """A stored message, with its encoded body."""

    id: str
    sent_ms: int
    reply_to: str | None
    body: bytes

    @classmethod
    def read(cls, text: bytes) -> StoredMessage:
        head, _, body = text.partition(b"\n")
        key, sent, reply_to = head.decode().split(" ")
        return cls(key, int(sent), reply_to or None, body)


def read_dead_letter(entry_id: bytes, fields: Sequence[bytes]) -> DeadLetter:
    """Read an entry of the stream of dead letters; its key contains the time at which it was added."""
    entry = dict(zip(fields[::2], fields[1::2], strict=False))
    died_ms = min(int(entry_id.partition(b"-")[0]), _MAX_MILLISECONDS)
    record = entry.get(b"letter", b"")
    # Unreadable messages become dead letters, and other programs may write to the stream.
    default_reason = ""
    try:
        letter = StoredMessage.read(record)
        enqueued_at = core.to_datetime(letter.sent_ms)
    except (ValueError, OverflowError, OSError):
        key = _decode_text(entry.get(b"id", b"")) or entry_id.decode()
        letter, enqueued_at = StoredMessage(key, died_ms, None, record), core.to_datetime(died_ms)
        default_reason = core.BAD_HEADER
    deliveries = _parse_number(entry.get(b"count", b""))
    history = _decode_text(entry.get(b"past", b""))
    reason = _decode_text(entry.get(b"reason", b"")) or default_reason or core.describe_deliveries(deliveries)
    return DeadLetter(
        id=letter.id,
        body=_decode_text(letter.body),
        reason=reason,
        delivery_count=deliveries,
        enqueued_at=enqueued_at,
        died_at=core.to_datetime(died_ms),
        history=tuple(map(_read_history_line, history.split("\n"))) if history else (),
        reply_to=letter.reply_to,
    )


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _parse_number(data: bytes) -> int:
    return int(data) if data.isdigit() and len(data) < _MAX_DIGITS else 0


def _read_history_line(line: str) -> str:
    delivery, _, reason = line.partition(" ")
    if not (delivery.isascii() and delivery.isdigit() and len(delivery) < _MAX_DIGITS):
        return line
    return core.format_history_line(int(delivery), reason or core.LEASE_EXPIRED)


def to_milliseconds(seconds: float) -> int:
    """Convert seconds to milliseconds, rounded up."""
    return math.ceil(seconds * 1000)


def to_one_line(reason: str) -> str:
    """Shorten a reason to one line for the history of a message."""
    return replace_invalid(" ".join(reason.split())[:_MAX_LINE_LENGTH])


def replace_invalid(reason: str) -> str:
    """Replace characters that UTF-8 cannot encode."""
    return reason.encode("utf-8", "replace").decode()


# Pauses between attempts. The first is 0, because an idle connection may just have been closed.
_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
# The longest wait before the next check (WATCH in mailbox.lua); shorter if the client would treat the silence as a lost
# connection.
_MAX_LISTEN_SECONDS = 5.0
_SOCKET_TIMEOUT = 10.0
_CONNECT_TIMEOUT = 5.0
_HEALTH_CHECK = 15
# The default of redis-py for a connection pool without a timeout.
_DEFAULT_TIMEOUT = 5.0
# Prefixes of transient errors for which redis-py has no class.
_TRANSIENT = ("BUSY ", "UNBLOCKED ", "MASTERDOWN ", "NOREPLICAS ", "LOADING ", "CLUSTERDOWN ")
_FEATURE = "a Redis mailbox"


class Script(NamedTuple):
    """A Lua script that the server runs atomically."""

    text: str
    sha: str


@cache
def load_script(name: str, *, standalone: bool = False) -> Script:
    """Load a script, with the shared functions unless it is standalone."""
    shared = "" if standalone else resources.text("mailboxes", "scripts", "mailbox.lua")
    text = shared + resources.text("mailboxes", "scripts", f"{name}.lua")
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


class RetryLimit(NamedTuple):
    """How long a call is retried while the server is down; `is_cancelled` can end the retries earlier."""

    seconds: float = 2.5
    is_cancelled: Callable[[], bool] = lambda: False


DEFAULT_RETRY = RetryLimit()
NO_RETRY = RetryLimit(0)


class WrongType(MailboxError):
    """A key of the mailbox has a value of the wrong type."""


class Address(NamedTuple):
    """The parts of a mailbox address: the server and the name of the mailbox."""

    url: str
    name: str
    cluster: bool


def read_address(address: str) -> Address:
    """Parse `redis://[user:password@]host:port/db/NAME?option=…`."""
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
    """A client with retries, shared by the mailboxes of one server.

    It counts its users; a client that was created here is closed with the last user.
    """

    def __init__(self, client: Any, *, owned: bool) -> None:
        redis = extras.require("redis", extra="redis", why=_FEATURE)
        self._errors = redis.exceptions
        self._client = client
        self._execute = client.execute_command
        self._owned = owned
        self._users = 0
        self._lock = threading.Lock()
        self.where, self.max_listen_seconds = _describe_client(client)

    def acquire(self) -> RedisConnection:
        with self._lock:
            self._users += 1
        return self

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            is_last = self._users == 0
        if is_last and self._owned:
            self._client.close()

    def run(self, script: Script, keys: Sequence[bytes], args: Sequence[Any], retry: RetryLimit = DEFAULT_RETRY) -> Any:
        """Run a script; retry while the server is down."""
        # The client's own retries count towards the same limit.
        deadline = time.monotonic() + retry.seconds
        attempts = 0
        while True:
            try:
                return self._run_once(script, keys, args)
            except Exception as error:
                self._raise_if_permanent(error)
                pause = _PAUSES[min(attempts, len(_PAUSES) - 1)]
                if retry.is_cancelled() or time.monotonic() + pause > deadline:
                    raise self._translate(error) from None
            time.sleep(pause)
            attempts += 1

    def listen(self, keys: Sequence[bytes], seconds: float) -> None:
        """Wait until a wake key gets an item, at most `seconds`; a lost connection ends the wait early."""
        # 0 would wait forever.
        rounded = max(round(seconds, 3), 0.001)
        try:
            self._execute("BLPOP", *keys, rounded, NEVER_DECODE=True)
        except Exception as error:
            self._raise_if_permanent(error)
            time.sleep(min(seconds, _PAUSES[1]))

    def _run_once(self, script: Script, keys: Sequence[bytes], args: Sequence[Any]) -> Any:
        # Bodies are bytes, even if the client decodes responses.
        try:
            return self._execute("EVALSHA", script.sha, len(keys), *keys, *args, NEVER_DECODE=True)
        except self._errors.NoScriptError:
            # A restarted server does not know the script; EVAL also stores it again.
            return self._execute("EVAL", script.text, len(keys), *keys, *args, NEVER_DECODE=True)

    def _raise_if_permanent(self, error: Exception) -> None:
        """Raise errors that a retry does not fix; translate errors of Redis."""
        errors = self._errors
        if not isinstance(error, errors.RedisError | errors.RedisClusterException):
            raise error
        permanent = (errors.AuthenticationError, errors.AuthorizationError)
        transient = (
            errors.ConnectionError,
            errors.TimeoutError,
            errors.ReadOnlyError,
            errors.TryAgainError,
            errors.ClusterError,
            errors.RedisClusterException,
        )
        if isinstance(error, permanent) or not (isinstance(error, transient) or str(error).startswith(_TRANSIENT)):
            raise self._translate(error) from None

    def _translate(self, error: Exception) -> MailboxError:
        errors = self._errors
        what, fix = f"the server rejected the command: {error}", ""
        if isinstance(error, errors.AuthenticationError | errors.AuthorizationError):
            what, fix = "the server rejected the user or password", "check them in the address"
        elif isinstance(error, errors.NoPermissionError):
            what = f"the user has no permission: {error}"
            fix = "allow the user EVAL, EVALSHA and BLPOP, and all commands on keys proctor:*"
        elif isinstance(error, errors.AskError):
            what = "the server is part of a cluster"
            fix = "add ?cluster=true to the address, or pass a RedisCluster as the client"
        elif isinstance(error, errors.OutOfMemoryError):
            what, fix = "the server is out of memory", "raise its maxmemory, or wait until workers have caught up"
        elif isinstance(error, errors.ConnectionError | errors.TimeoutError | errors.RedisClusterException):
            reason = re.sub(r"Error -?\d+ connecting to \S+?\. (.*?)\.?$", lambda match: match[1].lower(), str(error))
            what = f"the server cannot be reached: {reason}"
            fix = "check that it is running and that the address is correct"
        elif str(error).startswith("WRONGTYPE "):
            return WrongType(f"a key has the wrong type: {error}", where=self.where)
        return MailboxError(what, where=self.where, fix=fix)


def wrap_client(client: Any) -> RedisConnection:
    if isinstance(client, RedisConnection):
        return client
    redis = extras.require("redis", extra="redis", why=_FEATURE)
    if not isinstance(client, redis.Redis | redis.cluster.RedisCluster):
        raise ConfigError(
            f"an object of type {type(client).__qualname__} is not a Redis client",
            fix="pass a redis.Redis or a redis.cluster.RedisCluster, not their asyncio versions",
        )
    return RedisConnection(client, owned=False)


def open_connection(url: str, *, cluster: bool = False) -> RedisConnection:
    redis = extras.require("redis", extra="redis", why=_FEATURE)
    timeouts = {
        "socket_timeout": _SOCKET_TIMEOUT,
        "socket_connect_timeout": _CONNECT_TIMEOUT,
        "socket_keepalive": True,
        "health_check_interval": _HEALTH_CHECK,
    }
    try:
        if cluster:
            return RedisConnection(redis.cluster.RedisCluster.from_url(url, **timeouts), owned=True)
        # `RedisConnection` does its own retries.
        no_retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        client = redis.Redis.from_url(url, retry=no_retry, **timeouts)
        # This does not connect yet, but rejects unknown options.
        client.connection_pool.make_connection()
    except (ValueError, TypeError) as error:
        reason = re.sub(r".*unexpected keyword argument", "unknown option", str(error))
        raise ConfigError(
            f"invalid address: {reason}",
            where=hide_credentials(url),
            fix="write it as redis://host:6379/0/NAME; its options are those of redis-py",
        ) from None
    except (redis.RedisError, redis.exceptions.RedisClusterException) as error:
        raise MailboxError(
            f"the cluster cannot be reached: {error}",
            where=hide_credentials(url),
            fix="check that it is running and that the address and the password are correct",
        ) from None
    return RedisConnection(client, owned=True)


def _describe_client(client: Any) -> tuple[str, float]:
    """Return the address of the server, and the longest time to listen."""
    if hasattr(client, "connection_pool"):
        options = client.connection_pool.connection_kwargs
        host, port = options.get("host", "localhost"), options.get("port", 6379)
        where = str(options["path"]) if "path" in options else f"{host}:{port}"
    else:
        options = client.get_connection_kwargs()
        node = client.get_default_node()
        where = f"{node.host}:{node.port}"
    timeout = options.get("socket_timeout", _DEFAULT_TIMEOUT)
    return where, _MAX_LISTEN_SECONDS if timeout is None else min(_MAX_LISTEN_SECONDS, timeout / 2)


def _bad_address(address: str) -> ConfigError:
    return ConfigError(
        f"{hide_credentials(address)!r} is not a valid Redis mailbox address",
        fix="write it as redis://host:6379/0/NAME, or rediss://… for TLS; write @, / and # in a "
        "password as %40, %2F and %23",
    )
