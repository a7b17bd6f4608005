"""What users hold: functions of one text or many, LangChain embeddings, objects with `encode`."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from proctor.errors import CallFailed, ModelError
from proctor.models import connect as connections
from tests.tables import each_row


def many(texts):  # type: ignore[no-untyped-def]
    return [[float(len(text))] for text in texts]


def many_typed(texts: list[str]) -> list[list[float]]:
    return [[float(len(text))] for text in texts]


async def many_async(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text))] for text in texts]


def one(text: str) -> list[float]:
    return [float(len(text))]


async def one_async(text: str) -> list[float]:
    return [float(len(text))]


class OneByCall:
    def __call__(self, text: str) -> list[float]:
        return [float(len(text))]


class Encoder:
    """As sentence-transformers have it: an array comes back."""

    def encode(self, sentences: Any) -> Any:
        import numpy as np

        return np.array([[len(text)] for text in sentences], dtype=np.float32)


class OnlySync(Embeddings):
    """LangChain embeddings that count letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text))] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


class Bare:
    """Something that embeds documents and is not LangChain's."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(len(text))] for text in texts]


def embed(thing: Any, *texts: str) -> list[list[float]]:
    vectors = asyncio.run(asyncio.wait_for(connections.embedder(thing).embed(texts), 10))
    return [list(vector) for vector in vectors]


@each_row(
    ("thing", "name"),
    [
        (many, "python:many"),
        (many_typed, "python:many_typed"),
        (many_async, "python:many_async"),
        (one, "python:one"),
        (one_async, "python:one_async"),
        (functools.partial(one), "python:one"),
        (OneByCall(), "python:OneByCall"),
        (Encoder(), "python:Encoder"),
        (OnlySync(), "python:OnlySync"),
        (Bare(), "python:Bare"),
        (lambda texts: [[float(len(text))] for text in texts], "python:<lambda>"),
    ],
)
def test_functions_and_objects_of_users_embed(thing: Any, name: str) -> None:
    assert embed(thing, "a", "bbb") == [[1.0], [3.0]]
    embedder = connections.embedder(thing)
    assert (embedder.name, embedder.method) == (name, "embeddings")


def test_langchain_embeddings_are_taken_as_they_are() -> None:
    first, second, again = embed(DeterministicFakeEmbedding(size=8), "x", "y", "x")
    assert len(first) == 8
    assert first == again != second


def test_an_address_and_a_custom_name_work() -> None:
    assert embed("tests.embedders.test_python:one", "abc") == [[3.0]]
    assert connections.embedder({"model": one, "name": "mine"}).name == "mine"


def test_blocking_functions_run_in_a_thread() -> None:
    seen: list[threading.Thread] = []

    def noting(texts: list[str]) -> list[list[float]]:
        seen.append(threading.current_thread())
        return [[1.0] for _ in texts]

    embed(noting, "a")
    assert seen[0] is not threading.current_thread()


def test_an_exception_becomes_a_failed_call() -> None:
    def failing(texts: list[str]) -> list[list[float]]:
        raise ValueError("no model loaded")

    def refused(texts: list[str]) -> list[list[float]]:
        raise CallFailed("busy", retryable=True)

    with pytest.raises(CallFailed, match="python:failing failed: ValueError: no model loaded"):
        embed(failing, "a")
    with pytest.raises(CallFailed, match=r"^busy$"):
        embed(refused, "a")


def test_a_list_of_texts_needs_a_list_of_as_many_vectors() -> None:
    for vector in ([0.5, 0.5], [0.1, 0.2, 0.3], []):
        with pytest.raises(CallFailed, match="it takes a list of texts, here 1, and must return"):
            embed(lambda texts, found=vector: found, "a", "b")


def test_the_error_of_a_function_of_one_text_asks_for_an_annotation() -> None:
    with pytest.raises(CallFailed, match="if the function takes one text, annotate its parameter with str"):
        embed(lambda text: 1.0, "a")


@pytest.mark.parametrize("thing", [3, object(), str, OnlySync])
def test_values_that_cannot_embed_are_refused(thing: Any) -> None:
    with pytest.raises(ModelError, match="is not an embedder"):
        connections.embedder(thing)


def test_a_callable_that_hides_its_parameters_gets_the_list() -> None:
    with pytest.raises(CallFailed, match="not a list of numbers"):
        embed(max, "a")
