"""The results of a run, both as a sequence and as columns of numbers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from math import isnan
from operator import eq
from typing import Any, NamedTuple, Protocol, overload

import msgspec

from proctor.records.grid import Grid, ResultColumns, arrange
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

NAN = float("nan")
# The value of an outcome in a pass rate; other outcomes have none.
PASS_VALUES: dict[Outcome, float] = {"passed": 1.0, "failed": 0.0}


class Column(msgspec.Struct, frozen=True):
    """One number of many results, such as an evaluator's scores.

    `values` are the known numbers, in the order of the results; `passes` holds 1 for each score that passed, else 0.
    `clusters` has the cluster of each value if some results are not independent (epochs of one sample, samples of one
    cluster), else it is None. `errors` and `skipped` count the results without a number; `no_output` of the errors are
    errors of the target. Samples without the evaluator count nowhere.
    """

    values: array[float]
    passes: bytes = b""
    errors: int = 0
    skipped: int = 0
    clusters: list[str] | None = None
    no_output: int = 0

    @property
    def passed(self) -> int:
        """The number of scores that passed."""
        return self.passes.count(1)


class Counts(msgspec.Struct, frozen=True):
    """The number of results by outcome.

    Every result is exactly one of: passed, failed, error (the target failed), unscored (an evaluator failed,
    so there is no verdict), skipped (no evaluator returned a verdict).
    """

    passed: int = 0
    failed: int = 0
    error: int = 0
    unscored: int = 0
    skipped: int = 0

    def first_problem(self) -> Outcome:
        """The outcome to look at if no result has a verdict."""
        return next((name for name in ("error", "unscored") if getattr(self, name)), "skipped")

    @property
    def total(self) -> int:
        """The number of all results."""
        return self.passed + self.failed + self.error + self.unscored + self.skipped


class ModelUsage(NamedTuple):
    """The model usage of one result: the target's cost, and the evaluators' tokens and cost."""

    cost: float | None
    judge_tokens: int | None
    judge_cost: float | None


class Figures(msgspec.Struct, frozen=True):
    """The numbers of all results as columns, all in the same order.

    NaN is a missing number. `clusters` are the clusters of the samples, None if no sample has one. `passes` (1 or 0),
    `scores` and `marks` (the outcomes, as indexes of OUTCOMES) are keyed by evaluator. `absent` has 1 for each result
    whose sample does not have an evaluator that other samples have as their own; its mark is "skipped".
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
    marks: dict[str, bytes]
    absent: dict[str, bytes] = {}


class Results(Protocol):
    """The results of a run: a sequence that may be on disk, and its numbers as columns.

    `for_configuration` selects the results of one configuration.
    """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[EvalResult]: ...
    @overload
    def __getitem__(self, index: int) -> EvalResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[EvalResult]: ...

    def for_configuration(self, configuration: str) -> Results:
        """Return the results of one configuration; empty if the run has no such configuration."""

    def counts(self) -> Counts:
        """Count the results by outcome."""

    def outcomes(self) -> bytes:
        """Return the outcome of each result, as an index of OUTCOMES."""

    def clusters(self) -> list[str] | None:
        """Return the cluster of each result, or None if all results are independent."""

    def column(self, evaluator: str | None = None) -> Column:
        """Return the scores of one evaluator, or the combined scores."""

    def latencies(self) -> Column:
        """Return the latency of each trial in milliseconds, including failures."""

    def tokens(self) -> Column:
        """Return the tokens of each trial with a known usage; other trials count as skipped."""

    def model_usage(self) -> list[ModelUsage | None] | None:
        """Return the model usage of each result, or None if no usage is known."""

    def figures(self) -> Figures:
        """Return all numbers of all results."""

    def samples(self) -> Iterator[Sample[Any, Any]]:
        """Return the sample of each result, in the order of the figures."""

    def error_kinds(self) -> dict[str, int]:
        """Count the target errors by kind, most frequent first, ties by name."""

    def page(
        self, *, outcome: Outcome | None = None, evaluator: str | None = None, offset: int = 0, limit: int = 50
    ) -> Sequence[EvalResult]:
        """Return a page of results with an outcome, or an outcome of one evaluator; worst first.

        Results without a value come first; ties are in the order of the plan.
        """

    def for_sample(self, sample_id: str) -> Sequence[EvalResult]:
        """Return all results of one sample: its configurations and epochs."""

    def grid(self) -> Grid:
        """Return the numbers of all results by sample, configuration and epoch."""

    def read(self, places: Sequence[int]) -> list[EvalResult]:
        """Return the results at some places of the grid."""

    def search(self, text: str, after: int = 0) -> Iterator[tuple[int, list[int], float]]:
        """Search the stored texts of all results, regardless of case, some hundred results at a time.

        Yields a cursor to continue after, the places of the results that may contain the text, and the share of results
        that have been searched.
        """


SEARCHED_TOGETHER = 256


class ResultList:
    """Results in memory."""

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

    def for_configuration(self, configuration: str) -> ResultList:
        return ResultList(r for r in self._results if r.trial.configuration == configuration)

    def counts(self) -> Counts:
        return count_outcomes(self.outcomes())

    def outcomes(self) -> bytes:
        return bytes(OUTCOMES.index(result.outcome) for result in self._results)

    def clusters(self) -> list[str] | None:
        return list_shared_clusters(find_cluster(result) for result in self._results)

    def column(self, evaluator: str | None = None) -> Column:
        absent = self._find_absent(evaluator)
        outcomes = [None if id(result) in absent else find_outcome(result, evaluator) for result in self._results]
        has_verdict = [outcome in PASS_VALUES for outcome in outcomes]
        if evaluator is None:
            values = [result.verdict()[1] for result in self._results]
        else:
            scores = [result.scores.get(evaluator) for result in self._results]
            values = [None if score is None else score.value for score in scores]
        return Column(
            array("d", (value for value in compress(values, has_verdict) if value is not None)),
            bytes(outcome == "passed" for outcome in compress(outcomes, has_verdict)),
            errors=outcomes.count("error") + outcomes.count("unscored"),
            skipped=outcomes.count("skipped"),
            clusters=_select(self.clusters(), has_verdict),
            no_output=outcomes.count("error"),
        )

    def _find_absent(self, evaluator: str | None) -> set[int]:
        """Return the results, by `id`, whose sample does not have an evaluator that other samples have as their own."""
        has_own = [evaluator in result.trial.sample.check_names for result in self._results] if evaluator else []
        if not any(has_own):
            return set()
        return {id(result) for result, has_it in zip(self._results, has_own, strict=True) if not has_it}

    def latencies(self) -> Column:
        return make_number_column(to_array(r.latency_ms for r in self._results), self.clusters())

    def tokens(self) -> Column:
        return make_number_column(self._tokens(), self.clusters())

    def _tokens(self) -> array[float]:
        usages = (result.trial.usage for result in self._results)
        return to_array(None if usage is None else usage.total_tokens for usage in usages)

    def model_usage(self) -> list[ModelUsage | None] | None:
        usages = [find_model_usage(result) for result in self._results]
        return usages if any(usages) else None

    def figures(self) -> Figures:
        trials = [result.trial for result in self._results]
        clusters = [trial.sample.cluster or None for trial in trials]
        costs = [None if usage is None else usage.cost for usage in self.model_usage() or ()]
        names = dict.fromkeys(name for result in self._results for name in result.scores)
        absent_results = {name: self._find_absent(name) for name in names}
        absent = {name: bytes(id(r) in ids for r in self._results) for name, ids in absent_results.items() if ids}
        by_name: dict[str, list[tuple[Score | None, Outcome]]] = {
            name: [
                (None, "skipped") if id(r) in ids else (r.scores.get(name), find_outcome(r, name))
                for r in self._results
            ]
            for name, ids in absent_results.items()
        }
        return Figures(
            [result.sample_id for result in self._results],
            self.outcomes(),
            to_array(result.verdict()[1] for result in self._results),
            to_array(trial.latency_ms for trial in trials),
            self._tokens(),
            to_array(costs) if any(cost is not None for cost in costs) else None,
            clusters if any(clusters) else None,
            {name: to_array(PASS_VALUES.get(o) for _, o in pairs) for name, pairs in by_name.items()},
            {
                name: to_array(score.value if score and o in PASS_VALUES else None for score, o in pairs)
                for name, pairs in by_name.items()
            },
            {name: bytes(OUTCOMES.index(outcome) for _, outcome in pairs) for name, pairs in by_name.items()},
            absent,
        )

    def samples(self) -> Iterator[Sample[Any, Any]]:
        return (result.trial.sample for result in self._results)

    def error_kinds(self) -> dict[str, int]:
        failures = (result.trial.error for result in self._results)
        return sort_counts(Counter(f.kind for f in failures if f is not None))

    def page(
        self, *, outcome: Outcome | None = None, evaluator: str | None = None, offset: int = 0, limit: int = 50
    ) -> Sequence[EvalResult]:
        selected: Iterable[EvalResult] = self._results
        if outcome is not None:
            absent = self._find_absent(evaluator)
            selected = (r for r in selected if id(r) not in absent and find_outcome(r, evaluator) == outcome)
        first = max(0, offset)
        return sorted(selected, key=_worst_first)[first : first + max(0, limit)]

    def for_sample(self, sample_id: str) -> Sequence[EvalResult]:
        return [r for r in self._results if r.sample_id == sample_id]

    def grid(self) -> Grid:
        figures = self.figures()
        trials = [result.trial for result in self._results]
        names = list(dict.fromkeys(trial.configuration for trial in trials))
        indexes = {name: index for index, name in enumerate(names)}
        columns = ResultColumns(
            figures.sample_ids,
            range(len(trials)),
            [indexes[trial.configuration] for trial in trials],
            [trial.epoch for trial in trials],
            range(len(trials)),
            figures.outcomes,
            figures.values,
            figures.latencies,
            figures.tokens,
            figures.costs,
            figures.marks,
            figures.scores,
        )
        return arrange(columns, names)

    def read(self, places: Sequence[int]) -> list[EvalResult]:
        return [self._results[place] for place in places]

    def search(self, text: str, after: int = 0) -> Iterator[tuple[int, list[int], float]]:
        del text
        total = len(self._results)
        for first in range(after, total, SEARCHED_TOGETHER):
            end = min(total, first + SEARCHED_TOGETHER)
            yield end, list(range(first, end)), end / total


def to_array(values: Iterable[float | None]) -> array[float]:
    """Make an array of numbers, with NaN for None."""
    numbers: list[Any] = [*values]
    return array("d", (NAN if value is None else value for value in numbers) if None in numbers else numbers)


def make_number_column(numbers: array[float], clusters: list[str] | None) -> Column:
    """Make the column of one number per trial; missing numbers (NaN) count as skipped."""
    if not isnan(sum(numbers)):
        return Column(numbers, clusters=clusters)
    known = bytes(map(eq, numbers, numbers))
    values = array("d", compress(numbers, known))
    return Column(values, skipped=known.count(0), clusters=_select(clusters, known))


def find_model_usage(result: EvalResult) -> ModelUsage | None:
    """Return the model usage of a result, or None if it is unknown."""
    usage, judging = result.trial.usage, result.judging if result.sessions else None
    cost = None if usage is None else usage.cost
    if judging is None:
        return None if cost is None else ModelUsage(cost, None, None)
    return ModelUsage(cost, judging.total_tokens, judging.cost)


def tally_passes(results: Results, evaluator: str | None = None) -> dict[str, tuple[int, int]]:
    """Count each sample's trials with a verdict, and those that passed: of one evaluator, or of all combined."""
    figures = results.figures()
    marks = figures.outcomes if evaluator is None else figures.marks[evaluator]
    tallies: dict[str, tuple[int, int]] = {}
    for sample, mark in zip(figures.sample_ids, marks, strict=True):
        trials, passed = tallies.get(sample, (0, 0))
        value = PASS_VALUES.get(OUTCOMES[mark])
        tallies[sample] = (trials, passed) if value is None else (trials + 1, passed + int(value))
    return tallies


def count_outcomes(outcomes: bytes) -> Counts:
    """Count outcomes; each outcome is an index of OUTCOMES."""
    return Counts(*(outcomes.count(index) for index in range(len(OUTCOMES))))


def sort_counts(tally: Counter[str]) -> dict[str, int]:
    """Sort counts by frequency, ties by name."""
    return dict(sorted(tally.items(), key=lambda item: (-item[1], item[0])))


def find_cluster(result: EvalResult) -> str:
    """Return the cluster of a result: the cluster of its sample, or else the sample itself."""
    return result.trial.sample.cluster or result.sample_id


def list_shared_clusters(clusters: Iterable[str]) -> list[str] | None:
    """Return the cluster of each result, or None if no two results share a cluster."""
    names = list(clusters)
    return names if len(set(names)) < len(names) else None


def find_outcome(result: EvalResult, evaluator: str | None = None) -> Outcome:
    """Return the outcome of a result, or of one of its evaluators."""
    if evaluator is None or not result.success:
        return result.outcome
    score = result.scores.get(evaluator)
    if score is None or score.status == "skipped":
        return "skipped"
    if score.status == "error":
        return "unscored"
    return "passed" if score.passed else "failed"


def _select(clusters: list[str] | None, selectors: Iterable[Any]) -> list[str] | None:
    return None if clusters is None else list(compress(clusters, selectors))


def _worst_first(result: EvalResult) -> float:
    value = result.verdict()[1]
    return -1.0 if value is None else value
