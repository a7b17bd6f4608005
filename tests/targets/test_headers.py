"""Headers from the environment are never shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.errors import CallFailed, TargetError
from proctor.targets.http import Headers


def test_variables_are_read_when_they_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that was renewed after the target was made is the one that is sent."""
    monkeypatch.setenv("TOKEN", "old")
    headers = Headers({"Authorization": "Bearer $TOKEN", "X-Key": "${TOKEN}", "X-Cost": "$$5"})
    monkeypatch.setenv("TOKEN", "new\n")
    assert headers.resolve() == {"Authorization": "Bearer new", "X-Key": "new", "X-Cost": "$5"}


def test_all_problems_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bad header is named with its reason, and no value is shown."""
    monkeypatch.delenv("NO_SUCH", raising=False)
    headers: dict[Any, Any] = {
        "Authorization": "Bearer $NO_SUCH",
        "X Space": "secret-1",
        "X-Number": 5,
        "X-Price": "secret-2 $5",
        "X-Break": "secret-3\r\nX-Other: 1",
    }
    with pytest.raises(TargetError) as caught:
        Headers(headers)
    assert str(caught.value) == snapshot("""\
the headers are invalid
  - headers.Authorization: the environment variable 'NO_SUCH' is not set
  - headers.X Space: this is not a valid header name; use letters, digits and -
  - headers.X-Number: the value is not a string
  - headers.X-Price: a $ is not followed by a variable's name; write $$ for a dollar sign
  - headers.X-Break: the value has characters that a header cannot contain
Fix: export NO_SUCH=…\
""")
    with pytest.raises(TargetError, match="must be a mapping"):
        Headers(["Authorization"])  # type: ignore[arg-type]


def test_a_variable_that_is_unset_later_fails_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be set on creation and missing in a call."""
    monkeypatch.setenv("TOKEN", "abcdef")
    headers = Headers({"X-Key": "$TOKEN"})
    monkeypatch.delenv("TOKEN")
    with pytest.raises(CallFailed, match="'TOKEN' is no longer set"):
        headers.resolve()


def test_values_and_variables_are_hidden_in_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that quotes the header, or the token in it, does not bring it into our errors."""
    monkeypatch.setenv("TOKEN", "abcdef")
    headers = Headers({"Authorization": "Bearer $TOKEN", "X-Short": "en"})
    assert headers.redact("bad 'Bearer abcdef', token abcdef, open") == ("bad '[hidden]', token [hidden], open")
    assert repr(headers) == "Headers(Authorization, X-Short)"


@given(st.text("abcdefXYZ0123456789-_", min_size=4), st.text("ghijkl ", max_size=20), st.text("ghijkl ", max_size=20))
def test_header_values_are_removed_from_every_text(value: str, before: str, after: str) -> None:
    """Wherever the value is in the text."""
    assert value not in Headers({"X-Key": value}).redact(before + value + after)
