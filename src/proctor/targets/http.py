"""HTTP endpoints as targets: JSON is posted, JSON or plain text comes back."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from proctor.core.clock import SystemClock
from proctor.core.http_status import is_loopback, seconds_until
from proctor.core.redaction.known_secrets import known_secrets
from proctor.errors import CallFailed, Problem, TargetError, nearest
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.trial import Reply
from proctor.targets import wire

if TYPE_CHECKING:
    import httpx2


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
# Headers, variables and parameters of an address whose values are secrets.
_SECRET = re.compile(r"auth|key|token|secret|passw|credential|cookie|signature|^sig$|^code$", re.IGNORECASE)
# In an output a shorter text may be something else than the secret.
_SHORTEST_IN_ANSWERS = 8


class Headers:
    """Header values, in which `$NAME` or `${NAME}` stands for an environment variable.

    A dollar sign is written `$$`. Variables are looked for when the headers are made and read
    again for each call, so that a renewed token is used. No value is ever shown, nor is any of the
    values given `besides`, by name.

    >>> Headers({"Accept-Language": "en"}).filled()
    {'Accept-Language': 'en'}
    """

    def __init__(self, headers: Mapping[str, str], besides: Iterable[tuple[str, str]] = ()) -> None:
        problems = [Problem(f"headers.{key}", why) for key, why in _faults(headers)]
        if problems:
            raise TargetError("the headers cannot be used", problems=problems)
        self._templates = {name: Template(value) for name, value in headers.items()}
        self._besides = tuple(besides)

    def __repr__(self) -> str:
        return f"Headers({', '.join(self._templates)})"

    def filled(self) -> dict[str, str]:
        """The headers as they are sent."""
        try:
            return {
                name: template.substitute(os.environ).strip() for name, template in self._templates.items()
            }
        except KeyError as error:
            name = error.args[0]
            raise CallFailed(f"the environment variable {name!r} is no longer set") from None

    def hide(self, text: str) -> str:
        """The text without any header value or variable that a server may have quoted in it."""
        return known_secrets(self._values(lambda _name: True)).hide(text)

    def hide_in_answer(self, body: bytes) -> bytes:
        """An answer without the secrets among them; other values may well be part of an output."""
        secrets = self._values(is_secret)
        return known_secrets(secrets, _SHORTEST_IN_ANSWERS).hide_in_bytes(body)

    def as_written(self) -> dict[str, str]:
        """The headers without secrets, for what tells one endpoint from another."""
        return {
            name: "" if is_secret(name) else template.template for name, template in self._templates.items()
        }

    def _values(self, wanted: Callable[[str], bool]) -> tuple[str, ...]:
        """The values of headers and variables by name, and of a token without its scheme."""
        values = [value for name, value in self._besides if wanted(name)]
        for header, template in self._templates.items():
            variables = template.get_identifiers()
            if wanted(header) or any(map(wanted, variables)):
                whole = template.safe_substitute(os.environ).strip()
                values += [whole, whole.rpartition(" ")[2]] if is_secret(header) else [whole]
            values += [os.environ.get(name, "").strip() for name in variables if wanted(name)]
        return tuple(sorted(set(values)))


def is_secret(name: str) -> bool:
    """True for the name of a header, variable or parameter that holds a secret.

    >>> is_secret("X-API-Key"), is_secret("Accept-Language")
    (True, False)
    """
    return _SECRET.search(name) is not None


def _faults(headers: Any) -> list[tuple[str, str]]:
    """Which headers cannot be sent, and why; the values themselves are not told."""
    if not isinstance(headers, Mapping):
        return [("", "expected a mapping of names to values")]
    found = [(str(name), _fault(name, value)) for name, value in headers.items()]
    return [(name, why) for name, why in found if why]


def _fault(name: Any, value: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "this is not a header name"
    if not isinstance(value, str):
        return "the value is not a string"
    template = Template(value)
    if not template.is_valid():
        return "a $ is not followed by a variable's name; write $$ for a dollar sign"
    missing = [variable for variable in template.get_identifiers() if variable not in os.environ]
    if missing:
        return f"the environment variable {missing[0]!r} is not set"
    if not _VALUE.fullmatch(template.substitute(os.environ).strip()):
        return "the value has characters that a header cannot hold"
    return ""


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

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Reply:
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
                f"could not be asked: {type(error).__name__}: {error}", retryable=not isinstance(error, final)
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

    def _failed(self, what: str, *, retryable: bool = False, retry_after: float | None = None) -> CallFailed:
        hidden = self._headers.hide(what)
        return CallFailed(f"{self.spec.name} {hidden}", retryable=retryable, retry_after=retry_after)


def _parts(url: Any) -> SplitResult:
    try:
        parts = urlsplit(str(url))
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # The address itself is not told: it may hold a password.
        raise TargetError(
            "the address of the endpoint is not an http or https URL", fix="write it as https://host/path"
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
