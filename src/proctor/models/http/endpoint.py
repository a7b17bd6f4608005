"""One endpoint with one key: its connections, its limiter, and the retries of what is worth it.

All adapters of a process that talk to the same server with the same key share one endpoint, so
that together they never send more than it can take. Connections are kept for each event loop.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import msgspec

from proctor.core import lifetimes, stopwatch
from proctor.core.clock import Clock, SystemClock
from proctor.core.http_status import is_loopback
from proctor.errors import CallFailed
from proctor.models.http import keys
from proctor.models.http.errors import Complaint, Refusals, complaint_in
from proctor.models.http.rate_limits import Limiter, PauseTooLong, Said
from proctor.models.http.retries import LIMITED, TOO_MUCH, Patience, is_passing, pause_before
from proctor.version import VERSION

if TYPE_CHECKING:
    import httpx2


# How many requests are under way in a lane before the next one is used.
WIDTH = 8


class Lane:
    """One client, and how many requests are under way in it."""

    __slots__ = ("client", "under_way")

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.under_way = 0


class Lanes:
    """The clients of one endpoint in one event loop; more are opened as they are needed.

    Redirects are not followed and cookies not kept. Proxies set in the environment are used, but
    never for a server on this machine.
    """

    def __init__(self, origin: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(origin)
        self._near = is_loopback(parts.hostname or "")
        # Certificates take long to load, and plain HTTP on this machine has no use for them.
        self._plain = self._near and parts.scheme == "http"
        self._headers = dict(headers)
        self._certificates: Any = None
        self._lanes: list[Lane] = []

    def lane(self) -> Lane:
        """The first lane with room; whoever takes it counts itself in and out."""
        for lane in self._lanes:
            if lane.under_way < WIDTH:
                return lane
        self._lanes.append(Lane(self._client()))
        return self._lanes[-1]

    async def close(self) -> None:
        """Close all connections."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            await lane.client.aclose()

    def _client(self) -> httpx2.AsyncClient:
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx2

        if self._certificates is None:
            self._certificates = False if self._plain else httpx2.create_ssl_context(trust_env=not self._near)
        # The limiter says how many calls are under way, and the endpoint how long they may take.
        return httpx2.AsyncClient(
            headers=self._headers,
            verify=self._certificates,
            timeout=None,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=2 * WIDTH),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=not self._near,
        )


T = TypeVar("T")

MOST_BYTES = 64 * 1024 * 1024
# No money is left: the status is that of too many requests, but waiting does not help.
_SPENT = "insufficient_quota"
_UNKNOWN_KEY = 401


class Errand(NamedTuple):
    """What is asked: for whom it is told, where, and the body; without a body it is a GET."""

    who: str
    url: str
    body: bytes | None
    # The model that is asked, for the message when the server does not know it.
    model: str = ""


class Answer(NamedTuple, Generic[T]):
    """What came back, after how many requests, and how long the last one took."""

    value: T
    attempts: int
    seconds: float


class Garbled(Exception):
    """The body is cut off or no JSON: something on the way failed, so asking again may help."""


class Misfit(Exception):
    """The body is JSON, but not what this server should answer; asking again will not help."""


class Refused(CallFailed):
    """The server answered with an error that will not pass."""

    def __init__(self, what: str, status: int, complaint: Complaint, attempts: int) -> None:
        super().__init__(what)
        self.status = status
        self.complaint = complaint
        self.attempts = attempts


class _Passing(Exception):
    """This request failed; the next may not. `pause` is what the server asks to wait.

    `limited` says that nothing is wrong with it but the moment.
    """

    def __init__(self, what: str, pause: float | None = None, *, limited: bool = False) -> None:
        super().__init__(what)
        self.pause = pause
        self.limited = limited


class _Final(Exception):
    """This request failed, and so would the next."""

    def __init__(self, status: int, what: str, complaint: Complaint) -> None:
        super().__init__(what)
        self.status = status
        self.complaint = complaint


class Endpoint:
    """A server and a key, as all who use them share them.

    >>> Endpoint("https://api.example.com", keys.Key("sk-0123", "MY_KEY"), {})
    Endpoint('https://api.example.com', Key(MY_KEY))
    """

    def __init__(
        self,
        origin: str,
        key: keys.Key,
        headers: Mapping[str, str],
        *,
        limiter: Limiter | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        self.origin = origin
        self.key = key
        self.clock = clock or SystemClock()
        self.chance = chance or random.Random()
        self.limiter = limiter or Limiter(clock=self.clock, chance=self.chance)
        self.refusals = Refusals(self.clock)
        self._headers = {"Content-Type": "application/json", "User-Agent": f"proctor/{VERSION}", **headers}
        self._open_as = ("proctor.providers", keys.digest(origin, headers))

    def __repr__(self) -> str:
        return f"Endpoint({self.origin!r}, {self.key!r})"

    async def ask(
        self, errand: Errand, read: Callable[[bytes], T], patience: Patience, timeout: float | None = None
    ) -> Answer[T]:
        """Ask until there is an answer or it is not worth it; within `timeout` seconds in all.

        `read` makes the answer out of the body; it may raise `Garbled` or `Misfit`.
        """
        began = self.clock.monotonic()
        until = None if timeout is None else began + timeout
        async with lifetimes.in_use():
            attempts, failure = 0, None
            while True:
                attempts += 1
                try:
                    value, seconds = await self._attempt(errand, read, patience, until, attempts)
                    stopwatch.note("")
                    return Answer(value, attempts, seconds)
                except _Passing as error:
                    failure = error
                except (_Final, Misfit) as error:
                    raise self._final(errand, error, attempts) from None
                except PauseTooLong as error:
                    # The request that would have been next was not sent.
                    raise self._too_long(errand, error.why, error.seconds, attempts - 1) from None
                except TimeoutError:
                    raise self._late(errand, timeout or 0.0, attempts, failure) from None
                stopwatch.note(self._told("", str(failure), attempts).strip())
                await self._rest(errand, failure, attempts, patience, until, began)

    async def _attempt(
        self,
        errand: Errand,
        read: Callable[[bytes], T],
        patience: Patience,
        until: float | None,
        attempt: int,
    ) -> tuple[T, float]:
        if until is None:
            allowed = stopwatch.limit()
            seconds = patience.within(0.0 if allowed is None else allowed)
            longest = seconds if allowed is None else min(seconds, allowed)
            own = seconds if math.isfinite(seconds) else None
            return await self._request(errand, read, own, longest, attempt)
        left = until - self.clock.monotonic()
        if left <= 0:
            raise TimeoutError
        async with asyncio.timeout(left):
            # Where the deadline comes first, one timer is enough.
            seconds = patience.within(left)
            own = seconds if seconds < left else None
            return await self._request(errand, read, own, min(left, seconds), attempt)

    async def _request(
        self,
        errand: Errand,
        read: Callable[[bytes], T],
        timeout: float | None,
        longest_pause: float,
        attempt: int,
    ) -> tuple[T, float]:
        generation = await self.limiter.enter(longest_pause, first=attempt > 1)
        try:
            self._spare_key(errand)
            began = self.clock.monotonic()
            if timeout is None:
                status, headers, body = await self._exchange(errand)
            else:
                watch = asyncio.timeout(timeout)
                try:
                    async with watch:
                        status, headers, body = await self._exchange(errand)
                except TimeoutError:
                    raise _Passing(f"did not answer within {timeout:g} s") from None
            said = Said(headers, self.clock.now())
            if not 200 <= status < 300:
                raise self._failure(errand, status, body, said, generation)
            self.refusals.clear(errand.url)
            try:
                value = read(self.key.hide_in_answer(body))
            except Garbled as error:
                raise _Passing(f"gave an answer that cannot be read: {error}") from None
            self.limiter.went_well()
            if said.exhausted:
                self.limiter.pause(said.exhausted)
            return value, self.clock.monotonic() - began
        finally:
            self.limiter.leave()

    async def _exchange(self, errand: Errand) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        import httpx2

        lane = lifetimes.opened(self._open_as, self._lanes, Lanes.close).lane()
        method = "GET" if errand.body is None else "POST"
        body = bytearray()
        lane.under_way += 1
        try:
            async with lane.client.stream(method, errand.url, content=errand.body) as response:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise Misfit(f"it has more than {MOST_BYTES:,} bytes")
        except httpx2.RequestError as error:
            told = f"could not be asked: {type(error).__name__}"
            told = f"{told}: {error}" if str(error) else told
            if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
                raise _Final(0, told, Complaint()) from None
            raise _Passing(told) from None
        finally:
            lane.under_way -= 1
        return response.status_code, response.headers.raw, bytes(body)

    def _lanes(self) -> Lanes:
        return Lanes(self.origin, self._headers)

    def _spare_key(self, errand: Errand) -> None:
        """Raise if the key was refused there just now, to whoever asked."""
        known = self.refusals.of(errand.url)
        if known is not None:
            told = f"was not asked again: {known.times} times in a row it {known.what}"
            raise _Final(_UNKNOWN_KEY, told, known.complaint)

    def _failure(
        self, errand: Errand, status: int, body: bytes, said: Said, generation: int
    ) -> _Passing | _Final:
        """What an error status means, and what it tells the limiter."""
        complaint = complaint_in(body, self.key.hide)
        what = f"answered {status} {_phrase(status)}".rstrip()
        if complaint.message:
            what = f"{what}: {complaint.message}"
        if status == _UNKNOWN_KEY:
            self.refusals.add(errand.url, what, complaint)
        passing = is_passing(status) if said.should_retry is None else said.should_retry
        if not passing or complaint.code == _SPENT:
            return _Final(status, what, complaint)
        if status in TOO_MUCH:
            self.limiter.too_much(generation)
        asked = (said.retry_after, complaint.retry_after, said.exhausted)
        pause = next((each for each in asked if each is not None), None)
        if pause:
            self.limiter.pause(pause, what)
        return _Passing(what, pause, limited=status == LIMITED)

    async def _rest(
        self,
        errand: Errand,
        failure: _Passing,
        attempts: int,
        patience: Patience,
        until: float | None,
        began: float,
    ) -> None:
        """Wait before the next request, or raise what happened if there will be none.

        Who is only too early is asked again as long as there is time, however often that is.
        """
        now = self.clock.monotonic()
        allowed = stopwatch.limit()
        limit = (math.inf if allowed is None else allowed) if until is None else until - now
        # A stopwatch stands still in the limiter; what goes on beyond all retries must end.
        left = began + limit - now if until is None else limit
        overtime = attempts > patience.retries
        if overtime and not (failure.limited and patience.retries and math.isfinite(left)):
            raise self._exhausted(errand, failure, attempts, patience)
        own = pause_before(attempts, patience.retry_delay, self.chance)
        if failure.pause:
            if failure.pause > min(limit, patience.within(limit if math.isfinite(limit) else 0.0)):
                raise self._too_long(errand, str(failure), failure.pause, attempts)
            # Everybody waits for this in the limiter, so it is not waited for here.
            own = patience.retry_delay if overtime else 0.0
        if own >= left and (overtime or until is not None):
            what = f"{failure}; no time was left to ask again"
            raise self._failed(errand, what, attempts, failure.pause)
        if own:
            await self.clock.sleep(own)

    def _final(self, errand: Errand, error: _Final | Misfit, attempts: int) -> CallFailed:
        if isinstance(error, Misfit):
            told = f"gave an answer that is not what it should be: {error}"
            return Refused(self._told(errand.who, told, attempts), 200, Complaint(), attempts)
        told = str(error)
        if error.status in (_UNKNOWN_KEY, 403) and self.key.source:
            told = f"{told}; look at the key in {self.key.source}"
        elif error.status == 404 and errand.model:
            told = f"{told}; is {errand.model!r} a model it knows?"
        told = self._told(errand.who, told, attempts)
        return Refused(told, error.status, error.complaint, attempts)

    def _too_long(self, errand: Errand, what: str, pause: float, attempts: int) -> CallFailed:
        wish = f"wants no request for {pause:.3g} s, which is longer than this call can wait"
        return self._failed(errand, f"{what}; it {wish}" if what else wish, attempts, pause)

    def _exhausted(self, errand: Errand, failure: _Passing, attempts: int, patience: Patience) -> CallFailed:
        told = str(failure)
        if failure.limited and patience.retries:
            told = f"{told}; without a time-out, retries={patience.retries} are all there are"
        return self._failed(errand, told, attempts, failure.pause)

    def _late(self, errand: Errand, timeout: float, attempts: int, before: _Passing | None) -> CallFailed:
        waiting = f" ({self.limiter.waiting} calls wait for a place)"
        told = f"did not answer within {timeout:g} s in all" + waiting * bool(self.limiter.waiting)
        if before is not None:
            told = f"{told}; before that it {before}"
        return self._failed(errand, told, attempts)

    def _failed(
        self, errand: Errand, what: str, attempts: int, retry_after: float | None = None
    ) -> CallFailed:
        told = self._told(errand.who, what, attempts)
        return CallFailed(told, retryable=True, retry_after=retry_after)

    def _told(self, who: str, what: str, attempts: int) -> str:
        tries = f" ({attempts} attempts)" if attempts > 1 else ""
        return self.key.hide(f"{who} {what}{tries}")


# Weak, so that an endpoint lasts as long as the adapters that use it.
_SHARED: WeakValueDictionary[str, Endpoint] = WeakValueDictionary()
_SHARING = threading.Lock()


def endpoint(origin: str, key: keys.Key, headers: Mapping[str, str]) -> Endpoint:
    """The endpoint that all adapters of this process share which use this server and key.

    >>> first = endpoint("https://api.example.com", keys.Key(), {})
    >>> endpoint("https://api.example.com", keys.Key(), {}) is first
    True
    """
    name = keys.digest(origin, headers)
    with _SHARING:
        found = _SHARED.get(name)
        if found is None:
            found = _SHARED[name] = Endpoint(origin, key, headers)
        return found


def decoded(kind: type[T], body: bytes) -> tuple[T, Any]:
    """A body read strictly, and as it is; what is cut off is told from what is wrong."""
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Garbled(str(error)) from None
    try:
        return msgspec.convert(raw, kind), raw
    except msgspec.ValidationError as error:
        raise Misfit(str(error)) from None


def _phrase(status: int) -> str:
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
