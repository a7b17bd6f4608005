"""What an endpoint says in its headers about when it may be asked again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from proctor.remote import seconds_until

_PLAIN = re.compile(r"\d+(?:\.\d+)?")

# OpenAI and its kin write x-ratelimit-remaining-requests, Anthropic anthropic-ratelimit-
# requests-remaining; what stands before and after the word tells which limit it is.
_RATE = re.compile(r"(.*ratelimit.*)-(remaining|reset)(.*)")


class Said:
    """The headers of an answer that are about time, read once.

    `retry_after` is what the endpoint asks for by name; `exhausted` how long until a limit is
    renewed of which nothing is left. None where it says nothing.

    >>> Said([(b"Retry-After", b"7")], datetime.fromisoformat("2026-05-01T12:00Z")).retry_after
    7.0
    """

    __slots__ = ("exhausted", "retry_after", "should_retry")

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], now: datetime) -> None:
        self.retry_after: float | None = None
        self.should_retry: bool | None = None
        limits: dict[tuple[str, str], dict[str, str]] = {}
        milliseconds: float | None = None
        for raw_name, raw_value in headers:
            name = raw_name.lower()
            if b"ratelimit" in name:
                _note(limits, name.decode("latin-1"), raw_value.decode("latin-1"))
            elif name == b"retry-after":
                self.retry_after = seconds_until(raw_value.decode("latin-1"), now)
            elif name == b"retry-after-ms":
                milliseconds = _number(raw_value.decode("latin-1"))
            elif name == b"x-should-retry":
                self.should_retry = {b"true": True, b"false": False}.get(raw_value.lower())
        if milliseconds is not None:
            # The finer of the two counts.
            self.retry_after = milliseconds / 1000.0
        self.exhausted = _exhausted(limits, now) if limits else None


def _number(text: str) -> float | None:
    return float(text) if _PLAIN.fullmatch(text.strip()) else None


def _note(limits: dict[tuple[str, str], dict[str, str]], name: str, value: str) -> None:
    if found := _RATE.fullmatch(name):
        before, what, after = found.groups()
        limits.setdefault((before, after), {})[what] = value


def _exhausted(limits: dict[tuple[str, str], dict[str, str]], now: datetime) -> float | None:
    waits = [
        seconds_until(limit.get("reset", ""), now)
        for limit in limits.values()
        if _number(limit.get("remaining", "")) == 0
    ]
    return max((wait for wait in waits if wait is not None), default=None)
