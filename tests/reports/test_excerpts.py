"""Data as text: visible, cut, on one line."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor.reports.format import excerpt, single_line
from tests.tables import each_row


@dataclass
class Reading:
    value: float
    raw: bytes


@each_row(
    ("value", "text"),
    [
        ("Paris", "Paris"),
        (None, "null"),
        ({"a": [1, True]}, '{"a":[1,true]}'),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("\x1b[31mred\x07", "␛[31mred␇"),
        ("tab\tbed", "tab    bed"),
        ("\u202eevil", "\N{REPLACEMENT CHARACTER}evil"),
        ("half \ud800", "half \N{REPLACEMENT CHARACTER}"),
        ({"half": "\ud800"}, r"{'half': '\ud800'}"),
        (float("nan"), "NaN"),
        ({"loss": float("nan"), "best": [-float("inf")]}, '{"loss":NaN,"best":[-Infinity]}'),
        (b"\x00\xff", r"2 bytes: b'\x00\xff'"),
        ({"key": b"x" * 41}, '{"key":"41 bytes: b\'' + "x" * 40 + "'…\"}"),
        (Reading(float("nan"), b"!"), '{"value":NaN,"raw":"1 byte: b\'!\'"}'),
    ],
)
def test_values_are_shown_as_text(value: Any, text: str) -> None:
    """Text as it is, other values as JSON; NaN is NaN, bytes and controls are visible."""
    assert excerpt(value, 100) == text


def test_long_values_are_cut_with_a_mark() -> None:
    """The mark shows how much is hidden."""
    assert excerpt("x" * 1500, 10) == "xxxxxxxxxx… (1,490 more characters)"
    assert excerpt("x" * 11, 10) == "xxxxxxxxxx… (1 more character)"
    assert excerpt("x" * 10, 10) == "xxxxxxxxxx"


def test_one_line_shows_where_lines_ended() -> None:
    """Line ends become a sign, and blanks around them go."""
    assert single_line("  to be \n\n or not\n", 100) == "to be ⏎  ⏎ or not"


@given(st.text())
def test_no_text_hides_a_control_character(text: str) -> None:
    """Whatever the data is, one line is one line, and can be written as UTF-8."""
    output = single_line(text, 50)
    assert all(unicodedata.category(character) not in ("Cc", "Cs") for character in output)
    assert output.splitlines() in ([output], [])
    assert len(output.encode()) >= len(output)
