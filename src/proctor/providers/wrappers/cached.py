"""Answers that are paid for once: kept on disk by what was asked, and found again."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from proctor.asking.recall import Recalled, key_of, read, recall, remember
from proctor.errors import CallFailed, ModelError
from proctor.ports import Kept
from proctor.providers.wrappers.behind import behind
from proctor.providers.wrappers.differences import first_difference, nearest
from proctor.records.model import ModelRequest, ModelResponse

# Who has so much of their time left after another's has ended asks again.
LATER = 0.1


def connect(address: str, *, of: Any) -> Cached:
    """The model `of`, with its answers kept in the folder that the address names.

    In an eval file: `{model: "cached:.proctor/answers", of: "openai:gpt-4o-mini"}`.
    """
    folder = address.partition(":")[2]
    if not folder:
        raise ModelError("it names no folder", where=address, fix="write cached:FOLDER")
    return Cached(of, DiskKept(folder))


class DiskKept:
    """A store in a folder: one file for each key, whole or not there at all.

    >>> import tempfile
    >>> kept = DiskKept(tempfile.mkdtemp())
    >>> kept.keep("4f00", b"Paris")
    >>> kept.find("4f00"), kept.find("4f01")
    (b'Paris', None)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).absolute()

    def find(self, key: str) -> bytes | None:
        """What is kept under a key, or None."""
        try:
            return self._file(key).read_bytes()
        except OSError:
            return None

    def keep(self, key: str, data: bytes) -> None:
        """Keep bytes under a key; a reader sees the old ones or the new ones, never a part."""
        file = self._file(key)
        whole = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            whole.write_bytes(data)
            whole.replace(file)
        except OSError as error:
            with contextlib.suppress(OSError):
                whole.unlink()
            raise ModelError(
                f"an answer cannot be kept: {error.strerror or error}",
                where=str(self._folder),
                fix="give a folder that can be written to",
            ) from None

    def __iter__(self) -> Iterator[bytes]:
        """Everything that is kept."""
        for file in sorted(self._folder.glob("??/[!.]*")):
            data = self.find(file.parent.name + file.name)
            if data is not None:
                yield data

    def _file(self, key: str) -> Path:
        # Few enough files in a folder that people and tools can list it.
        return self._folder / key[:2] / key[2:]


class Cached:
    """A model whose answers are kept, and given again to the very same question.

    Failures are never kept. Of several same questions at once only one is sent; the others wait
    for it and share its answer, or its failure; but who has notably more time left than the one
    who asked tries again if that may help. `explain` says why an answer was not found.

    >>> import tempfile
    >>> from proctor.records.session import Message
    >>> model = Cached(lambda messages: "Paris", DiskKept(tempfile.mkdtemp()))
    >>> asked = ModelRequest((Message("user", "Capital of France?"),))
    >>> [asyncio.run(model.complete(asked)).cached for _ in range(2)]
    [False, True]
    """

    def __init__(self, adapter: Any, store: Kept) -> None:
        self._adapter, self.model, self.identity = behind(adapter)
        self._store = store
        self._lock = threading.Lock()
        self._under_way: dict[str, _Flight] = {}

    @property
    def fits_schema(self) -> bool:
        """As the model itself says."""
        return self._adapter.fits_schema

    async def complete(
        self, request: ModelRequest, *, timeout: float | None = None
    ) -> ModelResponse:
        """The kept answer, or else the model's, which is kept."""
        until = math.inf if timeout is None else time.monotonic() + timeout
        key = key_of(self._adapter, request)
        while True:
            found = recall(self._store, self._adapter, request)
            if found is not None:
                return found
            mine = _Flight(until)
            with self._lock:
                flight = self._under_way.setdefault(key, mine)
            if flight is mine:
                return await self._lead(key, mine, request)
            try:
                response = await self._follow(flight, until)
            except CallFailed as error:
                if error.retryable and _has_more_time(until, flight.until):
                    continue
                raise
            if response is not None:
                return msgspec.structs.replace(response, cached=True)

    async def _lead(self, key: str, flight: _Flight, request: ModelRequest) -> ModelResponse:
        """Ask for all who wait; if this call is given up, one of them asks."""
        try:
            # Another may have asked and kept the answer since it was looked for.
            response = recall(self._store, self._adapter, request)
            if response is None:
                response = await self._adapter.complete(request, timeout=_left(flight.until))
                if not response.cached:
                    remember(self._store, self._adapter, request, response)
        except BaseException as error:
            self._land(key)
            if isinstance(error, Exception):
                flight.answer.set_exception(error)
            else:
                flight.answer.cancel()
            raise
        self._land(key)
        flight.answer.set_result(response)
        return response

    def _land(self, key: str) -> None:
        with self._lock:
            del self._under_way[key]

    async def _follow(self, flight: _Flight, until: float) -> ModelResponse | None:
        """The answer that another asked for; None if it was given up."""
        left = _left(until)
        waiting = asyncio.wrap_future(_mirror(flight.answer))
        try:
            done, _ = await asyncio.wait((waiting,), timeout=left)
        finally:
            waiting.cancel()
        if not done:
            raise CallFailed(
                f"{self.model}: the same question is under way, and no answer within {left:g} s",
                retryable=True,
            )
        return None if waiting.cancelled() else waiting.result()

    def explain(self, request: ModelRequest) -> str:
        """Why the answer to a request is not found, in words."""
        if recall(self._store, self._adapter, request) is not None:
            return "the answer is kept"
        if not isinstance(self._store, DiskKept):
            return "nothing is kept under this key, and this store cannot be searched"
        calls = [call for data in self._store if (call := read(data)) is not None]
        same: list[Recalled] = [call for call in calls if call.model == self.model]
        if not same:
            others = ", ".join(sorted({call.model for call in calls})) or "nothing at all"
            return f"nothing is kept for {self.model}; kept: {others}"
        place = nearest(request, (call.request for call in same))
        assert place is not None
        found = first_difference(request, same[place].request)
        if found is None:
            return f"the same question is kept for another {self.model}: its code has changed"
        return (
            f"{len(same)} kept for {self.model}; the nearest differs in {found.field}: "
            f"asked {found.asked}, kept {found.known}"
        )


class _Flight:
    """A call that is under way, and until when the one who made it waits for it."""

    __slots__ = ("answer", "until")

    def __init__(self, until: float) -> None:
        self.answer = Future[ModelResponse]()
        self.until = until


def _left(until: float) -> float | None:
    return None if until == math.inf else max(0.0, until - time.monotonic())


def _has_more_time(until: float, others: float) -> bool:
    """True if a failure may be due to the other's time; those who asked at about the same time
    share it, or a server that is down would be asked once for each of them.
    """
    now = time.monotonic()
    return until > now and until - others > LATER * max(0.0, until - now)


def _mirror(flight: Future[ModelResponse]) -> Future[ModelResponse]:
    """A future that ends like another and can be given up without ending it."""
    mirror = Future[ModelResponse]()

    def copy(done: Future[ModelResponse]) -> None:
        if done.cancelled():
            mirror.cancel()
        if not mirror.set_running_or_notify_cancel():
            return
        if (error := done.exception()) is not None:
            mirror.set_exception(error)
        else:
            mirror.set_result(done.result())

    flight.add_done_callback(copy)
    return mirror
