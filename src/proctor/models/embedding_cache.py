"""Embed each text once: concurrent texts are sent in batches, and vectors are cached."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import math
import threading
from array import array
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

from proctor.core import resource_scope, stopwatch
from proctor.errors import CallFailed
from proctor.models.model_calls import CallContext, call_context
from proctor.ports import Embedder

BATCH_SIZE = 64
# Computing a batch of this size takes about a second on one core.
LOCAL_BATCH_CHARACTERS = 8_000
# Numbers of 4 bytes: about 87,000 texts of 384 numbers, or 10,900 of 3,072.
MAX_CACHED_NUMBERS = 33_500_000

Vector = Sequence[float]


class CachedEmbedder:
    """Wraps an embedder: batches texts and caches vectors.

    Texts of the same moment, or of the time while a batch runs, share a batch of at most `batch_size` texts and
    about `batch_characters`; up to `concurrency` batches run at once. The time limit of a caller starts with the
    batch of its last text: waiting for other batches does not count. Vectors are cached as 32-bit numbers; the least
    recently used are dropped first. Threads and event loops may share it.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        batch_size: int = BATCH_SIZE,
        batch_characters: float = math.inf,
        concurrency: int = 1,
        max_numbers: int = MAX_CACHED_NUMBERS,
    ) -> None:
        self._embedder = embedder
        self.name, self.method = embedder.name, embedder.method
        # None if the embedder does not declare its languages.
        self.languages: tuple[str, ...] | None = getattr(embedder, "languages", None)
        self._batch_size, self._batch_characters = batch_size, batch_characters
        self._concurrency = concurrency
        self._cache = _VectorCache(max_numbers)
        self._length = 0
        # Weak references, so that a closed loop leaves nothing behind.
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _TextQueue] = WeakKeyDictionary()

    def unknown_words(self, text: str) -> tuple[str, ...]:
        find = getattr(self._embedder, "unknown_words", None)
        return tuple(find(text)) if callable(find) else ()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: dict[str, Vector] = {}
        pending: dict[str, _QueuedText] = {}
        queue = self._queues.setdefault(asyncio.get_running_loop(), _TextQueue())
        for text in dict.fromkeys(texts):
            vector = self._cache.get(text)
            if vector is None:
                pending[text] = queue.add(text)
            else:
                vectors[text] = vector
        if pending:
            if len(queue.workers) < self._concurrency:
                queue.start_worker(self._work(queue))
            # Not `gather`: cancelling one caller must not cancel the futures of the others.
            with stopwatch.paused():
                await asyncio.wait([queued.start for queued in pending.values()])
            await asyncio.wait([queued.vector for queued in pending.values()])
        for text, queued in pending.items():
            result = queued.vector.result()
            if isinstance(result, BaseException):
                raise result
            vectors[text] = result
        return [vectors[text] for text in texts]

    async def _work(self, queue: _TextQueue) -> None:
        task = asyncio.current_task()
        # Wait one iteration of the loop, so that other callers can add their texts.
        await asyncio.sleep(0)
        async with resource_scope.ResourceScope():
            try:
                while batch := queue.take(self._batch_size, self._batch_characters):
                    try:
                        await self._embed_batch(queue, batch)
                    finally:
                        queue.cancel(batch)
            finally:
                # Done here, not at the end of the task: a text that arrives while connections close needs a new worker.
                queue.workers.discard(task)

    async def _embed_batch(self, queue: _TextQueue, batch: Sequence[str]) -> None:
        try:
            vectors = await self._checked_vectors(batch)
        except Exception as error:
            if len(batch) > 1 and not getattr(error, "retryable", False):
                # One text may have made the whole batch fail.
                for text in batch:
                    await self._embed_batch(queue, [text])
            else:
                for text in batch:
                    queue.resolve(text, error)
            return
        for text, vector in zip(batch, vectors, strict=True):
            self._cache.put(text, vector)
            queue.resolve(text, vector)

    async def _checked_vectors(self, texts: Sequence[str]) -> list[array[float]]:
        raw_vectors = await self._embedder.embed(texts)
        if len(raw_vectors) != len(texts):
            raise CallFailed(f"{self.name} returned {len(raw_vectors)} vectors for {len(texts)} texts")
        vectors = [_to_array(vector, self.name) for vector in raw_vectors]
        lengths = {len(vector) for vector in vectors}
        if len(lengths | {self._length or len(vectors[0])}) > 1:
            raise CallFailed(f"{self.name} returned vectors of different lengths")
        self._length = lengths.pop()
        return vectors


# Weak references, so that an embedder and its cache are freed with the last user.
_SHARED: WeakValueDictionary[Hashable, CachedEmbedder] = WeakValueDictionary()
_SHARED_LOCK = threading.Lock()


def shared_embedder(key: Hashable, make: Callable[[], CachedEmbedder]) -> CachedEmbedder:
    """Return the embedder for a key; make it if no one uses it yet.

    The key covers everything that the vectors depend on. If it contains the `id` of an object, the embedder
    must keep that object alive.
    """
    with _SHARED_LOCK:
        embedder = _SHARED.get(key)
        if embedder is None:
            embedder = _SHARED[key] = make()
        return embedder


class _QueuedText(NamedTuple):
    """The start of a text's batch, and its vector or error."""

    start: asyncio.Future[None]
    vector: asyncio.Future[Any]


class _TextQueue:
    """The texts of one event loop that wait for a batch, and the futures of their vectors."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._queued: dict[str, _QueuedText] = {}
        self.workers: set[asyncio.Task[None] | None] = set()

    def add(self, text: str) -> _QueuedText:
        if text not in self._queued:
            loop = asyncio.get_running_loop()
            self._queued[text] = _QueuedText(loop.create_future(), loop.create_future())
            self._waiting.append(text)
        return self._queued[text]

    def start_worker(self, work: Coroutine[Any, Any, None]) -> None:
        # A new context: a batch serves many trials, so it belongs to no session. Only the run's
        # budget applies to all of them.
        context = contextvars.Context()
        context.run(call_context.set, CallContext(call_context.get().spending))
        self.workers.add(asyncio.get_running_loop().create_task(work, context=context))

    def take(self, count: int, characters: float) -> list[str]:
        """Return the texts of the next batch: at least one, if any waits."""
        batch: list[str] = []
        size = 0
        while self._waiting and len(batch) < count and size < characters:
            text = self._waiting.popleft()
            self._queued[text].start.set_result(None)
            batch.append(text)
            size += len(text)
        return batch

    def resolve(self, text: str, result: Any) -> None:
        self._queued.pop(text).vector.set_result(result)

    def cancel(self, batch: Sequence[str]) -> None:
        """Cancel texts without a result, because the loop ends."""
        for text in batch:
            if text in self._queued:
                self._queued.pop(text).vector.cancel()


class _VectorCache:
    """Vectors by text, up to a total size."""

    def __init__(self, max_numbers: int) -> None:
        self._max_numbers, self._numbers = max_numbers, 0
        self._vectors: OrderedDict[bytes, array[float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str) -> array[float] | None:
        key = _cache_key(text)
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def put(self, text: str, vector: array[float]) -> None:
        key = _cache_key(text)
        with self._lock:
            previous = self._vectors.pop(key, ())
            self._vectors[key] = vector
            self._numbers += len(vector) - len(previous)
            while self._numbers > self._max_numbers and len(self._vectors) > 1:
                self._numbers -= len(self._vectors.popitem(last=False)[1])


def _cache_key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _to_array(vector: Any, name: str) -> array[float]:
    try:
        numbers = array("f", vector.tolist() if hasattr(vector, "tolist") else vector)
    except (TypeError, ValueError, OverflowError):
        raise CallFailed(f"{name} returned something that is not a list of numbers") from None
    if not numbers or not all(map(math.isfinite, numbers)):
        raise CallFailed(f"{name} returned a vector that is empty or not finite")
    return numbers
