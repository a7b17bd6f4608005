"""One side of a comparison: its numbers by metric and sample."""

from __future__ import annotations

from array import array
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from itertools import compress
from math import fsum, isnan
from operator import eq
from typing import Any, TypeAlias

import msgspec

from proctor.comparison.totals import compute_total_shares
from proctor.metrics.builtin import read_answer_latencies
from proctor.records.comparison import list_aliases
from proctor.records.metric import MetricValue
from proctor.records.results import Figures, Results
from proctor.records.rubric import TOTAL_SCORE
from proctor.records.run import RunMetadata
from proctor.records.trial import OUTCOMES

SampleValue = tuple[str, float | None]
# The mean over the epochs of each sample.
ValuesBySample = Mapping[str, float]
ValuesByMetric = Mapping[str, ValuesBySample]
Numbers: TypeAlias = "Sequence[float] | array[float]"

PASS_RATE, STRICT_PASS_RATE, MEAN_SCORE = "pass_rate", "strict_pass_rate", "mean_score"
_PASS_RATE_SUFFIX = ".pass_rate"
LATENCY, TOKENS, COST = "latency_ms.mean", "tokens.mean", "cost.mean"
# Lower is better for the metrics with these prefixes.
LOWER_IS_BETTER = ("latency_ms.", "tokens.", "cost.", "judges.")
_NAN = float("nan")
# The values of outcomes in a pass rate; NaN leaves a trial out.
_PASS_VALUES = [{"passed": 1.0, "failed": 0.0}.get(outcome, _NAN) for outcome in OUTCOMES]
_STRICT_VALUES = [_NAN if outcome == "skipped" else float(outcome == "passed") for outcome in OUTCOMES]


class SampleNumbers(Mapping[str, float]):
    """The number of each sample as a column; a table is made only when a single sample is looked up.

    The columns of a side share the list of ids, so that comparing them needs no table.
    """

    __slots__ = ("_table", "ids", "numbers")

    def __init__(self, ids: list[str], numbers: array[float]) -> None:
        self.ids = ids
        self.numbers = numbers
        self._table: dict[str, float] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __getitem__(self, name: str) -> float:
        return self.table[name]

    def __contains__(self, name: object) -> bool:
        return name in self.table

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SampleNumbers) and self.ids == other.ids:
            return self.numbers == other.numbers
        return Mapping.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def table(self) -> dict[str, float]:
        """The numbers by sample."""
        if self._table is None:
            self._table = dict(zip(self.ids, self.numbers, strict=True))
        return self._table

    def items(self) -> ItemsView[str, float]:
        return self.table.items()

    def values(self) -> ValuesView[float]:
        return _Numbers(self)


class _Numbers(ValuesView[float]):
    """Iterates over a column without its table."""

    _mapping: SampleNumbers

    def __iter__(self) -> Iterator[float]:
        return iter(self._mapping.numbers)


def align_numbers(numbers: ValuesBySample, ids: Sequence[str]) -> Sequence[float | None]:
    """Return the numbers of some samples in order; None for a sample without a number."""
    if isinstance(numbers, SampleNumbers):
        # Most often, these are the samples of the column, in the same order.
        return numbers.numbers if numbers.ids == ids else list(map(numbers.table.get, ids))
    return list(map(numbers.get, ids))


class Side(msgspec.Struct, frozen=True):
    """A run, or one configuration of it, as numbers that can be compared.

    `clusters` maps samples to their cluster; None if no sample names one. `without_verdict` counts the trials that
    failed or could not be scored. `results` are the source of the numbers, and `figures` their columns.
    `different_samples` cannot be paired although the other side has the same ids; None before the contents were
    compared. `changed_expected` are those with the same input and another expected value. `unpaired` excludes all
    samples from pairing: the sides are two groups. `stored` holds the metrics of the report, `custom_metrics` is the
    code of custom metrics. `statistics` are the requested metrics that have no number per sample.
    """

    name: str
    metrics: ValuesByMetric = {}
    scores: ValuesByMetric = {}
    fields: ValuesByMetric = {}
    clusters: dict[str, str] | None = None
    samples: tuple[str, ...] = ()
    without_verdict: int = 0
    run: RunMetadata | None = None
    results: Results | None = None
    figures: Figures | None = None
    different_samples: frozenset[str] | None = None
    changed_expected: frozenset[str] = frozenset()
    unpaired: bool = False
    stored: Mapping[str, MetricValue] = {}
    custom_metrics: tuple[Any, ...] = ()
    statistics: dict[str, Any] = {}

    def find(self, metric: str) -> ValuesBySample | None:
        """Return the numbers of a metric, score or field; also accepts the names that reports use."""
        for alias in list_aliases(metric):
            for table in (self.metrics, self.scores, self.fields):
                if alias in table:
                    return table[alias]
        return None

    def read_figures(self) -> Figures | None:
        """Return the columns of the results; they are read if the side does not have them; None without results."""
        return self.results.figures() if self.figures is None and self.results is not None else self.figures

    @property
    def has_epochs(self) -> bool:
        """True if each sample was run several times."""
        return self.run is not None and self.run.options.epochs > 1

    def list_epochs(self, metric: str) -> list[tuple[str, float]]:
        """Return the sample and the 0 or 1 of each trial; empty without epochs, and for numbers other than 0 and 1."""
        figures = self.read_figures() if self.has_epochs else None
        if figures is None:
            return []
        column = next(filter(None, (_find_column(figures, alias) for alias in list_aliases(metric))), ())
        trials = [(name, value) for name, value in zip(figures.sample_ids, column, strict=False) if value == value]
        return trials if all(value in (0.0, 1.0) for _, value in trials) else []

    def share_samples(self, other: Side) -> set[str]:
        """Return the ids of the samples that both sides have, also those with different contents."""
        ids = set(self.samples)
        return ids if self.samples == other.samples else ids.intersection(other.samples)

    @property
    def names(self) -> list[str]:
        """The names of all metrics, scores and fields."""
        return [*self.metrics, *self.scores, *self.fields]


def make_side(
    name: str,
    results: Results,
    run: RunMetadata | None = None,
    *,
    fields: ValuesByMetric | None = None,
    scores: ValuesByMetric | None = None,
) -> Side:
    """Make a side from the results of one configuration.

    Without `scores`, the scores of each evaluator are read from the results.
    """
    figures = results.figures()
    ids = figures.sample_ids
    metrics, columns = _list_metric_columns(figures, run), _list_score_columns(figures) if scores is None else {}
    samples = tuple(dict.fromkeys(ids))
    averages = _average_columns(ids, [*metrics.values(), *columns.values()], has_epochs=len(samples) < len(ids))
    clusters = None
    if figures.clusters is not None:
        clusters = {s: c or s for s, c in zip(ids, figures.clusters, strict=True)}
    return Side(
        name,
        {name: numbers for name, numbers in zip(metrics, averages, strict=False) if numbers},
        {name: numbers for name, numbers in zip(columns, averages[len(metrics) :], strict=True) if numbers}
        if scores is None
        else scores,
        fields or {},
        clusters,
        samples,
        sum(figures.outcomes.count(OUTCOMES.index(outcome)) for outcome in ("error", "unscored")),
        run,
        results,
        figures,
    )


def average_by_sample(readings: Iterable[SampleValue]) -> ValuesBySample:
    """Average the numbers of each sample, so that more epochs do not give it more weight."""
    known_readings = [(name, value) for name, value in readings if value is not None]
    ids = [name for name, _ in known_readings]
    return _average(ids, [value for _, value in known_readings], has_epochs=len(set(ids)) < len(ids))


def _list_metric_columns(figures: Figures, run: RunMetadata | None) -> dict[str, Numbers]:
    columns: dict[str, Numbers | None] = {
        PASS_RATE: _find_column(figures, PASS_RATE),
        STRICT_PASS_RATE: _find_column(figures, STRICT_PASS_RATE),
        MEAN_SCORE: figures.values,
        # Compared as a fraction from 0 to 1, and shown on its scale.
        TOTAL_SCORE: compute_total_shares(figures, run),
        LATENCY: read_answer_latencies(figures),
        TOKENS: figures.tokens,
        COST: figures.costs,
    }
    return {name: column for name, column in columns.items() if column}


def _find_column(figures: Figures, metric: str) -> Numbers | None:
    """Return the column of a metric that may be a rate."""
    if metric in (PASS_RATE, STRICT_PASS_RATE):
        table = _PASS_VALUES if metric == PASS_RATE else _STRICT_VALUES
        return list(map(table.__getitem__, figures.outcomes))
    if metric == MEAN_SCORE:
        return figures.values
    return figures.scores.get(metric) or figures.passes.get(metric.removesuffix(_PASS_RATE_SUFFIX))


def _list_score_columns(figures: Figures) -> dict[str, Numbers]:
    columns: dict[str, Numbers] = {}
    for name, values in figures.scores.items():
        columns |= {name: values, f"{name}{_PASS_RATE_SUFFIX}": figures.passes[name]}
    return columns


def _average_columns(ids: list[str], columns: Sequence[Numbers], *, has_epochs: bool) -> list[SampleNumbers]:
    """Average each column by sample; equal columns, as of an evaluator that only passes or fails, once."""
    averages: dict[bytes, SampleNumbers] = {}
    keys = [array("d", column).tobytes() for column in columns]
    for key, column in zip(keys, columns, strict=True):
        if key not in averages:
            averages[key] = _average(ids, column, has_epochs=has_epochs)
    return [averages[key] for key in keys]


def _average(ids: list[str], values: Numbers, *, has_epochs: bool) -> SampleNumbers:
    if isnan(sum(values)):
        # NaN, a missing number, is not equal to itself.
        known = bytes(map(eq, values, values))
        ids, values = list(compress(ids, known)), list(compress(values, known))
    if not has_epochs:
        return SampleNumbers(ids, array("d", values))
    by_sample: dict[str, list[float]] = {name: [] for name in ids}
    for name, value in zip(ids, values, strict=True):
        by_sample[name].append(value)
    means = array("d", (fsum(numbers) / len(numbers) for numbers in by_sample.values()))
    return SampleNumbers([*by_sample], means)


def drop_duplicate_pass_rates(a: Side, b: Side) -> tuple[Side, Side]:
    """Drop the pass rates of evaluators whose scores are 0 or 1 on both sides."""
    rates = {name for side in (a, b) for name in side.scores if name.endswith(_PASS_RATE_SUFFIX)}
    duplicates = {
        rate
        for rate in rates
        if all(_has_same_scores(side, rate.removesuffix(_PASS_RATE_SUFFIX), rate) for side in (a, b))
    }

    def drop(side: Side) -> Side:
        scores = {name: numbers for name, numbers in side.scores.items() if name not in duplicates}
        return msgspec.structs.replace(side, scores=scores)

    return drop(a), drop(b)


def _has_same_scores(side: Side, name: str, other: str) -> bool:
    scores, others = side.scores.get(name), side.scores.get(other)
    # Comparing a large table with itself would take long.
    return scores is others or scores == others


def is_latency_of_two_runs(metric: str, *sides: Side) -> bool:
    """True if a metric is a latency, and the sides are different runs, measured at different moments."""
    runs = {side.run.run_id for side in sides if side.run is not None}
    return len(runs) > 1 and is_latency(metric, *sides)


def is_latency(metric: str, *sides: Side) -> bool:
    """True if a metric, or the field of that name on a side, is the target's latency."""
    fields = [side.run.fields for side in sides if side.run is not None]
    paths = {metric, *(selected.get(metric, metric) for selected in fields)}
    return any(f"{path}.".startswith("latency_ms.") for path in paths)


def find_clusters(samples: Sequence[str], *by_side: Mapping[str, str] | None) -> list[str] | None:
    """Return the cluster of each sample, from either side; None if no two samples share a cluster."""
    known_clusters = [clusters for clusters in by_side if clusters]
    if not known_clusters:
        return None
    names = [next((clusters[s] for clusters in known_clusters if s in clusters), s) for s in samples]
    return names if len(set(names)) < len(names) else None
