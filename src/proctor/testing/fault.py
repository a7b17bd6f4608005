"""How the model server misbehaves, one request at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal

import msgspec

Told = Literal["retry-after", "date", "milliseconds", "openai", "anthropic", "nothing"]
FOREVER = 3600.0


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What goes wrong with one answer. Use the named ones; fields can be put together, too.

    The answer waits `delay` seconds. Then the connection ends without a word (`silent`, or with a
    reset: `reset`); or the answer goes out with its status, headers and body replaced by what is
    given here, `chunk` bytes at a time with `pause` seconds between them, declaring `extra_length`
    bytes more than there are, and breaking off after `cut_after` bytes of the body. With `hang_up`
    the connection closes after the answer, unannounced.

    >>> Fault.status(429, retry_after=2).headers
    {'retry-after': '2'}
    """

    code: int | None = None
    headers: dict[str, str] = {}
    content: bytes | None = None
    change: Callable[[dict[str, Any]], object] | None = None
    delay: float = 0.0
    silent: bool = False
    reset: bool = False
    chunk: int | None = None
    pause: float = 0.0
    extra_length: int = 0
    cut_after: int | None = None
    hang_up: bool = False

    @classmethod
    def status(
        cls,
        code: int,
        *,
        retry_after: float | str | datetime | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Fault:
        """A status such as 429 or 500 with the provider's error, or with a body of your own."""
        told = dict(headers or {})
        if isinstance(retry_after, datetime):
            told["retry-after"] = format_datetime(retry_after.astimezone(UTC), usegmt=True)
        elif retry_after is not None:
            told["retry-after"] = str(retry_after)
        return cls(code=code, headers=told, content=body)

    @classmethod
    def limited(
        cls, seconds: float, told: Told = "retry-after", now: datetime | None = None
    ) -> Fault:
        """A 429 that tells how long to wait in one of the ways that providers have.

        >>> Fault.limited(90, "openai").headers["x-ratelimit-reset-requests"]
        '1m30s'
        """
        return cls(code=429, headers=_waiting(seconds, told, now or datetime.now(UTC)))

    @classmethod
    def hang(cls, seconds: float = FOREVER) -> Fault:
        """Nothing is said for so long; then the connection closes."""
        return cls(delay=seconds, silent=True)

    @classmethod
    def slow(cls, seconds: float) -> Fault:
        """The right answer, but late."""
        return cls(delay=seconds)

    @classmethod
    def drip(cls, chunk: int = 16, pause: float = 0.01) -> Fault:
        """The right answer, a few bytes at a time."""
        return cls(chunk=chunk, pause=pause)

    @classmethod
    def cut(cls, after: int = 20) -> Fault:
        """The connection closes in the middle of the body."""
        return cls(cut_after=after)

    @classmethod
    def closed(cls) -> Fault:
        """The connection closes before anything is said."""
        return cls(silent=True)

    @classmethod
    def farewell(cls) -> Fault:
        """The right answer; then the connection closes, though it was to be kept."""
        return cls(hang_up=True)

    @classmethod
    def dropped(cls) -> Fault:
        """The connection is reset before anything is said."""
        return cls(reset=True)

    @classmethod
    def body(
        cls, content: bytes | str, content_type: str = "application/json", code: int = 200
    ) -> Fault:
        """Another body: no JSON, half of it, a page of HTML, JSON of another shape."""
        data = content.encode() if isinstance(content, str) else content
        return cls(code=code, headers={"content-type": content_type}, content=data)

    @classmethod
    def changed(cls, change: Callable[[dict[str, Any]], object]) -> Fault:
        """The right answer, but `change` may first take out or put in what it likes.

        >>> Fault.changed(lambda answer: answer.pop("usage", None)).code is None
        True
        """
        return cls(change=change)

    @classmethod
    def huge(cls, size: int) -> Fault:
        """A body of so many bytes."""
        return cls.body(b" " * size)

    @classmethod
    def wrong_length(cls, extra: int = 10) -> Fault:
        """The right answer, but a Content-Length that promises so many bytes more."""
        return cls(extra_length=extra)


def _waiting(seconds: float, told: Told, now: datetime) -> dict[str, str]:
    until = now + timedelta(seconds=seconds)
    match told:
        case "retry-after":
            return {"retry-after": f"{seconds:g}"}
        case "date":
            return {"retry-after": format_datetime(until.astimezone(UTC), usegmt=True)}
        case "milliseconds":
            return {"retry-after-ms": f"{seconds * 1000:g}"}
        case "openai":
            return {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": _duration(seconds),
            }
        case "anthropic":
            return {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": until.isoformat().replace("+00:00", "Z"),
            }
        case "nothing":
            return {}


def _duration(seconds: float) -> str:
    """Seconds as OpenAI writes them: 6m0s, 1.5s, 120ms."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g}m{rest:g}s" if minutes else f"{rest:g}s"
