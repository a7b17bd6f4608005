"""What a model is asked and what it answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from proctor.records.session import Message, ToolCall, Usage

MOST_LOGPROBS = 20


class ToolSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool that a model may call: its name, what it is for, and its parameters as JSON Schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}


class ModelRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One question to a model, the same for every provider. None leaves it to the provider.

    `schema` is a JSON Schema that the answer must fit. `top_logprobs` asks how likely the model
    held other tokens. `opinion` tells the second asking of the same question from the first: it is
    never sent, but a cache or a cassette keeps both.

    >>> ModelRequest((Message("user", "Is 7 a prime number?"),), temperature=0.0).messages[0].role
    'user'
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: dict[str, Any] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seed: int | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=1, le=MOST_LOGPROBS)] | None = None
    opinion: int = 0


class TokenChances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token of an answer, and the logarithms of how likely it and others were in its place."""

    token: str
    logprob: float
    others: dict[str, float] = {}


class ModelResponse(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a model answered, the same for every provider.

    `finish_reason` is "stop", "length", "tool_calls", "refusal" or the provider's own word;
    `refusal` what it said instead of an answer. `output` is the answer read into the type that
    was asked for. `attempts` counts the requests it took, `raw` is the provider's own JSON.
    """

    text: str = ""
    model: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish_reason: str | None = None
    refusal: str | None = None
    logprobs: tuple[TokenChances, ...] = ()
    latency_ms: float | None = None
    attempts: int = 1
    cached: bool = False
    raw: Any = None
    output: Any = None

    @property
    def cost(self) -> float | None:
        """What it cost, or None where the price is not known."""
        return self.usage.cost
