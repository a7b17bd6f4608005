"""The client of one model: everything that the adapters of all providers do in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from proctor.core.retry_policy import RetryPolicy, make_retry_policy
from proctor.models.http.access import ModelOptions, ServerAccess
from proctor.models.http.endpoint import Endpoint, HttpCall, RequestRejected, shared_endpoint
from proctor.models.http.errors import ErrorBody
from proctor.models.prices import Prices, load_prices
from proctor.records.model import ModelRequest, ModelResponse

CostFunction = Callable[[ModelResponse], float | None]


class WireFormat(Protocol):
    """A provider's wire format: writes requests and reads responses."""

    def write(self, model: str, request: ModelRequest, without: frozenset[str], /) -> bytes:
        """Write the body; `without` names the fields of the request that the model rejects."""
        ...

    def read(self, body: bytes, request: ModelRequest, /) -> ModelResponse:
        """Read the response; raises `UnreadableBody` or `UnexpectedBody`."""
        ...

    def rejected_field(self, error: ErrorBody, request: ModelRequest, /) -> str | None:
        """Return the field of the request that the error names as unsupported, or None."""
        ...


class ModelClient:
    """Sends the calls of one model, reads the responses, and adds latency and cost.

    Some models reject a setting that others accept, such as a temperature. The client leaves a
    rejected setting out of that call and of all later ones. It replaces a rejected schema with
    instructions, and `fits_schema` is False from then on.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wire: WireFormat,
        *,
        name: str,
        policy: RetryPolicy,
        cost: CostFunction,
        fits_schema: bool = True,
    ) -> None:
        self.endpoint = endpoint
        self.policy = policy
        self.name = name
        self._wire = wire
        self._cost = cost
        self._fits_schema = fits_schema
        # Replaced, never changed in place: calls in several threads may read it.
        self._without: frozenset[str] = frozenset()

    @property
    def fits_schema(self) -> bool:
        """True until the server rejects a schema."""
        return self._fits_schema and "schema" not in self._without

    async def complete(
        self, url: str, model: str, request: ModelRequest, timeout: float | None
    ) -> ModelResponse:
        """Send one request and return the response; see `Endpoint.send` for retries."""
        deadline = None if timeout is None else self.endpoint.clock.monotonic() + timeout
        earlier_attempts = 0
        while True:
            without = self._without
            call = HttpCall(self.name, url, self._wire.write(model, request, without), model)
            try:
                result = await self.endpoint.send(
                    call, lambda body: self._wire.read(body, request), self.policy, timeout
                )
            except RequestRejected as error:
                field = self._wire.rejected_field(error.body, request) if error.status == 400 else None
                if field is None or field in without:
                    raise
                self._without |= {field}
                earlier_attempts += error.attempts
                if deadline is not None:
                    timeout = max(0.0, deadline - self.endpoint.clock.monotonic())
                continue
            response = result.value
            cost = self._cost(response)
            return replace(
                response,
                model=response.model or model,
                usage=response.usage if cost is None else replace(response.usage, cost=cost),
                latency_ms=result.seconds * 1000.0,
                attempts=earlier_attempts + result.attempts,
            )


def price_by_address(prices: Prices, address: str) -> CostFunction:
    """Return a function that prices a response by the address of its model."""
    return lambda response: prices.cost(address, response.usage)


def make_client(
    access: ServerAccess,
    wire: WireFormat,
    headers: Mapping[str, str],
    address: str,
    options: ModelOptions,
    price: Callable[[Prices, str], CostFunction] = price_by_address,
) -> ModelClient:
    """Make the client for the model at an address."""
    name = options.get("name") or address
    defaults = RetryPolicy()
    return ModelClient(
        shared_endpoint(access.origin, access.key, headers),
        wire,
        name=name,
        policy=make_retry_policy(
            options.get("retries", defaults.retries),
            options.get("retry_delay", defaults.retry_delay),
            options.get("timeout", defaults.timeout),
            where=name,
        ),
        cost=price(load_prices(options.get("prices")), address),
        fits_schema=options.get("fits_schema", True),
    )
