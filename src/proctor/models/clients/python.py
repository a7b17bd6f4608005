"""Functions, LangChain chat models and SDK clients as models."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.core.callables import resolve_hints
from proctor.core.identity import compute_digest, get_callable_name
from proctor.errors import CallFailed, ModelError
from proctor.models.clients import langchain, sdk
from proctor.models.clients.sdk import call_user_code
from proctor.models.connect import display_name
from proctor.models.wire import content_text
from proctor.ports import ProviderAdapter
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message
from proctor.records.validation import explain

# Names of parameters that take the prompt as one string.
_TEXT_NAMES = ("prompt", "text", "question")


def connect(model: Any, **options: Any) -> ProviderAdapter:
    """Wrap a function, a LangChain chat model, or an OpenAI or Anthropic client.

    `name` is the model's name, which is required for SDK clients. A function takes the messages or, depending on its
    annotation, the prompt as one string (`prompt: str`) or the whole `ModelRequest`.
    """
    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class, not a model", fix="pass an instance of it")
    if langchain.is_chat_model(model):
        return langchain.LangChainAdapter(model, **options)
    if sdk.is_openai_client(model) or sdk.is_anthropic_client(model):
        return sdk.ClientAdapter(model, **options)
    if callable(model):
        return FunctionAdapter(model, **options)
    raise ModelError(
        f"an object of type {type(model).__name__!r} is not a model",
        fix="pass an address, a function, a LangChain chat model, or an OpenAI or Anthropic client",
    )


class FunctionAdapter:
    """A function as a model: it takes the prompt and returns the answer.

    Its parameter decides what it gets: one string, if annotated `str` or, without an annotation, named `prompt`, `text`
    or `question`; the `ModelRequest`, if annotated with that type or named `request`; dicts with role and content, if
    annotated as a list of dicts; otherwise the messages. It returns a string, a `ModelResponse`, or a mapping with the
    fields of one. A plain function runs in a thread.
    """

    def __init__(
        self, function: Callable[..., Any], *, name: str | None = None, supports_json_schema: bool = False
    ) -> None:
        self._function = function
        self.model = f"python:{name or getattr(function, '__qualname__', None) or get_callable_name(function)}"
        self.supports_json_schema = supports_json_schema
        self.identity = compute_digest(function)
        self._label = display_name(self.model)
        self._make_argument = _choose_argument(function, self._label)

    def __repr__(self) -> str:
        return f"FunctionAdapter({self.model!r})"

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Call the function once; its exceptions become `CallFailed`."""
        argument = self._make_argument(request)
        try:
            result = await call_user_code(self._label, self._function, argument, timeout=timeout)
        except CallFailed as error:
            if type(argument) is list and isinstance(error.__cause__, AttributeError | TypeError | KeyError):
                error.what += (
                    "; it gets the messages as a list. Fix: annotate its parameter as prompt: str to get one string"
                )
            raise
        if isinstance(result, str):
            return ModelResponse(result, self.model, finish_reason="stop")
        if isinstance(result, Mapping):
            try:
                result = msgspec.convert(dict(result), ModelResponse)
            except msgspec.ValidationError as error:
                raise CallFailed(
                    f"{self._label} returned a mapping that is not a ModelResponse: {explain(error)}"
                ) from None
        if not isinstance(result, ModelResponse):
            raise CallFailed(
                f"{self._label} returned an object of type {type(result).__name__!r}; "
                "it must return a string, a ModelResponse or a mapping with its fields"
            )
        return result if result.model else msgspec.structs.replace(result, model=self.model)


def join_messages(messages: Sequence[Message]) -> str:
    """Join all messages into one string; add the roles unless all messages are from the system or the user."""
    texts = [content_text(message.content) for message in messages]
    if all(message.role in ("system", "user") for message in messages):
        return "\n\n".join(texts)
    pairs = zip(messages, texts, strict=True)
    return "\n\n".join(f"{message.role.capitalize()}:\n{text}" for message, text in pairs)


def _choose_argument(function: Callable[..., Any], name: str) -> Callable[[ModelRequest], Any]:
    parameter = _first_parameter(function, name)
    try:
        hint = resolve_hints(function).get(parameter.name)
    except (NameError, TypeError):
        hint = None if parameter.annotation is parameter.empty else parameter.annotation
    if hint is ModelRequest or (hint is None and parameter.name == "request"):
        return lambda request: request
    if hint is str or (hint is None and parameter.name in _TEXT_NAMES):
        return lambda request: join_messages(request.messages)
    item = next(iter(typing.get_args(hint)), None)
    if item is dict or typing.get_origin(item) in (dict, Mapping):
        return lambda request: [
            {"role": message.role, "content": content_text(message.content)} for message in request.messages
        ]
    return lambda request: list(request.messages)


def _first_parameter(function: Callable[..., Any], name: str) -> inspect.Parameter:
    fallback = inspect.Parameter("messages", inspect.Parameter.POSITIONAL_ONLY)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return fallback  # Some built-in functions have no signature.
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return fallback
    named_parameters = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    positional = [p for p in named_parameters if p.kind is not p.KEYWORD_ONLY]
    required = [p for p in named_parameters if p.default is p.empty]
    if not positional or any(p is not positional[0] for p in required):
        raise ModelError(
            "a function that is used as a model takes one argument: the messages",
            where=name,
            fix="write it as (messages), (prompt: str) or (request: ModelRequest)",
        )
    return positional[0]
