"""Metrics without a number per sample: percentiles, totals and own functions of the results."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from proctor import EvalResult, MetricValue, Sample, Score, Trial, Usage
from proctor.comparison.compare import compare
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.sides import Side, make_side
from proctor.comparison.statistics import Quantile
from proctor.core.stats.bootstrap import Resampled
from proctor.errors import ConfigError
from proctor.records.comparison import MetricDelta
from proctor.records.results import ResultList, Results
from tests.support import LazyModule

stats: Any = LazyModule("scipy.stats")


def make(
    name: str,
    tokens: Sequence[float],
    *,
    clusters: Sequence[str] | None = None,
    prefix: str = "s",
    own: Sequence[Callable[[Results], Any]] = (),
    stored: Mapping[str, MetricValue] | None = None,
) -> Side:
    """A side whose samples s0, s1 … used these tokens and milliseconds, and scored a thousandth."""
    from proctor.metrics.registry import FunctionMetric

    results = [
        EvalResult(
            Trial(
                Sample(f"{prefix}{i}", i, metadata={} if clusters is None else {"cluster": clusters[i]}),
                "x",
                usage=Usage(output_tokens=int(each)),
                latency_ms=float(each),
            ),
            {"judge": Score(min(1.0, each / 1000), each >= 500)},
        )
        for i, each in enumerate(tokens)
    ]
    side = make_side(name, ResultList(results))
    own_metrics = tuple(FunctionMetric(each) for each in own)
    return msgspec.structs.replace(side, custom_metrics=own_metrics, stored=stored or {})


def delta_of(a: Side, b: Side, metric: str) -> MetricDelta:
    return compare(a, b, metrics=[metric]).metrics[metric]


def draw(n: int, seed: int, shift: float = 0) -> list[float]:
    rng = random.Random(seed)
    return [round(shift + rng.uniform(100, 900)) for _ in range(n)]


def total_per_pass(results: Results) -> float:
    """Tokens for each passed sample: a ratio of two sums."""
    tokens = sum(result.trial.usage.total_tokens or 0 for result in results if result.trial.usage)
    return tokens / sum(result.outcome == "passed" for result in results)


def slowest(results: Results) -> float:
    return max(result.latency_ms or 0.0 for result in results)


def test_a_quantile_of_drawn_samples_counts_a_repeated_sample_again() -> None:
    """Of 1, 2, 2, 2, 9 the median is 2 and the upper quartile 2; of 1, 9, 9 the median is 9."""
    known = [(9.0, "c"), (1.0, "a"), (2.0, "b")]
    assert Quantile(known, 0.5)(["a", "b", "b", "b", "c"]) == 2.0
    assert Quantile(known, 0.75)(["b", "c"]) == 2.0 + 0.75 * 7.0
    assert Quantile(known, 0.5)(["c", "c", "a"]) == 9.0
    assert Quantile(known, 0.5)([]) is None


def test_the_interval_of_many_units_is_between_the_percentiles() -> None:
    """Of the resampled values 0 to 1000, the middle 95% are 25 to 975; few units make it wider."""
    many, few = (Resampled(range(1001), units) for units in (1e9, 20))
    assert many.interval() == pytest.approx((25, 975), abs=0.01)
    # Student's t of 19 degrees is 2.093, times sqrt(20 / 19) is 2.147: a tail of 1.59%.
    assert few.interval() == pytest.approx((15.9, 984.1), abs=0.1)


def test_the_p_value_is_twice_the_share_beyond_zero() -> None:
    """10 of 999 resamples are not above 0: with the sample itself, 11 of 1000 on one side."""
    values = [-1.0] * 10 + [1.0] * 989
    assert Resampled(values, 1e9).p() == pytest.approx(0.022, rel=1e-6)
    assert Resampled([0.0] * 50, 30).p() == 1.0
    assert Resampled(values, 20).p() > 0.022


def test_a_median_difference_agrees_with_scipy() -> None:
    """Pairs are drawn together, as in scipy's paired bootstrap."""
    a, b = draw(60, seed=1), [each + random.Random(each).gauss(40, 30) for each in draw(60, seed=1)]
    b = [round(each) for each in b]
    expected = stats.bootstrap(
        (np.array(a), np.array(b)),
        lambda x, y, axis: np.median(x, axis=axis) - np.median(y, axis=axis),
        paired=True,
        n_resamples=2_000,
        method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval
    delta = delta_of(make("a", a), make("b", b), "latency_ms.p50")
    assert delta.method.startswith("bootstrap over 60 samples")
    assert delta.absolute == pytest.approx(np.median(a) - np.median(b))
    assert delta.interval == pytest.approx((expected.low, expected.high), abs=0.2 * (expected.high - expected.low))


def test_a_constant_shift_is_found_without_doubt() -> None:
    """Every sample uses 50 tokens less: the 95th percentile, too, whichever samples are drawn."""
    tokens = draw(220, seed=2)
    delta = delta_of(make("a", [each - 50 for each in tokens]), make("b", tokens), "judge.p95")
    assert delta.absolute == pytest.approx(-0.05)
    assert delta.interval == pytest.approx((-0.05, -0.05))
    assert (delta.verdict, delta.method, delta.kind) == ("worse", "bootstrap over 220 samples", "score")


def test_the_same_runs_give_the_same_figures_in_any_order_of_results() -> None:
    a, b = draw(40, seed=3), draw(40, seed=4)
    first = delta_of(make("a", a), make("b", b), "judge.p50")
    assert delta_of(make("a", a), make("b", b), "judge.p50") == first
    side = make("a", a)
    assert side.results is not None
    reversed_side = make_side("a", ResultList(reversed(list(side.results))))
    assert delta_of(reversed_side, make("b", b), "judge.p50") == first


@pytest.mark.parametrize(
    ("metric", "n", "reason"),
    [
        ("judge.p50", 19, "19 samples are too few for a bootstrap, which needs at least 20"),
        ("judge.p95", 199, "199 samples are too few for a bootstrap of the 95th percentile, which needs 200"),
        ("latency_ms.max", 40, "a maximum or minimum depends on single samples"),
        ("slowest", 40, "a maximum or minimum depends on single samples"),
    ],
)
def test_without_enough_samples_there_is_no_verdict_and_a_reason(metric: str, n: int, reason: str) -> None:
    a, b = make("a", draw(n, seed=5), own=[slowest]), make("b", draw(n, seed=6, shift=5000), own=[slowest])
    delta = delta_of(a, b, metric)
    assert delta.method == reason
    assert (delta.verdict, delta.interval, delta.p) == ("not enough evidence", None, None)
    assert delta.absolute is not None
    gate = decide([(a, b)], GateConfig({metric: 0.1}, better={metric: True}))
    assert gate.verdict == "inconclusive"
    assert reason in gate.answer


def test_clusters_are_drawn_as_a_whole() -> None:
    """Four copies of each sample in its cluster tell nothing new: the interval stays as wide."""
    a, b = draw(30, seed=7), draw(30, seed=8)
    names = [str(n) for n in range(30)]
    once = delta_of(make("a", a), make("b", b), "judge.p50")
    copies = delta_of(make("a", a * 4, clusters=names * 4), make("b", b * 4, clusters=names * 4), "judge.p50")
    assert copies.method == "bootstrap over 120 samples in 30 clusters"
    assert once.interval is not None
    width = once.interval[1] - once.interval[0]
    assert copies.interval == pytest.approx(once.interval, abs=0.1 * width)


def test_too_few_clusters_have_no_verdict() -> None:
    names = [str(n % 12) for n in range(60)]
    sides = make("a", draw(60, seed=1), clusters=names), make("b", draw(60, seed=2), clusters=names)
    assert delta_of(*sides, "judge.p50").method == "12 clusters are too few for a bootstrap, which needs at least 20"


def test_runs_without_common_samples_are_drawn_separately() -> None:
    a, b = make("a", draw(40, 1, shift=600)), make("b", draw(50, 2), prefix="t")
    delta = delta_of(a, b, "judge.p50")
    assert (delta.paired, delta.n, delta.method) == (False, 40, "bootstrap over 40 and 50 samples")
    assert delta.verdict == "better"


def test_a_total_is_compared_like_its_mean() -> None:
    """220 + 230 + … tokens: the total is 40 times the mean, with the p-value of the mean."""
    a, b = draw(40, seed=3), draw(40, seed=4)
    sides = make("a", a), make("b", b)
    mean, total = (compare(*sides, metrics=[name]).metrics[name] for name in ("tokens.mean", "tokens.total"))
    assert (total.a, total.b) == (sum(a), sum(b))
    assert total.absolute == pytest.approx(40 * (mean.absolute or 0.0))
    assert total.p == pytest.approx(mean.p)
    assert mean.interval is not None
    assert total.interval == pytest.approx([40 * end for end in mean.interval])
    assert (total.kind, total.higher_is_better) == ("number", False)


def test_totals_of_different_samples_have_no_verdict() -> None:
    """A run of twice as many samples costs twice as much; that says nothing about the system."""
    delta = delta_of(make("a", draw(40, 1)), make("b", draw(80, 1), prefix="t"), "tokens.total")
    assert delta.method == "totals of two groups depend on how many samples each has: compare the mean instead"
    assert delta.verdict == "not enough evidence"


def test_an_own_ratio_is_compared_and_gated() -> None:
    """Tokens per passed sample, which no single sample has."""
    a, b = [400.0, 600.0] * 20, [450.0, 650.0] * 20
    sides = make("a", a, own=[total_per_pass]), make("b", b, own=[total_per_pass])
    delta = delta_of(*sides, "total_per_pass")
    assert (delta.a, delta.b) == (1000.0, 1100.0)
    assert delta.interval is not None
    assert delta.interval[0] < -100 < delta.interval[1] < 0
    assert delta.verdict == "different"
    gate = decide([sides], GateConfig({"total_per_pass": 0.05}, better={"total_per_pass": False}))
    assert gate.verdict == "pass"
    assert "bootstrap over 40 samples" in gate.answer


def test_a_metric_may_say_which_direction_is_better() -> None:
    class Ratio:
        name = "ratio"
        higher_is_better = False

        def compute(self, results: Results) -> float:
            return total_per_pass(results)

    sides = [
        msgspec.structs.replace(make(name, tokens), custom_metrics=(Ratio(),))
        for name, tokens in (("a", [400.0, 600.0] * 20), ("b", [450.0, 650.0] * 20))
    ]
    assert delta_of(sides[0], sides[1], "ratio").verdict == "better"


def test_without_code_only_the_stored_values_are_compared() -> None:
    a, b = (
        make(name, draw(30, 1), stored={"mine": MetricValue(value, 30)}) for name, value in (("a", 4.0), ("b", 5.0))
    )
    delta = delta_of(a, b, "mine")
    assert (delta.a, delta.b, delta.absolute, delta.p, delta.interval) == (4.0, 5.0, -1.0, None, None)
    assert delta.method.startswith("only the value of this metric is stored")
    gate = decide([(a, b)], GateConfig({"mine": 0.1}, better={"mine": True}))
    assert gate.verdict == "inconclusive"
    assert "--plugin" in gate.answer


def test_a_metric_that_often_has_no_value_has_no_verdict() -> None:
    """The ratio is undefined in resamples without a passed sample: with one of thirty, in a third of them."""

    def rare(results: Results) -> float | None:
        passed = sum(result.outcome == "passed" for result in results)
        return None if not passed else 1 / passed

    tokens = [900.0] + [100.0] * 29
    delta = delta_of(make("a", tokens, own=[rare]), make("b", tokens, own=[rare]), "rare")
    assert "the metric has no value in" in delta.method
    assert delta.verdict == "not enough evidence"


def test_an_unknown_metric_is_refused_with_a_suggestion() -> None:
    sides = make("a", draw(30, 1)), make("b", draw(30, 2))
    with pytest.raises(ConfigError, match=r"did you mean 'latency_ms\.p95'"):
        compare(*sides, metrics=["latency_ms.p59"])
    with pytest.raises(ConfigError, match=r"did you mean 'judge\.p75'"):
        decide([sides], GateConfig({"judge.p7": 0.1}))


def test_metrics_that_are_not_named_are_not_compared() -> None:
    """The default comparison has the numbers per sample only, so its correction for several tests stays as it is."""
    comparison = compare(make("a", draw(30, 1)), make("b", draw(30, 2)))
    names = {delta.name for delta in comparison.all_deltas()}
    assert names == {
        "pass_rate",
        "strict_pass_rate",
        "mean_score",
        "latency_ms.mean",
        "tokens.mean",
        "judge",
        "judge.pass_rate",
    }
