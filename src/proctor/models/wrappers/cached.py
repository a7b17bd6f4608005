"""Models with cached responses: each distinct request is paid for once."""

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

from proctor.core.aliases import accept_aliases
from proctor.core.resources import describe_os_error
from proctor.errors import CallFailed, ModelError
from proctor.models.connect import provider
from proctor.models.model_calls import call_key, find_response, read_stored_call, store_response
from proctor.ports import ByteStore, ProviderAdapter
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse

# The length of an excerpt, and how much of it comes before the first difference.
EXCERPT_CHARS, CONTEXT_CHARS = 60, 20
# Judges fence quoted text with a digest of the text, which changes with the text.
_FENCE = re.compile(r"<<<[^<>\n]{1,80}? ([0-9a-f]{16})\b")
# The value of a field that only the other side has.
_MISSING = object()
# A waiting call retries if it has this fraction of its time left after the first call has failed.
MIN_EXTRA_TIME = 0.1


class Difference(NamedTuple):
    """The first field that differs, and an excerpt from each side."""

    field: str
    requested: str
    stored: str


def first_difference(requested: ModelRequest, stored: ModelRequest) -> Difference | None:
    """Return the first difference between two requests, or None if they are equal."""
    difference = _compare(_without_fences(requested), _without_fences(stored), ())
    return difference or _compare(codec.to_plain(requested), codec.to_plain(stored), ())


def nearest_request(requested: ModelRequest, stored: Iterable[ModelRequest]) -> int | None:
    """Return the index of the most similar request, or None if there are none.

    Fewer different fields rank first, then more common lines, then a longer common start and end. The
    comparison is fast rather than exact, because it looks at all requests.
    """
    features = _Features(requested)
    distances = {index: features.distance(_Features(request)) for index, request in enumerate(stored)}
    return min(distances, key=distances.__getitem__) if distances else None


class _Features:
    """The compared features of a request: its fields, and the text and lines of its messages."""

    __slots__ = ("_fields", "_lines", "_text")

    def __init__(self, request: ModelRequest) -> None:
        self._fields = _without_fences(request)
        self._text = codec.encode(self._fields.get("messages")).decode()
        self._lines = Counter(self._text.split("\\n"))

    def distance(self, other: _Features) -> tuple[int, int, int]:
        names = self._fields.keys() | other._fields.keys()
        different = sum(self._fields.get(name) != other._fields.get(name) for name in names)
        shared = sum(len(line) * n for line, n in (self._lines & other._lines).items())
        start = _common_prefix(self._text, other._text)
        rest = min(len(self._text), len(other._text)) - start
        end = _common_prefix(self._text[: -rest - 1 : -1], other._text[: -rest - 1 : -1])
        return different, -shared, -start - end


def _common_prefix(a: str, b: str) -> int:
    """Return the length of the common prefix, by bisection."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _without_fences(request: ModelRequest) -> dict[str, Any]:
    """Return the request as plain data, with the same word for the digests of all fences."""
    text = codec.encode(request).decode()
    for digest in set(_FENCE.findall(text)):
        text = text.replace(digest, "mark")
    plain: dict[str, Any] = msgspec.json.decode(text)
    return plain


def _compare(requested: Any, stored: Any, path: tuple[str, ...]) -> Difference | None:
    if requested == stored and type(requested) is type(stored):
        return None
    pairs: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(requested, dict) and isinstance(stored, dict):
        pairs = ((str(n), requested.get(n, _MISSING), stored.get(n, _MISSING)) for n in {**requested, **stored})
    elif isinstance(requested, list | tuple) and isinstance(stored, list | tuple):
        items = enumerate(zip_longest(requested, stored, fillvalue=_MISSING))
        pairs = ((str(index), a, b) for index, (a, b) in items)
    for name, a, b in pairs:
        difference = _compare(a, b, (*path, name))
        if difference is not None:
            return difference
    return Difference(".".join(path), *_excerpts(requested, stored))


def _excerpts(requested: Any, stored: Any) -> tuple[str, str]:
    if not (isinstance(requested, str) and isinstance(stored, str)):
        texts = ["nothing" if v is _MISSING else codec.encode(v).decode() for v in (requested, stored)]
        return _excerpt(texts[0], 0), _excerpt(texts[1], 0)
    start = max(0, _common_prefix(requested, stored) - CONTEXT_CHARS)
    return repr(_excerpt(requested, start)), repr(_excerpt(stored, start))


def _excerpt(text: str, start: int) -> str:
    end = start + EXCERPT_CHARS
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


class ModelWrapper:
    """A wrapper of another model (an adapter, an address, or a Python object), with its name and identity."""

    def __init__(self, model: Any) -> None:
        self._adapter: ProviderAdapter = provider(model)
        self.model = self._adapter.model
        self.identity = str(getattr(self._adapter, "identity", ""))

    @property
    def supports_json_schema(self) -> bool:
        """Whether the wrapped model supports schemas."""
        return self._adapter.supports_json_schema


def connect(address: str, *, source_model: Any) -> Cached:
    """Cache the responses of the source model in the folder of the address.

    In an eval file: `{model: "cached:.proctor/answers", source_model: "openai:gpt-4o-mini"}`.
    """
    folder = address.partition(":")[2]
    if not folder:
        raise ModelError("the folder is missing", where=address, fix="write cached:FOLDER")
    return Cached(source_model, DiskCache(folder))


class DiskCache:
    """A store in a folder: one file for each key, written atomically.

    >>> import tempfile
    >>> cache = DiskCache(tempfile.mkdtemp())
    >>> cache.put("4f00", b"Paris")
    >>> cache.find("4f00"), cache.find("4f01")
    (b'Paris', None)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).absolute()

    def find(self, key: str) -> bytes | None:
        try:
            return self._path(key).read_bytes()
        except OSError:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Store data under a key; readers see either the old data or the new data."""
        path = self._path(key)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise ModelError(
                describe_os_error(error, "a response cannot be cached"),
                where=str(self._folder),
                fix="choose a folder that you can write to",
            ) from None

    def __iter__(self) -> Iterator[bytes]:
        for path in sorted(self._folder.glob("??/[!.]*")):
            data = self.find(path.parent.name + path.name)
            if data is not None:
                yield data

    def _path(self, key: str) -> Path:
        # Subfolders keep the number of files in one folder small.
        return self._folder / key[:2] / key[2:]


class Cached(ModelWrapper):
    """A model whose responses are cached and reused for equal requests.

    Failures are not cached. If several equal requests are concurrent, only the first is sent; the others share its
    response or its failure. A caller with clearly more time left than the first call sends the request again if the
    failure is transient. `explain` describes a cache miss.

    >>> import tempfile
    >>> from proctor.records.session import Message
    >>> model = Cached(lambda messages: "Paris", DiskCache(tempfile.mkdtemp()))
    >>> request = ModelRequest((Message("user", "Capital of France?"),))
    >>> [asyncio.run(model.complete(request)).cached for _ in range(2)]
    [False, True]
    """

    @accept_aliases
    def __init__(self, model: Any, store: ByteStore) -> None:
        super().__init__(model)
        self._store = store
        self._lock = threading.Lock()
        self._running: dict[str, _RunningCall] = {}

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Return the cached response, or call the model and cache its response."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        key = call_key(self._adapter, request)
        while True:
            cached = find_response(self._store, self._adapter, request)
            if cached is not None:
                return cached
            own_call = _RunningCall(deadline)
            with self._lock:
                call = self._running.setdefault(key, own_call)
            if call is own_call:
                return await self._send(key, call, request)
            try:
                response = await self._wait_for(call, deadline)
            except CallFailed as error:
                if error.retryable and _has_more_time(deadline, call.deadline):
                    continue
                raise
            if response is not None:
                return msgspec.structs.replace(response, cached=True)

    async def _send(self, key: str, call: _RunningCall, request: ModelRequest) -> ModelResponse:
        """Send the request for all waiting callers; if this call is cancelled, one of them sends it."""
        try:
            # Another call may have stored the response in the meantime.
            response = find_response(self._store, self._adapter, request)
            if response is None:
                response = await self._adapter.complete(request, timeout=_remaining(call.deadline))
                if not response.cached:
                    store_response(self._store, self._adapter, request, response)
        except BaseException as error:
            self._end(key)
            if isinstance(error, Exception):
                call.future.set_exception(error)
            else:
                call.future.cancel()
            raise
        self._end(key)
        call.future.set_result(response)
        return response

    def _end(self, key: str) -> None:
        with self._lock:
            del self._running[key]

    async def _wait_for(self, call: _RunningCall, deadline: float) -> ModelResponse | None:
        """Return the response of another call; None if that call was cancelled."""
        left = _remaining(deadline)
        waiting = asyncio.wrap_future(_mirror(call.future))
        try:
            done, _ = await asyncio.wait((waiting,), timeout=left)
        finally:
            waiting.cancel()
        if not done:
            raise CallFailed(
                f"{self.model}: an equal request is running and did not finish within {left:g} s", retryable=True
            )
        return None if waiting.cancelled() else waiting.result()

    def explain(self, request: ModelRequest) -> str:
        """Explain why the cache has no response to a request."""
        if find_response(self._store, self._adapter, request) is not None:
            return "the response is cached"
        if not isinstance(self._store, DiskCache):
            return "nothing is cached under this key, and this store cannot be searched"
        calls = [call for data in self._store if (call := read_stored_call(data)) is not None]
        same_model = [call for call in calls if call.model == self.model]
        if not same_model:
            others = ", ".join(sorted({call.model for call in calls})) or "none"
            return f"nothing is cached for {self.model}; cached models: {others}"
        index = nearest_request(request, (call.request for call in same_model))
        assert index is not None
        difference = first_difference(request, same_model[index].request)
        if difference is None:
            return f"the same request is cached for another {self.model}: its code has changed"
        return (
            f"{len(same_model)} cached for {self.model}; the nearest differs in {difference.field}: "
            f"requested {difference.requested}, cached {difference.stored}"
        )


class _RunningCall:
    __slots__ = ("deadline", "future")

    def __init__(self, deadline: float) -> None:
        self.future = Future[ModelResponse]()
        self.deadline = deadline


def _remaining(deadline: float) -> float | None:
    return None if deadline == math.inf else max(0.0, deadline - time.monotonic())


def _has_more_time(deadline: float, other_deadline: float) -> bool:
    """Return True if a failure may be due to the other call's earlier deadline.

    Calls that started at about the same time share the failure; otherwise each of them would call a server
    that is down.
    """
    now = time.monotonic()
    return deadline > now and deadline - other_deadline > MIN_EXTRA_TIME * max(0.0, deadline - now)


def _mirror(source: Future[ModelResponse]) -> Future[ModelResponse]:
    """Return a future that follows another future and can be cancelled separately."""
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

    source.add_done_callback(copy)
    return mirror
