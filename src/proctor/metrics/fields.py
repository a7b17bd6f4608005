"""Means of selected fields, and of the evaluators that a field's score is made of."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from proctor.errors import FieldMissing
from proctor.fields.numbers import as_number
from proctor.fields.path import Path, compiled
from proctor.fields.view import result_of
from proctor.metrics.estimates import any_mean_of, mean_of
from proctor.records.metric import MetricValue
from proctor.records.results import Column, Results, cluster_of, shared_clusters
from proctor.records.score import NOT_ASKED, Score, parts_of
from proctor.records.trial import EvalResult

FIELD = "field"


class FieldsMetric:
    """The mean of every selected field that has numbers, and of each of its evaluators' scores.

    `field.tokens` is the mean of a field, `field.output.coherence` that of an evaluator's score.
    Booleans count as 0 and 1: their mean is the share that is true. Results that have no such
    number are counted as skipped, failed ones as errors.
    """

    name = FIELD

    def __init__(self, fields: Mapping[str, str], evaluated: Collection[str] | None = None) -> None:
        self._paths = {name: compiled(path) for name, path in fields.items()}
        self._evaluated = self._paths if evaluated is None else evaluated

    def compute(self, results: Results) -> dict[str, MetricValue]:
        numbers: dict[str, _Numbers] = {}
        scores: dict[str, _Numbers] = {}
        total, errors = 0, 0
        for result in results:
            total += 1
            errors += not result.success
            cluster = cluster_of(result)
            for name, number in self._values(result):
                numbers.setdefault(name, _Numbers()).add(number, cluster)
            for name, score in self._parts(result):
                scores.setdefault(name, _Numbers()).hear(score, cluster)
        return {
            **{name: any_mean_of(held.column(total, errors)) for name, held in numbers.items()},
            **{name: mean_of(held.column(total, errors)) for name, held in scores.items()},
        }

    def _values(self, result: EvalResult) -> Iterator[tuple[str, float]]:
        if not result.success:
            return
        whole = result_of(result.trial)
        for name, path in self._paths.items():
            value = _number(path, whole)
            if value is not None:
                yield name, value

    def _parts(self, result: EvalResult) -> Iterator[tuple[str, Score]]:
        """The scores that a field's score is made of."""
        for name in self._evaluated:
            score = result.scores.get(name)
            for part, one in parts_of(score).items() if score is not None else ():
                yield f"{name}.{part}", one


class _Numbers:
    """Numbers of some results, and the cluster of each."""

    def __init__(self) -> None:
        self._values = array("d")
        self._clusters: list[str] = []
        self._not_asked = 0

    def hear(self, score: Score, cluster: str) -> None:
        """A score's value; where it is told only of another epoch, it is not missing here."""
        if score.value is not None:
            self.add(score.value, cluster)
        elif score.reason in NOT_ASKED:
            self._not_asked += 1

    def add(self, value: float, cluster: str) -> None:
        self._values.append(value)
        self._clusters.append(cluster)

    def column(self, total: int, errors: int) -> Column:
        """The numbers as a column: who has none, and did not fail, was skipped."""
        skipped = max(0, total - errors - len(self._values) - self._not_asked)
        clusters = shared_clusters(self._clusters)
        return Column(self._values, errors=errors, skipped=skipped, clusters=clusters)


def _number(path: Path, whole: Mapping[str, Any]) -> float | None:
    try:
        return as_number(path.find(whole))
    except FieldMissing:
        return None
