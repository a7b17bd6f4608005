"""Whatever the user holds becomes a model: functions, LangChain chat models, SDK clients."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.core.identity import identity_of, name_of
from proctor.errors import CallFailed, ModelError
from proctor.models.clients import langchain, sdk
from proctor.models.clients.sdk import called
from proctor.ports import ProviderAdapter
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.session import Message

Question = Callable[[ModelRequest], Any]
# What people call the question where it is one text.
_TEXTS = ("prompt", "text", "question")


def connect(thing: Any, **options: Any) -> ProviderAdapter:
    """A function, a LangChain chat model, or an OpenAI or Anthropic client as a model.

    `name` is the model's name, which SDK clients need. A function takes the messages, or by its
    annotation the prompt as one text (`prompt: str`) or the whole `ModelRequest`.

    >>> connect(lambda messages: "Paris", name="oracle").model
    'python:oracle'
    """
    if isinstance(thing, type):
        raise ModelError(f"{thing.__name__} is a class, which cannot be asked", fix="give an instance of it")
    if langchain.is_chat_model(thing):
        return langchain.LangChainAdapter(thing, **options)
    if sdk.is_openai_client(thing) or sdk.is_anthropic_client(thing):
        return sdk.ClientAdapter(thing, **options)
    if callable(thing):
        return FunctionAdapter(thing, **options)
    raise ModelError(
        f"{type(thing).__name__!r} is nothing that can be asked",
        fix="give an address, a function, a LangChain chat model, or an OpenAI or Anthropic client",
    )


class FunctionAdapter:
    """A function as a model: it is given the question and returns the answer.

    What it is given is settled once: the messages; as one text, if its parameter is a `str` or,
    without an annotation, called `prompt`, `text` or `question`; the `ModelRequest`, if annotated
    so or called `request`; dicts with role and content, if annotated as a list of dicts. It
    returns a text, a `ModelResponse`, or a mapping with the fields of one. A plain function runs
    in a thread.

    >>> import asyncio
    >>> adapter = FunctionAdapter(lambda prompt: prompt.upper())
    >>> asyncio.run(adapter.complete(ModelRequest((Message("user", "hello"),)))).text
    'HELLO'
    """

    def __init__(
        self, function: Callable[..., Any], *, name: str | None = None, fits_schema: bool = False
    ) -> None:
        self._function = function
        known = getattr(function, "__qualname__", None) or name_of(function)
        self.model = f"python:{name or known}"
        self.fits_schema = fits_schema
        self.identity = identity_of(function)
        self._question = _question(function, self.model)

    def __repr__(self) -> str:
        return f"FunctionAdapter({self.model!r})"

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Call the function once; what it raises is told as `CallFailed`."""
        asked = self._question(request)
        return self._response(await called(self.model, self._function, asked, timeout=timeout))

    def _response(self, said: Any) -> ModelResponse:
        if isinstance(said, str):
            return ModelResponse(said, self.model, finish_reason="stop")
        if isinstance(said, Mapping):
            try:
                said = msgspec.convert(dict(said), ModelResponse)
            except msgspec.ValidationError as error:
                raise CallFailed(f"{self.model} gave a mapping that is no ModelResponse: {error}") from None
        if not isinstance(said, ModelResponse):
            raise CallFailed(
                f"{self.model} gave {type(said).__name__!r}; "
                "expected a text, a ModelResponse or a mapping with its fields"
            )
        return said if said.model else msgspec.structs.replace(said, model=self.model)


def prompt_of(messages: Sequence[Message]) -> str:
    """All messages as one text; who speaks is said where the assistant has spoken too.

    >>> prompt_of([Message("system", "Be brief."), Message("user", "2 + 2?")])
    'Be brief.\\n\\n2 + 2?'
    """
    texts = [text_of(message.content) for message in messages]
    if all(message.role in ("system", "user") for message in messages):
        return "\n\n".join(texts)
    pairs = zip(messages, texts, strict=True)
    return "\n\n".join(f"{message.role.capitalize()}:\n{text}" for message, text in pairs)


def text_of(content: Any) -> str:
    """The content of a message as text: data is written as JSON."""
    return content if isinstance(content, str) else codec.encode(content).decode()


def _question(function: Callable[..., Any], who: str) -> Question:
    """What the function is given, from the annotation or else the name of its parameter."""
    parameter = _first_parameter(function, who)
    hint = _hint(function, parameter)
    if hint is ModelRequest or (hint is None and parameter.name == "request"):
        return lambda request: request
    if hint is str or (hint is None and parameter.name in _TEXTS):
        return lambda request: prompt_of(request.messages)
    inside = typing.get_args(hint)
    if inside and (inside[0] is dict or typing.get_origin(inside[0]) in (dict, Mapping)):
        return lambda request: [_as_dict(message) for message in request.messages]
    return lambda request: list(request.messages)


def _as_dict(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": text_of(message.content)}


def _first_parameter(function: Callable[..., Any], who: str) -> inspect.Parameter:
    """The one parameter that takes the question."""
    unknown = inspect.Parameter("messages", inspect.Parameter.POSITIONAL_ONLY)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return unknown  # some built-in functions do not tell; calling them will
    if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
        return unknown
    named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    positional = [p for p in named if p.kind is not p.KEYWORD_ONLY]
    needed = [p for p in named if p.default is p.empty]
    if not positional or any(p is not positional[0] for p in needed):
        raise ModelError(
            "a function that answers takes one argument: the messages",
            where=who,
            fix="write it as (messages), (prompt: str) or (request: ModelRequest)",
        )
    return positional[0]


def _hint(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The resolved annotation of a parameter; None without one or where it cannot be resolved."""
    while isinstance(function, functools.partial):
        function = function.func
    code = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(code).get(parameter.name)
    except (NameError, TypeError):
        return None if parameter.annotation is parameter.empty else parameter.annotation
