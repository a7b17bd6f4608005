"""The results of a run, as a sequence and as columns of numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple, Protocol, overload

import msgspec

from proctor.records.sample import Sample
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

NAN = float("nan")
# What an evaluator's outcome counts; the others have no number.
WORTH: dict[Outcome, float] = {"passed": 1.0, "failed": 0.0}


class Column(msgspec.Struct, frozen=True):
    """One number of many results, such as an evaluator's scores.

    `values` are the numbers there are, in the order of the results; `passes` says of each score
    whether it passed (1) or not (0). `clusters` names the group each value belongs to if some
    results are not independent (epochs of one sample, samples of one cluster), else it is None.
    `errors` and `skipped` count the results that have no such number, and why.
    """

    values: array[float]
    passes: bytes = b""
    errors: int = 0
    skipped: int = 0
    clusters: list[str] | None = None

    @property
    def passed(self) -> int:
        """How many of the scores passed."""
        return self.passes.count(1)


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


class Spent(NamedTuple):
    """What one result took of models: the target's cost, and the evaluators' tokens and cost."""

    cost: float | None
    judge_tokens: int | None
    judge_cost: float | None


class Figures(msgspec.Struct, frozen=True):
    """What is known of every result without reading it, column by column, all in one order.

    NaN stands for a number that there is not. `clusters` are those that samples name, None if none
    does. `passes` and `scores` are by evaluator: 1 or 0, and the score itself.
    """

    sample_ids: list[str]
    outcomes: bytes
    values: array[float]
    latencies: array[float]
    tokens: array[float]
    costs: array[float] | None
    clusters: list[str | None] | None
    passes: dict[str, array[float]]
    scores: dict[str, array[float]]


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

    def outcomes(self) -> bytes:
        """How each result came out, as its place in OUTCOMES."""
        ...

    def clusters(self) -> list[str] | None:
        """The cluster of each result, or None if all results are independent."""
        ...

    def column(self, evaluator: str | None = None) -> Column:
        """One evaluator's scores, or the combined score of every result."""
        ...

    def latencies(self) -> Column:
        """Milliseconds each trial took, failures included."""
        ...

    def tokens(self) -> Column:
        """Tokens of every trial that told its usage; the others are skipped."""
        ...

    def spent(self) -> list[Spent | None] | None:
        """What each result took of models, or None if no result tells of any."""
        ...

    def figures(self) -> Figures:
        """All numbers of all results at once, and whose they are."""
        ...

    def samples(self) -> Iterator[Sample[Any, Any]]:
        """The sample of each result, in the order of the figures."""
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
        return count_outcomes(self.outcomes())

    def outcomes(self) -> bytes:
        return bytes(OUTCOMES.index(result.outcome) for result in self._results)

    def clusters(self) -> list[str] | None:
        return shared_clusters(cluster_of(result) for result in self._results)

    def column(self, evaluator: str | None = None) -> Column:
        seen = [outcome_for(result, evaluator) for result in self._results]
        judged = [outcome in ("passed", "failed") for outcome in seen]
        if evaluator is None:
            values = [result.verdict()[1] for result in self._results]
        else:
            scores = [result.scores.get(evaluator) for result in self._results]
            values = [None if score is None else score.value for score in scores]
        return Column(
            array("d", (value for value in compress(values, judged) if value is not None)),
            bytes(outcome == "passed" for outcome in compress(seen, judged)),
            errors=seen.count("error") + seen.count("unscored"),
            skipped=seen.count("skipped"),
            clusters=_chosen(self.clusters(), judged),
        )

    def latencies(self) -> Column:
        taken = [result.latency_ms for result in self._results]
        known = [one is not None for one in taken]
        return Column(
            array("d", (one for one in taken if one is not None)),
            skipped=known.count(False),
            clusters=_chosen(self.clusters(), known),
        )

    def tokens(self) -> Column:
        usages = [result.trial.usage for result in self._results]
        totals = [None if usage is None else usage.total_tokens for usage in usages]
        known = [total is not None for total in totals]
        return Column(
            array("d", (total for total in totals if total is not None)),
            skipped=known.count(False),
            clusters=_chosen(self.clusters(), known),
        )

    def spent(self) -> list[Spent | None] | None:
        found = [spent_by(result) for result in self._results]
        return found if any(found) else None

    def figures(self) -> Figures:
        trials = [result.trial for result in self._results]
        clusters = [trial.sample.cluster or None for trial in trials]
        costs = [None if one is None else one.cost for one in self.spent() or ()]
        names = dict.fromkeys(name for result in self._results for name in result.scores)
        by_name = {
            name: [(r.scores.get(name), outcome_for(r, name)) for r in self._results] for name in names
        }
        return Figures(
            [result.sample_id for result in self._results],
            self.outcomes(),
            numbers(result.verdict()[1] for result in self._results),
            numbers(trial.latency_ms for trial in trials),
            numbers(None if t.usage is None else t.usage.total_tokens for t in trials),
            numbers(costs) if any(one is not None for one in costs) else None,
            clusters if any(clusters) else None,
            {name: numbers(WORTH.get(o) for _, o in held) for name, held in by_name.items()},
            {
                name: numbers(one.value if one and o in WORTH else None for one, o in held)
                for name, held in by_name.items()
            },
        )

    def samples(self) -> Iterator[Sample[Any, Any]]:
        return (result.trial.sample for result in self._results)

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


def numbers(values: Iterable[float | None]) -> array[float]:
    """Numbers side by side, NaN where there is none.

    >>> numbers([0.5, None])
    array('d', [0.5, nan])
    """
    return array("d", (NAN if value is None else value for value in values))


def spent_by(result: EvalResult) -> Spent | None:
    """What a result took of models, or None if it tells nothing."""
    usage, judging = result.trial.usage, result.judging if result.sessions else None
    cost = None if usage is None else usage.cost
    if judging is None:
        return None if cost is None else Spent(cost, None, None)
    return Spent(cost, judging.total_tokens, judging.cost)


def count_outcomes(outcomes: bytes) -> Counts:
    """How many results came out how.

    >>> count_outcomes(bytes([0, 0, 1])).passed
    2
    """
    return Counts(*(outcomes.count(index) for index in range(len(OUTCOMES))))


def cluster_of(result: EvalResult) -> str:
    """The group a result belongs to: its sample's cluster, else all results of the sample."""
    return result.trial.sample.cluster or result.sample_id


def shared_clusters(clusters: Iterable[str]) -> list[str] | None:
    """The clusters of some results, one by one, or None if no two results share one.

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


def _chosen(clusters: list[str] | None, wanted: Iterable[bool]) -> list[str] | None:
    return None if clusters is None else list(compress(clusters, wanted))


def _worst_first(result: EvalResult) -> float:
    value = result.verdict()[1]
    return -1.0 if value is None else value
