"""`evaluate` and `rescore`: run an evaluation from a script or a notebook."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core import bridge
from proctor.core.aliases import accept_aliases
from proctor.core.clock import Clock, SystemClock
from proctor.engine.early_stop import StopRule
from proctor.engine.peer_trials import LOCAL_RUN_FIX, NEEDS_LOCAL_RUN
from proctor.engine.run import OpenDisplay
from proctor.engine.start import Backend, RunControls, begin_run, resume_run
from proctor.engine.start import rescore_run as begin_rescoring
from proctor.errors import ConfigError, suggest_name
from proctor.models.connect import mailbox
from proctor.ports import AttachedEvaluator, DatasetLike, EvaluatorsLike, History, Mailbox, ProgressCallback, TargetLike
from proctor.records.mail import EvalRequest
from proctor.records.results import ResultList
from proctor.records.run import Budget, Retention, RunMetadata, RunOptionsKwargs
from proctor.records.sample import check_tags
from proctor.records.score import Score
from proctor.records.trial import EvalResult, Trial
from proctor.reports.live import live_display
from proctor.wiring.open_history import find_run_to_resume, open_history
from proctor.wiring.prepare import (
    Configurations,
    Evaluation,
    Metrics,
    build_recipe,
    build_setup,
    check_run_options,
    check_thresholds,
    inspect_dataset,
    load_metrics,
    prepare,
)
from proctor.wiring.registry import Registry
from proctor.wiring.sample_checks import SampleChecks, restore_checks
from proctor.wiring.select_samples import select_plan_samples

RAY = "ray"
WORKER_TIMEOUT = 3_600.0


class RunKwargs(RunOptionsKwargs, total=False):
    """The options of a run, and the other keyword arguments of `evaluate` that control it."""

    metrics: Metrics
    progress: bool | None
    resume: str | bool
    allow_changes: bool
    retry_errors: bool
    workers: str | Mailbox[Any] | None
    worker_timeout: float | None
    decide: StopRule | None


@accept_aliases
async def aevaluate(
    target: TargetLike | None,
    dataset: DatasetLike,
    evaluators: EvaluatorsLike | None = None,
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
    worker_timeout: float | None = WORKER_TIMEOUT,
    cluster: str | None = None,
    decide: StopRule | None = None,
    **options: Unpack[RunOptionsKwargs],
) -> EvalReport:
    """Run a target on a dataset, score every output, store the run, and return the report.

    `target` is any callable, an object with `execute` or `invoke`, an address, a command, an HTTP endpoint or recorded
    outputs; `dataset` is a Dataset, a path, or a list of dicts; `evaluators` is one or several functions or names. It
    may be left out if samples have their own. `baseline` is the configuration that the others are compared with;
    `fields` maps names to paths whose numbers are reported and averaged. With `history=False` the run is deleted with
    the report. `resume=True` continues the latest unfinished run of this name. `workers` is a mailbox, or its address,
    whose workers run the samples; the run stops if no worker answers within `worker_timeout` seconds. `cluster="ray"`
    runs the samples on a Ray cluster. `decide` receives every result and ends the run when it returns a reason; this
    requires `shuffle`.
    `select={"where": ["topic=billing"]}` runs only some samples; its other keys are `samples` (ids), `tags` and
    `failed_of` (a run: the samples that did not pass in it).
    """
    evaluation = Evaluation(
        target, dataset, evaluators, configurations, metrics, name, tags or {}, dict(options),
        baseline=baseline, fields=fields or {},
    )  # fmt: skip
    if resume and history is False:
        raise ConfigError("only a stored run can be resumed", where="resume", fix="leave out history=False")
    callbacks = list_callbacks(on_progress)
    with open_backend(evaluation, workers=workers, cluster=cluster, worker_timeout=worker_timeout) as backend:
        controls = RunControls(callbacks, live_display(progress), allow_changes, retry_errors, backend, decide)
        return await execute(evaluation, open_history(history), controls, resume_from=resume)


evaluate = bridge.synchronous(aevaluate)


def list_callbacks(on_progress: Any) -> tuple[ProgressCallback, ...]:
    """Return one callback or a list of them as a tuple; reject async functions and other objects."""
    callbacks = tuple(on_progress) if isinstance(on_progress, list | tuple) else (on_progress,)
    for callback in callbacks:
        is_async = inspect.iscoroutinefunction(callback)
        if is_async or not callable(callback):
            raise ConfigError(
                f"a progress callback must be a plain function, got {getattr(callback, '__name__', repr(callback))}",
                where="on_progress",
                fix="write it with def, not async def" if is_async else "pass a function of one event, such as print",
            )
    return callbacks


@contextlib.contextmanager
def open_backend(
    evaluation: Evaluation,
    *,
    workers: str | Mailbox[Any] | None = None,
    cluster: str | None = None,
    worker_timeout: float | None = WORKER_TIMEOUT,
    plugins: Sequence[str] = (),
    modules: Sequence[Path] = (),
) -> Iterator[Backend | None]:
    """Open the backend of a run and close it afterwards; None means this process."""
    if workers is None and cluster is None:
        yield None
        return
    if workers is not None and cluster is not None:
        raise ConfigError(
            "a run uses either workers or a cluster, not both",
            fix="leave out workers (--workers) or cluster (--cluster)",
        )
    if workers is not None and not isinstance(workers, str) and not hasattr(workers, "send_all"):
        raise ConfigError(
            f"must be a mailbox or its address, got {workers!r}",
            where="workers",
            fix='write workers="redis://host:6379/0/NAME"',
        )
    if evaluation.options.get("cache"):
        raise ConfigError("cache works only for runs on this machine", where="cache", fix="leave it out")
    if evaluation.baseline is not None:
        raise ConfigError(NEEDS_LOCAL_RUN, where="baseline", fix=LOCAL_RUN_FIX)
    if cluster is not None:
        yield _open_cluster(cluster, build_recipe(evaluation, plugins, modules))
        return
    from proctor.distributed.remote_runner import MailboxBackend

    if isinstance(workers, str):
        with contextlib.closing(mailbox(workers, EvalRequest)) as requests:
            # Fails here if the server does not answer, before the run is stored.
            requests.approximate_count()
            yield MailboxBackend(requests, worker_timeout=worker_timeout)
    elif workers is not None:
        yield MailboxBackend(workers, worker_timeout=worker_timeout)


def _open_cluster(cluster: str, recipe: bytes) -> Backend:
    from proctor.distributed.ray_backend import RayBackend, import_ray

    if cluster != RAY and not str(cluster).startswith(f"{RAY}://"):
        raise ConfigError(f"unknown cluster {cluster!r}", fix=suggest_name(str(cluster), [RAY, f"{RAY}://HOST:PORT"]))
    import_ray()
    return RayBackend(recipe, build_setup, None if cluster == RAY else cluster)


async def execute(
    evaluation: Evaluation,
    history: History,
    controls: RunControls,
    *,
    resume_from: str | bool = False,
    registry: Registry | None = None,
    clock: Clock | None = None,
) -> EvalReport:
    """Run an evaluation; every entry point calls this function."""
    clock = clock or SystemClock()
    plan = prepare(evaluation, registry or Registry.standard())
    info = inspect_dataset(plan, evaluation.places)
    if controls.backend is not None and isinstance(plan.checks, SampleChecks):
        plan.checks.require_names()
    plan = select_plan_samples(plan, history)
    if resume_from:
        stored_run = find_run_to_resume(history, resume_from, plan.name, is_retry=controls.retry_errors)
        with history.claim(stored_run.run_id):
            return await resume_run(plan, info, stored_run, history, clock, controls).run()
    run = begin_run(plan, info, history, clock, controls)
    with history.claim(run.metadata.run_id):
        report = await run.run()
        if evaluation.retention != Retention():
            # A claimed run is never pruned.
            history.prune(evaluation.retention, now=clock.now(), name=plan.name)
        return report


async def arescore(
    run: str,
    evaluators: EvaluatorsLike,
    *,
    metrics: Metrics = (),
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    history: History | str | Path | bool | None = None,
    progress: bool | None = None,
    budget: Mapping[str, float] | Budget | None = None,
) -> EvalReport:
    """Score the outputs of a stored run with other evaluators, without calling the target.

    The new run has the same name as the old run, unless `name` is set.
    """
    return await execute_rescore(
        run, evaluators, open_history(history), RunControls(watch=live_display(progress)),
        metrics=metrics, name=name, tags=tags, budget=budget,
    )  # fmt: skip


rescore = bridge.synchronous(arescore)


async def execute_rescore(
    run: str,
    evaluators: EvaluatorsLike,
    history: History,
    controls: RunControls,
    *,
    metrics: Metrics = (),
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    registry: Registry | None = None,
    clock: Clock | None = None,
    fail_under: Mapping[str, float] | None = None,
    budget: Mapping[str, float] | Budget | None = None,
) -> EvalReport:
    """Score a stored run again; every entry point calls this function."""
    from proctor.engine.rescore import RescorePlan

    checked_budget = check_run_options({"budget": budget}).budget
    registry = registry or Registry.standard()
    source = history.find(run)
    has_checks = any(spec.samples is not None for spec in source.evaluators)
    built = registry.build_all(evaluators) if evaluators or not has_checks else ()
    checks = restore_checks(source.evaluators, built, registry)
    specs = [*(evaluator.spec for evaluator in built), *(checks.specs if checks else ())]
    own_metrics = load_metrics((*metrics, *registry.metrics), specs)
    plan = RescorePlan(built, own_metrics, check_tags(tags or {}), checked_budget, name, checks)
    check_thresholds(fail_under or {}, specs, plan.metrics, epochs=source.options.epochs)
    rescoring = begin_rescoring(source, plan, history, clock or SystemClock(), controls)
    with history.claim(rescoring.metadata.run_id):
        return await rescoring.run()


async def score_trials(
    trials: Sequence[Trial],
    evaluators: Sequence[AttachedEvaluator],
    run: RunMetadata,
    *,
    budget: Budget | None = None,
    watch: OpenDisplay | None = None,
) -> list[dict[str, Score]]:
    """Score trials of a run, changed or not, without a target and without storing them.

    The scores are in the order of the trials; a trial that the budget left out has none.
    """
    from proctor.engine.rescore import RescorePlan

    copies = [
        msgspec.structs.replace(trial, sample=msgspec.structs.replace(trial.sample, id=str(index)))
        for index, trial in enumerate(trials)
    ]
    source = msgspec.structs.replace(
        run, options=msgspec.structs.replace(run.options, budget=None), total=len(copies), status="completed"
    )
    results = ResultList(map(EvalResult, copies))
    plan, clock, controls = RescorePlan(tuple(evaluators), budget=budget), SystemClock(), RunControls(watch=watch)
    with contextlib.closing(open_history(False)) as history:
        rescoring = begin_rescoring(source, plan, history, clock, controls, results)
        with history.claim(rescoring.metadata.run_id):
            report = await rescoring.run()
        scores = {result.sample_id: result.scores for result in report.results}
    return [scores.get(str(index), {}) for index in range(len(copies))]
