"""Answers that are paid for once: kept on disk by what was asked, and found again."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.errors import CallFailed, ModelError
from proctor.models.asking import Recalled, key_of, read, recall, remember
from proctor.models.connect import provider
from proctor.ports import Kept, ProviderAdapter
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse

# So much of a text is shown, and so much of it before the place where two texts part.
SHOWN, BEFORE = 60, 20
# Judges fence what they quote with a mark that is made out of it. It differs wherever anything
# does, and says nothing.
_FENCE = re.compile(r"<<<[^<>\n]{1,80}? ([0-9a-f]{16})\b")
MARK = "mark"
# What stands where one side has no such field.
_NOTHING = object()


class Difference(NamedTuple):
    """The first field that differs, and what stands there on either side, cut to what differs."""

    field: str
    asked: str
    known: str


def first_difference(asked: ModelRequest, known: ModelRequest) -> Difference | None:
    """Where two requests first differ, or None if they are the same.

    >>> from proctor.records.session import Message
    >>> one = ModelRequest((Message("user", "Capital of Spain?"),))
    >>> two = ModelRequest((Message("user", "Capital of Italy?"),))
    >>> first_difference(one, two)
    Difference(field='messages.0.content', asked="'Capital of Spain?'", known="'Capital of Italy?'")
    """
    found = _between(_unmarked(asked), _unmarked(known), ())
    return found or _between(codec.plain(asked), codec.plain(known), ())


def nearest(asked: ModelRequest, known: Iterable[ModelRequest]) -> int | None:
    """The place of the request that differs least, or None if there is none.

    Fewest different fields first, then the most lines in common, then the longest common beginning
    and end. All of them are looked at, so this is meant to be quick and not to be subtle.
    """
    wanted = _Look(asked)
    likeness = {place: wanted.distance(_Look(request)) for place, request in enumerate(known)}
    return min(likeness, key=likeness.__getitem__) if likeness else None


class _Look:
    """What is compared of a request: its fields, the lines of its messages, and their text."""

    __slots__ = ("_fields", "_lines", "_text")

    def __init__(self, request: ModelRequest) -> None:
        plain = _unmarked(request)
        self._text = codec.encode(plain.get("messages")).decode()
        self._lines = Counter(self._text.split("\\n"))
        self._fields = plain

    def distance(self, other: _Look) -> tuple[int, int, int]:
        names = self._fields.keys() | other._fields.keys()
        different = sum(self._fields.get(name) != other._fields.get(name) for name in names)
        shared = sum(len(line) * n for line, n in (self._lines & other._lines).items())
        start = _shared_start(self._text, other._text)
        rest = min(len(self._text), len(other._text)) - start
        end = _shared_start(self._text[: -rest - 1 : -1], other._text[: -rest - 1 : -1])
        return different, -shared, -start - end


def _shared_start(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _unmarked(request: ModelRequest) -> dict[str, Any]:
    """A request as plain data, with the same word for the marks of its fences."""
    text = codec.encode(request).decode()
    for mark in set(_FENCE.findall(text)):
        text = text.replace(mark, MARK)
    found: dict[str, Any] = msgspec.json.decode(text)
    return found


def _between(asked: Any, known: Any, path: tuple[str, ...]) -> Difference | None:
    if asked == known and type(asked) is type(known):
        return None
    pairs: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(asked, dict) and isinstance(known, dict):
        names = [*asked, *(name for name in known if name not in asked)]
        pairs = ((str(n), asked.get(n, _NOTHING), known.get(n, _NOTHING)) for n in names)
    elif isinstance(asked, list | tuple) and isinstance(known, list | tuple):
        both = enumerate(zip_longest(asked, known, fillvalue=_NOTHING))
        pairs = ((str(place), one, two) for place, (one, two) in both)
    for name, one, two in pairs:
        found = _between(one, two, (*path, name))
        if found is not None:
            return found
    return Difference(".".join(path), *_excerpts(asked, known))


def _excerpts(asked: Any, known: Any) -> tuple[str, str]:
    """Both values from a little before the place where they part."""
    if not (isinstance(asked, str) and isinstance(known, str)):
        return _excerpt(_written(asked), 0), _excerpt(_written(known), 0)
    same = next((i for i, (a, b) in enumerate(zip(asked, known, strict=False)) if a != b), None)
    apart = min(len(asked), len(known)) if same is None else same
    start = max(0, apart - BEFORE)
    return repr(_excerpt(asked, start)), repr(_excerpt(known, start))


def _written(value: Any) -> str:
    return "nothing" if value is _NOTHING else codec.encode(value).decode()


def _excerpt(text: str, start: int) -> str:
    cut = text[start : start + SHOWN]
    return ("…" if start else "") + cut + ("…" if start + SHOWN < len(text) else "")


class Behind(NamedTuple):
    """A model that is wrapped, and what its wrapper is known by: the same as the model itself.

    `identity` tells it from another model of the same address, where there is more to tell.
    Whether it fits schemas is asked of the model each time: it may find out that it does not.
    """

    adapter: ProviderAdapter
    model: str
    identity: str


def behind(model: Any) -> Behind:
    """The model that is to be wrapped: an adapter, its address, or whatever the user holds.

    >>> behind(lambda messages: "Paris").model
    'python:<lambda>'
    """
    adapter = provider(model)
    identity = str(getattr(adapter, "identity", ""))
    return Behind(adapter, adapter.model, identity)


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

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
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
