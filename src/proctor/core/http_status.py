"""Detect loopback hosts and parse Retry-After values."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "ns": 1e-9}
_NUMBER = r"\d+(?:\.\d+)?"
_PLAIN = re.compile(_NUMBER)
_DURATION = re.compile(rf"(?:{_NUMBER}(?:ms|us|ns|[dhms]))+")
_PART = re.compile(rf"({_NUMBER})(ms|us|ns|[dhms])")
# A number above these is a Unix timestamp in seconds or milliseconds.
_UNIX_TIME, _UNIX_MILLISECONDS = 1e9, 1e12


def is_loopback(host: str) -> bool:
    """True if a host is this machine."""
    # Slow to import, and only needed to open a connection.
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def parse_retry_after(text: str, now: datetime) -> float | None:
    """Return the seconds to wait for a Retry-After value: a number, a duration or a date; None if unknown."""
    text = text.strip()
    if _PLAIN.fullmatch(text):
        number = float(text)
        if number < _UNIX_TIME:
            return number
        timestamp = number / 1000.0 if number >= _UNIX_MILLISECONDS else number
        return max(0.0, timestamp - now.timestamp())
    if _DURATION.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    date = _parse_date(text)
    return None if date is None else max(0.0, (date - now).total_seconds())


def _parse_date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime

    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            date = parse(text)
        except ValueError:
            continue
        return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return None
