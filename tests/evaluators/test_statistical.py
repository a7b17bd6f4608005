"""Statistical evaluators: over epochs and lists, with n = 1, ties and no spread at all."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.decorator import get_info
from proctor.evaluators.statistical import consistency, effect_size, statistical_significance
from proctor.records.fields.context import FieldContext
from tests.support import LazyModule
from tests.tables import each_row

stats: Any = LazyModule("scipy.stats")

UP = [0.9, 0.8, 0.95, 0.85, 0.9, 0.8, 0.95, 0.9]
MANY = [0.5 + 0.4 * math.sin(place) for place in range(40)]
DOWN = [0.6, 0.7, 0.65, 0.75, 0.6, 0.7, 0.65, 0.6, 0.5]


def epochs(values: list[Any], baseline: list[Any] | tuple[Any, ...] = ()) -> FieldContext:
    """A field with its values in all epochs, and those of the baseline configuration."""
    last = values[-1] if values else None
    return FieldContext("score", {"score": last}, epochs=values, baseline_epochs=baseline)


def lists(values: Any, baseline: Any = None) -> FieldContext:
    """A field that is a list itself, seen in a single epoch."""
    result = {"score": values, "baseline_score": baseline}
    return FieldContext("score", result, epochs=[values])


@given(st.lists(st.integers(0, 100).map(lambda n: n / 100), min_size=2, max_size=10))
def test_consistency_of_numbers_is_their_standard_deviation(values: list[float]) -> None:
    """It is the sample's standard deviation, and passes up to the limit with the value 1."""
    score = consistency(epochs(values))
    deviation = statistics.stdev(values)
    assert score.details["varied"] == pytest.approx(deviation, abs=1e-12)
    if abs(deviation - 0.1) > 1e-6:
        assert score.passed is (deviation <= 0.1)
    assert score.value == pytest.approx(min(1.0, 0.1 / deviation) if deviation > 1e-12 else 1.0)


@each_row(
    ("values", "varied", "method"),
    [
        ([True, True, False, False], math.sqrt(1 / 3), "standard deviation"),
        (["a", "a", "b"], 2 / 3, "share of pairs that differ"),
        (["a", "a", "a"], 0.0, "share of pairs that differ"),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], 0.0, "share of pairs that differ"),
        ([[1], [2]], 1.0, "share of pairs that differ"),
        ([1, "1"], 1.0, "share of pairs that differ"),
        ([True, 1], 1.0, "share of pairs that differ"),
        ([0.1, 0.1, 0.1], 0.0, "standard deviation"),
    ],
)
def test_other_values_are_compared_pair_by_pair(values: list[Any], varied: float, method: str) -> None:
    """Booleans are 0 and 1; texts, lists and mixtures are the same or not; the details say so."""
    score = consistency(epochs(values))
    assert score.details["varied"] == pytest.approx(varied)
    assert score.details["method"] == method
    assert score.passed is (varied <= 0.1)


def test_consistency_of_a_single_value_is_skipped() -> None:
    assert consistency(epochs([0.5])).status == "skipped"
    assert consistency(FieldContext("score", {"score": 0.5})).status == "skipped"
    assert consistency(epochs([None, None, None])).status == "skipped"
    partly = consistency(epochs([0.5, None, 0.5]))
    assert (partly.value, partly.details["n"], partly.details["missing"]) == (1.0, 2, 1)


def test_consistency_looks_into_a_list_of_a_single_epoch_only() -> None:
    assert consistency(lists([0.1, 0.9])).details["n"] == 2
    assert consistency(epochs([[0.1, 0.9], [0.1, 0.9], [0.1, 0.9]])).value == 1.0


def test_nan_is_an_error_everywhere() -> None:
    assert consistency(epochs([0.1, math.nan])).status == "error"
    assert consistency(epochs(["a", math.inf])).status == "error"
    assert statistical_significance(epochs(UP, [math.nan, 0.1])).status == "error"
    assert effect_size(epochs([math.nan, 0.1], DOWN)).status == "error"


def test_significance_is_welchs_where_there_are_enough_values() -> None:
    """40 against 45 values: scipy's p, means, difference and interval, and the value 1 - p."""
    first, second = MANY, [value - 0.002 * place for place, value in enumerate([*MANY, *MANY[:5]])]
    score = statistical_significance(epochs(first, second))
    theirs = stats.ttest_ind(first, second, equal_var=False)
    assert score.value == pytest.approx(1 - theirs.pvalue, rel=1e-9)
    assert score.details["p"] == pytest.approx(theirs.pvalue, rel=1e-9)
    assert score.details["n"] == [40, 45]
    means = [statistics.mean(first), statistics.mean(second)]
    assert score.details["means"] == pytest.approx(means)
    assert score.details["interval"] == pytest.approx(list(theirs.confidence_interval()), rel=1e-9)
    assert score.details["method"] == "Welch's t-test"


def test_significance_of_some_values_draws_rearrangements() -> None:
    low = [*DOWN[1:], 0.85]
    score = statistical_significance(epochs(UP, low))
    theirs = stats.ttest_ind(UP, low, equal_var=False)
    assert score.passed
    assert score.details["p"] == pytest.approx(theirs.pvalue, abs=0.002)
    assert score.details["interval"] == pytest.approx(list(theirs.confidence_interval()), rel=1e-9)
    assert score.details["method"] == "permutation test (4999 drawn)"
    assert statistical_significance(epochs(UP, low)) == score


def test_significance_of_groups_that_lie_wholly_apart_is_counted() -> None:
    """One of 24,310 splits of eight and nine, where no draw would have come upon it."""
    score = statistical_significance(epochs([one + 0.01 for one in UP], DOWN))
    assert score.details["method"] == "exact permutation test"
    assert score.details["p"] == pytest.approx(1 / 24_310)


def test_significance_of_few_values_counts_rearrangements() -> None:
    """Four against four: 2 of 70 splits, which is enough for 0.05 and not for 0.01."""
    context = epochs([5, 6, 7, 8], [1, 2, 3, 4])
    score = statistical_significance(context)
    assert score.passed
    assert score.details["p"] == pytest.approx(2 / 70)
    strict = statistical_significance(context, p_value=0.01)
    assert strict.status == "skipped"
    assert "their smallest possible p is 0.02857" in strict.reason


def test_too_few_values_for_any_verdict_are_skipped() -> None:
    """One, and three against three, can show nothing at 0.05; insisting on t they can."""
    three = epochs([10, 11, 12], [1, 2, 3])
    assert statistical_significance(epochs([1], [2])).status == "skipped"
    assert statistical_significance(three).status == "skipped"
    insisted = statistical_significance(three, method="t")
    theirs = stats.ttest_ind([10, 11, 12], [1, 2, 3], equal_var=False).pvalue
    assert insisted.details["p"] == pytest.approx(theirs, rel=1e-9)
    flat = statistical_significance(epochs([1, 1], [2, 2]), method="t")
    assert flat.status == "skipped"
    assert "no spread" in flat.reason


def test_values_without_spread_are_judged_by_counting() -> None:
    """Ten 1s and ten 0s differ, ten 1s and ten 1s do not, and neither divides by zero."""
    assert statistical_significance(epochs([1.0] * 10, [0.0] * 10)).passed
    same = statistical_significance(epochs([1.0] * 10, [1.0] * 10))
    assert (same.passed, same.value, same.details["p"]) == (False, 0.0, 1.0)
    # Newcombe's: two Wilson intervals of 10 in 10 reach down by 0.2775.
    assert same.details["interval"] == pytest.approx([-0.27753, 0.27753], abs=1e-5)
    one_sided = statistical_significance(epochs([0.7] * 10, DOWN))
    assert one_sided.details["interval"] is None


def test_a_direction_halves_or_refutes() -> None:
    """Asked for higher, UP over DOWN has half the p; asked for lower it has nearly 1."""
    both, higher, lower = (
        statistical_significance(epochs(UP, DOWN), direction=direction, method="t").details["p"]
        for direction in ("any", "higher", "lower")
    )
    assert higher == pytest.approx(both / 2)
    assert lower == pytest.approx(1 - both / 2)


def test_pairs_are_compared_as_pairs() -> None:
    before = [1.0, 5.0, 9.0, 13.0, 17.0, 21.0, 25.0, 29.0]
    after = [value + 0.5 + 0.1 * (place % 3) for place, value in enumerate(before)]
    assert not statistical_significance(epochs(after, before)).passed
    score = statistical_significance(epochs(after, before), paired=True)
    # All eight rose: 2 of the 256 changes of signs go as far.
    assert score.details["p"] == 2 / 256
    by_t = statistical_significance(epochs(after, before), paired=True, method="t")
    assert by_t.details["p"] == pytest.approx(stats.ttest_rel(after, before).pvalue, rel=1e-9)
    holed = statistical_significance(epochs([None, *after[1:]], before), paired=True)
    assert (holed.details["n"], holed.details["missing"]) == ([7, 7], 1)
    assert statistical_significance(epochs(after, before[1:]), paired=True).status == "error"


def test_an_epoch_that_failed_drops_its_pair_and_no_other() -> None:
    mine = [1.0, None, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    theirs = [0.5, 1.0, 2.0, None, 3.0, 3.5, 4.0, 4.5, 5.0]
    score = statistical_significance(epochs(mine, theirs), paired=True)
    assert (score.details["n"], score.details["missing"]) == ([7, 7], 2)
    assert score.details["p"] == 2 / 128
    assert score.details["difference"] == pytest.approx((0.5 + 1 + 2 + 2.5 + 3 + 3.5 + 4) / 7)


def test_lists_and_recorded_baselines_work_without_epochs() -> None:
    score = statistical_significance(lists(UP, DOWN))
    assert score.details["n"] == [8, 9]
    single = statistical_significance(lists(list(range(1, 20)), 60))
    assert single.details["p"] == pytest.approx(1 / 20)
    assert statistical_significance(lists(UP)).reason == "there is no baseline to compare with"
    assert effect_size(lists(UP)).status == "skipped"


def test_booleans_are_0_and_1_and_texts_an_error() -> None:
    """Passes in 9 of 9 against 0 of 9 differ; texts have no means."""
    assert statistical_significance(epochs([True] * 9, [False] * 9)).passed
    words = statistical_significance(epochs(["a", "b"], [1, 2]))
    assert words.reason == "score: 'a' is not a number"
    assert effect_size(epochs([1, 2, 3], ["x"])).reason.startswith("the baseline of score: 'x'")


def test_what_was_not_measured_is_left_out() -> None:
    score = statistical_significance(epochs([*UP, None], DOWN))
    assert (score.details["n"], score.details["missing"]) == ([8, 9], 1)
    assert statistical_significance(epochs([None, None], DOWN)).status == "skipped"
    assert effect_size(epochs([None, None], DOWN)).reason == "score is not known"
    crossed = effect_size(epochs([None, 1], [1, None]), paired=True)
    assert crossed.reason == "score is not known in any pair"


def test_effect_size_is_hedges_g() -> None:
    """4, 5, 6 against 1, 2, 3: d = 3, g = 2.394; it passes with the value 1 and says both."""
    score = effect_size(epochs([4, 5, 6], [1, 2, 3]))
    assert (score.passed, score.value, score.details["d"]) == (True, 1.0, 3.0)
    assert score.details["g"] == pytest.approx(2.39365, abs=1e-5)
    low, high = score.details["interval"]
    assert low < score.details["g"] < high


def test_a_small_effect_does_not_pass() -> None:
    score = effect_size(epochs([1, 2, 3, 4], [1, 2, 3, 5]), cohen_d=0.8)
    assert not score.passed
    assert score.value == pytest.approx(abs(score.details["g"]) / 0.8)


def test_an_effect_has_a_direction() -> None:
    """Either way passes by itself; asked for lower, a rise is worth 0."""
    context = epochs([4, 5, 6], [1, 2, 3])
    assert effect_size(context, direction="higher").passed
    wrong = effect_size(context, direction="lower")
    assert (wrong.passed, wrong.value) == (False, 0.0)
    assert "required: 0.5 lower" in wrong.reason


def test_an_effect_without_spread() -> None:
    same = effect_size(epochs([1, 1, 1], [1, 1, 1]))
    assert (same.status, same.passed, same.value) == ("ok", False, 0.0)
    apart = effect_size(epochs([1, 1, 1], [0, 0, 0]))
    assert apart.status == "skipped"
    assert "no spread" in apart.reason
    rose = effect_size(epochs([2, 3, 4], [1, 2, 3]), paired=True)
    assert "no spread" in rose.reason
    assert "too few" in effect_size(epochs([1, 2], [3])).reason


def test_a_paired_effect_is_measured_by_the_differences() -> None:
    """Differences of 1, 2, 3: mean 2, deviation 1, d = 2."""
    score = effect_size(epochs([1, 3, 5], [0, 1, 2]), paired=True)
    assert score.details["d"] == 2.0
    assert score.details["method"] == "Hedges' g of pairs"


@pytest.mark.parametrize(
    ("evaluator", "options"),
    [
        (consistency, {"std_dev": -0.1}),
        (statistical_significance, {"p_value": 0}),
        (statistical_significance, {"p_value": 1}),
        (statistical_significance, {"p_value": 5}),
        (statistical_significance, {"method": "bayes"}),
        (effect_size, {"cohen_d": 0}),
        (effect_size, {"direction": "up"}),
    ],
)
def test_bad_options_are_refused_when_attached(evaluator: Any, options: dict[str, Any]) -> None:
    with pytest.raises(EvaluatorError):
        attach(evaluator, parameters=options)
    assert attach(evaluator).needs >= {"epochs"}


def test_the_catalogue_names_category_needs_and_defaults() -> None:
    found = {}
    for one in (consistency, statistical_significance, effect_size):
        info = get_info(one)
        assert info is not None
        assert (info.category, info.needs) == ("statistical", ("epochs",))
        found[info.name] = (info.parameters[0].name, info.parameters[0].default)
    assert found == {
        "consistency": ("std_dev", 0.1),
        "statistical_significance": ("p_value", 0.05),
        "effect_size": ("cohen_d", 0.5),
    }
