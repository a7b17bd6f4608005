"""OpenAI, and any server that speaks its chat completions."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from proctor.errors import ModelError
from proctor.providers.prices import prices_from
from proctor.providers.transport import addresses, keys
from proctor.providers.transport.endpoint import Errand, endpoint
from proctor.providers.transport.line import Line, priced
from proctor.providers.transport.retries import Patience, patience
from proctor.providers.wire.openai import OpenAIWire, read_models
from proctor.records.model import ModelRequest, ModelResponse

BASE_URL = "https://api.openai.com/v1"
KEY, BASE, OTHER_KEY = "OPENAI_API_KEY", "OPENAI_BASE_URL", "PROCTOR_API_KEY"


class OpenAIAdapter:
    """A model at OpenAI, or at a server that speaks the same language.

    `retries` and `retry_delay` are for what may pass (429, 5xx, lost connections, time-outs);
    `timeout` is for one request, and for one pause that the server asks for. Without a model's
    name the server is asked which one it has. A setting that a model says it does not support is
    left out from then on. The key comes from `api_key` or the environment and is kept nowhere.

    >>> OpenAIAdapter("gpt-4o-mini", api_key="sk-0123456789")
    OpenAIAdapter('openai:gpt-4o-mini')
    """

    def __init__(
        self,
        model: str | None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        organization: str | None = None,
        retries: int = 4,
        retry_delay: float = 0.5,
        timeout: float = 120.0,
        prices: Any = None,
        fits_schema: bool = True,
        name: str | None = None,
    ) -> None:
        server = addresses.server(
            addresses.base_url(base_url, BASE, BASE_URL), where=name or f"openai:{model or ''}"
        )
        official = server.base == BASE_URL
        address = f"openai:{model}" if official else server.base + (f"#{model}" if model else "")
        self.model = name or address
        self.fits_schema = fits_schema
        self._name = model
        self._base = server.base
        key = key_for(official, api_key, api_key_env, self.model, base_url is None)
        self._line = Line(
            endpoint(server.origin, key, headers_for(key, organization)),
            OpenAIWire(official=official),
            who=self.model,
            patience=patience(retries, retry_delay, timeout, where=self.model),
            price=priced(prices_from(prices), address),
        )

    def __repr__(self) -> str:
        return f"OpenAIAdapter({self.model!r})"

    async def complete(
        self, request: ModelRequest, *, timeout: float | None = None
    ) -> ModelResponse:
        """Ask once, retries of what is worth it included, within `timeout` seconds in all."""
        name = self._name or await self._only_model(timeout)
        return await self._line.complete(f"{self._base}/chat/completions", name, request, timeout)

    async def _only_model(self, timeout: float | None) -> str:
        errand = Errand(self.model, f"{self._base}/models", None)
        answer = await self._line.endpoint.ask(errand, read_models, self._line.patience, timeout)
        if len(answer.value) != 1:
            known = ", ".join(sorted(answer.value)) or "none"
            raise ModelError(
                f"the server does not have one model but {len(answer.value)}: {known}",
                where=self.model,
                fix=f"name one after a #, as in {self.model}#{(answer.value or ['NAME'])[0]}",
            )
        self._name = answer.value[0]
        return self._name


def connect(address: str, **options: Any) -> OpenAIAdapter:
    """The model at `openai:NAME`, or at `http://host/v1#NAME` for a compatible server.

    >>> connect("http://127.0.0.1:8080/v1#qwen").model
    'http://127.0.0.1:8080/v1#qwen'
    """
    if not address.startswith("openai:"):
        base, _, name = address.partition("#")
        return OpenAIAdapter(unquote(name) or None, base_url=base, **options)
    return OpenAIAdapter(addresses.name_in(address, "openai"), **options)


async def available(
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    api_key_env: str | None = None,
    timeout: float = 10.0,
) -> list[str]:
    """The names of the models that the server offers with this key."""
    found = addresses.base_url(base_url, BASE, BASE_URL)
    server = addresses.server(found, where="openai")
    official = server.base == BASE_URL
    key = key_for(official, api_key, api_key_env, "openai", base_url is None)
    errand = Errand("openai" if official else server.base, f"{server.base}/models", None)
    answer = await endpoint(server.origin, key, headers_for(key, None)).ask(
        errand, read_models, Patience(retries=1), timeout
    )
    return sorted(answer.value)


def key_for(
    official: bool, api_key: str | None, api_key_env: str | None, where: str, named: bool
) -> keys.Key:
    """The key for a server; `named` says that OpenAI's own variable may name the server."""
    # OpenAI's key is for OpenAI, and for a server that its own variable names; nobody else gets it.
    variables = [KEY] if official or named else [OTHER_KEY]
    return keys.find(
        variables, api_key=api_key, api_key_env=api_key_env, needed=official, where=where
    )


def headers_for(key: keys.Key, organization: str | None) -> dict[str, str]:
    """What tells the server who asks."""
    headers = {"Authorization": key.sent_as("Bearer {}")} if key else {}
    return headers | ({"OpenAI-Organization": organization} if organization else {})
