"""Configurations in a row: best, worst, ties, missing numbers, and whether it is decided."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.comparison.ranking import Ranking, rank
from proctor.comparison.readings import Reading
from proctor.errors import ConfigError

VALUES = st.lists(st.none() | st.integers(0, 50).map(float), min_size=1, max_size=6)


def readings(*values: float | None) -> list[Reading]:
    """One sample for each value."""
    return [Reading(f"s{place}", 0, value) for place, value in enumerate(values)]


def test_three_configurations_by_tokens() -> None:
    """Ascending, the lowest is best; descending, the highest."""
    held = {"high": readings(520, 500), "low": readings(440, 460), "med": readings(480, 480)}
    up, down = rank("tokens", "asc", held), rank("tokens", "desc", held)
    assert [one.configuration for one in up.places] == ["low", "med", "high"]
    assert (up.best, up.worst) == ("low", "high") == (down.worst, down.best)
    assert [one.value for one in up.places] == [450, 480, 510]
    assert [one.rank for one in up.places] == [1, 2, 3]


def test_ties_stand_by_name_and_the_missing_last() -> None:
    """Equal means are in order of their names, whatever the order asked for."""
    held = {"c": readings(1), "b": readings(None, None), "a": readings(1), "d": readings()}
    for order in ("asc", "desc"):
        ranking = rank("tokens", order, held)
        assert [one.configuration for one in ranking.places] == ["a", "c", "b", "d"]
        assert (ranking.best, ranking.worst) == ("a", "c")
    assert [(one.n, one.missing) for one in ranking.places] == [(1, 0), (1, 0), (0, 2), (0, 0)]


def test_what_differs_by_rounding_alone_is_a_tie() -> None:
    """0.1 + 0.2 and 0.3 stand by name, and their values stay what they are."""
    held = {"b": readings(0.3), "a": readings(0.1 + 0.2), "c": readings(0.31)}
    assert [one.configuration for one in rank("x", "asc", held).places] == ["a", "b", "c"]
    down = rank("x", "desc", held)
    assert [one.configuration for one in down.places] == ["c", "a", "b"]
    assert [one.value for one in down.places] == [0.31, 0.1 + 0.2, 0.3]


def test_passes_have_wilsons_interval_and_a_lead_of_passes_is_decided_by_signs() -> None:
    """Ten of ten passed has an interval; ten against none are decided, five are not."""
    ten = rank("score", "desc", {"a": readings(*[1] * 10), "b": readings(*[0] * 10)})
    assert ten.places[0].interval == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert ten.decided
    assert not rank("score", "desc", {"a": readings(*[1] * 5), "b": readings(*[0] * 5)}).decided
    assert not rank("score", "desc", {"a": readings(*[1] * 9), "b": readings(*[1] * 9)}).decided


def test_without_any_number_there_is_no_best() -> None:
    """Nothing measured has neither a best nor a worst."""
    ranking = rank("output", "asc", {"a": readings(None)})
    assert (ranking.best, ranking.worst, ranking.decided) == (None, None, False)
    assert rank("output", "asc", {}).best is None


def test_a_place_has_the_interval_of_its_mean_over_samples() -> None:
    """Epochs are averaged first; the interval is scipy's over the samples, none for equal ones."""
    twice = [Reading("a", 0, 1.0), Reading("a", 1, 3.0), Reading("b", 0, 4.0), Reading("c", 0, 9.0)]
    place = rank("x", "asc", {"one": twice}).places[0]
    expected = stats.ttest_1samp([2, 4, 9], 0).confidence_interval()
    assert (place.value, place.n) == (5.0, 4)
    assert place.interval == pytest.approx((expected.low, expected.high))
    assert rank("x", "asc", {"one": readings(*[5] * 9)}).places[0].interval is None


def test_decided_only_where_the_first_surely_differs_from_the_second() -> None:
    """A steady lead is decided, a wavering one and a single sample are not."""
    base = [400.0, 900.0, 100.0, 650.0]
    steady = [value + 50 + place for place, value in enumerate(base)]
    wavering = [base[0] + 300, base[1] - 250, base[2] + 10, base[3]]
    first = readings(*base)
    assert rank("tokens", "asc", {"a": first, "b": readings(*steady)}).decided
    assert rank("tokens", "desc", {"a": first, "b": readings(*steady)}).decided
    assert not rank("tokens", "asc", {"a": first, "b": readings(*wavering)}).decided
    assert not rank("tokens", "asc", {"a": readings(1), "b": readings(2)}).decided
    assert not rank("tokens", "asc", {"a": first}).decided


def test_a_lead_that_the_common_samples_contradict_is_not_decided() -> None:
    """Where a is first only for samples that b lacks, the samples in common speak against it."""
    a = [*readings(10, 11, 12), Reading("easy", 0, 0.0), Reading("easier", 0, 0.0)]
    b = readings(9, 10.1, 11.2)
    ranking = rank("tokens", "asc", {"a": a, "b": b})
    assert ranking.best == "a"
    assert not ranking.decided


def test_an_unknown_order_is_refused_with_the_nearest() -> None:
    """A misspelt order is told the right one."""
    with pytest.raises(ConfigError, match="did you mean 'asc'"):
        rank("tokens", "ascc", {})
    with pytest.raises(ConfigError, match="known: asc, desc"):
        rank("tokens", "upwards", {})


def test_data_is_plain_and_the_record_is_json() -> None:
    """The data has one mapping for each place; the ranking is written and read back the same."""
    ranking = rank("tokens", "asc", {"a": readings(1, 2), "b": readings(3)})
    assert [one["configuration"] for one in ranking.data] == ["a", "b"]
    assert ranking.data[1]["interval"] is None
    assert isinstance(ranking.data[0]["interval"], list)
    assert msgspec.json.decode(msgspec.json.encode(ranking), type=Ranking) == ranking


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES, max_size=6), st.booleans())
def test_every_ranking_is_in_order(held: dict[str, list[float | None]], upward: bool) -> None:
    """All configurations have a place, numbers are in order, and those without one come last."""
    order = "asc" if upward else "desc"
    ranking = rank("x", order, {name: readings(*values) for name, values in held.items()})
    assert sorted(one.configuration for one in ranking.places) == sorted(held)
    values = [one.value for one in ranking.places]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=not upward)
    assert values[len(known) :] == [None] * (len(values) - len(known))
