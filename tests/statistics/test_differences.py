"""Differences of two groups: agreement with scipy, and difficult cases by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from proctor.core.stats.differences import (
    compare_groups,
    paired_differences,
    paired_t,
    ratio_interval,
    sample_moments,
    welch_t,
)
from proctor.core.stats.permutations import (
    GRID,
    Direction,
    permutation_test,
    sign_flip_p_value,
    sign_flip_test,
    sign_test,
)
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")

NUMBER = st.integers(-400, 400).map(lambda eighths: eighths / 8)
GROUP = st.lists(NUMBER, min_size=2, max_size=12)
TINY = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=4)
SOME = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=4)
DIRECTION = st.sampled_from(["any", "higher", "lower"])
SCIPYS = {"any": "two-sided", "higher": "greater", "lower": "less"}


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(GROUP, GROUP, DIRECTION)
def test_welch_agrees_with_scipy(first: list[float], second: list[float], direction: Direction) -> None:
    """t, degrees of freedom, p in each direction and the interval."""
    assume(len(set(first)) > 1 or len(set(second)) > 1)
    actual = welch_t(first, second)
    expected = stats.ttest_ind(first, second, equal_var=False, alternative=SCIPYS[direction])
    assert actual is not None
    assert actual.t == pytest.approx(expected.statistic, rel=1e-9, abs=1e-12)
    assert actual.df == pytest.approx(expected.df, rel=1e-9)
    assert actual.p(direction) == pytest.approx(expected.pvalue, rel=1e-9)
    if direction == "any":
        low, high = expected.confidence_interval(0.95)
        assert actual.interval() == pytest.approx((low, high), rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(NUMBER, NUMBER), min_size=2, max_size=12), DIRECTION)
def test_the_paired_t_agrees_with_scipy(pairs: list[tuple[float, float]], direction: Direction) -> None:
    first, second = (list(side) for side in zip(*pairs, strict=True))
    assume(len({item - other for item, other in pairs}) > 1)
    actual = paired_t(first, second)
    expected = stats.ttest_rel(first, second, alternative=SCIPYS[direction])
    assert actual is not None
    assert actual.t == pytest.approx(expected.statistic, rel=1e-9, abs=1e-12)
    assert actual.p(direction) == pytest.approx(expected.pvalue, rel=1e-9)


@given(SOME, SOME, DIRECTION)
def test_the_exact_permutation_test_agrees_with_scipy(
    first: list[float], second: list[float], direction: Direction
) -> None:
    """Also with ties."""

    def statistic(x: Any, y: Any, axis: int = -1) -> Any:
        differences = np.mean(x, axis=axis) - np.mean(y, axis=axis)
        # Rounded, since scipy takes sums that differ in the last digit for different.
        return np.round(np.abs(differences) if direction == "any" else differences, 9)

    expected = stats.permutation_test(
        (first, second),
        statistic,
        vectorized=True,
        n_resamples=np.inf,
        alternative="less" if direction == "lower" else "greater",
    )
    assert permutation_test(first, second, direction).p == pytest.approx(expected.pvalue, abs=1e-12)


@given(TINY, DIRECTION)
def test_the_exact_sign_flip_test_counts_all_signs(values: list[float], direction: Direction) -> None:

    def side(total: float) -> float:
        return {"any": abs(total), "higher": total, "lower": -total}[direction]

    sums = [
        math.fsum(v if flip >> position & 1 else -v for position, v in enumerate(values))
        for flip in range(2 ** len(values))
    ]
    reached = sum(side(total) >= side(math.fsum(values)) for total in sums)
    assert sign_flip_test(values, direction).p == pytest.approx(reached / len(sums), abs=1e-12)


@given(st.integers(0, 60), st.integers(0, 60), DIRECTION)
def test_the_sign_test_agrees_with_scipy(up: int, down: int, direction: Direction) -> None:
    """McNemar's exact test is the binomial test of a fair coin."""
    assume(up + down > 0)
    expected = stats.binomtest(up, up + down, alternative=SCIPYS[direction]).pvalue
    assert sign_test(up, down, direction) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_of_152_against_209() -> None:
    """Published counts have p = 0.003151; without flips p is 1."""
    assert sign_test(152, 209) == pytest.approx(0.003151, abs=5e-7)
    assert sign_test(0, 0) == 1.0
    assert sign_test(5_000, 5_200) == pytest.approx(stats.binomtest(5000, 10_200).pvalue, rel=1e-9)


@pytest.mark.no_cover
@settings(max_examples=20)
@given(GROUP, GROUP, st.integers(-50, 50), st.sampled_from([0.5, 2.0, 4.0]), st.booleans())
def test_p_does_not_depend_on_the_unit(
    first: list[float], second: list[float], shift: int, scale: float, by_pairs: bool
) -> None:
    """Swapped groups have the opposite difference."""
    if by_pairs:
        first, second = first[: len(second)], second[: len(first)]
    actual = compare_groups(first, second, paired=by_pairs)
    moved = compare_groups([scale * v + shift for v in first], [scale * v + shift for v in second], paired=by_pairs)
    swapped = compare_groups(second, first, paired=by_pairs)
    assert actual is not None
    assert moved is not None
    assert swapped is not None
    assert moved.p == pytest.approx(actual.p, rel=1e-9)
    assert moved.difference == pytest.approx(scale * actual.difference, abs=1e-9)
    assert swapped.difference == pytest.approx(-actual.difference)
    assert 0 < actual.p <= 1
    if "drawn" not in actual.method:
        assert swapped.p == pytest.approx(actual.p, rel=1e-9)


def test_three_against_three_have_a_p_of_at_least_a_tenth() -> None:
    """Two of the 20 ways to split six numbers are the most extreme."""
    result = compare_groups([10.0, 11.0, 12.0], [1.0, 2.0, 3.0])
    assert result is not None
    assert (result.p, result.smallest_p) == (0.1, 0.1)
    assert result.method == "exact permutation test"
    assert result.difference == 9.0


def test_a_group_of_one_has_n_plus_one_arrangements() -> None:
    """A single value beyond 19 others has p = 1 / 20; one against one has no result."""
    result = compare_groups([float(v) for v in range(1, 20)], [60.0])
    assert result is not None
    assert result.p == pytest.approx(1 / 20)
    assert result.interval is None
    assert compare_groups([1.0], [2.0]) is None
    assert compare_groups([], [1.0, 2.0, 3.0]) is None


def test_constant_groups_have_a_finite_p() -> None:
    """Ten 1s against ten 0s: 2 of the 184,756 splits; against ten 1s: p is 1."""
    result = compare_groups([1.0] * 10, [0.0] * 10)
    same = compare_groups([0.3] * 10, [0.1 + 0.2] * 10)
    assert result is not None
    assert same is not None
    assert result.p == pytest.approx(2 / math.comb(20, 10))
    # Newcombe's, of Wilson's 0.7225 … 1 and 0 … 0.2775.
    assert result.interval == pytest.approx((1 - math.hypot(0.27753, 0.27753), 1.0), abs=1e-5)
    assert same.interval is None
    assert same.p == 1.0
    assert permutation_test([1.0] * 9, [0.0] * 30, "higher").p == pytest.approx(1 / math.comb(39, 9))
    assert permutation_test([1.0] * 9, [0.0] * 30, "lower").p == 1.0
    assert permutation_test([1.0] * 9, [1.0] * 30).p == 1.0


def test_equal_differences_of_pairs_give_the_sign_test() -> None:
    """Ten pairs that all rose by one: p = 2 / 2**10."""
    before = [float(v) for v in range(10)]
    result = compare_groups([v + 1 for v in before], before, paired=True)
    assert result is not None
    assert result.p == 2 / 1024
    assert result.method == "exact sign test"
    unmoved = compare_groups(before, before, paired=True)
    assert unmoved is not None
    assert unmoved.p == 1.0
    assert paired_t([1.0], [2.0]) is None
    assert compare_groups([1.0], [2.0], paired=True) is None


def test_the_method_can_be_chosen() -> None:
    """t on three values agrees with scipy; without variance the t-test has no result."""
    first, second = [10.0, 11.0, 12.0], [1.0, 2.0, 3.5]
    result = compare_groups(first, second, method="t")
    assert result is not None
    assert result.p == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue)
    assert result.method == "Welch's t-test"
    assert compare_groups([1.0, 1.0], [2.0, 2.0], method="t") is None
    many = compare_groups(list(map(float, range(31))), list(map(float, range(5, 50))))
    assert many is not None
    assert many.method == "Welch's t-test"
    pairs = compare_groups([float(v) ** 2 for v in range(31)], [0.0] * 31, paired=True)
    assert pairs is not None
    assert pairs.method == "paired t-test"


def test_resampled_p_values_are_reproducible_and_close_to_t() -> None:
    """12 against 12 values are resampled."""
    rng = random.Random(1)
    first = [rng.gauss(0.8, 1) for _ in range(12)]
    second = [rng.gauss(0, 1) for _ in range(12)]
    item, again, other = (permutation_test(first, second, seed=seed).p for seed in (1, 1, 2))
    student = welch_t(first, second)
    assert student is not None
    assert item == again != other
    assert item == pytest.approx(student.p(), abs=0.02)
    pairs = [*paired_differences(first, second), 0.5, -0.25, 1.5, 2.0]
    drawn = sign_flip_test(pairs, "higher", seed=3)
    assert drawn.p == sign_flip_test(pairs, "higher", seed=3).p
    assert drawn.p == pytest.approx(stats.ttest_1samp(pairs, 0, alternative="greater").pvalue, abs=0.02)


def test_equal_groups_rarely_differ() -> None:
    """At most 5% false alarms, by permutation and by t, up to Monte Carlo error."""
    rng = random.Random(7)
    wrong = {"permutation": 0, "t": 0}
    for _ in range(150):
        first, second = ([rng.gauss(0, 1) for _ in range(5)] for _ in range(2))
        for method in ("permutation", "t"):
            result = compare_groups(first, second, method=method)
            assert result is not None
            wrong[method] += result.p <= 0.05
    assert all(count / 150 < 0.11 for count in wrong.values())


BINARY, GRADES = [1.0] * 19 + [0.0], [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("draw", "n", "m", "replicates", "method"),
    [
        (lambda rng: rng.choice(BINARY), 8, 60, 200, "exact permutation test"),
        (lambda rng: rng.choice(GRADES), 7, 40, 6, "permutation test (4999 drawn)"),
        (lambda rng: rng.expovariate(1), 8, 40, 4, "studentized permutation test (4999 drawn)"),
        (lambda rng: rng.lognormvariate(0, 1), 40, 80, 100, "Welch's t-test"),
    ],
    ids=["mostly passed", "grades", "exponential", "lognormal"],
)
def test_equal_groups_of_unequal_size_rarely_differ(
    draw: Callable[[random.Random], float], n: int, m: int, replicates: int, method: str
) -> None:
    """A quick case of the simulations: at most 5% false alarms, up to Monte Carlo error."""
    rng = random.Random(17)
    alarms, methods = 0, set()
    for seed in range(replicates):
        first, second = ([draw(rng) for _ in range(size)] for size in (n, m))
        result = compare_groups(first, second, seed=seed)
        assert result is not None
        alarms += result.p <= 0.05
        methods.add(result.method)
    assert method in methods
    assert alarms / replicates <= 0.05 + 3.5 * math.sqrt(0.05 * 0.95 / replicates)


@pytest.mark.no_cover
def test_unequal_variances_are_not_mistaken_for_a_difference() -> None:
    """The plain permutation test gives too small p-values if the smaller group varies more."""
    rng = random.Random(4)
    plain = studentized = 0.0
    for seed in range(5):
        first, second = [rng.gauss(0, 3) for _ in range(10)], [rng.gauss(0, 1) for _ in range(40)]
        plain += permutation_test(first, second, seed=seed).p
        studentized += permutation_test(first, second, seed=seed, studentized=True).p
    assert plain < studentized


@given(
    st.lists(st.booleans(), min_size=2, max_size=30),
    st.lists(st.booleans(), min_size=2, max_size=30),
    st.sampled_from(["higher", "lower"]),
)
def test_binary_values_give_fishers_test(first: list[bool], second: list[bool], direction: Direction) -> None:
    """One-sided p-values agree with scipy; values that differ only by rounding are equal."""
    table = [[sum(side), len(side) - sum(side)] for side in (first, second)]
    expected = stats.fisher_exact(table, alternative=SCIPYS[direction]).pvalue
    actual = permutation_test([float(v) for v in first], [float(v) for v in second], direction)
    assert actual.p == pytest.approx(expected, rel=1e-9)
    tiny = permutation_test([0.3 if v else 0.1 + 0.2 for v in first], [0.3] * len(second), direction)
    assert tiny.p == 1.0


def test_swapped_groups_give_the_opposite_direction_when_resampled() -> None:
    rng = random.Random(2)
    first = [rng.gauss(0.4, 1) for _ in range(9)]
    second = [rng.gauss(0, 1) for _ in range(30)]
    for studentized in (True, False):
        up = permutation_test(first, second, "higher", 5, studentized=studentized)
        down = permutation_test(second, first, "lower", 5, studentized=studentized)
        assert up.p == pytest.approx(down.p, abs=0.02)
        assert up.p < 0.5 < permutation_test(first, second, "lower", 5, studentized=studentized).p


def test_equal_values_have_variance_0() -> None:
    """Rounding does not count as variance."""
    assert sample_moments([0.1] * 7) == (0.1, 0.0)
    assert sample_moments([1e9, 1e9 + 1e-7])[1] == 0.0
    assert sample_moments([5.0]) == (5.0, 0.0)
    assert sample_moments([0.0, 0.0]) == (0.0, 0.0)
    assert sample_moments([1.0, 3.0]) == (2.0, 2.0)


@given(st.lists(st.floats(-1, 1).filter(lambda value: abs(value) > 1e-6), min_size=2, max_size=11))
def test_counting_on_a_grid_agrees_with_enumeration(apart: list[float]) -> None:
    """The p-value is never too small, and too large only by the width of the grid."""
    whole = sum(map(abs, apart))
    sums = [sum(signed) for signed in product(*((item, -item) for item in apart))]
    sides: dict[Direction, int] = {"any": 0, "higher": 1, "lower": -1}
    for direction, side in sides.items():
        observed = sum(apart) * side if side else abs(sum(apart))
        far = [item * side if side else abs(item) for item in sums]
        exact = sum(item >= observed - 1e-12 for item in far) / len(sums)
        near = sum(item >= observed - whole * 4 * len(apart) / GRID for item in far) / len(sums)
        result = sign_flip_p_value(apart, direction)
        assert exact - 1e-12 <= result <= max(near, exact) + 1e-12


def test_sixty_of_sixty_positive_differences() -> None:
    """Two of 2^60 arrangements, which resampling would never find."""
    result = sign_flip_test([0.5 + 0.001 * at for at in range(60)])
    assert result.p == pytest.approx(2.0**-59)
    assert result.p == result.smallest


def test_the_interval_of_a_ratio_by_hand() -> None:
    """2 / (1 ± 2 * .1) if only the second mean has an error; 2 ± .2 if only the first has."""
    assert ratio_interval((2.0, 1.0), (0.0, 0.1, 0.1), (0.8, 1.2)) == pytest.approx((2 / 1.2, 2 / 0.8))
    assert ratio_interval((2.0, 1.0), (0.1, 0.0, 0.1), (0.8, 1.2)) == pytest.approx((1.8, 2.2))


def test_the_interval_of_a_ratio_has_limits() -> None:
    """It ends at 0; a ratio to a mean that is 0, or may be, has no interval."""
    assert ratio_interval((1.0, 2.0), (0.9, 0.1, 0.9), (-3.0, 1.0)) == pytest.approx((0.0, 1.505), abs=0.001)
    assert ratio_interval((1.0, 1.0), (0.1, 0.9, 0.9), (-1.8, 1.8)) is None
    # The second mean excludes 0 by 1.8 standard errors, but not by 2.2.
    assert ratio_interval((1.0, 1.0), (0.1, 0.5, 0.5), (-0.9, 0.9)) is not None
    assert ratio_interval((1.0, 1.0), (0.1, 0.5, 0.5), (-0.9, 1.1)) is None
    assert ratio_interval((1.0, 0.0), (0.1, 0.0, 0.1), (0.8, 1.2)) is None
    assert ratio_interval((1.0, 1.0), (0.1, 0.1, 0.1), None) is None
