"""The JSON protocol of commands and HTTP endpoints: one object in each direction."""

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

MAX_BYTES = 64 * 1024 * 1024
_EXCERPT_BYTES = 16 * 1024


class WireResponse(msgspec.Struct, frozen=True):
    """A response: `output` or `error`; other fields are ignored.

    `usage` and `session` may accompany an output. `retryable` with an error means that the same call may succeed later.
    """

    output: Any = msgspec.UNSET
    usage: Any = None
    session: Session | None = None
    error: Any = None
    retryable: bool = False


def encode_call(sample: Sample[Any, Any], options: Mapping[str, Any]) -> bytes:
    """Encode a call as JSON, without the expected value."""
    return codec.encode({"id": sample.id, "input": sample.input, "options": options})


def parse_response(
    data: bytes, name: str, redact: Callable[[str], str] = str, advise: Callable[[bytes], str] | None = None
) -> Reply:
    """Parse a response or raise its error; `redact` removes secrets from messages.

    `advise` returns the fix for a response without an output.
    """
    if not data.strip():
        raise CallFailed(f"{name} sent an empty response; expected JSON with an 'output'")
    try:
        response = msgspec.json.decode(data, type=WireResponse)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CallFailed(f"{name} sent invalid JSON ({error}): {excerpt(data, redact)}") from None
    failure = _to_failure(response, redact)
    if failure is not None:
        raise failure
    if response.output is msgspec.UNSET:
        fix = "" if advise is None else f"\nFix: {redact(advise(data))}"
        raise CallFailed(f"{name} sent a response without an 'output': {excerpt(data, redact)}{fix}")
    return Reply(response.output, _parse_usage(response.usage, name), response.session)


def _parse_usage(reported: Any, name: str) -> Usage | None:
    if reported is None:
        return None
    fields = Usage.__struct_fields__
    if not isinstance(reported, dict) or reported.keys() - set(fields):
        raise CallFailed(f"{name} sent an invalid usage: it may have {', '.join(fields)}, each a number")
    usage = sessions.check_usage(Usage(**reported), name)
    return None if usage == Usage() else usage


def find_failure(data: bytes) -> CallFailed | None:
    """Return the error in a response, if the data is an error response."""
    try:
        return _to_failure(msgspec.json.decode(data, type=WireResponse), str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _to_failure(response: WireResponse, redact: Callable[[str], str]) -> CallFailed | None:
    if not response.error:
        return None
    text = response.error if isinstance(response.error, str) else codec.encode(response.error).decode()
    return CallFailed(redact(text), retryable=response.retryable)


def excerpt(data: bytes, redact: Callable[[str], str] = str, length: int = 200) -> str:
    # Redact before truncating: a truncated secret would not be recognized.
    text = redact(data[:_EXCERPT_BYTES].decode("utf-8", "replace")).strip()
    return text if len(text) <= length else text[:length] + "…"
