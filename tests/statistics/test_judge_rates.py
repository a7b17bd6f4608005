"""Agreement of a judge with people, and pass rates corrected by labels."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.intervals import wilson_interval
from proctor.core.stats.judge_rates import (
    Confusion,
    corrected_rate,
    correlate,
    count_labels,
    kappa_error,
    kappa_interval,
    stratified_rate,
    tabulate,
)
from tests.tables import each_row

counts = st.integers(0, 60)
tables = st.builds(Confusion, counts, counts, counts, counts).filter(lambda table: table.n >= 4)


def test_kappa_of_a_textbook_table() -> None:
    """20 and 15 equal verdicts, 5 and 10 different ones: agreement .7, by chance .5, kappa .4."""
    table = Confusion(20, 5, 10, 15)
    assert table.agreement == pytest.approx(0.7)
    assert table.kappa == pytest.approx(0.4)


def test_kappa_is_undefined_if_a_side_gives_one_verdict() -> None:
    """20 passes of people say nothing about a judge that fails 5 of them: kappa would be 0 for any judge."""
    assert Confusion(15, 5, 0, 0).kappa is None
    assert Confusion(15, 5, 0, 0).list_constant_sides() == [(0, True)]
    assert Confusion(0, 5, 0, 15).list_constant_sides() == [(1, False)]
    assert Confusion(0, 0, 0, 9).list_constant_sides() == [(0, False), (1, False)]
    assert kappa_interval(Confusion(15, 5, 0, 0)) is None


def test_error_of_kappa_of_independent_halves() -> None:
    """For four equal cells kappa is 0 and its variance is po(1 - po) / (n (1 - pe)²) = 1 / n."""
    assert kappa_error(Confusion(25, 25, 25, 25)) == pytest.approx(0.1)


def test_ppi_matches_published_precision() -> None:
    """4,000 labels, 20,000 verdicts: half width .01087, worth 5,752 labels; 2,000 labels: .01626 and 2,196."""
    for table, passed, labels_half, half, effective in (
        (Confusion(2777, 306, 263, 654), 15_200, 0.01303, 0.01087, 5_752),
        (Confusion(1400, 228, 200, 172), 16_000, 0.01704, 0.01626, 2_196),
    ):
        rate = corrected_rate(table, passed, 20_000)
        assert (rate.labels_interval[1] - rate.labels_interval[0]) / 2 == pytest.approx(labels_half, rel=0.005)
        assert (rate.interval[1] - rate.interval[0]) / 2 == pytest.approx(half, rel=0.005)
        assert rate.effective_labels == pytest.approx(effective, rel=0.005)


@pytest.mark.parametrize(
    ("table", "judge_passed", "others", "value", "error"),
    [
        (Confusion(36, 6, 4, 14), 100, 150, 0.70, 0.0508732),
        (Confusion(50, 5, 10, 35), 300, 500, 0.55, 0.0385368),
        (Confusion(20, 1, 2, 7), 110, 150, 0.70, 0.0614253),
        (Confusion(70, 9, 12, 9), 738, 900, 0.79, 0.0388303),
    ],
)
def test_ppi_agrees_with_glide(table: Confusion, judge_passed: int, others: int, value: float, error: float) -> None:
    """The estimates of glide-py 0.11.0, PPIMeanEstimator, and half widths within 3% of 1.96 times its errors.

    Its interval is normal; this one allows for the few labels of each verdict.
    """
    rate = corrected_rate(table, judge_passed, others)
    assert rate.value == pytest.approx(value, rel=0.002)
    assert (rate.interval[1] - rate.interval[0]) / 2 == pytest.approx(1.96 * error, rel=0.03)


@given(tables, st.integers(0, 100))
def test_the_worth_of_a_judge_follows_from_the_shown_interval(table: Confusion, passed: int) -> None:
    """As many labels as the judge is worth have an interval as wide as the corrected one."""
    for rate in (corrected_rate(table, passed, 100), stratified_rate(table, passed, 100)):
        if rate.helps:
            low, high = wilson_interval(rate.value * rate.effective_labels, rate.effective_labels) or (0, 0)
            assert high - low == pytest.approx(rate.interval[1] - rate.interval[0], abs=1e-3)


def test_the_number_of_labels_of_a_width() -> None:
    """At a rate of one half Wilson's half width is z / (2 √(n + z²)): .4 to .6 takes (z / .2)² − z² = 92.2 labels."""
    assert count_labels(0.5, (0.4, 0.6)) == pytest.approx(92.2, abs=0.05)


@given(tables, st.integers(0, 200))
def test_counts_give_the_same_ppi_as_values(table: Confusion, passed: int) -> None:
    """The corrected rate of the table is PPI++ of the verdicts one by one, with its best weight."""
    cells = [(1, 1), (1, 0), (0, 1), (0, 0)]
    pairs = [pair for pair, count in zip(cells, table, strict=True) for _ in range(int(count))]
    people, judge = zip(*pairs, strict=True)
    rate = corrected_rate(table, passed, 200)
    if rate.helps:
        weight = statistics.covariance(people, judge) / ((1 + len(pairs) / 200) * statistics.variance(judge))
        assert 0 < weight <= 1
        expected = weight * passed / 200 + statistics.mean(y - weight * f for y, f in pairs)
        assert rate.value == pytest.approx(min(1.0, max(0.0, expected)), abs=1e-9)


@each_row("table", [Confusion(400, 60, 40, 100), Confusion(4000, 100, 200, 1700), Confusion(300, 300, 200, 1000)])
def test_the_interval_of_many_labels_is_that_of_ppi(table: Confusion) -> None:
    """Its half width is 1.96 √(Var(y) / n · (1 − ρ² N / (n + N))) within 1%, for N verdicts without a label."""
    others = 3000
    rate = corrected_rate(table, others * (table.both_passed + table.only_judge) / table.n, others)
    passed = table.people_passed / table.n
    gain = (table.correlation or 0.0) ** 2 * others / (table.n + others)
    half = 1.96 * math.sqrt(passed * (1 - passed) / table.n * (1 - gain))
    assert (rate.interval[1] - rate.interval[0]) / 2 == pytest.approx(half, rel=0.01)


@given(tables, st.integers(0, 100))
def test_intervals_lie_within_their_range(table: Confusion, passed: int) -> None:
    """Every interval is ordered and within its range, and contains the estimate of the labels' kappa."""
    interval = kappa_interval(table)
    is_constant = 0 in (table.people_passed, table.n - table.people_passed) or table.correlation is None
    assert (interval is None) == (table.kappa is None) == is_constant
    if interval is not None and table.kappa is not None:
        assert -1 <= interval[0] <= table.kappa <= interval[1] <= 1
    for rate in (corrected_rate(table, passed, 100), stratified_rate(table, passed, 100)):
        assert 0 <= rate.interval[0] <= rate.interval[1] <= 1
        assert 0 <= rate.value <= 1


def test_a_judge_at_chance_adds_nothing() -> None:
    """With equal cells the interval of kappa includes 0, and the labels' interval is shown."""
    rate = corrected_rate(Confusion(15, 15, 15, 15), 100, 200)
    assert not rate.helps
    assert rate.interval == rate.labels_interval
    assert rate.effective_labels == 60


def test_a_judge_without_errors_keeps_an_interval() -> None:
    """30 labels without an error do not make the judge perfect: kappa's interval goes below 0.9.

    Up to 8.8% of the 20 passes and 16.8% of the 10 failures may be wrong (97.5% quantiles of Beta(.28, 20.28) and
    Beta(.28, 10.28)), which moves a rate of 2/3 by 5.8 points down and 5.6 up.
    """
    table = Confusion(20, 0, 0, 10)
    interval = kappa_interval(table)
    assert interval is not None
    assert interval[0] < 0.9
    rate = corrected_rate(table, 2_000_000, 3_000_000)
    assert rate.interval == pytest.approx((2 / 3 * (1 - 0.0877), 2 / 3 + 0.1682 / 3), abs=0.001)
    assert corrected_rate(table, 113, 170).interval[1] > 0.73


def test_one_mistake_ends_the_interval_of_kappa_below_one() -> None:
    """One mistake in 30 labels excludes a perfect judge, and none does not; each further one lowers the upper limit."""
    highs = []
    for mistakes in range(8):
        wrong_passes, wrong_failures = (mistakes + 1) // 2, mistakes // 2
        interval = kappa_interval(Confusion(20 - wrong_failures, wrong_failures, wrong_passes, 10 - wrong_passes))
        highs.append(interval[1] if interval else math.nan)
    assert highs[:3] == pytest.approx([1, 0.990, 0.964], abs=0.001)
    assert highs == sorted(highs, reverse=True)


def test_intervals_of_kappa_cover_a_good_judge_in_93_to_97_of_100() -> None:
    """The exact coverage over all tables of 30 labels with a kappa of .9, both with pass rates of .5 to .85."""
    n, covered, total = 30, 0.0, 0.0
    rates = [0.5 + 0.05 * step for step in range(8)]
    mistakes = [(1 - 0.9) * rate * (1 - rate) for rate in rates]
    cells = [(rate - b, b, 1 - rate - b) for rate, b in zip(rates, mistakes, strict=True)]
    # More than 8 mistakes in 30 labels have a chance below 1 in 100,000.
    for wrong, passed in itertools.product(range(9), range(n + 1)):
        for only_people in range(wrong + 1):
            table = Confusion(passed, only_people, wrong - only_people, n - wrong - passed)
            interval = kappa_interval(table) if table.both_failed >= 0 else None
            if interval is not None:
                ways = math.comb(n, wrong) * math.comb(wrong, only_people) * math.comb(n - wrong, passed)
                chance = sum(a**passed * b**wrong * d ** (n - wrong - passed) for a, b, d in cells) * ways
                total += chance
                covered += chance * (interval[0] <= 0.9 <= interval[1])
    assert 0.93 <= covered / total <= 0.97


def test_few_mistakes_widen_the_interval_step_by_step() -> None:
    """Each further mistake makes the interval wider, also where Student's t begins to count."""
    widths = []
    for mistakes in range(10):
        wrong_passes, wrong_failures = (mistakes + 1) // 2, mistakes // 2
        rate = corrected_rate(Confusion(30 - wrong_passes, wrong_failures, wrong_passes, 20 - wrong_failures), 330, 550)
        widths.append(rate.interval[1] - rate.interval[0])
    assert widths == sorted(widths)


def test_stratified_labels_are_weighted_by_verdict() -> None:
    """Of 80 passed outputs 9 in 10 are good, of 20 failed ones 2 in 10: .8 × .9 + .2 × .2 = .76."""
    assert stratified_rate(Confusion(9, 2, 1, 8), 80, 100).value == pytest.approx(0.76)


def test_correlation_needs_four_pairs_and_spread() -> None:
    """A line has the correlation 1; a constant side has none."""
    line = correlate([1, 2, 3, 4], [2, 4, 6, 8])
    assert line is not None
    assert line.value == pytest.approx(1)
    assert correlate([1, 2, 3], [1, 2, 3]) is None
    assert correlate([1, 2, 3, 4], [5, 5, 5, 5]) is None


def test_corrected_rates_cover_the_true_rate() -> None:
    """In 400 draws of 50 labels and 150 verdicts, a judge of kappa .6 covers a rate of .7 in 92 to 99 of 100."""
    rng, covered = random.Random(3), 0
    for _ in range(400):
        people = [rng.random() < 0.7 for _ in range(200)]
        # Sensitivity and specificity of .88 and .72 give the same pass rate and kappa .6.
        judge = [rng.random() < (0.88 if y else 0.28) for y in people]
        table = tabulate((y, f, 1.0) for y, f in zip(people[:50], judge[:50], strict=True))
        low, high = corrected_rate(table, sum(judge[50:]), 150).interval
        covered += low <= 0.7 <= high
    assert 0.92 <= covered / 400 <= 0.99
