"""Meanings: every text embedded once, by whoever wants it, and how near texts are."""

from __future__ import annotations

import asyncio
import gc
import math
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from proctor.evaluators.embeddings import TextEmbedder, VectorSimilarity
from proctor.evaluators.text.quality import coherence, relevance, semantic_similarity
from proctor.records.fields.context import FieldContext


@pytest.mark.parametrize(("kind", "count"), [("function", 1_000), ("object", 100), ("method", 100), ("mapping", 100)])
def test_three_evaluators_embed_every_output_once(kind: str, count: int) -> None:
    asked: list[str] = []

    class Counting:
        name, method = "counting", "embeddings"

        async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
            return self.vectors(texts)

        def vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
            asked.extend(texts)
            return [[float(len(text)), 1.0] for text in texts]

    counting = Counting()
    call = counting.vectors
    given: dict[str, Any] = {"function": call, "object": counting, "mapping": {"model": call}}

    def same() -> Any:
        # A method is another object each time.
        return given.get(kind, counting.vectors)

    similar = semantic_similarity(same(), excerpts=False)
    on_topic, flowing = relevance(embedder=same()), coherence(embedder=same())

    async def score_all() -> None:
        texts = [f"This is what was said of number {number} today." for number in range(count)]
        for evaluator in (similar, on_topic):
            contexts = [FieldContext("output", {"input": "What?", "output": t}) for t in texts]
            pairs = zip(texts, contexts, strict=True)
            await asyncio.gather(*(evaluator(text, "It was said.", c) for text, c in pairs))
        await asyncio.gather(*(flowing(f"{text} {texts[0]}") for text in texts))

    asyncio.run(score_all())
    assert len(asked) == len(set(asked))
    assert count <= len(asked) < count + 20


def test_one_address_is_one_embedder_but_another_key_is_another() -> None:
    address = {"model": "http://127.0.0.1:9/v1#tiny", "api_key": "sk-one"}
    one, two, three = (TextEmbedder(address, "test").embedder for _ in range(3))
    assert one is two is three
    assert TextEmbedder(address | {"api_key": "sk-two"}, "test").embedder is not one
    assert TextEmbedder(address | {"dimensions": 3}, "test").embedder is not one


def test_an_unused_embedder_is_garbage_collected() -> None:
    def place(text: str) -> list[float]:
        return [float(len(text))]

    watched = weakref.ref(place)
    evaluators = [semantic_similarity(place), semantic_similarity(place)]
    del place
    assert watched() is not None
    evaluators.clear()
    gc.collect()
    assert watched() is None


@pytest.mark.no_cover
def test_every_text_is_embedded_once() -> None:
    class Counting:
        name, method = "counting", "embeddings"
        count = batches = 0

        async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
            Counting.count += len(texts)
            Counting.batches += 1
            return [[float(len(text)), 1.0] for text in texts]

    evaluator = semantic_similarity(Counting(), excerpts=False)

    async def twice() -> None:
        for _ in range(2):
            pairs = [(f"answer {number}", f"reference {number}") for number in range(500)]
            await asyncio.gather(*(evaluator(*pair) for pair in pairs))

    asyncio.run(twice())
    assert Counting.count == 1_000
    assert Counting.batches == math.ceil(1_000 / 64)


def test_nearness_is_the_same_with_numpy_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: the cosines of a with b and c are 0.6 and 0, and the floor 0.2 of 0.8 is room."""
    vectors = {"a": [2.0, 0.0], "b": [0.6, 0.8], "c": [0.0, 1.0], "nowhere": [0.0, 0.0]}

    def message() -> list[list[float]]:
        near = VectorSimilarity(vectors, floor=0.2)
        found = [near.nearest(["a", "b"], ["c", "b"]), near.nearest_other(["a", "b", "c"])]
        return [*found, near.nearest(["a"], []), near.nearest_other(["a"])]

    by_hand = [[0.5, 1.0], [0.5, 0.75, 0.75], [0.0], [0.0]]
    assert message() == [pytest.approx(one) for one in by_hand]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert message() == [pytest.approx(one) for one in by_hand]
