"""Clients of OpenAI's and Anthropic's own SDKs, sync and async, as models."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.core.clock import SystemClock
from proctor.core.threads import in_thread
from proctor.errors import CallFailed, ModelError, ProctorError
from proctor.models import anthropic, openai
from proctor.models.http.endpoint import Garbled, Misfit
from proctor.models.http.errors import complaint_in, shortened
from proctor.models.http.keys import Key
from proctor.models.http.line import Wire, priced
from proctor.models.http.rate_limits import Said
from proctor.models.http.retries import is_passing
from proctor.models.prices import prices_from
from proctor.models.wire.anthropic import AnthropicWire
from proctor.models.wire.openai import OpenAIWire
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse

LONGEST_MESSAGE = 500


async def called(
    who: str,
    function: Callable[..., Any],
    *args: Any,
    timeout: float | None = None,
    hide: Callable[[str], str] = lambda text: text,
    **named: Any,
) -> Any:
    """What a function of the user's gives: awaited, or called in a thread if it blocks.

    Whatever it raises becomes `CallFailed`, with what it says of itself about trying again and
    without the keys that `hide` takes out.
    """
    try:
        async with asyncio.timeout(timeout):
            if gives_awaitable(function):
                return await function(*args, **named)
            found = await in_thread(lambda: function(*args, **named))
            return await found if inspect.isawaitable(found) else found
    except ProctorError:
        raise
    except TimeoutError as error:
        within = "" if timeout is None else f" within {timeout:g} s"
        raise CallFailed(f"{who} gave no answer{within}", retryable=True) from error
    except Exception as error:
        raise failed(who, error, hide) from error


def gives_awaitable(function: Any) -> bool:
    """True if calling it gives something to await; partials and callable objects are seen through.

    >>> gives_awaitable(asyncio.sleep), gives_awaitable(len)
    (True, False)
    """
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the class's own code is wanted
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def failed(who: str, error: Exception, hide: Callable[[str], str] = lambda text: text) -> CallFailed:
    """An error of the user's code, or of an SDK, as ours: what it said, and whether to try again.

    >>> failed("python:judge", ConnectionResetError("gone")).retryable
    True
    """
    # Before it is cut: half a key would not be found.
    said = shortened(hide(str(error)), LONGEST_MESSAGE)
    what = f"{who} failed: {type(error).__name__}" + (f": {said}" if said else "")
    return CallFailed(what, retryable=_may_pass(error), retry_after=_retry_after(error))


def _may_pass(error: Exception) -> bool:
    told = getattr(error, "retryable", None)
    if isinstance(told, bool):
        return told
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return is_passing(status)
    # What the SDKs raise where no answer came: it has no status.
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return isinstance(error, OSError) or "APIConnectionError" in kinds


def _retry_after(error: Exception) -> float | None:
    told = getattr(error, "retry_after", None)
    if isinstance(told, int | float) and not isinstance(told, bool) and math.isfinite(told):
        return float(told)
    headers = getattr(getattr(error, "response", None), "headers", None)
    if not isinstance(headers, Mapping):
        return None
    pairs = [(str(name).encode(), str(value).encode()) for name, value in headers.items()]
    return Said(pairs, SystemClock().now()).retry_after


def is_openai_client(thing: Any) -> bool:
    """True if a thing offers `chat.completions.create`."""
    return _offers(thing, "chat", "completions", "create")


def is_anthropic_client(thing: Any) -> bool:
    """True if a thing offers `messages.create`."""
    return _offers(thing, "messages", "create")


def _offers(thing: Any, *names: str) -> bool:
    for name in names:
        thing = getattr(thing, name, None)
    return callable(thing)


class _Kind(NamedTuple):
    """What tells the clients of one package from those of the other."""

    scheme: str
    base_url: str
    wire: Callable[[bool], Wire]
    create: Callable[[Any], Callable[..., Any]]


_OPENAI = _Kind(
    "openai",
    openai.BASE_URL,
    lambda official: OpenAIWire(official=official),
    lambda client: client.chat.completions.create,
)
_ANTHROPIC = _Kind(
    "anthropic",
    anthropic.BASE_URL,
    lambda official: AnthropicWire(),  # noqa: ARG005 - there is one form of it
    lambda client: client.messages.create,
)


class ClientAdapter:
    """A client of the `openai` or the `anthropic` package, or one that looks like it.

    `name` is the model to ask. The client's own key, base URL and retries hold.
    """

    def __init__(
        self, client: Any, *, name: str | None = None, prices: Any = None, fits_schema: bool = True
    ) -> None:
        kind = _OPENAI if is_openai_client(client) else _ANTHROPIC
        base = str(getattr(client, "base_url", kind.base_url)).rstrip("/")
        official = base == kind.base_url
        name = _named(name, client)
        address = f"{kind.scheme}:{name}"
        self.model = address if official else f"{_shown(base)}#{name}"
        wire, create = kind.wire(official), kind.create(client)
        self._calls = _Calls(client, create, wire, name, self.model, fits_schema)
        # Whatever serves Anthropic's own client has Anthropic's models.
        priced_as = address if kind is _ANTHROPIC else self.model
        self._price = priced(prices_from(prices), priced_as)

    def __repr__(self) -> str:
        return f"ClientAdapter({self.model!r})"

    @property
    def fits_schema(self) -> bool:
        """False from the moment when the server says that it knows no schemas."""
        return self._calls.fits_schema

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Ask through the client; what it raises is told as `CallFailed`."""
        return _costed(await self._calls.make(request, timeout), self._price)


class _Calls:
    """Calls of one model through a client: our wire format, the client's transport."""

    def __init__(
        self, client: Any, create: Callable[..., Any], wire: Wire, name: str, who: str, fits_schema: bool
    ) -> None:
        self._create = create
        self._wire = wire
        self._name = name
        self._who = who
        self._fits_schema = fits_schema
        self._secrets = [
            Key(secret)
            for secret in (getattr(client, "api_key", None), getattr(client, "auth_token", None))
            if isinstance(secret, str) and secret
        ]
        known = inspect.signature(create).parameters.values()
        self._taken = {parameter.name for parameter in known}
        self._takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known)
        # Replaced as a whole, never changed: calls in several threads may read it.
        self._without: frozenset[str] = frozenset()

    @property
    def fits_schema(self) -> bool:
        """True as long as the server has not said that it knows no schemas."""
        return self._fits_schema and "schema" not in self._without

    async def make(self, request: ModelRequest, timeout: float | None) -> ModelResponse:
        """Ask; a setting that the model says it does not take is left out from then on."""
        while True:
            without = self._without
            try:
                body = self._body(request, without)
                said = await called(self._who, self._create, timeout=timeout, hide=self._hide, **body)
                return self._wire.read(codec.encode(said), request)
            except CallFailed as error:
                field = self._objection(error, request)
                if field is not None and field not in without:
                    self._without |= {field}
                    continue
                raise
            except (Garbled, Misfit) as error:
                raise CallFailed(f"{self._who} answered something else: {error}") from None

    def _body(self, request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
        """What the client is called with; what it has no name for goes in by its side door."""
        body = msgspec.json.decode(self._wire.write(self._name, request, without))
        if self._takes_all:
            return dict(body)
        named = {key: value for key, value in body.items() if key in self._taken}
        more = {key: value for key, value in body.items() if key not in self._taken}
        return {**named, "extra_body": more} if more else named

    def _objection(self, error: CallFailed, request: ModelRequest) -> str | None:
        response = getattr(error.__cause__, "response", None)
        if getattr(response, "status_code", None) != 400:
            return None
        body = getattr(response, "content", b"")
        return self._wire.objection(complaint_in(body), request)

    def _hide(self, text: str) -> str:
        """A text without the client's key, which a server may have quoted in it."""
        for secret in self._secrets:
            text = secret.hide(text)
        return text


def _named(name: str | None, client: Any) -> str:
    if not name:
        raise ModelError(
            f"which model to ask through {type(client).__name__} is not said",
            fix='give its name: {model: client, name: "…"} or name="…"',
        )
    return name


def _shown(base: str) -> str:
    """A base URL without what is no part of the place: addresses are stored."""
    scheme, _, rest = base.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def _costed(response: ModelResponse, price: Callable[[ModelResponse], float | None]) -> ModelResponse:
    cost = price(response)
    # Putting input into Anthropic's cache has a price of its own, which the table does not know.
    usage = response.raw.get("usage")
    put_by = usage.get("cache_creation_input_tokens") if isinstance(usage, dict) else None
    if cost is None or put_by:
        return response
    costed = msgspec.structs.replace(response.usage, cost=cost)
    return msgspec.structs.replace(response, usage=costed)
