"""Compare metrics that have no number per sample: percentiles, and functions of all results.

Such a metric is compared only on request, by name. Its intervals and p-value come from a bootstrap over the samples, or
over their clusters; samples that both sides have are drawn together. The seed is fixed, so identical runs give
identical numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, chain
from math import fsum
from typing import Any

import msgspec

from proctor.comparison.sides import Side, ValuesBySample, find_clusters
from proctor.core.stats.bootstrap import Resampled, resample
from proctor.core.stats.differences import ratio_interval
from proctor.core.stats.intervals import Interval, effective_clusters
from proctor.metrics.registry import MetricRegistry, compute_metric
from proctor.records.comparison import BOOTSTRAP, MetricDelta
from proctor.records.formatting import Kind, add_clusters
from proctor.records.metric import MetricValue
from proctor.records.numbers import higher_is_better
from proctor.records.results import ResultList, Results
from proctor.records.trial import EvalResult

# Fewer samples or clusters vary too little when they are resampled.
MIN_UNITS = 20
# A quantile needs this many values on either side.
MIN_VALUES_BEYOND = 10
RESAMPLES = 1_000
# If a larger fraction of the resamples has no value, the interval is undefined.
MAX_UNDEFINED = 0.01
NO_CODE = (
    "only the value of this metric is stored, so it has no interval: load the metric with --plugin module:metric "
    "(in Python: metrics=[metric])"
)
SINGLE_SAMPLES = "a maximum or minimum depends on single samples"
UNPAIRED_TOTAL = "totals of two groups depend on how many samples each has: compare the mean instead"
MISSING = "one side has no such metric"

Unit = tuple[Sequence[str], Sequence[str]]


class Statistic:
    """A number for one side, and a function that computes it from a list of samples, with repetitions.

    `problem` is the reason why it cannot be resampled; `share` is set for a quantile.
    """

    def __init__(
        self,
        value: MetricValue,
        samples: Collection[str] = (),
        compute: Callable[[Sequence[str]], float | None] | None = None,
        *,
        kind: Kind = "number",
        higher_is_better: bool | None = None,
        share: float | None = None,
        problem: str = "",
    ) -> None:
        self.value = value
        self.samples = samples
        self.kind = kind
        self.higher_is_better = higher_is_better
        self.share = share
        self.problem = problem
        self._compute = compute
        self._evidence: dict[int, BootstrapEvidence] = {}

    def compute_for(self, samples: Sequence[str]) -> float | None:
        """Compute the number from these samples; without code, return the stored value."""
        return self.value.value if self._compute is None else self._compute(samples)

    def compare(self, other: Statistic, a: Side, b: Side) -> BootstrapEvidence:
        """Return the difference from another side's statistic; the estimate is cached."""
        if id(other) not in self._evidence:
            self._evidence[id(other)] = BootstrapEvidence(self, other, a, b)
        return self._evidence[id(other)]


class BootstrapEvidence:
    """The difference between two sides' statistics, with its uncertainty."""

    def __init__(self, first: Statistic, second: Statistic, a: Side, b: Side) -> None:
        self._statistics = first, second
        excluded = a.different_samples or ()
        shared = sorted(name for name in first.samples if name in second.samples and name not in excluded)
        self.paired = bool(shared) or not first.samples or not second.samples
        self._samples = (shared, shared) if self.paired else (sorted(first.samples), sorted(second.samples))
        cluster_names = [a.clusters, b.clusters]
        by_side = [cluster_names, cluster_names] if self.paired else [cluster_names[:1], cluster_names[1:]]
        clusters = [find_clusters(ids, *names) for ids, names in zip(self._samples, by_side, strict=True)]
        self.clusters = [names or ids for names, ids in zip(clusters, self._samples, strict=True)]
        self.is_clustered = any(clusters)

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of samples on each side."""
        return len(self._samples[0]), len(self._samples[1])

    @property
    def n(self) -> int:
        """The number of pairs, or the size of the smaller group."""
        return min(self.sizes)

    @cached_property
    def units(self) -> float:
        """The number of independent units: samples, or clusters of equal weight."""
        return min(map(effective_clusters, self.clusters)) if self.is_clustered else self.n

    @cached_property
    def values(self) -> tuple[float | None, float | None]:
        """The number of each side, over the pairs if there are any."""
        if not self.n:
            first, second = self._statistics
            return first.compute_for([*first.samples]), second.compute_for([*second.samples])
        return self._compute([self._samples])

    @cached_property
    def problem(self) -> str:
        """Why the difference cannot be estimated; empty if it can."""
        first, second = self._statistics
        shares = [statistic.share for statistic in (first, second) if statistic.share is not None]
        if problem := first.problem or second.problem:
            return problem
        if not self.n:
            return ""
        if any(share in (0.0, 1.0) for share in shares):
            return SINGLE_SAMPLES
        noun = "clusters" if self.is_clustered else "samples"
        if self.units < MIN_UNITS:
            return f"{self.units:.3g} {noun} are too few for a bootstrap, which needs at least {MIN_UNITS}"
        min_samples = max((MIN_VALUES_BEYOND / min(share, 1 - share) for share in shares), default=0.0)
        if self.n < min_samples - 1e-9:
            percent = f"{100 * shares[0]:g}th percentile"
            return f"{self.n} samples are too few for a bootstrap of the {percent}, which needs {min_samples:.0f}"
        return self._check_draws()

    @property
    def method(self) -> str:
        """The name of the method, or the reason why there is no estimate."""
        if self.problem or not self.n:
            return self.problem
        count = len({*self.clusters[0], *self.clusters[1]}) if self.is_clustered else None
        sizes = dict.fromkeys(f"{size:,}" for size in self.sizes) if not self.paired else [f"{self.n:,}"]
        return f"{BOOTSTRAP} {add_clusters(' and '.join(sizes) + ' samples', count)}"

    def interval(self, confidence: float = 0.95, factor: float = 1.0) -> Interval | None:
        """Return the interval of the first number minus `factor` times the second."""
        if self.problem or not self.n:
            return None
        return self._resampled([a - factor * b for a, b in self._defined_draws]).interval(confidence)

    def make_delta(self, name: str) -> MetricDelta:
        """Return the delta without its verdict, which depends on all other deltas."""
        a, b = self.values
        pairs = self.n if self.paired else 0
        delta = MetricDelta(
            name,
            a,
            b,
            None if a is None or b is None else a - b,
            n=self.n,
            a_interval=self._statistics[0].value.interval,
            b_interval=self._statistics[1].value.interval,
            method=self.method,
            only_a=len(self._statistics[0].samples) - pairs,
            only_b=len(self._statistics[1].samples) - pairs,
            paired=self.paired,
            clusters=len({*self.clusters[0], *self.clusters[1]}) if self.is_clustered else None,
            units=self.units if self.is_clustered else None,
        )
        if delta.absolute is not None and b:
            delta = msgspec.structs.replace(delta, percentage=100 * delta.absolute / abs(b))
        if self.problem or not self.n:
            return delta
        difference = self._resampled([first - second for first, second in self._defined_draws])
        a_interval, b_interval = (self._resampled(side).interval() for side in zip(*self._defined_draws, strict=True))
        interval = difference.interval()
        return msgspec.structs.replace(
            delta,
            interval=interval,
            percentage_interval=self._find_percentage_interval(interval, difference.error),
            a_interval=a_interval,
            b_interval=b_interval,
            p=difference.p() if delta.absolute is not None else None,
            error=difference.error or None,
        )

    def _find_percentage_interval(self, interval: Interval, error: float) -> Interval | None:
        a, b = self.values
        if a is None or b is None or any(min(side) < 0 for side in zip(*self._defined_draws, strict=True)):
            return None
        errors = [self._resampled(side).error for side in zip(*self._defined_draws, strict=True)]
        ratio = ratio_interval((a, b), (errors[0], errors[1], error), interval)
        return ratio and (100 * (ratio[0] - 1), 100 * (ratio[1] - 1))

    def _check_draws(self) -> str:
        undefined = len(self._draws) - len(self._defined_draws)
        if undefined > MAX_UNDEFINED * len(self._draws):
            return f"the metric has no value in {undefined:,} of {len(self._draws):,} resamples"
        if any(statistic.share is None and self._is_extreme(i) for i, statistic in enumerate(self._statistics)):
            return SINGLE_SAMPLES
        return ""

    def _is_extreme(self, side: int) -> bool:
        """True if most resamples repeat the observed number and the others all lie on one side of it."""
        observed, drawn_values = self.values[side], [values[side] for values in self._defined_draws]
        if observed is None:
            return False
        below, above = sum(x < observed for x in drawn_values), sum(x > observed for x in drawn_values)
        return 0 < below + above < len(drawn_values) / 2 and not (below and above)

    @cached_property
    def _draws(self) -> list[tuple[float | None, float | None]]:
        return resample(self._strata, self._compute, resamples=RESAMPLES)

    @cached_property
    def _defined_draws(self) -> list[tuple[float, float]]:
        return [(a, b) for a, b in self._draws if a is not None and b is not None]

    def _resampled(self, values: Sequence[float]) -> Resampled:
        return Resampled(values, self.units)

    @property
    def _strata(self) -> list[list[Unit]]:
        """The units that are drawn together; two groups without a common cluster are drawn separately."""
        first, second = (_group(*side) for side in zip(self._samples, self.clusters, strict=True))
        if self.paired or first.keys() & second.keys():
            return [[(first.get(name, ()), second.get(name, ())) for name in {**first, **second}]]
        return [[(ids, ()) for ids in first.values()], [((), ids) for ids in second.values()]]

    def _compute(self, units: Iterable[Unit]) -> tuple[float | None, float | None]:
        drawn_units = list(units)
        a, b = (
            statistic.compute_for(list(chain.from_iterable(unit[i] for unit in drawn_units)))
            for i, statistic in enumerate(self._statistics)
        )
        return a, b


def request_metrics(a: Side, b: Side, names: Iterable[str], *, estimate: bool = True) -> tuple[Side, Side]:
    """Add named metrics that are not compared by default; names that neither side has are left out.

    Without `estimate`, metrics that need a bootstrap have no interval.
    """
    for name in names:
        is_custom = any(MetricRegistry(side.custom_metrics).find_owners(name) for side in (a, b))
        if not is_custom and (a.find(name) or b.find(name)):
            continue
        sources = _find_source(a, name), _find_source(b, name)
        if sources == (None, None):
            continue
        numbers = [source.read_numbers() if source is not None else None for source in sources]
        if any(values is not None for values in numbers):
            a, b = _add_numbers(a, b, name, sources, numbers)
            continue
        a, b = (
            side if source is None else _replace(side, name, source.make_statistic(estimate=estimate))
            for side, source in zip((a, b), sources, strict=True)
        )
    return a, b


def compare_statistic(a: Side, b: Side, name: str) -> BootstrapEvidence:
    """Return the evidence for the difference of a requested metric."""
    first, second = (side.statistics.get(name) or Statistic(MetricValue(None, 0), problem=MISSING) for side in (a, b))
    return first.compare(second, a, b)


def list_known_metrics(side: Side) -> list[str]:
    """List every metric that can be compared: metrics with a number per sample, and all metrics that a report
    prints."""
    stored_metrics = side.stored
    if side.results is not None and not stored_metrics:
        stored_metrics = _make_registry(side).compute_all(side.results)
    return list(
        dict.fromkeys([*side.names, *(name for name, metric in stored_metrics.items() if metric.value is not None)])
    )


class _Source:
    """A metric of a side by its printed name: its value and, if there is code, the metric."""

    def __init__(
        self, name: str, value: MetricValue, metric: Any = None, results: Results | None = None, is_custom: bool = True
    ) -> None:
        self.name, self.value = name, value
        self._metric, self._results = metric, results
        unitless = not is_custom and not value.unit
        self._kind: Kind = "rate" if value.kind == "rate" else "score" if unitless else "number"
        default_direction = higher_is_better(name) if is_custom else unitless
        self._higher_is_better = getattr(metric, "higher_is_better", default_direction)

    @cached_property
    def _by_sample(self) -> tuple[dict[str, list[float]], str | float] | None:
        """The numbers of each sample's trials, and the statistic that the metric computes from them."""
        read = getattr(self._metric, "trial_numbers", None)
        numbers = None if read is None else read(self._results).get(self.name)
        if numbers is None or self._results is None:
            return None
        by_sample: dict[str, list[float]] = {}
        for sample, value in zip(self._results.figures().sample_ids, numbers.values, strict=True):
            if value == value:
                by_sample.setdefault(sample, []).append(value)
        return by_sample, numbers.statistic

    def read_numbers(self) -> ValuesBySample | None:
        """Return the number of each sample if the metric is a mean or a total of one number per trial."""
        if self._by_sample is None or isinstance(self._by_sample[1], float):
            return None
        by_sample, statistic = self._by_sample
        return {name: fsum(values) / (len(values) if statistic == "mean" else 1) for name, values in by_sample.items()}

    def make_statistic(self, *, estimate: bool) -> Statistic:
        metric_properties: Any = {"kind": self._kind, "higher_is_better": self._higher_is_better}
        if self._metric is None or self._results is None or not estimate:
            return Statistic(self.value, problem=NO_CODE, **metric_properties)
        if self._by_sample is not None and isinstance(share := self._by_sample[1], float):
            numbers = self._by_sample[0]
            values_by_sample = ((value, name) for name, values in numbers.items() for value in values)
            return Statistic(self.value, numbers, Quantile(values_by_sample, share), share=share, **metric_properties)
        results: dict[str, list[EvalResult]] = {}
        for result in self._results:
            results.setdefault(result.sample_id, []).append(result)

        def compute(samples: Sequence[str]) -> float | None:
            drawn_results = ResultList(result for sample in samples for result in results[sample])
            value = compute_metric(self._metric, drawn_results).get(self.name)
            return None if value is None else value.value

        return Statistic(self.value, results, compute, **metric_properties)


def _make_registry(side: Side) -> MetricRegistry:
    if side.run is not None:
        return MetricRegistry.of_run(side.run.evaluators, side.run.fields, side.run.options.epochs)
    return MetricRegistry.standard(side.results.figures().scores if side.results is not None else ())


def _find_source(side: Side, name: str) -> _Source | None:
    stored = side.stored.get(name)
    by_value = None if stored is None or stored.value is None else _Source(name, stored)
    if side.results is None:
        return by_value
    for registry, is_custom in ((_make_registry(side), False), (MetricRegistry(side.custom_metrics), True)):
        for metric in registry.find_owners(name):
            value = compute_metric(metric, side.results).get(name)
            if value is not None:
                return None if value.value is None else _Source(name, value, metric, side.results, is_custom)
    return by_value


def _add_numbers(
    a: Side, b: Side, name: str, sources: Sequence[_Source | None], numbers: Sequence[ValuesBySample | None]
) -> tuple[Side, Side]:
    first, second = (values or {} for values in numbers)
    if any(source is not None and source.value.kind == "count" for source in sources):
        # A total is the mean of the pairs' numbers times their count.
        shared = (first.keys() & second.keys()) - (a.different_samples or set())
        if not shared and first and second:
            a, b = (
                _replace(side, name, Statistic(value, values, problem=UNPAIRED_TOTAL, higher_is_better=False))
                for side, values, value in zip((a, b), (first, second), [s.value for s in sources if s], strict=True)
            )
            return a, b
        count = len(shared) or 1
        first, second = ({sample: count * value for sample, value in values.items()} for values in (first, second))
    a, b = (
        msgspec.structs.replace(side, metrics={**side.metrics, name: values}) if values else side
        for side, values in ((a, first), (b, second))
    )
    return a, b


class Quantile:
    """A quantile of the trials of some samples, without sorting them again."""

    def __init__(self, values: Iterable[tuple[float, str]], share: float) -> None:
        ordered = sorted(values)
        self._values = [value for value, _ in ordered]
        self._owners = [sample for _, sample in ordered]
        self._share = share

    def __call__(self, samples: Sequence[str]) -> float | None:
        counts = Counter(samples)
        totals = list(accumulate([counts.get(owner, 0) for owner in self._owners]))
        if not totals or not totals[-1]:
            return None
        position = self._share * (totals[-1] - 1)
        below = int(position)
        low, high = (self._values[bisect_right(totals, min(rank, totals[-1] - 1))] for rank in (below, below + 1))
        return min(low + (position - below) * (high - low), high)


def _group(ids: Sequence[str], clusters: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, cluster in zip(ids, clusters, strict=True):
        groups.setdefault(cluster, []).append(name)
    return groups


def _replace(side: Side, name: str, statistic: Statistic) -> Side:
    return msgspec.structs.replace(side, statistics={**side.statistics, name: statistic})
