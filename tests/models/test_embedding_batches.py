"""Batches and caches of embeddings: each text once, together with concurrent requests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import CallFailed
from proctor.models.embedding_cache import CachedEmbedder
from tests.tables import each_row


class Lengths:
    """An embedder that records its requests; the text "bad" makes its batch fail."""

    name, method = "lengths", "lexical"

    def __init__(self, seconds: float = 0.0, error: Exception | None = None) -> None:
        self.batches: list[list[str]] = []
        self._seconds = seconds
        self._error = error or CallFailed("bad text")
        self.at_once = self.most_at_once = 0

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.batches.append(list(texts))
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await asyncio.sleep(self._seconds)
        self.at_once -= 1
        if "bad" in texts:
            raise self._error
        return [[float(len(text)), 1.0] for text in texts]


class Saying:
    """An embedder with a fixed answer."""

    name, method = "saying", "embeddings"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return self.answer  # type: ignore[no-any-return]


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


@given(st.lists(st.lists(st.text(max_size=3), max_size=5), max_size=8))
def test_every_text_is_embedded_once_and_answers_come_in_order(asked: list[list[str]]) -> None:
    """For concurrent and sequential calls, with and without repeats."""
    inner = Lengths()
    embedder = CachedEmbedder(inner, batch_size=4)

    async def main() -> None:
        for texts, vectors in zip(asked, await asyncio.gather(*map(embedder.embed, asked)), strict=True):
            assert [vector[0] for vector in vectors] == [len(text) for text in texts]
        for texts in asked:
            await embedder.embed(texts)

    run(main())
    sent = [text for batch in inner.batches for text in batch]
    assert sorted(sent) == sorted({text for texts in asked for text in texts})
    assert all(len(batch) <= 4 for batch in inner.batches)


def test_concurrent_requests_form_one_batch() -> None:
    """A hundred askers with a text each make two batches of at most 64."""
    inner = Lengths()
    embedder = CachedEmbedder(inner)

    async def main() -> None:
        await asyncio.gather(*(embedder.embed([f"text {n}"]) for n in range(100)))

    run(main())
    assert [len(batch) for batch in inner.batches] == [64, 36]


def test_ten_thousand_texts_are_embedded_once() -> None:
    """A second request, from another loop, embeds nothing."""
    inner = Lengths()
    embedder = CachedEmbedder(inner)
    texts = [f"text {n}" for n in range(10_000)]
    first = run(embedder.embed(texts))
    assert len(inner.batches) == 157
    assert run(embedder.embed(texts[::-1])) == first[::-1]
    assert len(inner.batches) == 157


def test_texts_that_arrive_during_a_batch_form_the_next_batch() -> None:
    """A text that is being embedded is not requested again."""
    inner = Lengths(seconds=0.05)
    embedder = CachedEmbedder(inner)

    async def main() -> None:
        first = asyncio.ensure_future(embedder.embed(["a"]))
        await asyncio.sleep(0.02)
        await asyncio.gather(first, *(embedder.embed([text]) for text in "abcb"))

    run(main())
    assert inner.batches == [["a"], ["b", "c"]]


@pytest.mark.parametrize("parallel", [1, 3])
def test_no_more_batches_are_under_way_than_allowed(parallel: int) -> None:
    """And as many as that, if there is enough to do."""
    inner = Lengths(seconds=0.01)
    embedder = CachedEmbedder(inner, batch_size=2, concurrency=parallel)

    async def main() -> None:
        await asyncio.gather(*(embedder.embed([f"text {n}"]) for n in range(20)))

    run(main())
    assert inner.most_at_once == parallel
    assert len(inner.batches) == 10


def test_one_bad_text_does_not_affect_the_others() -> None:
    """Only its caller gets the error, which is not stored."""
    inner = Lengths()
    embedder = CachedEmbedder(inner)

    async def main() -> list[Any]:
        request = (embedder.embed([text]) for text in ("good", "bad", "fine"))
        return await asyncio.gather(*request, return_exceptions=True)

    good, bad, fine = run(main())
    assert (list(good[0]), list(fine[0])) == ([4.0, 1.0], [4.0, 1.0])
    assert str(bad) == "bad text"
    with pytest.raises(CallFailed, match="bad text"):
        run(embedder.embed(["bad"]))


def test_a_transient_failure_is_not_retried_text_by_text() -> None:
    """A busy endpoint does not get sixty-four more requests."""
    inner = Lengths(error=CallFailed("busy", retryable=True))
    with pytest.raises(CallFailed, match="busy"):
        run(CachedEmbedder(inner).embed(["bad", "good"]))
    assert inner.batches == [["bad", "good"]]


def test_a_cancelled_caller_does_not_affect_the_others() -> None:
    """A time-out of one asker leaves the batch under way."""
    inner = Lengths(seconds=0.1)
    embedder = CachedEmbedder(inner)

    async def main() -> Any:
        impatient = asyncio.wait_for(embedder.embed(["a"]), 0.02)
        return await asyncio.gather(impatient, embedder.embed(["a"]), return_exceptions=True)

    gave_up, patient = run(main())
    assert isinstance(gave_up, TimeoutError)
    assert list(patient[0]) == [1.0, 1.0]
    assert inner.batches == [["a"]]


def test_a_loop_that_ends_during_a_batch_leaves_nothing_behind() -> None:
    """The next loop sends a new request."""
    inner = Lengths(seconds=0.2)
    embedder = CachedEmbedder(inner)

    async def leave() -> None:
        asyncio.ensure_future(embedder.embed(["a"])).add_done_callback(lambda task: None)
        await asyncio.sleep(0.02)

    run(leave())
    assert list(run(embedder.embed(["a"]))[0]) == [1.0, 1.0]
    assert inner.batches == [["a"], ["a"]]


def test_several_threads_share_one_cache() -> None:
    """Each has its own event loop."""
    inner = Lengths()
    embedder = CachedEmbedder(inner)
    results: list[Any] = []

    def work() -> None:
        results.append(run(embedder.embed([f"text {n % 50}" for n in range(200)])))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 6
    assert all(vectors == results[0] for vectors in results)


def test_the_least_recently_used_are_forgotten_first() -> None:
    """With room for two vectors of two numbers."""
    inner = Lengths()
    embedder = CachedEmbedder(inner, max_numbers=4)
    for text in ("a", "b", "a", "c", "a", "b"):
        run(embedder.embed([text]))
    assert inner.batches == [["a"], ["b"], ["c"], ["b"]]


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        ([], "returned 0 vectors for 1 texts"),
        ([[1.0], [1.0]], "returned 2 vectors for 1 texts"),
        ([["x"]], "returned something that is not a list of numbers"),
        ([None], "returned something that is not a list of numbers"),
        ([[float("nan")]], "returned a vector that is empty or not finite"),
        ([[1e300]], "returned a vector that is empty or not finite"),
        ([[]], "returned a vector that is empty or not finite"),
    ],
)
def test_answers_without_vectors_are_errors(answer: Any, output: str) -> None:
    """Never numbers to compute with."""
    with pytest.raises(CallFailed, match=f"saying {output}"):
        run(CachedEmbedder(Saying(answer)).embed(["a"]))


def test_all_vectors_of_an_embedder_have_one_length() -> None:
    """In a batch, and from batch to batch."""
    inner = Saying([[1.0, 2.0]])
    embedder = CachedEmbedder(inner)
    run(embedder.embed(["a"]))
    inner.answer = [[1.0]]
    with pytest.raises(CallFailed, match="returned vectors of different lengths"):
        run(embedder.embed(["b"]))


def test_it_has_the_name_and_method_of_the_wrapped_embedder() -> None:
    """An empty request does nothing."""
    embedder = CachedEmbedder(Lengths())
    assert (embedder.name, embedder.method) == ("lengths", "lexical")
    assert run(embedder.embed([])) == []


@each_row("gap", range(10))
def test_a_text_that_arrives_after_the_last_batch_is_embedded(gap: int) -> None:
    """In any iteration of the loop; no caller waits forever."""

    async def main() -> int:
        remembered = CachedEmbedder(Lengths())

        async def late() -> Any:
            for _ in range(gap):
                await asyncio.sleep(0)
            return await remembered.embed(["second"])

        tasks = [asyncio.create_task(late()), asyncio.create_task(remembered.embed(["first"]))]
        _, pending = await asyncio.wait(tasks, timeout=5)
        for task in pending:
            task.cancel()
        return len(pending)

    assert asyncio.run(main()) == 0
