"""Call a model: the single entry point for targets, judges and user code.

Every call is recorded in the session of the trial or the evaluator and counts against the run's budget.
Answers are parsed strictly, with one reminder if that fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, Unpack

import msgspec

from proctor.core import bridge, resource_scope
from proctor.errors import CallFailed, ModelError, Unreadable
from proctor.models.connect import display_name, provider
from proctor.models.spending import Spending
from proctor.ports import ByteStore, ProviderAdapter
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, ToolSpec
from proctor.records.session import Message, ModelCall, Usage
from proctor.records.validation import describe_types, explain
from proctor.sessions import current as sessions

# Every run imports this module; what only calls need is imported by the first call.
if TYPE_CHECKING:
    from proctor.models.prompts import Prompt

MAX_QUOTE = 300


class CallContext(NamedTuple):
    """The run of a call: its budget, the store of its judges' answers, and whether it is stopping."""

    spending: Spending | None = None
    response_store: ByteStore | None = None
    is_stopping: Callable[[], bool] = lambda: False


call_context: ContextVar[CallContext] = ContextVar("proctor_call_context", default=CallContext())  # noqa: B039 - a tuple


class StoredCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call in a store: the model, the request and the response."""

    model: str
    request: ModelRequest
    response: ModelResponse


def call_key(adapter: ProviderAdapter, request: ModelRequest) -> str:
    """Return a digest of the model and every field of the request.

    An adapter whose address does not identify it (a function, whose code may change) has an `identity`.
    """
    return codec.digest("model call", adapter.model, getattr(adapter, "identity", ""), request)


def find_response(store: ByteStore, adapter: ProviderAdapter, request: ModelRequest) -> ModelResponse | None:
    """Return the stored response to the same call; unreadable data counts as missing."""
    data = store.find(call_key(adapter, request))
    call = None if data is None else read_stored_call(data)
    return None if call is None else msgspec.structs.replace(call.response, cached=True)


def read_stored_call(data: bytes) -> StoredCall | None:
    """Read a stored call; return None for other data."""
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(data, type=StoredCall)
    return None


def store_response(store: ByteStore, adapter: ProviderAdapter, request: ModelRequest, response: ModelResponse) -> None:
    """Store a response, unless JSON cannot represent the request or the response."""
    with contextlib.suppress(*codec.ENCODE_ERRORS):
        plain = msgspec.structs.replace(response, output=None)
        data = codec.encode(StoredCall(adapter.model, request, plain))
        if b'"$repr"' not in data:
            store.put(call_key(adapter, request), data)


class AnswerFormat(Protocol):
    """The format of an answer, and its parser."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema, for models with structured outputs."""
        ...

    @property
    def instructions(self) -> str:
        """The instructions, for all other models."""
        ...

    def read(self, text: str, *, structured: bool) -> Any:
        """Parse the answer, or raise a ValueError that explains the problem."""
        ...


class AskOptions(TypedDict, total=False):
    """The options of a call; see `ModelRequest`. `timeout` covers the whole call, in seconds.

    `recorded_count` is the number of initial messages that the session already has. With
    `remind=False`, the request is not repeated when the answer cannot be parsed.
    """

    tools: Sequence[ToolSpec]
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    top_logprobs: int | None
    opinion: int
    timeout: float | None
    recorded_count: int
    remind: bool


async def aask(
    model: Any, prompt: str | Prompt[Any] | Sequence[Message], output: Any = None, **options: Unpack[AskOptions]
) -> ModelResponse:
    """Send a prompt to a model (an address or an adapter) and return its response.

    With `output`, a type (dataclass, struct, pydantic model, list, Literal …) or an `AnswerFormat`, the answer
    is parsed into `response.output`; if that fails, the model gets one reminder. A response that calls
    `tools` is returned without parsing.
    """
    from proctor.models.prompts import Prompt

    adapter = provider(model)
    if output is None and isinstance(prompt, Prompt):
        output = prompt.output_type
    answer_format = None if output in (None, str) else _to_answer_format(output)
    timeout = options.pop("timeout", None)
    deadline = None if timeout is None else time.perf_counter() + timeout
    recorded_count, remind = options.pop("recorded_count", 0), options.pop("remind", True)
    request = _make_request(adapter, prompt, answer_format, options)
    async with resource_scope.ResourceScope():
        response = await _complete(adapter, request, request.messages[recorded_count:], deadline)
        if answer_format is None or (request.tools and response.tool_calls):
            _store(adapter, (request, response))
            return response
        return await _parse_output(adapter, request, response, answer_format, deadline, remind=remind)


ask = bridge.synchronous(aask)


def _to_answer_format(output: Any) -> AnswerFormat:
    if callable(getattr(output, "read", None)) and hasattr(output, "schema"):
        return output  # type: ignore[no-any-return]
    from proctor.models.answer_format import JsonFormat

    return JsonFormat(output)


def _make_request(
    adapter: ProviderAdapter,
    prompt: str | Prompt[Any] | Sequence[Message],
    answer_format: AnswerFormat | None,
    options: Any,
) -> ModelRequest:
    messages = _to_messages(prompt)
    if not messages:
        raise ModelError("the prompt has no messages", where=adapter.model)
    schema = None
    tools = tuple(options.pop("tools", ()))
    # Not every server accepts a schema together with tools, because tool calls do not match the schema.
    if answer_format is not None and adapter.supports_json_schema and not tools:
        schema = answer_format.schema
    elif answer_format is not None:
        messages = _add_instructions(messages, answer_format.instructions)
    try:
        return msgspec.convert({"messages": messages, "tools": tools, "schema": schema, **options}, ModelRequest)
    except msgspec.ValidationError as error:
        raise ModelError(f"the request is invalid: {explain(error)}", where=adapter.model) from None


def _to_messages(prompt: str | Prompt[Any] | Sequence[Message]) -> tuple[Message, ...]:
    from proctor.models.prompts import Prompt

    if isinstance(prompt, str):
        return (Message("user", prompt),)
    if isinstance(prompt, Prompt):
        return prompt.messages()
    if isinstance(prompt, Message):
        return (prompt,)
    fix = "pass a string, a Prompt, or messages, each with a role and content"
    try:
        messages = tuple(prompt)
    except TypeError:
        type_name = describe_types(type(prompt).__name__)
        what = f"the prompt is invalid: it must be a string, a Prompt or messages, got {type_name}"
        raise ModelError(what, fix=fix) from None
    try:
        return msgspec.convert(messages, tuple[Message, ...])
    except msgspec.ValidationError as error:
        raise ModelError(f"the prompt is invalid: {explain(error)}", fix=fix) from None


def _add_instructions(messages: tuple[Message, ...], instructions: str) -> tuple[Message, ...]:
    """Append the instructions to the last message, where models follow them best.

    Tool calls and their results stay together at the end; the instructions then go to the message before them.
    """
    index = len(messages) - 1
    while index > 0 and (messages[index].role == "tool" or messages[index].tool_calls):
        index -= 1
    last = messages[index]
    if last.role != "user" or not isinstance(last.content, str):
        return (*messages, Message("user", instructions))
    extended = msgspec.structs.replace(last, content=f"{last.content}\n\n{instructions}")
    return (*messages[:index], extended, *messages[index + 1 :])


async def _complete(
    adapter: ProviderAdapter, request: ModelRequest, new: Sequence[Message], deadline: float | None
) -> ModelResponse:
    """Make one call and record it in the session; use the run's stored responses if it has any."""
    for message in new:
        sessions.record(message)
    spending, store, _ = call_context.get()
    response = None if store is None else find_response(store, adapter, request)
    if response is None:
        if spending is not None:
            spending.begin()
        response = await _call_adapter(adapter, request, deadline)
        if spending is not None and response.cached:
            spending.take_back()
    _record_response(adapter, response)
    if spending is not None and not response.cached:
        spending.end(adapter.model, response.usage)
    return response


def _store(adapter: ProviderAdapter, *exchanges: tuple[ModelRequest, ModelResponse]) -> None:
    """Store responses after parsing: an answer that cannot be parsed must not be reused."""
    store = call_context.get().response_store
    if store is not None:
        for request, response in exchanges:
            if not response.cached:
                store_response(store, adapter, request, response)


async def _call_adapter(adapter: ProviderAdapter, request: ModelRequest, deadline: float | None) -> ModelResponse:
    """Call the adapter and measure the latency; record a failed or cancelled call too."""
    started = time.perf_counter()
    try:
        left = None if deadline is None else max(0.0, deadline - started)
        response = await adapter.complete(request, timeout=left)
        usage = sessions.check_usage(response.usage, adapter.model)
        if usage is not response.usage:
            response = msgspec.structs.replace(response, usage=usage)
    except (CallFailed, asyncio.CancelledError) as error:
        details = {"error": str(error) or "cancelled before it answered"}
        sessions.record(ModelCall(adapter.model, details=details))
        raise
    if response.latency_ms is not None:
        return response
    return msgspec.structs.replace(response, latency_ms=(time.perf_counter() - started) * 1000.0)


def _record_response(adapter: ProviderAdapter, response: ModelResponse) -> None:
    text = response.refusal if response.refusal is not None else response.text
    sessions.record(Message("assistant", text, tool_calls=response.tool_calls))
    details: dict[str, Any] = {}
    if response.attempts > 1:
        details["attempts"] = response.attempts
    if response.cached:
        details["cached"] = True
    # A cached response was paid for earlier.
    usage = Usage() if response.cached else response.usage
    sessions.record(ModelCall(adapter.model, usage, response.latency_ms, response.finish_reason, details=details))


async def _parse_output(
    adapter: ProviderAdapter,
    request: ModelRequest,
    response: ModelResponse,
    answer_format: AnswerFormat,
    deadline: float | None,
    *,
    remind: bool,
) -> ModelResponse:
    """Parse the answer; after a failure, send one reminder of the format and parse again."""
    structured = request.schema is not None
    _raise_if_refused(adapter, response)
    try:
        output = answer_format.read(response.text, structured=structured)
    except ValueError as error:
        if not remind:
            raise _unreadable(adapter, response, answer_format, error, structured) from None
        reminder = Message("user", _reminder_text(response, error, answer_format, structured))
    else:
        _store(adapter, (request, response))
        return msgspec.structs.replace(response, output=output)
    answer = Message("assistant", response.text or "(nothing)")
    repeated = msgspec.structs.replace(request, messages=(*request.messages, answer, reminder))
    try:
        second = await _complete(adapter, repeated, (reminder,), deadline)
        _raise_if_refused(adapter, second)
        merged = _merge_responses(response, second)
        if not (request.tools and second.tool_calls):
            merged = msgspec.structs.replace(merged, output=answer_format.read(second.text, structured=structured))
        # Store both: without the first response, reaching the second would cost a new call.
        _store(adapter, (request, response), (repeated, second))
        return merged
    except CallFailed as error:
        error.usage = response.usage if error.usage is None else response.usage + error.usage
        raise
    except ValueError as error:
        merged = _merge_responses(response, second)
        raise _unreadable(adapter, merged, answer_format, error, structured, ", not even after a reminder") from None


def _unreadable(
    adapter: ProviderAdapter,
    response: ModelResponse,
    answer_format: AnswerFormat,
    error: ValueError,
    structured: bool,
    after_reminder: str = "",
) -> Unreadable:
    from proctor.models.answer_format import is_json

    is_cut = response.finish_reason == "length"
    cut = " (it was cut off at max_tokens)" if is_cut else ""
    hint = ""
    if structured and not is_cut and not is_json(response.text):
        hint = "; if the server ignores schemas, connect it with supports_json_schema: false"
    what = (
        f"{display_name(adapter.model)} gave no readable answer{after_reminder}: {error}; "
        f"the answer was {_quote(response.text)}{cut}{hint}"
    )
    # The delimiter of a judge's fence means nothing to readers.
    delimiter = getattr(answer_format, "delimiter", "")
    return Unreadable(
        what.replace(f" {delimiter}", "") if delimiter else what,
        answer=response.text,
        usage=None if response.cached else response.usage,
    )


def _merge_responses(first: ModelResponse, second: ModelResponse) -> ModelResponse:
    """Return the second response with the totals of both; cached responses cost nothing."""
    paid = [response.usage for response in (first, second) if not response.cached]
    return msgspec.structs.replace(
        second,
        usage=sum(paid, Usage()) if paid else first.usage + second.usage,
        cached=not paid,
        attempts=first.attempts + second.attempts,
        latency_ms=(first.latency_ms or 0.0) + (second.latency_ms or 0.0),
    )


def _reminder_text(response: ModelResponse, error: ValueError, answer_format: AnswerFormat, structured: bool) -> str:
    from proctor.models.answer_format import schema_instructions

    instructions = schema_instructions(answer_format.schema) if structured else answer_format.instructions
    cut = " (it was cut off: be brief)" if response.finish_reason == "length" else ""
    return f"That answer cannot be read{cut}: {error}.\n\n{instructions}"


def _raise_if_refused(adapter: ProviderAdapter, response: ModelResponse) -> None:
    if response.refusal is not None or response.finish_reason == "refusal":
        refusal = response.refusal or response.text
        raise Unreadable(
            f"{display_name(adapter.model)} refused to answer: {_quote(refusal)}",
            answer=refusal,
            usage=None if response.cached else response.usage,
        )


def _quote(text: str) -> str:
    from proctor.models.http.errors import to_short_line

    return repr(to_short_line(text, MAX_QUOTE))
