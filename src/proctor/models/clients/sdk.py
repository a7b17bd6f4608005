"""Clients of the OpenAI and Anthropic SDKs, sync and async, as models."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from proctor.core.callables import is_async_callable
from proctor.core.clock import SystemClock
from proctor.core.retry_policy import is_retryable_error
from proctor.core.threads import run_in_thread
from proctor.errors import CallFailed, ModelError, ProctorError
from proctor.models.anthropic import ANTHROPIC, AnthropicWire
from proctor.models.connect import hide_credentials
from proctor.models.http.access import ApiKey
from proctor.models.http.adapter import WireAdapter
from proctor.models.http.endpoint import HttpResult, RequestRejected, UnexpectedBody, UnreadableBody
from proctor.models.http.errors import read_error_body, to_short_line
from proctor.models.http.rate_limits import RateHeaders
from proctor.models.openai import OPENAI, OpenAIWire
from proctor.models.prices import load_prices
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse

MAX_MESSAGE_CHARS = 500


async def call_user_code(
    name: str,
    function: Callable[..., Any],
    *args: Any,
    timeout: float | None = None,
    redact: Callable[[str], str] = lambda text: text,
    **kwargs: Any,
) -> Any:
    """Call a user's function: await it, or run it in a thread if it blocks.

    Every exception becomes a `CallFailed` with the information about retries; `redact` removes keys from the message.
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
        time_limit_text = "" if timeout is None else f" within {timeout:g} s"
        raise CallFailed(f"{name} did not answer{time_limit_text}", retryable=True) from error
    except Exception as error:
        raise to_call_failed(name, error, redact) from error


def to_call_failed(name: str, error: Exception, redact: Callable[[str], str] = lambda text: text) -> CallFailed:
    # Redact before truncating: a truncated key would not be recognized.
    message = to_short_line(redact(str(error)), MAX_MESSAGE_CHARS)
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
    return _has_method(client, "chat", "completions", "create")


def is_anthropic_client(client: Any) -> bool:
    return _has_method(client, "messages", "create")


def _has_method(client: Any, *names: str) -> bool:
    for name in names:
        client = getattr(client, name, None)
    return callable(client)


class ClientAdapter(WireAdapter):
    """A client of the `openai` or the `anthropic` package, or an object with the same methods.

    `name` is the name of the model. The client uses its own key, base URL and retries. Its exceptions become
    `CallFailed`.
    """

    def __init__(
        self, client: Any, *, name: str | None = None, prices: Any = None, supports_json_schema: bool = True
    ) -> None:
        if not name:
            raise ModelError(
                f"the model name for {type(client).__name__} is missing",
                fix='add it: {model: client, name: "…"} or name="…"',
            )
        is_openai = is_openai_client(client)
        provider = OPENAI if is_openai else ANTHROPIC
        base = str(getattr(client, "base_url", provider.base_url)).rstrip("/")
        is_official = base == provider.base_url
        address = f"{provider.scheme}:{name}"
        model = address if is_official else f"{hide_credentials(base)}#{name}"
        super().__init__(
            model,
            name,
            OpenAIWire(is_official=is_official) if is_openai else AnthropicWire(),
            load_prices(prices),
            # Every server behind Anthropic's client has Anthropic's models.
            model if is_openai else address,
            supports_json_schema=supports_json_schema,
        )
        self._create = client.chat.completions.create if is_openai else client.messages.create
        secrets = (getattr(client, "api_key", None), getattr(client, "auth_token", None))
        self._secrets = [ApiKey(secret) for secret in secrets if isinstance(secret, str) and secret]
        parameters = inspect.signature(self._create).parameters.values()
        self._parameters = {parameter.name for parameter in parameters}
        self._takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)

    async def _send(self, body: bytes, request: ModelRequest, timeout: float | None) -> HttpResult[ModelResponse]:
        arguments = self._split_arguments(msgspec.json.decode(body))
        started = self._clock.monotonic()
        try:
            result = await call_user_code(self.model, self._create, timeout=timeout, redact=self._redact, **arguments)
            response = self._wire.read(codec.encode(result), request)
            return HttpResult(response, 1, self._clock.monotonic() - started)
        except CallFailed as error:
            rejection = getattr(error.__cause__, "response", None)
            if getattr(rejection, "status_code", None) != 400:
                raise
            error_body = read_error_body(getattr(rejection, "content", b""))
            raise RequestRejected(error.what, 400, error_body, 1) from error.__cause__
        except (UnreadableBody, UnexpectedBody) as error:
            raise CallFailed(f"{self.model} answered in an unexpected format: {error}") from None

    def _split_arguments(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments for the client; unknown fields go into its `extra_body`."""
        if self._takes_any:
            return body
        known_arguments = {key: value for key, value in body.items() if key in self._parameters}
        extra = {key: value for key, value in body.items() if key not in self._parameters}
        return {**known_arguments, "extra_body": extra} if extra else known_arguments

    def _redact(self, text: str) -> str:
        for secret in self._secrets:
            text = secret.redact(text)
        return text
