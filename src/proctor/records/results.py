"""The results of a run, as a sequence and as columns of numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, overload

import msgspec

from proctor.records.trial import OUTCOMES, EvalResult, Outcome


class Column(msgspec.Struct, frozen=True):
    """One evaluator's scores over many results, as numbers.

    `values` are the verdicts; `clusters` names, value by value, the group each belongs to when
    they are not independent (epochs of one sample, samples of one cluster), else it is None.
    `errors` counts failed trials and failed evaluations, `skipped` those without a verdict.
    """

    values: array[float]
    passed: int = 0
    errors: int = 0
    skipped: int = 0
    clusters: list[str] | None = None


class Counts(msgspec.Struct, frozen=True):
    """How many results there are, and how they came out.

    Every result is exactly one of: passed, failed, error (the target failed), unscored (an
    evaluator failed, so there is no verdict), skipped (no evaluator had anything to say).
    """

    passed: int = 0
    failed: int = 0
    error: int = 0
    unscored: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.passed + self.failed + self.error + self.unscored + self.skipped


class Results(Protocol):
    """The results of a run: a sequence that may lie on disk, and its columns as numbers.

    Every question can be narrowed to one configuration with `only`.
    """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[EvalResult]: ...
    @overload
    def __getitem__(self, index: int) -> EvalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EvalResult]: ...

    def only(self, configuration: str) -> Results:
        """The results of one configuration; none if the run has no such configuration."""
        ...

    def counts(self) -> Counts:
        """How the results came out."""
        ...

    def column(self, evaluator: str) -> Column:
        """One evaluator's scores."""
        ...

    def overall(self) -> Column:
        """The combined score of every result."""
        ...

    def latencies(self) -> array[float]:
        """Milliseconds each trial took, failures included."""
        ...

    def tokens(self) -> array[float]:
        """Tokens of every trial that told its usage."""
        ...

    def error_kinds(self) -> dict[str, int]:
        """How often each kind of target error happened, most frequent first, ties by name."""
        ...

    def page(
        self,
        *,
        outcome: Outcome | None = None,
        evaluator: str | None = None,
        offset: int = 0,
        limit: int = 50,
    ) -> Sequence[EvalResult]:
        """Some of the results: by outcome, or by the outcome of one evaluator; worst first.

        Results without a value stand before those with the lowest; ties keep the plan's order.
        """
        ...

    def of_sample(self, sample_id: str) -> Sequence[EvalResult]:
        """All results of one sample: its configurations and epochs."""
        ...


class ResultList:
    """Results held in memory, in the order given.

    >>> len(ResultList([]))
    0
    """

    def __init__(self, results: Iterable[EvalResult]) -> None:
        self._results = tuple(results)

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[EvalResult]:
        return iter(self._results)

    @overload
    def __getitem__(self, index: int) -> EvalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EvalResult]: ...
    def __getitem__(self, index: int | slice) -> EvalResult | Sequence[EvalResult]:
        return self._results[index]

    def only(self, configuration: str) -> ResultList:
        return ResultList(r for r in self._results if r.trial.configuration == configuration)

    def counts(self) -> Counts:
        tally = Counter(result.outcome for result in self._results)
        return Counts(*(tally[outcome] for outcome in OUTCOMES))

    def column(self, evaluator: str) -> Column:
        scored = [(r, r.scores.get(evaluator) if r.success else None) for r in self._results]
        valued = [(r, s) for r, s in scored if s is not None and s.ok]
        errors = sum(not r.success or (s is not None and s.status == "error") for r, s in scored)
        return Column(
            array("d", (s.value for _, s in valued if s.value is not None)),
            passed=sum(s.passed for _, s in valued),
            errors=errors,
            skipped=len(scored) - len(valued) - errors,
            clusters=shared_clusters(_cluster(r) for r, _ in valued),
        )

    def overall(self) -> Column:
        counts = self.counts()
        valued = [(r, value) for r in self._results if (value := r.verdict()[1]) is not None]
        return Column(
            array("d", (value for _, value in valued)),
            passed=counts.passed,
            errors=counts.error + counts.unscored,
            skipped=counts.skipped,
            clusters=shared_clusters(_cluster(r) for r, _ in valued),
        )

    def latencies(self) -> array[float]:
        return array("d", (result.latency_ms for result in self._results))

    def tokens(self) -> array[float]:
        usages = (result.trial.usage for result in self._results)
        totals = (usage.total_tokens for usage in usages if usage is not None)
        return array("d", (total for total in totals if total is not None))

    def error_kinds(self) -> dict[str, int]:
        failures = (result.trial.error for result in self._results)
        tally = Counter(f.kind for f in failures if f is not None)
        return dict(sorted(tally.items(), key=lambda item: (-item[1], item[0])))

    def page(
        self,
        *,
        outcome: Outcome | None = None,
        evaluator: str | None = None,
        offset: int = 0,
        limit: int = 50,
    ) -> Sequence[EvalResult]:
        chosen: Iterable[EvalResult] = self._results
        if outcome is not None:
            chosen = (r for r in chosen if outcome_for(r, evaluator) == outcome)
        first = max(0, offset)
        return sorted(chosen, key=_worst_first)[first : first + max(0, limit)]

    def of_sample(self, sample_id: str) -> Sequence[EvalResult]:
        return [r for r in self._results if r.sample_id == sample_id]


def shared_clusters(clusters: Iterable[str]) -> list[str] | None:
    """The clusters of some values, one by one, or None if no two values share one.

    >>> shared_clusters(["a", "b", "a"]), shared_clusters(["a", "b"])
    (['a', 'b', 'a'], None)
    """
    names = list(clusters)
    return names if len(set(names)) < len(names) else None


def outcome_for(result: EvalResult, evaluator: str | None = None) -> Outcome:
    """How a result came out, as a whole or in the eyes of one evaluator."""
    if evaluator is None or not result.success:
        return result.outcome
    score = result.scores.get(evaluator)
    if score is None or score.status == "skipped":
        return "skipped"
    if score.status == "error":
        return "unscored"
    return "passed" if score.passed else "failed"


def _cluster(result: EvalResult) -> str:
    return result.trial.sample.cluster or result.sample_id


def _worst_first(result: EvalResult) -> float:
    value = result.verdict()[1]
    return -1.0 if value is None else value
