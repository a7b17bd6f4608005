"""Error responses of a server, and the URLs that keep rejecting a key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from proctor.core.clock import Clock
from proctor.core.http_status import parse_retry_after

MAX_QUOTE = 300


class ErrorBody(NamedTuple):
    """The error in a response body; fields that the server leaves out are empty."""

    message: str = ""
    type: str = ""
    code: str = ""
    parameter: str = ""
    retry_after: float | None = None


def read_error_body(body: bytes, redact: Callable[[str], str] = lambda text: text) -> ErrorBody:
    """Read the error body of any provider; quote the start of a body in another format.

    `redact` removes keys before the message is truncated, because a truncated key would not be recognized.
    """
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ErrorBody(to_short_line(redact(body.decode("utf-8", "replace")), MAX_QUOTE))
    if isinstance(decoded, list) and len(decoded) == 1:
        decoded = decoded[0]
    error = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
    if not isinstance(error, dict):
        return ErrorBody(to_short_line(redact(_to_text(error)), MAX_QUOTE))
    message = error.get("message") or error.get("detail") or error
    return ErrorBody(
        to_short_line(redact(_to_text(message)), MAX_QUOTE),
        _to_text(error.get("type") or error.get("status")),
        _to_text(error.get("code")),
        _to_text(error.get("param")),
        _gemini_delay(error.get("details")),
    )


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def to_short_line(text: str, max_length: int) -> str:
    """Put a text on one line and truncate it."""
    text = " ".join(text.split())
    return text if len(text) <= max_length else text[:max_length] + "…"


def _gemini_delay(details: Any) -> float | None:
    """Read the delay that Gemini sends in the body: {"@type": …RetryInfo, "retryDelay": "30s"}."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return parse_retry_after(delay, datetime.now(UTC))
    return None


# A gateway may reject a valid key now and then, but rarely this often in a row.
MAX_REJECTIONS = 3
# The block expires, so that a key that becomes valid works without a restart.
BLOCK_SECONDS = 30.0


class KeyRejection(NamedTuple):
    """The latest rejection of a key: its message, the error, the number of rejections in a row, and the end of the
    block."""

    what: str
    error: ErrorBody
    times: int
    until: float


class KeyRejections:
    """The URLs of an endpoint that reject its key; counted by URL, because a key may be valid for only some."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_url: dict[str, KeyRejection] = {}

    def add(self, url: str, what: str, error: ErrorBody) -> None:
        previous = self._by_url.get(url)
        times = 1 if previous is None else previous.times + 1
        self._by_url[url] = KeyRejection(what, error, times, self._clock.monotonic() + BLOCK_SECONDS)

    def clear(self, url: str) -> None:
        """Forget the rejections of a URL that has accepted the key."""
        self._by_url.pop(url, None)

    def find(self, url: str) -> KeyRejection | None:
        """Return the rejection that blocks a URL now, or None."""
        rejection = self._by_url.get(url)
        if rejection is None or rejection.times < MAX_REJECTIONS:
            return None
        return rejection if self._clock.monotonic() < rejection.until else None
