"""False alarms and coverage of slices, and coverage of the quality of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from benchmarks.simulations.claim import AT_MOST, Chance, Claim
from proctor.comparison.labels import measure_labels
from proctor.comparison.report import EvalReport
from proctor.records.comparison import ComparedSlices
from proctor.records.results import ResultList
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.slices import LabelReport
from proctor.records.trial import EvalResult, Trial

NEW, OLD = "new", "old"
AT_LEAST = (0.93, 1.0)
# The chances of expected label and output, by row and column; the third label is rare.
CONFUSION = ((0.36, 0.07, 0.02), (0.06, 0.33, 0.02), (0.02, 0.03, 0.09))
LABELS = ("red", "green", "blue")


def sliced() -> Iterator[Claim]:
    """Claims about slices of equal sides, and about precision, recall and F1."""
    yield Claim("slices A/A, any of 8 slices of 25 differs", partial(any_alarm, sizes=[25] * 8), AT_MOST, 10)
    yield Claim("slices A/A, any of 12 uneven slices differs", partial(any_alarm, sizes=[10, 30] * 6), AT_MOST, 10)
    yield Claim("slices: all 8 intervals cover", partial(all_covered, sizes=[25] * 8, gain=0.1), AT_LEAST, 10)
    yield Claim("slices: opposite of the total although all gain", partial(opposite, sizes=[20] * 8), AT_MOST, 10)
    for n in (40, 200):
        for name in ("precision", "recall", "f1"):
            yield Claim(f"labels: macro {name} covers, n = {n}", partial(macro_covers, name=name, n=n), AT_LEAST, 4)
        yield Claim(f"labels: F1 of a rare label covers, n = {n}", partial(rare_covers, n=n), AT_LEAST, 4)


def any_alarm(chance: Chance, *, sizes: Sequence[int]) -> float:
    """Return 1 if some slice of two equal sides is called different."""
    slices = compare_by_slice(chance, sizes, gain=0.0)
    return float(any(delta.decided for each in slices for delta in each.deltas.values()))


def all_covered(chance: Chance, *, sizes: Sequence[int], gain: float) -> float:
    """Return 1 if the intervals of all slices contain the true difference."""
    intervals = [each.deltas["pass_rate"].interval for each in compare_by_slice(chance, sizes, gain)]
    return float(all(interval is None or interval[0] <= gain <= interval[1] for interval in intervals))


def opposite(chance: Chance, *, sizes: Sequence[int]) -> float:
    """Return 1 if some slice contradicts the total although every slice gains 10 points."""
    return float(bool(compare_by_slice(chance, sizes, gain=0.1).notes))


def compare_by_slice(chance: Chance, sizes: Sequence[int], gain: float) -> ComparedSlices:
    """Compare two sides whose pass rates are 60% and 60% plus the gain in every slice."""
    results: list[EvalResult] = []
    for topic, size in enumerate(sizes):
        for number in range(size):
            sample: Sample[Any, Any] = Sample(f"{topic} {number}", "?", metadata={"topic": f"topic {topic}"})
            for configuration, rate in ((NEW, 0.6 + gain), (OLD, 0.6)):
                passed = chance.random() < rate
                results.append(
                    EvalResult(Trial(sample, configuration=configuration), {"exact": Score(float(passed), passed)})
                )
    slices = EvalReport(results).compare(NEW, OLD, metrics=["pass_rate"], by="topic").slices
    assert slices is not None
    return slices


def macro_covers(chance: Chance, *, name: str, n: int) -> float:
    """Return 1 if the interval of a macro mean contains its true value."""
    report = draw_labels(chance, n)
    if report.macro is None:
        return 1.0
    return covers(getattr(report.macro, name).interval, sum(true_values(name)) / len(LABELS))


def rare_covers(chance: Chance, *, n: int) -> float:
    """Return 1 if the interval of F1 of the rare label contains its true value."""
    score = draw_labels(chance, n).find(LABELS[2])
    return 1.0 if score is None else covers(score.f1.interval, true_values("f1")[2])


def covers(interval: tuple[float, float] | None, truth: float) -> float:
    return float(interval is None or interval[0] <= truth <= interval[1])


def true_values(name: str) -> list[float]:
    """Return the true precision, recall or F1 of each label."""
    rows = [sum(row) for row in CONFUSION]
    columns = [sum(row[index] for row in CONFUSION) for index in range(len(LABELS))]
    hits = [CONFUSION[index][index] for index in range(len(LABELS))]
    if name == "f1":
        return [2 * hit / (row + column) for hit, row, column in zip(hits, rows, columns, strict=True)]
    return [hit / total for hit, total in zip(hits, columns if name == "precision" else rows, strict=True)]


def draw_labels(chance: Chance, n: int) -> LabelReport:
    """Draw results with the chances of CONFUSION and measure their labels."""
    pairs = [(expected, output) for expected in LABELS for output in LABELS]
    drawn = chance.choices(pairs, [share for row in CONFUSION for share in row], k=n)
    results = [
        EvalResult(Trial(Sample(f"s{number}", "?", expected), output))
        for number, (expected, output) in enumerate(drawn)
    ]
    return measure_labels("default", ResultList(results))
