"""Ask a model: the one way that targets, judges and users' own code take.

Whatever goes through here is written into the session of the trial or of the evaluator, counts
against the run's budget, and has its answer read strictly, with one reminder if it cannot be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack

import msgspec

from proctor.core import bridge, lifetimes
from proctor.errors import CallFailed, ModelError, Unreadable
from proctor.models.answer_forms import JsonForm, in_words, is_json
from proctor.models.connect import provider
from proctor.models.prompts import Prompt
from proctor.models.spending import Spending
from proctor.ports import Kept, ProviderAdapter
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse, ToolSpec
from proctor.records.session import Message, ModelCall, Usage
from proctor.sessions import current as sessions


def _never() -> bool:
    return False


class Conditions(NamedTuple):
    """A run's budget, where the answers that its judges get are kept, and whether it is stopping.

    Calls that only wait for their turn are not begun once it is.
    """

    spending: Spending | None = None
    kept: Kept | None = None
    is_stopping: Callable[[], bool] = _never


conditions: ContextVar[Conditions] = ContextVar("proctor_conditions", default=Conditions())  # noqa: B039 - a tuple


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


def remember(kept: Kept, adapter: ProviderAdapter, request: ModelRequest, response: ModelResponse) -> None:
    """Keep an answer; one that JSON cannot hold, as question or answer, is not kept."""
    with contextlib.suppress(*codec.UNWRITABLE):
        plain = msgspec.structs.replace(response, output=None)
        data = codec.encode(Recalled(adapter.model, request, plain))
        if b'"$repr"' not in data:
            kept.keep(key_of(adapter, request), data)


LONGEST_QUOTE = 300


class Form(Protocol):
    """What an answer must look like, and how it is read."""

    @property
    def schema(self) -> dict[str, Any]:
        """For models that are held to a JSON Schema by their provider."""
        ...

    @property
    def instructions(self) -> str:
        """For all other models: how to answer, in words."""
        ...

    def read(self, text: str, *, structured: bool) -> Any:
        """The answer, or a ValueError that says what is wrong with it."""
        ...


class AskOptions(TypedDict, total=False):
    """How a model is asked; see `ModelRequest`. `timeout` is for the whole call, in seconds.

    `known` says how many messages, from the first on, the session has already. `remind=False` does
    not repeat the request when the answer cannot be read.
    """

    tools: Sequence[ToolSpec]
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    top_logprobs: int | None
    opinion: int
    timeout: float | None
    known: int
    remind: bool


async def aask(
    model: Any,
    prompt: str | Prompt[Any] | Sequence[Message],
    output: Any = None,
    **options: Unpack[AskOptions],
) -> ModelResponse:
    """Ask a model, by its address or as an adapter, and wait for its answer.

    With `output`, a type (dataclass, struct, pydantic model, list, Literal …) or a `Form`, the
    answer is read into `response.output`; one that cannot be read is asked for once more. An
    answer that calls `tools` is no answer yet, and given as it is.
    """
    adapter = provider(model)
    if output is None and isinstance(prompt, Prompt):
        output = prompt.output_type
    form = None if output in (None, str) else _form(output)
    timeout = options.pop("timeout", None)
    until = None if timeout is None else time.perf_counter() + timeout
    known, remind = options.pop("known", 0), options.pop("remind", True)
    request = _request(adapter, prompt, form, options)
    async with lifetimes.in_use():
        response = await _complete(adapter, request, request.messages[known:], until)
        if form is None or (request.tools and response.tool_calls):
            _keep(adapter, (request, response))
            return response
        return await _read(adapter, request, response, form, until, remind=remind)


ask = bridge.synchronous(aask)


def _form(output: Any) -> Form:
    if callable(getattr(output, "read", None)) and hasattr(output, "schema"):
        return output  # type: ignore[no-any-return]
    return JsonForm(output)


def _request(
    adapter: ProviderAdapter, prompt: str | Prompt[Any] | Sequence[Message], form: Form | None, options: Any
) -> ModelRequest:
    messages = _messages(prompt)
    if not messages:
        raise ModelError("there is nothing to ask: no message was given", where=adapter.model)
    schema = None
    tools = tuple(options.pop("tools", ()))
    # Not every server takes a schema beside tools: what calls a tool does not fit it.
    if form is not None and adapter.fits_schema and not tools:
        schema = form.schema
    elif form is not None:
        messages = _with_instructions(messages, form.instructions)
    try:
        return msgspec.convert(
            {"messages": messages, "tools": tools, "schema": schema, **options}, ModelRequest
        )
    except msgspec.ValidationError as error:
        raise ModelError(f"it cannot be asked like that: {error}", where=adapter.model) from None


def _messages(prompt: str | Prompt[Any] | Sequence[Message]) -> tuple[Message, ...]:
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    if isinstance(prompt, Prompt):
        return prompt.messages()
    if isinstance(prompt, Message):
        return (prompt,)
    try:
        return msgspec.convert(tuple(prompt), tuple[Message, ...])
    except (msgspec.ValidationError, TypeError) as error:
        raise ModelError(
            f"that cannot be asked: {error}",
            fix="give a text, a Prompt, or messages, each with a role and a content",
        ) from None


def _with_instructions(messages: tuple[Message, ...], instructions: str) -> tuple[Message, ...]:
    """The instructions under the last message, where models heed them most.

    Calls of tools, and what came of them, stay together and last: then it is the one before.
    """
    place = len(messages) - 1
    while place > 0 and (messages[place].role == "tool" or messages[place].tool_calls):
        place -= 1
    last = messages[place]
    if last.role != "user" or not isinstance(last.content, str):
        return (*messages, Message("user", instructions))
    told = msgspec.structs.replace(last, content=f"{last.content}\n\n{instructions}")
    return (*messages[:place], told, *messages[place + 1 :])


async def _complete(
    adapter: ProviderAdapter, request: ModelRequest, new: Sequence[Message], until: float | None
) -> ModelResponse:
    """One call, written into the session; from what is kept, where the run keeps answers."""
    for message in new:
        sessions.record(message)
    spending, kept, _ = conditions.get()
    response = None if kept is None else recall(kept, adapter, request)
    if response is None:
        if spending is not None:
            spending.begin()
        response = await _timed(adapter, request, until)
        if spending is not None and response.cached:
            spending.take_back()
    _note(adapter, response)
    if spending is not None and not response.cached:
        spending.end(adapter.model, response.usage)
    return response


def _keep(adapter: ProviderAdapter, *exchanges: tuple[ModelRequest, ModelResponse]) -> None:
    """Keep what was answered, where the run keeps answers, for whoever asks the same again.

    Only here is it known that an answer is of use: one that cannot be read is asked for anew.
    """
    kept = conditions.get().kept
    if kept is not None:
        for request, response in exchanges:
            if not response.cached:
                remember(kept, adapter, request, response)


async def _timed(adapter: ProviderAdapter, request: ModelRequest, until: float | None) -> ModelResponse:
    """The call itself, and how long it took; one that failed or was given up is noted too."""
    began = time.perf_counter()
    try:
        left = None if until is None else max(0.0, until - began)
        response = await adapter.complete(request, timeout=left)
        usage = sessions.checked_usage(response.usage, adapter.model)
        if usage is not response.usage:
            response = msgspec.structs.replace(response, usage=usage)
    except (CallFailed, asyncio.CancelledError) as error:
        why = {"error": str(error) or "given up before it was answered"}
        sessions.record(ModelCall(adapter.model, details=why))
        raise
    if response.latency_ms is not None:
        return response
    spent = (time.perf_counter() - began) * 1000.0
    return msgspec.structs.replace(response, latency_ms=spent)


def _note(adapter: ProviderAdapter, response: ModelResponse) -> None:
    said = response.refusal if response.refusal is not None else response.text
    sessions.record(Message("assistant", said, tool_calls=response.tool_calls))
    details: dict[str, Any] = {}
    if response.attempts > 1:
        details["attempts"] = response.attempts
    if response.cached:
        details["cached"] = True
    # What comes from the cache was paid for before.
    usage = Usage() if response.cached else response.usage
    call = ModelCall(adapter.model, usage, response.latency_ms, response.finish_reason, details=details)
    sessions.record(call)


async def _read(
    adapter: ProviderAdapter,
    request: ModelRequest,
    response: ModelResponse,
    form: Form,
    until: float | None,
    *,
    remind: bool,
) -> ModelResponse:
    """The answer as what was asked for; one reminder of the format, then it is an error."""
    structured = request.schema is not None
    _refuse_refusal(adapter, response)
    try:
        read = form.read(response.text, structured=structured)
    except ValueError as error:
        if not remind:
            raise _unreadable(adapter, response, error, structured) from None
        told = in_words(form.schema) if structured else form.instructions
        reminder = Message("user", _reminder(response, str(error), told))
    else:
        _keep(adapter, (request, response))
        return msgspec.structs.replace(response, output=read)
    said = Message("assistant", response.text or "(nothing)")
    again = msgspec.structs.replace(request, messages=(*request.messages, said, reminder))
    try:
        second = await _complete(adapter, again, (reminder,), until)
        _refuse_refusal(adapter, second)
        both = _together(response, second)
        if not (request.tools and second.tool_calls):
            read = form.read(second.text, structured=structured)
            both = msgspec.structs.replace(both, output=read)
        # Both, or the first would have to be paid for again to come to the second.
        _keep(adapter, (request, response), (again, second))
        return both
    except CallFailed as error:
        error.usage = response.usage if error.usage is None else response.usage + error.usage
        raise
    except ValueError as error:
        raise _unreadable(adapter, _together(response, second), error, structured, ", asked twice") from None


def _unreadable(
    adapter: ProviderAdapter, response: ModelResponse, error: ValueError, structured: bool, attempts: str = ""
) -> Unreadable:
    """The error of an answer that cannot be read, with what all attempts used."""
    return Unreadable(
        f"{adapter.model} gave no answer that can be read{attempts}{_cut(response)}: {error}; "
        f"it said {_quoted(response.text)}{_remedy(response, structured)}",
        answer=response.text,
        usage=None if response.cached else response.usage,
    )


def _cut(response: ModelResponse) -> str:
    return ", cut off at max_tokens" if response.finish_reason == "length" else ""


def _remedy(response: ModelResponse, structured: bool) -> str:
    """What to do about a server that takes a schema and answers whatever it likes."""
    if not structured or _cut(response) or is_json(response.text):
        return ""
    return "; if the server ignores schemas, connect it with fits_schema: false"


def _together(first: ModelResponse, second: ModelResponse) -> ModelResponse:
    """The second answer, with what both took; what came from a cache was paid for before."""
    paid = [one.usage for one in (first, second) if not one.cached]
    usage = sum(paid, Usage()) if paid else first.usage + second.usage
    return msgspec.structs.replace(
        second,
        usage=usage,
        cached=not paid,
        attempts=first.attempts + second.attempts,
        latency_ms=(first.latency_ms or 0.0) + (second.latency_ms or 0.0),
    )


def _reminder(response: ModelResponse, why: str, instructions: str) -> str:
    cut = " (it was cut off: be brief)" if response.finish_reason == "length" else ""
    return f"That answer cannot be read{cut}: {why}.\n\n{instructions}"


def _refuse_refusal(adapter: ProviderAdapter, response: ModelResponse) -> None:
    """Someone who refuses is not asked again."""
    if response.refusal is not None or response.finish_reason == "refusal":
        said = response.refusal or response.text
        raise Unreadable(
            f"{adapter.model} refused to answer: {_quoted(said)}",
            answer=said,
            usage=None if response.cached else response.usage,
        )


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…")
