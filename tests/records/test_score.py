"""Ruling 1: one score, finite and within 0..1, or none at all; ruling 5: how scores combine."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import fsum
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.errors import ProctorError
from proctor.records.score import NOT_LAST_EPOCH, Score, combine_all, combine_any
from tests.records.examples import any_score
from tests.tables import each_row

score_tables = st.dictionaries(st.text(max_size=2), any_score, max_size=5)


@given(st.floats())
@example(-0.0)
@example(1.0 + 2**-52)
def test_ruling_1_a_value_is_within_0_and_1_or_refused(value: float) -> None:
    """Ruling 1: any float either makes a score from 0 to 1 or is refused when it is made."""
    if 0.0 <= value <= 1.0:
        assert Score(value, True).value == value
    else:
        with pytest.raises(ValueError, match=r"Score\.value must be a number from 0 to 1"):
            Score(value, True)


@each_row("value", [None, float("nan"), float("inf"), -0.1, 1.1, 2, -1, 10**400, "0.5", b"1", [0.5], Decimal("nan")])
def test_ruling_1_what_is_no_such_number_is_refused(value: Any) -> None:
    """Ruling 1: nan, infinity, too small, too great, nothing, or no number at all."""
    with pytest.raises(ValueError, match=r"(?s)must be a number from 0 to 1.*use Score\.error"):
        Score(value, False)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (1, 1.0),
        (0, 0.0),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(1), 1.0),
        (np.array(0.5), 0.5),
        (Fraction(1, 4), 0.25),
    ],
)
def test_other_kinds_of_numbers_become_floats(value: Any, kept: float) -> None:
    """Whatever number an evaluator computes, the score holds what JSON and the history can hold."""
    score = Score(value, True)
    assert type(score.value) is float
    assert score.value == kept


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_a_boolean_is_not_a_value(value: Any) -> None:
    """`Score(True, 0.3)` has its arguments swapped, and is refused when it is made."""
    with pytest.raises(ValueError, match=r"(?s)value must be a number from 0 to 1, got .*write Score"):
        Score(value, True)
    with pytest.raises(ValueError, match="value must be a number"):
        Score(True, 0.3)  # type: ignore[arg-type]


@each_row("passed", ["no", "true", 0, 1, 0.3, None, [], np.float64(1.0), np.int64(0)])
def test_passed_is_a_boolean_or_refused(passed: Any) -> None:
    """`Score(0.5, "no")` would count as passed wherever its truth is tested: it cannot be made."""
    with pytest.raises(ValueError, match=r"(?s)passed must be True or False, got .*Score\.skipped"):
        Score(0.5, passed)


@pytest.mark.parametrize("passed", [np.True_, np.False_, np.array(True)])
def test_booleans_of_numpy_become_plain_ones(passed: Any) -> None:
    """What JSON and the history can hold, and `is True` can test."""
    assert Score(0.5, passed).passed is bool(passed)


@pytest.mark.parametrize("status", ["error", "skipped"])
def test_scores_without_a_verdict_written_by_earlier_versions_are_read(status: Any) -> None:
    """Earlier versions wrote passed=false with an error or a skip; it is read as None."""
    old = f'{{"value":null,"passed":false,"reason":"why","status":"{status}"}}'.encode()
    read = msgspec.json.decode(old, type=Score)
    assert read == getattr(Score, status)("why")
    assert read.passed is None
    assert msgspec.convert(msgspec.json.decode(old), Score) == read


@pytest.mark.parametrize("status", ["error", "skipped"])
def test_scores_without_a_verdict_keep_their_keys_in_json(status: Any) -> None:
    """A reader of the JSON finds `value` and `passed` in every score, and reads back the same."""
    made = getattr(Score, status)("why")
    written = msgspec.json.encode(made)
    assert msgspec.json.decode(written) == {"value": None, "passed": None, "reason": "why", "status": status}
    assert msgspec.json.decode(written, type=Score) == made


@pytest.mark.parametrize("status", ["error", "skipped"])
def test_ruling_1_an_error_or_a_skip_has_no_value_and_does_not_pass(status: Any) -> None:
    """Ruling 1: errors never become numbers."""
    assert Score(None, False, status=status).value is None
    for value, passed in [(0.0, False), (None, True), (1.0, True)]:
        with pytest.raises(ValueError, match="must have neither a value nor a verdict"):
            Score(value, passed, status=status)


def test_other_statuses_reasons_and_details_are_refused() -> None:
    """What could not be read back from the history is refused when it is made."""
    wrong: list[dict[str, Any]] = [{"status": "lost"}, {"reason": None}, {"details": None}]
    for fields in wrong:
        with pytest.raises(ValueError, match=f"Score.{next(iter(fields))}"):
            Score(**{"value": 1.0, "passed": True} | fields)
    details: Any = MappingProxyType({"a": 1})
    assert Score(1.0, True, details=details).details["a"] == 1


def test_scores_say_whether_they_are_a_verdict() -> None:
    """Only a score with a value is one; the others carry their reason and details."""
    assert Score(0.0, False).ok
    for made, status in [(Score.error("broken", {"at": 1}), "error"), (Score.skipped("no", {"at": 1}), "skipped")]:
        assert (made.ok, made.status, made.value, made.passed) == (False, status, None, None)
        assert made.details == {"at": 1}


def by_status(scores: dict[str, Score], status: str) -> list[str]:
    return [name for name, score in scores.items() if score.status == status]


@given(score_tables, st.sampled_from(["skip", "ignore"]))
def test_ruling_5_all_must_pass_and_the_value_is_the_mean(scores: dict[str, Score], skipped: Any) -> None:
    """In an `and` a failure decides; then an error, then a skip, unless skips are ignored."""
    combined = combine_all(scores, skipped)
    verdicts = [score for score in scores.values() if score.ok]
    errors = by_status(scores, "error")
    unknown = by_status(scores, "skipped") if skipped == "skip" else []
    if any(score.passed is False for score in verdicts):
        assert combined.passed is False
    elif errors:
        assert combined.status == "error"
    elif unknown or not verdicts:
        assert combined.status == "skipped"
    else:
        assert combined.passed is True
    if combined.ok:
        values = [score.value for score in verdicts if score.value is not None]
        assert combined.value == fsum(values) / len(values)
    assert combined.details.get("errors", []) == errors
    assert combined.details["parts"] == scores


@given(score_tables, st.sampled_from(["skip", "ignore"]))
def test_ruling_5_one_must_pass_and_the_value_is_the_greatest(scores: dict[str, Score], skipped: Any) -> None:
    """In an `or` a pass decides; then a skip; an error counts as not passed, and is named."""
    combined = combine_any(scores, skipped)
    verdicts = [score for score in scores.values() if score.ok]
    errors = by_status(scores, "error")
    unknown = by_status(scores, "skipped") if skipped == "skip" else []
    if any(score.passed for score in verdicts):
        assert combined.passed is True
    elif unknown or not scores or len(by_status(scores, "skipped")) == len(scores):
        assert combined.status == "skipped"
    elif verdicts:
        assert combined.passed is False
    else:
        assert combined.status == "error"
    if combined.ok:
        assert combined.value == max(score.value or 0.0 for score in verdicts)
    assert combined.details.get("errors", []) == errors


@given(score_tables)
def test_no_combination_passes_because_a_part_could_not_judge(scores: dict[str, Score]) -> None:
    """Making any part skipped never turns a combination that did not pass into one that did."""
    for combine in (combine_all, combine_any):
        before = combine(scores)
        for name in scores:
            after = combine({**scores, name: Score.skipped("it could not judge")})
            assert before.passed is True or after.passed is not True


def test_combinations_of_known_scores() -> None:
    """Three scores and what becomes of them."""
    good, bad = Score(1.0, True, "good"), Score(0.5, False, "bad")
    broken, silent = Score.error("broken"), Score.skipped("silent")
    assert combine_all({"a": good, "b": bad}) == Score(0.75, False, "b: bad", {"parts": {"a": good, "b": bad}})
    assert combine_all({"a": good, "s": silent}) == Score.skipped("s: silent", {"parts": {"a": good, "s": silent}})
    assert combine_all({"a": good, "s": silent}, "ignore").value == 1.0
    assert combine_all({"b": bad, "s": silent}).passed is False
    assert combine_all({"s": silent, "x": broken}).status == "error"
    assert combine_any({"a": good, "s": silent}).passed is True
    assert combine_any({"b": bad, "s": silent, "x": broken}).reason == "s: silent; x: broken"
    assert combine_any({"b": bad, "s": silent}, "ignore").passed is False
    assert combine_all({"a": good, "x": broken}).reason == "x: broken"
    assert combine_all({"a": good, "s": silent}, "ignore").reason == "a: good"
    assert combine_all({"a": bad}).reason == "bad"
    details = {"parts": {"b": bad, "x": broken}, "errors": ["x"]}
    assert combine_any({"b": bad, "x": broken}) == Score(
        0.5, False, "b: bad; x: broken", {**details, "incomplete": True, "uncertain": True}
    )
    assert combine_all({str(i): Score(0.1, True) for i in range(10)}).value == 0.1


def test_a_score_of_another_epoch_leaves_nothing_undecided() -> None:
    """An evaluator of repeats gives its score in the last epoch; the others are not skipped."""
    good, elsewhere = Score(1.0, True), Score.skipped(NOT_LAST_EPOCH)
    assert combine_all({"a": good, "s": elsewhere}).passed is True
    assert combine_any({"a": Score(0.0, False), "s": elsewhere}).passed is False
    assert combine_all({"r": elsewhere, "s": elsewhere}).reason == NOT_LAST_EPOCH


def test_a_combination_of_nothing_is_skipped() -> None:
    """Without scores there is no value: neither 0 nor 1."""
    assert combine_all({}).status == combine_any({}).status == "skipped"
    assert combine_all({"s": Score.skipped("no key")}).reason == "no key"


def test_an_invalid_score_is_an_error_of_proctor_and_a_value_error() -> None:
    """Both outside and inside a run."""
    with pytest.raises(ProctorError, match=r"Fix: use Score\.error or Score\.skipped") as caught:
        Score(float("nan"), True)
    assert isinstance(caught.value, ValueError)
    decimal: Any = Decimal("0.7")
    assert Score(decimal, True) == Score(0.7, True)
