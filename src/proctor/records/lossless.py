"""Values that JSON has no word for, written so that they come back as they were.

A tuple is not a list, NaN is not null and the key 1 is not "1": what is scored again must be what
was scored first. Such a value is written as `{"$py": kind, "value": …}`; everything that JSON can
hold is written as it is. Objects of the user's own classes are left to the codec.
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

from proctor.records.sample import Sample
from proctor.records.session import Session
from proctor.records.trial import EvalResult

KIND, VALUE = "$py", "value"
# How a tag looks in compact JSON: where this is not, there is nothing to restore.
MARK = b'"$py":'
DEEPEST = 200
# The fields of a session's events that may hold anything.
_FREE = ("content", "arguments", "result", "data")
_LARGEST_INT = 2**63 - 1
_HALVES = re.compile("([\ud800-\udfff])")
_MOST_SEEN = 1_000_000


def tagged(value: Any) -> Any:
    """The value with tags where JSON would change it; the same object if there is nothing to tag.

    >>> tagged({"a": [1, (2, 3)]})
    {'a': [1, {'$py': 'tuple', 'value': [2, 3]}]}
    >>> tagged({1: float("nan")})
    {'$py': 'dict', 'value': [[1, {'$py': 'float', 'value': 'nan'}]]}
    """
    return value if is_plain(value) else _tagged(value, frozenset())


def is_plain(value: Any) -> bool:  # noqa: C901 - one loop, for speed
    """True if JSON gives a value back as it is: nothing is copied to find that out.

    >>> is_plain({"a": [1, 2.5, None]}), is_plain({"a": (1, 2)})
    (True, False)
    """
    waiting: list[Iterable[Any]] = [(value,)]
    seen = 0
    while waiting:
        for item in waiting.pop():
            kind = type(item)
            if kind is str:
                if not item.isascii() and _HALVES.search(item):
                    return False
            elif kind is int:
                if not -_LARGEST_INT <= item <= _LARGEST_INT:
                    return False
            elif kind is float:
                if not math.isfinite(item):
                    return False
            elif kind is list:
                waiting.append(item)
                seen += len(item)
            elif kind is dict:
                for key in item:
                    if type(key) is not str or key == KIND:
                        return False
                    if not key.isascii() and _HALVES.search(key):
                        return False
                waiting.append(item.values())
                seen += len(item)
            elif kind is not bool and item is not None:
                return False
        if seen > _MOST_SEEN:
            # Perhaps it contains itself.
            return False
    return True


def _tagged(value: Any, within: frozenset[int]) -> Any:
    kind = type(value)
    if kind in (bool, type(None)):
        return value
    if kind in (str, int, float):
        return _tagged_scalar(value)
    if id(value) in within or len(within) > DEEPEST:
        return value
    inside = within | {id(value)}
    if kind is list:
        return [_tagged(item, inside) for item in value]
    if kind is dict:
        return _tagged_dict(value, inside)
    if isinstance(value, tuple) and not hasattr(value, "__struct_fields__"):
        return _tag("tuple", [_tagged(item, inside) for item in value])
    if kind in (set, frozenset):
        items = [_tagged(item, inside) for item in value]
        return _tag(kind.__name__, sorted(items, key=repr))
    write = _WRITTEN.get(kind)
    return value if write is None else _tag(kind.__name__, write(value))


def restored(value: Any) -> Any:
    """The value that was tagged, after it was read from JSON.

    >>> restored(tagged((1, {2, 3}, b"x"))) == (1, {2, 3}, b"x")
    True
    """
    if isinstance(value, list):
        return [restored(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {KIND, VALUE}:
        read = _READ.get(value[KIND]) if isinstance(value[KIND], str) else None
        if read is not None:
            try:
                return read(restored(value[VALUE]))
            except (TypeError, ValueError, ArithmeticError):
                # It was not written by us: it stays as it is.
                return value
    return {key: restored(item) for key, item in value.items()}


def tagged_result(result: EvalResult) -> EvalResult:
    """A result whose sample, outputs and sessions are tagged; itself if there is nothing to tag."""
    trial = result.trial
    sample = trial.sample
    parts = sample.input, sample.expected, trial.output, trial.raw_output
    asked, wanted, answer, raw = parts
    # Of most results a few texts are all there is; this is done for every one of them.
    if (
        type(asked) is type(answer) is str
        and asked.isascii()
        and answer.isascii()
        and (wanted is None or (type(wanted) is str and wanted.isascii()))
        and raw is None
        and not (trial.session or sample.metadata or result.sessions)
    ):
        return result
    new = [tagged(part) for part in parts]
    metadata = sample.metadata
    if metadata or metadata is None:
        if not isinstance(metadata, Mapping):
            raise TypeError("the metadata of a sample is a mapping")
        metadata = tagged(metadata)
    session = None if trial.session is None else tagged_session(trial.session)
    same = all(map(is_, new, parts)) and metadata is sample.metadata and session is trial.session
    if same and not result.sessions:
        return result
    if not same:
        sample = Sample(sample.id, new[0], new[1], metadata)
        trial = msgspec.structs.replace(
            trial, sample=sample, output=new[2], session=session, raw_output=new[3]
        )
    sessions = {name: tagged_session(each) for name, each in result.sessions.items()}
    return msgspec.structs.replace(result, trial=trial, sessions=sessions)


def restored_result(result: EvalResult) -> EvalResult:
    """The result that was tagged."""
    trial = result.trial
    session = None if trial.session is None else restored_session(trial.session)
    trial = msgspec.structs.replace(
        trial,
        sample=restored_sample(trial.sample),
        output=restored(trial.output),
        session=session,
        raw_output=restored(trial.raw_output),
    )
    sessions = {name: restored_session(each) for name, each in result.sessions.items()}
    return msgspec.structs.replace(result, trial=trial, sessions=sessions)


def restored_sample(sample: Sample[Any, Any]) -> Sample[Any, Any]:
    """The sample that was tagged."""
    metadata = restored(sample.metadata)
    return Sample(sample.id, restored(sample.input), restored(sample.expected), metadata)


def tagged_session(session: Session) -> Session:
    """A session whose events hold what JSON can hold; itself if they do already."""
    return _session(session, tagged)


def restored_session(session: Session) -> Session:
    """The session that was tagged."""
    return _session(session, restored)


def _session(session: Session, change: Callable[[Any], Any]) -> Session:
    events = [_event(event, change) for event in session.events]
    same = all(map(is_, events, session.events))
    return session if same else Session(events)


def _event(event: Any, change: Callable[[Any], Any]) -> Any:
    old = {name: getattr(event, name) for name in _FREE if name in event.__struct_fields__}
    new = {name: change(value) for name, value in old.items()}
    changed = {name: value for name, value in new.items() if value is not old[name]}
    return msgspec.structs.replace(event, **changed) if changed else event


def _tag(kind: str, value: Any) -> dict[str, Any]:
    return {KIND: kind, VALUE: value}


def _tagged_scalar(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else _tag("float", repr(value))
    if isinstance(value, int):
        return value if -_LARGEST_INT <= value <= _LARGEST_INT else _tag("int", hex(value))
    if not value.isascii() and _HALVES.search(value):
        # Half a character, as its number; the text around it stays readable, also for redaction.
        return _tag("str", [_half(part) for part in _HALVES.split(value) if part])
    return value


def _half(part: str) -> str | int:
    return ord(part) if _HALVES.fullmatch(part) else part


def _tagged_dict(value: dict[Any, Any], within: frozenset[int]) -> dict[str, Any]:
    items = {key: _tagged(item, within) for key, item in value.items()}
    is_tagless = all(type(key) is str and _tagged_scalar(key) is key for key in value)
    if is_tagless and KIND not in value:
        return items
    # Also a mapping that only looks like a tag.
    return _tag("dict", [[_tagged(key, within), item] for key, item in items.items()])


def _encoded(data: Any) -> str:
    return b64encode(bytes(data)).decode()


def _ratio(number: Fraction) -> Any:
    """As it is read by people; of integers that are too long for Python to spell out, both."""
    parts = [tagged(number.numerator), tagged(number.denominator)]
    return str(number) if all(type(part) is int for part in parts) else parts


_WRITTEN: Mapping[type, Callable[[Any], Any]] = {
    bytes: _encoded,
    bytearray: _encoded,
    complex: lambda number: [tagged(number.real), tagged(number.imag)],
    Decimal: str,
    Fraction: _ratio,
    UUID: str,
    datetime: lambda moment: [moment.isoformat(), moment.fold],
    date: date.isoformat,
    time: lambda moment: [moment.isoformat(), moment.fold],
    timedelta: lambda span: [span.days, span.seconds, span.microseconds],
}


def _moment(kind: Any) -> Callable[[Any], Any]:
    return lambda written: kind.fromisoformat(written[0]).replace(fold=written[1])


_READ: Mapping[str, Callable[[Any], Any]] = {
    "float": float,
    "int": lambda text: int(text, 16),
    "str": lambda parts: "".join(chr(part) if type(part) is int else part for part in parts),
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": lambda pairs: {key: item for key, item in pairs},  # noqa: C416 - pairs of two, or refused
    "bytes": b64decode,
    "bytearray": lambda text: bytearray(b64decode(text)),
    "complex": lambda parts: complex(*parts),
    "Decimal": Decimal,
    "Fraction": lambda said: Fraction(*said) if isinstance(said, list) else Fraction(said),
    "UUID": UUID,
    "datetime": _moment(datetime),
    "date": date.fromisoformat,
    "time": _moment(time),
    "timedelta": lambda parts: timedelta(*parts),
}
