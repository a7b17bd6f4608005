"""Embed each text once: what is asked for at the same time goes in batches, answers are kept."""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import math
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from proctor.core import lifetimes
from proctor.errors import CallFailed
from proctor.models.asking import Conditions, conditions
from proctor.ports import Embedder

BATCH = 64
# In numbers of 4 bytes: some 87,000 texts of 384 numbers, 10,900 of 3,072.
MOST_NUMBERS = 33_500_000

Vector = Sequence[float]


class Remembered:
    """An embedder around another one: batched, and no text embedded twice while it is remembered.

    Texts that are asked for in the same moment, or while a batch is under way, go together, at
    most `batch` of them; `parallel` batches may be under way. Vectors are kept as 32-bit numbers,
    the least recently used are forgotten first. It may be used from several threads and loops.

    >>> class Lengths:
    ...     name, method = "lengths", "lexical"
    ...     async def embed(self, texts):
    ...         print(len(texts), "texts")
    ...         return [[float(len(text))] for text in texts]
    >>> [list(vector) for vector in asyncio.run(Remembered(Lengths()).embed(["a", "bb", "a"]))]
    2 texts
    [[1.0], [2.0], [1.0]]
    """

    def __init__(
        self, embedder: Embedder, *, batch: int = BATCH, parallel: int = 1, most_numbers: int = MOST_NUMBERS
    ) -> None:
        self._embedder = embedder
        self._batch, self._parallel = batch, parallel
        self._memory = _Memory(most_numbers)
        self._length = 0
        # Weak, so that nothing is left of a loop that is gone.
        self._desks: WeakKeyDictionary[asyncio.AbstractEventLoop, _Desk] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The address of the embedder inside."""
        return self._embedder.name

    @property
    def method(self) -> str:
        """How the embedder inside compares."""
        return self._embedder.method

    @property
    def languages(self) -> tuple[str, ...] | None:
        """The languages that the embedder inside reads; None if it does not say."""
        return getattr(self._embedder, "languages", None)

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that the embedder inside cannot tell apart."""
        find = getattr(self._embedder, "unknown_words", None)
        return tuple(find(text)) if callable(find) else ()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text, in order."""
        found: dict[str, Vector] = {}
        asked: dict[str, asyncio.Future[Any]] = {}
        desk = self._desks.setdefault(asyncio.get_running_loop(), _Desk())
        for text in dict.fromkeys(texts):
            vector = self._memory.find(text)
            if vector is None:
                asked[text] = desk.ask(text)
            else:
                found[text] = vector
        if asked:
            if len(desk.serving) < self._parallel:
                desk.start(self._serve(desk))
            # Not `gather`: who gives up waiting must not take the answer from the others.
            await asyncio.wait(asked.values())
        for text, future in asked.items():
            answer = future.result()
            if isinstance(answer, BaseException):
                raise answer
            found[text] = answer
        return [found[text] for text in texts]

    async def _serve(self, desk: _Desk) -> None:
        task = asyncio.current_task()
        # One turn of the loop, in which others put their texts beside the first.
        await asyncio.sleep(0)
        async with lifetimes.in_use():
            try:
                while batch := desk.take(self._batch):
                    try:
                        await self._answer(desk, batch)
                    finally:
                        desk.give_up(batch)
            finally:
                # At once, not when the task has ended: a text that is asked for while connections
                # are being closed needs somebody new to serve it.
                desk.serving.discard(task)

    async def _answer(self, desk: _Desk, batch: Sequence[str]) -> None:
        try:
            vectors = await self._vectors(batch)
        except Exception as error:
            if len(batch) > 1 and not getattr(error, "retryable", False):
                # One text may have spoiled it for the others.
                for text in batch:
                    await self._answer(desk, [text])
            else:
                for text in batch:
                    desk.tell(text, error)
            return
        for text, vector in zip(batch, vectors, strict=True):
            self._memory.keep(text, vector)
            desk.tell(text, vector)

    async def _vectors(self, texts: Sequence[str]) -> list[array[float]]:
        given = await self._embedder.embed(texts)
        if len(given) != len(texts):
            raise CallFailed(f"{self.name} gave {len(given)} vectors for {len(texts)} texts")
        vectors = [_compact(vector, self.name) for vector in given]
        lengths = {len(vector) for vector in vectors}
        if len(lengths | {self._length or len(vectors[0])}) > 1:
            raise CallFailed(f"{self.name} gave vectors of different lengths")
        self._length = lengths.pop()
        return vectors


# Weak, so that an embedder goes, with all it remembers, with the last who uses it.
_SHARED: WeakValueDictionary[Hashable, Remembered] = WeakValueDictionary()
_SHARING = threading.Lock()


def shared(key: Hashable, make: Callable[[], Remembered]) -> Remembered:
    """The embedder that all share who give the same key, made if nobody has it.

    The key says everything that the vectors depend on. Where it holds the `id` of an object, the
    embedder must hold that object.
    """
    with _SHARING:
        found = _SHARED.get(key)
        if found is None:
            found = _SHARED[key] = make()
        return found


class _Desk:
    """What is asked for in one loop: texts that wait, and answers that are owed."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._owed: dict[str, asyncio.Future[Any]] = {}
        self.serving: set[asyncio.Task[None] | None] = set()

    def ask(self, text: str) -> asyncio.Future[Any]:
        if text not in self._owed:
            self._owed[text] = asyncio.get_running_loop().create_future()
            self._waiting.append(text)
        return self._owed[text]

    def start(self, work: Any) -> None:
        # In a context of its own: a batch belongs to many trials, so to the session of none. Only
        # the run's budget is theirs all.
        context = contextvars.Context()
        context.run(conditions.set, Conditions(conditions.get().spending))
        task = asyncio.get_running_loop().create_task(work, context=context)
        self.serving.add(task)

    def take(self, most: int) -> list[str]:
        taken, self._waiting = self._waiting[:most], self._waiting[most:]
        return taken

    def tell(self, text: str, answer: Any) -> None:
        self._owed.pop(text).set_result(answer)

    def give_up(self, batch: Sequence[str]) -> None:
        """Nobody waits for ever: what was not answered, because the loop ends, is cancelled."""
        for text in batch:
            if text in self._owed:
                self._owed.pop(text).cancel()


class _Memory:
    """Vectors by their text, as many as there is room for."""

    def __init__(self, most_numbers: int) -> None:
        self._most, self._held = most_numbers, 0
        self._vectors: OrderedDict[bytes, array[float]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, text: str) -> array[float] | None:
        key = _key(text)
        with self._lock:
            found = self._vectors.get(key)
            if found is not None:
                self._vectors.move_to_end(key)
            return found

    def keep(self, text: str, vector: array[float]) -> None:
        key = _key(text)
        with self._lock:
            old = self._vectors.pop(key, None)
            self._vectors[key] = vector
            self._held += len(vector) - (0 if old is None else len(old))
            while self._held > self._most and len(self._vectors) > 1:
                _, forgotten = self._vectors.popitem(last=False)
                self._held -= len(forgotten)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _compact(vector: Any, name: str) -> array[float]:
    listed = vector.tolist() if hasattr(vector, "tolist") else vector
    try:
        found = array("f", listed)
    except (TypeError, ValueError, OverflowError):
        raise CallFailed(f"{name} gave something that is not a list of numbers") from None
    if not found or not all(map(math.isfinite, found)):
        raise CallFailed(f"{name} gave a vector that is empty or not finite")
    return found
