"""What the model server was asked and what it says, the same for every wire format."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from proctor.records.model import TokenChances, ToolSpec
from proctor.records.session import Message, ToolCall, Usage

T = TypeVar("T")
WireName = Literal["openai", "anthropic", "gemini"]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request that the model server got, as the same request to any provider.

    `settings` holds what was set of `temperature`, `max_tokens`, `seed` and `top_logprobs`;
    `must_call` the tool that has to be called; `texts` what is to be embedded. `headers` have
    lower-case names, `body` is the JSON as it came, `number` counts the requests from 0.

    >>> Asked("openai", "/v1/chat/completions", messages=(Message("user", "Hello"),)).text
    'Hello'
    """

    wire: WireName
    path: str
    model: str = ""
    messages: tuple[Message, ...] = ()
    schema: dict[str, Any] | None = None
    tools: tuple[ToolSpec, ...] = ()
    must_call: str | None = None
    settings: dict[str, Any] = {}
    texts: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    number: int = 0

    @property
    def text(self) -> str:
        """What the last message says; empty if there is none or it is not text."""
        content = self.messages[-1].content if self.messages else ""
        return content if isinstance(content, str) else ""


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the model server answers, where a plain text is not enough.

    `finish_reason` is one of Proctor's words ("stop", "length", "tool_calls", "refusal") or the
    provider's own. Without `usage` words are counted; `Usage()` leaves it out of the answer.

    >>> Said("Paris", usage=Usage(input_tokens=12, output_tokens=1)).usage.total_tokens
    13
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    refusal: str | None = None
    usage: Usage | None = None
    logprobs: tuple[TokenChances, ...] = ()

    @property
    def reason(self) -> str:
        """Why it ended, in Proctor's words, also where that was not said."""
        if self.finish_reason is not None:
            return self.finish_reason
        if self.refusal is not None:
            return "refusal"
        return "tool_calls" if self.tool_calls else "stop"


class Received(NamedTuple):
    """A request as it came over HTTP."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    number: int = 0


class Refused(Exception):
    """The server does not take a request, as the real one would not: status and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Wire(Protocol):
    """A wire format: how requests are read, and answers, models and errors written."""

    def read(self, received: Received) -> Asked:
        """What is asked; raises `Refused` where the real server would refuse it."""
        ...

    def key(self, headers: dict[str, str]) -> str:
        """The key that was sent, or nothing."""
        ...

    def answer(self, asked: Asked, said: Said) -> dict[str, Any]: ...

    def models(self, names: tuple[str, ...]) -> dict[str, Any]: ...

    def error(self, code: int, message: str) -> dict[str, Any]: ...


def body_of(received: Received, kind: type[T]) -> tuple[dict[str, Any], T]:
    """The JSON of a request, and the same as a record; what does not fit is refused."""
    try:
        body = msgspec.json.decode(received.body)
        return body, msgspec.convert(body, kind)
    except msgspec.DecodeError as error:
        raise Refused(400, f"the request cannot be read: {error}") from None


def given(**settings: Any) -> dict[str, Any]:
    """The settings that were set.

    >>> given(temperature=0.0, seed=None)
    {'temperature': 0.0}
    """
    return {name: value for name, value in settings.items() if value is not None}


def counted(asked: Asked, said: Said) -> Usage:
    """What an exchange used: as told, or its words."""
    if said.usage is not None:
        return said.usage
    heard = sum(len(str(message.content).split()) for message in asked.messages)
    return Usage(heard, len(said.text.split()), 0)


def joined(parts: list[dict[str, Any]]) -> Any:
    """Parts of a message as one text, if all of them are text; else as they are.

    >>> joined([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])
    'onetwo'
    """
    if all(isinstance(part.get("text"), str) for part in parts):
        return "".join(part["text"] for part in parts)
    return parts
