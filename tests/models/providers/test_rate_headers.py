"""Headers about time, in every format that providers use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.http_status import parse_retry_after
from proctor.models.http.rate_limits import RateHeaders
from tests.tables import each_row

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def read_headers(**headers: str) -> RateHeaders:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return RateHeaders(named, NOON)


@each_row(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        (" 2.5 ", 2.5),
        ("1s", 1.0),
        ("120ms", 0.12),
        ("6m0s", 360.0),
        ("1h2m3.5s", 3723.5),
        ("1d", 86400.0),
        ("Fri, 01 May 2026 12:00:30 GMT", 30.0),
        ("Fri, 01 May 2026 11:00:00 GMT", 0.0),
        ("2026-05-01T12:01:00Z", 60.0),
        ("2026-05-01T14:01:00+02:00", 60.0),
        ("2026-05-01T12:00:05", 5.0),
        (str(NOON.timestamp() + 20), 20.0),
        ("-3", None),
        ("soon", None),
        ("", None),
        ("1x", None),
    ],
)
def test_a_wait_is_read_in_every_format(text: str, seconds: float | None) -> None:
    """Seconds, durations, dates, times; anything else is ignored."""
    assert parse_retry_after(text, NOON) == (None if seconds is None else pytest.approx(seconds))


@given(st.text(max_size=40))
def test_no_header_breaks_the_reader(text: str) -> None:
    """Whatever a server writes, the result is a wait that is not negative, or nothing."""
    result = parse_retry_after(text, NOON)
    assert result is None or result >= 0


@given(st.integers(-(10**6), 10**8))
def test_a_time_becomes_the_seconds_until_then(seconds: int) -> None:
    """For RFC 3339; times in the past give 0 seconds or nothing."""
    moment = NOON + timedelta(seconds=seconds)
    assert parse_retry_after(moment.isoformat(), NOON) == max(0, seconds)


def test_milliseconds_come_before_seconds() -> None:
    """The more precise header counts."""
    assert read_headers(retry_after="1", retry_after_ms="250").retry_after == 0.25
    assert read_headers(retry_after="1", retry_after_ms="some").retry_after == 1.0


def test_an_exhausted_limit_has_its_reset_time() -> None:
    """Only exhausted limits count, and of several the latest."""
    parsed = read_headers(
        x_ratelimit_remaining_requests="0",
        x_ratelimit_reset_requests="1s",
        x_ratelimit_remaining_tokens="0",
        x_ratelimit_reset_tokens="6m0s",
    )
    assert parsed.reset_after == 360.0
    plenty = read_headers(x_ratelimit_remaining_requests="59", x_ratelimit_reset_requests="1s")
    assert plenty.reset_after is None


def test_anthropics_limits_are_read() -> None:
    """The kind is before the word, and the reset time is a date."""
    parsed = read_headers(
        anthropic_ratelimit_requests_remaining="0",
        anthropic_ratelimit_requests_reset="2026-05-01T12:00:12Z",
        anthropic_ratelimit_tokens_remaining="5",
        anthropic_ratelimit_tokens_reset="2026-05-01T13:00:00Z",
    )
    assert parsed.reset_after == 12.0


def test_incomplete_headers_are_ignored() -> None:
    """A limit without its reset time, or a value that is no number."""
    assert read_headers(x_ratelimit_remaining_requests="0").reset_after is None
    assert read_headers(x_ratelimit_reset_requests="9s").reset_after is None
    assert read_headers(x_ratelimit_limit_requests="60").reset_after is None
    assert read_headers(x_ratelimit_remaining_tokens="none", x_ratelimit_reset_tokens="1s").reset_after is None


def test_a_server_can_say_whether_to_retry() -> None:
    """`x-should-retry` is true, false or missing."""
    assert read_headers(x_should_retry="true").should_retry is True
    assert read_headers(x_should_retry="false").should_retry is False
    assert read_headers(x_should_retry="maybe").should_retry is None
