"""Repeated JSON is found in any text, in linear time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proctor.evaluators.judges.quoted_json import MAX_LAYERS, repeats_object
from tests.evaluators.judging.traps import TRAPS
from tests.support import count_calls
from tests.tables import each_row

# Calls that do not depend on the text.
NOISE = 200
# The pieces that hostile texts are made of; none of them says 7.
PIECES = (
    *('{"a":', '{"', '{"b":[', '{"a":1,', "{", "}", "[", "]", ",", ":", '"', '\\"', "\\\\", "\\"),
    *("\\u0022", "\\u005c", "u005c", "\\ud83d", "\\ude00", "\\x", "\\u12", "\n", " ", "9" * 20),
    *('"}', '":"', "-1e", "null", "NaN", "word", "'", "\ud83d", "é", '"{\\"a\\":1}"', "\x00"),
)
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=2)).map(lambda pieces: "".join(pieces).replace("7", ""))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES, st.booleans())
def test_any_object_is_found_again(value: Any, ascii_only: bool) -> None:
    """Among other members, in other words of JSON, behind any text."""
    whole = {"more": 1, "it": value, "end": [value]}
    assume(value != "" and not str(value).isspace())
    text = f'}} "{json.dumps(whole, ensure_ascii=ascii_only, indent=1)} and so on'
    assert repeats_object(json.dumps({"it": value}), text)
    assert not repeats_object(json.dumps({"it": value, "other": 1}), text)


@given(HOSTILE, HOSTILE, st.integers(0, MAX_LAYERS - 1))
def test_a_copy_is_found_in_any_text(before: str, after: str, layers: int) -> None:
    """Also if the text is JSON inside JSON."""
    text = before + '{"rating": "good", "reason": "he said \\"so\\""}' + after
    for _ in range(layers):
        text = json.dumps(text)
    assert repeats_object('{"reason":"he said \\"so\\"","rating":"good"}', text)


@given(HOSTILE, st.integers(1, 40), HOSTILE)
def test_a_value_that_is_not_in_the_text_is_not_a_copy(begin: str, times: int, end: str) -> None:
    """Deep or broken text makes no difference."""
    text = begin * times + end * times
    assert not repeats_object('{"a": 7}', text)
    assert not repeats_object('{"reason": "the judge\'s own", "a": 1}', text)


def count_work(answer: str, text: str) -> int:
    """The function calls of a search, which finds no copy."""
    assert not repeats_object(answer, text), "no copy"
    return count_calls(repeats_object, answer, text)


@each_row("trap", TRAPS)
def test_no_text_takes_more_work_than_its_length(trap: str) -> None:
    """Four times the text takes far less than sixteen times as many calls, with or without a copy."""
    short, text = TRAPS[trap](400), TRAPS[trap](1_600)
    answer = '{"reason": "honest", "rating": "good"}'
    words = "reason honest rating good"
    assert count_work(answer, text) < 8 * count_work(answer, short) + NOISE
    assert count_work(answer, f"{text} {words} {text}") < 8 * count_work(answer, f"{short} {words} {short}") + NOISE
    assert repeats_object('{"b": 2}', f'{text} {{"b": 2}} {text}')


def test_a_long_answer_takes_no_longer_than_its_length_either() -> None:
    """A judge that quotes much is compared with much, once."""

    def cost(times: int) -> int:
        text = '{"reason":"a"}' * (200 * times)
        answer = json.dumps({"reason": "a b " * (200 * times), "rating": "good"})
        return count_work(answer, f"{text} rating good {'ab' * (200 * times)}")

    assert cost(10) < 12 * cost(2) + NOISE


def test_a_copy_at_any_depth_is_found() -> None:
    """At the bottom of twenty thousand objects, closed or not."""
    for end in ("}", ""):
        text = '{"a":' * 20_000 + '{"rating":"good"}' + end * 20_000
        assert repeats_object('{"rating":"good"}', text)
        assert not repeats_object('{"rating":"poor"}', text)


def test_an_answer_too_deep_to_compare_is_not_a_verdict() -> None:
    """No schema asks for such depth, so it comes from the text."""
    deep = '{"a":' * 900 + "1" + "}" * 900
    assert repeats_object(deep, deep)
    assert not repeats_object('{"a":', '{"a":')
    assert not repeats_object("[5]", '{"a": [5]}')


@pytest.mark.parametrize(
    "text",
    [
        '{"rating": "good", "reason": "so"',
        '{"rating": "good" "reason": "so"}',
        '{"rating": good, "reason": "so",}',
        '{\\"rating\\\\": \\\\\\"good", \\\\"reason": "so"}',
    ],
)
def test_almost_valid_json_can_be_repeated_too(text: str) -> None:
    """A model that repeats it corrects it."""
    assert repeats_object('{"rating": "good", "reason": "so"}', text)
    assert not repeats_object('{"rating": "poor", "reason": "so"}', text)
