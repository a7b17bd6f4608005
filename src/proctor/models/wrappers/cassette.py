"""Cassettes: every call of a model written down, and given again without calling anybody."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from proctor.core.threads import in_thread
from proctor.errors import CallFailed, ModelError
from proctor.models.wrappers.cached import behind, first_difference, nearest
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse
from proctor.version import VERSION

SCHEMA_VERSION = 1
# So many missing calls are told how they differ from what there is.
HINTS = 20
# How often, and how far apart, a last line without an end is looked at before it is mended.
LOOKS, LOOK_SECONDS = 5, 0.02


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a cassette: the version of its schema, and who wrote it."""

    proctor_cassette: int
    written_by: str


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call that failed: what was raised, what it said, and whether it was worth another try."""

    kind: str
    what: str
    retryable: bool = False
    retry_after: float | None = None


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One call: who was asked, what, and the answer or the fault.

    `sitting` tells recordings of one file apart, and `take` counts the calls of one question in a
    sitting, from 1, in the order in which they began.
    """

    model: str
    request: ModelRequest
    response: ModelResponse | None = None
    error: Fault | None = None
    fits_schema: bool = False
    identity: str = ""
    sitting: str = ""
    take: int = 0


def connect_recorded(address: str, *, of: Any) -> Recorded:
    """The model `of`, with every call written into the file of the address: `record:FILE`."""
    return Recorded(of, _path(address))


def connect_replay(address: str, *, of: str | None = None) -> Replay:
    """The calls that a file holds: `replay:FILE`. `of` says whose, where it holds several."""
    return Replay(_path(address), model=of)


def _path(address: str) -> str:
    path = address.partition(":")[2]
    if not path:
        raise ModelError("it names no file", where=address, fix="write replay:FILE or record:FILE")
    return path


class Recorded:
    """A model whose every call is written into a cassette, answers and failures alike.

    A line is in the file as soon as the call has ended; many tasks, threads and models may write
    into one file. Only questions and answers are written, never keys or headers.

    A file may be recorded into again: of a question that it holds already only the takes of the
    new sitting are replayed, and all other questions stay as they were.
    """

    def __init__(self, adapter: Any, path: str | os.PathLike[str]) -> None:
        self._adapter, self.model, self.identity = behind(adapter)
        self._file = Path(path).absolute()
        self._sitting = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._begun: Counter[str] = Counter()
        _begin(self._file)

    @property
    def fits_schema(self) -> bool:
        """As the model itself says."""
        return self._adapter.fits_schema

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Ask, and write down what came of it."""
        take = self._begin_take(request)
        began = time.perf_counter()
        try:
            response = await self._adapter.complete(request, timeout=timeout)
        except CallFailed as error:
            kind = type(error).__name__
            fault = Fault(kind, error.what, error.retryable, error.retry_after)
            self._write(request, take, error=fault)
            # As the replay will raise it, so that both make the same report.
            raise _raised(fault) from error
        if response.latency_ms is None:
            # Measured here, so that the replay tells the same as the recording.
            spent = (time.perf_counter() - began) * 1000.0
            response = msgspec.structs.replace(response, latency_ms=spent)
        self._write(request, take, response=msgspec.structs.replace(response, output=None))
        return response

    def _begin_take(self, request: ModelRequest) -> int:
        """Counted when a call begins: answers come in any order, questions are asked in one."""
        question = codec.digest(request)
        with self._lock:
            self._begun[question] += 1
            return self._begun[question]

    def _write(self, request: ModelRequest, take: int, **outcome: Any) -> None:
        call = Call(
            self.model,
            request,
            fits_schema=self.fits_schema,
            identity=self.identity,
            sitting=self._sitting,
            take=take,
            **outcome,
        )
        _append(self._file, codec.encode(call) + b"\n")


class Replay:
    """The calls of a cassette, given again; nobody is called.

    A question is found by all its fields. Where it was asked several times, the answers come in
    the order in which they were asked for, the last one ever after; where several sittings were
    recorded, those of the last. Equal questions of judges are asked as soon as there is something
    to judge: if their answers differed, a replay may give them to other trials. A question that
    was never recorded fails; the first ones that do say which recording is nearest and where it
    differs.
    """

    def __init__(self, path: str | os.PathLike[str], *, model: str | None = None) -> None:
        self._file = Path(path).absolute()
        calls = list(_calls(self._file))
        self.model = _whose({call.model for _, call in calls}, model, str(path))
        self._calls = [(line, call) for line, call in calls if call.model == self.model]
        first = self._calls[0][1]
        # As recorded, so that a replayed run is the same run to all who compare. A model that was
        # asked with a schema said that it fits them, whatever it found out by that call.
        self.fits_schema = first.fits_schema or first.request.schema is not None
        self.identity = first.identity
        self._lock = threading.Lock()
        self._takes = _takes(call for _, call in self._calls)
        self._hints = HINTS

    async def complete(
        self,
        request: ModelRequest,
        *,
        timeout: float | None = None,  # noqa: ARG002 - nobody is waited for
    ) -> ModelResponse:
        """What was answered when this was asked, or the failure there was."""
        takes = self._takes.get(codec.canonical(request))
        if takes is None:
            raise CallFailed(await self._missing(request))
        with self._lock:
            call = takes.pop(0) if len(takes) > 1 else takes[0]
            self.fits_schema = call.fits_schema
        if call.error is not None:
            raise _raised(call.error)
        assert call.response is not None
        return call.response

    async def _missing(self, request: ModelRequest) -> str:
        with self._lock:
            hint = self._hints > 0
            self._hints -= hint
        told = f"{self._file} holds no recording of this call of {self.model}"
        # To look through the whole cassette takes time, and a few hints are as good as all.
        return f"{told}; {await in_thread(self._nearest, request)}" if hint else told

    def _nearest(self, request: ModelRequest) -> str:
        place = nearest(request, (call.request for _, call in self._calls))
        assert place is not None
        line, call = self._calls[place]
        found = first_difference(request, call.request)
        assert found is not None
        return (
            f"the nearest is on line {line} and differs in {found.field}: "
            f"asked {found.asked}, recorded {found.known}"
        )


def _takes(calls: Iterable[Call]) -> dict[bytes, list[Call]]:
    """The takes of each question in order, of the sitting that was written last."""
    found: dict[bytes, list[Call]] = {}
    for call in calls:
        found.setdefault(codec.canonical(call.request), []).append(call)
    for takes in found.values():
        last = takes[-1].sitting
        takes[:] = sorted((call for call in takes if call.sitting == last), key=lambda call: call.take)
    return found


def _raised(fault: Fault) -> CallFailed:
    return CallFailed(fault.what, retryable=fault.retryable, retry_after=fault.retry_after)


def _whose(models: set[str], wanted: str | None, where: str) -> str:
    """Whose calls are replayed."""
    if not models:
        raise ModelError("the cassette holds no calls", where=where, fix="record some first")
    if wanted is None and len(models) == 1:
        return next(iter(models))
    if wanted in models:
        assert wanted is not None
        return wanted
    what = "several models" if wanted is None else f"no calls of {wanted}"
    raise ModelError(f"the cassette holds {what}", where=where, fix=f"of= one of {', '.join(sorted(models))}")


def _calls(file: Path) -> Iterator[tuple[int, Call]]:
    """The calls of a cassette, by line number; a last line that is cut off is left out."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise ModelError(
            f"the cassette cannot be read: {error.strerror or error}",
            where=str(file),
            fix="record one with record:FILE",
        ) from None
    _check_header(lines[0], str(file))
    for number, line in enumerate(lines[1:], start=2):
        cut_off = number == len(lines) and not _is_json(line)
        if line.strip() and not cut_off:
            yield number, _call(line, f"{file}:{number}")


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return True


def _call(line: bytes, where: str) -> Call:
    try:
        call = msgspec.json.decode(line, type=Call)
    except msgspec.DecodeError as error:
        raise ModelError(
            f"this line is no recorded call: {error}", where=where, fix="delete the line"
        ) from None
    if (call.response is None) == (call.error is None):
        raise ModelError("a recorded call has a response or an error", where=where, fix="delete the line")
    return call


def _check_header(line: bytes, where: str) -> None:
    try:
        version = msgspec.json.decode(line, type=Header).proctor_cassette
    except msgspec.DecodeError:
        raise ModelError(
            "this is not a cassette: its first line is not the header of one",
            where=where,
            fix="give a file that record:FILE wrote",
        ) from None
    if version != SCHEMA_VERSION:
        raise ModelError(
            f"the cassette has schema version {version}; this Proctor reads {SCHEMA_VERSION}",
            where=where,
            fix="update Proctor to the version that wrote it",
        )


def _begin(file: Path) -> None:
    """See that the file is a cassette, or make it one: header and all, or not at all."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            whole = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
            header = Header(SCHEMA_VERSION, f"proctor {VERSION}")
            whole.write_bytes(codec.encode(header) + b"\n")
            try:
                os.link(whole, file)
            except FileExistsError:
                pass  # another process was first
            finally:
                whole.unlink()
        with file.open("rb") as lines:
            _check_header(lines.readline(), str(file))
            cut_off = _is_cut_off(lines)
    except OSError as error:
        raise ModelError(
            f"the cassette cannot be written: {error.strerror or error}",
            where=str(file),
            fix="give a file in a folder that can be written to",
        ) from None
    if cut_off:
        _append(file, b"\n")


def _is_cut_off(lines: BinaryIO) -> bool:
    """True if the last line has no end: whoever wrote it has died, and is not just writing it."""
    for _ in range(LOOKS):
        lines.seek(-1, os.SEEK_END)
        if lines.read(1) == b"\n":
            return False
        time.sleep(LOOK_SECONDS)
    return True


def _append(file: Path, line: bytes) -> None:
    """One line at the end, in one write: lines of several writers never mix."""
    place = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(place, line)
    finally:
        os.close(place)
