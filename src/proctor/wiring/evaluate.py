"""`evaluate` and `rescore`: run an evaluation from a script or a notebook."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from proctor.comparison.report import EvalReport
from proctor.core import bridge
from proctor.core.clock import Clock, SystemClock
from proctor.distributed.remote_runner import MailboxBackend
from proctor.engine.early_stop import StopRule
from proctor.engine.peer_trials import LOCAL_RUN_FIX, NEEDS_LOCAL_RUN
from proctor.engine.rescore import RescorePlan
from proctor.engine.start import Backend, RunControls, begin_run, resume_run
from proctor.engine.start import rescore_run as begin_rescoring
from proctor.errors import ConfigError, DatasetError, suggest_name
from proctor.models.connect import mailbox
from proctor.ports import DatasetLike, EvaluatorsLike, History, Mailbox, ProgressCallback, TargetLike
from proctor.records.mail import EvalRequest
from proctor.records.run import Budget, Retention, RunOptionsKwargs
from proctor.records.sample import check_tags
from proctor.reports.live import live_display
from proctor.wiring.open_history import open_history, run_to_resume
from proctor.wiring.prepare import (
    Configurations,
    Evaluation,
    Metrics,
    build_recipe,
    build_setup,
    check_run_options,
    check_thresholds,
    load_metrics,
    prepare,
)
from proctor.wiring.registry import Registry

RAY = "ray"
PATIENCE_SECONDS = 3_600.0


class RunKwargs(RunOptionsKwargs, total=False):
    """The options of a run, and the other keyword arguments of `evaluate` that control it."""

    metrics: Metrics
    progress: bool | None
    resume: str | bool
    allow_changes: bool
    retry_errors: bool
    workers: str | Mailbox[Any] | None
    patience: float | None
    decide: StopRule | None


async def aevaluate(
    target: TargetLike | None,
    dataset: DatasetLike,
    evaluators: EvaluatorsLike,
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
    patience: float | None = PATIENCE_SECONDS,
    on: str | None = None,
    decide: StopRule | None = None,
    **options: Unpack[RunOptionsKwargs],
) -> EvalReport:
    """Run a target on a dataset, score every output, store the run, and return the report.

    `target` is any callable, an object with `execute` or `invoke`, an address, a command, an HTTP endpoint or recorded
    outputs; `dataset` is a Dataset, a path, or a list of dicts; `evaluators` is one or several functions or names.
    `baseline` is the configuration with which evaluators compare the others; `fields` maps names to paths whose numbers
    are reported and averaged. `history=False` stores the run only as long as the report exists. `resume=True` continues
    the latest unfinished run of this name. `workers` is a mailbox, or its address, whose workers run the samples;
    `patience` is the time in seconds to wait for any worker; `on="ray"` runs the samples on a Ray cluster. `decide`
    receives every result and ends the run when it returns a reason; such a run needs `shuffle`.
    """
    evaluation = Evaluation(
        target, dataset, evaluators, configurations, metrics, name, tags or {}, dict(options),
        baseline=baseline, fields=fields or {},
    )  # fmt: skip
    callbacks = (on_progress,) if callable(on_progress) else tuple(on_progress)
    if any(inspect.iscoroutinefunction(callback) for callback in callbacks):
        raise ConfigError(
            "a progress callback must be a plain function, not an async one",
            where="on_progress",
            fix="write it with def, not async def",
        )
    with open_backend(evaluation, workers=workers, on=on, patience=patience) as backend:
        controls = RunControls(callbacks, live_display(progress), allow_changes, retry_errors, backend, decide)
        return await execute(evaluation, open_history(history), controls, resume_from=resume)


evaluate = bridge.synchronous(aevaluate)


@contextlib.contextmanager
def open_backend(
    evaluation: Evaluation,
    *,
    workers: str | Mailbox[Any] | None = None,
    on: str | None = None,
    patience: float | None = PATIENCE_SECONDS,
    plugins: Sequence[str] = (),
    modules: Sequence[Path] = (),
) -> Iterator[Backend | None]:
    """Open the backend of a run, None for this process, and close it afterwards."""
    if workers is None and on is None:
        yield None
        return
    if workers is not None and on is not None:
        raise ConfigError(
            "a run uses either workers or a cluster, not both", fix="leave out workers (--workers) or on (--on)"
        )
    if evaluation.options.get("cache"):
        raise ConfigError("cache works only for runs on this machine", where="cache", fix="leave it out")
    if evaluation.baseline is not None:
        raise ConfigError(NEEDS_LOCAL_RUN, where="baseline", fix=LOCAL_RUN_FIX)
    if on is not None:
        yield _open_cluster(on, build_recipe(evaluation, plugins, modules))
    elif isinstance(workers, str):
        with contextlib.closing(mailbox(workers, EvalRequest)) as requests:
            # Fails here if the server does not answer, before the run is stored.
            requests.approximate_count()
            yield MailboxBackend(requests, worker_timeout=patience)
    elif workers is not None:
        yield MailboxBackend(workers, worker_timeout=patience)


def _open_cluster(on: str, recipe: bytes) -> Backend:
    from proctor.distributed.ray_backend import RayBackend, import_ray

    if on != RAY and not on.startswith(f"{RAY}://"):
        raise ConfigError(f"there is no cluster {on!r}", fix=suggest_name(on, [RAY, f"{RAY}://HOST"]))
    import_ray()
    return RayBackend(recipe, build_setup, None if on == RAY else on)


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
    info = plan.dataset.inspect()
    if info.length == 0:
        raise DatasetError("the dataset has no samples", where=info.name)
    if resume_from:
        before = run_to_resume(history, resume_from, plan.name, is_retry=controls.retry_errors)
        with history.claim(before.run_id):
            return await resume_run(plan, info, before, history, clock, controls).run()
    run = begin_run(plan, info, history, clock, controls)
    with history.claim(run.metadata.run_id):
        report = await run.run()
        if evaluation.retention != Retention():
            # A held run is never pruned, so this one stays.
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

    The new run has the name of the old one, unless `name` is given.
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
    limit = check_run_options({"budget": budget}).budget
    registry = registry or Registry.standard()
    built = registry.build_all(evaluators)
    own_metrics = load_metrics((*metrics, *registry.metrics), built)
    plan = RescorePlan(built, own_metrics, check_tags(tags or {}), limit, name)
    check_thresholds(fail_under or {}, built, plan.metrics)
    before = history.find(run)
    rescoring = begin_rescoring(before, plan, history, clock or SystemClock(), controls)
    with history.claim(rescoring.metadata.run_id):
        return await rescoring.run()
