"""Verdicts of the product's own `compare` on equal and on different sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from benchmarks.simulations.claim import FALSE_ALARMS, Chance, Claim
from benchmarks.simulations.equal import ALARMS
from benchmarks.simulations.finding import near
from benchmarks.simulations.made_up import UNEQUAL, coin, flips, graded, in_clusters, named
from benchmarks.simulations.power import StudyDesign, flips_needed, power_of_test, samples_needed
from proctor.comparison.compare import compare
from proctor.comparison.sides import Side
from proctor.records.comparison import Comparison, MetricDelta

Columns = tuple[Sequence[float], Sequence[float]]
Draw = Callable[[Chance, int, float], Columns]

# The variance of one pair's difference in `graded`: two independent errors of 0.2 each.
GRADED_VARIANCE = 0.08
EXACT = (0.02, 0.05)


def compared() -> Iterator[Claim]:
    """Claims about equal sides, different sides, and the number of further samples that `compare` suggests."""
    yield from equal_sides()
    yield from unequal_sides()
    yield Claim(
        "compare: with as many more scores as it says, decided",
        partial(decided_with_more, draw=drawn_scores, n=60, min_difference=0.02),
        near(0.8, 0.05),
        cost=4,
    )
    yield Claim(
        "compare: with as many more yes/no as it says, decided",
        partial(decided_with_more, draw=drawn_flips, n=100, min_difference=0.03),
        near(0.8, 0.05),
        cost=4,
    )


def equal_sides() -> Iterator[Claim]:
    """Equal sides are called different in 5% of all comparisons, or less often by exact tests."""
    yield Claim("compare A/A, scores, n = 200", partial(scores_alarm, n=200), FALSE_ALARMS)
    yield Claim("compare A/A, scores, n = 12", partial(scores_alarm, n=12), FALSE_ALARMS)
    yield Claim("compare A/A, yes/no, 10% + 10% flip, n = 400", partial(flips_alarm, n=400), EXACT)
    yield Claim("compare A/A, two groups of yes/no", groups_alarm, (0.02, 0.06))
    yield Claim("compare A/A, scores in 20 clusters of 5", partial(clusters_alarm, sizes=[5] * 20), FALSE_ALARMS)
    yield Claim("compare A/A, scores in 27 clusters of 2 to 60", partial(clusters_alarm, sizes=UNEQUAL), ALARMS)
    yield Claim("compare A/A, any of 10 metrics", partial(family_alarm, metrics=10), FALSE_ALARMS, 2)
    yield Claim(
        "compare A/A, any of 10 yes/no metrics, n = 100",
        partial(yes_or_no_family_alarm, metrics=10, n=100),
        (0.0, 0.05),
    )
    yield Claim("compare A/A, one metric under 5 names", names_alarm, FALSE_ALARMS, 2)
    yield Claim("compare: the smallest relevant difference, called alike", called_alike, (0.0, 0.035))


def unequal_sides() -> Iterator[Claim]:
    """Differences are detected as often as predicted, within 3 points."""
    n = samples_needed(0.05, GRADED_VARIANCE) or 0
    yield Claim(f"compare, power .80, scores, n = {n}", partial(scores_alarm, n=n, gap=0.05), near(0.8))
    n = flips_needed(0.125, 0.075) or 0
    yield Claim(f"compare, power .80, yes/no, n = {n}", partial(flips_alarm, n=n, up=0.125, down=0.075), near(0.8))
    predicted = power_of_test(0.05, GRADED_VARIANCE, 300, StudyDesign(level=0.05 / 5))
    yield Claim(
        "compare, power of one that differs among 5, n = 300",
        partial(one_of_five, n=300, gap=0.05),
        near(predicted),
        cost=2,
    )


def compare_columns(
    columns: Mapping[str, Columns], clusters: Sequence[str] | None = None, min_difference: float = 0.01
) -> Comparison:
    """Compare two sides that have one number per sample for each metric."""
    sides = []
    for place, name in enumerate(("new", "old")):
        scores = {
            metric: {str(at): value for at, value in enumerate(values[place])} for metric, values in columns.items()
        }
        named = None if clusters is None else {str(at): c for at, c in enumerate(clusters)}
        sides.append(Side(name, scores=scores, clusters=named))
    return compare(*sides, min_difference=min_difference)


def only_one(columns: Columns, clusters: Sequence[str] | None = None) -> MetricDelta:
    return compare_columns({"score": columns}, clusters).scores["score"]


def scores_alarm(chance: Chance, n: int, gap: float = 0.0) -> float:
    return float(only_one(graded(chance, n, gap)).decided)


def flips_alarm(chance: Chance, n: int, up: float = 0.1, down: float = 0.1) -> float:
    return float(only_one(flips(chance, n, up, down)).decided)


def groups_alarm(chance: Chance) -> float:
    new, old = coin(chance, 200, 0.7), coin(chance, 150, 0.7)
    first = Side("new", scores={"score": {f"a{at}": v for at, v in enumerate(new)}})
    second = Side("old", scores={"score": {f"b{at}": v for at, v in enumerate(old)}})
    return float(compare(first, second).scores["score"].decided)


def clusters_alarm(chance: Chance, sizes: Sequence[int]) -> float:
    columns = in_clusters(chance, sizes), in_clusters(chance, sizes)
    return float(only_one(columns, named(sizes)).decided)


def family_alarm(chance: Chance, metrics: int) -> float:
    columns = {str(item): graded(chance, 60) for item in range(metrics)}
    return float(any(delta.decided for delta in compare_columns(columns).all_deltas()))


def yes_or_no_family_alarm(chance: Chance, metrics: int, n: int) -> float:
    columns = {str(item): flips(chance, n, 0.1, 0.1) for item in range(metrics)}
    return float(any(delta.decided for delta in compare_columns(columns).all_deltas()))


def names_alarm(chance: Chance) -> float:
    columns = graded(chance, 60)
    comparison = compare_columns({str(name): columns for name in range(5)})
    return float(any(delta.decided for delta in comparison.all_deltas()))


def called_alike(chance: Chance) -> float:
    comparison = compare_columns({"score": graded(chance, 400, gap=0.05)}, min_difference=0.05)
    return float(comparison.scores["score"].verdict == "no relevant difference")


def one_of_five(chance: Chance, n: int, gap: float) -> float:
    columns = {str(item): graded(chance, n, gap if item == 0 else 0.0) for item in range(5)}
    return float(compare_columns(columns).scores["0"].decided)


def drawn_scores(chance: Chance, n: int, truth: float) -> Columns:
    return graded(chance, n, gap=0.3 * truth)


def drawn_flips(chance: Chance, n: int, truth: float) -> Columns:
    return flips(chance, n, 0.1 + 0.1 * truth, 0.1 - 0.1 * truth)


def decided_with_more(chance: Chance, draw: Draw, n: int, min_difference: float) -> float:
    """Repeat an undecided comparison with the further samples that it suggests.

    Each trial draws a new true difference, because the suggestion cannot be right for every truth: an
    undecided comparison may have no difference, or bad luck.
    """
    while True:
        truth = chance.uniform(-1, 1)
        new, old = draw(chance, n, truth)
        first = compare_columns({"score": (new, old)}, min_difference=min_difference).scores["score"]
        if first.verdict == "not enough evidence" and first.more_samples is not None:
            break
    more_new, more_old = draw(chance, first.more_samples, truth)
    columns = [*new, *more_new], [*old, *more_old]
    again = compare_columns({"score": columns}, min_difference=min_difference).scores["score"]
    return float(again.verdict != "not enough evidence")
