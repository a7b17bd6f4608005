"""Published results, reproduced from the data in PROCTOR_DATA."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import pytest

from proctor.core.stats.descriptive import mean, mean_and_variance, pass_hat_k
from proctor.core.stats.differences import paired_t
from proctor.core.stats.effects import clustered_mean_t
from proctor.core.stats.intervals import clustered_mean_interval, wilson_interval
from proctor.core.stats.permutations import sign_test
from proctor.core.stats.variance import estimate_components, summarize_samples
from tests.statistics.published import alpaca, gsm8k, nist_anova, nist_univariate, tau_bench
from tests.tables import each_row


def digits(found: float, certified: float) -> float:
    """Return to how many digits a value agrees with the certified one (LRE), at most 16."""
    return -math.log10(max(1e-16, abs(found - certified) / abs(certified)))


def test_gsm8k_accuracies_and_wilson() -> None:
    """Four models: 21.68 / 39.04 / 34.72 / 56.25%, the last with Wilson 53.56 to 58.91."""
    solved = gsm8k()
    rates = [round(100 * sum(item) / len(item), 2) for item in solved.values()]
    assert rates == [21.68, 39.04, 34.72, 56.25]
    best = solved["175b_verification"]
    low, high = wilson_interval(sum(best), len(best)) or (0, 0)
    assert (round(100 * low, 2), round(100 * high, 2)) == (53.56, 58.91)


def test_gsm8k_pairs() -> None:
    """6B verified against 175B fine-tuned: 152 and 209 flips, p .003151, -4.32 pp ± 1.436."""
    solved = gsm8k()
    old, new = solved["6b_verification"], solved["175b_finetuning"]
    up = sum(a > b for a, b in zip(new, old, strict=True))
    down = sum(a < b for a, b in zip(new, old, strict=True))
    assert (up, down) == (152, 209)
    assert round(sign_test(up, down), 6) == 0.003151
    result = paired_t(new, old)
    assert result is not None
    assert (round(100 * result.difference, 2), round(100 * result.error, 3)) == (-4.32, 1.436)


def test_tau_bench_passes_and_clustered_error() -> None:
    """50 tasks x 4 trials: pass^1..4 = .420 .273 .220 .200; SE .0350 naive, .0517 by task.

    .0517 is without the correction for few clusters, sqrt(50 / 49); with it, it is .0522.
    """
    tasks = tau_bench()
    counts = [(len(rewards), int(sum(rewards))) for rewards in tasks.values()]
    values = [mean([pass_hat_k(*count, k) or 0.0 for count in counts]) or 0.0 for k in (1, 2, 3, 4)]
    assert [round(value, 3) for value in values] == [0.42, 0.273, 0.22, 0.2]
    rewards = [reward for all_of_task in tasks.values() for reward in all_of_task]
    names = [task for task, all_of_task in tasks.items() for _ in all_of_task]
    clustered = clustered_mean_t(rewards, names)
    moments = mean_and_variance(rewards)
    assert clustered is not None
    assert moments is not None
    assert round(math.sqrt(moments[1] / len(rewards)), 4) == 0.035
    assert round(clustered.error, 4) == 0.0522
    assert round(clustered.error * math.sqrt(49 / 50), 4) == 0.0517
    assert clustered.interval() == clustered_mean_interval(rewards, names)


def test_tau_bench_variance_components_give_the_error() -> None:
    """(between + within / 4) / 50 is the square of the error."""
    tasks = tau_bench()
    estimate = estimate_components(summarize_samples([[reward] for reward in row] for row in tasks.values()))
    assert estimate is not None
    assert math.sqrt((estimate.between + (estimate.within or 0.0) / 4) / 50) == pytest.approx(0.0522, abs=5e-5)


def test_alpaca_eval() -> None:
    """claude-2 in AlpacaEval 2: 17.188240 ± 1.174828."""
    moments = mean_and_variance(alpaca())
    assert moments is not None
    assert round(100 * moments[0], 6) == 17.188240
    assert round(100 * math.sqrt(moments[1] / 805), 6) == 1.174828


@each_row("name", ["Lew", "Lottery", "Mavro", "Michelso", "NumAcc1", "NumAcc2", "NumAcc3", "NumAcc4", "PiDigits"])
def test_nist_means_and_deviations(name: str) -> None:
    """Nine digits and more of the certified values, in all but one.

    The numbers of NumAcc4 are no binary fractions, and what a float keeps of them has 8.2 digits of
    the deviation; of these floats, taken exactly, the deviation is right to 13.
    """
    values, centre, deviation = nist_univariate(name)
    moments = mean_and_variance(values)
    assert moments is not None
    result = math.sqrt(moments[1])
    assert digits(moments[0], centre) >= 15
    assert digits(result, deviation) >= (8.2 if name == "NumAcc4" else 9)
    exact = math.sqrt(statistics.variance([Fraction(value) for value in values]))
    assert digits(result, exact) >= 13


@pytest.mark.parametrize("name", ["AtmWtAg", "SiRstv", "SmLs01", "SmLs02", "SmLs03"])
def test_nist_analysis_of_variance(name: str) -> None:
    """At least nine digits of the certified F, which is 1 + K between / within for groups of K values."""
    groups, certified = nist_anova(name)
    estimate = estimate_components(summarize_samples([[value] for value in group] for group in groups))
    assert estimate is not None
    assert digits(1 + len(groups[0]) * estimate.between / (estimate.within or 0.0), certified) >= 9
