"""Samples selected by id, metadata and tags; one error explains everything that no sample has."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.errors import ConfigError
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.selection import Selection, contains_words, find_samples
from proctor.records.trial import EvalResult, Failure, Trial
from tests.tables import each_row

SAMPLES: list[Sample[str, None]] = [
    Sample("1", "a", metadata={"topic": "billing", "level": 1, "user": {"plan": "free"}, "tags": ["hard"]}),
    Sample("2", "b", metadata={"topic": "billing", "level": 2.0, "user": {"plan": "paid"}, "done": True}),
    Sample("3", "c", metadata={"topic": "login", "level": 3, "tags": ["hard", "long"]}),
    Sample("4", "d", metadata={"level": 2.5, "a=b": "x"}),
]


def select(**rules: Any) -> str:
    """The ids of the selected samples."""
    return "".join(sorted(find_samples(lambda: SAMPLES, Selection(**rules))))


@each_row(
    "rules, ids",
    [
        ({}, "1234"),
        ({"samples": ("2", "4")}, "24"),
        ({"where": ("topic=billing",)}, "12"),
        ({"where": ("topic = billing",)}, "12"),
        ({"where": ("topic==billing",)}, "12"),
        # A sample without the key does not have the value.
        ({"where": ("topic!=billing",)}, "34"),
        ({"where": ("topic=billing", "topic=login")}, "123"),
        ({"where": ("topic!=billing", "topic!=login")}, "4"),
        ({"where": ("topic=billing", "user.plan=paid")}, "2"),
        ({"where": ("topic=",)}, "4"),
        ({"where": ("topic=(none)",)}, "4"),
        ({"where": ("topic!=",)}, "123"),
        ({"where": ("level=2",)}, "2"),
        ({"where": ("level=2.50",)}, "4"),
        ({"where": ("done=True",)}, "2"),
        ({"where": ("tags=long",)}, "3"),
        ({"tags": ("hard",)}, "13"),
        ({"tags": ("hard", "long")}, "13"),
        ({"tags": ("hard",), "where": ("topic=login",)}, "3"),
    ],
)
def test_rules_select_samples(rules: dict[str, Any], ids: str) -> None:
    """All rules must be met; values of one key, and tags, are alternatives."""
    assert select(**rules) == ids


@each_row(
    "rules, texts",
    [
        ({"samples": ("5x",)}, ["no sample has the id '5x'"]),
        ({"where": ("topik=x",)}, ["no sample has the metadata key 'topik'", "known keys: a=b, done", "mean 'topic'?"]),
        ({"where": ("topik=",)}, ["no sample has the metadata key 'topik'"]),
        ({"where": ("user=free",)}, ["'user' is a mapping", "choose one of: user.plan"]),
        ({"where": ("topic=biling",)}, ["no sample has this value of 'topic' (2 values)", "did you mean 'billing'?"]),
        ({"where": ("topic!=biling",)}, ["no sample has this value of 'topic'"]),
        ({"tags": ("hrad",)}, ["no sample has the tag 'hrad'", "did you mean 'hard'?"]),
        ({"where": ("topic",)}, ["where must be KEY=VALUE or KEY!=VALUE, got 'topic'"]),
        ({"where": ("=x",)}, ["where must be KEY=VALUE or KEY!=VALUE, got '=x'"]),
        ({"samples": ("1",), "where": ("topic=login",)}, ["no sample is selected by: sample 1, topic=login"]),
        (
            {"samples": ("9",), "where": ("topik=x", "level=7"), "tags": ("hrad",)},
            ["id '9'", "key 'topik'", "level=7: no sample has this value", "tag 'hrad'"],
        ),
    ],
)
def test_rules_that_match_nothing_are_explained(rules: dict[str, Any], texts: list[str]) -> None:
    """A misspelled id, key, value or tag never selects nothing, or everything, in silence."""
    with pytest.raises(ConfigError) as raised:
        select(**rules)
    for text in texts:
        assert text in str(raised.value)


@each_row(
    "words, is_match",
    [("refund", True), ("REFUND paris", True), ("refund london", False), ("too short", True), ("timeout", False)],
)
def test_words_are_searched_everywhere(words: str, is_match: bool) -> None:
    """In the input, the output, the expected value and the reasons, in any case and order."""
    sample = Sample("1", {"question": "A Refund?"}, "Paris")
    result = EvalResult(Trial(sample, "no"), {"judge": Score(0.0, False, reason="too short")})
    assert contains_words(result, words.casefold().split()) is is_match
    failed = EvalResult(Trial(sample, error=Failure("TimeoutError", "timeout after 30 s")))
    assert contains_words(failed, ["timeout"])
