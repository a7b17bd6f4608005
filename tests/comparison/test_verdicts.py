"""What is said of a difference: better, worse, no relevant difference, or not enough evidence."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.comparison.compare import compare, compare_all
from proctor.comparison.sides import Side
from proctor.comparison.verdicts import DifferenceEvidence, estimate_more_samples
from proctor.core.stats.effects import holm
from proctor.errors import ConfigError
from tests.comparison.made_up import numbers, of_field, of_score
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")


def side(name: str, **scores: Any) -> Side:
    return Side(name, scores={metric: numbers(*values) for metric, values in scores.items()})


def test_equal_within_a_point_is_no_relevant_difference() -> None:
    """2,000 samples that never differ by more than half a point; twenty of them do not say it."""
    chance = random.Random(1)
    base = [chance.random() / 2 for _ in range(2000)]
    near = [value + chance.uniform(-0.005, 0.006) for value in base]
    many = of_score(near, base)
    assert many.p is not None
    assert many.interval is not None
    assert max(map(abs, many.interval)) < 0.01
    assert many.verdict == "no relevant difference"
    assert many.more_samples is None
    assert of_score(near, base, min_difference=0.0001).verdict == "better"


def test_scores_are_alike_only_once_rare_collapses_are_ruled_out() -> None:
    """Forty scores a hair apart do not rule out that one in thirty falls to 0; 400 do.

    z² / (n + z²) · 0.8 must be within the point: n of 304.
    """
    chance = random.Random(3)
    base = [0.8 + chance.uniform(-0.05, 0.05) for _ in range(400)]
    near = [value + chance.uniform(-0.005, 0.005) for value in base]
    few, many = of_score(near[:40], base[:40]), of_score(near, base)
    assert few.interval is not None
    assert max(map(abs, few.interval)) < 0.01
    assert few.verdict == "not enough evidence"
    assert few.more_samples == pytest.approx(304 - 40, abs=10)
    assert many.verdict == "no relevant difference"


def test_one_document_that_holds_most_samples_tells_nothing() -> None:
    """A hundred samples of one document and nine others of five each are not ten documents."""
    names = ["big"] * 100 + [str(at // 5) for at in range(45)]
    first = numbers(*[float(at % 3 == 0) for at in range(145)])
    second = numbers(*[float(at % 2 == 0) for at in range(145)])
    delta = of_field(first, second, clusters=names)
    assert (delta.interval, delta.p, delta.a_interval) == (None, None, None)
    assert delta.method == "one cluster has most of the samples"
    assert (delta.clusters, delta.verdict) == (10, "not enough evidence")
    assert delta.units == pytest.approx(145**2 / (100**2 + 9 * 25))
    same = of_field(first, first, clusters=names)
    assert same.verdict == "not enough evidence"


def test_other_numbers_are_alike_within_five_percent_of_b() -> None:
    """Latencies around 400: differences within 20 are not relevant, whichever way it goes."""
    chance = random.Random(2)
    base = [400 + chance.gauss(0, 5) for _ in range(50)]
    close = of_field(numbers(*(v + chance.gauss(8, 2) for v in base)), numbers(*base), "latency_ms")
    assert close.min_difference == pytest.approx(0.05 * sum(base) / 50)
    assert (close.p is not None and close.p < 1e-6) is True
    assert close.verdict == "no relevant difference"
    far = of_field(numbers(*(v + chance.gauss(40, 2) for v in base)), numbers(*base), "latency_ms")
    assert far.verdict == "worse"


@pytest.mark.parametrize(("n", "verdict", "more"), [(100, "not enough evidence", 176), (276, "no relevant difference", None)])  # fmt: skip  # noqa: E501
def test_passes_that_all_agree_are_alike_from_276_on(n: int, verdict: str, more: int | None) -> None:
    """1.96 √2 / (n + 2) is at most 0.01 from n = 276 on."""
    delta = of_score([1] * n, [1] * n)
    assert (delta.verdict, delta.more_samples) == (verdict, more)


@pytest.mark.parametrize(("n", "verdict", "more"), [(100, "not enough evidence", 281), (381, "no relevant difference", None)])  # fmt: skip  # noqa: E501
def test_scores_that_all_agree_are_alike_from_381_on(n: int, verdict: str, more: int | None) -> None:
    """Wilson's upper end for none of n, z² / (n + z²), is at most 0.01 from n = 381 on."""
    delta = of_score([0.5] * n, [0.5] * n)
    assert (delta.interval, delta.verdict, delta.more_samples) == (None, verdict, more)


def test_clusters_that_all_agree_count_as_one_each() -> None:
    """400 samples of ten documents agree: that is ten, and says little."""
    values = numbers(*[0.5] * 400)
    clusters = {name: str(at % 10) for at, name in enumerate(values)}
    a, b = (Side(n, scores={"judge": values}, clusters=clusters) for n in "ab")
    delta = compare(a, b).scores["judge"]
    assert (delta.clusters, delta.verdict) == (10, "not enough evidence")
    # 380.3 documents would do, of forty samples each.
    assert delta.more_samples == math.ceil((1.959964**2 * 99 - 10) * 40)


def test_numbers_that_all_agree_are_the_same_from_thirty_on() -> None:
    """Twenty-nine equal token counts say too little, thirty are the same."""
    some, enough = (of_field(numbers(*[7] * n), numbers(*[7] * n)) for n in (29, 30))
    assert (some.verdict, some.more_samples) == ("not enough evidence", 1)
    assert enough.verdict == "no relevant difference"


def test_probabilities_are_corrected_for_all_that_was_compared() -> None:
    """Holm over metrics, scores and fields together."""
    up = {"m": 10, "s": 9, "f": 8}
    a, b = (
        Side(
            name,
            {"pass_rate": numbers(*[on] * up["m"], *[0] * 30)},
            {"judge": numbers(*[0] * 20, *[on] * up["s"], *[0] * 11)},
            {"hits": numbers(*[0] * 32, *[on] * up["f"])},
        )
        for name, on in (("a", 1), ("b", 0))
    )
    result = compare(a, b)
    raw = [2 / 2**count for count in up.values()]
    expected = [item.p for item in holm(raw)]
    assert [item.p for item in result.all_deltas()] == pytest.approx(raw)
    assert [item.p_adjusted for item in result.all_deltas()] == pytest.approx(expected)
    assert result.tests == 3
    assert "corrected for 3 tests" in result.answer


def test_narrowing_narrows_the_correction() -> None:
    """Who asks for one metric has one test; flips stay."""
    a = side("a", x=[1] * 6, y=[1, 0] * 3)
    b = side("b", x=[0] * 6, y=[0, 1] * 3)
    both, item = compare(a, b), compare(a, b, metrics=["x.mean"])
    assert (both.tests, both.scores["x"].decided) == (2, False)
    assert (item.tests, item.scores["x"].decided, list(item.scores)) == (1, True, ["x"])
    with pytest.raises(ConfigError, match="unknown metric 'z'"):
        compare(a, b, metrics=["z"])


def test_the_same_numbers_under_two_names_are_one_test() -> None:
    """A single evaluator, its pass rate and the run's are no three chances to be wrong."""
    values = ([1] * 6, [0] * 6)
    a, b = (
        Side(n, {"pass_rate": numbers(*v)}, {"exact": numbers(*v), "exact.pass_rate": numbers(*v)})
        for n, v in zip("ab", values, strict=True)
    )
    result = compare(a, b)
    assert result.tests == 1
    assert [item.p_adjusted for item in result.all_deltas()] == [2 / 64, 2 / 64]
    assert "exact.pass_rate" not in result.scores
    assert result.find("exact.pass_rate") is result.scores["exact"]


def test_alike_sums_are_not_the_same_numbers() -> None:
    """Two evaluators with equal counts on other samples are two tests."""
    a = side("a", x=[1, 1, 0, 0, 0, 0], y=[0, 0, 0, 0, 1, 1])
    b = side("b", x=[0] * 6, y=[0] * 6)
    assert compare(a, b).tests == 2


def test_what_never_differs_is_no_test() -> None:
    """Nine evaluators that always agree could not have found anything."""
    flat = {f"flat{at}": [1] * 6 for at in range(9)}
    a, b = side("a", x=[1] * 6, **flat), side("b", x=[0] * 6, **flat)
    result = compare(a, b)
    assert (result.tests, result.scores["x"].decided) == (1, True)
    assert result.scores["flat0"].p_adjusted == 1.0


def test_several_pairs_are_corrected_together() -> None:
    """Ten configurations looked at for one that is better have ten chances to be wrong."""
    base = side("base", x=[0.0] * 8)
    better = side("better", x=[1.0] * 8)
    assert compare(better, base).scores["x"].decided
    others = [side(f"c{at}", x=[0.0] * at + [1.0] + [0.0] * (7 - at)) for at in range(8)]
    together = compare_all([(item, base) for item in (better, *others)])
    assert [item.tests for item in together] == [9] * 9
    assert together[0].scores["x"].p_adjusted == pytest.approx(9 * 2 / 256)
    assert not together[0].scores["x"].decided


def test_an_invalid_min_difference_is_rejected() -> None:
    """A share; 5 is not five percent."""
    with pytest.raises(ConfigError, match=r"must be 0 or more and less than 1, got 5"):
        compare(side("a"), side("b"), min_difference=5)


def test_more_samples_by_hand() -> None:
    """The mean of all n + N lies around what was seen with the variance v/n - v/(n + N)."""
    evidence = DifferenceEvidence(100, 0.05, 0.04, min_difference=0.01, level=0.05)
    result = estimate_more_samples(evidence)
    for total, enough in ((100 + result, True), (100 + result - 1, False)):
        variance = 100 * 0.04**2
        error, unknown = (variance / total) ** 0.5, (variance / 100 - variance / total) ** 0.5
        line = stats.norm.ppf(0.975) * error
        drawn = stats.norm(0.05, unknown)
        apart = 1 - (drawn.cdf(line) - drawn.cdf(-line))
        equal = 0.01 - line
        if equal > 0:
            apart += drawn.cdf(equal) - drawn.cdf(-equal)
        assert bool(apart >= 0.8) is enough


@given(st.integers(2, 5000), st.floats(-1, 1), st.floats(1e-4, 0.5), st.floats(0, 0.1), st.floats(1e-4, 0.05))  # fmt: skip  # noqa: E501
def test_there_is_always_an_end_of_it(
    n: int, difference: float, error: float, min_difference: float, level: float
) -> None:
    """At least one more, and never for ever, also where nothing is too little to be worth it."""
    assert estimate_more_samples(DifferenceEvidence(n, difference, error, min_difference, level)) >= 1


def test_clearer_differences_take_fewer_samples() -> None:
    """The farther off zero what was seen, the sooner it is settled; a stricter level later."""
    result = [
        estimate_more_samples(DifferenceEvidence(100, evidence, 0.04, min_difference=0.01, level=0.05))
        for evidence in (0.0, 0.02, 0.04, 0.06, 0.075)
    ]
    assert result == sorted(result, reverse=True)
    assert estimate_more_samples(DifferenceEvidence(100, 0.06, 0.04, min_difference=0.01, level=0.005)) > result[3]
