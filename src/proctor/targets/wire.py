"""What goes out to a program or an endpoint, and what comes back: one JSON object each way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from proctor.errors import CallFailed
from proctor.records import codec
from proctor.records.sample import Sample
from proctor.records.session import Session, Usage
from proctor.records.trial import Reply
from proctor.sessions import current as sessions

MOST_BYTES = 64 * 1024 * 1024
LOOKED_AT = 16 * 1024


class Answer(msgspec.Struct, frozen=True):
    """What a program or endpoint says: `output`, or `error`; fields not named here are ignored.

    `usage` and `session` may go with an output. `retryable` with an error says that the same
    call may succeed later.
    """

    output: Any = msgspec.UNSET
    usage: Any = None
    session: Session | None = None
    error: Any = None
    retryable: bool = False


def question(sample: Sample[Any, Any], options: Mapping[str, Any]) -> bytes:
    """The call as JSON. The expected value is never part of it.

    >>> question(Sample("1", "2 + 2?", "4"), {"model": "small"})
    b'{"id":"1","input":"2 + 2?","options":{"model":"small"}}'
    """
    return codec.encode({"id": sample.id, "input": sample.input, "options": options})


def reply_from(data: bytes, speaker: str, hide: Callable[[str], str] = str) -> Reply:
    """Read an answer, or raise what is wrong with it; `hide` takes secrets out of the message.

    >>> reply_from(b'{"output": "4"}', "the program").output
    '4'
    """
    if not data.strip():
        raise CallFailed(f"{speaker} answered nothing; expected JSON with an 'output'")
    try:
        answer = msgspec.json.decode(data, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        said = f"{speaker} did not answer in JSON as expected ({error})"
        raise CallFailed(f"{said}: {beginning(data, hide)}") from None
    failure = _failure(answer, hide)
    if failure is not None:
        raise failure
    if answer.output is msgspec.UNSET:
        raise CallFailed(f"{speaker} answered without an 'output': {beginning(data, hide)}")
    return Reply(answer.output, _usage(answer.usage, speaker), answer.session)


def _usage(reported: Any, speaker: str) -> Usage | None:
    """What an answer says of its usage; one with impossible numbers is not refused for them."""
    if reported is None:
        return None
    known = Usage.__struct_fields__
    if not isinstance(reported, dict) or reported.keys() - set(known):
        raise CallFailed(
            f"{speaker} did not answer in JSON as expected: its usage may have "
            f"{', '.join(known)}, each a number"
        )
    usage = sessions.checked_usage(Usage(**reported), speaker)
    return None if usage == Usage() else usage


def failure_in(data: bytes) -> CallFailed | None:
    """The error that an answer tells of, if it is an answer and tells of one.

    >>> print(failure_in(b'{"error": "no such model"}'))
    no such model
    """
    try:
        return _failure(msgspec.json.decode(data, type=Answer), str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _failure(answer: Answer, hide: Callable[[str], str]) -> CallFailed | None:
    if not answer.error:
        return None
    error = answer.error
    text = error if isinstance(error, str) else codec.encode(error).decode()
    return CallFailed(hide(text), retryable=answer.retryable)


def beginning(data: bytes, hide: Callable[[str], str] = str, length: int = 200) -> str:
    """The first characters of a text, for an error message.

    >>> beginning(b"abcdef", length=3)
    'abc…'
    """
    # Hidden before it is cut: half a secret must not be left at the edge.
    text = hide(data[:LOOKED_AT].decode("utf-8", "replace")).strip()
    return text if len(text) <= length else text[:length] + "…"
