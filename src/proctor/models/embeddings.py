"""Embeddings from OpenAI and compatible servers, through the same endpoints as their models."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Unpack

import msgspec

from proctor.errors import ModelError
from proctor.models.embedding_cache import CachedEmbedder, shared_embedder
from proctor.models.http.access import ConnectionOptions, model_name, resolve_access, retry_policy, split_server_address
from proctor.models.http.endpoint import HttpCall, UnexpectedBody, decode_body, shared_endpoint
from proctor.models.model_calls import call_context
from proctor.models.openai import OPENAI
from proctor.models.prices import load_prices
from proctor.records.session import Usage
from proctor.sessions.current import check_usage

# The maximum number of concurrent batches; the endpoint's limiter may allow fewer.
CONCURRENCY = 4


class _Request(msgspec.Struct, omit_defaults=True):
    model: str
    input: Sequence[str]
    dimensions: int | None = None


class _Row(msgspec.Struct):
    index: int
    embedding: list[float]


class _Response(msgspec.Struct):
    data: list[_Row]
    usage: Any = None


class EmbedderOptions(ConnectionOptions, total=False):
    """The options of an embedder."""

    dimensions: int | None
    prices: Any


class EndpointEmbedder:
    """Embeds texts at an endpoint, with the limiter and the retries of its models.

    `dimensions` requests shorter vectors, if the model supports them. Requests count against the budget of
    the run that needs the vectors.
    """

    method = "embeddings"

    def __init__(self, model: str, **options: Unpack[EmbedderOptions]) -> None:
        where = f"openai:{model}"
        dimensions = options.get("dimensions")
        if isinstance(dimensions, bool) or not isinstance(dimensions, int | None):
            raise ModelError(f"dimensions must be an integer, got {dimensions!r}", where=where)
        access = resolve_access(OPENAI, options, EmbedderOptions, where)
        # An embedder's name is its only identity, so the name includes any other server.
        address = where if access.is_official else f"{access.base}#{model}"
        self.name = address if dimensions is None else f"{address} ({dimensions} dimensions)"
        self._model, self._dimensions = model, dimensions
        self._address, self._prices = address, load_prices(options.get("prices"))
        self._url = f"{access.base}/embeddings"
        self._policy = retry_policy(options, address)
        self._endpoint = shared_endpoint(access.origin, access.key, OPENAI.headers(access.key))

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self.name!r})"

    @property
    def sharing_key(self) -> Hashable:
        """A key that is equal for embedders with the same model, server, API key and retry policy."""
        return self.name, self._endpoint, self._policy

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        spending = call_context.get().spending
        if spending is not None:
            spending.begin()
        body = msgspec.json.encode(_Request(self._model, list(texts), self._dimensions))
        call = HttpCall(self.name, self._url, body, self._model)
        result = await self._endpoint.send(call, lambda body: _read_vectors(body, len(texts)), self._policy)
        vectors, tokens = result.value
        if spending is not None:
            usage = check_usage(Usage(tokens, 0), self.name)
            cost = self._prices.cost(self._address, usage)
            spending.end(self.name, msgspec.structs.replace(usage, cost=cost))
        return vectors


def _read_vectors(body: bytes, count: int) -> tuple[list[Sequence[float]], Any]:
    """Return the vectors in the order of the texts, and the reported number of tokens."""
    response, _ = decode_body(_Response, body)
    rows = sorted(response.data, key=lambda row: row.index)
    if [row.index for row in rows] != list(range(count)):
        raise UnexpectedBody(f"it has {len(rows)} vectors for {count} texts, or wrong indexes")
    usage = response.usage if isinstance(response.usage, dict) else {}
    return [row.embedding for row in rows], usage.get("prompt_tokens")


def connect(address: str, **options: Unpack[EmbedderOptions]) -> CachedEmbedder:
    """Connect `openai:NAME`, or `http://host/v1#NAME` for a compatible server.

    Embedders with the same address, key and options share one cache.
    """
    if address.startswith("openai:"):
        embedder = EndpointEmbedder(model_name(address), **options)
    else:
        base, name = split_server_address(address, options)
        if not name:
            raise ModelError("the address does not name a model", fix="write it as URL#model")
        embedder = EndpointEmbedder(name, base_url=base, **options)  # type: ignore[misc]
    key = embedder.sharing_key, repr(options.get("prices"))
    return shared_embedder(key, lambda: CachedEmbedder(embedder, concurrency=CONCURRENCY))
