"""Requests and replies of the model server, independent of the provider's wire format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from proctor.records.model import TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage


class RecordedRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request that the model server received, in the same format for every provider.

    `settings` holds the values of `temperature`, `max_tokens`, `seed` and `top_logprobs` that the request sets;
    `must_call` is the tool that the model has to call; `texts` are the texts to embed. `headers` have lower-case names,
    `body` is the decoded JSON, `number` counts requests from 0.

    >>> RecordedRequest("openai", "/v1/chat/completions", messages=(Message("user", "Hello"),)).text
    'Hello'
    """

    wire: str
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
    """The model server's reply, for everything that a string cannot express.

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
    """Rejects a request, as the real server would."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class WireFormat:
    """A provider's format: parses requests, and renders replies, model lists and errors.

    `serves` is True for requests of this format. `convert` checks a parsed request and completes the recorded
    one; it raises `HttpError` if the real server would reject the request. `finish_reasons` maps Proctor's
    names to the provider's.
    """

    name: str
    serves: Callable[[HttpRequest], bool]
    request_type: type[Any]
    ignored: frozenset[str]
    key_header: str
    finish_reasons: Mapping[str, str]
    convert: Callable[[Any, RecordedRequest], RecordedRequest]
    render_message: Callable[[RecordedRequest, ScriptedReply, str], dict[str, Any]]
    render_usage: Callable[[Usage], dict[str, Any]]
    render_models: Callable[[tuple[str, ...]], dict[str, Any]]
    render_error: Callable[[int, str], dict[str, Any]]

    def read_request(self, http: HttpRequest) -> RecordedRequest:
        try:
            body = msgspec.json.decode(http.body, type=dict[str, Any])
            fields = {name: value for name, value in body.items() if name not in self.ignored}
            request = msgspec.convert(fields, self.request_type)
        except msgspec.DecodeError as error:
            raise HttpError(400, f"the request cannot be read: {error}") from None
        recorded = RecordedRequest(self.name, http.path, headers=http.headers, body=body, number=http.number)
        return self.convert(request, recorded)

    def read_api_key(self, headers: dict[str, str]) -> str:
        key = headers.get(self.key_header) or headers.get("authorization", "")
        return key.removeprefix("Bearer ")

    def render_reply(self, request: RecordedRequest, reply: ScriptedReply) -> dict[str, Any]:
        usage = count_usage(request, reply)
        finish_reason = self.finish_reasons.get(reply.reason, reply.reason)
        message = self.render_message(request, reply, finish_reason)
        return message if usage.total_tokens is None else message | self.render_usage(usage)


def reject_if(is_invalid: object, message: str) -> None:
    """Respond with status 400 if a check fails."""
    if is_invalid:
        raise HttpError(400, message)


def drop_unset(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def number_calls(calls: Iterable[ToolCall], prefix: str) -> list[tuple[str, ToolCall]]:
    """Return each tool call with its id, or with an id made of the prefix and its number."""
    return [(call.call_id or f"{prefix}{index}", call) for index, call in enumerate(calls)]


def top_alternatives(request: RecordedRequest, token: TokenLogprobs) -> list[tuple[str, float]]:
    """Return the most likely alternatives, as many as the request asks for."""
    ranked = sorted(token.others.items(), key=lambda pair: -pair[1])
    return ranked[: request.settings["top_logprobs"]]


def count_usage(request: RecordedRequest, reply: ScriptedReply) -> Usage:
    """Return the usage of the reply, or count the words of request and reply."""
    if reply.usage is not None:
        return reply.usage
    prompt_words = sum(len(str(message.content).split()) for message in request.messages)
    return Usage(prompt_words, len(reply.text.split()), 0)


def join_text(parts: Any) -> Any:
    """Join the parts of a message if all of them are text; return anything else unchanged."""
    if isinstance(parts, list) and all(isinstance(part.get("text"), str) for part in parts):
        return "".join(part["text"] for part in parts)
    return parts
