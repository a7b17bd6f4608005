"""Encode results as JSON that can always be stored and read back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeVar

import msgspec

from proctor.records import codec
from proctor.records.codec import ENCODE_ERRORS
from proctor.records.lossless import TAG_START, restore_result, restore_sample, tag_result, tag_session, tag_value
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Event, Session, Usage
from proctor.records.trial import EvalResult, Failure
from proctor.sessions import current as sessions

T = TypeVar("T")

MAX_REPR_LENGTH = 10_000

_read_tagged = msgspec.json.Decoder(EvalResult).decode


def decode_result(data: bytes) -> EvalResult:
    """Decode a stored result with its original values."""
    result = _read_tagged(data)
    return restore_result(result) if TAG_START in data else result


class _Trial(msgspec.Struct):
    sample: Sample[Any, Any]


class _Result(msgspec.Struct):
    trial: _Trial


_decode_partially = msgspec.json.Decoder(_Result).decode


def decode_sample(data: bytes) -> Sample[Any, Any]:
    """Decode only the sample of a stored result."""
    sample = _decode_partially(data).trial.sample
    return restore_sample(sample) if TAG_START in data else sample


def encode_result(result: EvalResult) -> tuple[bytes, EvalResult]:
    """Return a result as JSON, and the result that this JSON represents.

    They differ only if JSON cannot represent a value or a value has the wrong type: an output or a session event is
    then stored as its repr (an event with a warning), and a usage is omitted.
    """
    try:
        trial = result.trial
        if trial.latency_ms is not None and not isfinite(trial.latency_ms):
            raise ValueError("the latency is not finite")
        data = codec.encode(tag_result(result))
        is_user_made = trial.usage is not None or trial.session is not None or result.sessions
        if is_user_made:
            # Users create these records, and nothing has checked their types yet.
            decode_result(data)
    except (*ENCODE_ERRORS, AttributeError):
        result = _replace_unstorable(result)
        return codec.encode(tag_result(result)), result
    return data, result


def encode_text_results(results: Sequence[EvalResult]) -> list[bytes] | None:
    """Return results that hold only strings as lines of JSON, or None if one holds anything else."""
    for result in results:
        trial = result.trial
        sample = trial.sample
        expected, latency = sample.expected, trial.latency_ms
        if (
            not type(sample.input) is type(trial.output) is str
            or not (type(expected) is str or expected is None)
            or not (type(latency) is float and isfinite(latency))
            or trial.raw_output is not None
            or trial.usage is not None
            or (trial.session or sample.metadata or result.sessions)
        ):
            return None
    try:
        return codec.encode_each(results)
    except ENCODE_ERRORS:
        # A string with a lone surrogate; `encode_result` tags it.
        return None


def _replace_unstorable(result: EvalResult) -> EvalResult:
    trial = result.trial
    sample = trial.sample
    trial = msgspec.structs.replace(
        trial,
        sample=Sample(
            _text(sample.id),
            _value(sample.input),
            _value(sample.expected),
            _mapping(sample.metadata),
            sample.evaluators,
        ),
        output=_value(trial.output),
        error=None if trial.error is None else _failure(trial.error),
        latency_ms=_finite(trial.latency_ms),
        usage=_if_storable(trial.usage, Usage),
        session=None if trial.session is None else _session(trial.session),
        raw_output=_value(trial.raw_output),
    )
    scores = {name: _score(score) for name, score in result.scores.items()}
    sessions_by_evaluator = {name: _session(session) for name, session in result.sessions.items()}
    return EvalResult(trial, scores, sessions_by_evaluator, result.delivery, result.skipped)


def _session(session: Session) -> Session:
    if _if_storable(session, Session) is not None:
        return session
    return Session([_event(event) for event in session])


def _event(event: Event) -> Event:
    if _if_storable(Session([event]), Session) is not None:
        return event
    kind = event.kind if isinstance(event, CustomEvent) else type(event).__name__
    sessions.warn(
        f"an event of a session cannot be stored as it is ({_text(kind)}): the history stores it as "
        "text. Fix: give its fields the documented types, with values that JSON can hold"
    )
    if isinstance(event, CustomEvent):
        return CustomEvent(_text(kind), _value(event.data))
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return CustomEvent(kind, msgspec.json.decode(codec.encode(_mapping(fields))))


def _score(score: Score) -> Score:
    if _if_storable(score, Score) is not None:
        return score
    details = {key: _plain(value) for key, value in _mapping(score.details).items()}
    return Score(score.value, score.passed, _text(score.reason), details, score.status)


def _finite(number: Any) -> float | None:
    return float(number) if isinstance(number, int | float) and isfinite(number) else None


def _failure(failure: Failure) -> Failure:
    return Failure(*map(_text, (failure.kind, failure.message, failure.traceback)))


def _if_storable(part: T | None, kind: type[T]) -> T | None:
    """Return the value if it can be written and read back, else None."""
    try:
        stored = tag_session(part) if isinstance(part, Session) else part
        msgspec.json.decode(codec.encode(stored), type=kind | None)
    except (*ENCODE_ERRORS, AttributeError):
        return None
    return part


def _mapping(values: Any) -> dict[str, Any]:
    if not isinstance(values, Mapping):
        return {} if values is None else {"value": _value(values)}
    return {_text(key): _value(value) for key, value in values.items()}


def _value(value: Any) -> Any:
    return _keep_if_storable(value, tag_value)


def _plain(value: Any) -> Any:
    """Return a detail of a score if JSON can represent it without tags, else its repr."""
    return _keep_if_storable(value, lambda item: item)


def _keep_if_storable(value: Any, prepare: Callable[[Any], Any]) -> Any:
    try:
        codec.encode(prepare(value))
    except ENCODE_ERRORS:
        return {"$repr": _text(_repr(value))[:MAX_REPR_LENGTH], "$type": type(value).__qualname__}
    return value


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__qualname__}, which cannot be shown: {type(error).__name__}>"


def _text(value: Any) -> str:
    """Replace the surrogates in a string, which UTF-8 cannot encode."""
    return str(value).encode(errors="backslashreplace").decode()
