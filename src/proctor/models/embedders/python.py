"""What users hold already: functions, LangChain embeddings, and models with an `encode`."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from typing import Any

from proctor.core.identity import name_of
from proctor.core.threads import in_thread
from proctor.errors import CallFailed, ModelError, ProctorError
from proctor.models.embed import Remembered, shared

# In the order in which they are looked for; each takes a list of texts.
METHODS = ("aembed_documents", "embed_documents", "encode")


def connect(thing: Any, *, name: str | None = None) -> Remembered:
    """An embedder out of a function or an object.

    A function gets a list of texts and gives a vector for each; one whose parameter is annotated
    `str` gets one text at a time. Both may be async. LangChain embeddings are asked through
    `embed_documents`, sentence-transformers and their kin through `encode`. All who give the same
    thing share what is remembered.

    >>> connect(lambda texts: [[1.0] for text in texts], name="constant").name
    'constant'
    """
    call, label = _call_of(thing)
    label = name or f"python:{label}"
    single = _takes_one_text(call)
    # A method is a new object each time it is taken from its owner.
    owner, function = getattr(call, "__self__", None), getattr(call, "__func__", call)
    return shared(
        ("python", id(owner), id(function), label),
        lambda: Remembered(PythonEmbedder(call, label, single=single)),
    )


class PythonEmbedder:
    """A function of the user's as an embedder; what it raises is a failure of that call alone."""

    method = "embeddings"

    def __init__(self, call: Callable[..., Any], name: str, *, single: bool) -> None:
        self.name = name
        self._call, self._single = call, single

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector for each text, in order."""
        if self._single:
            return [await self._ask(text) for text in texts]
        given = await self._ask(list(texts))
        found = list(given) if hasattr(given, "__iter__") else []
        if len(found) != len(texts) or not all(hasattr(one, "__iter__") for one in found):
            raise CallFailed(
                f"{self.name} did not give a vector for each text: it is given a list of texts, "
                f"here {len(texts)}, and must give a list of as many vectors; a function of one "
                "text has its parameter annotated with str"
            )
        return found

    async def _ask(self, argument: Any) -> Any:
        try:
            if inspect.iscoroutinefunction(inspect.unwrap(self._call)):
                return await self._call(argument)
            given = await in_thread(self._call, argument)
            return await given if inspect.isawaitable(given) else given
        except ProctorError:
            raise
        except Exception as error:
            raise CallFailed(f"{self.name} failed: {type(error).__name__}: {error}") from error


def _call_of(thing: Any) -> tuple[Callable[..., Any], str]:
    """What is called, and the name that people know it by."""
    for method in METHODS:
        found = getattr(thing, method, None)
        if callable(found) and not isinstance(thing, type):
            return found, type(thing).__name__
    if callable(thing) and not isinstance(thing, type):
        return thing, name_of(thing)
    raise ModelError(
        f"{thing!r} cannot embed",
        fix="give a function of texts, LangChain embeddings, or an object with " + ", ".join(METHODS),
    )


def _takes_one_text(call: Callable[..., Any]) -> bool:
    try:
        first = next(iter(inspect.signature(call).parameters), None)
        while isinstance(call, functools.partial):
            call = call.func
        function = call if inspect.isroutine(call) else type(call).__call__
        return typing.get_type_hints(function).get(first or "") is str
    except (TypeError, ValueError, NameError):
        # It says nothing of its parameters.
        return False
