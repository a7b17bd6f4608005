"""The reader of JSON texts, against the standard library's where that is right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evaluators.formats.json_text import check_json
from tests.tables import each_row

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    PLAIN.filter(lambda value: value not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


@pytest.mark.no_cover
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_every_value_written_as_json_is_valid(value: Any, indent: int | None, ascii_: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    whole = ascii_ or not any("\ud800" <= letter <= "\udfff" for letter in text)
    assert (check_json(text).error is None) is whole


@given(st.text(alphabet='{}[]",:0123456789eE+-.\\ntfalsru \n', max_size=30))
def test_the_reader_agrees_with_the_standard_library(text: str) -> None:
    try:
        json.loads(text, parse_constant=_refuse)
        valid = True
    except ValueError:
        valid = False
    assert (check_json(text).error is None) is valid


@each_row(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected a value, got the end of the text"),
        ("[1 2]", "line 1, column 4: expected ',' or ']', got '2'"),
        ('{"a" 1}', "line 1, column 6: expected ':', got '1'"),
        ('{"a": 1,}', "line 1, column 9: trailing comma before '}'"),
        ("[01]", "line 1, column 2: a number must not start with a zero"),
        ("[+1]", "line 1, column 2: a number must not start with a plus sign"),
        ("[.5]", "line 1, column 2: a number needs a digit before its decimal point"),
        ("[True]", "line 1, column 2: True is Python, not JSON"),
        ("[1] // done", "line 1, column 5: unexpected '/' after the end of the JSON"),
        ("[/* x */ 1]", "line 1, column 2: JSON has no comments"),
        ('["a\nb"]', "line 1, column 4: '\\n' in a string must be escaped"),
        ('["\\x41"]', "line 1, column 3: '\\\\x' is not an escape"),
        ('{"a', "line 1, column 2: the string is not closed"),
        ("{a: 1}", "line 1, column 2: expected a key in double quotes, got 'a'"),
        ("\ufeff[]", "line 1, column 1: JSON does not allow a byte order mark"),
        ('"\ud800"', "line 1, column 2: a lone surrogate is not a character"),
        (b'["\xff"]', "line 1, column 3: the bytes are not UTF-8"),
    ],
)
def test_common_mistakes_are_explained(text: str | bytes, message: str) -> None:
    assert str(check_json(text).error) == message


@pytest.mark.no_cover
def test_json_of_any_depth_is_checked() -> None:
    assert check_json("[" * 50_000 + "]" * 50_000).error is None
    assert check_json("[" * 50_000).error is not None


def test_keys_repeat_within_one_object_only() -> None:
    assert check_json('[{"a": {"a": 1}}, {"a": 2}]').duplicates == []
    assert len(check_json("{" + ",".join(['"a":1'] * 100) + "}").duplicates) == 20
