"""Retry-After values of servers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.http_status import parse_retry_after

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("ahead", [0, 1, 30, 3600])
def test_unix_time_is_read_in_seconds_and_in_milliseconds(ahead: int) -> None:
    """Both give the time until then, and 0 for the past."""
    moment = int(NOON.timestamp()) + ahead
    assert parse_retry_after(str(moment), NOON) == ahead
    assert parse_retry_after(str(moment * 1000), NOON) == ahead
    assert parse_retry_after(str((moment - 7200) * 1000), NOON) == 0.0


@given(st.text() | st.from_regex(r"[0-9]{1,14}(\.[0-9]+)?(ms|s|m|h)?", fullmatch=True))
def test_any_text_gives_0_or_more_seconds_or_none(text: str) -> None:
    result = parse_retry_after(text, NOON)
    assert result is None or result >= 0
