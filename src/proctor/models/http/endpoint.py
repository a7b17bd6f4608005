"""One server with one key: its connections, its limiter, and the retries of transient failures.

All adapters of a process that use the same server and key share one endpoint, so that together they respect its rate
limits. Each event loop has separate connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import math
import os
import random
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import msgspec

from proctor.core import resource_scope, stopwatch
from proctor.core.clock import Clock, SystemClock
from proctor.core.http_status import is_loopback
from proctor.core.retry_policy import OVERLOADED, RATE_LIMITED, RetryPolicy, backoff_seconds, is_retryable_status
from proctor.errors import CallFailed
from proctor.models.http.access import ApiKey, endpoint_digest
from proctor.models.http.errors import ErrorBody, KeyRejections, read_error_body
from proctor.models.http.rate_limits import Limiter, PauseTooLong, RateHeaders
from proctor.version import VERSION

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

# The pool opens another client when every client has this many running requests.
CALLS_PER_CLIENT = 8
MAX_RESPONSE_BYTES = 64 * 1024 * 1024
# The account has no money left: the status is 429, but waiting does not help.
_NO_QUOTA = "insufficient_quota"
# TLS contexts by their certificates.
_certificates: dict[Any, Any] = {}


class PooledClient:
    __slots__ = ("client", "running")

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.running = 0


class ClientPool:
    """The clients of one endpoint in one event loop; it opens more when they are needed."""

    def __init__(self, origin: str, headers: Mapping[str, str]) -> None:
        self._origin = origin
        self._headers = dict(headers)
        self._clients: list[PooledClient] = []

    def choose(self) -> PooledClient:
        """Return the first client with room; the caller counts its request in `running`."""
        for pooled in self._clients:
            if pooled.running < CALLS_PER_CLIENT:
                return pooled
        self._clients.append(PooledClient(self._open_client()))
        return self._clients[-1]

    async def close(self) -> None:
        clients, self._clients = self._clients, []
        for pooled in clients:
            await pooled.client.aclose()

    def _open_client(self) -> httpx2.AsyncClient:
        return open_client(self._origin, 2 * CALLS_PER_CLIENT, headers=self._headers, timeout=None)


def open_client(url: str, keepalive_connections: int, **options: Any) -> httpx2.AsyncClient:
    """Open a client that stores no cookies; its caller limits the concurrency.

    It does not follow redirects. It uses the proxies of the environment, except for connections to this machine.
    """
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx2

    return httpx2.AsyncClient(
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=keepalive_connections),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        trust_env=not is_loopback(urlsplit(url).hostname or ""),
        verify=prepare_connections(url),
        **options,
    )


def prepare_connections(url: str) -> Any:
    """Import the HTTP library and load the certificates, once for each process; return the `verify` of a client.

    Both are slow. Whoever measures calls prepares the connections first, so that the first call is as fast as the next.
    """
    import httpx2

    # The client imports these with its first request.
    for module in ("httpcore2", "anyio._backends._asyncio"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    parts = urlsplit(url)
    is_local = is_loopback(parts.hostname or "")
    if is_local and parts.scheme == "http":
        # Plain HTTP on this machine needs no certificates.
        return False
    variables = tuple(os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    key = (is_local, variables)
    if key not in _certificates:
        _certificates[key] = httpx2.create_ssl_context(trust_env=not is_local)
    return _certificates[key]


async def read_body(response: httpx2.Response, max_bytes: int) -> bytes | None:
    """Read a body; return None if it is too long."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > max_bytes:
            return None
    return bytes(body)


class HttpCall(NamedTuple):
    """One HTTP request: the caller's name for messages, the URL, and the body (None: a GET)."""

    name: str
    url: str
    body: bytes | None
    # Shown in the message if the server does not have the model.
    model: str = ""


class HttpResult(NamedTuple, Generic[T]):
    """The parsed response, the number of attempts, and the duration of the last attempt in seconds."""

    value: T
    attempts: int
    seconds: float


class UnreadableBody(Exception):
    """The body is truncated or is not JSON: the transfer failed, so a retry may help."""


class UnexpectedBody(Exception):
    """The body is JSON, but not in the format of this server; a retry does not help."""


class RequestRejected(CallFailed):
    """The server answered with an error that is not transient."""

    def __init__(self, what: str, status: int, body: ErrorBody, attempts: int) -> None:
        super().__init__(what)
        self.status = status
        self.body = body
        self.attempts = attempts


class _TransientError(Exception):
    """This attempt failed; the next may succeed. `pause` is the wait that the server requests."""

    def __init__(self, what: str, pause: float | None = None, *, is_rate_limited: bool = False) -> None:
        super().__init__(what)
        self.pause = pause
        self.is_rate_limited = is_rate_limited


class _FinalError(Exception):
    """This attempt failed, and the next would fail too."""

    def __init__(self, status: int, what: str, body: ErrorBody) -> None:
        super().__init__(what)
        self.status = status
        self.body = body


class Endpoint:
    """A server and a key, shared by all their users."""

    def __init__(
        self,
        origin: str,
        key: ApiKey,
        headers: Mapping[str, str],
        *,
        limiter: Limiter | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.origin = origin
        self.key = key
        self.clock = clock or SystemClock()
        self.rng = rng or random.Random()
        self.limiter = limiter or Limiter(clock=self.clock, rng=self.rng)
        self._rejections = KeyRejections(self.clock)
        self._headers = {"Content-Type": "application/json", "User-Agent": f"proctor/{VERSION}", **headers}
        self._pool_key = ("proctor.providers", endpoint_digest(origin, headers))
        prepare_connections(origin)

    def __repr__(self) -> str:
        return f"Endpoint({self.origin!r}, {self.key!r})"

    async def send(
        self, call: HttpCall, read: Callable[[bytes], T], policy: RetryPolicy, timeout: float | None = None
    ) -> HttpResult[T]:
        """Send one request and return the result. Transient failures are retried; `timeout` covers all
        attempts.

        `read` parses the body; it may raise `UnreadableBody` or `UnexpectedBody`.
        """
        started = self.clock.monotonic()
        deadline = None if timeout is None else started + timeout
        async with resource_scope.ResourceScope():
            attempts, failure = 0, None
            while True:
                attempts += 1
                try:
                    value, seconds = await self._attempt(call, read, policy, deadline, attempts)
                    stopwatch.note_failure("")
                    return HttpResult(value, attempts, seconds)
                except _TransientError as error:
                    failure = error
                except (_FinalError, UnexpectedBody) as error:
                    raise self._rejected(call, error, attempts) from None
                except PauseTooLong as error:
                    # The request was not sent in this attempt.
                    raise self._pause_too_long(call, error.reason, error.seconds, attempts - 1) from None
                except TimeoutError:
                    raise self._timed_out(call, timeout or 0.0, attempts, failure) from None
                stopwatch.note_failure(self._describe("", str(failure), attempts).strip())
                await self._wait_before_retry(call, failure, attempts, policy, deadline, started)

    async def _attempt(
        self, call: HttpCall, read: Callable[[bytes], T], policy: RetryPolicy, deadline: float | None, attempt: int
    ) -> tuple[T, float]:
        left = None if deadline is None else deadline - self.clock.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        allowed = stopwatch.time_limit() if left is None else left
        seconds = policy.request_timeout(allowed or 0.0)
        max_pause = seconds if allowed is None else min(seconds, allowed)
        # If the deadline is earlier, one timer is enough.
        needs_timer = math.isfinite(seconds) and (left is None or seconds < left)
        async with asyncio.timeout(left):
            return await self._request(call, read, seconds if needs_timer else None, max_pause, attempt)

    async def _request(
        self, call: HttpCall, read: Callable[[bytes], T], timeout: float | None, max_pause: float, attempt: int
    ) -> tuple[T, float]:
        generation = await self.limiter.acquire(max_pause, at_front=attempt > 1)
        try:
            self._raise_if_key_blocked(call)
            started = self.clock.monotonic()
            try:
                async with asyncio.timeout(timeout) as timer:
                    status, raw_headers, body = await self._exchange(call)
            except TimeoutError:
                if timeout is None or not timer.expired():
                    raise
                raise _TransientError(f"did not answer within {timeout:g} s") from None
            headers = RateHeaders(raw_headers, self.clock.now())
            if not 200 <= status < 300:
                raise self._status_error(call, status, body, headers, generation)
            self._rejections.clear(call.url)
            try:
                value = read(self.key.redact_response(body))
            except UnreadableBody as error:
                raise _TransientError(f"sent a response that cannot be read: {error}") from None
            self.limiter.record_success()
            if headers.reset_after:
                self.limiter.pause(headers.reset_after)
            return value, self.clock.monotonic() - started
        finally:
            self.limiter.release()

    async def _exchange(self, call: HttpCall) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        import httpx2

        pool = resource_scope.open_shared(
            self._pool_key, lambda: ClientPool(self.origin, self._headers), ClientPool.close
        )
        pooled = pool.choose()
        pooled.running += 1
        try:
            method = "GET" if call.body is None else "POST"
            async with pooled.client.stream(method, call.url, content=call.body) as response:
                body = await read_body(response, MAX_RESPONSE_BYTES)
        except httpx2.RequestError as error:
            what = f"could not be reached: {type(error).__name__}" + (f": {error}" if str(error) else "")
            if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
                raise _FinalError(0, what, ErrorBody()) from None
            raise _TransientError(what) from None
        finally:
            pooled.running -= 1
        if body is None:
            raise UnexpectedBody(f"it has more than {MAX_RESPONSE_BYTES:,} bytes")
        return response.status_code, response.headers.raw, body

    def _raise_if_key_blocked(self, call: HttpCall) -> None:
        rejection = self._rejections.find(call.url)
        if rejection is not None:
            what = f"was not called again: {rejection.times} times in a row it {rejection.what}"
            raise _FinalError(HTTPStatus.UNAUTHORIZED, what, rejection.error)

    def _status_error(
        self, call: HttpCall, status: int, body: bytes, headers: RateHeaders, generation: int
    ) -> _TransientError | _FinalError:
        """Classify an error status, and pass it to the limiter and the key rejections."""
        error = read_error_body(body, self.key.redact)
        phrase = next((http_status.phrase for http_status in HTTPStatus if http_status == status), "")
        what = f"answered {status} {phrase}".rstrip()
        if error.message:
            what = f"{what}: {error.message}"
        if status == HTTPStatus.UNAUTHORIZED:
            self._rejections.add(call.url, what, error)
        is_retryable = is_retryable_status(status) if headers.should_retry is None else headers.should_retry
        if not is_retryable or error.code == _NO_QUOTA:
            return _FinalError(status, what, error)
        if status in OVERLOADED:
            self.limiter.record_overload(generation)
        pauses = (headers.retry_after, error.retry_after, headers.reset_after)
        pause = next((seconds for seconds in pauses if seconds is not None), None)
        if pause:
            self.limiter.pause(pause, what)
        return _TransientError(what, pause, is_rate_limited=status == RATE_LIMITED)

    async def _wait_before_retry(
        self,
        call: HttpCall,
        failure: _TransientError,
        attempts: int,
        policy: RetryPolicy,
        deadline: float | None,
        started: float,
    ) -> None:
        """Wait before the next attempt, or raise the failure if there is no other attempt.

        A rate-limited call is retried as long as there is time, even beyond `retries`.
        """
        now = self.clock.monotonic()
        allowed = stopwatch.time_limit()
        limit = (math.inf if allowed is None else allowed) if deadline is None else deadline - now
        # A stopwatch stops in the limiter, so retries beyond the limit need a clock that keeps running.
        left = started + limit - now if deadline is None else limit
        is_overtime = attempts > policy.retries
        if is_overtime and not (failure.is_rate_limited and policy.retries and math.isfinite(left)):
            what = str(failure)
            if failure.is_rate_limited and policy.retries:
                what = f"{what}; without a timeout, retries={policy.retries} is the limit"
            raise self._failed(call, what, attempts, failure.pause)
        delay = backoff_seconds(attempts, policy.retry_delay, self.rng)
        if failure.pause:
            if failure.pause > min(limit, policy.request_timeout(limit if math.isfinite(limit) else 0.0)):
                raise self._pause_too_long(call, str(failure), failure.pause, attempts)
            # Every call waits for the pause in the limiter, so this call need not wait here.
            delay = policy.retry_delay if is_overtime else 0.0
        if delay >= left and (is_overtime or deadline is not None):
            raise self._failed(call, f"{failure}; no time was left for a retry", attempts, failure.pause)
        if delay:
            await self.clock.sleep(delay)

    def _rejected(self, call: HttpCall, error: _FinalError | UnexpectedBody, attempts: int) -> CallFailed:
        if isinstance(error, UnexpectedBody):
            what = f"sent a response in an unexpected format: {error}"
            return RequestRejected(self._describe(call.name, what, attempts), 200, ErrorBody(), attempts)
        what = str(error)
        if error.status in (401, 403) and self.key.source:
            what = f"{what}; check the key in {self.key.source}"
        elif error.status == 404 and call.model:
            what = f"{what}; check the model name {call.model!r}"
        return RequestRejected(self._describe(call.name, what, attempts), error.status, error.body, attempts)

    def _pause_too_long(self, call: HttpCall, what: str, pause: float, attempts: int) -> CallFailed:
        reason = f"asks for a pause of {pause:.3g} s, which is longer than this call can wait"
        return self._failed(call, f"{what}; it {reason}" if what else reason, attempts, pause)

    def _timed_out(self, call: HttpCall, timeout: float, attempts: int, previous: _TransientError | None) -> CallFailed:
        what = f"did not answer within {timeout:g} s in all"
        if self.limiter.waiting:
            what = f"{what} (calls waiting in the limiter: {self.limiter.waiting})"
        if previous is not None:
            what = f"{what}; before that it {previous}"
        return self._failed(call, what, attempts)

    def _failed(self, call: HttpCall, what: str, attempts: int, retry_after: float | None = None) -> CallFailed:
        message = self._describe(call.name, what, attempts)
        return CallFailed(message, retryable=True, retry_after=retry_after)

    def _describe(self, name: str, what: str, attempts: int) -> str:
        return self.key.redact(f"{name} {what}" + (f" ({attempts} attempts)" if attempts > 1 else ""))


# Weak references, so that an endpoint lasts as long as the adapters that use it.
_ENDPOINTS: WeakValueDictionary[str, Endpoint] = WeakValueDictionary()
_ENDPOINTS_LOCK = threading.Lock()


def shared_endpoint(origin: str, key: ApiKey, headers: Mapping[str, str]) -> Endpoint:
    """Return the endpoint that all adapters of this process share for a server and a key."""
    name = endpoint_digest(origin, headers)
    with _ENDPOINTS_LOCK:
        endpoint = _ENDPOINTS.get(name)
        if endpoint is None:
            endpoint = _ENDPOINTS[name] = Endpoint(origin, key, headers)
        return endpoint


def decode_body(body_type: type[T], body: bytes) -> tuple[T, Any]:
    """Decode a body strictly; return it in its type and as plain data."""
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableBody(str(error)) from None
    try:
        return msgspec.convert(raw, body_type), raw
    except msgspec.ValidationError as error:
        raise UnexpectedBody(str(error)) from None
