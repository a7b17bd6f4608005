"""Checks of `proctor gate`: reject runs and options that cannot lead to a verdict, if possible before the run."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.comparison.compare import compare
from proctor.comparison.contents import content_key
from proctor.comparison.gates.decision import GateConfig, require_numbers, require_same_evaluators
from proctor.comparison.gates.gaps import DEFAULT_MAX_MISSING, Gap
from proctor.comparison.gates.margins import find_narrow_margins
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import Side
from proctor.comparison.statistics import request_metrics
from proctor.errors import ConfigError, ProctorError, suggest_name
from proctor.history.run_finder import LATEST, write_history_option
from proctor.ports import History
from proctor.records.formatting import format_count
from proctor.records.run import IMPORTED
from proctor.records.sample import Sample
from proctor.reports.summary import describe_status
from proctor.version import VERSION
from proctor.wiring.compare_runs import OpenedRun

if TYPE_CHECKING:
    from proctor.engine.plan import Plan
    from proctor.wiring.prepare import Evaluation

# The command that scores many sessions, as stored in the provenance of its runs.
BATCH_COMMAND = "evaluate-batch"


def require_complete_run(report: EvalReport) -> None:
    """Reject a run that is incomplete, or that has no result with a verdict."""
    run = report.metadata
    if run is not None and run.status != "completed":
        command = "sessions evaluate-batch" if BATCH_COMMAND in run.provenance.command else "run"
        resume = f"proctor {command} … --resume {run.rescored_from or run.run_id}"
        if run.status == "submitted":
            fix = f"collect its results: proctor collect {run.run_id} --requests ADDRESS"
        elif run.status == "running":
            fix = f"wait until it ends; if it was killed, continue it: {resume}"
        elif run.target.kind == IMPORTED:
            fix = "import the complete file: proctor import FILE"
        else:
            fix = f"continue {run.rescored_from or 'it'}: {resume}"
            if run.rescored_from is not None:
                fix += "; then rescore it"
        raise ProctorError(f"run {run.run_id} is {describe_status(report, run)}; a gate needs a complete run", fix=fix)
    if _has_no_verdict(report):
        skipped = f", {report.counts.skipped:,} skipped" if report.counts.skipped else ""
        raise ProctorError(
            f"no result of run {report.run_id} has a verdict: {format_count(report.errors, 'error')}{skipped}",
            fix=f"look at one: proctor show {report.run_id} --outcome {report.counts.first_problem()} --limit 1",
        )


def require_usable_baseline(baseline: OpenedRun, *, is_named: bool) -> None:
    """Reject a baseline without verdicts, or an incomplete run, unless `proctor baseline set --force` named it."""
    run = baseline.report.metadata
    if run is not None and run.status != "completed" and not is_named:
        raise ConfigError(
            f"run {run.run_id} is {describe_status(baseline.report, run)}; a baseline must be a complete run",
            where="--baseline",
            fix=f"choose a complete run, or accept this one: proctor baseline set NAME {run.run_id} --force",
        )
    if _has_no_verdict(baseline.report):
        raise ConfigError(
            f"no result of the baseline {baseline.label} (run {baseline.report.run_id}) has a verdict, "
            "so every run would pass",
            where="--baseline",
            fix=f"choose a run with verdicts: proctor baseline set {baseline.label} RUN",
        )


def _has_no_verdict(report: EvalReport) -> bool:
    return report.counts.passed + report.counts.failed == 0


def require_checks(baseline: OpenedRun | None, config: GateConfig, run: str, history: History) -> None:
    """Reject a gate without a baseline and without thresholds."""
    if baseline is None and not config.fail_under:
        fix = suggest_comparison(run, history)
        raise ConfigError("nothing to check: no --baseline and no --fail-under", fix=fix)


def suggest_comparison(run: str, history: History) -> str:
    """Suggest the commands that compare a run or eval file with a named baseline, or else with the newest other run."""
    option = write_history_option(history.describe().where)
    command = f"proctor gate {shlex.quote(run)} --baseline"
    if baselines := history.baselines():
        return f"{command} {shlex.quote(next(iter(baselines)))}{option}"
    newest = history.runs(limit=2)
    if not newest:
        return f"name a run: proctor run eval.yaml{option}, then proctor baseline set main latest{option}"
    is_newest = run == LATEST or newest[0].run_id.startswith(run)
    if is_newest and len(newest) == 1:
        command = "proctor gate eval.yaml --baseline"
    run_id = newest[-1 if is_newest else 0].run_id
    return f"name a run: proctor baseline set main {run_id}{option}; then: {command} main{option}"


def require_matching_configuration(evaluation: Any, baseline: OpenedRun | None, selected: str | None) -> None:
    """Reject configurations that have no counterpart in the baseline."""
    from proctor.wiring.prepare import build_configurations

    names = [configuration.name for configuration in build_configurations(evaluation.configurations)]
    if selected is not None and selected not in names:
        raise ConfigError(f"the file has no configuration {selected!r}", fix=suggest_name(selected, names))
    baseline_names = names if baseline is None else baseline.configurations
    has_several = selected is None and max(len(names), len(baseline_names)) > 1
    if has_several and not set(names) & set(baseline_names):
        raise ConfigError(
            f"the file ({', '.join(names)}) and the baseline ({', '.join(baseline_names)}) have no "
            "configuration in common",
            where="--baseline",
            fix=f"select one of each: --configuration {names[0]} --baseline NAME@{baseline_names[0]}",
        )


def check_before_run(
    evaluation: Evaluation, registry: Any, baseline: OpenedRun, config: GateConfig, *, early: bool
) -> list[str]:
    """Reject, before the run costs money, an evaluation that cannot lead to a verdict; return warnings."""
    from proctor.wiring.prepare import prepare

    baseline_sides = [baseline.side(name) for name in baseline.configurations]
    plan = prepare(evaluation, registry)
    _require_same_evaluators(plan, baseline, baseline_sides, config)
    planned_ids = None
    # An iterator can be read only once.
    if plan.dataset.inspect().source != "iterator":
        from proctor.engine.plan import ordered_samples

        known_ids = {name for side in baseline_sides for name in side.samples}
        shared = [sample for _, sample in ordered_samples(plan) if sample.id in known_ids]
        if not shared and (early or config.max_flips is not None):
            raise ConfigError(
                f"the dataset and {baseline.label} have no sample in common, and "
                f"{'--until-decided' if early else '--max-flips'} compares sample by sample",
                where="--baseline",
                fix="check the dataset; to compare the runs as two groups, leave that option out and add --unpaired",
            )
        if early:
            _reject_clusters(shared)
            _require_same_contents(shared, baseline)
        planned_ids = {sample.id for sample in shared}
        is_limited = plan.options.limit is not None or config.unpaired or config.accept_changes
        removed = Gap(len(known_ids) - len(planned_ids), len(known_ids))
        if planned_ids and not is_limited and removed.exceeds(DEFAULT_MAX_MISSING):
            samples = f"{removed.missing:,} of {removed.total:,} samples of {baseline.label}"
            advice = "add them, or add --unpaired or --accept-changes"
            return [f"{samples} are not in the dataset, so the gate cannot pass: {advice}"]
    if planned_ids is not None and not planned_ids:
        warning = f"the dataset and {baseline.label} have no sample in common, so the gate will be inconclusive"
        return [] if config.unpaired else [f"{warning}; to compare them as two independent groups, add --unpaired"]
    return _warn_narrow_margins(baseline_sides, config, planned_ids, early=early)


def _warn_narrow_margins(
    sides: Sequence[Side], config: GateConfig, samples: Collection[str] | None, *, early: bool
) -> list[str]:
    """Warn about margins that a run with the same results as the baseline could not pass."""
    warnings = [
        narrow.describe(is_only_metric=len(config.metrics) == 1, early=early)
        for side in sides
        for narrow in find_narrow_margins(side, config, samples)
    ]
    return list(dict.fromkeys(warnings))


def _require_same_evaluators(
    plan: Plan, baseline: OpenedRun, baseline_sides: Sequence[Side], config: GateConfig
) -> None:
    """Reject evaluators whose recorded identity would differ from the baseline's."""
    from proctor.engine.plan import list_specs
    from proctor.engine.redaction import redact_metadata

    baseline_run = baseline.report.metadata
    if baseline_run is None:
        return
    planned_run = redact_metadata(
        msgspec.structs.replace(
            baseline_run,
            run_id="",
            evaluators=list_specs(plan.evaluators, plan.checks),
            options=plan.options,
            environment={"proctor": VERSION, "python": platform.python_version()},
        )
    )
    prefixes = tuple(f"{spec.name}." for spec in planned_run.evaluators)
    for side in baseline_sides:
        scores = {name: score for name, score in side.scores.items() if f"{name}.".startswith(prefixes)}
        planned_side = msgspec.structs.replace(side, name="the file", run=planned_run, scores=scores)
        reference = msgspec.structs.replace(side, name=baseline.label)
        planned_side, reference = request_metrics(planned_side, reference, config.metrics, estimate=False)
        comparison = compare(planned_side, reference, better=config.better, accept_changes=config.accept_changes)
        require_same_evaluators(comparison, config, (planned_side, reference))
        require_numbers(planned_side, reference, config)


def _reject_clusters(samples: Iterable[Sample[Any, Any]]) -> None:
    first: dict[str, str] = {}
    for sample in samples:
        if sample.cluster is not None and first.setdefault(sample.cluster, sample.id) != sample.id:
            raise ConfigError(
                f"samples {first[sample.cluster]!r} and {sample.id!r} share the cluster {sample.cluster!r}, "
                "and early stopping is valid only for independent samples",
                where="--until-decided",
                fix="leave it out: a gate on all samples allows for clusters",
            )


def _require_same_contents(samples: Iterable[Sample[Any, Any]], baseline: OpenedRun) -> None:
    """Reject samples whose content differs from the baseline's sample with the same id."""
    if baseline.report.metadata is not None and baseline.report.metadata.redacted:
        return
    contents = {sample.id: content_key(sample) for sample in samples}
    changed = [
        sample.id
        for sample in baseline.report.results.samples()
        if sample.id in contents and contents[sample.id] not in (None, content_key(sample))
    ]
    if changed:
        raise ConfigError(
            f"sample {changed[0]!r} has other content in {baseline.label}, under the same id",
            where="--until-decided",
            fix="leave it out: a gate on all samples handles changed samples",
        )
