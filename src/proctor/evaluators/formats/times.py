"""Dates, times of day, moments and durations as ISO 8601 and RFC 3339 write them."""

from __future__ import annotations

import re
from datetime import date as calendar_day

from proctor.evaluators.formats.fault import Fault
from proctor.evaluators.formats.terms import Terms
from proctor.evaluators.verdict import shown

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(
    r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_TO_THE_SECOND = re.compile(r":[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})\Z")
_AMOUNT = r"[0-9]+(?:[.,][0-9]+)?"
_DURATION = re.compile(
    rf"P(?=[0-9T])(?:{_AMOUNT}W|(?:{_AMOUNT}Y)?(?:{_AMOUNT}M)?(?:{_AMOUNT}D)?"
    rf"(?:T(?=[0-9])(?:{_AMOUNT}H)?(?:{_AMOUNT}M)?(?:{_AMOUNT}S)?)?)"
)
# Only the smallest unit may have a fraction.
_EARLY_FRACTION = re.compile(r"[.,][0-9]+[A-Z].*[0-9]")


def date(text: str, _: Terms) -> Fault | None:
    """A day that the calendar has, written YYYY-MM-DD."""
    found = _DATE.fullmatch(text)
    if found is None:
        return Fault(f"{shown(text)} is not written YYYY-MM-DD")
    try:
        calendar_day(*map(int, found.groups()))
    except ValueError as error:
        return Fault(f"there is no day {text}: {error}")
    return None


def time(text: str, _: Terms) -> Fault | None:
    """A time of day, written HH:MM or HH:MM:SS, with or without an offset."""
    found = _TIME.fullmatch(text)
    if found is None:
        return Fault(f"{shown(text)} is not written HH:MM[:SS] with or without an offset")
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    midnight = (hour, minute, second) == (24, 0, 0)
    # A minute may have a 61st second.
    if not midnight and (hour > 23 or minute > 59 or second > 60):
        return Fault(f"a day has no time {text}")
    offset = re.findall("[0-9]{2}", found[4] or "")
    if any(int(part) > limit for part, limit in zip(offset, (23, 59), strict=False)):
        return Fault(f"there is no offset {found[4]}")
    return None


def datetime(text: str, terms: Terms) -> Fault | None:
    """A day and a time of day by ISO 8601, with T or a space between them."""
    day, _, clock = text.replace("t", "T", 1).replace(" ", "T", 1).partition("T")
    if not clock:
        return Fault(f"{shown(text)} is not written YYYY-MM-DDTHH:MM:SS")
    return date(day, terms) or time(clock, terms)


def rfc3339(text: str, terms: Terms) -> Fault | None:
    """A moment by RFC 3339: to the second, and with its offset."""
    fault = datetime(text, terms)
    if fault is None and not _TO_THE_SECOND.search(text):
        return Fault(f"{shown(text)} has no seconds, or no offset such as Z or +01:00")
    if fault is None and text[11:13] == "24":
        return Fault("RFC 3339 writes midnight as 00:00:00")
    return fault


def duration(text: str, _: Terms) -> Fault | None:
    """A length of time by ISO 8601, such as P3DT12H or PT0.5S."""
    if _DURATION.fullmatch(text) and not _EARLY_FRACTION.search(text):
        return None
    return Fault(f"{shown(text)} is not a duration such as P3DT12H, PT0.5S or P2W")
