"""Panels of judges: how many independent judges they are worth, and which one to drop."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, combinations, product
from random import Random
from typing import NamedTuple

import msgspec

from proctor.core.stats.bootstrap import Resampled, resample
from proctor.core.stats.intervals import Interval
from proctor.errors import UsageError
from proctor.ports import History
from proctor.records.run import RunMetadata
from proctor.validity.cards import (
    KNOWN_DRAWS,
    Proportion,
    decide_labels,
    make_proportion,
    measure_design_effect,
    weigh_labels,
)
from proctor.validity.drawing import list_judged_outputs

MAX_ROUNDS, TOLERANCE = 500, 1e-9
RESAMPLES, DRAWS = 500, 1_000
# The share of resamples in which a figure must be defined to have an interval.
MIN_KNOWN = 0.9
CORRELATION, GAP, GAIN = "correlation", "gap", "gain of dropping "
MIN_PANEL_LABELS = 30
# Two judges have 3 free counts of verdicts, and Dawid and Skene's model 5 unknowns; three have 7 of each.
MIN_DAWID_SKENE = 3
# Jeffreys's prior of the four cells of each pair of judges: half an output in each.
PRIOR_OUTPUTS = 2.0

Verdicts = Mapping[str, Sequence[bool]]


class PanelJudge(msgspec.Struct, frozen=True):
    """One judge of a panel: its errors on the labelled outputs, and its accuracy estimated without labels.

    `errors` counts outputs, `error_rate` weights them as they were drawn. `sensitivity` and `specificity` are by the
    labels: how often the judge passes what people pass, and fails what they fail. Those of Dawid and Skene come from
    the agreement of the judges alone; None for fewer than three judges, which do not determine them.
    """

    name: str
    errors: int
    error_rate: Proportion | None
    sensitivity: Proportion | None
    specificity: Proportion | None
    dawid_skene_sensitivity: float | None
    dawid_skene_specificity: float | None


class Estimate(msgspec.Struct, frozen=True):
    """A number with its 95% interval; None if too many resamples leave it undefined."""

    value: float
    interval: Interval | None


NO_GAIN = Estimate(-1.0, None)


class Panel(msgspec.Struct, frozen=True):
    """What several judges are worth together, from n outputs that people labelled.

    `error_correlation` is the mean correlation of their errors, `effective` the number of independent judges with the
    same precision; both are None if no two judges made errors. `drop` is the judge without which the majority makes
    fewest errors, and `drop_gain` the share of outputs on which it no longer errs; None if that may be no gain.
    `accuracy_gap` is how far Dawid and Skene's accuracy of a judge is from the labels' at most: a large gap means that
    the judges share their errors; None for fewer than three judges. `effective_n` is how many independent and equally
    weighted labels there are.
    """

    n: int
    effective_n: float
    judges: tuple[PanelJudge, ...]
    error_correlation: Estimate | None
    effective: Estimate | None
    majority_errors: int
    majority_rate: Proportion | None
    drop: str | None
    drop_errors: int | None
    drop_gain: Estimate | None
    accuracy_gap: Estimate | None


class PanelRow(NamedTuple):
    """A labelled output: people's verdict, those of the judges, its weight and its cluster."""

    truth: bool
    verdicts: tuple[bool, ...]
    weight: float
    cluster: Hashable

    def has_error(self, index: int) -> bool:
        return self.verdicts[index] is not self.truth

    def fails_majority(self, without: int | None = None) -> bool:
        """True if the majority, without one of the judges, is wrong; a tie fails."""
        votes = [verdict for index, verdict in enumerate(self.verdicts) if index != without]
        return (2 * sum(votes) > len(votes)) is not self.truth


def effective_judges(count: int, correlation: float) -> float:
    """Return the number of independent judges that `count` judges with correlated errors are worth.

    >>> round(effective_judges(2, 0.524), 2)
    1.31
    """
    return count / (1 + (count - 1) * max(0.0, correlation))


def measure_panel(
    people: Sequence[bool],
    verdicts: Verdicts,
    weights: Sequence[float] | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> Panel:
    """Measure a panel from people's verdicts and each judge's on the same outputs.

    `weights` are the inverse probabilities with which the outputs were drawn. Intervals come from resamples of the
    clusters, or of the outputs.
    """
    n, names = len(people), list(verdicts)
    columns = zip(*verdicts.values(), strict=True)
    keys = range(n) if clusters is None else clusters
    rows = list(map(PanelRow, people, columns, [1.0] * n if weights is None else weights, keys))
    groups: dict[Hashable, list[PanelRow]] = {}
    for row in rows:
        groups.setdefault(row.cluster, []).append(row)
    units = list(groups.values())
    figures = _compute_figures(rows, names)
    resampled = resample(
        [units], lambda drawn: _compute_figures(list(chain.from_iterable(drawn)), names), resamples=RESAMPLES
    )
    estimates = {key: _estimate(key, figures, resampled, len(units)) for key in figures}
    correlation = estimate_correlation(units)
    gains = {name: estimates[f"{GAIN}{name}"] for name in names if f"{GAIN}{name}" in figures}
    best = max(gains, key=lambda name: (gains[name] or NO_GAIN).value, default=None)
    gain = None if best is None else gains[best]
    is_useful = gain is not None and gain.interval is not None and gain.interval[0] > 0
    accuracies = estimate_accuracies(verdicts)
    return Panel(
        n,
        _count_effective(rows),
        tuple(_measure_judge(rows, i, name, accuracies[name]) for i, name in enumerate(names)),
        correlation,
        None if correlation is None else _count_judges(len(names), correlation),
        *_measure_errors(rows, [row.fails_majority() for row in rows]),
        best if is_useful else None,
        sum(row.fails_majority(names.index(best)) for row in rows) if is_useful and best is not None else None,
        gain if is_useful else None,
        estimates[GAP],
    )


def _measure_judge(
    rows: Sequence[PanelRow], index: int, name: str, accuracy: tuple[float, float] | tuple[None, None]
) -> PanelJudge:
    def share_right(truth: bool) -> Proportion | None:
        cases = [row for row in rows if row.truth is truth]
        return _measure_errors(cases, [not row.has_error(index) for row in cases])[1] if cases else None

    errors, rate = _measure_errors(rows, [row.has_error(index) for row in rows])
    return PanelJudge(name, errors, rate, share_right(True), share_right(False), *accuracy)


def _count_effective(rows: Sequence[PanelRow]) -> float:
    """Return the number of equally weighted labels of the same precision (Kish)."""
    return math.fsum(row.weight for row in rows) ** 2 / math.fsum(row.weight**2 for row in rows)


def _measure_errors(rows: Sequence[PanelRow], errors: Sequence[bool]) -> tuple[int, Proportion | None]:
    """Return the number of errors, and their weighted share with its interval."""
    share = _share(rows, errors)
    effect = measure_design_effect([float(error) for error in errors], [row.cluster for row in rows])
    effective = _count_effective(rows) / effect
    return sum(errors), make_proportion(share * effective, effective, len(rows))


def _share(rows: Sequence[PanelRow], flags: Iterable[bool]) -> float:
    marked = math.fsum(row.weight for row, flag in zip(rows, flags, strict=True) if flag)
    return min(1.0, marked / math.fsum(row.weight for row in rows))


def _compute_figures(rows: Sequence[PanelRow], names: Sequence[str]) -> dict[str, float | None]:
    """Compute every figure of a panel; None for a correlation that is undefined."""
    totals: dict[tuple[bool, tuple[bool, ...]], float] = {}
    for truth, verdicts, weight, _ in rows:
        totals[truth, verdicts] = totals.get((truth, verdicts), 0.0) + weight
    # Equal rows are merged, because the figures are computed for many resamples.
    rows = [PanelRow(*key, weight, None) for key, weight in totals.items()]
    patterns = _sum_patterns((row, row.weight) for row in rows)
    figures = {
        CORRELATION: _correlate(patterns, _list_varying_pairs(patterns)),
        GAP: _measure_accuracy_gap(rows, names) if len(names) >= MIN_DAWID_SKENE else None,
    }
    # A panel of two has no majority without one of them.
    if len(names) > 2:
        majority = _share(rows, (row.fails_majority() for row in rows))
        for index, name in enumerate(names):
            figures[f"{GAIN}{name}"] = majority - _share(rows, (row.fails_majority(index) for row in rows))
    return figures


def _estimate(
    key: str, figures: Mapping[str, float | None], resampled: Sequence[Mapping[str, float | None]], units: int
) -> Estimate | None:
    value = figures[key]
    if value is None:
        return None
    known = [number for each in resampled if (number := each[key]) is not None]
    is_enough = units > 1 and len(known) >= MIN_KNOWN * len(resampled)
    interval = Resampled(known, units).interval() if is_enough else None
    return Estimate(value, interval)


def _sum_patterns(weighted_rows: Iterable[tuple[PanelRow, float]]) -> dict[tuple[bool, ...], float]:
    """Return the weight of each combination of judges that err."""
    patterns: dict[tuple[bool, ...], float] = {}
    for row, weight in weighted_rows:
        errors = tuple(verdict is not row.truth for verdict in row.verdicts)
        patterns[errors] = patterns.get(errors, 0.0) + weight
    return patterns


def _list_varying_pairs(patterns: Mapping[tuple[bool, ...], float]) -> list[tuple[int, int]]:
    """List the pairs of judges that both err on some outputs and not on others."""
    columns = [set(column) for column in zip(*patterns, strict=True)]
    return list(combinations((index for index, values in enumerate(columns) if len(values) > 1), 2))


def _correlate(patterns: Mapping[tuple[bool, ...], float], pairs: Sequence[tuple[int, int]]) -> float | None:
    """Return the mean correlation of the errors of some pairs; None without pairs."""
    total = math.fsum(patterns.values())

    def share(*indexes: int) -> float:
        return math.fsum(w for errors, w in patterns.items() if all(errors[i] for i in indexes)) / total

    rates = {index: share(index) for pair in pairs for index in pair}
    correlations = []
    for a, b in pairs:
        spread = math.sqrt(rates[a] * (1 - rates[a]) * rates[b] * (1 - rates[b]))
        correlations.append((share(a, b) - rates[a] * rates[b]) / spread if spread else 0.0)
    return math.fsum(correlations) / len(correlations) if correlations else None


def estimate_correlation(units: Iterable[Sequence[PanelRow]]) -> Estimate | None:
    """Return the mean correlation of errors in clusters of rows, with the interval of its posterior.

    Each cluster gets a random weight (the Bayesian bootstrap, Rubin 1981), and each combination of errors that of its
    share of `PRIOR_OUTPUTS` average clusters. Without clusters that is the Dirichlet posterior with Jeffreys's prior.
    """
    # Equal clusters are drawn together.
    counts = Counter(tuple(_sum_patterns((row, row.weight) for row in unit).items()) for unit in units)
    patterns: dict[tuple[bool, ...], float] = {}
    for unit, count in counts.items():
        for errors, weight in unit:
            patterns[errors] = patterns.get(errors, 0.0) + count * weight
    pairs = _list_varying_pairs(patterns)
    value = _correlate(patterns, pairs)
    if value is None:
        return None
    chance, size = Random(0), math.fsum(patterns.values()) / counts.total()
    cells = list(product((False, True), repeat=len(next(iter(patterns)))))
    values = []
    for _ in range(DRAWS):
        drawn = {cell: size * chance.gammavariate(PRIOR_OUTPUTS / len(cells), 1.0) for cell in cells}
        for unit, count in counts.items():
            factor = chance.gammavariate(count, 1.0)
            for errors, weight in unit:
                drawn[errors] += factor * weight
        values.append(_correlate(drawn, pairs) or 0.0)
    if counts.total() < 2:
        return Estimate(value, None)
    low, high = Resampled(values, counts.total()).interval()
    return Estimate(value, (min(low, value), max(high, value)))


def _count_judges(count: int, correlation: Estimate) -> Estimate:
    """Return the number of independent judges; it falls as the correlation rises."""
    interval = correlation.interval and tuple(effective_judges(count, end) for end in reversed(correlation.interval))
    return Estimate(effective_judges(count, correlation.value), interval)  # type: ignore[arg-type]


def _measure_accuracy_gap(rows: Sequence[PanelRow], names: Sequence[str]) -> float:
    patterns: dict[tuple[bool, ...], float] = {}
    for row in rows:
        patterns[row.verdicts] = patterns.get(row.verdicts, 0.0) + row.weight
    gaps = [0.0]
    for index, accuracy in enumerate(_estimate_accuracies(patterns, len(names))):
        for truth, estimate in zip((True, False), accuracy, strict=True):
            cases = [row for row in rows if row.truth is truth]
            if cases:
                gaps.append(abs(1 - _share(cases, (row.has_error(index) for row in cases)) - estimate))
    return max(gaps)


def estimate_accuracies(verdicts: Verdicts) -> dict[str, tuple[float, float] | tuple[None, None]]:
    """Estimate sensitivity and specificity of each judge from their agreement alone (Dawid and Skene 1979).

    It assumes independent errors, which judges rarely have: use it only next to labels. Fewer than three judges do not
    determine them.
    """
    if len(verdicts) < MIN_DAWID_SKENE:
        return dict.fromkeys(verdicts, (None, None))
    patterns = Counter(zip(*verdicts.values(), strict=True))
    return dict(zip(verdicts, _estimate_accuracies(patterns, len(verdicts)), strict=True))


def _estimate_accuracies(patterns: Mapping[tuple[bool, ...], float], count: int) -> list[tuple[float, float]]:
    """Estimate the accuracies from how often each pattern of verdicts occurs, by expectation maximization."""
    beliefs = {row: sum(row) / len(row) for row in patterns}
    total, accuracies = math.fsum(patterns.values()), [(0.5, 0.5)] * count
    for _ in range(MAX_ROUNDS):
        good = math.fsum(weight * beliefs[row] for row, weight in patterns.items())
        bad = total - good
        accuracies = []
        for index in range(count):
            passed = math.fsum(weight * beliefs[row] for row, weight in patterns.items() if row[index])
            failed = math.fsum(weight * (1 - beliefs[row]) for row, weight in patterns.items() if not row[index])
            accuracies.append((passed / good if good > 0 else 0.5, failed / bad if bad > 0 else 0.5))
        prior = min(1 - TOLERANCE, max(TOLERANCE, good / total))
        updated = {row: _believe(row, prior, accuracies) for row in patterns}
        change = max(abs(beliefs[row] - updated[row]) for row in patterns)
        beliefs = updated
        if change < TOLERANCE:
            break
    return accuracies


def _believe(row: Sequence[bool], prior: float, accuracies: Sequence[tuple[float, float]]) -> float:
    """Return the probability that an output is good, given all verdicts on it."""
    good, bad = prior, 1 - prior
    for verdict, (sensitivity, specificity) in zip(row, accuracies, strict=True):
        good *= sensitivity if verdict else 1 - sensitivity
        bad *= 1 - specificity if verdict else specificity
    return good / (good + bad) if good + bad else 0.5


def build_panel(history: History, run: RunMetadata, question: str, judges: Sequence[str]) -> Panel | None:
    """Measure some evaluators of a run as a panel, against the labels of `question`; None for too few labels.

    Raises `UsageError` if all labels are alike.
    Only labels drawn at random or stratified count; stratified ones are weighted by their inclusion probability.
    """
    labels = [label for label in history.labels(run_id=run.run_id, evaluator=question) if label.strategy in KNOWN_DRAWS]
    gold, _ = decide_labels(labels)
    results = history.results(run.run_id)
    stratified = {label.item: label.probability for label in labels if label.strategy == "stratified"}
    outputs = list(list_judged_outputs(run.run_id, results, question))
    columns = {
        name: {output.item[1:4]: output.passed for output in list_judged_outputs(run.run_id, results, name)}
        for name in judges
    }
    items = [
        item
        for item in weigh_labels(outputs, gold, stratified)
        if all(item.output.item[1:4] in column for column in columns.values())
    ]
    if len(items) < MIN_PANEL_LABELS:
        return None
    if len(verdicts_of_people := {item.people for item in items}) == 1:
        verb, other = ("passed", "fails") if verdicts_of_people.pop() else ("failed", "passes")
        raise UsageError(
            f"people {verb} all {len(items)} labelled outputs, so the labels do not show which judges can tell good "
            "outputs from bad ones",
            fix=f"label outputs that a judge {other}: proctor label {run.run_id} --strategy stratified",
        )
    verdicts = {name: [column[item.output.item[1:4]] for item in items] for name, column in columns.items()}
    return measure_panel(
        [item.people for item in items],
        verdicts,
        [item.weight for item in items],
        [item.output.cluster for item in items],
    )
