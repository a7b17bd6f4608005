"""Embeddings from OpenAI and from any server that speaks its format, on the same endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from proctor.asking.remembered import Remembered
from proctor.errors import ModelError
from proctor.providers.openai import BASE, BASE_URL, headers_for, key_for
from proctor.providers.transport import addresses
from proctor.providers.transport.endpoint import Errand, Misfit, decoded, endpoint
from proctor.providers.transport.retries import patience

# How many batches may be under way at once, as far as the endpoint's limiter lets them.
PARALLEL = 4


class _Asked(msgspec.Struct, omit_defaults=True):
    model: str
    input: Sequence[str]
    dimensions: int | None = None


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Row]


class EndpointEmbedder:
    """Texts to vectors at an endpoint, with the limiter and the retries that its chats have.

    `dimensions` asks for shorter vectors, where the model can give them.

    >>> EndpointEmbedder("nomic", base_url="http://127.0.0.1:8080/v1").name
    'http://127.0.0.1:8080/v1#nomic'
    """

    method = "embeddings"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        retries: int = 4,
        retry_delay: float = 0.5,
        timeout: float = 60.0,
        dimensions: int | None = None,
    ) -> None:
        where = f"openai:{model}"
        if isinstance(dimensions, bool) or not isinstance(dimensions, int | None):
            raise ModelError(f"dimensions is a whole number, got {dimensions!r}", where=where)
        server = addresses.server(addresses.base_url(base_url, BASE, BASE_URL), where=where)
        official = server.base == BASE_URL
        address = where if official else f"{server.base}#{model}"
        self.name = address if dimensions is None else f"{address} ({dimensions} dimensions)"
        self._model, self._dimensions = model, dimensions
        self._url = f"{server.base}/embeddings"
        self._patience = patience(retries, retry_delay, timeout, where=address)
        key = key_for(official, api_key, api_key_env, address, base_url is None)
        self._endpoint = endpoint(server.origin, key, headers_for(key, None))

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self.name!r})"

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector for each text, in order."""
        asked = msgspec.json.encode(_Asked(self._model, list(texts), self._dimensions))
        errand = Errand(self.name, self._url, asked, self._model)
        answer = await self._endpoint.ask(
            errand, lambda body: _vectors(body, len(texts)), self._patience
        )
        return answer.value


def _vectors(body: bytes, count: int) -> list[Sequence[float]]:
    answer, _ = decoded(_Answer, body)
    rows = answer.data
    if sorted(row.index for row in rows) != list(range(count)):
        raise Misfit(f"it has {len(rows)} vectors for {count} texts, or numbers them wrong")
    return [row.embedding for row in sorted(rows, key=lambda row: row.index)]


def connect(address: str, **options: Any) -> Remembered:
    """The embedder at `openai:NAME`, or at `http://host/v1#NAME` for a compatible server."""
    if not address.startswith("openai:"):
        if "base_url" in options:
            raise ModelError("it is a base URL already", fix="leave out base_url")
        base, _, name = address.partition("#")
        if not name:
            raise ModelError("the address does not name a model", fix="write it as URL#model")
        embedder = EndpointEmbedder(unquote(name), base_url=base, **options)
    else:
        embedder = EndpointEmbedder(addresses.name_in(address, "openai"), **options)
    return Remembered(embedder, parallel=PARALLEL)
