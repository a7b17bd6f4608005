"""Plan a gate before anything is run: how many samples, epochs and verdicts its margin needs.

A gate passes if the lower bound of the difference to the baseline is above minus the margin. For a run that is equal to
its baseline, the difference varies with variance / samples around 0, so the gate passes with the probability
Φ((margin - half width) / error). The half width is that of the gate's own interval for data with this variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from proctor.comparison.evidence import Evidence
from proctor.comparison.gates.decision import DEFAULT_MARGIN, estimate_bounds
from proctor.core.stats.distributions import normal_cdf
from proctor.validity.noise import NoiseBudget
from proctor.validity.prices import CallPrices

POWER = 0.8
EPOCHS_SHOWN = (1, 2, 3, 5)
MAX_SAMPLES, MAX_EPOCHS = 1_000_000, 1_000


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How a sample's verdict varies when it is run and judged again: the variance of the agent and of the judge.

    `is_upper_bound` is set if the run could not show it, and the largest possible variance is used.
    """

    agent: float
    judge: float = 0.0
    rate: float
    is_binary: bool = True
    is_upper_bound: bool = False
    change_interval: tuple[float, float] | None = None

    def variance(self, epochs: float, verdicts: float) -> float:
        """Return the variance of the difference of one sample between two equal runs."""
        return 2 * (self.agent + self.judge / verdicts) / epochs


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a run with which a gate passes an equal run with the wanted probability."""

    epochs: int
    verdicts: int
    samples: int
    pass_probability: float
    target_calls: int
    judge_calls: int
    cost: float | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of different sizes that a margin needs; the baseline needs the same samples and epochs.

    `baseline_samples` is the number of samples of the baseline that the spread was measured on, and `same_samples` the
    run that needs no further samples, only epochs; None if no number of epochs is enough.
    """

    margin: float
    power: float
    spread: Spread
    runs: tuple[PlannedRun, ...]
    prices: CallPrices
    baseline_samples: int | None = None
    same_samples: PlannedRun | None = None
    notes: tuple[str, ...] = ()

    @property
    def cheapest(self) -> PlannedRun:
        """The cheapest run: in dollars if all prices are known, else in calls."""
        if all(run.cost is not None for run in self.runs):
            return min(self.runs, key=lambda run: (run.cost or 0.0, run.samples))
        return min(self.runs, key=lambda run: (run.target_calls + run.judge_calls, run.samples))


def assume_spread(rate: float) -> Spread:
    """Return the largest spread of a pass rate: every sample passes with the same probability, by chance."""
    return Spread(agent=rate * (1 - rate), rate=rate, is_upper_bound=True)


def read_spread(budget: NoiseBudget, *, is_binary: bool = True) -> Spread:
    """Return the spread that a baseline shows; without epochs, the largest that its scores allow."""
    variances = {part.source: part.variance for part in budget.components}
    within = [source for source in variances if source.startswith("agent")]
    judge = variances.get("judge", 0.0)
    if within:
        return Spread(
            agent=variances[within[0]],
            judge=judge,
            rate=budget.value,
            is_binary=is_binary,
            change_interval=budget.change_interval,
        )
    [agent] = [variance for source, variance in variances.items() if source.startswith("samples")]
    return Spread(agent=agent, judge=judge, rate=budget.value, is_binary=is_binary, is_upper_bound=True)


def make_plan(
    spread: Spread,
    *,
    margin: float = DEFAULT_MARGIN,
    power: float = POWER,
    epochs: Sequence[int] = EPOCHS_SHOWN,
    verdicts: int = 1,
    prices: CallPrices | None = None,
    baseline_samples: int | None = None,
    notes: Sequence[str] = (),
) -> Plan:
    """Plan a run for each number of epochs."""
    prices = prices or CallPrices()

    def plan_run(samples: int, count: int) -> PlannedRun:
        trials = samples * count
        judge_calls = trials * verdicts * prices.judges
        return PlannedRun(
            epochs=count,
            verdicts=verdicts,
            samples=samples,
            pass_probability=predict_pass(spread, margin, samples, count, verdicts),
            target_calls=trials,
            judge_calls=judge_calls,
            cost=prices.price(trials, judge_calls),
        )

    runs = [plan_run(find_samples(spread, margin, power, count, verdicts), count) for count in epochs]
    same = find_epochs(spread, margin, power, baseline_samples, verdicts) if baseline_samples else None
    return Plan(
        margin=margin,
        power=power,
        spread=spread,
        runs=tuple(runs),
        prices=prices,
        baseline_samples=baseline_samples,
        same_samples=plan_run(baseline_samples, same) if baseline_samples and same else None,
        notes=(*notes, *_describe_assumption(spread, verdicts)),
    )


def _describe_assumption(spread: Spread, verdicts: int) -> list[str]:
    """Say what is assumed about the judge if its noise was not measured."""
    note = (
        f"The noise of the judge is not measured, so the plan assumes none: {verdicts} verdicts on each output need as "
        "many samples as one. To measure it, use a judge with `samples: 3`, or rescore a run: proctor rescore RUN"
    )
    return [note] if verdicts > 1 and not spread.judge else []


def find_samples(spread: Spread, margin: float, power: float, epochs: int, verdicts: int = 1) -> int:
    """Return the smallest number of samples with which the gate passes an equal run with probability `power`."""

    def is_enough(samples: int) -> bool:
        return predict_pass(spread, margin, samples, epochs, verdicts) >= power

    return _search(is_enough, 2, MAX_SAMPLES)


def find_epochs(spread: Spread, margin: float, power: float, samples: int, verdicts: int = 1) -> int | None:
    """Return the smallest number of epochs of these samples that is enough; None if no number is."""

    def is_enough(epochs: int) -> bool:
        return predict_pass(spread, margin, samples, epochs, verdicts) >= power

    epochs = _search(is_enough, 1, MAX_EPOCHS)
    return epochs if is_enough(epochs) else None


def predict_pass(spread: Spread, margin: float, samples: int, epochs: int, verdicts: int = 1) -> float:
    """Return the probability that a gate passes a run that is equal to its baseline."""
    variance = spread.variance(epochs, verdicts)
    half_width = _find_half_width(spread, variance, samples, is_binary=spread.is_binary and epochs == verdicts == 1)
    if half_width is None:
        return 0.0
    error = math.sqrt(variance / samples)
    return normal_cdf((margin - half_width) / error) if error else float(half_width < margin)


def _find_half_width(spread: Spread, variance: float, samples: int, *, is_binary: bool) -> float | None:
    """Return how far the gate's lower bound is from the difference, for data with this variance."""
    if is_binary:
        # A share of the samples flips, half of them in each direction.
        flips = min(samples, round(variance * samples))
        up = flips // 2
        first = [1.0] * up + [0.0] * (flips - up)
        second = [0.0] * up + [1.0] * (flips - up)
        same = samples - flips
        passed = min(same, max(0, round(spread.rate * samples) - up))
        pairs = [1.0] * passed + [0.0] * (same - passed)
        evidence = Evidence([*first, *pairs], [*second, *pairs])
        bounds = estimate_bounds(evidence, "rate")
        return None if bounds is None else (2 * up - flips) / samples - bounds[0]
    step = math.sqrt(variance) / 2
    up = samples // 2
    first = [spread.rate + step] * up + [spread.rate - step] * (samples - up)
    second = [spread.rate - step] * up + [spread.rate + step] * (samples - up)
    bounds = estimate_bounds(Evidence(first, second), "rate")
    return None if bounds is None else 2 * step * (2 * up - samples) / samples - bounds[0]


def _search(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest number that is enough, by doubling and halving; `high` if none is."""
    upper = low
    while upper < high and not is_enough(upper):
        upper = min(high, 2 * upper)
    low = max(low, upper // 2)
    while low < upper:
        middle = (low + upper) // 2
        low, upper = (low, middle) if is_enough(middle) else (middle + 1, upper)
    return upper
