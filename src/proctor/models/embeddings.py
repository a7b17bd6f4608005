"""Embeddings from OpenAI and from any server that speaks its format, on the same endpoints."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Unpack
from urllib.parse import unquote

import msgspec

from proctor.errors import ModelError
from proctor.models.asking import conditions
from proctor.models.embed import Remembered, shared
from proctor.models.http import addresses
from proctor.models.http.endpoint import Errand, Misfit, decoded, endpoint
from proctor.models.http.keys import Reach, access
from proctor.models.http.retries import patience
from proctor.models.openai import OPENAI, headers_for
from proctor.models.prices import prices_from
from proctor.records.session import Usage
from proctor.sessions.current import checked_usage

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
    usage: Any = None


class EmbedderOptions(Reach, total=False):
    """How an embedder is connected."""

    dimensions: int | None
    prices: Any


class EndpointEmbedder:
    """Texts to vectors at an endpoint, with the limiter and the retries that its chats have.

    `dimensions` asks for shorter vectors, where the model can give them. Requests count against
    the budget of the run that wants the vectors.

    >>> EndpointEmbedder("nomic", base_url="http://127.0.0.1:8080/v1").name
    'http://127.0.0.1:8080/v1#nomic'
    """

    method = "embeddings"

    def __init__(self, model: str, **options: Unpack[EmbedderOptions]) -> None:
        where = f"openai:{model}"
        dimensions = options.get("dimensions")
        if isinstance(dimensions, bool) or not isinstance(dimensions, int | None):
            raise ModelError(f"dimensions is a whole number, got {dimensions!r}", where=where)
        found = access(OPENAI, options, EmbedderOptions, where)
        # Embedders have no identity beside their name, so the name tells every other server.
        address = where if found.official else f"{found.base}#{model}"
        self.name = address if dimensions is None else f"{address} ({dimensions} dimensions)"
        self._model, self._dimensions = model, dimensions
        self._address, self._prices = address, prices_from(options.get("prices"))
        self._url = f"{found.base}/embeddings"
        self._patience = patience(
            options.get("retries", 4), options.get("retry_delay", 0.5), options.get("timeout"), where=address
        )
        self._endpoint = endpoint(found.origin, found.key, headers_for(found.key, None))

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self.name!r})"

    @property
    def shared_by(self) -> Hashable:
        """What two embedders have in common that are the same: model, server, key and patience."""
        return self.name, self._endpoint, self._patience

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector for each text, in order."""
        spending = conditions.get().spending
        if spending is not None:
            spending.begin()
        asked = msgspec.json.encode(_Asked(self._model, list(texts), self._dimensions))
        errand = Errand(self.name, self._url, asked, self._model)
        answer = await self._endpoint.ask(errand, lambda body: _vectors(body, len(texts)), self._patience)
        vectors, tokens = answer.value
        if spending is not None:
            used = checked_usage(Usage(tokens, 0), self.name)
            cost = self._prices.cost(self._address, used)
            spending.end(self.name, msgspec.structs.replace(used, cost=cost))
        return vectors


def _vectors(body: bytes, count: int) -> tuple[list[Sequence[float]], Any]:
    """The vectors in the order of the texts, and how many tokens these had, as reported."""
    answer, _ = decoded(_Answer, body)
    rows = answer.data
    if sorted(row.index for row in rows) != list(range(count)):
        raise Misfit(f"it has {len(rows)} vectors for {count} texts, or numbers them wrong")
    vectors: list[Sequence[float]] = [row.embedding for row in sorted(rows, key=lambda row: row.index)]
    usage = answer.usage if isinstance(answer.usage, dict) else {}
    return vectors, usage.get("prompt_tokens")


def connect(address: str, **options: Unpack[EmbedderOptions]) -> Remembered:
    """The embedder at `openai:NAME`, or at `http://host/v1#NAME` for a compatible server.

    All who name the same, with the same key and options, share what is remembered.
    """
    if not address.startswith("openai:"):
        if "base_url" in options:
            raise ModelError("it is a base URL already", fix="leave out base_url")
        base, _, name = address.partition("#")
        if not name:
            raise ModelError("the address does not name a model", fix="write it as URL#model")
        embedder = EndpointEmbedder(unquote(name), base_url=base, **options)  # type: ignore[misc]
    else:
        embedder = EndpointEmbedder(addresses.name_in(address, "openai"), **options)
    key = embedder.shared_by, repr(options.get("prices"))
    return shared(key, lambda: Remembered(embedder, parallel=PARALLEL))
