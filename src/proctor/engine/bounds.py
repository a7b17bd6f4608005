"""Outputs, sessions and scores within bounds: neither too large nor too slow to be stored.

Turning an object into JSON calls code of the user (`__repr__`, `tolist`, `items`), which may
take for ever or give gigabytes. Plain data is weighed and no more; any other object becomes JSON in
a thread, within the time that a call has.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from proctor.core import optional as extras
from proctor.core.isolation import UserCall
from proctor.core.threads import Threads
from proctor.engine import limits
from proctor.records import codec
from proctor.records.run import RunOptions
from proctor.records.score import Score
from proctor.records.session import Session
from proctor.records.trial import EvalResult, Failure, Trial
from proctor.sessions import current as sessions

T = TypeVar("T")

DEEPEST = 200
LONGEST_REPR = 10_000
_NUMBERS = (float, type(None))
_LEAVES = (
    dt.date, dt.time, dt.timedelta, decimal.Decimal, uuid.UUID, enum.Enum,
)  # fmt: skip
_MANY = (list, tuple, set, frozenset)
HOW_TO_RAISE = "raise the limit: max_output_bytes=… (--max-output-bytes, in an eval file too)"


class TooLarge(Exception):
    """A value has more bytes as JSON than it may have."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(
            f"{what} has about {size:,} bytes as JSON, the limit is {limit:,}. Fix: "
            f"return less, or {HOW_TO_RAISE}"
        )


class NotStorable(Exception):
    """A value could not be turned into JSON in time."""


class Scale:
    """Weighs a value: about how many bytes it has as JSON, without calling any code of its own.

    Shared parts are weighed once, so what grows without end when it is written out does not take
    long. `is_plain` is False when something was found whose JSON only its own code can give.

    >>> scale = Scale()
    >>> scale.weigh({"a": [1, 2, None]}), scale.is_plain
    (19, True)
    """

    __slots__ = ("_known", "is_plain")

    def __init__(self) -> None:
        self._known: dict[int, int | None] = {}
        self.is_plain = True

    def weigh(self, value: Any, depth: int = 0) -> int:
        """About how many bytes a value has as JSON."""
        size = self._leaf(value, type(value))
        if size is not None:
            return size
        known = self._known.get(id(value), 0)
        if known:
            return known
        # If it is known without a size, it holds itself.
        parts = None if known is None or depth > DEEPEST else self._parts(value, type(value))
        if parts is None:
            self.is_plain = False
            return 1
        self._known[id(value)] = None
        total = 2
        for part in parts:
            total += 1 + self.weigh(part, depth + 1)
        self._known[id(value)] = total
        return total

    def _leaf(self, value: Any, kind: type) -> int | None:
        """The size of a value without parts; None if it has some."""
        if issubclass(kind, str):
            return str.__len__(value) + 2
        if issubclass(kind, int):
            return int.bit_length(value) // 3 + 1
        for kinds, size in ((_NUMBERS, 5), (_LEAVES, 40)):
            if issubclass(kind, kinds):
                return size
        if issubclass(kind, bytes | bytearray):
            return len(value) * 4 // 3
        numpy = extras.loaded("numpy")
        if numpy is not None and issubclass(kind, numpy.ndarray | numpy.generic):
            self.is_plain = self.is_plain and value.dtype.kind != "O"
            return int(value.size) * 8
        return None

    def _parts(self, value: Any, kind: type) -> Iterable[Any] | None:
        """What a value is made of; None if only its own code knows."""
        if issubclass(kind, dict):
            return [*dict.keys(value), *dict.values(value)]
        for many in _MANY:
            if issubclass(kind, many):
                return list(many.__iter__(value))
        if kind is Fraction:
            return [value.numerator, value.denominator]
        if kind is complex:
            return [value.real, value.imag]
        if issubclass(kind, msgspec.Struct):
            return [part for name in kind.__struct_fields__ for part in (name, getattr(value, name))]
        pydantic = extras.loaded("pydantic")
        if pydantic is not None and issubclass(kind, pydantic.BaseModel):
            held = object.__getattribute__(value, "__dict__")
            return [*held.keys(), *held.values()]
        return None


class Bounds:
    """Keeps what is stored of a trial within the limits of a run."""

    def __init__(self, options: RunOptions, threads: Threads) -> None:
        self.limit = options.max_output_bytes
        # Such a text is within the limit however it is escaped.
        self.short = self.limit // 6
        self._seconds = options.timeout
        self._threads = threads

    def is_plain(self, value: Any, what: str) -> bool:
        """True for plain data, False for what only its own code can turn into JSON.

        Raises `TooLarge` for plain data above the limit.
        """
        scale = Scale()
        try:
            size = scale.weigh(value)
        except (RuntimeError, RecursionError):
            # It was changed meanwhile, by a task or thread that goes on.
            return False
        if size > self.limit:
            raise TooLarge(what, size, self.limit)
        return scale.is_plain

    async def as_plain(self, value: Any, what: str, as_type: type[T]) -> T:
        """A value as JSON gives it back, made in a thread and within the time of a call."""
        call = UserCall(self._threads.run, written_out, value)
        if self._seconds is not None:
            call.limit(self._seconds, limits.GRACE_SECONDS)
        await call.wait()
        if call.expired:
            raise NotStorable(
                f"{what} could not be turned into JSON within {self._seconds:g} s. Fix: return "
                "plain data: texts, numbers, lists and mappings"
            )
        if call.error is not None:
            raise NotStorable(f"{what} could not be turned into JSON: {type(call.error).__name__}")
        data: bytes = call.value
        if len(data) > self.limit:
            raise TooLarge(what, len(data), self.limit)
        return msgspec.json.decode(data, type=as_type)

    async def output_of(self, trial: Trial) -> tuple[Trial, Trial]:
        """A trial as evaluators see it, and as it is stored; both with an error if it cannot be."""
        trial = await self._with_raw_output(trial)
        try:
            if self.is_plain(trial.output, "the output"):
                return trial, trial
            stored = await self.as_plain(trial.output, "the output", Any)
        except (TooLarge, NotStorable) as error:
            kind = "OutputTooLarge" if isinstance(error, TooLarge) else "OutputNotStorable"
            failed = msgspec.structs.replace(trial, output=None, error=Failure(kind, str(error)))
            return failed, failed
        return trial, msgspec.structs.replace(trial, output=stored)

    async def _with_raw_output(self, trial: Trial) -> Trial:
        """A trial whose messages, as the target returned them, can be stored; else without them."""
        raw = trial.raw_output
        if raw is None:
            return trial
        try:
            if self.is_plain(raw, "what the target returned"):
                return trial
            raw = await self.as_plain(raw, "what the target returned", Any)
        except (TooLarge, NotStorable) as error:
            sessions.warn(f"{error}; only its last answer and its session are kept")
            # Without an answer it must still be known that messages were returned.
            raw = f"left out: {error}" if trial.output is None else None
        return msgspec.structs.replace(trial, raw_output=raw)

    def needs_a_look(self, result: EvalResult) -> bool:
        """True if a result holds more than texts and numbers beside its output."""
        for score in result.scores.values():
            if score.details or (score.reason and len(score.reason) > self.short):
                return True
        return result.trial.session is not None or bool(result.sessions)

    async def settle(self, result: EvalResult) -> EvalResult:
        """A result whose session and scores can be stored; the rest is left out, with a warning."""
        trial = result.trial
        about = f"sample {trial.sample.id!r}"
        if trial.session is not None:
            session = await self._session(trial.session, f"the session of {about}")
            if session is not trial.session:
                trial = msgspec.structs.replace(trial, session=session)
        told = {
            name: await self._session(session, f"the session of {name} on {about}")
            for name, session in result.sessions.items()
        }
        kept = {name: session for name, session in told.items() if session is not None}
        scores = {name: await self._score(name, one) for name, one in result.scores.items()}
        return EvalResult(trial, scores, kept, result.delivery)

    async def _session(self, session: Session, what: str) -> Session | None:
        try:
            if self.is_plain(session, what):
                return session
            return await self.as_plain(session, what, Session)
        except (TooLarge, NotStorable, msgspec.MsgspecError) as error:
            sessions.warn(f"{error}; it is left out of the stored result")
            return None

    async def _score(self, name: str, score: Score) -> Score:
        what = f"the score of {name}"
        try:
            if self.is_plain(score.details, what) and len(score.reason) <= self.limit:
                return score
            details = await self.as_plain(score.details, what, dict[str, Any])
        except (TooLarge, NotStorable, msgspec.MsgspecError) as error:
            sessions.warn(f"{error}; its details are left out of the stored result")
            details = {"left_out": str(error)}
        reason = score.reason[: self.short]
        return msgspec.structs.replace(score, reason=reason, details=details)


def written_out(value: Any) -> bytes:
    """A value as JSON; what JSON cannot hold as its repr, and that may fail as well."""
    try:
        return codec.encode(value)
    except BaseException:
        try:
            shown = repr(value)[:LONGEST_REPR]
        except BaseException as error:
            shown = f"<{type(value).__qualname__}, which cannot be shown: {type(error).__name__}>"
        plain = shown.encode(errors="backslashreplace").decode()
        return codec.encode({"$repr": plain, "$type": type(value).__qualname__})
