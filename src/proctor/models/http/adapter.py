"""Adapters of models at a provider's server: the parts that all providers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Unpack
from urllib.parse import quote

from msgspec.structs import replace

from proctor.core.clock import Clock, SystemClock
from proctor.core.retry_policy import RetryPolicy
from proctor.models.http.access import ModelOptions, Provider, ServerAccess, ServerOptions, resolve_access, retry_policy
from proctor.models.http.endpoint import HttpCall, HttpResult, RequestRejected, shared_endpoint
from proctor.models.prices import Prices, load_prices
from proctor.models.wire import WireFormat
from proctor.records.model import ModelRequest, ModelResponse

# Limits the pages of a list of models, which might never end.
MAX_PAGES = 20


class WireAdapter:
    """A model that is called in a wire format; subclasses send the requests.

    Some models reject a setting that others accept, such as a temperature. A rejected setting is left out of that call
    and of all later calls. After a rejected schema `supports_json_schema` is False, and requests contain instructions.
    """

    def __init__(
        self,
        model: str,
        name: str | None,
        wire: WireFormat,
        prices: Prices,
        price_address: str,
        *,
        supports_json_schema: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.model = model
        self._name = name
        self._wire = wire
        self._prices, self._price_address = prices, price_address
        self._supports_json_schema = supports_json_schema
        self._clock = clock or SystemClock()
        # Replaced, never modified in place, because calls in several threads may read it.
        self._omitted_settings: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r})"

    @property
    def supports_json_schema(self) -> bool:
        """True until the server rejects a schema."""
        return self._supports_json_schema and "schema" not in self._omitted_settings

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Send one request and return the response; `timeout` covers all attempts."""
        assert self._name is not None
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        earlier_attempts = 0
        while True:
            omitted_settings = self._omitted_settings
            try:
                body = self._wire.write(self._name, request, omitted_settings)
                result = await self._send(body, request, timeout)
            except RequestRejected as error:
                field = self._wire.rejected_field(error.body, request) if error.status == 400 else None
                if field is None or field in omitted_settings:
                    raise
                self._omitted_settings |= {field}
                earlier_attempts += error.attempts
                if deadline is not None:
                    timeout = max(0.0, deadline - self._clock.monotonic())
                continue
            response = result.value
            cost = self._cost(response)
            return replace(
                response,
                model=response.model or self._name,
                usage=response.usage if cost is None else replace(response.usage, cost=cost),
                latency_ms=result.seconds * 1000.0,
                attempts=earlier_attempts + result.attempts,
            )

    async def _send(self, body: bytes, request: ModelRequest, timeout: float | None) -> HttpResult[ModelResponse]:
        raise NotImplementedError

    def _cost(self, response: ModelResponse) -> float | None:
        """Compute the cost of a response; None if it wrote to Anthropic's cache, which has a separate price."""
        usage = response.raw.get("usage") if isinstance(response.raw, dict) else None
        if isinstance(usage, dict) and usage.get("cache_creation_input_tokens"):
            return None
        return self._prices.cost(self._price_address, response.usage)


class HttpAdapter(WireAdapter):
    """A model at a provider's server; subclasses set the provider and its wire format."""

    _provider: ClassVar[Provider]
    _options: ClassVar[Any] = ModelOptions

    def __init__(self, model: str | None, **options: Unpack[ModelOptions]) -> None:
        provider = self._provider
        where = options.get("name") or f"{provider.scheme}:{model or ''}"
        access = resolve_access(provider, options, self._options, where)
        address = self._address(access, model)
        name = options.get("name") or address
        self.policy = retry_policy(options, name)
        self.endpoint = shared_endpoint(access.origin, access.key, self._headers(access, options))
        super().__init__(
            name,
            model,
            self._make_wire(access),
            load_prices(options.get("prices")),
            address,
            supports_json_schema=options.get("supports_json_schema", True),
            clock=self.endpoint.clock,
        )
        self.identity = access.identity(name, address)
        self._base = access.base

    def _address(self, access: ServerAccess, model: str | None) -> str:  # noqa: ARG002
        return f"{self._provider.scheme}:{model}"

    def _make_wire(self, access: ServerAccess) -> WireFormat:
        raise NotImplementedError

    def _headers(self, access: ServerAccess, options: Any) -> dict[str, str]:  # noqa: ARG002
        return self._provider.headers(access.key)

    async def _send(self, body: bytes, request: ModelRequest, timeout: float | None) -> HttpResult[ModelResponse]:
        name = self._name or ""
        path = self._provider.path.format(model=quote(name, safe=""))
        call = HttpCall(self.model, self._base + path, body, name)
        return await self.endpoint.send(call, lambda body: self._wire.read(body, request), self.policy, timeout)


async def list_provider_models(
    provider: Provider,
    read: Callable[[bytes], tuple[list[str], str | None]],
    *,
    timeout: float = 10.0,
    **options: Unpack[ServerOptions],
) -> list[str]:
    """Return the names of the models that the server offers with this key.

    `read` reads a page: the names, and the token of the next page.
    """
    access = resolve_access(provider, options, ServerOptions, provider.scheme)
    name = access.base if access.is_explicit and not access.is_official else provider.scheme
    endpoint = shared_endpoint(access.origin, access.key, provider.headers(access.key))
    url, query = access.base + provider.models_path, ""
    names: list[str] = []
    for _ in range(MAX_PAGES):
        call = HttpCall(name, url + query, None)
        page, token = (await endpoint.send(call, read, RetryPolicy(retries=1), timeout)).value
        names += page
        if token is None:
            break
        query = f"&pageToken={quote(token, safe='')}"
    return sorted(names)
