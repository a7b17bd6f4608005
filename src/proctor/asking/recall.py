"""Answers that were paid for once: found again by what was asked, exactly."""

from __future__ import annotations

import contextlib

import msgspec

from proctor import codec
from proctor.ports import Kept
from proctor.records.model import ModelRequest, ModelResponse


class Recalled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call as it is kept: who was asked, what, and the answer."""

    model: str
    request: ModelRequest
    response: ModelResponse


def key_of(model: str, request: ModelRequest) -> str:
    """What tells one call from another: the model and every field of the request.

    >>> from proctor.records.session import Message
    >>> asked = ModelRequest((Message("user", "2 + 2?"),))
    >>> key_of("openai:gpt-4o-mini", asked) == key_of("openai:gpt-4o", asked)
    False
    """
    return codec.digest("model call", model, request)


def recall(kept: Kept, model: str, request: ModelRequest) -> ModelResponse | None:
    """The answer to the same call, if it is kept; something unreadable counts as not kept."""
    data = kept.find(key_of(model, request))
    if data is None:
        return None
    with contextlib.suppress(msgspec.DecodeError):
        found = msgspec.json.decode(data, type=Recalled)
        return msgspec.structs.replace(found.response, cached=True)
    return None


def remember(kept: Kept, model: str, request: ModelRequest, response: ModelResponse) -> None:
    """Keep an answer; one that JSON cannot hold is not kept."""
    with contextlib.suppress(*codec.UNWRITABLE):
        plain = msgspec.structs.replace(response, output=None)
        kept.keep(key_of(model, request), codec.encode(Recalled(model, request, plain)))
