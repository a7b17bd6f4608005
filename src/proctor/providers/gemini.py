"""Google's Gemini models."""

from __future__ import annotations

from typing import Unpack
from urllib.parse import quote

from proctor.providers.transport import addresses, keys
from proctor.providers.transport.access import Options, Provider, Server, access
from proctor.providers.transport.endpoint import Errand, endpoint
from proctor.providers.transport.line import line
from proctor.providers.transport.retries import Patience
from proctor.providers.wire.gemini import GeminiWire, read_models
from proctor.records.model import ModelRequest, ModelResponse

BASE_URL = "https://generativelanguage.googleapis.com"
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
VERSION = "/v1beta"
GEMINI = Provider("gemini", BASE_URL, "GEMINI_BASE_URL", KEYS, VERSION)
# A list of models that goes on and on is not followed for ever.
MOST_PAGES = 20


class GeminiAdapter:
    """A Gemini model. The options are those of `OpenAIAdapter`.

    GEMINI_API_KEY and GOOGLE_API_KEY are for Google and for the gateway that GEMINI_BASE_URL
    names; a server that `base_url` names does not get them.

    >>> GeminiAdapter("gemini-2.5-flash", api_key="key-0123456789")
    GeminiAdapter('gemini:gemini-2.5-flash')
    """

    def __init__(self, model: str, **options: Unpack[Options]) -> None:
        address = f"gemini:{model}"
        found = access(GEMINI, options, Options, options.get("name") or address)
        self._name = model.removeprefix("models/")
        self._url = f"{found.base}{VERSION}/models/{quote(self._name, safe='')}:generateContent"
        self._line = line(found, GeminiWire(), _headers(found.key), address, options)
        self.model = self._line.who
        self.identity = found.identity(self.model, address)

    def __repr__(self) -> str:
        return f"GeminiAdapter({self.model!r})"

    @property
    def fits_schema(self) -> bool:
        """False from the moment when the server says that it knows no schemas."""
        return self._line.fits_schema

    async def complete(
        self, request: ModelRequest, *, timeout: float | None = None
    ) -> ModelResponse:
        """Ask once, retries of what is worth it included, within `timeout` seconds in all."""
        return await self._line.complete(self._url, self._name, request, timeout)


def connect(address: str, **options: Unpack[Options]) -> GeminiAdapter:
    """The model at `gemini:NAME`.

    >>> connect("gemini:gemini-2.5-flash", api_key="key-0123456789").model
    'gemini:gemini-2.5-flash'
    """
    return GeminiAdapter(addresses.name_in(address, "gemini"), **options)


async def available(*, timeout: float = 10.0, **options: Unpack[Server]) -> list[str]:
    """The names of the models that the server offers with this key."""
    access_ = access(GEMINI, options, Server, "gemini")
    server = endpoint(access_.origin, access_.key, _headers(access_.key))
    found: list[str] = []
    page: str | None = ""
    for _ in range(MOST_PAGES):
        after = f"&pageToken={quote(page, safe='')}" if page else ""
        errand = Errand("gemini", f"{access_.base}{VERSION}/models?pageSize=1000{after}", None)
        names, page = (await server.ask(errand, read_models, Patience(retries=1), timeout)).value
        found += names
        if page is None:
            break
    return sorted(found)


def _headers(key: keys.Key) -> dict[str, str]:
    return {"x-goog-api-key": key.sent_as("{}")} if key else {}
