"""Functions, LangChain embeddings, and models with `encode` as embedders."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from proctor.core.callables import resolve_hints
from proctor.core.identity import get_callable_name
from proctor.errors import CallFailed, ModelError
from proctor.models.clients.sdk import call_user_code
from proctor.models.embedding_cache import CachedEmbedder, shared_embedder

# Method names in order of preference; each takes a list of texts.
METHODS = ("aembed_documents", "embed_documents", "encode")


def connect(model: Any, *, name: str | None = None) -> CachedEmbedder:
    """Make an embedder from a function or an object.

    A function takes a list of texts and returns a vector for each; with a parameter annotated `str`, it takes one text
    at a time. Both may be async. LangChain embeddings are called with `embed_documents`, sentence-transformers with
    `encode`. Embedders of the same object share one cache.
    """
    function, label = _find_function(model)
    label = name or f"python:{label}"
    # A bound method is a new object on each access, so the key contains its parts.
    owner, code = getattr(function, "__self__", None), getattr(function, "__func__", function)
    return shared_embedder(
        ("python", id(owner), id(code), label),
        lambda: CachedEmbedder(PythonEmbedder(function, label, takes_one_text=_takes_one_text(function))),
    )


class PythonEmbedder:
    """A user's function as an embedder; its exceptions become `CallFailed`."""

    method = "embeddings"

    def __init__(self, function: Callable[..., Any], name: str, *, takes_one_text: bool) -> None:
        self.name = name
        self._function, self._takes_one_text = function, takes_one_text

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        if self._takes_one_text:
            return [await self._call(text) for text in texts]
        result = await self._call(list(texts))
        vectors = list(result) if hasattr(result, "__iter__") else []
        if len(vectors) != len(texts) or not all(hasattr(vector, "__iter__") for vector in vectors):
            raise CallFailed(
                f"{self.name} did not return a vector for each text: it takes a list of texts, "
                f"here {len(texts)}, and must return a list of as many vectors; if the "
                "function takes one text, annotate its parameter with str"
            )
        return vectors

    async def _call(self, argument: Any) -> Any:
        return await call_user_code(self.name, self._function, argument)


def _find_function(model: Any) -> tuple[Callable[..., Any], str]:
    if not isinstance(model, type):
        for method in METHODS:
            function = getattr(model, method, None)
            if callable(function):
                return function, type(model).__name__
        if callable(model):
            return model, get_callable_name(model)
    raise ModelError(
        f"{model!r} is not an embedder",
        fix="pass a function of texts, LangChain embeddings, or an object with " + ", ".join(METHODS),
    )


def _takes_one_text(function: Callable[..., Any]) -> bool:
    try:
        first = next(iter(inspect.signature(function).parameters), "")
        return resolve_hints(function).get(first) is str
    except (TypeError, ValueError, NameError):
        # The function has no signature, or its annotations cannot be resolved.
        return False
