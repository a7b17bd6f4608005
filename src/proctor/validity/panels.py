"""Panels of judges: how many independent judges they are worth, and which one to drop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from proctor.core.stats.judge_rates import correlate
from proctor.ports import History
from proctor.records.run import RunMetadata
from proctor.validity.cards import KNOWN_DRAWS, decide_labels
from proctor.validity.drawing import list_judged_outputs

MAX_ROUNDS, TOLERANCE = 500, 1e-9
MIN_PANEL_LABELS = 30

Verdicts = Mapping[str, Sequence[bool]]


class PanelJudge(msgspec.Struct, frozen=True):
    """One judge of a panel: its errors on the labelled outputs, and its accuracy estimated without labels.

    `sensitivity` and `specificity` are Dawid and Skene's, from the agreement of the judges alone.
    """

    name: str
    errors: int
    sensitivity: float
    specificity: float


class Panel(msgspec.Struct, frozen=True):
    """What several judges are worth together, from n outputs that people labelled.

    `error_correlation` is the mean correlation of their errors, `effective` the number of independent judges with the
    same precision; both are None if no two judges made errors. `drop` is the judge without which the majority makes
    fewest errors, None if every judge helps. `accuracy_gap` is how far Dawid and Skene's accuracy of a judge is from
    the labels' at most: a large gap means that the judges share their errors.
    """

    n: int
    judges: tuple[PanelJudge, ...]
    error_correlation: float | None
    effective: float | None
    majority_errors: int
    drop: str | None
    drop_errors: int | None
    accuracy_gap: float


def effective_judges(count: int, correlation: float) -> float:
    """Return the number of independent judges that `count` judges with correlated errors are worth.

    >>> round(effective_judges(2, 0.524), 2)
    1.31
    """
    return count / (1 + (count - 1) * max(0.0, correlation))


def measure_panel(people: Sequence[bool], verdicts: Verdicts) -> Panel:
    """Measure a panel from people's verdicts and each judge's on the same outputs."""
    errors = {
        name: [float(a is not b) for a, b in zip(column, people, strict=True)] for name, column in verdicts.items()
    }
    names = list(verdicts)
    pairs = [(a, b) for index, a in enumerate(names) for b in names[index + 1 :]]
    correlations = [found.value for a, b in pairs if (found := correlate(errors[a], errors[b])) is not None]
    mean = math.fsum(correlations) / len(correlations) if correlations else None
    majority = _count_majority_errors(people, verdicts)
    # A panel of two has no majority without one of them.
    smaller = {
        name: _count_majority_errors(people, {other: verdicts[other] for other in names if other != name})
        for name in (names if len(names) > 2 else ())
    }
    best = min(smaller, key=lambda name: smaller[name], default=None)
    is_useful = best is not None and smaller[best] < majority
    accuracies = estimate_accuracies(verdicts)
    judges = tuple(PanelJudge(name, int(sum(errors[name])), *accuracies[name]) for name in names)
    return Panel(
        len(people),
        judges,
        mean,
        None if mean is None else effective_judges(len(names), mean),
        majority,
        best if is_useful else None,
        smaller[best] if is_useful and best is not None else None,
        _measure_accuracy_gap(people, verdicts, accuracies),
    )


def _count_majority_errors(people: Sequence[bool], verdicts: Verdicts) -> int:
    """Count the errors of the majority; a tie fails."""
    votes = zip(*verdicts.values(), strict=True)
    return sum((2 * sum(row) > len(row)) is not truth for row, truth in zip(votes, people, strict=True))


def _measure_accuracy_gap(
    people: Sequence[bool], verdicts: Verdicts, accuracies: Mapping[str, tuple[float, float]]
) -> float:
    gaps = [0.0]
    for name, column in verdicts.items():
        for truth, estimate in zip((True, False), accuracies[name], strict=True):
            right = [verdict is truth for verdict, person in zip(column, people, strict=True) if person is truth]
            if right:
                gaps.append(abs(sum(right) / len(right) - estimate))
    return max(gaps)


def estimate_accuracies(verdicts: Verdicts) -> dict[str, tuple[float, float]]:
    """Estimate sensitivity and specificity of each judge from their agreement alone (Dawid and Skene 1979).

    It assumes independent errors, which judges rarely have: use it only next to labels.
    """
    rows = list(zip(*verdicts.values(), strict=True))
    beliefs = [sum(row) / len(row) for row in rows]
    accuracies: list[tuple[float, float]] = []
    for _ in range(MAX_ROUNDS):
        good = math.fsum(beliefs)
        accuracies = [_weigh_accuracy(column, beliefs) for column in verdicts.values()]
        prior = min(1 - TOLERANCE, max(TOLERANCE, good / len(beliefs)))
        updated = [_believe(row, prior, accuracies) for row in rows]
        change = max(abs(a - b) for a, b in zip(beliefs, updated, strict=True))
        beliefs = updated
        if change < TOLERANCE:
            break
    return dict(zip(verdicts, accuracies, strict=True))


def _weigh_accuracy(column: Sequence[bool], beliefs: Sequence[float]) -> tuple[float, float]:
    good, bad = math.fsum(beliefs), math.fsum(1 - belief for belief in beliefs)
    passed = math.fsum(belief for verdict, belief in zip(column, beliefs, strict=True) if verdict)
    failed = math.fsum(1 - belief for verdict, belief in zip(column, beliefs, strict=True) if not verdict)
    return passed / good if good else 0.5, failed / bad if bad else 0.5


def _believe(row: Sequence[bool], prior: float, accuracies: Sequence[tuple[float, float]]) -> float:
    """Return the probability that an output is good, given all verdicts on it."""
    good, bad = prior, 1 - prior
    for verdict, (sensitivity, specificity) in zip(row, accuracies, strict=True):
        good *= sensitivity if verdict else 1 - sensitivity
        bad *= 1 - specificity if verdict else specificity
    return good / (good + bad) if good + bad else 0.5


def build_panel(history: History, run: RunMetadata, question: str, judges: Sequence[str]) -> Panel | None:
    """Measure some evaluators of a run as a panel, against the labels of `question`; None for too few labels.

    Only labels drawn at random or stratified count.
    """
    labels = [label for label in history.labels(run_id=run.run_id, evaluator=question) if label.strategy in KNOWN_DRAWS]
    gold, _ = decide_labels(labels)
    truths = {item[1:4]: truth for item, truth in gold.items()}
    results = history.results(run.run_id)
    columns = {
        name: {output.item[1:4]: output.passed for output in list_judged_outputs(run.run_id, results, name)}
        for name in judges
    }
    shared = [item for item in truths if all(item in column for column in columns.values())]
    if len(shared) < MIN_PANEL_LABELS:
        return None
    people = [truths[item] for item in shared]
    return measure_panel(people, {name: [column[item] for item in shared] for name, column in columns.items()})
