"""Two configurations side by side: differences, pairs, intervals, and what is said of them."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.comparison.deltas import Comparison, FieldDelta, compare
from proctor.comparison.readings import Reading
from proctor.errors import ConfigError

NUMBER = st.integers(0, 4000).map(lambda eighths: eighths / 8)


def readings(*values: float | None, epochs: int = 1) -> list[Reading]:
    """One reading for each value: `epochs` of them for each sample, in order."""
    return [Reading(f"s{place // epochs}", place % epochs, v) for place, v in enumerate(values)]


def delta_of(mine: list[Reading], theirs: list[Reading], name: str = "tokens") -> FieldDelta:
    """The delta of one field between two configurations."""
    return compare("low", "high", {name: {"low": mine, "high": theirs}}).fields[name]


def test_the_example_of_the_specification() -> None:
    """450 beside 500 tokens are -50, which is -10 %; one sample has no interval."""
    found = compare("low_temp", "high_temp", {
        "tokens": {"low_temp": readings(450), "high_temp": readings(500)},
    })  # fmt: skip
    assert found.deltas == {"tokens": {"absolute": -50.0, "percentage": -10.0}}
    delta = found.fields["tokens"]
    assert (delta.a, delta.b, delta.n, delta.samples) == (450, 500, 1, 1)
    assert delta.interval is None
    assert not delta.decided
    assert delta.a_is_better is None


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=2, max_size=15))
def test_one_epoch_is_the_paired_t_interval(pairs: list[tuple[float, float]]) -> None:
    """Means are numpy's, and the interval is that of scipy's paired test."""
    mine, theirs = (list(side) for side in zip(*pairs, strict=True))
    delta = delta_of(readings(*mine), readings(*theirs))
    assert delta.a == pytest.approx(np.mean(mine))
    assert delta.b == pytest.approx(np.mean(theirs))
    assert delta.absolute == pytest.approx(np.mean(mine) - np.mean(theirs), abs=1e-9)
    is_binary = {*mine, *theirs} <= {0, 1}
    if len(set(np.subtract(mine, theirs))) > 1 and not is_binary:
        expected = stats.ttest_rel(mine, theirs).confidence_interval()
        assert delta.interval == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=10))
def test_swapping_turns_the_sign(pairs: list[tuple[float, float]]) -> None:
    """b beside a is the opposite of a beside b, interval and verdict included."""
    mine, theirs = (list(side) for side in zip(*pairs, strict=True))
    there = delta_of(readings(*mine), readings(*theirs))
    back = delta_of(readings(*theirs), readings(*mine))
    assert there.absolute is not None
    assert back.absolute == pytest.approx(-there.absolute)
    if there.interval is not None:
        assert back.interval == pytest.approx((-there.interval[1], -there.interval[0]))
    if there.a_is_better is not None:
        assert back.a_is_better is (not there.a_is_better)


def test_epochs_of_a_sample_count_as_one() -> None:
    """Epochs are averaged within their sample, so the interval rests on samples, not on trials."""
    mine = readings(1, 3, 4, 6, 8, 12, epochs=2)
    theirs = readings(0, 0, 1, 1, 2, 2, epochs=2)
    delta = delta_of(mine, theirs)
    assert (delta.n, delta.samples) == (6, 3)
    assert delta.absolute == pytest.approx(14 / 3)
    expected = stats.ttest_1samp([2, 4, 8], 0).confidence_interval()
    assert delta.interval == pytest.approx((expected.low, expected.high))


def test_a_sample_with_more_epochs_does_not_weigh_more() -> None:
    """Nine epochs of one sample and one of the other: the mean is over two samples."""
    mine = [*(Reading("often", epoch, 0.0) for epoch in range(9)), Reading("once", 0, 1.0)]
    theirs = [Reading(one.sample_id, one.epoch, 0.0) for one in mine]
    assert delta_of(mine, theirs).absolute == 0.5


def test_only_what_both_have_is_compared_and_the_rest_is_counted() -> None:
    """A sample that one of them lacks, or has no number for, is left out of means and counted."""
    mine = [Reading("a", 0, 10.0), Reading("b", 0, 1000.0), Reading("c", 0, None)]
    theirs = [Reading("a", 0, 8.0), Reading("c", 0, 5.0), Reading("d", 0, float("nan"))]
    delta = delta_of(mine, theirs)
    assert (delta.a, delta.b, delta.absolute, delta.n) == (10.0, 8.0, 2.0, 1)
    assert (delta.only_a, delta.only_b) == (1, 1)
    assert delta.percentage == 25.0


def test_without_pairs_there_is_no_difference() -> None:
    """Each has its own mean; nothing is subtracted that does not belong together."""
    delta = delta_of([Reading("a", 0, 1.0)], [Reading("b", 0, 2.0)])
    assert (delta.a, delta.b, delta.absolute, delta.percentage) == (1.0, 2.0, None, None)
    assert (delta.only_a, delta.only_b, delta.n) == (1, 1, 0)
    nothing = compare("low", "high", {"output": {"low": readings(None), "high": readings(None)}})
    assert nothing.deltas == {}
    assert nothing.fields["output"].a is None


def test_of_a_zero_there_is_no_percentage() -> None:
    """The difference from 0 is absolute only; from a negative number it keeps its sign."""
    delta = delta_of(readings(3), readings(0))
    assert (delta.absolute, delta.percentage) == (3, None)
    assert delta_of(readings(-1), readings(-2)).percentage == 50.0


def test_equal_differences_are_decided_from_six_on() -> None:
    """Five samples that all saved 50 tokens could be chance (p = 0.06), six (p = 0.03) are not."""
    five = delta_of(readings(*[450] * 5), readings(*[500] * 5))
    six = delta_of(readings(*[450] * 6), readings(*[500] * 6))
    assert (five.decided, five.p) == (False, 2 / 32)
    assert (six.a_is_better, six.p) == (True, 2 / 64)
    assert five.interval is six.interval is None
    unmoved = delta_of(readings(*[450] * 6), readings(*[450] * 6))
    assert (unmoved.decided, unmoved.p, unmoved.interval) == (False, 1.0, None)


def test_passes_and_failures_have_an_interval_also_where_nothing_differs() -> None:
    """Ten that all passed twice: 0 ± 1.96 √2 / 12; ten that all rose are decided, four are not."""
    same = delta_of(readings(*[1] * 10), readings(*[1] * 10))
    assert same.interval == pytest.approx((-0.23098, 0.23098), abs=1e-5)
    assert not same.decided
    rose = delta_of(readings(*[1] * 10), readings(*[0] * 10), "score")
    assert rose.interval is not None
    assert 0.5 < rose.interval[0] < rose.interval[1] == 1.0
    assert rose.a_is_better is True
    four = delta_of(readings(*[1] * 4), readings(*[0] * 4))
    assert (four.decided, four.p) == (False, 2 / 16)


def test_the_interval_of_passes_holds_the_truth_as_often_as_it_says() -> None:
    """Of 400 simulated comparisons at least 92 % hold the true difference, rare or not."""
    chance = random.Random(3)
    for n, rose, fell in ((10, 0.05, 0.0), (20, 0.05, 0.05), (50, 0.3, 0.2)):
        held = 0
        for _ in range(400):
            drawn = [chance.random() for _ in range(n)]
            mine = [0.0 if rose <= one < rose + fell else 1.0 for one in drawn]
            theirs = [0.0 if one < rose else 1.0 for one in drawn]
            interval = delta_of(readings(*mine), readings(*theirs)).interval
            assert interval is not None
            held += interval[0] <= rose - fell <= interval[1]
        assert held / 400 >= 0.92


def test_better_is_told_by_name_or_by_the_caller_and_scores_are_better_higher() -> None:
    """Fewer tokens are better; a name that says nothing needs a word; scores need none."""
    more, less = readings(9, 10, 11, 10, 9, 11), readings(1, 2, 1, 2, 1, 2)
    held = {"a": more, "b": less}
    found = compare("a", "b", {"tokens": held, "warmth": held}, {"output.cost_judge": held})
    assert found.fields["tokens"].a_is_better is False
    assert found.fields["warmth"].a_is_better is None
    assert found.scores["output.cost_judge"].a_is_better is True
    told = compare("a", "b", {"warmth": held}, better={"warmth": True})
    assert told.fields["warmth"].a_is_better is True


def test_an_unknown_configuration_is_refused_with_the_nearest() -> None:
    """A misspelt name is told the right one."""
    held = {"tokens": {"low_temp": readings(1), "high_temp": readings(2)}}
    with pytest.raises(ConfigError, match="did you mean 'high_temp'"):
        compare("low_temp", "hihg_temp", held)


def test_a_configuration_may_lack_a_field() -> None:
    """What only one of them has is shown as it is."""
    found = compare("a", "b", {"x": {"a": readings(1)}, "y": {"a": readings(1), "b": readings(2)}})
    assert (found.fields["x"].a, found.fields["x"].b, found.fields["x"].only_a) == (1, None, 1)


def test_rows_are_plain_and_the_record_is_json() -> None:
    """Rows hold nothing but plain values; the comparison is written and read back the same."""
    held = {"low": readings(1, 2, 4), "high": readings(2, 4, 6)}
    found = compare("low", "high", {"tokens": held}, {"output.judge": held})
    row = found.rows()[0]
    assert (row["kind"], row["field"], row["absolute"]) == (
        "field",
        "tokens",
        pytest.approx(-5 / 3),
    )
    assert row["low"] < row["absolute"] < row["high"]
    assert found.rows()[1]["kind"] == "score"
    assert found.score_deltas.keys() == {"output.judge"}
    assert msgspec.json.decode(msgspec.json.encode(found), type=Comparison) == found


def test_the_table_reads_like_this() -> None:
    """The printed table has a line for each field, with dashes for what is not known."""
    found = compare(
        "low",
        "high",
        {
            "tokens": {"low": readings(440, 460, 450), "high": readings(500, 500, 500)},
            "output": {"low": readings(None), "high": readings(None)},
            "cost": {"low": readings(12345.678), "high": readings(0)},
        },
    )
    assert str(found).splitlines() == [
        "          low  high  difference      %    95 % interval  pairs",
        "tokens    450   500         -50  -10.0  -74.84 … -25.16      3",
        "output      –     –           –      –                –      0",
        "cost    12346     0       12346      –                –      1",
    ]


def test_readings_of_any_value() -> None:
    """Booleans are 0 and 1; texts, NaN, nulls and what no float holds are missing."""
    values = [Reading.of("1", 0, value).value for value in (True, 3, 0.5, "3", None, float("nan"))]
    assert values == [1.0, 3.0, 0.5, None, None, None]
    assert Reading.of("1", 0, 10**400).value is None
