"""A whole run: its metadata, its metrics and its results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import fsum

from proctor.records.metric import MetricValue
from proctor.records.results import Counts, ResultList, Results
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult


class EvalReport:
    """A whole run: metadata, metrics, and the results, which may be read from disk as asked for.

    `pass_rate` is of the results that have a verdict; `strict_pass_rate` counts what failed to
    run or to be scored as not passed. Both are None where there is nothing to divide by.

    >>> EvalReport([]).pass_rate is None
    True
    """

    def __init__(
        self,
        results: Results | list[EvalResult] | tuple[EvalResult, ...] = (),
        metadata: RunMetadata | None = None,
        metrics: Mapping[str, MetricValue] | None = None,
        by_configuration: Mapping[str, Mapping[str, MetricValue]] | None = None,
    ) -> None:
        self.results: Results = ResultList(results) if isinstance(results, list | tuple) else results
        self.metadata = metadata
        self.metrics = dict(metrics or {})
        self.by_configuration = {name: dict(table) for name, table in (by_configuration or {}).items()}

    def __repr__(self) -> str:
        counts, kind = self.counts, type(self).__name__
        return (
            f"<{kind} {self.run_id}: {counts.passed} passed, {counts.failed} failed, "
            f"{self.errors} errors, {counts.skipped} skipped>"
        )

    @cached_property
    def counts(self) -> Counts:
        """How many results there are and how they came out."""
        return self.results.counts()

    @property
    def run_id(self) -> str:
        """The id under which the history keeps this run."""
        return self.metadata.run_id if self.metadata else ""

    @property
    def total(self) -> int:
        """How many results there are."""
        return self.counts.total

    @property
    def successful(self) -> int:
        """Results whose target gave an output."""
        return self.counts.total - self.counts.error

    @property
    def errors(self) -> int:
        """Results without a verdict because the target or an evaluator failed."""
        return self.counts.error + self.counts.unscored

    @property
    def pass_rate(self) -> float | None:
        """Of the results with a verdict, the share that passed."""
        return _share(self.counts.passed, self.counts.passed + self.counts.failed)

    @property
    def strict_pass_rate(self) -> float | None:
        """The share that passed, errors counted as not passed. Gates use this one."""
        return _share(self.counts.passed, self.counts.total - self.counts.skipped)

    @cached_property
    def mean_score(self) -> float | None:
        """Mean of the combined scores that have a value."""
        values = self.results.column().values
        return _share(fsum(values), len(values))

    @cached_property
    def mean_latency_ms(self) -> float | None:
        """Mean time of a trial in milliseconds, failures included."""
        values = self.results.latencies().values
        return _share(fsum(values), len(values))

    def failed_samples(self) -> tuple[EvalResult, ...]:
        """Results that have a verdict and did not pass."""
        return tuple(self.results.page(outcome="failed", limit=max(1, self.total)))


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
