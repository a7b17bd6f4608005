"""Cassettes: record every call of a model, and replay the calls without the model."""

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

from proctor.core.aliases import accept_aliases
from proctor.core.resources import describe_os_error
from proctor.core.threads import run_in_thread
from proctor.errors import CallFailed, ModelError
from proctor.models.answer_format import is_json
from proctor.models.wrappers.cached import ModelWrapper, first_difference, nearest_request
from proctor.records import codec
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.validation import explain
from proctor.version import VERSION

SCHEMA_VERSION = 1
# The number of missing calls that get a hint about the nearest recording.
MAX_HINTS = 20
# The number and the interval of checks of an unfinished last line before it is repaired.
CHECKS, CHECK_SECONDS = 5, 0.02


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    proctor_cassette: int
    written_by: str


class RecordedError(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A failed call: the type and message of the error, and whether it can be retried."""

    kind: str
    what: str
    retryable: bool = False
    retry_after: float | None = None


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One call: the model, the request, and the response or the error.

    `recording_id` identifies the object that wrote the call; `take` numbers its calls with the same request,
    from 1, in the order in which they started.
    """

    model: str
    request: ModelRequest
    response: ModelResponse | None = None
    error: RecordedError | None = None
    supports_json_schema: bool = msgspec.field(default=False, name="fits_schema")
    identity: str = ""
    # The name in existing files.
    recording_id: str = msgspec.field(default="", name="sitting")
    take: int = 0


def connect_recorded(address: str, *, source_model: Any) -> RecordingModel:
    """Call the source model, and write every call into the file of the address: `record:FILE`."""
    return RecordingModel(source_model, _file_name(address))


def connect_replay(address: str, *, source_model: str | None = None) -> ReplayModel:
    """Replay the calls in a file: `replay:FILE`. `source_model` selects one of several models."""
    return ReplayModel(_file_name(address), model=source_model)


def _file_name(address: str) -> str:
    path = address.partition(":")[2]
    if not path:
        raise ModelError("the file is missing", where=address, fix="write replay:FILE or record:FILE")
    return path


class RecordingModel(ModelWrapper):
    """A model whose calls are written into a cassette, responses and errors alike.

    Each call is written when it ends; tasks, threads and models may share one file. The file has only
    requests and responses, never keys or headers.

    If you record into an existing file, replays use the new takes of repeated requests and keep all other requests.
    """

    @accept_aliases
    def __init__(self, model: Any, path: str | os.PathLike[str]) -> None:
        super().__init__(model)
        self._file = Path(path).absolute()
        self._recording_id = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._takes: Counter[str] = Counter()
        _open_cassette(self._file)

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Call the model and record the result."""
        # Numbered when a call starts, because responses arrive in any order.
        digest = codec.digest(request)
        with self._lock:
            self._takes[digest] += 1
            take = self._takes[digest]
        started = time.perf_counter()
        try:
            response = await self._adapter.complete(request, timeout=timeout)
        except CallFailed as error:
            recorded_error = RecordedError(type(error).__name__, error.what, error.retryable, error.retry_after)
            self._write(request, take, error=recorded_error)
            # The same error as in the replay, so that both produce the same report.
            raise _to_error(recorded_error) from error
        if response.latency_ms is None:
            # Measured here, so that the replay reports the same latency.
            elapsed = (time.perf_counter() - started) * 1000.0
            response = msgspec.structs.replace(response, latency_ms=elapsed)
        self._write(request, take, response=msgspec.structs.replace(response, output=None))
        return response

    def _write(self, request: ModelRequest, take: int, **outcome: Any) -> None:
        call = Call(
            self.model,
            request,
            supports_json_schema=self.supports_json_schema,
            identity=self.identity,
            recording_id=self._recording_id,
            take=take,
            **outcome,
        )
        _append(self._file, codec.encode(call) + b"\n")


class ReplayModel:
    """Replays the calls of a cassette without calling a model.

    All fields of a request must match. Repeated requests get their responses in the recorded order, and after that the
    last response; of several recordings, the last one counts. Judges send equal requests in no fixed order: if their
    responses differed, a replay may return them to different trials. A request without a recording fails; the first
    failures show the nearest recording and the difference.
    """

    def __init__(self, path: str | os.PathLike[str], *, model: str | None = None) -> None:
        self._file = Path(path).absolute()
        calls = list(_read_calls(self._file))
        self.model = _select_model({call.model for _, call in calls}, model, str(path))
        self._calls = [(line, call) for line, call in calls if call.model == self.model]
        first = self._calls[0][1]
        # Taken from the recording, so that comparisons treat the replay as the same run. A recorded request with a
        # schema means that the model supported schemas.
        self.supports_json_schema = first.supports_json_schema or first.request.schema is not None
        self.identity = first.identity
        self._lock = threading.Lock()
        self._takes = _group_takes(call for _, call in self._calls)
        self._hints_left = MAX_HINTS

    async def complete(
        self,
        request: ModelRequest,
        *,
        timeout: float | None = None,  # noqa: ARG002 - a replay is immediate
    ) -> ModelResponse:
        """Return the recorded response, or raise the recorded error."""
        takes = self._takes.get(codec.encode_canonical(request))
        if takes is None:
            raise CallFailed(await self._describe_missing(request))
        with self._lock:
            call = takes.pop(0) if len(takes) > 1 else takes[0]
            self.supports_json_schema = call.supports_json_schema
        if call.error is not None:
            raise _to_error(call.error)
        assert call.response is not None
        return call.response

    async def _describe_missing(self, request: ModelRequest) -> str:
        with self._lock:
            has_hint = self._hints_left > 0
            self._hints_left -= has_hint
        what = f"{self._file} has no recording of this call of {self.model}"
        # Searching the whole cassette is slow, and a few hints are enough.
        return f"{what}; {await run_in_thread(self._describe_nearest, request)}" if has_hint else what

    def _describe_nearest(self, request: ModelRequest) -> str:
        index = nearest_request(request, (call.request for _, call in self._calls))
        assert index is not None
        line, call = self._calls[index]
        difference = first_difference(request, call.request)
        assert difference is not None
        return (
            f"the nearest is on line {line} and differs in {difference.field}: "
            f"requested {difference.requested}, recorded {difference.stored}"
        )


def _group_takes(calls: Iterable[Call]) -> dict[bytes, list[Call]]:
    """Return the takes of each request in order, from the last recording that contains it."""
    groups: dict[bytes, list[Call]] = {}
    for call in calls:
        groups.setdefault(codec.encode_canonical(call.request), []).append(call)
    for takes in groups.values():
        last = takes[-1].recording_id
        takes[:] = sorted((call for call in takes if call.recording_id == last), key=lambda call: call.take)
    return groups


def _to_error(error: RecordedError) -> CallFailed:
    return CallFailed(error.what, retryable=error.retryable, retry_after=error.retry_after)


def _select_model(models: set[str], name: str | None, where: str) -> str:
    if not models:
        raise ModelError("the cassette has no calls", where=where, fix="record some first")
    if name is None and len(models) == 1:
        return next(iter(models))
    if name is not None and name in models:
        return name
    what = "calls of several models" if name is None else f"no calls of {name}"
    raise ModelError(
        f"the cassette has {what}", where=where, fix=f"set source_model to one of {', '.join(sorted(models))}"
    )


def _read_calls(file: Path) -> Iterator[tuple[int, Call]]:
    """Yield the calls of a cassette with their line numbers; skip an unfinished last line."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise ModelError(
            describe_os_error(error, "the cassette cannot be read"), where=str(file), fix="record one: record:FILE"
        ) from None
    _check_header(lines[0], str(file))
    for number, line in enumerate(lines[1:], start=2):
        is_unfinished = number == len(lines) and not is_json(line)
        if line.strip() and not is_unfinished:
            yield number, _parse_call(line, f"{file}:{number}")


def _parse_call(line: bytes, where: str) -> Call:
    try:
        call = msgspec.json.decode(line, type=Call)
    except msgspec.DecodeError as error:
        raise ModelError(
            f"this line is not a recorded call: {explain(error)}", where=where, fix="delete the line"
        ) from None
    if (call.response is None) == (call.error is None):
        raise ModelError("a recorded call must have either a response or an error", where=where, fix="delete the line")
    return call


def _check_header(line: bytes, where: str) -> None:
    try:
        version = msgspec.json.decode(line, type=Header).proctor_cassette
    except msgspec.DecodeError:
        raise ModelError(
            "this is not a cassette: the first line is not a cassette header",
            where=where,
            fix="choose a file that record:FILE wrote",
        ) from None
    if version != SCHEMA_VERSION:
        raise ModelError(
            f"the cassette has schema version {version}; this Proctor reads {SCHEMA_VERSION}",
            where=where,
            fix="update Proctor to the version that wrote it",
        )


def _open_cassette(file: Path) -> None:
    """Check that the file is a cassette, or create it atomically."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
            header = Header(SCHEMA_VERSION, f"proctor {VERSION}")
            temporary.write_bytes(codec.encode(header) + b"\n")
            try:
                os.link(temporary, file)
            except FileExistsError:
                pass  # Another process created it first.
            finally:
                temporary.unlink()
        with file.open("rb") as lines:
            _check_header(lines.readline(), str(file))
            is_unfinished = _has_unfinished_line(lines)
    except OSError as error:
        raise ModelError(
            describe_os_error(error, "the cassette cannot be written"),
            where=str(file),
            fix="choose a file in a folder that you can write to",
        ) from None
    if is_unfinished:
        _append(file, b"\n")


def _has_unfinished_line(lines: BinaryIO) -> bool:
    """Return True if the writer of the last line has died; a live writer gets time to finish."""
    for _ in range(CHECKS):
        lines.seek(-1, os.SEEK_END)
        if lines.read(1) == b"\n":
            return False
        time.sleep(CHECK_SECONDS)
    return True


def _append(file: Path, line: bytes) -> None:
    """Append a line in one write, so that the lines of several writers never mix."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
