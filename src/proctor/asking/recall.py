"""Answers that were paid for once: found again by what was asked, exactly."""

from __future__ import annotations

import contextlib

import msgspec

from proctor import codec
from proctor.ports import Kept, ProviderAdapter
from proctor.records.model import ModelRequest, ModelResponse


class Recalled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call as it is kept: who was asked, what, and the answer."""

    model: str
    request: ModelRequest
    response: ModelResponse


def key_of(adapter: ProviderAdapter, request: ModelRequest) -> str:
    """What tells one call from another: the model and every field of the request.

    An adapter whose address does not say all (a function, whose code may change) has an `identity`
    beside it.

    >>> from types import SimpleNamespace as Adapter
    >>> from proctor.records.session import Message
    >>> asked = ModelRequest((Message("user", "2 + 2?"),))
    >>> one, other = Adapter(model="openai:gpt-4o-mini"), Adapter(model="openai:gpt-4o")
    >>> key_of(one, asked) == key_of(other, asked)
    False
    """
    return codec.digest("model call", adapter.model, getattr(adapter, "identity", ""), request)


def recall(kept: Kept, adapter: ProviderAdapter, request: ModelRequest) -> ModelResponse | None:
    """The answer to the same call, if it is kept; something unreadable counts as not kept."""
    data = kept.find(key_of(adapter, request))
    found = None if data is None else read(data)
    return None if found is None else msgspec.structs.replace(found.response, cached=True)


def read(data: bytes) -> Recalled | None:
    """A call as it was kept, or None where the bytes are something else."""
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(data, type=Recalled)
    return None


def remember(
    kept: Kept, adapter: ProviderAdapter, request: ModelRequest, response: ModelResponse
) -> None:
    """Keep an answer; one that JSON cannot hold, as question or answer, is not kept."""
    with contextlib.suppress(*codec.UNWRITABLE):
        plain = msgspec.structs.replace(response, output=None)
        data = codec.encode(Recalled(adapter.model, request, plain))
        if b'"$repr"' not in data:
            kept.keep(key_of(adapter, request), data)
