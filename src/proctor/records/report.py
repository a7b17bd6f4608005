"""The report of a run: metadata, metrics and results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import fsum

from proctor.records.metric import MetricValue
from proctor.records.results import Counts, ResultList, Results
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult


class EvalReport:
    """The report of a run: metadata, metrics, and results, which may be read lazily from disk.

    `pass_rate` covers the results with a verdict; `strict_pass_rate` counts errors as not passed. Both are
    None if there are no such results.

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
        errors = "1 error" if self.errors == 1 else f"{self.errors} errors"
        return (
            f"<{kind} {self.run_id}: {counts.passed} passed, {counts.failed} failed, "
            f"{errors}, {counts.skipped} skipped>"
        )

    @cached_property
    def counts(self) -> Counts:
        """The number of results by outcome."""
        return self.results.counts()

    @property
    def run_id(self) -> str:
        """The id of the run in the history."""
        return self.metadata.run_id if self.metadata else ""

    @property
    def total(self) -> int:
        """The number of results."""
        return self.counts.total

    @property
    def successful(self) -> int:
        """The number of results whose target returned an output."""
        return self.counts.total - self.counts.error

    @property
    def errors(self) -> int:
        """The number of results without a verdict because the target or an evaluator failed."""
        return self.counts.error + self.counts.unscored

    @property
    def pass_rate(self) -> float | None:
        """The share of results with a verdict that passed."""
        return _divide(self.counts.passed, self.counts.passed + self.counts.failed)

    @property
    def strict_pass_rate(self) -> float | None:
        """The share that passed, with errors counted as not passed. Gates use this one."""
        return _divide(self.counts.passed, self.counts.total - self.counts.skipped)

    @cached_property
    def mean_score(self) -> float | None:
        """The mean of the combined scores."""
        values = self.results.column().values
        return _divide(fsum(values), len(values))

    @cached_property
    def mean_latency_ms(self) -> float | None:
        """The mean latency of a trial in milliseconds, failures included."""
        values = self.results.latencies().values
        return _divide(fsum(values), len(values))

    def failed_samples(self) -> tuple[EvalResult, ...]:
        """Return the results that have a verdict and did not pass."""
        return tuple(self.results.page(outcome="failed", limit=max(1, self.total)))


def _divide(total: float, count: int) -> float | None:
    return total / count if count else None
