"""Compare two runs or configurations: metric deltas, flips, and notes on other differences between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.contents import can_compare_contents, count_partial_totals, mark_different_samples
from proctor.comparison.coverage import compute_coverage
from proctor.comparison.deltas import Pair, PairDeltas, compute_all_deltas
from proctor.comparison.describe import describe_comparison
from proctor.comparison.flips import find_flip_evaluator, find_flips
from proctor.comparison.sides import (
    MEAN_SCORE,
    PASS_RATE,
    STRICT_PASS_RATE,
    Side,
    drop_duplicate_pass_rates,
    find_clusters,
    is_latency_of_two_runs,
)
from proctor.comparison.slices import compare_slices
from proctor.comparison.statistics import list_known_metrics, request_metrics
from proctor.comparison.totals import delta_to_scale, describe_scale_difference, find_total_scale
from proctor.comparison.verdicts import DIFFERENT_MOMENTS
from proctor.core.aliases import COMMON_NAMES
from proctor.core.identity import have_different_schemes
from proctor.core.stats.intervals import find_cluster_problem
from proctor.errors import ConfigError, suggest_name
from proctor.metrics.registry import MetricLike, compute_metric, to_metric
from proctor.metrics.warnings import is_repetition_warning
from proctor.records import codec
from proctor.records.comparison import MIN_DIFFERENCE, NOT_COMPARABLE, Comparison, MetricDelta, list_aliases
from proctor.records.formatting import format_count
from proctor.records.rubric import RUBRIC, TOTAL_SCORE
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.score import Skipped

# The metrics that combine the scores of all evaluators.
COMBINED_METRICS = (STRICT_PASS_RATE, PASS_RATE, MEAN_SCORE, TOTAL_SCORE)
MAX_VALUE_LENGTH = 40
MAX_LISTED_IDS = 3
# If more of the samples have another expected value, nothing can be compared.
MAX_CHANGED_SHARE = 0.1
_WEIGHT = f"{RUBRIC}.weight"
_UNSET = object()


class OptionChange(NamedTuple):
    """An option by its path, with its value in each of two runs."""

    path: str
    a_value: str
    b_value: str

    def describe(self, a: str, b: str) -> str:
        if max(len(self.a_value), len(self.b_value)) > MAX_VALUE_LENGTH:
            return f"{self.path} differs"
        return f"{self.path} is {self.a_value} in {a} and {self.b_value} in {b}"


def diff_evaluators(a: EvaluatorSpec, b: EvaluatorSpec) -> tuple[OptionChange, ...]:
    """List the options that differ between two evaluators; empty if only their code may differ."""
    changed_type = [OptionChange("the type", a.uses, b.uses)] if a.uses != b.uses else []
    options = [a.parameters, b.parameters]
    if have_different_schemes(a.identity, b.identity):
        options = [_make_comparable(parameters) for parameters in options]
    return (*changed_type, *_diff_values("", *options))


def _make_comparable(value: Any) -> Any:
    """Copy options stored by any version, with their common names and without the identities of nested evaluators."""
    if isinstance(value, Mapping):
        dropped = "identity" if "uses" in value and "name" in value else ""
        return {COMMON_NAMES.get(key, key): _make_comparable(option) for key, option in value.items() if key != dropped}
    return [_make_comparable(item) for item in value] if isinstance(value, list) else value


def _diff_values(path: str, a: Any, b: Any) -> Iterator[OptionChange]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in dict.fromkeys([*a, *b]):
            inner = f"{path}.{name}" if path else str(name)
            yield from _diff_values(inner, a.get(name, _UNSET), b.get(name, _UNSET))
    elif a != b:
        yield OptionChange(path, _render_value(a), _render_value(b))


def _render_value(value: Any) -> str:
    if value is _UNSET:
        return "the default"
    return value if isinstance(value, str) else codec.to_text(value)


def describe_code_change(evaluator: EvaluatorSpec) -> str:
    """Describe what may differ in an evaluator with equal options: its code, or a function it calls."""
    texts = (value for value in evaluator.parameters.values() if isinstance(value, str))
    function = next((text for text in texts if text.startswith("python:")), "")
    code = f"the code of {function}" if function else "its code"
    return f"{code}, or code and constants that it uses"


class EvaluatorChanges(NamedTuple):
    """The evaluators that only one of two runs has, and evaluators of the same name that differ.

    `possibly_changed` evaluators have a different code identity, possibly only because the Python or Proctor version
    differs. `reweighted` rubrics differ only in their weight: the rubric is comparable, the total is not. `options`
    lists the changed options of each evaluator, `code_changes` describes a possible code change. `skipped` holds the
    rule for skipped checks of each run if it differs. `uneven_coverage` lists the evaluators that judged far fewer
    samples in one run.
    """

    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    possibly_changed: tuple[str, ...] = ()
    reweighted: tuple[str, ...] = ()
    options: Mapping[str, tuple[OptionChange, ...]] = MappingProxyType({})
    code_changes: Mapping[str, str] = MappingProxyType({})
    skipped: tuple[Skipped, Skipped] | None = None
    uneven_coverage: tuple[str, ...] = ()

    def affects(self, metric: str) -> bool:
        """True if a metric measures something else in each run."""
        if metric in COMBINED_METRICS:
            is_changed = self.only_a or self.only_b or self.changed or self.skipped or self.uneven_coverage
            return bool(is_changed or (metric == TOTAL_SCORE and self.reweighted))
        label = metric.removeprefix("field.")
        return any(
            metric_name == name or metric_name.startswith(f"{name}.")
            for name in self.changed
            for metric_name in (metric, label)
        )

    def describe(self, a: str, b: str) -> Iterator[str]:
        for run, names in ((a, self.only_a), (b, self.only_b)):
            if names:
                yield f"only {run} has the evaluator{'s' * (len(names) > 1)} {', '.join(names)}"
        by_change: dict[str, list[str]] = {}
        for name in self.changed:
            change = "; ".join(option.describe(a, b) for option in self.options.get(name, ()))
            by_change.setdefault(change or self.code_changes[name], []).append(name)
        for change, changed_names in by_change.items():
            subject = "s {} are" if len(changed_names) > 1 else " {} is"
            yield f"the evaluator{subject.format(', '.join(changed_names))} not the same in both runs: {change}"
        if self.skipped is not None:
            rule_a, rule_b = self.skipped
            yield f"a skipped check counts differently: skipped is {rule_a} in {a}, {rule_b} in {b}"

    def describe_minor_changes(self, a: str, b: str) -> Iterator[str]:
        """Describe the changes that do not make the evaluators themselves incomparable."""
        for name in self.reweighted:
            (option,) = self.options[name]
            yield f"the weight of {name} is {option.a_value} in {a} and {option.b_value} in {b}"
        if self.possibly_changed:
            yield (
                "the runs used different versions of Python or Proctor, so it is unknown whether the code "
                f"of {', '.join(self.possibly_changed)} is the same"
            )


def find_evaluator_changes(a: RunMetadata, b: RunMetadata) -> EvaluatorChanges:
    specs_a, specs_b = ({spec.name: spec for spec in run.evaluators} for run in (a, b))
    shared = [name for name in specs_a if name in specs_b]
    options = {name: diff_evaluators(specs_a[name], specs_b[name]) for name in shared}
    # An identity covers the options too, so a changed weight does not imply changed code.
    reweighted = [name for name in shared if [change.path for change in options[name]] == [_WEIGHT]]
    identities = {name: (specs_a[name].identity, specs_b[name].identity) for name in shared}
    differing_names = [name for name in shared if len({*identities[name]}) > 1 and name not in reweighted]
    is_same_environment = a.identity_environment == b.identity_environment
    changed = [
        name
        for name in shared
        if name not in reweighted
        and (
            options[name]
            or (name in differing_names and is_same_environment and not have_different_schemes(*identities[name]))
        )
    ]
    rules = a.options.skipped, b.options.skipped
    has_several = max(len(a.evaluators), len(b.evaluators)) > 1
    return EvaluatorChanges(
        tuple(name for name in specs_a if name not in specs_b),
        tuple(name for name in specs_b if name not in specs_a),
        tuple(changed),
        tuple(name for name in differing_names if name not in changed),
        tuple(reweighted),
        options,
        {name: describe_code_change(specs_a[name]) for name in shared},
        rules if has_several and rules[0] != rules[1] else None,
    )


def _find_changes(a: Side, b: Side) -> EvaluatorChanges:
    if a.run is None or b.run is None or a.run.run_id == b.run.run_id:
        return EvaluatorChanges()
    return find_evaluator_changes(a.run, b.run)


def compare(
    a: Side,
    b: Side,
    *,
    metrics: Sequence[MetricLike] | None = None,
    better: Mapping[str, bool | None] | None = None,
    min_difference: float = MIN_DIFFERENCE,
    accept_changes: bool = False,
    by: str | None = None,
) -> Comparison:
    """Compare side `a` with side `b`: deltas are a minus b, percentages are relative to b.

    `metrics` restricts the comparison, by name or as custom metrics, and so the number of tests that p-values are
    corrected for. `better` maps a field to True if higher values are better. `min_difference` is the smallest relevant
    difference of a rate or score. Metrics that combine all evaluators are not comparable if the runs have different
    evaluators, unless `accept_changes`. `by` is a metadata key, or "tags": its slices are compared too.
    """
    [comparison] = compare_all(
        [(a, b)], metrics=metrics, better=better, min_difference=min_difference, accept_changes=accept_changes, by=by
    )
    return comparison


def compare_all(
    pairs: Sequence[Pair],
    *,
    siblings: Sequence[Pair] = (),
    metrics: Sequence[MetricLike] | None = None,
    better: Mapping[str, bool | None] | None = None,
    min_difference: float = MIN_DIFFERENCE,
    accept_changes: bool = False,
    by: str | None = None,
) -> list[Comparison]:
    """Compare several pairs of sides, with p-values corrected for all pairs together.

    The tests of `siblings`, pairs that are compared elsewhere, count in the correction too, so that a pair has one
    verdict wherever it is shown.
    """
    if by is not None and siblings:
        # The slices of siblings are tests too, and which of them are depends on the siblings' own verdicts.
        return compare_all(
            [*pairs, *siblings],
            metrics=metrics,
            better=better,
            min_difference=min_difference,
            accept_changes=accept_changes,
            by=by,
        )[: len(pairs)]
    if not 0 <= min_difference < 1:
        raise ConfigError(
            f"the smallest relevant difference must be 0 or more and less than 1, got {min_difference!r}",
            where="min_difference",
            fix="write 1% or 0.01",
        )
    count = len(pairs)
    pairs = [
        drop_duplicate_pass_rates(*mark_different_samples(a, b, accept_changes=accept_changes))
        for a, b in (*pairs, *siblings)
    ]
    selected = pairs if metrics is None else _select_metrics(pairs, metrics)
    pairs, selected, siblings = pairs[:count], selected[:count], selected[count:]
    deltas = compute_all_deltas(selected, siblings=siblings, better=better, min_difference=min_difference)
    names = [metric for metric in metrics or () if isinstance(metric, str)]
    comparisons = [
        _compare_pair(*inputs, accept_changes=accept_changes, flips_of=find_flip_evaluator(names, *inputs[0]))
        for inputs in zip(pairs, selected, deltas, strict=True)
    ]
    if by is None:
        return comparisons
    slices = compare_slices(
        selected,
        comparisons,
        by,
        better=better,
        min_difference=min_difference,
        accept_changes=accept_changes,
        is_restricted=metrics is not None,
    )
    return [
        msgspec.structs.replace(comparison, slices=compared)
        for comparison, compared in zip(comparisons, slices, strict=True)
    ]


def _compare_pair(pair: Pair, selected: Pair, deltas: PairDeltas, *, accept_changes: bool, flips_of: str) -> Comparison:
    a, b = pair
    changes = EvaluatorChanges() if accept_changes else _find_changes(a, b)
    coverage = compute_coverage(a, b)
    uneven = tuple(entry.describe(a.name, b.name) for entry in coverage if entry.is_uneven)
    # The samples that a single evaluator skipped are in no pair, so its metrics stay comparable.
    if len(coverage) > 1 and not accept_changes:
        changes = changes._replace(uneven_coverage=uneven)
    shared, different = a.share_samples(b), a.different_samples or frozenset()
    scales = find_total_scale(a.run), find_total_scale(b.run)
    biased = (
        _describe_biased_choice(a, b)
        or _describe_biased_choice(b, a)
        or _describe_different_choices(a, b)
        or _describe_changed_expected(a, b)
    )
    comparison = Comparison(
        a.name,
        b.name,
        samples=len(shared - different),
        tests=deltas.tests,
        a_run=a.run.run_id if a.run else "",
        b_run=b.run.run_id if b.run else "",
        metrics={
            name: _drop_verdict(delta_to_scale(delta, *scales), changes, biased)
            for name, delta in deltas.metrics.items()
        },
        scores={name: _drop_verdict(delta, changes, biased) for name, delta in deltas.scores.items()},
        fields={name: _drop_verdict(delta, EvaluatorChanges(), biased) for name, delta in deltas.fields.items()},
        flips=find_flips(a, b, flips_of),
        only_a=_leave_out(a.samples, shared),
        only_b=_leave_out(b.samples, shared),
        missing_a=_find_missing(*selected),
        missing_b=_find_missing(*reversed(selected)),
        notes=(*_find_notes(a, b), *uneven),
        evaluator_differences=tuple(changes.describe(a.name, b.name)),
        uneven=changes.uneven_coverage,
        other_content=() if a.unpaired or not different else tuple(name for name in a.samples if name in different),
        unpaired=a.unpaired,
        flips_of=flips_of,
        epochs=max((side.run.options.epochs for side in (a, b) if side.run), default=1),
        biased=biased,
    )
    return msgspec.structs.replace(comparison, answer=describe_comparison(comparison))


def _leave_out(samples: tuple[str, ...], shared: Collection[str]) -> tuple[str, ...]:
    return () if len(samples) == len(shared) else tuple(name for name in samples if name not in shared)


def _describe_biased_choice(chosen: Side, other: Side) -> str:
    """Describe that the samples of one side were chosen because they did not pass on the other; empty if not."""
    run, source = chosen.run, other.run
    if run is None or run.selected is None or source is None or run.run_id == source.run_id:
        return ""
    if not {source.run_id, source.rescored_from}.intersection(run.selected.failed_in):
        return ""
    return f"{chosen.name} has only samples that did not pass in run {source.run_id}, a choice that favors it"


def _describe_different_choices(a: Side, b: Side) -> str:
    """Describe that two groups without pairs are different selections of samples; empty if they are not."""
    if a.run is None or b.run is None or a.run.run_id == b.run.run_id:
        return ""
    if not a.unpaired and a.share_samples(b) - (a.different_samples or frozenset()):
        return ""
    choices = [run.options.select.describe() if run.options.select else "all samples" for run in (a.run, b.run)]
    if choices[0] == choices[1]:
        return ""
    return f"they are different selections of samples: {a.name} is {choices[0]}, {b.name} is {choices[1]}"


def _describe_changed_expected(a: Side, b: Side) -> str:
    """Describe that too many samples have another expected value on the other side; empty if they do not."""
    if not (changed := len(a.changed_expected)):
        return ""
    shared = len(a.share_samples(b))
    if changed <= MAX_CHANGED_SHARE * shared:
        return ""
    return f"{changed:,} of {shared:,} samples have {_name_changed_checks(a, b)} in {b.name}"


def _name_changed_checks(a: Side, b: Side) -> str:
    specs = [spec for side in (a, b) if side.run is not None for spec in side.run.evaluators]
    has_own = any(spec.samples is not None for spec in specs)
    return "another expected value or other evaluators" if has_own else "another expected value"


def _drop_verdict(delta: MetricDelta, changes: EvaluatorChanges, biased: str) -> MetricDelta:
    if not biased and not changes.affects(delta.name):
        return delta
    return msgspec.structs.replace(
        delta, verdict=NOT_COMPARABLE, p=None, p_adjusted=None, effect=None, more_samples=None
    )


def _find_missing(side: Side, other: Side) -> tuple[str, ...]:
    tables = zip(_list_tables(side), _list_tables(other), strict=True)
    return tuple(name for metrics, other_metrics in tables for name in other_metrics if name not in metrics)


def _list_tables(side: Side) -> tuple[Mapping[str, object], ...]:
    return side.metrics, side.scores, side.fields, side.statistics


def _add_custom_metrics(side: Side, metrics: Sequence[MetricLike]) -> Side:
    custom_metrics = tuple(to_metric(metric) for metric in metrics if not isinstance(metric, str))
    return msgspec.structs.replace(side, custom_metrics=custom_metrics) if custom_metrics else side


def _select_metrics(pairs: Sequence[Pair], requested: Sequence[MetricLike]) -> list[Pair]:
    pairs = [(_add_custom_metrics(a, requested), _add_custom_metrics(b, requested)) for a, b in pairs]
    metrics = [metric for metric in requested if isinstance(metric, str)]
    for side, custom_metric in (
        (a, custom_metric) for a, _ in pairs for custom_metric in requested if not isinstance(custom_metric, str)
    ):
        # A custom metric may have several numbers.
        metrics += compute_metric(to_metric(custom_metric), side.results) if side.results is not None else ()
    pairs = [request_metrics(a, b, metrics) for a, b in pairs]
    sides = [side for pair in pairs for side in pair]
    names = {name for side in sides for name in (*side.names, *side.statistics)}
    selected, pass_rates = set(), {}
    for metric in metrics:
        alias = next((candidate for candidate in list_aliases(metric) if candidate in names), None)
        if alias is None:
            known_names = {*names, *(name for side in sides for name in list_known_metrics(side))}
            raise ConfigError(f"unknown metric {metric!r}", where="metric", fix=suggest_name(metric, known_names))
        if alias != metric and metric.endswith(".pass_rate"):
            # A pass rate that repeats a score keeps the name and the unit that were requested.
            pass_rates[metric] = alias
        else:
            selected.add(alias)

    def select(side: Side) -> Side:
        tables = [{n: numbers for n, numbers in table.items() if n in selected} for table in _list_tables(side)]
        tables[0] |= {metric: side.scores[alias] for metric, alias in pass_rates.items() if alias in side.scores}
        names = ("metrics", "scores", "fields", "statistics")
        return msgspec.structs.replace(side, **dict(zip(names, tables, strict=True)))

    return [(select(a), select(b)) for a, b in pairs]


def _find_notes(a: Side, b: Side) -> Iterator[str]:
    for side in (a, b):
        if side.without_verdict:
            trials = "trial" if side.without_verdict == 1 else "trials"
            yield f"{side.name} has {side.without_verdict:,} {trials} without a verdict"
        if partial := count_partial_totals(side):
            totals = f"{partial:,} of {len(side.metrics[TOTAL_SCORE]):,} totals"
            yield f"{totals} in {side.name} leave out a rubric that failed"
        if side.run is not None:
            yield from describe_incomplete_run(side.name, side.run)
            clusters = find_clusters(side.samples, side.clusters) or (side.samples * (side.run.options.epochs > 1))
            if clusters and (problem := find_cluster_problem(clusters)):
                yield f"{problem}: the numbers of {side.name} have no interval"
            if side.run.cached_outputs is not None:
                yield f"{side.name}: {side.run.cached_outputs}"
    yield from _find_repetitions(a, b)
    if a.run is not None and b.run is not None and a.run.run_id != b.run.run_id:
        yield from _describe_run_differences(a, b, a.run, b.run)
        if any(is_latency_of_two_runs(name, a, b) for name in a.names if b.find(name)):
            yield DIFFERENT_MOMENTS
    if note := describe_scale_difference({side.name: find_total_scale(side.run) for side in (a, b)}):
        yield note
    changes = _find_changes(a, b)
    yield from (*changes.describe(a.name, b.name), *changes.describe_minor_changes(a.name, b.name))


def _find_repetitions(a: Side, b: Side) -> Iterator[str]:
    """Yield the warnings about repeated samples; a warning of both sides has no name."""
    texts = {
        text: [side.name for side in (a, b) if side.run is not None and text in side.run.warnings]
        for run in (a.run, b.run)
        if run is not None
        for text in run.warnings
        if is_repetition_warning(text)
    }
    yield from (f"{names[0]}: {text}" if len(names) == 1 else text for text, names in texts.items())


def describe_incomplete_run(name: str, run: RunMetadata) -> Iterator[str]:
    if run.status != "completed":
        yield f"{name} is not complete ({run.status}): its first results may differ from the rest"
    if run.stopped_early is not None:
        yield (
            f"{name} was stopped as soon as its gate was decided: intervals and p-values assume a fixed "
            "number of samples, so they are too narrow here"
        )


def _describe_run_differences(a: Side, b: Side, run_a: RunMetadata, run_b: RunMetadata) -> Iterator[str]:
    if change := run_a.describe_target_change(run_b):
        yield f"compared with {b.name}, {change}"
    fingerprints = run_a.dataset.fingerprint, run_b.dataset.fingerprint
    if all(fingerprints) and fingerprints[0] != fingerprints[1]:
        consequence = "" if can_compare_contents(a, b) else ": samples with the same id may have different contents"
        yield f"the datasets are not the same{consequence}"
    if (changed := a.changed_expected) and not a.unpaired:
        verbs = ("sample has", "is") if len(changed) == 1 else ("samples have", "are")
        yield (
            f"{len(changed):,} {verbs[0]} {_name_changed_checks(a, b)} in {b.name} and {verbs[1]} left out: "
            f"{_list_ids(changed)}. --accept-changes compares them too"
        )
    if (different := (a.different_samples or frozenset()) - a.changed_expected) and not a.unpaired:
        samples = "sample has" if len(different) == 1 else "samples have"
        yield (
            f"{len(different):,} {samples} different contents under the same id and cannot be paired: "
            f"{_list_ids(different)}"
        )
    if run_a.options.epochs != run_b.options.epochs:
        yield (
            f"{a.name} has {format_count(run_a.options.epochs, 'epoch')} and {b.name} has {run_b.options.epochs}: "
            "the epochs of each sample are averaged, and a sample passes if more than half of its own epochs pass"
        )


def _list_ids(ids: frozenset[str]) -> str:
    return ", ".join(sorted(ids)[:MAX_LISTED_IDS]) + (", …" if len(ids) > MAX_LISTED_IDS else "")
