"""Google's Gemini models."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from proctor.providers.prices import prices_from
from proctor.providers.transport import addresses, keys
from proctor.providers.transport.endpoint import Endpoint, Errand, endpoint
from proctor.providers.transport.line import Line, priced
from proctor.providers.transport.retries import Patience, patience
from proctor.providers.wire.gemini import GeminiWire, read_models
from proctor.records.model import ModelRequest, ModelResponse

BASE_URL = "https://generativelanguage.googleapis.com"
KEYS, BASE = ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GEMINI_BASE_URL"
VERSION = "/v1beta"
# A list of models that goes on and on is not followed for ever.
MOST_PAGES = 20


class GeminiAdapter:
    """A Gemini model. The options are those of `OpenAIAdapter`.

    >>> GeminiAdapter("gemini-2.5-flash", api_key="key-0123456789")
    GeminiAdapter('gemini:gemini-2.5-flash')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        retries: int = 4,
        retry_delay: float = 0.5,
        timeout: float = 120.0,
        prices: Any = None,
        fits_schema: bool = True,
        name: str | None = None,
    ) -> None:
        address = f"gemini:{model}"
        self.model = name or address
        self.fits_schema = fits_schema
        self._name = model.removeprefix("models/")
        base, shared = _server(base_url, api_key, api_key_env, self.model)
        self._url = f"{base}/models/{quote(self._name, safe='')}:generateContent"
        self._line = Line(
            shared,
            GeminiWire(),
            who=self.model,
            patience=patience(retries, retry_delay, timeout, where=self.model),
            price=priced(prices_from(prices), address),
        )

    def __repr__(self) -> str:
        return f"GeminiAdapter({self.model!r})"

    async def complete(
        self, request: ModelRequest, *, timeout: float | None = None
    ) -> ModelResponse:
        """Ask once, retries of what is worth it included, within `timeout` seconds in all."""
        return await self._line.complete(self._url, self._name, request, timeout)


def connect(address: str, **options: Any) -> GeminiAdapter:
    """The model at `gemini:NAME`.

    >>> connect("gemini:gemini-2.5-flash", api_key="key-0123456789").model
    'gemini:gemini-2.5-flash'
    """
    return GeminiAdapter(addresses.name_in(address, "gemini"), **options)


async def available(
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api_key_env: str | None = None,
    timeout: float = 10.0,
) -> list[str]:
    """The names of the models that the server offers with this key."""
    base, shared = _server(base_url, api_key, api_key_env, "gemini")
    found: list[str] = []
    page: str | None = ""
    for _ in range(MOST_PAGES):
        after = f"&pageToken={quote(page, safe='')}" if page else ""
        errand = Errand("gemini", f"{base}/models?pageSize=1000{after}", None)
        answer = await shared.ask(errand, read_models, Patience(retries=1), timeout)
        names, page = answer.value
        found += names
        if page is None:
            break
    return sorted(found)


def _server(
    base_url: str | None, api_key: str | None, api_key_env: str | None, where: str
) -> tuple[str, Endpoint]:
    found = addresses.server(addresses.base_url(base_url, BASE, BASE_URL), where=where)
    key = keys.find(KEYS, api_key=api_key, api_key_env=api_key_env, where=where)
    shared = endpoint(found.origin, key, {"x-goog-api-key": key.sent_as("{}")})
    return found.base.removesuffix(VERSION) + VERSION, shared
