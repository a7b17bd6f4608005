"""Faults that the model server injects into its responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal

import msgspec

RetryHeader = Literal["retry-after", "date", "milliseconds", "openai", "anthropic", "nothing"]
ONE_HOUR = 3600.0


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fault in one response. Use a named constructor such as `Fault.status`, or combine fields.

    The server waits `delay` seconds. With `silent` it then closes the connection without a response, with `reset` it
    resets the connection. Otherwise it sends the response with `code`, `headers` and `content` instead of the correct
    values, `chunk` bytes at a time with `pause` seconds in between. `extra_length` is added to Content-Length,
    `cut_after` ends the body after that many bytes, and `hang_up` closes the connection after the response without
    announcing it.

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
        """Respond with a status such as 429 or 500 and the provider's error, or with `body`."""
        sent_headers = dict(headers or {})
        if isinstance(retry_after, datetime):
            sent_headers["retry-after"] = format_datetime(retry_after.astimezone(UTC), usegmt=True)
        elif retry_after is not None:
            sent_headers["retry-after"] = str(retry_after)
        return cls(code=code, headers=sent_headers, content=body)

    @classmethod
    def rate_limit(cls, seconds: float, header: RetryHeader = "retry-after", now: datetime | None = None) -> Fault:
        """Respond with a 429 and the time to wait, in the format of one of the providers.

        >>> Fault.rate_limit(90, "openai").headers["x-ratelimit-reset-requests"]
        '1m30s'
        """
        reset_at = ((now or datetime.now(UTC)) + timedelta(seconds=seconds)).astimezone(UTC)
        headers: dict[RetryHeader, dict[str, str]] = {
            "retry-after": {"retry-after": f"{seconds:g}"},
            "date": {"retry-after": format_datetime(reset_at, usegmt=True)},
            "milliseconds": {"retry-after-ms": f"{seconds * 1000:g}"},
            "openai": {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": _format_duration(seconds)},
            "anthropic": {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": reset_at.isoformat().replace("+00:00", "Z"),
            },
            "nothing": {},
        }
        return cls(code=429, headers=headers[header])

    @classmethod
    def hang(cls, seconds: float = ONE_HOUR) -> Fault:
        """Send nothing for `seconds`, then close the connection."""
        return cls(delay=seconds, silent=True)

    @classmethod
    def slow(cls, seconds: float) -> Fault:
        """Send the correct response after `seconds`."""
        return cls(delay=seconds)

    @classmethod
    def drip(cls, chunk: int = 16, pause: float = 0.01) -> Fault:
        """Send the correct response a few bytes at a time."""
        return cls(chunk=chunk, pause=pause)

    @classmethod
    def truncate(cls, after: int = 20) -> Fault:
        """Close the connection in the middle of the body."""
        return cls(cut_after=after)

    @classmethod
    def close(cls) -> Fault:
        """Close the connection without a response."""
        return cls(silent=True)

    @classmethod
    def close_after_response(cls) -> Fault:
        """Send the correct response with keep-alive, but close the connection after it."""
        return cls(hang_up=True)

    @classmethod
    def reset_connection(cls) -> Fault:
        """Reset the connection without a response."""
        return cls(reset=True)

    @classmethod
    def body(cls, content: bytes | str, content_type: str = "application/json", code: int = 200) -> Fault:
        """Send another body: invalid or incomplete JSON, an HTML page, or unexpected JSON."""
        data = content.encode() if isinstance(content, str) else content
        return cls(code=code, headers={"content-type": content_type}, content=data)

    @classmethod
    def edit_json(cls, change: Callable[[dict[str, Any]], object]) -> Fault:
        """Send the correct response after `change` has edited it in place.

        >>> Fault.edit_json(lambda response: response.pop("usage", None)).code is None
        True
        """
        return cls(change=change)

    @classmethod
    def huge(cls, size: int) -> Fault:
        """Send a body of `size` bytes."""
        return cls.body(b" " * size)

    @classmethod
    def wrong_length(cls, extra: int = 10) -> Fault:
        """Send the correct response with a Content-Length that is `extra` bytes too large."""
        return cls(extra_length=extra)


def _format_duration(seconds: float) -> str:
    """Format seconds as OpenAI does: 6m0s, 1.5s, 120ms."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:g}m{rest:g}s" if minutes else f"{rest:g}s"
