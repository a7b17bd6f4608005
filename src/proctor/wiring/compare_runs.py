"""Compare and rank runs and configurations, given as reports or by name."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.compare import COMBINED_METRICS, compare_all, describe_incomplete_run, find_evaluator_changes
from proctor.comparison.contents import unpair_sides
from proctor.comparison.coverage import compute_coverage
from proctor.comparison.describe import describe_no_pairs
from proctor.comparison.flips import FLIP_TEXTS, add_flip_texts
from proctor.comparison.ranking import RankingEntry
from proctor.comparison.ranking import rank as rank_values
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import LOWER_IS_BETTER, Side
from proctor.comparison.totals import describe_scale_difference, find_total_scale
from proctor.core.resources import suggest_file
from proctor.errors import ConfigError, RunNotFound, UsageError, suggest_name
from proctor.metrics.registry import MetricLike, to_metric
from proctor.ports import History, Metric
from proctor.records.comparison import MIN_DIFFERENCE, Comparison, Ranking, list_aliases
from proctor.records.numbers import higher_is_better
from proctor.records.rubric import TOTAL_SCORE
from proctor.wiring.open_history import load_report, open_history

HistoryLike = History | str | Path | bool | None
AT = "@"
EVAL_FILE_SUFFIXES = (".yaml", ".yml")


class OpenedRun(NamedTuple):
    """A report with its display name, the configuration to compare (None for all), and the code of custom metrics."""

    label: str
    report: EvalReport
    configuration: str | None = None
    custom_metrics: tuple[Metric, ...] = ()

    @property
    def configurations(self) -> tuple[str, ...]:
        """The configurations to compare."""
        return self.report.configurations if self.configuration is None else (self.configuration,)

    def side(self, configuration: str, name: str | None = None) -> Side:
        """Return one configuration as a side of a comparison."""
        side = self.report.side(configuration, name)
        return msgspec.structs.replace(side, custom_metrics=self.custom_metrics)


def compare(
    a: EvalReport | str,
    b: EvalReport | str,
    *,
    history: HistoryLike = None,
    configuration: str | None = None,
    metrics: Sequence[MetricLike] | None = None,
    better: Mapping[str, bool | None] | None = None,
    min_difference: float = MIN_DIFFERENCE,
    accept_changes: bool = False,
    by: str | None = None,
    unpaired: bool = False,
) -> Comparison:
    """Compare run `a` with run `b`: the difference a - b, in percent of b, and whether it is significant.

    Each is a report, or a run in the history: its id, its name, a baseline or "latest", followed by `@` and a
    configuration if it has several; `configuration` selects the same configuration in both. `metrics` limits the
    comparison to some metrics: names that a report prints, or custom metrics. `better` sets whether higher is better
    for numbers whose name does not show it. Rates and scores that differ by less than `min_difference` count as equal.
    If the runs have different evaluators, metrics that combine all evaluators are not comparable, unless
    `accept_changes`. `by` is a metadata key, or "tags": the `slices` of the comparison are then compared too.
    Samples are paired by id; with `unpaired` the runs are two independent groups, which need no common sample.
    """
    first, second = open_pair(a, b, history=history, configuration=configuration)
    for side in (first, second):
        if len(side.configurations) != 1:
            side.report.side()  # Raises an error that lists the configurations.
    sides = build_sides(first, second)
    [comparison] = compare_sides(
        [sides],
        siblings=list_siblings(first, second, [sides]),
        unpaired=unpaired,
        metrics=metrics,
        better=better,
        min_difference=min_difference,
        accept_changes=accept_changes,
        by=by,
    )
    return add_flip_texts(comparison, *sides)


def add_custom_metrics(*runs: OpenedRun, custom_metrics: Sequence[Any]) -> tuple[OpenedRun, ...]:
    """Add the code of custom metrics, which a history does not store."""
    metrics = tuple(to_metric(metric) for metric in custom_metrics)
    return tuple(run._replace(custom_metrics=metrics) for run in runs)


def compare_configurations(
    first: OpenedRun,
    second: OpenedRun,
    *,
    metrics: Sequence[str] | None = None,
    min_difference: float = MIN_DIFFERENCE,
    accept_changes: bool = False,
    flips: int = FLIP_TEXTS,
    by: str | None = None,
    unpaired: bool = False,
) -> tuple[list[Comparison], tuple[str, ...]]:
    """Compare every configuration that both runs have; also return configurations that only one run has.

    The first `flips` samples that pass on one side only have their texts.
    """
    pairs, without_partner = pair_configurations(first, second)
    compared = [build_sides(*pair) for pair in pairs]
    comparisons = compare_sides(
        compared,
        siblings=list_siblings(first, second, compared),
        unpaired=unpaired,
        metrics=metrics,
        min_difference=min_difference,
        accept_changes=accept_changes,
        by=by,
    )
    return [
        add_flip_texts(comparison, *pair, flips) for comparison, pair in zip(comparisons, compared, strict=True)
    ], without_partner


def list_siblings(first: OpenedRun, second: OpenedRun, sides: Sequence[tuple[Side, Side]]) -> list[tuple[Side, Side]]:
    """Return the other comparisons of a run with its baseline, if the comparison of these `sides` is one of them."""
    if not _is_same_run(first, second) or not len(first.configurations) == len(second.configurations) == 1:
        return []
    siblings = first.report.pair_siblings(*first.configurations, *second.configurations)
    known = dict(zip((*first.configurations, *second.configurations), *sides, strict=True))
    return [(known.get(a) or first.side(a), known.get(b) or second.side(b)) for a, b in siblings]


def compare_sides(
    pairs: Sequence[tuple[Side, Side]],
    *,
    siblings: Sequence[tuple[Side, Side]] = (),
    unpaired: bool = False,
    **options: Any,
) -> list[Comparison]:
    """Compare pairs of sides; reject sides without a common sample, unless they are `unpaired` groups.

    The tests of `siblings`, which are compared elsewhere, count in the correction, so that a pair has one verdict.
    """
    if unpaired:
        pairs, siblings = ([unpair_sides(*pair) for pair in group] for group in (pairs, siblings))
    comparisons = compare_all(pairs, siblings=siblings, **options)
    for comparison in comparisons:
        if not (comparison.samples or comparison.unpaired or comparison.biased):
            raise ConfigError(
                describe_no_pairs(comparison),
                fix="compare runs of the same dataset; to compare these as two independent groups: proctor compare "
                f"{comparison.a_run or comparison.a} {comparison.b_run or comparison.b} --unpaired",
            )
    return comparisons


def pair_configurations(
    first: OpenedRun, second: OpenedRun
) -> tuple[list[tuple[OpenedRun, OpenedRun]], tuple[str, ...]]:
    """Pair configurations by name, or pair two single configurations; also return configurations without a partner."""
    if len(first.configurations) == len(second.configurations) == 1:
        return [(first, second)], ()
    shared = [name for name in first.configurations if name in second.configurations]
    if not shared:
        raise ConfigError(
            f"{first.label} and {second.label} have no configuration in common: "
            f"{', '.join(first.configurations)}; {', '.join(second.configurations)}",
            fix=f"select one of each: {first.label}{AT}{first.configurations[0]}",
        )
    unpaired = (
        f"{side.label}{AT}{name}" for side in (first, second) for name in side.configurations if name not in shared
    )
    pairs = [(first._replace(configuration=name), second._replace(configuration=name)) for name in shared]
    return pairs, tuple(unpaired)


def open_pair(
    a: EvalReport | str,
    b: EvalReport | str,
    *,
    history: HistoryLike = None,
    configuration: str | None = None,
    run: str | None = None,
) -> tuple[OpenedRun, OpenedRun]:
    """Open two runs to compare; with `run`, `a` and `b` are configurations of that run."""
    if run is not None:
        report = load_report(open_history(history), run)
        first, second = (OpenedRun(str(name), report, str(name)) for name in (a, b))
    else:
        first, second = open_reports(a, b, history, configuration)
    return check_pair(first, second)


def open_reports(
    a: EvalReport | str, b: EvalReport | str, history: HistoryLike = None, configuration: str | None = None
) -> tuple[OpenedRun, OpenedRun]:
    """Open two reports or stored runs; configurations of one stored run share a report, which reads them at once."""
    first, second = (open_report(reference, history, configuration) for reference in (a, b))
    if isinstance(a, str) and isinstance(b, str) and _is_same_run(first, second):
        second = second._replace(report=first.report)
    return first, second


def check_pair(first: OpenedRun, second: OpenedRun) -> tuple[OpenedRun, OpenedRun]:
    """Reject two identical sides; return both with distinct display names."""
    for side in (first, second):
        for name in side.configurations:
            _require_configuration(side, name)
    is_same_run = _is_same_run(first, second)
    if is_same_run and set(first.configurations) & set(second.configurations):
        raise ConfigError(
            f"{first.label} and {second.label} are the same run",
            fix="name two runs, or two configurations of one run: RUN@CONFIGURATION",
        )
    if first.label != second.label or is_same_run:
        return first, second
    if first.report.run_id and second.report.run_id:
        return first._replace(label=first.report.run_id), second._replace(label=second.report.run_id)
    return first._replace(label=f"{first.label} (a)"), second._replace(label=f"{second.label} (b)")


def rank(
    metric: str, runs: Sequence[EvalReport | str], *, history: HistoryLike = None, order: str | None = None
) -> Ranking:
    """Rank runs by a metric, score or field; for a single run, rank its configurations.

    `order` is "asc" (the lowest first) or "desc"; the default lists the best first.
    """
    opened = [open_report(run, history) for run in runs]
    if TOTAL_SCORE in list_aliases(metric):
        scale_difference = describe_scale_difference(
            {opened_run.label: find_total_scale(opened_run.report.metadata) for opened_run in opened}
        )
        if scale_difference:
            raise ConfigError(scale_difference, where="rank", fix="rank by mean_score, which is from 0 to 1")
    ranked: dict[str, RankingEntry] = {}
    for run in opened:
        values = run.report.ranking_entries(metric)
        for name in run.configurations:
            _require_configuration(run, name)
            if name in values:
                ranked[_display_name(run, name, is_single=len(opened) == 1)] = values[name]
    if len(ranked) < 2:
        owner = f"only {next(iter(ranked))}" if ranked else "no run"
        raise ConfigError(
            f"a ranking needs two entries or more; {owner} has {metric}",
            where="rank",
            fix="name several runs, or one with several configurations",
        )
    ranking = rank_values(metric, order or default_order(metric), ranked)
    remarks = "; ".join((*_describe_runs(opened), *(_describe_coverage(opened) if metric in COMBINED_METRICS else ())))
    notes = [ranking.note, f"Note: {remarks}." if remarks else ""]
    return msgspec.structs.replace(ranking, note=" ".join(filter(None, notes)))


def _describe_runs(opened: Sequence[OpenedRun]) -> Iterator[str]:
    """Describe which runs are incomplete, or have different evaluators from the first."""
    runs = {opened_run.label: opened_run.report.metadata for opened_run in opened}
    known_runs = [(name, run) for name, run in runs.items() if run is not None]
    for name, run in known_runs:
        yield from describe_incomplete_run(name, run)
    for name, run in known_runs[1:]:
        first_name, first_run = known_runs[0]
        if run.run_id != first_run.run_id:
            yield from find_evaluator_changes(run, first_run).describe(name, first_name)


def _describe_coverage(opened: Sequence[OpenedRun]) -> Iterator[str]:
    """Describe which evaluators scored far fewer samples of one side than of the first."""
    ranked_sides = [
        run.report.side(name, _display_name(run, name, is_single=len(opened) == 1))
        for run in opened
        for name in run.configurations
    ]
    first = ranked_sides[0]
    for side in ranked_sides[1:]:
        coverage = compute_coverage(side, first)
        if len(coverage) > 1:
            yield from (entry.describe(side.name, first.name) for entry in coverage if entry.is_uneven)


def default_order(metric: str) -> str:
    """Return the order that lists the best value first, judging by the metric's name."""
    is_lower_better = any(name.startswith(LOWER_IS_BETTER) for name in list_aliases(metric))
    return "asc" if is_lower_better or higher_is_better(metric) is False else "desc"


def _display_name(run: OpenedRun, configuration: str, *, is_single: bool) -> str:
    has_several = len(run.report.configurations) > 1
    if is_single and has_several and run.configuration is None:
        return configuration
    return f"{run.label}{AT}{configuration}" if has_several else run.label


def build_sides(first: OpenedRun, second: OpenedRun) -> tuple[Side, Side]:
    """Return the sides of a comparison, one configuration each."""
    is_same_run = _is_same_run(first, second)

    def build(run: OpenedRun) -> Side:
        [configuration] = run.configurations
        name = configuration if is_same_run else _display_name(run, configuration, is_single=False)
        return run.side(configuration, name)

    return build(first), build(second)


def open_report(run: EvalReport | str, history: HistoryLike = None, configuration: str | None = None) -> OpenedRun:
    """Open a report, or a stored run by any reference, including RUN@CONFIGURATION."""
    reference_value: Any = run
    if not isinstance(reference_value, EvalReport | str):
        fix = 'pass two reports of evaluate, or two runs: compare("latest", "main")'
        raise ConfigError(f"a report or the name of a run is required, got {reference_value!r}", fix=fix)
    if isinstance(run, EvalReport):
        name = run.metadata.name if run.metadata else "the report"
        return OpenedRun(name, run, configuration)
    store = open_history(history)
    reference, suffix = split_reference(run, store)
    if suffix is None:
        return OpenedRun(run, load_report(store, run), configuration)
    if configuration is not None and suffix != configuration:
        raise UsageError(
            f"{run!r} and the configuration {configuration!r} contradict each other",
            fix=f"write {reference}, or leave the configuration out",
        )
    return OpenedRun(reference, load_report(store, reference), suffix)


def split_reference(typed: str, history: History) -> tuple[str, str | None]:
    """Split RUN@CONFIGURATION into the run and the configuration, which is None if the whole is the name of a run."""
    try:
        history.find(typed)
    except RunNotFound as error:
        reference, _, configuration = typed.rpartition(AT)
        if reference:
            return reference, configuration
        error.fix = _suggest_eval_file(Path(typed)) or error.fix
        raise
    return typed, None


def _suggest_eval_file(path: Path) -> str:
    """Return the fix for an eval file, perhaps misspelled, in the place of a run; empty for anything else."""
    if not get_close_matches(path.suffix, EVAL_FILE_SUFFIXES, n=1):
        return ""
    if path.is_file():
        return f"this is a file; run it, and name the run that it stores: proctor run {shlex.quote(str(path))}"
    hint = suggest_file(path, EVAL_FILE_SUFFIXES)
    return hint if hint.startswith("did you mean") else ""


def _is_same_run(first: OpenedRun, second: OpenedRun) -> bool:
    is_same_id = bool(first.report.run_id) and first.report.run_id == second.report.run_id
    return is_same_id or first.report is second.report


def _require_configuration(run: OpenedRun, configuration: str) -> None:
    if configuration not in run.report.configurations:
        raise ConfigError(
            f"run {run.report.run_id or run.label} has no configuration {configuration!r}",
            fix=suggest_name(configuration, run.report.configurations),
        )
