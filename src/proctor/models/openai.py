"""OpenAI, and any server that speaks its chat completions."""

from __future__ import annotations

from typing import Unpack
from urllib.parse import unquote

from proctor.errors import ModelError
from proctor.models.http import addresses, keys
from proctor.models.http.endpoint import Errand, endpoint
from proctor.models.http.keys import Access, Options, Provider, Server, access
from proctor.models.http.line import line
from proctor.models.http.retries import Patience
from proctor.models.wire.openai import OpenAIWire, read_models
from proctor.records.model import ModelRequest, ModelResponse

BASE_URL = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"
OPENAI = Provider("openai", BASE_URL, "OPENAI_BASE_URL", (KEY,))


class OpenAIOptions(Options, total=False):
    """How a model at OpenAI is reached."""

    organization: str | None


class OpenAIAdapter:
    """A model at OpenAI, or at a server that speaks the same language: that of `base_url`.

    `retries` and `retry_delay` are for what may pass (429, 5xx, lost connections, time-outs);
    `timeout` is for one request, and for one pause that the server asks for. Without a model's
    name the server is asked which one it has. A setting that a model says it does not support is
    left out from then on; without a schema it is asked in words. `prices` are a table or a file,
    `name` is what it is called in reports, `fits_schema=False` is for models without structured
    outputs. The key comes from `api_key`, from the variable that `api_key_env` names or from
    OPENAI_API_KEY, and is kept nowhere. OPENAI_API_KEY is never sent to a server that `base_url`
    names: its key may stand in PROCTOR_API_KEY.

    >>> OpenAIAdapter("gpt-4o-mini", api_key="sk-0123456789")
    OpenAIAdapter('openai:gpt-4o-mini')
    """

    def __init__(self, model: str | None, **options: Unpack[OpenAIOptions]) -> None:
        where = options.get("name") or f"openai:{model or ''}"
        found = access(OPENAI, options, OpenAIOptions, where)
        address = _address(found, model)
        self._name = model
        self._base = found.base
        self._line = line(
            found,
            OpenAIWire(official=found.official),
            headers_for(found.key, options.get("organization")),
            address,
            options,
        )
        self.model = self._line.who
        self.identity = found.identity(self.model, address)

    def __repr__(self) -> str:
        return f"OpenAIAdapter({self.model!r})"

    @property
    def fits_schema(self) -> bool:
        """False from the moment when the server says that it knows no schemas."""
        return self._line.fits_schema

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Ask once, retries of what is worth it included, within `timeout` seconds in all."""
        name = self._name or await self._only_model(timeout)
        return await self._line.complete(f"{self._base}/chat/completions", name, request, timeout)

    def hold_to(self, most: int) -> None:
        """Send at most this many requests at a time; the others wait for their turn here."""
        self._line.endpoint.limiter.hold_to(most)

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


def connect(address: str, **options: Unpack[OpenAIOptions]) -> OpenAIAdapter:
    """The model at `openai:NAME`, or at `http://host/v1#NAME` for a compatible server.

    >>> connect("http://127.0.0.1:8080/v1#qwen").model
    'http://127.0.0.1:8080/v1#qwen'
    """
    if not address.startswith("openai:"):
        base, _, name = address.partition("#")
        if "base_url" in options:
            raise ModelError("it is a base URL already", where=base, fix="leave out base_url")
        return OpenAIAdapter(unquote(name) or None, base_url=base, **options)  # type: ignore[misc]
    return OpenAIAdapter(addresses.name_in(address, "openai"), **options)


async def available(*, timeout: float = 10.0, **options: Unpack[Server]) -> list[str]:
    """The names of the models that the server offers with this key."""
    found = access(OPENAI, options, Server, "openai")
    who = found.base if found.named and not found.official else "openai"
    server = endpoint(found.origin, found.key, headers_for(found.key, None))
    errand = Errand(who, f"{found.base}/models", None)
    return sorted((await server.ask(errand, read_models, Patience(retries=1), timeout)).value)


def headers_for(key: keys.Key, organization: str | None) -> dict[str, str]:
    """What tells the server who asks."""
    headers = {"Authorization": key.sent_as("Bearer {}")} if key else {}
    return headers | ({"OpenAI-Organization": organization} if organization else {})


def _address(found: Access, model: str | None) -> str:
    if found.official or (model and not found.named):
        return f"openai:{model}"
    return found.base + (f"#{model}" if model else "")
