"""The report of a run: its metrics and results, and its configurations and fields compared and ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from proctor.comparison.rows import make_row, to_pandas, to_polars
from proctor.core.imports import REPORTERS, load_plugin
from proctor.errors import ConfigError, FieldMissing, suggest_name
from proctor.records.comparison import MIN_DIFFERENCE, Comparison, Ranking, list_aliases
from proctor.records.fields.field_result import FieldResult, FieldResults, FieldScore
from proctor.records.fields.path import parse_path
from proctor.records.fields.view import view_as_mapping
from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.records.numbers import as_number
from proctor.records.results import Counts, ResultList, Results
from proctor.records.rubric import TOTAL_SCORE
from proctor.records.run import RunMetadata
from proctor.records.score import SKIPPED_BY_DESIGN, Score, read_parts
from proctor.records.trial import EvalResult

# Most runs compare nothing, so the modules of comparisons are imported in the methods that need them.
if TYPE_CHECKING:
    from proctor.comparison.ranking import RankingEntry
    from proctor.comparison.sides import SampleValue, Side, ValuesByMetric, ValuesBySample
    from proctor.metrics.registry import MetricLike
    from proctor.records.slices import LabelReport, Slices

MetricTable = Mapping[str, MetricValue]
ByConfiguration = dict[str, "list[SampleValue]"]


class _Readings(NamedTuple):
    fields: dict[str, ByConfiguration]
    scores: dict[str, ByConfiguration]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class EvalReport:
    """A run: its metadata, its metrics, and its results, which may be read lazily from disk.

    Every entry point returns one: `evaluate`, `rescore`, `EvalRunner.run`, `collect_results` and `report` of a
    history. It cannot be changed. `pass_rate` covers the results with a verdict; `strict_pass_rate` counts errors as
    not passed. Both are None if there are no such results.

    >>> EvalReport([]).pass_rate is None
    True
    """

    results: Results
    metadata: RunMetadata | None
    metrics: MetricTable
    by_configuration: Mapping[str, MetricTable]
    # False with `history=False`: no command can show the run.
    is_stored = True

    def __init__(
        self,
        results: Results | list[EvalResult] | tuple[EvalResult, ...] = (),
        metadata: RunMetadata | None = None,
        metrics: MetricTable | None = None,
        by_configuration: Mapping[str, MetricTable] | None = None,
    ) -> None:
        tables = {name: MappingProxyType(dict(table)) for name, table in (by_configuration or {}).items()}
        vars(self).update(
            results=ResultList(results) if isinstance(results, list | tuple) else results,
            metadata=metadata,
            metrics=MappingProxyType(dict(metrics or {})),
            by_configuration=MappingProxyType(tables),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings cannot be pickled.
        tables = {name: dict(table) for name, table in self.by_configuration.items()}
        return type(self), (self.results, self.metadata, dict(self.metrics), tables)

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"<EvalReport {self.run_id}: {counts.passed} passed, {counts.failed} failed, "
            f"{format_count(self.errors, 'error')}, {counts.skipped} skipped>"
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
        """The number of results without an error: passed, failed or skipped. With `errors` it adds up to `total`."""
        return self.total - self.errors

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
        """The share that passed, with errors counted as not passed. Gates use this rate."""
        return _divide(self.counts.passed, self.counts.total - self.counts.skipped)

    @cached_property
    def mean_score(self) -> float | None:
        """The mean of the combined scores."""
        values = self.results.column().values
        return _divide(fsum(values), len(values))

    @cached_property
    def mean_latency_ms(self) -> float | None:
        """The mean latency of a trial in milliseconds, failed calls included; `latency_ms.mean` leaves them out."""
        values = self.results.latencies().values
        return _divide(fsum(values), len(values))

    def failed_samples(self) -> tuple[EvalResult, ...]:
        """Return the results that have a verdict and did not pass."""
        return tuple(self.results.page(outcome="failed", limit=max(1, self.total)))

    @property
    def passed(self) -> bool:
        """True if every trial got a verdict and passed, and every selected field is in some result.

        A skipped trial did not pass, unless the run ignores skips and another trial passed.
        """
        counts = self.counts
        ignored = counts.skipped
        if ignored and (self.metadata is None or self.metadata.options.skipped != "ignore"):
            # Scores that are left out by design are not missing.
            page = self.results.page(outcome="skipped", limit=counts.skipped)
            ignored = sum(result.score.reason in SKIPPED_BY_DESIGN for result in page)
        is_passed = counts.passed > 0 and counts.passed + ignored == counts.total
        return is_passed and not self.missing_fields

    @property
    def _fields(self) -> Mapping[str, str]:
        return self.metadata.fields if self.metadata else {}

    @cached_property
    def missing_fields(self) -> Mapping[str, FieldMissing]:
        """The selected fields that no successful result has, by name, with the error of each."""
        paths = {name: parse_path(path) for name, path in self._fields.items()}
        missing: dict[str, FieldMissing] = {}
        for result in self.results if paths else ():
            if not result.success:
                continue
            view = self._view(result)
            for name, path in list(paths.items()):
                try:
                    if not _was_evaluated(result.scores.get(name)):
                        path.find(view)
                    del paths[name]
                except FieldMissing as error:
                    missing.setdefault(name, error)
            if not paths:
                break
        return MappingProxyType({name: error for name, error in missing.items() if name in paths})

    @cached_property
    def configurations(self) -> tuple[str, ...]:
        """The names of the configurations."""
        if self.metadata is None:
            return tuple(dict.fromkeys(result.trial.configuration for result in self.results))
        return tuple(configuration.name for configuration in self.metadata.configurations)

    @cached_property
    def field_results(self) -> Mapping[str, FieldResult]:
        """The scores of the evaluators by field; an error for a failed trial."""
        names = [spec.name for spec in self.metadata.evaluators] if self.metadata else []
        scores: dict[str, list[FieldScore]] = {name: [] for name in names}
        for result in self.results:
            trial = result.trial
            failed = Score.error(str(trial.error)) if trial.error else None
            for field in names:
                score = failed or result.scores.get(field)
                if score is not None:
                    where = result.sample_id, trial.configuration, trial.epoch
                    scores[field].append(FieldScore(*where, score, read_parts(score)))
        return MappingProxyType(FieldResults({field: FieldResult(field, tuple(s)) for field, s in scores.items()}))

    def compare(
        self,
        a: str,
        b: str,
        *,
        metrics: Sequence[MetricLike] | None = None,
        better: Mapping[str, bool | None] | None = None,
        min_difference: float = MIN_DIFFERENCE,
        by: str | None = None,
    ) -> Comparison:
        """Compare configuration `a` with `b`: pass rates, scores, fields, times and costs.

        Deltas are a minus b, percentages are relative to b. `metrics` restricts the comparison,
        `better` maps a field to True if higher values are better, and `min_difference` is the smallest relevant
        difference. `by` is a metadata key, or "tags": the `slices` of the comparison are then compared too.
        """
        from proctor.comparison.compare import compare

        return compare(self.side(a), self.side(b), metrics=metrics, better=better, min_difference=min_difference, by=by)

    def compare_with_baseline(self) -> list[Comparison]:
        """Compare every other configuration with the run's baseline; empty if the run has none."""
        run = self.metadata
        if run is None or run.baseline is None or not self.total:
            return []
        from proctor.comparison.compare import compare_all
        from proctor.comparison.flips import add_flip_texts

        baseline = self.side(run.baseline)
        pairs = [(self.side(name), baseline) for name in self.configurations if name != run.baseline]
        return [add_flip_texts(found, *pair) for found, pair in zip(compare_all(pairs), pairs, strict=True)]

    def pair_siblings(self, a: str, b: str) -> list[tuple[str, str]]:
        """Pair the other configurations with the baseline if `a` or `b` is the baseline of this run.

        Their tests count in the correction for many tests, so that a pair has one verdict wherever it is shown.
        """
        baseline = None if self.metadata is None else self.metadata.baseline
        if baseline not in (a, b):
            return []
        others = [name for name in self.configurations if name not in (a, b)]
        return [(name, b) if b == baseline else (a, name) for name in others]

    def for_configuration(self, configuration: str) -> EvalReport:
        """Return the report of one configuration."""
        self._require_configuration(configuration)
        run = self.metadata
        if run is not None:
            configurations = tuple(each for each in run.configurations if each.name == configuration)
            run = msgspec.structs.replace(run, configurations=configurations, baseline=None)
        metrics = self.by_configuration.get(configuration, self.metrics)
        return EvalReport(self.results.for_configuration(configuration), run, metrics)

    def _require_configuration(self, name: str) -> None:
        if name not in self.configurations:
            raise ConfigError(
                f"unknown configuration {name!r} in this run", fix=suggest_name(name, self.configurations)
            )

    def by(self, key: str) -> Slices:
        """Return the metrics by the values of a metadata key, which may be nested (`user.plan`), or by "tags".

        Each slice has the metrics of every configuration. More than 12 different numbers become at most 5 ranges. If
        the run has a baseline, or two configurations, the notes name the slices that contradict the total.
        """
        from proctor.comparison.compare import compare_all
        from proctor.comparison.slices import slice_results

        total = {name: dict(self.by_configuration.get(name, self.metrics)) for name in self.configurations}
        slices = slice_results(self.results, self.metadata, self.configurations, key, total)
        baseline = self.metadata.baseline if self.metadata else None
        if baseline is None and len(self.configurations) == 2:
            baseline = self.configurations[1]
        pairs = [
            (self.side(name), self.side(baseline)) for name in self.configurations if baseline and name != baseline
        ]
        notes = [
            f"{comparison.a} compared with {comparison.b}: {note}"
            for comparison in compare_all(pairs, by=key)
            if comparison.slices is not None
            for note in comparison.slices.notes
        ]
        return msgspec.structs.replace(slices, notes=tuple(notes))

    def labels(self) -> tuple[LabelReport, ...]:
        """Return precision, recall, F1 and a confusion table of each configuration, if its outputs are labels.

        Outputs are labels if they and the expected values are short texts from a small set; otherwise `problem` says
        why not. Texts are compared without surrounding spaces, in any case.
        """
        from proctor.comparison.labels import measure_labels

        return tuple(measure_labels(name, self.results.for_configuration(name)) for name in self.configurations)

    def side(self, configuration: str | None = None, name: str | None = None) -> Side:
        """Return one configuration as a side of a comparison; the only one by default."""
        from proctor.comparison.sides import make_side

        selected = configuration if configuration is not None else self._only_configuration()
        self._require_configuration(selected)
        side = self._sides.get(selected)
        if side is None:
            side = make_side(
                selected,
                self.results.for_configuration(selected),
                self.metadata,
                fields=_average_table(self._readings.fields, selected),
                # The scores inside a field's score are only in the results themselves.
                scores=_average_table(self._readings.scores, selected) if self._fields else None,
            )
            side = msgspec.structs.replace(side, stored=self.by_configuration.get(selected, self.metrics))
            if self.metadata is None or self.metadata.status not in ("running", "submitted"):
                self._sides[selected] = side
        return msgspec.structs.replace(side, name=name or selected)

    def _only_configuration(self) -> str:
        if len(self.configurations) == 1:
            return self.configurations[0]
        if not self.configurations:
            raise ConfigError("the report has no results to compare", fix="compare runs that have results")
        raise ConfigError(
            f"run {self.run_id} has {len(self.configurations)} configurations",
            fix=f"name one of: {', '.join(self.configurations)}",
        )

    def rank_by(self, field: str, order: str = "asc") -> Ranking:
        """Rank the configurations by a field, a path, a metric, or an evaluator's score.

        "asc" puts the lowest first. Ties are sorted by name; configurations without a number come last.
        """
        from proctor.comparison.ranking import rank

        return rank(field, order, self.ranking_entries(field))

    def ranking_entries(self, field: str) -> dict[str, RankingEntry]:
        """Return the numbers that the configurations are ranked by."""
        from proctor.comparison.ranking import RankingEntry
        from proctor.comparison.sides import average_by_sample, is_latency, make_side

        readings = None
        if self._fields:
            readings = self._readings.fields.get(field) or self._readings.scores.get(field)
        if readings is None:
            sides = {name: self.side(name) for name in self.configurations}
            tables = {name: side.find(field) for name, side in sides.items()}
            if any(numbers is not None for numbers in tables.values()):
                run = self.run_id if is_latency(field, *sides.values()) else ""
                entries = {}
                for name, side in sides.items():
                    numbers = self._scale_totals(field, tables[name] or {})
                    entries[name] = RankingEntry(
                        numbers, side.clusters, len(side.samples) - len(numbers), run, side.list_epochs(field)
                    )
                return entries
            readings = self._read_unselected_path(field)
        all_values = [value for values in readings.values() for _, value in values]
        if all_values and all(value is None for value in all_values):
            raise ConfigError(
                f"the field {field!r} has no numbers to rank by", fix=f"rank by one of: {', '.join(self._names)}"
            )
        sides = {name: make_side(name, self.results.for_configuration(name), self.metadata) for name in readings}
        run = self.run_id if is_latency(field, *sides.values()) else ""
        return {
            name: RankingEntry(
                average_by_sample(values), sides[name].clusters, sum(value is None for _, value in values), run
            )
            for name, values in readings.items()
        }

    def _scale_totals(self, metric: str, numbers: ValuesBySample) -> ValuesBySample:
        from proctor.comparison.totals import find_total_scale, share_to_scale

        scale = find_total_scale(self.metadata)
        if scale is None or TOTAL_SCORE not in list_aliases(metric):
            return numbers
        return {sample: share_to_scale(share, scale) for sample, share in numbers.items()}

    def _read_unselected_path(self, path: str) -> ByConfiguration:
        try:
            return self._read_path(path)
        except FieldMissing as missing:
            suggestion = suggest_name(path, self._names)
            if path in self.metrics:
                # A percentile or a sum.
                what = f"{path} has no value per sample, so it cannot be ranked"
                raise FieldMissing(what, fix=suggestion) from None
            if suggestion.startswith("did you mean"):
                raise FieldMissing(f"unknown metric or field {path!r}", fix=suggestion) from None
            if "." in path:
                raise FieldMissing(missing.what, where=missing.where, fix=missing.fix or suggestion) from None
            fields = missing.fix.partition("choose one of: ")[2]
            fix = f"choose a metric ({', '.join(self._names)})" + (f" or a field ({fields})" if fields else "")
            raise FieldMissing(f"unknown metric or field {path!r}", fix=fix) from None

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(n for c in self.configurations for n in self.side(c).names))

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping for each trial: input, output, scores with status and reason, metadata, usage and fields.

        A selected field replaces the column of the same name.
        """
        return list(self.iter_rows())

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows one at a time, so that a large run does not fill the memory."""
        paths = {name: parse_path(path) for name, path in self._fields.items()}
        for result in self.results:
            view = self._view(result) if paths else {}
            fields = {
                name: path.find(view) if result.success and path.exists(view) else None for name, path in paths.items()
            }
            yield make_row(result, fields)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame; needs the extra `pandas`."""
        return to_pandas(self.rows())

    def to_polars(self) -> Any:
        """Return the rows as a Polars DataFrame; needs the extra `polars`.

        Columns of several types, lists and mappings become JSON texts.
        """
        return to_polars(self.rows())

    def __str__(self) -> str:
        """Return the report as `proctor show` prints it."""
        return self._render("text") or repr(self)

    def _repr_html_(self) -> str | None:
        """Return a table for notebooks."""
        return self._render("notebook") or None

    def _render(self, format_name: str) -> str:
        # Report formats are a higher layer, so they are found by name.
        reporter = load_plugin(REPORTERS, format_name)
        return "" if reporter is None else str(reporter(self)).rstrip("\n")

    def require_fields(self) -> None:
        """Raise `FieldMissing` if a successful trial lacks a selected field."""
        for result in self.results:
            if result.success:
                view = self._view(result)
                for name, path in self._fields.items():
                    if not _was_evaluated(result.scores.get(name)):
                        parse_path(path).find(view)

    def _view(self, result: EvalResult) -> dict[str, Any]:
        """Return a result as its evaluators see it, with the configuration's options."""
        view = view_as_mapping(result.trial)
        view["configuration"] |= self._options.get(result.trial.configuration, {})
        return view

    @cached_property
    def _sides(self) -> dict[str, Side]:
        """The sides that were made so far; a comparison, its siblings and its slices use the same ones."""
        return {}

    @cached_property
    def _options(self) -> dict[str, dict[str, Any]]:
        run = self.metadata
        return (
            {} if run is None else {configuration.name: configuration.options for configuration in run.configurations}
        )

    @cached_property
    def _readings(self) -> _Readings:
        """The selected fields and all scores, read in one pass; empty if no field is selected."""
        fields = {name: self._empty() for name in self._fields}
        scores: dict[str, ByConfiguration] = {}
        paths = {name: parse_path(path) for name, path in self._fields.items()}
        for result in self.results if paths else ():
            configuration, view = result.trial.configuration, self._view(result)
            for name, path in paths.items():
                value = path.find(view) if result.success and path.exists(view) else None
                fields[name][configuration].append((result.sample_id, as_number(value)))
            for name, score in _list_scores(result):
                # A field's name refers to the field's numbers, so its score is "name.score".
                by_configuration = scores.setdefault(f"{name}.score" if name in paths else name, self._empty())
                by_configuration[configuration].append((result.sample_id, as_number(score.value)))
        return _Readings(fields, scores)

    def _read_path(self, path: str) -> ByConfiguration:
        readings, field = self._empty(), parse_path(path)
        is_present, missing = False, None
        for result in self.results:
            value = None
            if result.success:
                try:
                    value, is_present = field.find(self._view(result)), True
                except FieldMissing as error:
                    missing = error
            readings[result.trial.configuration].append((result.sample_id, as_number(value)))
        if missing is not None and not is_present:
            raise missing
        return readings

    def _empty(self) -> ByConfiguration:
        return {name: [] for name in self.configurations}


def _was_evaluated(score: Score | None) -> bool:
    """True if an evaluator read the field: a stored object may lack properties of the original."""
    return score is not None and any(part.ok for part in read_parts(score).values())


def _average_table(readings: Mapping[str, ByConfiguration], configuration: str) -> ValuesByMetric:
    from proctor.comparison.sides import average_by_sample

    table = {name: average_by_sample(values.get(configuration, ())) for name, values in readings.items()}
    return {name: numbers for name, numbers in table.items() if numbers}


def _list_scores(result: EvalResult) -> Iterator[tuple[str, Score]]:
    for name, score in result.scores.items():
        yield name, score
        for part, part_score in read_parts(score).items():
            yield f"{name}.{part}", part_score


def _divide(total: float, count: int) -> float | None:
    return total / count if count else None
