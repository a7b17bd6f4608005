"""Limit the size of outputs, sessions and scores, and the time to encode them.

Encoding an object as JSON runs user code (`__repr__`, `tolist`, `items`), which may hang or return
gigabytes. So plain data is only measured; other objects are encoded in a thread, with a timeout.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeVar, cast

import msgspec

from proctor.core import optional as extras
from proctor.core.isolation import UserCall
from proctor.core.threads import CallThreads
from proctor.engine import timeouts
from proctor.records import codec
from proctor.records.lossless import TAG_START, restore_session, restore_value, tag_value
from proctor.records.run import RunOptions
from proctor.records.score import Score
from proctor.records.session import Session
from proctor.records.trial import EvalResult, Failure, Trial
from proctor.sessions import current as sessions

T = TypeVar("T")

MAX_DEPTH = 200
MAX_REPR_LENGTH = 10_000
# Types whose values have about the same size.
_FIXED_SIZES: tuple[tuple[tuple[type, ...], int], ...] = (
    ((float, type(None)), 5),
    ((dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID, enum.Enum), 40),
)
_COLLECTIONS = (list, tuple, set, frozenset)
RAISE_LIMIT = "raise max_output_bytes (--max-output-bytes; in an eval file: run.max_output_bytes)"


class TooLarge(Exception):
    """A value exceeds the size limit as JSON."""

    def __init__(self, subject: str, size: int, limit: int) -> None:
        super().__init__(
            f"{subject} has about {size:,} bytes as JSON, the limit is {limit:,}. Fix: return less, or {RAISE_LIMIT}"
        )


class NotStorable(Exception):
    """A value could not be encoded as JSON in time."""


class SizeEstimator:
    """Estimates the JSON size of a value in bytes, without running the value's code.

    Shared parts are measured once, so a structure that expands endlessly as JSON is measured fast.
    `is_plain` is False if a part can only be encoded by its own code.

    >>> estimator = SizeEstimator()
    >>> estimator.estimate({"a": [1, 2, None]}), estimator.is_plain
    (19, True)
    """

    __slots__ = ("_sizes", "is_plain")

    def __init__(self) -> None:
        self._sizes: dict[int, int | None] = {}
        self.is_plain = True

    def estimate(self, value: Any, depth: int = 0) -> int:
        size = self._leaf_size(value, type(value))
        if size is not None:
            return size
        known_size = self._sizes.get(id(value), 0)
        if known_size:
            return known_size
        # An entry without a size means that the value contains itself.
        parts = None if known_size is None or depth > MAX_DEPTH else self._list_parts(value, type(value))
        if parts is None:
            self.is_plain = False
            return 1
        self._sizes[id(value)] = None
        total = 2
        for part in parts:
            total += 1 + self.estimate(part, depth + 1)
        self._sizes[id(value)] = total
        return total

    def _leaf_size(self, value: Any, value_type: type) -> int | None:
        """Return the size of a value without parts; None if it has parts."""
        if issubclass(value_type, str):
            return str.__len__(value) + 2
        if issubclass(value_type, int):
            return int.bit_length(value) // 3 + 1
        for types, size in _FIXED_SIZES:
            if issubclass(value_type, types):
                return size
        if issubclass(value_type, bytes | bytearray):
            return len(value) * 4 // 3
        numpy = extras.loaded_module("numpy")
        if numpy is not None and issubclass(value_type, numpy.ndarray | numpy.generic):
            self.is_plain = self.is_plain and value.dtype.kind != "O"
            return int(value.size) * 8
        return None

    def _list_parts(self, value: Any, value_type: type) -> Iterable[Any] | None:
        """Return the parts of a value; None if only its own code knows them."""
        if issubclass(value_type, dict):
            return [*dict.keys(value), *dict.values(value)]
        for collection in _COLLECTIONS:
            if issubclass(value_type, collection):
                return list(collection.__iter__(value))
        if value_type is Fraction:
            return [value.numerator, value.denominator]
        if value_type is complex:
            return [value.real, value.imag]
        if issubclass(value_type, msgspec.Struct):
            return [part for name in value_type.__struct_fields__ for part in (name, getattr(value, name))]
        pydantic = extras.loaded_module("pydantic")
        if pydantic is not None and issubclass(value_type, pydantic.BaseModel):
            attributes = object.__getattribute__(value, "__dict__")
            return [*attributes.keys(), *attributes.values()]
        return None


class OutputLimits:
    """Keeps the stored parts of a trial within the limits of a run."""

    def __init__(self, options: RunOptions, threads: CallThreads) -> None:
        self.limit = options.max_output_bytes
        # A string of this length is within the limit, however it is escaped.
        self.safe_length = self.limit // 6
        self._timeout = options.timeout
        self._threads = threads

    def is_plain(self, value: Any, subject: str) -> bool:
        """True for plain data, False for objects that only their own code can encode.

        Raises `TooLarge` for plain data above the limit.
        """
        estimator = SizeEstimator()
        try:
            size = estimator.estimate(value)
        except (RuntimeError, RecursionError):
            # Another task or thread modified the value.
            return False
        if size > self.limit:
            raise TooLarge(subject, size, self.limit)
        return estimator.is_plain

    async def to_plain(self, value: Any, subject: str, as_type: type[T]) -> T:
        """Encode a value as JSON in a thread, with a timeout, and decode it as plain data."""
        call = UserCall(self._threads.run, encode_or_repr, value)
        if self._timeout is not None:
            call.limit(self._timeout, timeouts.GRACE_SECONDS)
        await call.wait()
        if call.expired:
            raise NotStorable(
                f"{subject} could not be encoded as JSON within {self._timeout:g} s. Fix: return "
                "plain data: strings, numbers, lists and mappings"
            )
        if call.error is not None:
            raise NotStorable(f"{subject} could not be encoded as JSON: {type(call.error).__name__}")
        data: bytes = call.value
        if len(data) > self.limit:
            raise TooLarge(subject, len(data), self.limit)
        plain: Any = msgspec.json.decode(data, type=as_type)
        if TAG_START in data:
            plain = restore_session(plain) if isinstance(plain, Session) else restore_value(plain)
        return cast(T, plain)

    async def limit_output(self, trial: Trial) -> tuple[Trial, Trial]:
        """Return the trial for evaluators and the trial to store; a trial that cannot be stored fails."""
        trial = await self._limit_raw_output(trial)
        try:
            if self.is_plain(trial.output, "the output"):
                return trial, trial
            stored = await self.to_plain(trial.output, "the output", Any)
        except (TooLarge, NotStorable) as error:
            name = "OutputTooLarge" if isinstance(error, TooLarge) else "OutputNotStorable"
            failed = msgspec.structs.replace(trial, output=None, error=Failure(name, str(error)))
            return failed, failed
        return trial, msgspec.structs.replace(trial, output=stored)

    async def _limit_raw_output(self, trial: Trial) -> Trial:
        """Leave out the messages that the target returned, if they cannot be stored."""
        raw, subject = trial.raw_output, "what the target returned"
        if raw is None:
            return trial
        try:
            if self.is_plain(raw, subject):
                return trial
            raw = await self.to_plain(raw, subject, Any)
        except (TooLarge, NotStorable) as error:
            sessions.warn(f"{error}; only the final output and the session are stored")
            # If there is no answer, the trial must still show that messages were returned.
            raw = f"left out: {error}" if trial.output is None else None
        return msgspec.structs.replace(trial, raw_output=raw)

    def needs_check(self, result: EvalResult) -> bool:
        """True if a result contains more than an output and short scores."""
        for score in result.scores.values():
            if score.details or (score.reason and len(score.reason) > self.safe_length):
                return True
        return result.trial.session is not None or bool(result.sessions)

    async def limit_result(self, result: EvalResult) -> EvalResult:
        """Leave out sessions and score details that cannot be stored, with a warning."""
        trial = result.trial
        subject = f"sample {trial.sample.id!r}"
        if trial.session is not None:
            session = await self._limit_session(trial.session, f"the session of {subject}")
            if session is not trial.session:
                trial = msgspec.structs.replace(trial, session=session)
        judge_sessions: dict[str, Session] = {}
        for name, session in result.sessions.items():
            limited = await self._limit_session(session, f"the session of {name} on {subject}")
            if limited is not None:
                judge_sessions[name] = limited
        scores = {name: await self._limit_score(name, score) for name, score in result.scores.items()}
        return EvalResult(trial, scores, judge_sessions, result.delivery)

    async def _limit_session(self, session: Session, subject: str) -> Session | None:
        try:
            if self.is_plain(session, subject):
                return session
            return await self.to_plain(session, subject, Session)
        except (TooLarge, NotStorable, msgspec.MsgspecError) as error:
            sessions.warn(f"{error}; it is left out of the stored result")
            return None

    async def _limit_score(self, name: str, score: Score) -> Score:
        subject = f"the score of {name}"
        try:
            if self.is_plain(score.details, subject) and len(score.reason) <= self.limit:
                return score
            details = await self.to_plain(score.details, subject, dict[str, Any])
        except (TooLarge, NotStorable, msgspec.MsgspecError) as error:
            sessions.warn(f"{error}; its details are left out of the stored result")
            details = {"left_out": str(error)}
        return msgspec.structs.replace(score, reason=score.reason[: self.safe_length], details=details)


def encode_or_repr(value: Any) -> bytes:
    """Encode a value as JSON, or its repr if JSON cannot represent it."""
    try:
        return codec.encode(tag_value(value))
    except BaseException:
        try:
            text = repr(value)[:MAX_REPR_LENGTH]
        except BaseException as error:
            text = f"<{type(value).__qualname__}, which cannot be shown: {type(error).__name__}>"
        plain = text.encode(errors="backslashreplace").decode()
        return codec.encode({"$repr": plain, "$type": type(value).__qualname__})
