"""Requests and replies of the model server, independent of the provider's wire format."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from proctor.records.model import TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage

T = TypeVar("T")
WireName = Literal["openai", "anthropic", "gemini"]


class RecordedRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request that the model server received, in the same form for every provider.

    `settings` holds those of `temperature`, `max_tokens`, `seed` and `top_logprobs` that the request
    sets; `must_call` names the tool that the model has to call; `texts` are the texts to embed.
    `headers` have lower-case names, `body` is the decoded JSON, `number` counts requests from 0.

    >>> RecordedRequest("openai", "/v1/chat/completions", messages=(Message("user", "Hello"),)).text
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
        """The text of the last message; empty if there is none or it is not text."""
        content = self.messages[-1].content if self.messages else ""
        return content if isinstance(content, str) else ""


class ScriptedReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The model server's reply, for everything that a plain text cannot express.

    `finish_reason` is Proctor's name ("stop", "length", "tool_calls", "refusal") or the provider's.
    Without `usage` the server counts words; `Usage()` omits usage from the response.

    >>> ScriptedReply("Paris", usage=Usage(input_tokens=12, output_tokens=1)).usage.total_tokens
    13
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    refusal: str | None = None
    usage: Usage | None = None
    logprobs: tuple[TokenLogprobs, ...] = ()

    @property
    def reason(self) -> str:
        """The finish reason, inferred from the content if it is not set."""
        if self.finish_reason is not None:
            return self.finish_reason
        if self.refusal is not None:
            return "refusal"
        return "tool_calls" if self.tool_calls else "stop"


class HttpRequest(NamedTuple):
    """A request as it arrived over HTTP."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    number: int = 0


class HttpError(Exception):
    """The server rejects a request, as the real server would."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class WireFormat(Protocol):
    """Reads requests and renders replies, model lists and errors in a provider's format."""

    def read_request(self, request: HttpRequest) -> RecordedRequest:
        """Parse a request; raise `HttpError` if the real server would reject it."""
        ...

    def read_api_key(self, headers: dict[str, str]) -> str: ...

    def render_reply(self, request: RecordedRequest, reply: ScriptedReply) -> dict[str, Any]: ...

    def render_models(self, names: tuple[str, ...]) -> dict[str, Any]: ...

    def render_error(self, code: int, message: str) -> dict[str, Any]: ...


def parse_body(request: HttpRequest, record_type: type[T], ignored: frozenset[str] = frozenset()) -> T:
    """Convert the JSON body to a record, without the `ignored` fields; reject it if it does not fit."""
    try:
        body = msgspec.json.decode(request.body, type=dict[str, Any])
        return msgspec.convert({k: v for k, v in body.items() if k not in ignored}, record_type)
    except msgspec.DecodeError as error:
        raise HttpError(400, f"the request cannot be read: {error}") from None


def reject_if(is_invalid: object, message: str) -> None:
    """Respond with status 400 if a check fails."""
    if is_invalid:
        raise HttpError(400, message)


def drop_unset(**settings: Any) -> dict[str, Any]:
    """Return the settings that are not None.

    >>> drop_unset(temperature=0.0, seed=None)
    {'temperature': 0.0}
    """
    return {name: value for name, value in settings.items() if value is not None}


def count_usage(request: RecordedRequest, reply: ScriptedReply) -> Usage:
    """Return the usage of the reply, or count the words of request and reply."""
    if reply.usage is not None:
        return reply.usage
    prompt_words = sum(len(str(message.content).split()) for message in request.messages)
    return Usage(prompt_words, len(reply.text.split()), 0)


def join_text(parts: Any) -> Any:
    """Join the parts of a message if all of them are text; return anything else unchanged.

    >>> join_text([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])
    'onetwo'
    """
    if isinstance(parts, list) and all(isinstance(part.get("text"), str) for part in parts):
        return "".join(part["text"] for part in parts)
    return parts
