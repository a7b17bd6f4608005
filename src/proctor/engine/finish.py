"""The end of a run: what its results amount to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from proctor.comparison.report import FieldReport
from proctor.errors import EvaluatorError
from proctor.metrics.estimates import FIELD
from proctor.metrics.registry import MetricRegistry
from proctor.metrics.warnings import constant_judges, evaluators_without_verdicts, local_judges
from proctor.ports import History, Metric
from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.results import Results
from proctor.records.run import CachedOutputs, RunMetadata
from proctor.records.score import Score, parts_of

MetricTable = dict[str, MetricValue]


def aggregate(
    results: Results, run: RunMetadata, metrics: Sequence[Metric] = ()
) -> tuple[MetricTable, dict[str, MetricTable]]:
    """All metrics over the whole run and, where there are several, for each configuration."""
    registry = MetricRegistry.of_run(run.evaluators, run.fields)
    for metric in metrics:
        registry.register(metric)
    names = [configuration.name for configuration in run.configurations]
    if len(names) == 1:
        return registry.compute_all(results), {}
    tables = {name: registry.compute_all(results.only(name)) for name in names}
    return registry.compute_all(results), tables


def finish(history: History, run: RunMetadata, metrics: Sequence[Metric] = ()) -> EvalReport:
    """Compute what a run amounts to from what is stored, and store that with how it stands."""
    results = history.results(run.run_id, run)
    try:
        table, by_configuration = aggregate(results, run, metrics)
    except EvaluatorError as error:
        # Two metrics gave numbers of the same name. What was run must not be lost for it.
        left_out = f"the run's own metrics are left out: {error.what}; {error.fix}"
        run = msgspec.structs.replace(run, warnings=(*run.warnings, left_out))
        table, by_configuration = aggregate(results, run)
    found = (
        *_silent(results, run, table),
        *_missing_fields(results, run),
        *evaluators_without_verdicts(results, run),
        *constant_judges(results, run),
        *local_judges(run),
    )
    run = msgspec.structs.replace(
        run,
        warnings=tuple(dict.fromkeys((*run.warnings, *found))),
        cached_outputs=_cached_outputs(results, run),
    )
    history.finish(run, table, by_configuration)
    return EvalReport(results, run, table, by_configuration)


def uses_cache(run: RunMetadata) -> bool:
    """True if outputs of the target may come from the cache; recordings are never cached."""
    return run.options.cache and run.target.kind != "recorded"


def _cached_outputs(results: Results, run: RunMetadata) -> CachedOutputs | None:
    if not uses_cache(run):
        return None
    from_cache = [result.trial.cached for result in results if result.success]
    return CachedOutputs(sum(from_cache), len(from_cache))


def _silent(results: Results, run: RunMetadata, table: MetricTable) -> Iterator[str]:
    """Evaluators that gave no verdict on anything: whoever asked for them should hear of it."""
    first = next((result for result in results if result.success), None) if results else None
    if first is None:
        return
    for spec in run.evaluators:
        label = f"{FIELD}.{spec.name}" if spec.uses == FIELD else spec.name
        rate, said = table.get(f"{label}.pass_rate"), first.scores.get(spec.name)
        if rate is not None and not rate.n and said is not None:
            yield _no_verdict(spec.name, said)
            continue
        # Parts have metrics of their own only where fields were selected.
        has_parts = said is not None and spec.uses == FIELD and bool(run.fields)
        parts = parts_of(said) if said is not None and has_parts else {}
        for part, score in parts.items():
            heard = table.get(f"{label}.{part}")
            if heard is None or not heard.n:
                yield _no_verdict(f"{spec.name}.{part}", score)


def _missing_fields(results: Results, run: RunMetadata) -> Iterator[str]:
    """Selected fields that no result has; evaluated ones have error scores that say so."""
    evaluated = {spec.name for spec in run.evaluators}
    if run.fields.keys() <= evaluated:
        return
    report = FieldReport(results, run)
    for name, error in report.missing_fields.items():
        if name not in evaluated:
            hint = f" ({error.fix})" if error.fix else ""
            yield (
                f"the selected field {name!r} is missing in all {report.successful} results: "
                f"{error.where}: {error.what}{hint}"
            )


def _no_verdict(name: str, score: Score) -> str:
    how = "failed" if score.status == "error" else "was skipped"
    return f"{name} gave no verdict on any result; on the first it {how}: {score.reason}"
