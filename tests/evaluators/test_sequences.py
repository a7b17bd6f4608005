"""Expected and actual tool calls: order, arguments, partial credit, and the diff."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.errors import EvaluatorError
from proctor.evaluators.tool_calls import (
    ExpectedCall,
    RecordedCall,
    SequenceMode,
    SequenceOptions,
    compare_calls,
    parse_expected_calls,
)
from proctor.records.score import Score
from proctor.records.session import ToolCall
from tests.tables import each_row

names = st.lists(st.sampled_from("abc"), max_size=5)


def held(expected: Any, actual: str | list[RecordedCall], **terms: Any) -> Score:
    """Compare expected calls with actual ones, which may be given as letters."""
    calls = [RecordedCall(name) for name in actual] if isinstance(actual, str) else actual
    return compare_calls(parse_expected_calls(expected), calls, SequenceOptions(**terms))


@each_row(
    ("mode", "expected", "actual", "value", "passed"),
    [
        ("in_order", "abc", "abc", 1.0, True),
        ("in_order", "abc", "xaybzc", 1.0, True),
        ("in_order", "abc", "acb", 2 / 3, False),
        ("in_order", "abc", "cba", 1 / 3, False),
        ("in_order", "abcd", "bd", 0.5, False),
        ("in_order", "ab", "", 0.0, False),
        ("in_order", "aab", "ab", 2 / 3, False),
        ("any_order", "abc", "cxba", 1.0, True),
        ("any_order", "aab", "ba", 2 / 3, False),
        ("exact", "abc", "abc", 1.0, True),
        ("exact", "abc", "abxc", 0.75, False),
        ("exact", "abcd", "abc", 0.75, False),
        ("exact", "ab", "ba", 0.5, False),
        ("exact", "", "", 1.0, True),
        ("exact", "", "a", 0.0, False),
    ],
)
def test_the_value_is_the_share_of_matching_calls(
    mode: SequenceMode, expected: str, actual: str, value: float, passed: bool
) -> None:
    """In order: the longest common subsequence; "exact" counts unexpected calls too."""
    score = held(list(expected), actual, mode=mode)
    assert (score.value, score.passed) == (value, passed)


def test_any_order_without_extras_is_a_multiset() -> None:
    assert held(["a", "b"], "ba", mode="any_order", allow_extra=False).passed
    score = held(["a", "b"], "bca", mode="any_order", allow_extra=False)
    assert (score.value, score.passed) == (2 / 3, False)
    assert score.reason == "2 of 2 expected calls; not expected: c()"
    assert not held(["a", "b"], "axb", mode="in_order", allow_extra=False).passed


def test_a_call_that_fits_two_is_given_to_the_one_that_needs_it() -> None:
    expected = ["search", {"name": "search", "arguments": {"q": 1}}]
    actual = [RecordedCall("search", {"q": 1}), RecordedCall("search", {"q": 2})]
    assert held(expected, actual, mode="any_order").passed


@each_row(
    ("rule", "arguments", "passed"),
    [
        ("exact", {"q": "Paris", "by": {"lang": "fr", "n": [1, 2]}}, True),
        ("exact", {"q": "Paris", "by": {"lang": "fr", "n": (1, 2)}}, True),
        ("exact", {"q": "Paris"}, False),
        ("exact", {"q": "Paris", "by": {"lang": "fr"}}, False),
        ("exact", {"q": "Paris", "by": {"lang": "fr", "n": [1, 2]}, "page": 1}, False),
        ("subset", {"q": "Paris"}, True),
        ("subset", {"by": {"lang": "fr"}}, True),
        ("subset", {"by": {"n": [1]}}, False),
        ("subset", {"q": "Rome"}, False),
        ("subset", {"page": 1}, False),
        ("ignore", {"q": "Rome"}, True),
    ],
)
def test_arguments_are_compared_by_the_chosen_rule(rule: str, arguments: Any, passed: bool) -> None:
    """Exactly, as a subset at every depth, or not at all."""
    actual = [RecordedCall("search", {"q": "Paris", "by": {"lang": "fr", "n": [1, 2]}})]
    expected = {"name": "search", "arguments": arguments}
    assert held(expected, actual, arguments=rule).passed is passed


def test_true_is_not_one_and_a_list_is_not_one_of_its_items() -> None:
    """Arguments are equal as JSON sees it."""
    for expected_text, found in ((True, 1), (["a"], ["a", "b"]), ("a", ["a"])):
        expected = {"name": "t", "arguments": {"x": expected_text}}
        assert not held(expected, [RecordedCall("t", {"x": found})]).passed


def about_paris(query: str) -> bool:
    return "paris" in query.lower()


def test_an_argument_may_be_checked_by_a_function() -> None:
    """Instead of the value, or comparing both."""
    expected = {"name": "search", "arguments": {"q": about_paris}}
    assert held(expected, [RecordedCall("search", {"q": "PARIS weather"})]).passed
    score = held(expected, [RecordedCall("search", {"q": "Rome"})])
    assert score.details["diff"] == ["- search(q=about_paris)", "+ search(q='Rome')"]
    terms = {"compare": {"q": lambda found, expected_text: found.lower() == expected_text.lower()}}
    lenient = {"name": "search", "arguments": {"q": "paris", "n": 1}}
    assert held(lenient, [RecordedCall("search", {"q": "PARIS", "n": 1})], **terms).passed
    assert not held(lenient, [RecordedCall("search", {"q": "PARIS", "n": 2})], **terms).passed


def test_the_diff_is_readable() -> None:
    """Reason and diff show missing, replaced and unexpected calls."""
    expected = ["plan", {"name": "search", "arguments": {"q": "Paris", "n": 3}}, "open", "answer"]
    actual = [
        RecordedCall("open"),
        RecordedCall("plan"),
        RecordedCall("search", {"q": "Rome", "x": 1}),
        RecordedCall("answer"),
    ]
    score = held(expected, actual, mode="exact")
    assert score.reason == snapshot(
        "2 of 4 expected calls; missing: search(q='Paris', n=3) (called as search(q='Rome', x=1):"
        " wrong: q (expected 'Paris', got 'Rome'), missing: n, unexpected: x), open(…) (called, but"
        " out of order); not expected: open(), search(q='Rome', x=1)"
    )
    assert score.details == snapshot(
        {
            "expected": ["plan(…)", "search(q='Paris', n=3)", "open(…)", "answer(…)"],
            "actual": ["open()", "plan()", "search(q='Rome', x=1)", "answer()"],
            "matched": 2,
            "diff": [
                "+ open()",
                "  plan()",
                "- search(q='Paris', n=3)",
                "- open(…)",
                "+ search(q='Rome', x=1)",
                "  answer()",
            ],
        }
    )
    unordered = held(["a", "b"], "cb", mode="any_order")
    assert unordered.details["diff"] == ["- a(…)", "  b()", "+ c()"]


def test_expected_calls_may_be_written_in_many_ways() -> None:
    one = ExpectedCall("search", {"q": 1})
    assert parse_expected_calls("search") == [ExpectedCall("search")]
    assert parse_expected_calls({"name": "search", "arguments": {"q": 1}}) == [one]
    assert parse_expected_calls((ToolCall("search", {"q": 1}), one)) == [one, one]
    assert parse_expected_calls({"answer": "Paris", "tools": ["search"]}) == [ExpectedCall("search")]
    assert parse_expected_calls([]) == []


def test_all_faults_of_an_expectation_are_reported() -> None:
    """With their places, and how to write it."""
    with pytest.raises(EvaluatorError) as caught:
        parse_expected_calls(["ok", "", 7, {"arguments": {}}, {"name": "a", "args": 1, "arguments": [1]}])
    assert str(caught.value) == snapshot("""\
tool_sequence: the expected tool calls cannot be read
  - expected[1]: a tool name must be a non-empty string, got ''
  - expected[2]: a tool name must be a non-empty string, got 7
  - expected[3]: a tool name must be a non-empty string, got None
  - expected[4]: unknown keys: 'args'; the keys are name and arguments
  - expected[4]: arguments must be a mapping, got a list
Fix: write a name, or {name: search, arguments: {query: Paris}}\
""")


@given(names, names)
def test_in_order_is_the_longest_common_subsequence(expected: list[str], actual: list[str]) -> None:
    """Compared with all subsequences."""
    longest = max(
        size
        for size in range(len(expected) + 1)
        if any(_is_within(part, actual) for part in combinations(expected, size))
    )
    assert held(expected, "".join(actual)).details["matched"] == longest


def _is_within(part: tuple[str, ...], whole: list[str]) -> bool:
    left = iter(whole)
    return all(name in left for name in part)


rows = st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=4)


@given(rows)
def test_any_order_finds_the_most_pairs(fits: list[list[bool]]) -> None:
    """Compared with every possible assignment."""
    expected = [{"name": "t", "arguments": {"place": lambda place, row=row: row[place]}} for row in fits]
    actual = [RecordedCall("t", {"place": place}) for place in range(3)]
    most = max(
        sum(row[place] for row, place in zip(some, order, strict=False))
        for some in permutations(fits)
        for order in permutations(range(3))
    )
    score = held(expected, actual, mode="any_order")
    assert score.details["matched"] == most
    lines = score.details["diff"]
    assert sum(line.startswith("  ") for line in lines) == most
    assert len(lines) == len(fits) + 3 - most


@given(names, names)
def test_a_diff_contains_both_sequences(expected: list[str], actual: list[str]) -> None:
    """Missing and matching lines are the expected calls, new and matching lines the actual ones."""
    lines = held(expected, "".join(actual), mode="exact").details["diff"]
    output = [(line[0], line[2]) for line in lines]
    assert [name for sign, name in output if sign in "- "] == expected
    assert [name for sign, name in output if sign in "+ "] == actual


@each_row(
    ("mode", "expected", "actual", "reason"),
    [
        ("in_order", "aa", "a", "a(…) (called once, expected 2 times)"),
        ("any_order", "aa", "ba", "a(…) (called once, expected 2 times)"),
        ("in_order", "aaa", "aba", "a(…) (called 2 times, expected 3 times)"),
        ("in_order", "aab", "ab", "a(…) (called once, expected 2 times)"),
        ("in_order", "ab", "ba", "b(…) (called, but out of order)"),
        ("in_order", "ac", "ab", "c(…)"),
    ],
)
def test_a_missing_repetition_is_not_out_of_order(mode: SequenceMode, expected: str, actual: str, reason: str) -> None:
    """The reason says how often a call is expected if every call of it counts already."""
    assert held(list(expected), actual, mode=mode).reason.endswith(f"missing: {reason}")
