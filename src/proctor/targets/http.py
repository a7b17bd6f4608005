"""HTTP endpoints as targets: they receive JSON and return JSON or plain text."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, unquote

from proctor.core.clock import SystemClock
from proctor.core.http_status import parse_retry_after
from proctor.core.redaction.known_secrets import known_secrets
from proctor.core.retry_policy import is_retryable_status
from proctor.errors import CallFailed, Problem, TargetError, suggest_name
from proctor.models.http.access import split_http_url
from proctor.models.http.endpoint import open_client, prepare_connections, read_body
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.trial import Reply
from proctor.targets import wire
from proctor.targets.http_format import EVENT_STREAM, BodyTemplate, ResponseFormat, advise_path

if TYPE_CHECKING:
    import httpx2

METHODS = ("POST", "PUT", "PATCH")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
# Names of headers, variables and query parameters whose values are secrets.
_SECRET_NAME = re.compile(r"auth|key|token|secret|passw|credential|cookie|signature|^sig$|^code$", re.IGNORECASE)
# Shorter strings may match by chance.
_MIN_SECRET_IN_RESPONSE = 8


class Headers:
    """Header values, in which `$NAME` or `${NAME}` is replaced by an environment variable.

    `$$` is a dollar sign. Variables are checked immediately and read again for each call, so that a renewed token is
    used. No value is ever shown, and neither are the `extra_secrets` (name and value).
    """

    def __init__(self, headers: Mapping[str, str], extra_secrets: Iterable[tuple[str, str]] = ()) -> None:
        problems = _find_problems(headers)
        if problems:
            fix = next((problem.fix for problem in problems if problem.fix), 'write {"Authorization": "Bearer $TOKEN"}')
            raise TargetError("the headers are invalid", problems=problems, fix=fix)
        self._templates = {name: Template(value) for name, value in headers.items()}
        self._extra_secrets = tuple(extra_secrets)

    def __repr__(self) -> str:
        return f"Headers({', '.join(self._templates)})"

    def resolve(self) -> dict[str, str]:
        try:
            return {name: template.substitute(os.environ).strip() for name, template in self._templates.items()}
        except KeyError as error:
            raise CallFailed(f"the environment variable {error.args[0]!r} is no longer set") from None

    def redact(self, text: str) -> str:
        """Redact every header value and variable that a server may have quoted in a text."""
        return known_secrets(self._values(lambda _name: True)).redact(text)

    def redact_response(self, body: bytes) -> bytes:
        """Redact secrets in a response; other values may be part of the output."""
        return known_secrets(self._values(is_secret), _MIN_SECRET_IN_RESPONSE).redact_bytes(body)

    def without_secrets(self) -> dict[str, str]:
        """Return the headers as written, with empty values for secrets."""
        return {name: "" if is_secret(name) else template.template for name, template in self._templates.items()}

    def _values(self, matches: Callable[[str], bool]) -> tuple[str, ...]:
        """Return the values of matching headers and variables, and tokens without their scheme."""
        values = [value for name, value in self._extra_secrets if matches(name)]
        for header, template in self._templates.items():
            variables = template.get_identifiers()
            if matches(header) or any(map(matches, variables)):
                value = template.safe_substitute(os.environ).strip()
                values += [value, value.rpartition(" ")[2]] if is_secret(header) else [value]
            values += [os.environ.get(name, "").strip() for name in variables if matches(name)]
        return tuple(sorted(set(values)))


def is_secret(name: str) -> bool:
    """Return True for the name of a header, variable or parameter that contains a secret."""
    return _SECRET_NAME.search(name) is not None


def _find_problems(headers: Any) -> list[Problem]:
    # Problems never quote a value.
    if not isinstance(headers, Mapping):
        return [Problem("headers", "must be a mapping of names to values")]
    reasons = {str(name): _find_problem(name, value) for name, value in headers.items()}
    return [Problem(f"headers.{name}", *reason) for name, reason in reasons.items() if reason]


def _find_problem(name: Any, value: Any) -> tuple[str, ...]:
    """Return what is wrong with a header, and the fix if there is one; nothing if it is valid."""
    if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
        return ("this is not a valid header name; use letters, digits and -",)
    if not isinstance(value, str):
        return ("the value is not a string",)
    template = Template(value)
    if not template.is_valid():
        return ("a $ is not followed by a variable's name; write $$ for a dollar sign",)
    missing = [variable for variable in template.get_identifiers() if variable not in os.environ]
    if missing:
        return f"the environment variable {missing[0]!r} is not set", f"export {missing[0]}=…"
    if not _HEADER_VALUE.fullmatch(template.substitute(os.environ).strip()):
        return ("the value has characters that a header cannot contain",)
    return ()


class HttpTarget:
    """An endpoint that receives `{"id", "input", "options"}` and returns `{"output": …}`.

    A JSON response needs an `"output"` (and may have `"usage"`, `"session"` or an `"error"`); the body of a
    `text/plain` response is the output. The run retries lost connections, timeouts and the statuses 408, 409,
    425, 429 and 5xx (except 501 and 505), after the time in `Retry-After`; other failures are final.

    For an endpoint with a format of its own, `body` is any JSON with the placeholders `$input`, `$id`, `$OPTION` and
    keys of the input; `response` is the path of the output, such as `choices[0].message.content`, and `usage` has the
    paths of `input_tokens` and `output_tokens`. With `stream`, the response is server-sent events or JSON lines, and
    the text at `response` in each event is a piece of the output.

    Redirects are not followed and cookies are not stored. Header values may contain environment variables as
    `$NAME` or `${NAME}`. Proxies of the environment are used, except for an endpoint on this machine.

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
        body: Any = None,
        response: str | None = None,
        usage: Mapping[str, str] | None = None,
        stream: bool = False,
    ) -> None:
        parts = split_http_url(str(url))
        if parts is None:
            # The message does not quote the URL, which may contain a password.
            raise TargetError(
                "the address of the endpoint is not an http or https URL", fix="write it as https://host/path"
            )
        self._url = url
        self._method = str(method).upper()
        if self._method not in METHODS:
            raise TargetError(f"the method {method!r} is not supported", fix=suggest_name(self._method, METHODS))
        self._headers = Headers(headers or {}, _secrets_in_url(parts))
        self._timeout = _check_timeout(timeout)
        self._body = None if body is None else BodyTemplate(body)
        self._format = ResponseFormat(response, usage, stream=stream)
        prepare_connections(url)
        self._client: httpx2.AsyncClient | None = None
        location = parts.netloc.rpartition("@")[2] + parts.path
        query = [
            (name, "" if is_secret(name) else value) for name, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        # Secrets are left out: a new key is not a new endpoint, and a digest of a secret can be guessed.
        identity = [self._method, parts.scheme, location, query, self._headers.without_secrets()]
        if self._body is not None or self._format.describe() != ResponseFormat().describe():
            identity += [body, *self._format.describe()]
        uncovered = (f"the code behind {location}",)
        self.spec = TargetSpec(name or location, "http", codec.digest(identity)[:16], uncovered)

    def __repr__(self) -> str:
        return f"HttpTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:
        """Return a problem for each option that a body does not use; otherwise only the endpoint knows its options."""
        return [] if self._body is None else self._body.find_unused(options)

    def check_sample(self, sample: Sample[Any, Any], options: Mapping[str, Any]) -> TargetError | None:
        """Return the error for a placeholder of the body that a sample and a configuration do not fill."""
        try:
            if self._body is not None:
                self._body.fill(sample, options)
        except TargetError as error:
            return error
        return None

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Reply:
        """Send one sample to the endpoint."""
        import httpx2

        if self._body is None:
            content = wire.encode_call(sample, options)
        else:
            content = codec.encode(self._body.fill(sample, options))
        headers = {"Content-Type": "application/json", **self._headers.resolve()}
        try:
            async with self._open_client().stream(
                self._method, self._url, content=content, headers=headers
            ) as response:
                body = await read_body(response, wire.MAX_BYTES)
        except httpx2.RequestError as error:
            final = httpx2.DecodingError, httpx2.LocalProtocolError, httpx2.UnsupportedProtocol
            raise self._make_error(_describe_failure(error), retryable=not isinstance(error, final)) from None
        if body is None:
            raise self._make_error(f"answered with more than {wire.MAX_BYTES:,} bytes")
        return self._read_reply(response, body)

    async def close(self) -> None:
        """Close the connections; a later call opens new connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = open_client(self._url, 100, timeout=self._timeout)
        return self._client

    def _read_reply(self, response: httpx2.Response, body: bytes) -> Reply:
        if not response.is_success:
            status = response.status_code
            message = wire.excerpt(body, self._headers.redact)
            what = f"answered {status} {response.reason_phrase}".rstrip()
            raise self._make_error(
                f"{what}: {message}" if message else what,
                retryable=is_retryable_status(status),
                retry_after=parse_retry_after(response.headers.get("Retry-After", ""), SystemClock().now()),
            )
        body = self._headers.redact_response(body)
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if content_type == EVENT_STREAM and not self._format.stream:
            raise self._make_error(
                f"answered with a stream of events ({content_type})\nFix: add `stream: true` to the target"
            )
        if self._format.path is not None or self._format.stream:
            return self._format.read(body, content_type, self.spec.name, self._headers.redact)
        if content_type == "text/plain":
            return Reply(body.decode(response.charset_encoding or "utf-8", "replace"))
        if content_type and content_type != "application/json" and not content_type.endswith("+json"):
            raise self._make_error(f"answered with {content_type!r}; expected JSON or text/plain")
        return wire.parse_response(body, self.spec.name, self._headers.redact, advise_path)

    def _make_error(self, what: str, *, retryable: bool = False, retry_after: float | None = None) -> CallFailed:
        message = f"{self.spec.name} {self._headers.redact(what)}"
        return CallFailed(message, retryable=retryable, retry_after=retry_after)


def _describe_failure(error: httpx2.RequestError) -> str:
    """Say what happened to a request without a response, and how to fix it."""
    import httpx2

    name = type(error).__name__
    detail = f"{name}: {error}" if str(error) else name
    if isinstance(error, httpx2.ConnectError):
        return f"could not be reached: {detail}\nFix: is it running? Start it, or correct the URL of the target"
    if isinstance(error, httpx2.ReadError | httpx2.WriteError | httpx2.CloseError | httpx2.RemoteProtocolError):
        return (
            f"closed the connection before it sent a response ({detail})\n"
            "Fix: look at its log; if it is overloaded, add --retries 2 or lower --concurrency"
        )
    if isinstance(error, httpx2.TimeoutException):
        return f"did not respond in time ({detail})\nFix: raise `timeout` of the target, or lower --concurrency"
    return f"could not be reached: {detail}"


def _secrets_in_url(parts: SplitResult) -> list[tuple[str, str]]:
    """Return the passwords and query values that a server may quote."""
    secrets = parse_qsl(parts.query)
    if parts.password:
        login = f"{unquote(parts.username or '')}:{unquote(parts.password)}"
        forms = [parts.password, unquote(parts.password), b64encode(login.encode()).decode()]
        secrets += [("password", form) for form in forms]
    return secrets


def _check_timeout(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise TargetError(
            f"must be a number of seconds greater than 0, got {timeout!r}", where="timeout", fix="write 30"
        )
    return float(timeout)
