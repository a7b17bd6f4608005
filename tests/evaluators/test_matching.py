"""The matching evaluators, case by case."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from proctor.errors import EvaluatorError
from proctor.evaluators.combination import negate
from proctor.evaluators.matching import contains, exact_match, json_subset, regex_match, within_tolerance
from proctor.evaluators.numeric.numbers import numeric_answer
from proctor.evaluators.rules import ends_with, keywords, letter_case, occurrences, starts_with, text_count
from proctor.records.score import Score
from tests.tables import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@dataclasses.dataclass
class City:
    """A user's own dataclass."""

    name: str
    founded: int | None = None


class CityModel(BaseModel):
    """A user's own model."""

    name: str


class CityStruct(msgspec.Struct):
    """A user's own struct."""

    name: str


class Opaque:
    """An object that JSON cannot show."""


@each_row(
    ("output", "expected"),
    [
        ("a", "a"),
        (1, 1.0),
        (True, True),
        ([1, [2]], (1, (2,))),
        ({"a": [1]}, {"a": [1]}),
        ([], []),
        ([1, 2], [1, 2]),
        (["a", "b"], ["a", "b"]),
        ("b", ["a", "b"]),
        ("b", ("b",)),
        (City("Rome"), City("Rome")),
        (City("Rome"), {"name": "Rome", "founded": None}),
        (CityModel(name="Rome"), {"name": "Rome"}),
        (CityStruct("Rome"), CityModel(name="Rome")),
        (dt.date(2024, 2, 29), "2024-02-29"),
        ({1, 2}, {2, 1}),
    ],
)
def test_exact_match_passes(output: Any, expected: Any) -> None:
    assert exact_match(output, expected).value == 1.0


@each_row(
    ("output", "expected"),
    [
        ("a", "A"),
        ("a ", "a"),
        (1, True),
        (0, False),
        (1, "1"),
        ([True], [1]),
        ([1, 2], [2, 1]),
        ([1, 2], [1]),
        ([1, 2], 2),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": True}, {"a": 1}),
        ([], ["a"]),
        (["a"], []),
        (["a", "b"], ["b", "a"]),
        (["a", "b"], ["b", "c"]),
        (["a", "b"], "b"),
        (["b"], ["a", "b"]),
        ("c", ["a", "b"]),
        ("b", []),
        (2, [1, 2]),
        (math.nan, math.nan),
        (City("Rome"), {"name": "Roma", "founded": None}),
        (Opaque(), Opaque()),
        (Opaque(), "x"),
    ],
)
def test_exact_match_does_not_pass(output: Any, expected: Any) -> None:
    """No surprise such as True being 1."""
    score = exact_match(output, expected)
    assert (score.value, score.passed, score.status) == (0.0, False, "ok")


def test_exact_match_can_leave_case_aside() -> None:
    assert exact_match("STRASSE", "straße", case_sensitive=False).passed
    assert exact_match({"a": ["X"]}, {"a": ["x"]}, case_sensitive=False).passed
    assert exact_match(["Why?"], ["WHY?"], case_sensitive=False).passed
    assert not exact_match({"A": 1}, {"a": 1}, case_sensitive=False).passed


def test_exact_match_tells_what_it_saw() -> None:
    assert exact_match("b", "a").reason == "expected 'a', got 'b'"
    assert len(exact_match("b" * 1000, "a" * 1000).reason) < 150


@given(JSON)
def test_everything_matches_itself(value: Any) -> None:
    assert exact_match(value, value).passed
    assert exact_match(value, value, case_sensitive=False).passed


@given(JSON, JSON)
def test_exact_match_is_the_same_either_way(left: Any, right: Any) -> None:
    if isinstance(left, str) is isinstance(right, str):
        assert exact_match(left, right).passed == exact_match(right, left).passed


@each_row(
    ("output", "expected", "value"),
    [
        ("The answer is 42.", "42", 1.0),
        ("The answer is 42.", "43", 0.0),
        ("red, green", ["red", "green"], 1.0),
        ("red, green", ["red", "blue"], 1.0),
        ("red, green", ("white", "blue", "grey"), 0.0),
        (["an apple", "a pear"], "apple", 1.0),
        (["an apple", "a pear"], ["apple", "plum"], 0.5),
        ([1, 2], 2, 1.0),
        ([1, 2], [2, 3], 0.5),
        ([1], True, 0.0),
        ([{"a": 1}], {"a": 1}, 1.0),
        ({"x", "y"}, "x", 1.0),
    ],
)
def test_contains_is_the_share_that_was_found(output: Any, expected: Any, value: float) -> None:
    score = contains(output, expected)
    assert (score.value, score.passed) == (value, value == 1.0)


def test_contains_can_leave_case_aside() -> None:
    assert contains("PARIS, France", "paris", case_sensitive=False).passed
    assert contains(["PARIS", 1], ["paris"], case_sensitive=False).passed
    assert not contains("PARIS", "paris").passed


def test_contains_names_what_is_missing() -> None:
    score = contains("red", ["red", "green", "blue"], match="all")
    assert (score.reason, score.passed) == ("missing: 'green', 'blue'", False)
    assert contains("red", ["green", "blue"]).reason == "it contains none of these: 'green', 'blue'"


def test_contains_skips_empty_expected_values() -> None:
    assert contains("red", []).status == "skipped"


@pytest.mark.parametrize(("output", "expected"), [(42, "4"), ({"a": 1}, "a"), ("42", 42), ("a", [1])])
def test_contains_looks_for_text_in_text(output: Any, expected: Any) -> None:
    """Ruling 1: what cannot be judged is an error, not 0."""
    assert contains(output, expected).status == "error"


@given(st.text(), st.text(min_size=1), st.text())
def test_a_text_contains_its_parts(before: str, part: str, after: str) -> None:
    assert contains(before + part + after, part).value == 1.0
    assert contains(before, "").status == "skipped"


def test_regex_match_looks_for_the_pattern() -> None:
    assert regex_match("order 66", pattern="[0-9]+").reason == "matched '66'"
    assert regex_match("order 66", "[0-9]+").passed
    assert regex_match("order 66", "never", pattern="order").passed
    assert regex_match("order 66", pattern="^[0-9]").reason == "no match for '^[0-9]'"


def test_a_set_equals_no_list() -> None:
    """A set has no order; the reason shows both values as they are."""
    assert exact_match({1, 2}, [1, 2]).reason == "expected [1, 2], got {1, 2}"
    assert exact_match([1, 2], {1, 2}).passed is False
    assert exact_match({"x": {1, 2}}, {"x": [1, 2]}).passed is False


@pytest.mark.parametrize(("mode", "passed"), [("search", [True, True, True]), ("match", [True, True, False])])
def test_regex_match_has_modes(mode: Any, passed: list[bool]) -> None:
    texts = ("ab", "abc", "xab")
    assert [regex_match(text, pattern="ab", mode=mode).passed for text in texts] == passed


def test_regex_match_can_ask_for_the_whole_text() -> None:
    assert regex_match("ab", pattern="ab", mode="fullmatch").passed
    assert not regex_match("abc", pattern="ab", mode="fullmatch").passed


def test_regex_match_has_flags() -> None:
    assert regex_match("ONE\ntwo", pattern="^TWO$", flags="im").passed
    assert not regex_match("ONE\ntwo", pattern="^TWO$", flags="i").passed
    assert regex_match("a\nb", pattern="a.b", flags="s").passed


def test_regex_match_without_a_pattern_skips() -> None:
    assert regex_match("x").status == "skipped"


@pytest.mark.parametrize(("output", "expected", "flags"), [("x", "(", ""), ("x", "x", "q"), ("x", 3, ""), (3, "x", "")])
def test_regex_match_cannot_judge_everything(output: Any, expected: Any, flags: str) -> None:
    """Ruling 1: a bad pattern, flag or output is an error, not 0."""
    assert regex_match(output, expected, flags=flags).status == "error"


@pytest.mark.parametrize(
    ("output", "expected", "value", "passed"),
    [
        (10, 10, 1.0, True),
        (10.25, 10, 0.5, True),
        (9.75, 10, 0.5, True),
        (10.5, 10, 0.0, True),
        (10.75, 10, 0.0, False),
        (Fraction(41, 4), 10, 0.5, True),
    ],
)
def test_within_tolerance_falls_to_0_at_the_limit(output: Any, expected: Any, value: float, passed: bool) -> None:
    """Ruling: a difference of just the tolerance passes with value 0."""
    score = within_tolerance(0.5)(output, expected)
    assert (score.value, score.passed) == (value, passed)


def test_the_edge_is_meant_in_decimal_numbers() -> None:
    """1.1 and 1.0 differ by 0.1 for people, if not to the last binary digit."""
    assert 1.1 - 1.0 > 0.1
    assert within_tolerance(0.1)(1.1, 1.0).passed is True


def test_no_tolerance_asks_for_equality() -> None:
    assert within_tolerance(0)(3, 3).value == 1.0
    assert within_tolerance(0)(3, 3.001).value == 0.0


def test_a_relative_tolerance_is_a_share_of_the_expected_number() -> None:
    """Nothing but 0 is near 0."""
    near = within_tolerance(0.1, relative=True)
    assert near(95, 100).value == pytest.approx(0.5)
    assert near(-95, -100).passed is True
    assert near(89, 100).passed is False
    assert near(0, 0).value == 1.0
    assert near(0.001, 0).passed is False


@pytest.mark.parametrize("wrong", ["3", True, None, math.nan, math.inf, 10**400, ["3"]])
def test_within_tolerance_takes_numbers_only(wrong: Any) -> None:
    """Ruling 1: texts, booleans and what is not finite are errors, not 0."""
    assert within_tolerance(1)(wrong, 3).status == "error"
    assert within_tolerance(1)(3, wrong).status == "error"
    assert "numeric_answer" in within_tolerance(1)("3.14", 3).reason  # type: ignore[arg-type]


@pytest.mark.parametrize("tolerance", [-1, math.nan, "1", True])
def test_a_tolerance_must_be_a_number_of_0_or_more(tolerance: Any) -> None:
    with pytest.raises(EvaluatorError, match="tolerance must be a number, 0 or more"):
        within_tolerance(tolerance)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0, 1e6), st.booleans())
def test_within_tolerance_always_gives_a_verdict_on_numbers(
    output: float, expected: float, tolerance: float, relative: bool
) -> None:
    """Property: the value is within 0..1, and whatever has a value above 0 passes."""
    score = within_tolerance(tolerance, relative=relative)(output, expected)
    assert score.value is not None
    assert score.passed or score.value == 0.0


@each_row(
    ("output", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}),
        ({"a": [1, 2]}, {"a": [1, 2]}),
        ('{"a": 1, "b": 2}', {"a": 1}),
        ({"a": 1}, '{"a": 1}'),
        ({"a": {"b": 1}}, {"a": {}}),
        (City("Rome", 1), {"name": "Rome"}),
        ({"city": City("Rome", 1)}, {"city": {"name": "Rome"}}),
    ],
)
def test_json_subset_passes(output: Any, expected: Any) -> None:
    assert json_subset(output, expected).value == 1.0


@each_row(
    ("output", "expected", "reason"),
    [
        ({}, {"a": 1}, "missing: a"),
        ({"a": 2}, {"a": 1}, "wrong: a (expected 1, got 2)"),
        ({"a": True}, {"a": 1}, "wrong: a (expected 1, got True)"),
        ({"a": {"b": {}}}, {"a": {"b": {"c": 1}}}, "missing: a.b.c"),
        ({"a": [1]}, {"a": [1, 2]}, "wrong: a (expected [1, 2], got [1])"),
        ({"a": 1}, {"a": {"b": 1}}, "wrong: a (expected {'b': 1}, got 1)"),
        ({"b": 2}, {"a": 1, "b": 3}, "missing: a; wrong: b (expected 3, got 2)"),
        ([1], {"a": 1}, "the output is not a mapping: it is a list"),
        ("[1]", {"a": 1}, "the output is not a mapping: it is a list"),
    ],
)
def test_json_subset_names_what_is_missing_or_wrong(output: Any, expected: Any, reason: str) -> None:
    score = json_subset(output, expected)
    assert (score.value, score.passed, score.reason) == (0.0, False, reason)


def test_json_subset_tells_a_bad_output_from_a_bad_sample() -> None:
    assert json_subset("{", {"a": 1}).status == "ok"
    assert "not JSON" in json_subset("{", {"a": 1}).reason
    assert json_subset({"a": 1}, "{").status == "error"
    assert json_subset({"a": 1}, [1]).status == "error"


MAPPINGS = st.dictionaries(st.text(max_size=3), JSON, min_size=1, max_size=3)


@given(MAPPINGS, MAPPINGS)
def test_a_mapping_with_more_in_it_still_holds_the_rest(expected: dict[str, Any], more: dict[str, Any]) -> None:
    assert json_subset({**more, **expected}, expected).passed


@pytest.mark.parametrize("expected", [{}, "{}"])
def test_an_empty_expected_mapping_is_skipped(expected: object) -> None:
    score = json_subset({"a": 1}, expected)
    assert score.status == "skipped"
    assert "nothing to look for" in score.reason


@pytest.mark.parametrize(
    "score",
    [
        exact_match(None, "a"),
        contains(None, "a"),
        contains(None, ["a", "b"]),
        regex_match(None, pattern="a"),
        json_subset(None, {"a": 1}),
        numeric_answer(None, 1),
        text_count(None, at_most=5),
        occurrences(None, text="a", at_least=0),
        keywords(None, include=["a"]),
        starts_with("a")(None),
        ends_with("a")(None),
        letter_case(None),
    ],
)
def test_an_output_of_none_fails(score: Score) -> None:
    """A target that returns None gave no answer: that is a failure, not an error of the evaluator."""
    assert (score.status, score.value, score.passed) == ("ok", 0.0, False)
    assert "None" in score.reason or "null" in score.reason


@pytest.mark.parametrize("number", [Decimal("5"), Fraction(5), 5, 5.0])
def test_a_number_is_not_its_text(number: Any) -> None:
    assert exact_match(number, 5).passed
    assert not exact_match(number, "5").passed
    assert not exact_match("5", number).passed


def test_a_target_that_returned_nothing_does_not_pass_by_being_different() -> None:
    assert not negate(exact_match)(None, "a").passed
    assert exact_match(None, None).passed


def test_a_subset_may_stand_in_a_fence_if_fences_are_allowed() -> None:
    """The same option as in `json_validity`; without it, the reason names it."""
    fenced = '```json\n{"city": "Paris", "country": "France"}\n```'
    assert json_subset(fenced, {"city": "Paris"}, allow_fences=True).passed is True
    assert json_subset(fenced, [{"city": "Rome"}, {"city": "Paris"}], allow_fences=True).passed is True
    plain = json_subset(fenced, {"city": "Paris"})
    assert plain.passed is False
    assert "allow_fences=True" in plain.reason
