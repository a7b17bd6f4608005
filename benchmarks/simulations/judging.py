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
# Few labels of one rate with few mistakes of one kind give too wide an interval, never too narrow a one: counts jump.
WIDE = (0.93, 1.0)
# Sensitivity and specificity.
ONE_SIDED = {"false passes": (1.0, 0.7), "false failures": (0.7, 1.0), "rare false passes": (1.0, 0.95)}


def judged() -> Iterator[Claim]:
    """95% intervals contain the truth in 93 to 97%."""
    for n in SIZES:
        for kappa in KAPPAS:
            yield Claim(f"corrected rate, {n} labels, kappa {kappa}", partial(rate_covers, n=n, kappa=kappa), COVERED)
            yield Claim(f"kappa interval, {n} labels, kappa {kappa}", partial(kappa_covers, n=n, kappa=kappa), COVERED)
    for mistakes, accuracy in ONE_SIDED.items():
        for rate in (0.2, 0.5, 0.8, 0.95):
            trial = partial(one_sided_covers, n=30, rate=rate, accuracy=accuracy)
            yield Claim(f"corrected rate, 30 labels, only {mistakes}, rate {rate}", trial, WIDE)
    for n in (60, 150):
        yield Claim(f"corrected rate, {n} labels in clusters of 3", partial(clusters_cover, n=n), COVERED, 4)
    for n in (30, 60, 120):
        yield Claim(f"stratified by score, {n} labels", partial(score_strata_cover, n=n), (0.93, 0.98), 4)
    for kappa in (0.2, 0.6, 0.9):
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


def one_sided_covers(chance: Chance, *, n: int, rate: float, accuracy: tuple[float, float]) -> float:
    sensitivity, specificity = accuracy
    people = [chance.random() < rate for _ in range(VERDICTS)]
    verdicts = [(y, chance.random() < (sensitivity if y else 1 - specificity)) for y in people]
    passed = sum(judge for _, judge in verdicts[n:])
    low, high = corrected_rate(_tabulate(verdicts[:n]), passed, VERDICTS - n).interval
    return float(low <= rate <= high)


def clusters_cover(chance: Chance, *, n: int) -> float:
    """Return 1 if the rate is covered with three epochs of each sample, which are alike, and labels at random."""
    outputs, gold = [], {}
    for index in range(VERDICTS):
        if index % 3 == 0:
            p = chance.betavariate(1.4, 0.8)
        item = LabelledItem("run", str(index // 3), "default", index % 3, "judge")
        gold[item] = chance.random() < p
        passed = gold[item] == (chance.random() < 0.9)
        outputs.append(JudgedOutput(item, passed, (), str(index // 3), 1, "", float(passed)))
    labelled = {output.item: gold[output.item] for output in chance.sample(outputs, n)}
    rate = correct_rate(outputs, weigh_labels(outputs, labelled), False)
    truth = 1.4 / 2.2
    return float(rate is not None and rate.interval[0] <= truth <= rate.interval[1])


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
