"""Work that needs a core waits for one without losing its time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from proctor.core import stopwatch, threads
from proctor.models.embedding_cache import CachedEmbedder


class RecordedWatch:
    """A time limit that records when it is paused."""

    last_failure = ""
    seconds = 1.0

    def __init__(self) -> None:
        self.events: list[str] = []

    def pause(self) -> None:
        self.events.append("pause")

    def resume(self) -> None:
        self.events.append("resume")


def test_waiting_for_a_core_does_not_count_as_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one core, the second computation starts after the first; its time limit is paused until then."""
    monkeypatch.setattr(threads, "count_cores", lambda: 1)
    release, started = threading.Event(), threading.Event()

    def first() -> str:
        started.set()
        release.wait(60)
        return "first"

    async def run_watched(watch: RecordedWatch) -> str:
        stopwatch.set_stopwatch(watch)
        return str(await threads.compute(lambda: "second"))

    async def main() -> None:
        watch = RecordedWatch()
        holder = asyncio.create_task(threads.compute(first))
        while not started.is_set():
            await asyncio.sleep(0)
        waiter = asyncio.create_task(run_watched(watch))
        for _ in range(10):
            await asyncio.sleep(0)
        assert watch.events == ["pause"]
        release.set()
        assert [await holder, await waiter] == ["first", "second"]
        assert watch.events == ["pause", "resume"]

    asyncio.run(main())


def test_no_more_computations_run_at_once_than_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twenty computations never more than two run at the same time."""
    monkeypatch.setattr(threads, "count_cores", lambda: 2)
    lock, running, highest = threading.Lock(), 0, 0
    both = threading.Barrier(2)

    def work() -> None:
        nonlocal running, highest
        with lock:
            running += 1
            highest = max(highest, running)
        # Two must run together, or this raises BrokenBarrierError.
        both.wait(60)
        with lock:
            running -= 1

    async def main() -> None:
        await asyncio.gather(*(threads.compute(work) for _ in range(20)))

    asyncio.run(main())
    assert highest == 2


def test_a_failed_or_cancelled_computation_frees_its_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "count_cores", lambda: 1)
    release = threading.Event()

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await threads.compute(lambda: 1 / 0)
        blocked = asyncio.create_task(threads.compute(release.wait, 60))
        waiting = asyncio.create_task(threads.compute(int))
        await asyncio.sleep(0)
        waiting.cancel()
        blocked.cancel()
        await asyncio.wait([blocked, waiting])
        assert await threads.compute(lambda: 7) == 7
        release.set()

    asyncio.run(main())


class SlowEmbedder:
    """Returns the vectors of a batch when it is told to."""

    name = "slow"
    method = "embeddings"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.release = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.batches.append(list(texts))
        await self.release.wait()
        return [[1.0, float(len(text))] for text in texts]


def test_waiting_for_the_batches_of_others_does_not_count_as_time() -> None:
    """A caller's time limit starts with the batch of its last text."""

    async def main() -> None:
        embedder = SlowEmbedder()
        cached = CachedEmbedder(embedder, batch_size=1)
        watch = RecordedWatch()

        async def embed_watched() -> None:
            stopwatch.set_stopwatch(watch)
            await cached.embed(["b", "c"])

        first = asyncio.create_task(cached.embed(["a"]))
        while not embedder.batches:
            await asyncio.sleep(0)
        second = asyncio.create_task(embed_watched())
        for _ in range(10):
            await asyncio.sleep(0)
        assert (embedder.batches, watch.events) == ([["a"]], ["pause"])
        embedder.release.set()
        await asyncio.gather(first, second)
        assert (embedder.batches, watch.events) == ([["a"], ["b"], ["c"]], ["pause", "resume"])

    asyncio.run(main())


def test_a_batch_has_a_limited_number_of_characters() -> None:
    """A text that is longer than the limit has a batch to itself."""

    async def main() -> None:
        embedder = SlowEmbedder()
        embedder.release.set()
        cached = CachedEmbedder(embedder, batch_characters=10)
        await cached.embed(["12345678901234", "12345", "123456", "1", "12"])
        assert embedder.batches == [["12345678901234"], ["12345", "123456"], ["1", "12"]]

    asyncio.run(main())
