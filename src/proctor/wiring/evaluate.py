"""The main job, for scripts and notebooks: a dataset against a target, scored, kept, reported."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from proctor.comparison.report import FieldReport
from proctor.core import bridge
from proctor.core.clock import Clock, SystemClock
from proctor.engine.rescore import Rescoring
from proctor.engine.start import Conduct, begin, resume
from proctor.engine.start import rescore as begin_rescoring
from proctor.engine.stopping import Decide
from proctor.errors import ConfigError, DatasetError
from proctor.ports import History, Mailbox, ProgressCallback
from proctor.records.run import Budget, OnError, Redact, Retention
from proctor.records.sample import check_tags
from proctor.records.score import Skipped
from proctor.reports.live import live_display
from proctor.wiring import backends as places
from proctor.wiring.open_history import open_history, run_to_resume
from proctor.wiring.prepare import (
    Configurations,
    Evaluation,
    Metrics,
    check_thresholds,
    load_metrics,
    prepare,
    run_options,
)
from proctor.wiring.registry import Registry


class Options(TypedDict, total=False):
    """How a run is carried out; see `RunOptions`."""

    concurrency: int
    timeout: float | None
    evaluator_timeout: float | None
    epochs: int
    limit: int | None
    retries: int
    retry_delay: float
    on_error: OnError
    max_errors: int | None
    cache: bool
    budget: Mapping[str, float] | Budget | None
    redact: Redact
    shuffle: int | None
    max_output_bytes: int
    skipped: Skipped


class Conducted(Options, total=False):
    """The same, with what else `evaluate` can be told of how a run is to go."""

    metrics: Metrics
    progress: bool | None
    resume: str | bool
    allow_changes: bool
    retry_errors: bool
    workers: str | Mailbox[Any] | None
    patience: float | None
    decide: Decide | None


async def aevaluate(
    target: Any,
    dataset: Any,
    evaluators: Any,
    *,
    configurations: Configurations | None = None,
    baseline: str | None = None,
    fields: Mapping[str, str] | None = None,
    metrics: Metrics = (),
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    history: History | str | Path | bool | None = None,
    on_progress: ProgressCallback | Sequence[ProgressCallback] = (),
    progress: bool | None = None,
    resume: str | bool = False,
    allow_changes: bool = False,
    retry_errors: bool = False,
    workers: str | Mailbox[Any] | None = None,
    patience: float | None = places.PATIENCE_SECONDS,
    on: str | None = None,
    decide: Decide | None = None,
    **options: Unpack[Options],
) -> FieldReport:
    """Run a target over a dataset, score every output, keep everything, and report.

    `target` is any callable, an object with `execute` or `invoke`, an address, a command, an HTTP
    endpoint or recorded outputs; `dataset` a Dataset, a path, or a list of dicts; `evaluators` one
    or several functions or names. `baseline` is the configuration that evaluators compare the
    others with; `fields` are paths by name, whose numbers are told and averaged.
    `history=False` keeps the run only as long as the report lives. `resume=True` goes on with the
    latest unfinished run of this name. `workers` is a mailbox, or its address, whose workers run
    the samples, and `patience` how many seconds it waits for any of them; `on="ray"` runs them on
    a Ray cluster. `decide` hears every result and ends the run when it gives a reason; such a run
    needs `shuffle`.
    """
    evaluation = Evaluation(
        target,
        dataset,
        evaluators,
        configurations,
        metrics,
        name,
        tags or {},
        dict(options),
        baseline=baseline,
        fields=fields or {},
    )
    callbacks = (on_progress,) if callable(on_progress) else tuple(on_progress)
    if any(inspect.iscoroutinefunction(callback) for callback in callbacks):
        raise ConfigError("a progress callback must be a plain function, not an async one")
    with places.chosen(evaluation, workers=workers, on=on, patience=patience) as place:
        how = Conduct(callbacks, live_display(progress), allow_changes, retry_errors, place, decide)
        return await execute(evaluation, open_history(history), how, resume_from=resume)


evaluate = bridge.synchronous(aevaluate)


async def execute(
    evaluation: Evaluation,
    history: History,
    how: Conduct,
    *,
    resume_from: str | bool = False,
    registry: Registry | None = None,
    clock: Clock | None = None,
) -> FieldReport:
    """Carry out an evaluation: the one way that every door takes."""
    clock = clock or SystemClock()
    plan = prepare(evaluation, registry or Registry.standard())
    info = plan.dataset.inspect()
    if info.length == 0:
        raise DatasetError("it holds no samples", where=info.name)
    if resume_from:
        before = run_to_resume(history, resume_from, plan.name, retrying=how.retry_errors)
        with history.hold(before.run_id):
            return FieldReport.of(await resume(plan, info, before, history, clock, how).run())
    sitting = begin(plan, info, history, clock, how)
    with history.hold(sitting.metadata.run_id):
        report = await sitting.run()
        if evaluation.retention != Retention():
            # While it is held, the run itself stays whatever the limits are.
            history.prune(evaluation.retention, now=clock.now(), name=plan.name)
        return FieldReport.of(report)


async def arescore(
    run: str,
    evaluators: Any,
    *,
    metrics: Metrics = (),
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    history: History | str | Path | bool | None = None,
    progress: bool | None = None,
    budget: Mapping[str, float] | Budget | None = None,
) -> FieldReport:
    """Score the outputs of a stored run again, with other evaluators; the target is not called.

    The new run has the name of the old one unless it is given another.
    """
    how = Conduct(watch=live_display(progress))
    kept = open_history(history)
    return await score_again(run, evaluators, kept, how, metrics=metrics, name=name, tags=tags, budget=budget)


rescore = bridge.synchronous(arescore)


async def score_again(
    run: str,
    evaluators: Any,
    history: History,
    how: Conduct,
    *,
    metrics: Metrics = (),
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    registry: Registry | None = None,
    clock: Clock | None = None,
    fail_under: Mapping[str, float] | None = None,
    budget: Mapping[str, float] | Budget | None = None,
) -> FieldReport:
    """Carry out a rescoring: the one way that every door takes."""
    limit = run_options({"budget": budget}).budget
    registry = registry or Registry.standard()
    built = registry.build_all(evaluators)
    own_metrics = load_metrics((*metrics, *registry.metrics), built)
    plan = Rescoring(built, own_metrics, check_tags(tags or {}), limit, name)
    check_thresholds(fail_under or {}, built, plan.metrics)
    before = history.find(run)
    sitting = begin_rescoring(before, plan, history, clock or SystemClock(), how)
    with history.hold(sitting.metadata.run_id):
        return FieldReport.of(await sitting.run())
