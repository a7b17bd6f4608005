"""Two sides compared: differences, pairs, intervals, clusters, and two groups."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.comparison.compare import compare
from proctor.comparison.sides import Side, average_by_sample
from proctor.core.stats.effects import clustered_paired_t
from proctor.records.comparison import Comparison
from proctor.records.numbers import as_number
from tests.comparison.made_up import numbers, of_field, of_score, sides_of_field
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")

UNSURE = "not enough evidence"
NUMBER = st.integers(0, 4000).map(lambda eighths: eighths / 8)


def test_the_example_of_the_specification() -> None:
    """450 against 500 tokens are -50, which is -10%; one sample has no interval."""
    result = sides_of_field(numbers(450), numbers(500))
    assert result.deltas == {"tokens": {"absolute": -50.0, "percentage": -10.0}}
    delta = result.fields["tokens"]
    assert (delta.a, delta.b, delta.n) == (450, 500, 1)
    assert (delta.interval, delta.p, delta.effect) == (None, None, None)
    assert delta.verdict == "not enough evidence"
    assert delta.a_is_better is None


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=2, max_size=15))
def test_the_interval_is_that_of_the_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    """Means are numpy's, and the interval is that of scipy's paired test."""
    first, second = (list(side) for side in zip(*pairs, strict=True))
    delta = of_field(numbers(*first), numbers(*second))
    assert delta.a == pytest.approx(np.mean(first))
    assert delta.b == pytest.approx(np.mean(second))
    assert delta.absolute == pytest.approx(np.mean(first) - np.mean(second), abs=1e-9)
    is_binary = {*first, *second} <= {0, 1}
    if len(set(np.subtract(first, second))) > 1 and not is_binary:
        expected = stats.ttest_rel(first, second).confidence_interval()
        assert delta.interval == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)
        assert delta.error == pytest.approx(stats.sem(np.subtract(first, second)))


@settings(max_examples=20)
@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=1, max_size=10))
def test_swapping_turns_the_sign(pairs: list[tuple[float, float]]) -> None:
    """b against a is the opposite of a against b: interval, effect and verdict included."""
    first, second = (list(side) for side in zip(*pairs, strict=True))
    forward, back = (of_field(numbers(*item), numbers(*other)) for item, other in ((first, second), (second, first)))
    assert forward.absolute is not None
    assert back.absolute == pytest.approx(-forward.absolute)
    assert back.p == forward.p
    if forward.interval is not None:
        assert back.interval == pytest.approx((-forward.interval[1], -forward.interval[0]))
    if forward.effect is not None:
        assert back.effect == pytest.approx(-forward.effect)
    if forward.a_is_better is not None and back.a_is_better is not None:
        assert back.a_is_better is (not forward.a_is_better)


def test_many_numbers_use_the_t_distribution() -> None:
    """With forty different pairs the probability is scipy's, and the effect Hedges' g."""
    chance = random.Random(1)
    first = [chance.gauss(1, 1) for _ in range(40)]
    second = [chance.gauss(0.6, 1) for _ in range(40)]
    delta = of_field(numbers(*first), numbers(*second))
    assert delta.method == "paired t-test"
    assert delta.p == pytest.approx(stats.ttest_rel(first, second).pvalue)
    apart = np.subtract(first, second)
    # Hedges' correction by its usual approximation, 1 - 3 / (4 df - 1).
    g = apart.mean() / apart.std(ddof=1) * (1 - 3 / (4 * 39 - 1))
    assert delta.effect == pytest.approx(g, rel=1e-3)


def test_epochs_of_a_sample_count_as_one() -> None:
    """Epochs are averaged within their sample, so the interval rests on samples, not on trials."""
    values = [1, 3, 4, 6, 8, 12]
    first = average_by_sample((f"s{at // 2}", float(v)) for at, v in enumerate(values))
    assert first == {"s0": 2.0, "s1": 5.0, "s2": 10.0}
    delta = of_field(first, numbers(0, 1, 2))
    assert delta.n == 3
    assert delta.absolute == pytest.approx(14 / 3)
    expected = stats.ttest_1samp([2, 4, 8], 0).confidence_interval()
    assert delta.interval == pytest.approx((expected.low, expected.high))


def test_a_sample_with_more_epochs_does_not_weigh_more() -> None:
    """Nine epochs of one sample and one of the other: the mean is over two samples."""
    first = average_by_sample([*[("often", 0.0)] * 9, ("once", 1.0)])
    assert of_field(first, {"often": 0.0, "once": 0.0}).absolute == 0.5


def test_only_what_both_have_is_compared_and_the_rest_is_counted() -> None:
    """A sample that one of them lacks, or has no number for, is left out of means and counted."""
    delta = of_field({"a": 10.0, "b": 1000.0}, {"a": 8.0, "c": 5.0})
    assert (delta.a, delta.b, delta.absolute, delta.n) == (10.0, 8.0, 2.0, 1)
    assert (delta.only_a, delta.only_b, delta.percentage) == (1, 1, 25.0)


def test_without_pairs_the_sides_are_two_groups() -> None:
    """Welch's test and interval; the answer says that no sample is in both."""
    chance = random.Random(2)
    first = [chance.gauss(5, 1) for _ in range(40)]
    second_values = [chance.gauss(3, 2) for _ in range(50)]
    second = {f"t{at}": v for at, v in enumerate(second_values)}
    result = sides_of_field(numbers(*first), second)
    delta = result.fields["tokens"]
    expected = stats.ttest_ind(first, second_values, equal_var=False)
    assert (delta.paired, delta.n, delta.only_a, delta.only_b) == (False, 40, 40, 50)
    assert delta.method == "Welch's t-test"
    assert delta.p == pytest.approx(expected.pvalue)
    ends = expected.confidence_interval()
    assert delta.interval == pytest.approx((ends.low, ends.high))
    assert delta.verdict == "worse"
    assert "No sample is in both: they are compared as two independent groups" in result.answer


def test_groups_of_yes_and_no_have_newcombes_interval() -> None:
    """56 of 70 vs. 48 of 80: Newcombe's own example."""
    first = numbers(*[1] * 56, *[0] * 14)
    second = {f"t{at}": float(at < 48) for at in range(80)}
    delta = of_field(first, second)
    assert delta.interval == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert delta.p == pytest.approx(stats.fisher_exact([[56, 14], [48, 32]]).pvalue)


def test_nothing_at_all() -> None:
    """What only one side has is shown as it is; nothing is subtracted that is not there."""
    item = Side("one", fields={"x": numbers(1), "y": numbers(1)})
    other = Side("other", fields={"y": numbers(2)})
    result = compare(item, other)
    assert (result.fields["x"].a, result.fields["x"].b, result.fields["x"].only_a) == (1, None, 1)
    assert (result.missing_a, result.missing_b) == ((), ("x",))
    empty = compare(Side("a"), Side("b"))
    assert list(empty.all_deltas()) == []
    assert empty.answer == "a and b have no number in common that could be compared."


def test_of_a_zero_there_is_no_percentage() -> None:
    """The difference from 0 is absolute only; from a negative number it keeps its sign."""
    delta = of_field(numbers(3), numbers(0))
    assert (delta.absolute, delta.percentage) == (3, None)
    assert of_field(numbers(-1), numbers(-2)).percentage == 50.0


def test_equal_differences_are_decided_from_six_on() -> None:
    """Five samples that all saved 50 tokens could be chance (p = 0.06), six (p = 0.03) are not."""
    five = of_field(numbers(*[450] * 5), numbers(*[500] * 5))
    six = of_field(numbers(*[450] * 6), numbers(*[500] * 6))
    assert (five.decided, five.p, five.more_samples) == (False, 2 / 32, 1)
    assert (six.a_is_better, six.p) == (True, 2 / 64)
    assert five.interval is six.interval is None


def test_passes_and_failures_have_an_interval_also_where_nothing_differs() -> None:
    """Ten that all passed twice: 0 ± 1.96 √2 / 12; ten that all rose are decided, four are not."""
    same = of_score([1] * 10, [1] * 10)
    assert same.interval == pytest.approx((-0.23098, 0.23098), abs=1e-5)
    assert same.a_interval == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert (same.decided, same.p) == (False, 1.0)
    rose = of_score([1] * 10, [0] * 10)
    assert rose.interval is not None
    assert 0.5 < rose.interval[0] < rose.interval[1] == 1.0
    assert (rose.verdict, rose.method, rose.p) == ("better", "exact McNemar test", 2 / 1024)
    four = of_score([1] * 4, [0] * 4)
    assert (four.decided, four.p) == (False, 2 / 16)


def test_discordant_pairs_are_counted_exactly() -> None:
    """Five up and fifteen down of a hundred: p = 0.0414, and the error of the difference."""
    first = [1.0] * 5 + [0.0] * 15 + [1.0] * 80
    second = [0.0] * 5 + [1.0] * 15 + [1.0] * 80
    delta = of_score(first, second)
    assert delta.p == pytest.approx(stats.binomtest(5, 20).pvalue)
    assert delta.p == pytest.approx(0.0414, abs=5e-5)
    assert delta.error == pytest.approx((0.2 - 0.01) ** 0.5 / 10)


def test_the_interval_of_passes_holds_the_truth_as_often_as_it_says() -> None:
    """Of 60 simulated comparisons at least 88% hold the true difference, rare or not."""
    chance = random.Random(3)
    for n, rose, fell in ((10, 0.05, 0.0), (20, 0.05, 0.05), (50, 0.3, 0.2)):
        values = 0
        for _ in range(60):
            drawn = [chance.random() for _ in range(n)]
            first = [0.0 if rose <= item < rose + fell else 1.0 for item in drawn]
            second = [0.0 if item < rose else 1.0 for item in drawn]
            interval = of_score(first, second).interval
            assert interval is not None
            values += interval[0] <= rose - fell <= interval[1]
        assert values / 60 >= 0.88


def test_clusters_that_samples_name_widen_the_interval() -> None:
    """Forty samples in eight documents count as eight, by the cluster-robust t with 7 degrees."""
    chance = random.Random(4)
    common = [chance.gauss(0.5, 1) for _ in range(8)]
    first = [common[at // 5] + chance.gauss(0, 0.1) for at in range(40)]
    clusters = [f"d{at // 5}" for at in range(40)]
    zeros = [0.0] * 40
    delta = of_field(numbers(*first), numbers(*zeros), clusters=clusters)
    expected = clustered_paired_t(first, zeros, clusters)
    assert expected is not None
    assert expected.df == 7
    assert delta.interval == pytest.approx(expected.interval())
    assert delta.p == pytest.approx(expected.p())
    assert delta.clusters == 8
    assert delta.method == "cluster-robust t-test"
    single = of_field(numbers(*first), numbers(*zeros))
    assert single.error is not None
    assert delta.error is not None
    assert delta.error > 2 * single.error


def test_a_side_that_names_no_clusters_takes_those_of_the_other() -> None:
    """They belong to the sample, whichever run says so."""
    clusters = {f"s{at}": str(at // 5) for at in range(40)}
    values = numbers(*[float(at % 7) for at in range(40)])
    zeros = dict.fromkeys(values, 0.0)
    result = Side("clustered", fields={"x": values}, clusters=clusters)
    silent = Side("silent", fields={"x": zeros})
    assert compare(result, silent).fields["x"].clusters == 8
    assert compare(silent, result).fields["x"].clusters == 8


def test_fewer_than_five_clusters_tell_nothing() -> None:
    """A hundred samples of four documents have a difference, and nothing is sure about it."""
    first = numbers(*[1.0 + at % 3 for at in range(100)])
    clusters = [str(at % 4) for at in range(100)]
    delta = of_field(first, dict.fromkeys(first, 0.0), clusters=clusters)
    assert (delta.interval, delta.p, delta.method) == (None, None, "fewer than 5 clusters")
    assert delta.verdict == "not enough evidence"
    same = of_field(first, first, clusters=clusters)
    assert same.verdict == "not enough evidence"


def test_groups_in_clusters() -> None:
    """Two groups of other samples, each in its own clusters; below five clusters nothing."""
    chance = random.Random(5)
    first = numbers(*[chance.gauss(2, 1) for _ in range(40)])
    second = {f"t{at}": chance.gauss(0, 1) for at in range(40)}
    clusters = {**{f"s{at}": f"a{at // 4}" for at in range(40)}}
    clusters |= {f"t{at}": f"b{at // 4}" for at in range(40)}
    sides = [Side(n, fields={"x": v}, clusters=clusters) for n, v in (("a", first), ("b", second))]
    delta = compare(*sides).fields["x"]
    assert (delta.paired, delta.clusters, delta.decided) == (False, 20, True)
    few = [Side(n, fields={"x": v}, clusters=dict.fromkeys(v, n)) for n, v in zip("ab", (first, second), strict=True)]  # fmt: skip  # noqa: E501
    assert compare(*few).fields["x"].p is None


def test_the_better_direction_follows_from_the_name_or_the_caller() -> None:
    """Fewer tokens are better; a name that says nothing needs a word; scores need none."""
    more, less = numbers(9, 10, 11, 10, 9, 11, 9, 8), numbers(1, 2, 1, 2, 1, 2, 1, 2)
    a = Side("a", fields={"tokens": more, "warmth": more}, scores={"output.cost_judge": more})
    b = Side("b", fields={"tokens": less, "warmth": less}, scores={"output.cost_judge": less})
    actual = compare(a, b)
    assert actual.fields["tokens"].verdict == "worse"
    assert actual.fields["warmth"].verdict == "different"
    assert (actual.fields["warmth"].decided, actual.fields["warmth"].a_is_better) == (True, None)
    assert actual.scores["output.cost_judge"].a_is_better is True
    result = compare(a, b, better={"warmth": True})
    assert result.fields["warmth"].a_is_better is True


def test_rows_are_plain_and_the_record_is_json() -> None:
    """Rows hold nothing but plain values; the comparison is written and read back the same."""
    first, second = numbers(1, 2, 4), numbers(2, 4, 6)
    low, high = (
        Side(n, fields={"tokens": v}, scores={"output.judge": v}, samples=tuple(v))
        for n, v in (("low", first), ("high", second))
    )
    result = compare(low, high)
    rows = {(row["of"], row["name"]): row for row in result.rows()}
    row = rows["field", "tokens"]
    assert row["absolute"] == pytest.approx(-5 / 3)
    assert row["low"] < row["absolute"] < row["high"]
    assert ("score", "output.judge") in rows
    assert result.score_deltas.keys() == {"output.judge"}
    assert msgspec.json.decode(msgspec.json.encode(result), type=Comparison) == result


def test_as_text_it_is_the_answer_and_a_table() -> None:
    """A line for each number, with dashes for what is not known."""
    fields = {"tokens": (numbers(440, 460, 450), numbers(500, 500, 500)), "cost": (numbers(12345.678), numbers(0))}
    low, high = (
        Side(name, fields={field: values[at] for field, values in fields.items()})
        for at, name in enumerate(("low", "high"))
    )
    answer, gap, *table = str(compare(low, high)).splitlines()
    assert answer == (
        "Not enough evidence that low and high differ: tokens 450 vs. 500, -50 (-10.0%) "
        "(n = 3, 95% interval -74.84 to -25.16, p = 0.25); if the difference stays near -50, "
        "about 3 more samples would decide it."
    )
    assert gap == ""
    more = " (about 3 more)"
    assert table == [
        "           low  high  difference      %      95% interval     p  n  verdict",
        f"tokens     450   500         -50  -10.0  -74.84 to -25.16  0.25  3  {UNSURE}{more}",
        f"cost    12,346     0     +12,346      –                 –     –  1  {UNSURE}",
    ]


def test_readings_of_any_value() -> None:
    """Booleans are 0 and 1; texts, NaN, nulls and what no float holds are missing."""
    values = [as_number(value) for value in (True, 3, 0.5, "3", None, float("nan"))]
    assert values == [1.0, 3.0, 0.5, None, None, None]
    assert as_number(10**400) is None


def test_the_interval_of_a_latency_ends_at_zero_and_that_of_a_difference_may_not() -> None:
    """Student's t of 1 and 100 ms reaches below 0; no latency does, but a difference can."""
    slow, fast = (
        {f"s{n}": value for n, value in enumerate(values)} for values in ([1.0, 100.0, 3.0], [2.0, 90.0, 1.0])
    )
    result = compare(Side("a", {"latency_ms.mean": slow}), Side("b", {"latency_ms.mean": fast}))
    delta = result.metrics["latency_ms.mean"]
    assert (delta.a_interval or (1,))[0] == (delta.b_interval or (1,))[0] == 0.0
    assert (delta.interval or (0,))[0] < 0
    field = sides_of_field(numbers(-5, 0, 5), numbers(0, 1, 2)).fields["tokens"]
    assert (field.a_interval or (0,))[0] < 0


def test_a_cost_cannot_fall_by_more_than_all_of_it() -> None:
    """One of five costs is high: the difference is from -7 to 3 dollars around a baseline of 4, but not from -170%."""
    first, second = numbers(0.1, 0.2, 0.1, 9.0, 0.2), numbers(3.0, 4.0, 5.0, 4.0, 4.0)
    delta = of_field(first, second)
    assert delta.interval is not None
    assert delta.b is not None
    assert 100 * delta.interval[0] / delta.b < -100
    assert delta.percentage_interval is not None
    low, high = delta.percentage_interval
    assert delta.percentage is not None
    assert low == -100 < delta.percentage < high


def test_a_percentage_of_a_baseline_that_may_be_zero_has_no_interval() -> None:
    """Seven zeros and a 9: the baseline may be 0, so the percentage has no upper end."""
    delta = of_field(numbers(1, 2, 1, 3, 2, 1, 2, 2), numbers(0, 0, 0, 0, 0, 0, 0, 9))
    assert delta.interval is not None
    assert delta.percentage is not None
    assert delta.percentage_interval is None


def test_a_percentage_allows_for_the_error_of_its_base() -> None:
    """If only the baseline varies, by ±20%, a doubled cost may be 67% to 150% more, not 80% to 120%."""
    base = [1 + sign * step for step in (0.05, 0.15, 0.3, 0.6) for sign in (1, -1)]
    delta = of_field(numbers(*[2.0] * 8), numbers(*base))
    assert delta.interval is not None
    assert delta.percentage_interval is not None
    half = (delta.interval[1] - delta.interval[0]) / 2
    assert delta.percentage_interval == pytest.approx((100 * (2 / (1 + half) - 1), 100 * (2 / (1 - half) - 1)))


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=2, max_size=30), st.booleans())
def test_percentages_and_differences_exclude_zero_together(pairs: list[tuple[float, float]], is_paired: bool) -> None:
    """So that no table contradicts itself; no number of a resource falls below 0."""
    first, second = (numbers(*(pair[side] for pair in pairs)) for side in (0, 1))
    if not is_paired:
        second = {f"other{name}": value for name, value in second.items()}
    delta = of_field(first, second)
    if delta.interval is not None and delta.percentage_interval is not None and delta.absolute:
        low, high = delta.percentage_interval
        assert -100 <= low <= high
        zero = 1e-6 * max(map(abs, delta.interval))
        assert (low > 1e-4) <= (delta.interval[0] > -zero)
        assert (high < -1e-4) <= (delta.interval[1] < zero)


def test_rates_and_negative_numbers_have_no_percentage_interval() -> None:
    """Points are no ratio, and a temperature has no natural zero."""
    assert of_score([0.1, 0.5, 0.9], [0.2, 0.4, 0.6]).percentage_interval is None
    assert of_field(numbers(-1, 2, 3), numbers(1, 4, 2)).percentage_interval is None
