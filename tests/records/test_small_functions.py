"""Functions of the records that turn a value into another one."""

from __future__ import annotations

import math
from array import array
from typing import Any

import pytest

from proctor.records import codec
from proctor.records.comparison import list_aliases
from proctor.records.fields.context import Delta
from proctor.records.fields.path import parse_path
from proctor.records.fields.view import view_as_mapping
from proctor.records.formatting import (
    add_clusters,
    format_change,
    format_changes,
    format_estimate,
    format_plain,
    format_probability,
    format_range,
    format_value,
)
from proctor.records.metric import Trend
from proctor.records.model import render_content, render_value, summarize_data
from proctor.records.numbers import (
    as_number,
    higher_is_better,
    is_fraction,
    is_number,
    read_percent,
    token_count,
    total_tokens,
)
from proctor.records.order import Positions, shuffle_key
from proctor.records.results import count_outcomes, list_shared_clusters, to_array
from proctor.records.rubric import (
    Rubric,
    describe_unknown_keys,
    find_scale,
    find_set_problems,
    make_rubric,
    weighted_mean,
)
from proctor.records.run import CachedOutputs, EvaluatorSpec, Provenance
from proctor.records.sample import Sample, find_metadata_problems, find_tag_problems, type_name
from proctor.records.score import Score, combine_all, combine_any, drop_verdict, read_parts
from proctor.records.session import (
    CustomEvent,
    Message,
    ToolCall,
    Usage,
    drop_impossible_counts,
    find_impossible_counts,
)
from proctor.records.session_events import CallerIndex, RepeatedCalls, UnknownRoleMessage, interpret_event
from proctor.records.trial import Trial
from tests.tables import each_row

PASS, FAIL = Score(1.0, True), Score(0.0, False)
ERROR, SKIP = Score.error("no answer"), Score.skipped("no text")
UNKNOWN_KEY = "rubric 'a': unknown key 'tags' is stored in its metadata"
IMAGE = {"type": "image", "source": {"media_type": "image/png", "data": "iVBO" * 1003}}


def make_unknown_key() -> Rubric:
    return make_rubric({"id": "a", "name": "A", "description": "…", "scoring_criteria": "…", "tags": ["x"]})


@each_row(
    ("actual", "expected"),
    [
        (codec.encode({"a": (1, 2)}), b'{"a":[1,2]}'),
        (codec.to_text({"a": 1}), '{"a":1}'),
        (codec.to_text({1: "x", "1": "y"}), '{"1":"x","1":"y"}'),
        (codec.to_text({"loss": math.nan}), '{"loss":NaN}'),
        (codec.to_text(b"\x00\xff"), "2 bytes: b'\\x00\\xff'"),
        (codec.decode('{"a": 1}', dict), {"a": 1}),
        (codec.to_plain({1, 2}), [1, 2]),
        (codec.encode_canonical({"b": {3, 1, 2}, "a": None}), b'{"a":null,"b":[1,2,3]}'),
        (codec.digest({"a": 1, "b": 2}), codec.digest({"b": 2, "a": 1})),
        (list_aliases("field.output.mean"), ("field.output.mean", "output.mean", "output")),
        (Delta.between(450, 500), Delta(-50, -10.0)),
        (Delta.between(3, 0)["percentage"], None),
        (summarize_data("See data:image/png;base64,iVBORw0KGgo= here."), "See (image, image/png, 34 characters) here."),
        (render_value(IMAGE, repr), "(image, image/png, 4,012 characters)"),
        (render_content(["Look:", {"type": "text", "text": "here"}, {"a": 1}], repr), "Look:\nhere\n{'a': 1}"),
        (Trend("pass_rate", ()).series, {}),
        (count_outcomes(bytes([0, 0, 1])).passed, 2),
        (list_shared_clusters(["a", "b", "a"]), ["a", "b", "a"]),
        (list_shared_clusters(["a", "b"]), None),
        (repr(to_array([0.5, None])), repr(array("d", [0.5, math.nan]))),
        (sorted("abcd", key=lambda name: shuffle_key(7, name)), ["d", "c", "b", "a"]),
        (weighted_mean([(1.0, 0.25), (3.0, 0.75)]), 0.625),
        (find_scale(Rubric("a", "A", "…", "…")), (1.0, 5.0)),
        (find_scale(Rubric("a", "A", "…", "…", scale=(0, 10))), (0, 10)),
        (list(find_set_problems({"version": "1.0"})), [((), "'rubrics' is missing. Fix: add a list of rubrics")]),
        (describe_unknown_keys(make_unknown_key()), UNKNOWN_KEY),
        (EvaluatorSpec("polite", "llm_judge", {"adapter": "openai:gpt"}).judges, ("openai:gpt",)),
        (Provenance("0d1f3a5c7e9b2d4f", "main", dirty=True).code, "0d1f3a5c7e9b on main, with changes"),
        (str(CachedOutputs(3, 1200)), "3 of 1,200 outputs from the cache"),
        (list(find_tag_problems({"branch": "main"})), []),
        (len(list(find_tag_problems({"n": 1}))), 1),
        (find_metadata_problems({"tags": "easy"}), [("metadata.tags", "must be a list of strings, got a string")]),
        ([type_name(value) for value in (True, 3, [1], None)], ["a boolean", "a number", "a list", "null"]),
        (find_impossible_counts(Usage(-5, 3)), {"input_tokens": -5}),
        (find_impossible_counts(Usage(5, 3)), {}),
        (drop_impossible_counts(Usage(5, -3, 2)), Usage()),
        (drop_impossible_counts(Usage(5, 3, -2)), Usage(5, 3)),
        (
            interpret_event(CustomEvent("message: narrator", {"role": "narrator", "content": "Night falls."})),
            UnknownRoleMessage("narrator", "Night falls."),
        ),
    ],
)
def test_the_result_is(actual: Any, expected: Any) -> None:
    assert actual == expected


@each_row(
    ("actual", "expected"),
    [
        (format_value(0.8125, "rate"), "81.2%"),
        (format_value(0.8125, "score"), "0.812"),
        (format_value(None), "–"),
        (format_range((0.558, 0.787), "rate"), "55.8–78.7"),
        (format_range((-3.0, 1.5)), "-3 to 1.5"),
        (format_range(None), "–"),
        (format_change(0.0432, "rate"), "+4.3"),
        (format_change(-0.0432, "score"), "-0.043"),
        (format_change(0.0), "0"),
        (format_change(0.5, sign=""), "0.5"),
        (format_changes((-0.071, 0.012), "rate"), "-7.1 to +1.2"),
        (add_clusters("200 samples", 40), "200 samples in 40 clusters"),
        (add_clusters("1 sample", None), "1 sample"),
        (format_plain(0.0123456), "0.01235"),
        (format_plain(12345.6), "12,346"),
        (format_plain(3, "+"), "+3"),
        (format_probability(0.0312), "0.031"),
        (format_probability(0.00000012), "<0.0001"),
        (format_probability(1.0), "1"),
        (format_estimate(7), "7"),
        (format_estimate(1234), "1,300"),
        (format_estimate(1_999), "2,000"),
    ],
)
def test_numbers_are_formatted_for_people(actual: str, expected: str) -> None:
    assert actual == expected


def test_numbers_are_checked() -> None:
    assert [is_number(value) for value in (3, True, "3", math.nan)] == [True, False, False, False]
    assert [is_fraction(value) for value in (0.5, 1.5)] == [True, False]
    assert [read_percent(text) for text in ("80%", "12.5 %", "0.8")] == [0.8, 0.125, None]
    assert [token_count(value) for value in (12, 12.0, -1, True, "12")] == [12, 12, None, None, None]
    assert [total_tokens(3, None, 4), total_tokens(3, -4), total_tokens(None)] == [7, -4, None]
    assert [as_number(value) for value in (True, 450, "450", math.nan)] == [1.0, 450.0, None, None]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("usage.total_tokens", False),
        ("output.coherence", True),
        ("tokens_per_second", True),
        ("temperature", None),
        ("errors_fixed", True),
        ("max_tokens", None),
    ],
)
def test_a_name_tells_whether_higher_is_better(name: str, expected: bool | None) -> None:
    assert higher_is_better(name) is expected


def test_a_path_finds_values() -> None:
    assert parse_path("usage.total_tokens").keys == ("usage", "total_tokens")
    assert parse_path("usage.total_tokens").find({"usage": {"total_tokens": 12}}) == 12
    assert parse_path("items.*.name").find({"items": [{"name": "a"}, {"name": "b"}]}) == ["a", "b"]
    view = view_as_mapping(Trial(Sample("1", "2 + 2?", metadata={"baseline_output": "5"}), "4"))
    assert (view["output"], view["baseline_output"]) == ("4", "5")


def test_positions_are_added_once() -> None:
    finished = Positions()
    assert (finished.add(3), finished.add(3), 3 in finished, 4 in finished) == (True, False, True, False)


@each_row(
    ("score", "status", "passed"),
    [
        (combine_all({"a": PASS, "b": Score(0.5, False)}), "ok", False),
        (combine_all({"a": FAIL, "b": ERROR}), "ok", False),
        (combine_all({"a": PASS, "b": ERROR}), "error", None),
        (combine_all({"a": PASS, "b": SKIP}), "skipped", None),
        (combine_all({"a": PASS, "b": SKIP}, "ignore"), "ok", True),
        (combine_any({"a": PASS, "b": ERROR}), "ok", True),
        (combine_any({"a": FAIL, "b": SKIP}), "skipped", None),
        (drop_verdict(combine_any({"a": FAIL, "b": ERROR})), "error", None),
    ],
)
def test_scores_are_combined(score: Score, status: str, passed: bool | None) -> None:
    assert (score.status, score.passed) == (status, passed)
    assert list(read_parts(score)) == ["a", "b"]


def test_calls_in_messages_are_matched_with_events() -> None:
    search = ToolCall("search", {"q": "x"}, call_id="1")
    message = Message("assistant", "", tool_calls=(search, ToolCall("open")))
    assert RepeatedCalls([search]).unrepeated_calls(message) == [ToolCall("open")]
    callers = CallerIndex()
    callers.add_message(Message("assistant", "", name="sub-agent a", tool_calls=(search,)))
    assert (callers.get_caller(search), callers.get_caller(ToolCall("search"))) == ("sub-agent a", None)
