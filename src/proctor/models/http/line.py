"""A line to a model: what the adapters of all providers do in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from proctor.models.http.endpoint import Answer, Endpoint, Errand, Refused, endpoint
from proctor.models.http.errors import Complaint
from proctor.models.http.keys import Access, Options
from proctor.models.http.retries import Patience, patience
from proctor.models.prices import Prices, prices_from
from proctor.records.model import ModelRequest, ModelResponse

_NOTHING: frozenset[str] = frozenset()

Cost = Callable[[ModelResponse], float | None]


class Wire(Protocol):
    """A provider's wire format: how a request is written and an answer read."""

    def write(self, model: str, request: ModelRequest, without: frozenset[str], /) -> bytes:
        """The body; `without` names the fields of the request that the model does not take."""
        ...

    def read(self, body: bytes, request: ModelRequest, /) -> ModelResponse:
        """The answer; raises `Garbled` or `Misfit`."""
        ...

    def objection(self, complaint: Complaint, request: ModelRequest, /) -> str | None:
        """The field of the request that the model says it does not take, if it says so."""
        ...


class Line:
    """Calls of one model: sent, read, timed and priced.

    Some models refuse a setting that others take, such as a temperature. What a model refuses is
    left out of that call and of all later ones on this line; nothing else is changed. A schema
    that is refused is told in words instead, and `fits_schema` is False from then on.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        wire: Wire,
        *,
        who: str,
        patience: Patience,
        price: Cost,
        fits_schema: bool = True,
    ) -> None:
        self.endpoint = endpoint
        self.patience = patience
        self.who = who
        self._wire = wire
        self._price = price
        self._fits_schema = fits_schema
        # Replaced as a whole, never changed: calls in several threads may read it.
        self._without = _NOTHING

    @property
    def fits_schema(self) -> bool:
        """True as long as the server has not said that it knows no schemas."""
        return self._fits_schema and "schema" not in self._without

    async def complete(
        self, url: str, model: str, request: ModelRequest, timeout: float | None
    ) -> ModelResponse:
        """Ask once, retries included."""
        until = None if timeout is None else self.endpoint.clock.monotonic() + timeout
        tried = 0
        while True:
            without = self._without
            errand = Errand(self.who, url, self._wire.write(model, request, without), model)
            try:
                answer = await self.endpoint.ask(
                    errand, lambda body: self._wire.read(body, request), self.patience, timeout
                )
            except Refused as error:
                field = self._objection(error, request)
                if field is None or field in without:
                    raise
                self._without |= {field}
                tried += error.attempts
                if until is not None:
                    timeout = max(0.0, until - self.endpoint.clock.monotonic())
                continue
            return self._finished(answer, tried + answer.attempts, model)

    def _objection(self, error: Refused, request: ModelRequest) -> str | None:
        return self._wire.objection(error.complaint, request) if error.status == 400 else None

    def _finished(self, answer: Answer[ModelResponse], attempts: int, model: str) -> ModelResponse:
        response = answer.value
        cost = self._price(response)
        return replace(
            response,
            model=response.model or model,
            usage=response.usage if cost is None else replace(response.usage, cost=cost),
            latency_ms=answer.seconds * 1000.0,
            attempts=attempts,
        )


def priced(prices: Prices, address: str) -> Cost:
    """How a line finds what a call cost: by the address that was asked."""
    return lambda response: prices.cost(address, response.usage)


def line(
    access: Access,
    wire: Wire,
    headers: Mapping[str, str],
    address: str,
    options: Options,
    price: Callable[[Prices, str], Cost] = priced,
) -> Line:
    """A line to the model of an address, as its options want it."""
    who = options.get("name") or address
    usual = Patience()
    return Line(
        endpoint(access.origin, access.key, headers),
        wire,
        who=who,
        patience=patience(
            options.get("retries", usual.retries),
            options.get("retry_delay", usual.retry_delay),
            options.get("timeout", usual.timeout),
            where=who,
        ),
        price=price(prices_from(options.get("prices")), address),
        fits_schema=options.get("fits_schema", True),
    )
