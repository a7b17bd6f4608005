"""OpenAI, and any server that speaks its chat completions format."""

from __future__ import annotations

from typing import Unpack
from urllib.parse import unquote

from proctor.core.retry_policy import RetryPolicy
from proctor.errors import ModelError
from proctor.models.http.access import (
    ApiKey,
    ModelOptions,
    Provider,
    ServerAccess,
    ServerOptions,
    model_name,
    resolve_access,
)
from proctor.models.http.endpoint import HttpCall, shared_endpoint
from proctor.models.http.model_client import make_client
from proctor.models.wire.openai import OpenAIWire, read_models
from proctor.records.model import ModelRequest, ModelResponse

BASE_URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"
OPENAI = Provider("openai", BASE_URL, "OPENAI_BASE_URL", (KEY,))


class OpenAIOptions(ModelOptions, total=False):
    """The options of a model at OpenAI."""

    organization: str | None


class OpenAIAdapter:
    """A model at OpenAI, or at the compatible server that `base_url` names.

    `retries` and `retry_delay` apply to transient failures: 408, 409, 425, 429, most of 5xx, lost
    connections and timeouts. `timeout` limits one request, and one pause that the server asks
    for. Without a model name the adapter asks the server for its only model. A setting that the
    model rejects as unsupported is left out from then on; a schema is replaced with instructions.
    `prices` is a table or a file, `name` is the name in reports, and `fits_schema=False` is for
    models without structured outputs. The key comes from `api_key`, from the variable that
    `api_key_env` names, or from OPENAI_API_KEY, and is never stored. A server that `base_url`
    names never gets OPENAI_API_KEY; set its key in PROCTOR_API_KEY.

    >>> OpenAIAdapter("gpt-4o-mini", api_key="sk-0123456789")
    OpenAIAdapter('openai:gpt-4o-mini')
    """

    def __init__(self, model: str | None, **options: Unpack[OpenAIOptions]) -> None:
        where = options.get("name") or f"openai:{model or ''}"
        access = resolve_access(OPENAI, options, OpenAIOptions, where)
        address = _model_address(access, model)
        self._name = model
        self._base = access.base
        self._client = make_client(
            access,
            OpenAIWire(is_official=access.is_official),
            make_headers(access.key, options.get("organization")),
            address,
            options,
        )
        self.model = self._client.name
        self.identity = access.identity(self.model, address)

    def __repr__(self) -> str:
        return f"OpenAIAdapter({self.model!r})"

    @property
    def fits_schema(self) -> bool:
        """True until the server rejects a schema."""
        return self._client.fits_schema

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Send one request and return the response. Transient errors are retried; `timeout`
        covers all attempts.
        """
        name = self._name or await self._find_only_model(timeout)
        return await self._client.complete(f"{self._base}/chat/completions", name, request, timeout)

    def limit_concurrency(self, concurrency: int) -> None:
        """Send at most this many requests at a time; further calls wait here."""
        self._client.endpoint.limiter.set_max_window(concurrency)

    async def _find_only_model(self, timeout: float | None) -> str:
        call = HttpCall(self.model, f"{self._base}/models", None)
        models = (await self._client.endpoint.send(call, read_models, self._client.policy, timeout)).value
        if len(models) != 1:
            raise ModelError(
                f"the server has {len(models)} models, not one: {', '.join(sorted(models)) or 'none'}",
                where=self.model,
                fix=f"name one after a #, as in {self.model}#{(models or ['NAME'])[0]}",
            )
        self._name = models[0]
        return self._name


def connect(address: str, **options: Unpack[OpenAIOptions]) -> OpenAIAdapter:
    """Connect `openai:NAME`, or `http://host/v1#NAME` for a compatible server.

    >>> connect("http://127.0.0.1:8080/v1#qwen").model
    'http://127.0.0.1:8080/v1#qwen'
    """
    if not address.startswith("openai:"):
        base, _, name = address.partition("#")
        if "base_url" in options:
            raise ModelError("the address is already a base URL", where=base, fix="leave out base_url")
        return OpenAIAdapter(unquote(name) or None, base_url=base, **options)  # type: ignore[misc]
    return OpenAIAdapter(model_name(address, "openai"), **options)


async def list_models(*, timeout: float = 10.0, **options: Unpack[ServerOptions]) -> list[str]:
    """Return the names of the models that the server offers with this key."""
    access = resolve_access(OPENAI, options, ServerOptions, "openai")
    name = access.base if access.is_explicit and not access.is_official else "openai"
    endpoint = shared_endpoint(access.origin, access.key, make_headers(access.key, None))
    call = HttpCall(name, f"{access.base}/models", None)
    return sorted((await endpoint.send(call, read_models, RetryPolicy(retries=1), timeout)).value)


def make_headers(key: ApiKey, organization: str | None) -> dict[str, str]:
    """Return the headers that identify the caller."""
    headers = {"Authorization": key.format_header("Bearer {}")} if key else {}
    return headers | ({"OpenAI-Organization": organization} if organization else {})


def _model_address(access: ServerAccess, model: str | None) -> str:
    if access.is_official or (model and not access.is_explicit):
        return f"openai:{model}"
    return access.base + (f"#{model}" if model else "")
