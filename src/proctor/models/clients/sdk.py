"""Clients of the OpenAI and Anthropic SDKs, sync and async, as models."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.core.callables import is_async_callable
from proctor.core.clock import SystemClock
from proctor.core.retry_policy import is_retryable_error
from proctor.core.threads import run_in_thread
from proctor.errors import CallFailed, ModelError, ProctorError
from proctor.models import anthropic, openai
from proctor.models.http.access import ApiKey
from proctor.models.http.endpoint import UnexpectedBody, UnreadableBody
from proctor.models.http.errors import read_error_body, shorten
from proctor.models.http.model_client import WireFormat
from proctor.models.http.rate_limits import RateHeaders
from proctor.models.prices import load_prices
from proctor.models.wire.anthropic import AnthropicWire
from proctor.models.wire.openai import OpenAIWire
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse

MAX_MESSAGE_CHARS = 500


async def call_user_code(
    name: str,
    function: Callable[..., Any],
    *args: Any,
    timeout: float | None = None,
    hide: Callable[[str], str] = lambda text: text,
    **kwargs: Any,
) -> Any:
    """Call a user's function: await it, or run it in a thread if it blocks.

    Every exception becomes `CallFailed`, which keeps the information about retries; `hide`
    removes keys from the message.
    """
    try:
        async with asyncio.timeout(timeout):
            if is_async_callable(function):
                return await function(*args, **kwargs)
            result = await run_in_thread(lambda: function(*args, **kwargs))
            return await result if inspect.isawaitable(result) else result
    except ProctorError:
        raise
    except TimeoutError as error:
        within = "" if timeout is None else f" within {timeout:g} s"
        raise CallFailed(f"{name} did not answer{within}", retryable=True) from error
    except Exception as error:
        raise to_call_failed(name, error, hide) from error


def to_call_failed(name: str, error: Exception, hide: Callable[[str], str] = lambda text: text) -> CallFailed:
    """Convert an error of user code or of an SDK.

    >>> to_call_failed("python:judge", ConnectionResetError("gone")).retryable
    True
    """
    # Hidden before it is cut: half a key would not be found.
    message = shorten(hide(str(error)), MAX_MESSAGE_CHARS)
    what = f"{name} failed: {type(error).__name__}" + (f": {message}" if message else "")
    return CallFailed(what, retryable=is_retryable_error(error), retry_after=_retry_after(error))


def _retry_after(error: Exception) -> float | None:
    seconds = getattr(error, "retry_after", None)
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds):
        return float(seconds)
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    pairs = [(str(name).encode(), str(value).encode()) for name, value in headers.items()]
    return RateHeaders(pairs, SystemClock().now()).retry_after


def is_openai_client(client: Any) -> bool:
    """Return True if an object has `chat.completions.create`."""
    return _has_method(client, "chat", "completions", "create")


def is_anthropic_client(client: Any) -> bool:
    """Return True if an object has `messages.create`."""
    return _has_method(client, "messages", "create")


def _has_method(client: Any, *names: str) -> bool:
    for name in names:
        client = getattr(client, name, None)
    return callable(client)


class _Sdk(NamedTuple):
    """The differences between the two SDKs."""

    scheme: str
    base_url: str
    wire: Callable[[bool], WireFormat]
    create: Callable[[Any], Callable[..., Any]]


_OPENAI = _Sdk(
    "openai",
    openai.BASE_URL,
    lambda is_official: OpenAIWire(is_official=is_official),
    lambda client: client.chat.completions.create,
)
_ANTHROPIC = _Sdk(
    "anthropic",
    anthropic.BASE_URL,
    lambda is_official: AnthropicWire(),  # noqa: ARG005 - it has only one form
    lambda client: client.messages.create,
)


class ClientAdapter:
    """A client of the `openai` or the `anthropic` package, or one with the same methods.

    `name` is the name of the model. The client keeps its own key, base URL and retries.
    """

    def __init__(
        self, client: Any, *, name: str | None = None, prices: Any = None, fits_schema: bool = True
    ) -> None:
        if not name:
            raise ModelError(
                f"the model name for {type(client).__name__} is missing",
                fix='add it: {model: client, name: "…"} or name="…"',
            )
        sdk = _OPENAI if is_openai_client(client) else _ANTHROPIC
        base = str(getattr(client, "base_url", sdk.base_url)).rstrip("/")
        is_official = base == sdk.base_url
        address = f"{sdk.scheme}:{name}"
        self.model = address if is_official else f"{_hide_credentials(base)}#{name}"
        self._name = name
        self._wire = sdk.wire(is_official)
        self._create = sdk.create(client)
        # Every server behind Anthropic's client has Anthropic's models.
        price_address = address if sdk is _ANTHROPIC else self.model
        self._cost = anthropic.price_uncached(load_prices(prices), price_address)
        self._secrets = [
            ApiKey(secret)
            for secret in (getattr(client, "api_key", None), getattr(client, "auth_token", None))
            if isinstance(secret, str) and secret
        ]
        parameters = inspect.signature(self._create).parameters.values()
        self._parameters = {parameter.name for parameter in parameters}
        self._takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        self._fits_schema = fits_schema
        # Replaced, never changed in place: calls in several threads may read it.
        self._without: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"ClientAdapter({self.model!r})"

    @property
    def fits_schema(self) -> bool:
        """True until the server rejects a schema."""
        return self._fits_schema and "schema" not in self._without

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Send the request through the client; its exceptions become `CallFailed`.

        A setting that the model rejects as unsupported is left out from then on.
        """
        while True:
            without = self._without
            try:
                result = await call_user_code(
                    self.model,
                    self._create,
                    timeout=timeout,
                    hide=self._hide,
                    **self._write_arguments(request, without),
                )
                response = self._wire.read(codec.encode(result), request)
            except CallFailed as error:
                field = self._rejected_field(error, request)
                if field is None or field in without:
                    raise
                self._without |= {field}
                continue
            except (UnreadableBody, UnexpectedBody) as error:
                raise CallFailed(f"{self.model} answered in an unexpected format: {error}") from None
            cost = self._cost(response)
            if cost is None:
                return response
            usage = msgspec.structs.replace(response.usage, cost=cost)
            return msgspec.structs.replace(response, usage=usage)

    def _write_arguments(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
        """Return the arguments for the client; unknown fields go into its `extra_body`."""
        body = msgspec.json.decode(self._wire.write(self._name, request, without))
        if self._takes_any:
            return dict(body)
        known = {key: value for key, value in body.items() if key in self._parameters}
        extra = {key: value for key, value in body.items() if key not in self._parameters}
        return {**known, "extra_body": extra} if extra else known

    def _rejected_field(self, error: CallFailed, request: ModelRequest) -> str | None:
        response = getattr(error.__cause__, "response", None)
        if getattr(response, "status_code", None) != 400:
            return None
        return self._wire.rejected_field(read_error_body(getattr(response, "content", b"")), request)

    def _hide(self, text: str) -> str:
        for secret in self._secrets:
            text = secret.hide(text)
        return text


def _hide_credentials(base: str) -> str:
    """Remove user, password and query from a base URL, because addresses are stored."""
    scheme, _, rest = base.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"
