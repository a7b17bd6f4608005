"""Where a key was refused: it is not sent there again and again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from proctor.core.clock import Clock
from proctor.core.http_status import seconds_until

LONGEST_QUOTE = 300


class Complaint(NamedTuple):
    """An error as the server tells it; empty where it does not say."""

    message: str = ""
    kind: str = ""
    code: str = ""
    parameter: str = ""
    retry_after: float | None = None


def complaint_in(body: bytes, hide: Callable[[str], str] = lambda text: text) -> Complaint:
    """Read an error body of any of the providers, or the beginning of whatever it is.

    `hide` takes keys out of what is told, before it is cut: half a key would not be found.

    >>> complaint_in(b'{"error": {"message": "no such model", "code": "model_not_found"}}').code
    'model_not_found'
    >>> complaint_in(b"<h1>Bad gateway</h1>").message
    '<h1>Bad gateway</h1>'
    """
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Complaint(shortened(hide(body.decode("utf-8", "replace")), LONGEST_QUOTE))
    if isinstance(said, list) and len(said) == 1:
        said = said[0]
    error = said.get("error", said) if isinstance(said, dict) else said
    if not isinstance(error, dict):
        return Complaint(shortened(hide(_text(error)), LONGEST_QUOTE))
    message = next((error[key] for key in ("message", "detail") if error.get(key)), error)
    return Complaint(
        shortened(hide(_text(message)), LONGEST_QUOTE),
        _text(error.get("type") or error.get("status")),
        _text(error.get("code")),
        _text(error.get("param")),
        _delay(error.get("details")),
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def shortened(text: str, longest: int) -> str:
    """A text on one line, and no longer than that.

    >>> shortened("what it\\n  said", 9)
    'what it s…'
    """
    text = " ".join(text.split())
    return text if len(text) <= longest else text[:longest] + "…"


def _delay(details: Any) -> float | None:
    """Gemini names the time to wait in the body: {"@type": …RetryInfo, "retryDelay": "30s"}."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str):
            return seconds_until(delay, datetime.now(UTC))
    return None


# A gateway may refuse a good key now and then, but hardly so often in a row.
IN_A_ROW = 3
# Then for so long nobody asks. Whoever makes a key valid meanwhile need not start anew.
SECONDS = 30.0


class Refusal(NamedTuple):
    """What was answered last, how often in a row, and until when nobody asks."""

    what: str
    complaint: Complaint
    times: int
    until: float


class Refusals:
    """The URLs of an endpoint that refuse its key; each by itself, as a key may be for some only.

    >>> from proctor.core.clock import SystemClock
    >>> refusals = Refusals(SystemClock())
    >>> for _ in range(IN_A_ROW):
    ...     refusals.add("/v1/models", "answered 401", Complaint())
    >>> refusals.of("/v1/models").times, refusals.of("/v1/chat/completions")
    (3, None)
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[str, Refusal] = {}

    def add(self, url: str, what: str, complaint: Complaint) -> None:
        """Note that the key was refused."""
        before = self._found.get(url)
        times = 1 if before is None else before.times + 1
        self._found[url] = Refusal(what, complaint, times, self._clock.monotonic() + SECONDS)

    def clear(self, url: str) -> None:
        """Note that the key was taken."""
        self._found.pop(url, None)

    def of(self, url: str) -> Refusal | None:
        """Why this URL is not worth a request now, or None if it is."""
        found = self._found.get(url)
        if found is None or found.times < IN_A_ROW or self._clock.monotonic() >= found.until:
            return None
        return found
