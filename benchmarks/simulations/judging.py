"""Judge cards: how often the intervals of kappa and of corrected pass rates contain the truth.

The pass rate of each replicate is drawn from .5 to .85, so that a claim does not depend on one lucky rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.simulations.claim import COVERED, Chance, Claim
from proctor.core.stats.judge_rates import Confusion, corrected_rate, kappa_interval, stratified_rate, tabulate
from proctor.records.label import LabelledItem
from proctor.validity.cards import correct_rate, weigh_labels
from proctor.validity.drawing import JudgedOutput, draw

KAPPAS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
SIZES = (30, 50, 100, 300)
VERDICTS = 600
# Few labels of a judge with hardly any error give too wide an interval, never too narrow a one.
WIDE = (0.93, 1.0)


def judged() -> Iterator[Claim]:
    """95% intervals contain the truth in 93 to 97%."""
    for n in SIZES:
        for kappa in KAPPAS:
            asked = WIDE if kappa >= 0.8 and n < 100 else COVERED
            yield Claim(f"corrected rate, {n} labels, kappa {kappa}", partial(rate_covers, n=n, kappa=kappa), asked)
            yield Claim(f"kappa interval, {n} labels, kappa {kappa}", partial(kappa_covers, n=n, kappa=kappa), asked)
    for n in (30, 60, 120):
        yield Claim(f"stratified by score, {n} labels", partial(score_strata_cover, n=n), (0.93, 0.98), 4)
    for kappa in (0.2, 0.6):
        yield Claim(f"stratified rate, 60 labels, kappa {kappa}", partial(strata_cover, n=60, kappa=kappa), COVERED)


def score_strata_cover(chance: Chance, *, n: int) -> float:
    """Return 1 if the corrected rate of labels drawn by verdict and score contains the rate of the population."""
    chances = [chance.betavariate(1.4, 0.8) for _ in range(VERDICTS)]
    outputs, gold = [], {}
    for index, p in enumerate(chances):
        score = min(1.0, max(0.0, chance.gauss(p, 0.15)))
        item = LabelledItem("run", str(index), "default", 0, "judge")
        outputs.append(JudgedOutput(item, score >= 0.5, (), str(index), 1, "", score))
        gold[item] = chance.random() < p
    drawn = draw(outputs, "stratified", n, chance.randrange(10**6))
    probabilities = {each.output.item: each.probability for each in drawn}
    items = weigh_labels(outputs, {item: gold[item] for item in probabilities}, probabilities)
    rate = correct_rate(outputs, items, True)
    truth = 1.4 / 2.2
    return float(rate is not None and rate.interval[0] <= truth <= rate.interval[1])


def draw_verdicts(chance: Chance, count: int, rate: float, kappa: float) -> list[tuple[bool, bool]]:
    """Draw verdicts of people and of a judge with the same pass rate and this kappa."""
    both = rate * rate + kappa * rate * (1 - rate)
    cells = (both, rate - both, rate - both, 1 - 2 * rate + both)
    verdicts = ((True, True), (True, False), (False, True), (False, False))
    return chance.choices(verdicts, cells, k=count)


def rate_covers(chance: Chance, *, n: int, kappa: float) -> float:
    rate = chance.uniform(0.5, 0.85)
    verdicts = draw_verdicts(chance, VERDICTS, rate, kappa)
    passed = sum(judge for _, judge in verdicts[n:])
    low, high = corrected_rate(_tabulate(verdicts[:n]), passed, VERDICTS - n).interval
    return float(low <= rate <= high)


def kappa_covers(chance: Chance, *, n: int, kappa: float) -> float:
    """Return 1 if the interval contains kappa; draws in which kappa is undefined have no interval and are repeated."""
    interval = None
    while interval is None:
        interval = kappa_interval(_tabulate(draw_verdicts(chance, n, chance.uniform(0.5, 0.85), kappa)))
    return float(interval[0] <= kappa <= interval[1])


def strata_cover(chance: Chance, *, n: int, kappa: float) -> float:
    rate = chance.uniform(0.5, 0.85)
    verdicts = draw_verdicts(chance, VERDICTS, rate, kappa)
    passed = [pair for pair in verdicts if pair[1]]
    failed = [pair for pair in verdicts if not pair[1]]
    labelled = [*passed[: n // 2], *failed[: n // 2]]
    low, high = stratified_rate(_tabulate(labelled), len(passed), VERDICTS).interval
    return float(low <= rate <= high)


def _tabulate(verdicts: list[tuple[bool, bool]]) -> Confusion:
    return tabulate((people, judge, 1.0) for people, judge in verdicts)
