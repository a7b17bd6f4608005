"""What an endpoint says in its headers about when it may be asked again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "ns": 1e-9}
_NUMBER = r"\d+(?:\.\d+)?"
_PLAIN = re.compile(_NUMBER)
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ms|us|ns|[dhms]))+")
_PART = re.compile(rf"({_NUMBER})(ms|us|ns|[dhms])")
# A plain number above this is a moment in Unix time, not a duration.
_UNIX_TIME = 1e9

# OpenAI and its kin write x-ratelimit-remaining-requests, Anthropic anthropic-ratelimit-
# requests-remaining; what stands before and after the word tells which limit it is.
_RATE = re.compile(r"(.*ratelimit.*)-(remaining|reset)(.*)")


class Said:
    """The headers of an answer that are about time, read once.

    `retry_after` is what the endpoint asks for by name; `exhausted` how long until a limit is
    renewed of which nothing is left. None where it says nothing.

    >>> Said([(b"Retry-After", b"7")], datetime.now(UTC)).retry_after
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


def seconds_until(text: str, now: datetime) -> float | None:
    """How long a header's value asks to wait: a number of seconds, a duration or a date.

    >>> noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    >>> [seconds_until(each, noon) for each in ("1.5", "6m0s", "120ms", "2026-05-01T12:00:30Z")]
    [1.5, 360.0, 0.12, 30.0]
    >>> seconds_until("Fri, 01 May 2026 12:01:00 GMT", noon), seconds_until("soon", noon)
    (60.0, None)
    """
    text = text.strip()
    if _PLAIN.fullmatch(text):
        number = float(text)
        return number if number < _UNIX_TIME else max(0.0, number - now.timestamp())
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    moment = _moment(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _moment(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text)
        except ValueError:
            continue
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return None


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
