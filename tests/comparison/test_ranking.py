"""Configurations in a row: best, worst, ties, missing numbers, and whether it is decided."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.comparison.ranking import RankingEntry, rank
from proctor.core.stats.ranks import best_probabilities
from proctor.errors import ConfigError
from proctor.records.comparison import Ranking
from tests.comparison.made_up import numbers
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")

VALUES = st.lists(st.none() | st.integers(0, 50).map(float), min_size=1, max_size=6)


def ranked(*values: float | None) -> RankingEntry:
    """One sample for each value."""
    return RankingEntry(numbers(*values), None, values.count(None))


def test_three_configurations_by_tokens() -> None:
    """Ascending, the lowest is best; descending, the highest."""
    values = {"high": ranked(520, 500), "low": ranked(440, 460), "med": ranked(480, 480)}
    up, down = rank("tokens", "asc", values), rank("tokens", "desc", values)
    assert [item.configuration for item in up.places] == ["low", "med", "high"]
    assert (up.best, up.worst) == ("low", "high") == (down.worst, down.best)
    assert [item.value for item in up.places] == [450, 480, 510]
    assert [item.rank for item in up.places] == [1, 2, 3]


def test_ties_stand_by_name_and_the_missing_last() -> None:
    """Equal means are in order of their names, whatever the order asked for."""
    values = {"c": ranked(1), "b": ranked(None, None), "a": ranked(1), "d": ranked()}
    for order in ("asc", "desc"):
        ranking = rank("tokens", order, values)
        assert [item.configuration for item in ranking.places] == ["a", "c", "b", "d"]
        assert (ranking.best, ranking.worst) == ("a", "c")
    assert [(item.n, item.missing) for item in ranking.places] == [(1, 0), (1, 0), (0, 2), (0, 0)]


def test_what_differs_by_rounding_alone_is_a_tie() -> None:
    """0.1 + 0.2 and 0.3 stand by name, and their values stay what they are."""
    values = {"b": ranked(0.3), "a": ranked(0.1 + 0.2), "c": ranked(0.31)}
    assert [item.configuration for item in rank("x", "asc", values).places] == ["a", "b", "c"]
    down = rank("x", "desc", values)
    assert [item.configuration for item in down.places] == ["c", "a", "b"]
    assert [item.value for item in down.places] == [0.31, 0.1 + 0.2, 0.3]


def test_passes_have_wilsons_interval_and_a_lead_of_passes_is_decided_by_signs() -> None:
    """Ten of ten passed has an interval; ten against none are decided, five are not."""
    ten = rank("score", "desc", {"a": ranked(*[1] * 10), "b": ranked(*[0] * 10)})
    assert ten.places[0].interval == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert ten.decided
    assert not rank("score", "desc", {"a": ranked(*[1] * 5), "b": ranked(*[0] * 5)}).decided
    assert not rank("score", "desc", {"a": ranked(*[1] * 9), "b": ranked(*[1] * 9)}).decided


def test_without_any_number_there_is_no_best() -> None:
    """Nothing measured has neither a best nor a worst."""
    ranking = rank("output", "asc", {"a": ranked(None)})
    assert (ranking.best, ranking.worst, ranking.decided) == (None, None, False)
    assert rank("output", "asc", {}).best is None


def test_a_place_has_the_interval_of_its_mean_over_samples() -> None:
    """The interval is scipy's over the samples; none for equal ones."""
    index = rank("x", "asc", {"one": ranked(2, 4, 9)}).places[0]
    expected = stats.ttest_1samp([2, 4, 9], 0).confidence_interval()
    assert (index.value, index.n) == (5.0, 3)
    assert index.interval == pytest.approx((expected.low, expected.high))
    assert rank("x", "asc", {"one": ranked(*[5] * 9)}).places[0].interval is None


def test_decided_only_where_the_first_surely_differs_from_the_rest() -> None:
    """A steady lead is decided, a wavering one and a single sample are not."""
    base = [400.0, 900.0, 100.0, 650.0, 300.0, 500.0, 800.0]
    steady = [value + 50 + index for index, value in enumerate(base)]
    wavering = [base[0] + 300, base[1] - 250, base[2] + 10, *base[3:]]
    first = ranked(*base)
    for order in ("asc", "desc"):
        assert rank("tokens", order, {"a": first, "b": ranked(*steady)}).decided
    assert not rank("tokens", "asc", {"a": first, "b": ranked(*wavering)}).decided
    assert not rank("tokens", "asc", {"a": ranked(1), "b": ranked(2)}).decided
    assert not rank("tokens", "asc", {"a": first}).decided


def test_ranks_are_those_that_the_evidence_allows() -> None:
    """Two that nobody can tell apart share their places; the third is surely last."""
    even = [1.0, 0.0] * 30
    values = {"a": ranked(*even), "b": ranked(*[0.0, 1.0] * 29, 0.0, 0.0), "c": ranked(*[0.0] * 60)}
    ranking = rank("score", "desc", values)
    assert [item.ranks for item in ranking.places] == [(1, 2), (1, 2), (3, 3)]
    assert [item.decided for item in ranking.places] == [False, False, True]
    assert not ranking.decided
    assert ranking.answer == ("Which is first by score is not decided: a, or b; of the other 2 places decided: c.")
    chances = [item.chance_of_best or 0.0 for item in ranking.places]
    assert sum(chances) == pytest.approx(1.0)
    assert 0.3 < chances[1] < 0.5 < chances[0]
    assert chances[2] == 0.0


def test_all_pairs_are_corrected_together() -> None:
    """Eight of eight would be decided alone (p = 0.0078), but not among ten pairs."""
    lead = {"a": ranked(*[1] * 8), "b": ranked(*[0] * 8)}
    assert rank("score", "desc", lead).decided
    crowd = {**lead, **{name: ranked(*[0] * 8) for name in "cde"}}
    assert not rank("score", "desc", crowd).decided


def test_sentences_of_rankings() -> None:
    """Of two, the first says it all; of nothing, that there is nothing."""
    two = {"a": ranked(*[1] * 10), "b": ranked(*[0] * 10)}
    assert rank("score", "desc", two).answer == "a is first by score, beyond chance."
    three = {**two, "c": ranked(*[0.5] * 10)}
    assert rank("score", "desc", three).answer == (
        "a is first by score, beyond chance; all of the other 2 places are decided."
    )
    equal = {name: ranked(1, 0, 1) for name in "abc"}
    assert rank("score", "desc", equal).answer == (
        "Which is first by score is not decided: a, or b or c; none of the other 2 places are decided."
    )
    answer = rank("score", "desc", {"a": ranked(1)}).answer
    assert answer == "Fewer than two configurations have a value for score."


def test_clusters_count_as_one_in_rankings() -> None:
    """Sixty samples of six documents: a lead in two of them is no lead, and chances say so."""
    first = [float(at // 10 < 2) for at in range(60)]
    clusters = {f"s{at}": str(at // 10) for at in range(60)}
    values = {"a": RankingEntry(numbers(*first), clusters), "b": RankingEntry(numbers(*[0.0] * 60), clusters)}
    ranking = rank("score", "desc", values)
    assert not ranking.decided
    # Two documents won and none lost: Beta(3, 1).
    expected = 1 - 0.5**3
    assert ranking.places[0].chance_of_best == pytest.approx(expected, abs=0.03)
    assert rank("score", "desc", {n: RankingEntry(item.numbers) for n, item in values.items()}).decided
    few = {n: RankingEntry(item.numbers, dict.fromkeys(item.numbers, "d")) for n, item in values.items()}
    assert rank("score", "desc", few).places[0].chance_of_best is None


def test_the_chance_of_being_best_is_that_of_the_difference() -> None:
    """Of one column that is ahead by a standard error or two, the normal probability of that."""
    chance = random.Random(7)
    for n in (300, 1500):
        first = [chance.gauss(0, 1) for _ in range(n)]
        ahead = sum(first) / n / (stats.tstd(first) / n**0.5)
        [result, _] = best_probabilities([first, [0.0] * n])
        assert result == pytest.approx(stats.norm.cdf(ahead), abs=0.05)
    assert best_probabilities([]) == []
    assert best_probabilities([[], []]) == [0.0, 0.0]
    assert best_probabilities([[1.0, 2.0], [1.0, 2.0]]) == [0.5, 0.5]


@pytest.mark.parametrize(("won", "lost"), [(1, 0), (4, 0), (5, 0), (6, 0), (7, 1), (12, 5), (3, 3)])
def test_the_chance_of_few_wins_is_no_more_certain_than_they_are(won: int, lost: int) -> None:
    """It is that of Beta(won + 1, lost + 1), whatever the samples are on which both are equal."""
    expected = stats.beta.sf(0.5, won + 1, lost + 1)
    first, second = [1.0] * won + [0.0] * lost + [1.0] * 52, [0.0] * won + [1.0] * lost + [1.0] * 52
    assert best_probabilities([first, second])[0] == pytest.approx(expected, abs=0.03)
    assert best_probabilities([first, second], highest=False)[1] == pytest.approx(expected, abs=0.03)
    # The unit of a number does not matter.
    scaled = [[1e6 + 30 * value for value in column] for column in (first, second)]
    assert best_probabilities(scaled)[0] == pytest.approx(expected, abs=0.03)


@given(st.integers(1, 12), st.integers(0, 60))
def test_a_chance_and_the_decision_do_not_contradict_each_other(won: int, equal: int) -> None:
    """Of two, an undecided leader that lost no sample is first with at most 99 %, a decided one with at least 98 %."""
    values = {"a": ranked(*[1] * (won + equal)), "b": ranked(*[0] * won, *[1] * equal)}
    ranking = rank("score", "desc", values)
    chance = ranking.places[0].chance_of_best
    if chance is not None and won + equal > 1:
        assert chance >= 0.98 if ranking.decided else chance <= 0.99


def test_a_lead_that_the_common_samples_contradict_does_not_count() -> None:
    """Where a is first only for samples that b lacks, those in common decide, and it says so."""
    common = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0]
    a = RankingEntry({**numbers(*common), **{f"easy{at}": 0.0 for at in range(5)}})
    ranking = rank("tokens", "asc", {"a": a, "b": ranked(*(value - 1 for value in common))})
    assert ranking.best == "b"
    assert [(item.ranks, item.n) for item in ranking.places] == [((1, 1), 7), ((2, 2), 7)]
    assert ranking.decided
    assert ranking.answer == (
        "b is first by tokens, beyond chance. They do not have the same samples, and the common "
        "samples contradict the order of all: only these are used."
    )


def test_an_order_without_common_samples_is_undecided() -> None:
    """Each pair has samples in common, all three have none: no place is decided."""
    values = {
        "a": RankingEntry({f"ab{at}": at + 1.0 for at in range(9)} | {f"ac{at}": 0.0 for at in range(90)}),
        "b": RankingEntry({f"ab{at}": at + 0.0 for at in range(9)} | {f"bc{at}": 9.0 for at in range(9)}),
        "c": RankingEntry({f"ac{at}": 5.0 for at in range(9)} | {f"bc{at}": 9.5 for at in range(9)}),
    }
    ranking = rank("tokens", "desc", values)
    assert [item.ranks for item in ranking.places] == [(1, 3)] * 3
    assert ranking.answer.endswith("They do not have the same samples.")


def test_times_of_several_runs_are_put_in_order_and_not_decided() -> None:
    """A slower hour makes every sample slower; within one run both had the same hour."""
    slow, quick = numbers(*range(20, 60)), numbers(*range(40))
    values = {"slow": RankingEntry(slow, run="r1"), "quick": RankingEntry(quick, run="r2")}
    ranking = rank("latency_ms.mean", "asc", values)
    assert (ranking.best, ranking.decided) == ("quick", False)
    assert "the machine or the time of day" in ranking.answer
    assert rank("latency_ms.mean", "asc", {n: item._replace(run="r") for n, item in values.items()}).decided


def test_many_that_are_far_apart_are_decided() -> None:
    """Sixteen configurations, 120 pairs, 25 samples each: p-values have no lower limit."""
    chance = random.Random(1)
    values = {f"c{k:02d}": ranked(*(k / 16 + chance.gauss(0, 0.01) for _ in range(25))) for k in range(16)}
    assert all(item.decided for item in rank("score", "desc", values).places)


def test_an_unknown_order_is_refused_with_both_orders() -> None:
    with pytest.raises(ConfigError, match='choose "asc" for the lowest first, or "desc" for the highest first'):
        rank("tokens", "ascc", {})


def test_data_is_plain_and_the_record_is_json() -> None:
    """The data has one mapping for each place; the ranking is written and read back the same."""
    ranking = rank("tokens", "asc", {"a": ranked(1, 2), "b": ranked(3)})
    assert [item["configuration"] for item in ranking.data] == ["a", "b"]
    assert ranking.data[1]["interval"] is None
    assert isinstance(ranking.data[0]["interval"], list)
    assert msgspec.json.decode(msgspec.json.encode(ranking), type=Ranking) == ranking


@settings(max_examples=20)
@given(st.dictionaries(st.sampled_from("abcdef"), VALUES, max_size=6), st.booleans())
def test_every_ranking_is_in_order(numbers_by_name: dict[str, list[float | None]], upward: bool) -> None:
    """All configurations have a place, numbers are in order, and those without one come last."""
    order = "asc" if upward else "desc"
    ranking = rank("x", order, {name: ranked(*values) for name, values in numbers_by_name.items()})
    assert sorted(item.configuration for item in ranking.places) == sorted(numbers_by_name)
    values = [item.value for item in ranking.places]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=not upward)
    assert values[len(known) :] == [None] * (len(values) - len(known))
