"""Encode Python values that JSON would change (tuples, NaN, keys that are not strings) without loss.

Such a value is written as `{"$py": kind, "value": …}`; other values are written unchanged. Instances of custom classes
are written as the data in them.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from operator import is_
from typing import Any
from uuid import UUID

import msgspec

from proctor.records.objects import ENCODE_ERRORS, convert_array, is_array, to_builtins
from proctor.records.sample import Sample
from proctor.records.session import Session
from proctor.records.trial import EvalResult

KIND, VALUE = "$py", "value"
# The start of a tag in compact JSON: data without it needs no restoring.
TAG_START = b'"$py":'
MAX_DEPTH = 200
# The fields of events that may hold any value.
_ANY_VALUE_FIELDS = ("content", "arguments", "result", "data")
_MAX_INT = 2**63 - 1
_SURROGATES = re.compile("([\ud800-\udfff])")
# A container with at least this many items that occurs twice may contain itself.
_MANY_ITEMS = 10_000


def tag_value(value: Any) -> Any:
    """Tag the parts of a value that JSON would change, such as tuples; return the same object if there are none."""
    return value if is_plain(value) else _tag_any(value, frozenset())


def is_plain(value: Any) -> bool:  # noqa: C901 - one loop, for speed
    """True if JSON preserves a value; nothing is copied."""
    pending: list[Iterable[Any]] = [(value,)]
    containers: set[int] = set()
    count = 0
    while pending:
        for item in pending.pop():
            kind = type(item)
            if kind is str:
                if not item.isascii() and _SURROGATES.search(item):
                    return False
            elif kind is int:
                if not -_MAX_INT <= item <= _MAX_INT:
                    return False
            elif kind is float:
                if not math.isfinite(item):
                    return False
            elif kind is list:
                pending.append(item)
                count += len(item)
                if count > _MANY_ITEMS:
                    if id(item) in containers:
                        return False
                    containers.add(id(item))
            elif kind is dict:
                for key in item:
                    if type(key) is not str or key == KIND:
                        return False
                    if not key.isascii() and _SURROGATES.search(key):
                        return False
                pending.append(item.values())
                count += len(item)
                if count > _MANY_ITEMS:
                    if id(item) in containers:
                        return False
                    containers.add(id(item))
            elif kind is not bool and item is not None:
                return False
    return True


def _tag_any(value: Any, parents: frozenset[int]) -> Any:
    kind = type(value)
    if kind in (bool, type(None)):
        return value
    if kind in (str, int, float):
        return _tag_scalar(value)
    if id(value) in parents or len(parents) > MAX_DEPTH:
        return value
    inner = parents | {id(value)}
    if kind is list:
        return [_tag_any(item, inner) for item in value]
    if kind is dict:
        return _tag_dict(value, inner)
    if isinstance(value, tuple) and not hasattr(value, "__struct_fields__"):
        return _tag("tuple", [_tag_any(item, inner) for item in value])
    if kind in (set, frozenset):
        items = [_tag_any(item, inner) for item in value]
        return _tag(kind.__name__, sorted(items, key=repr))
    encode = _ENCODERS.get(kind)
    return _tag_object(value, inner) if encode is None else _tag(kind.__name__, encode(value))


def _tag_object(value: Any, parents: frozenset[int]) -> Any:
    """Tag the parts of an object's JSON form that JSON would change; return the object itself if there are none."""
    try:
        built = convert_array(value) if is_array(value) else to_builtins(value)
    except ENCODE_ERRORS:
        # One of its mappings has keys that msgspec refuses, or the object contains itself.
        names = getattr(value, "__struct_fields__", getattr(value, "__dataclass_fields__", None))
        return value if names is None else {name: _tag_any(getattr(value, name), parents) for name in names}
    return value if is_plain(built) else _tag_any(built, parents)


def restore_value(value: Any) -> Any:
    """Restore a tagged value that was read from JSON."""
    if isinstance(value, list):
        return [restore_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {KIND, VALUE}:
        decode = _DECODERS.get(value[KIND]) if isinstance(value[KIND], str) else None
        if decode is not None:
            try:
                return decode(restore_value(value[VALUE]))
            except (TypeError, ValueError, ArithmeticError):
                # The mapping only looks like a tag.
                return value
    return {key: restore_value(item) for key, item in value.items()}


def tag_result(result: EvalResult) -> EvalResult:
    """Tag the sample, outputs and sessions of a result; return the same result if there is nothing to tag."""
    trial = result.trial
    sample = trial.sample
    parts = sample.input, sample.expected, trial.output, trial.raw_output
    question, expected, answer, raw = parts
    # A fast path for most results: a few ASCII strings.
    if (
        type(question) is type(answer) is str
        and question.isascii()
        and answer.isascii()
        and (expected is None or (type(expected) is str and expected.isascii()))
        and raw is None
        and not (trial.session or sample.metadata or result.sessions)
    ):
        return result
    new = [tag_value(part) for part in parts]
    metadata = sample.metadata
    if metadata or metadata is None:
        if not isinstance(metadata, Mapping):
            raise TypeError("the metadata of a sample is a mapping")
        metadata = tag_value(metadata)
    session = None if trial.session is None else tag_session(trial.session)
    is_same = all(map(is_, new, parts)) and metadata is sample.metadata and session is trial.session
    if is_same and not result.sessions:
        return result
    if not is_same:
        sample = Sample(sample.id, new[0], new[1], metadata, sample.evaluators)
        trial = msgspec.structs.replace(trial, sample=sample, output=new[2], session=session, raw_output=new[3])
    sessions = {name: tag_session(evaluator_session) for name, evaluator_session in result.sessions.items()}
    return msgspec.structs.replace(result, trial=trial, sessions=sessions)


def restore_result(result: EvalResult) -> EvalResult:
    """Restore a tagged result."""
    trial = result.trial
    session = None if trial.session is None else restore_session(trial.session)
    trial = msgspec.structs.replace(
        trial,
        sample=restore_sample(trial.sample),
        output=restore_value(trial.output),
        session=session,
        raw_output=restore_value(trial.raw_output),
    )
    sessions = {name: restore_session(evaluator_session) for name, evaluator_session in result.sessions.items()}
    return msgspec.structs.replace(result, trial=trial, sessions=sessions)


def restore_sample(sample: Sample[Any, Any]) -> Sample[Any, Any]:
    """Restore a tagged sample."""
    metadata = restore_value(sample.metadata)
    return Sample(sample.id, restore_value(sample.input), restore_value(sample.expected), metadata, sample.evaluators)


def tag_session(session: Session) -> Session:
    """Tag the events of a session; return the same session if there is nothing to tag."""
    return _convert_session(session, tag_value)


def restore_session(session: Session) -> Session:
    """Restore a tagged session."""
    return _convert_session(session, restore_value)


def _convert_session(session: Session, convert: Callable[[Any], Any]) -> Session:
    events = [_convert_event(event, convert) for event in session.events]
    return session if all(map(is_, events, session.events)) else Session(events)


def _convert_event(event: Any, convert: Callable[[Any], Any]) -> Any:
    old = {name: getattr(event, name) for name in _ANY_VALUE_FIELDS if name in event.__struct_fields__}
    new = {name: convert(value) for name, value in old.items()}
    changed = {name: value for name, value in new.items() if value is not old[name]}
    return msgspec.structs.replace(event, **changed) if changed else event


def _tag(kind: str, value: Any) -> dict[str, Any]:
    return {KIND: kind, VALUE: value}


def _tag_scalar(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else _tag("float", repr(value))
    if isinstance(value, int):
        return value if -_MAX_INT <= value <= _MAX_INT else _tag("int", hex(value))
    if not value.isascii() and _SURROGATES.search(value):
        # Surrogates become numbers; the rest of the string stays readable for redaction.
        parts = [part for part in _SURROGATES.split(value) if part]
        return _tag("str", [ord(part) if _SURROGATES.fullmatch(part) else part for part in parts])
    return value


def _tag_dict(value: dict[Any, Any], parents: frozenset[int]) -> dict[str, Any]:
    items = {key: _tag_any(item, parents) for key, item in value.items()}
    has_plain_keys = all(type(key) is str and _tag_scalar(key) is key for key in value)
    if has_plain_keys and KIND not in value:
        return items
    # This includes a mapping that only looks like a tag.
    return _tag("dict", [[_tag_any(key, parents), item] for key, item in items.items()])


def _encode_bytes(data: Any) -> str:
    return b64encode(bytes(data)).decode()


def _encode_fraction(number: Fraction) -> Any:
    """Encode a fraction as a string, or as two numbers if they are too long for Python to print."""
    parts = [tag_value(number.numerator), tag_value(number.denominator)]
    return str(number) if all(type(part) is int for part in parts) else parts


_ENCODERS: Mapping[type, Callable[[Any], Any]] = {
    bytes: _encode_bytes,
    bytearray: _encode_bytes,
    complex: lambda number: [tag_value(number.real), tag_value(number.imag)],
    Decimal: str,
    Fraction: _encode_fraction,
    UUID: str,
    datetime: lambda moment: [moment.isoformat(), moment.fold],
    date: date.isoformat,
    time: lambda moment: [moment.isoformat(), moment.fold],
    timedelta: lambda span: [span.days, span.seconds, span.microseconds],
}


def _make_decoder(kind: Any) -> Callable[[Any], Any]:
    return lambda parts: kind.fromisoformat(parts[0]).replace(fold=parts[1])


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "int": lambda text: int(text, 16),
    "str": lambda parts: "".join(chr(part) if type(part) is int else part for part in parts),
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": lambda pairs: {key: item for key, item in pairs},  # noqa: C416 - items must be pairs
    "bytes": b64decode,
    "bytearray": lambda text: bytearray(b64decode(text)),
    "complex": lambda parts: complex(*parts),
    "Decimal": Decimal,
    "Fraction": lambda data: Fraction(*data) if isinstance(data, list) else Fraction(data),
    "UUID": UUID,
    "datetime": _make_decoder(datetime),
    "date": date.fromisoformat,
    "time": _make_decoder(time),
    "timedelta": lambda parts: timedelta(*parts),
}
