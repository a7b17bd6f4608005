"""HTTP endpoints as targets: JSON is posted, JSON or plain text comes back."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from proctor import codec
from proctor.clock import SystemClock
from proctor.errors import CallFailed, TargetError, nearest
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.trial import Reply
from proctor.remote import is_loopback, seconds_until
from proctor.targets import wire
from proctor.targets.headers import Headers, is_secret

if TYPE_CHECKING:
    import httpx2

METHODS = ("POST", "PUT", "PATCH")
_MAY_PASS = (408, 425, 429)


class HttpTarget:
    """An endpoint that gets `{"id", "input", "options"}` and answers `{"output": …}`.

    A JSON answer needs an `"output"` (and may have `"usage"`, `"session"` or an `"error"`); the
    body of a `text/plain` answer is the output. Status 429, 5xx, lost connections and time-outs
    may pass and can be tried again, after the time in `Retry-After`; other failures are final.
    Redirects are not followed and cookies not kept. Header values may be written `$NAME` or
    `${NAME}`: they are then read from the environment. Proxies set in the environment are used,
    but never for an endpoint on this machine.

    >>> HttpTarget("https://example.com/answer", headers={"Accept-Language": "en"})
    HttpTarget('example.com/answer')
    """

    blocking = False

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        method: str = "POST",
        name: str | None = None,
        timeout: float | None = None,
    ) -> None:
        parts = _parts(url)
        self._url = url
        self._method = _method(method)
        self._headers = Headers(headers or {}, _secrets_in(parts))
        self._timeout = _seconds(timeout)
        self._near = is_loopback(parts.hostname or "")
        self._client: httpx2.AsyncClient | None = None
        place = parts.netloc.rpartition("@")[2] + parts.path
        # No secrets: a new key makes no other endpoint, and a digest can be guessed at.
        asked = [self._method, parts.scheme, place, _query(parts), self._headers.as_written()]
        identity = codec.digest(asked)[:16]
        self.spec = TargetSpec(name or place, "http", identity, (f"what runs at {place}",))

    def __repr__(self) -> str:
        return f"HttpTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:  # noqa: ARG002
        """Options are handed to the endpoint, which alone knows what it takes."""
        return []

    async def call(
        self, sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0
    ) -> Reply:
        """Ask the endpoint about one sample."""
        import httpx2

        asked = wire.question(sample, options)
        headers = {"Content-Type": "application/json", **self._headers.filled()}
        try:
            async with self._open().stream(
                self._method, self._url, content=asked, headers=headers
            ) as response:
                body = await self._body(response)
        except httpx2.RequestError as error:
            final = httpx2.DecodingError, httpx2.LocalProtocolError, httpx2.UnsupportedProtocol
            raise self._failed(
                f"could not be asked: {type(error).__name__}: {error}",
                retryable=not isinstance(error, final),
            ) from None
        return self._reply(response, body)

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            from http.cookiejar import CookieJar, DefaultCookiePolicy

            import httpx2

            # The engine limits how many calls run at once and how long, so the client does not.
            self._client = httpx2.AsyncClient(
                timeout=self._timeout,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                trust_env=not self._near,
            )
        return self._client

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > wire.MOST_BYTES:
                raise self._failed(f"answered with more than {wire.MOST_BYTES:,} bytes")
        return bytes(body)

    def _reply(self, response: httpx2.Response, body: bytes) -> Reply:
        if not response.is_success:
            raise self._refused(response, body)
        body = self._headers.hide_in_answer(body)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind == "text/plain":
            encoding = response.charset_encoding or "utf-8"
            return Reply(body.decode(encoding, "replace"))
        if kind and kind != "application/json" and not kind.endswith("+json"):
            raise self._failed(f"answered with {kind!r}; expected JSON or text/plain")
        return wire.reply_from(body, self.spec.name, self._headers.hide)

    def _refused(self, response: httpx2.Response, body: bytes) -> CallFailed:
        code = response.status_code
        said = wire.beginning(body, self._headers.hide)
        phrase = f"answered {code} {response.reason_phrase}".rstrip()
        return self._failed(
            f"{phrase}: {said}" if said else phrase,
            retryable=code >= 500 or code in _MAY_PASS,
            retry_after=seconds_until(response.headers.get("Retry-After", ""), SystemClock().now()),
        )

    def _failed(
        self, what: str, *, retryable: bool = False, retry_after: float | None = None
    ) -> CallFailed:
        hidden = self._headers.hide(what)
        return CallFailed(
            f"{self.spec.name} {hidden}", retryable=retryable, retry_after=retry_after
        )


def _parts(url: Any) -> SplitResult:
    try:
        parts = urlsplit(str(url))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # The address itself is not told: it may hold a password.
        raise TargetError(
            "the address of the endpoint is not an http or https URL",
            fix="write it as https://host/path",
        )
    return parts


def _secrets_in(parts: SplitResult) -> list[tuple[str, str]]:
    """What a server may quote of an address and nobody should see: passwords, values of a query."""
    found = parse_qsl(parts.query)
    if parts.password:
        login = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
        forms = [parts.password, unquote(parts.password), b64encode(login.encode()).decode()]
        found += [("password", form) for form in forms]
    return found


def _query(parts: SplitResult) -> list[tuple[str, str]]:
    """The parameters of an address, without secrets."""
    return [
        (name, "" if is_secret(name) else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]


def _method(method: Any) -> str:
    known = str(method).upper()
    if known not in METHODS:
        raise TargetError(f"{method!r} is not a method to ask with", fix=nearest(known, METHODS))
    return known


def _seconds(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise TargetError(f"the timeout {timeout!r} is not a number of seconds above 0")
    return float(timeout)
