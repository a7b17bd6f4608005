"""Start a run: a new one, the rest of a stopped one, or the rescoring of a stored one."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

import msgspec

from proctor.comparison.compare import describe_code_change, diff_evaluators
from proctor.core.clock import Clock
from proctor.core.identity import SCHEME, have_different_schemes
from proctor.core.threads import CallThreads
from proctor.engine.cache import OutputCache, ResponseCache
from proctor.engine.early_stop import StopRule, order_samples, restore_spending
from proctor.engine.finish import uses_cache
from proctor.engine.ledger import DoneCounter, Ledger, is_missing_warning
from proctor.engine.output_limits import OutputLimits
from proctor.engine.peer_trials import (
    LOCAL_RUN_FIX,
    NEEDS_LOCAL_RUN,
    LoadTrials,
    evaluator_needs,
    needs_peers,
    select_peers,
    shared_peers,
)
from proctor.engine.plan import IsDone, Plan, count_trials, done_by_name, done_by_position, plan_jobs
from proctor.engine.progress import Progress
from proctor.engine.provenance import collect_provenance
from proctor.engine.redaction import redact_metadata, redaction_warnings
from proctor.engine.rescore import RescorePlan, StoredTrials
from proctor.engine.run import OpenDisplay, RunExecution
from proctor.engine.trial import Runner, Scorer, TrialRunner
from proctor.engine.worker_pool import StopCheck
from proctor.errors import ConfigError, Problem, ResumeRefused
from proctor.models.spending import Spending
from proctor.ports import History, ProgressCallback, ResultWriter
from proctor.records.rubric import RUBRICS_VERSION
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata, TargetSpec
from proctor.records.trial import EvalResult, Trial
from proctor.sessions import telemetry
from proctor.version import VERSION

MAX_VALUE_LENGTH = 60
EVALUATOR_CODE = "evaluators' code"
UNKNOWN = (
    "the run was written by another version of Proctor, which identified code in another way "
    f"(this is scheme {SCHEME}), so it cannot be known whether the code is the same"
)


def find_changes(before: RunMetadata, now: RunMetadata) -> list[Problem]:
    """List what has changed since the run started."""
    then, options = before.options, now.options
    changes = []
    if before.dataset.fingerprint is None or now.dataset.fingerprint is None:
        changes.append(Problem("dataset", "it can be read only once, so nothing tells if it is the same"))
    elif before.dataset.fingerprint != now.dataset.fingerprint:
        lengths = f"{before.dataset.length} samples then, {now.dataset.length} now"
        changes.append(Problem("dataset", f"its content has changed ({lengths})"))
    if before.target != now.target:
        changes.append(Problem("target", _target_change(before.target, now.target)))
    if before.configurations != now.configurations:
        changes.append(Problem("configurations", "they or their options have changed"))
    if before.baseline != now.baseline:
        changes.append(Problem("baseline", f"was {before.baseline or 'none'}, is {now.baseline or 'none'}"))
    if then.epochs != options.epochs:
        changes.append(Problem("epochs", f"were {then.epochs}, are {options.epochs}"))
    if before.total is not None and now.total is not None and now.total < before.total:
        changes.append(Problem("limit", f"{before.total} trials were planned, {now.total} are now"))
    if options.limit is not None and then.shuffle != options.shuffle:
        seeds = f"was {then.shuffle}, is {options.shuffle}"
        changes.append(Problem("shuffle", f"{seeds}; with a limit these are other samples"))
    return [*changes, *_scoring_changes(before, now)]


def _target_change(then: TargetSpec, today: TargetSpec) -> str:
    if then.name != today.name:
        return f"was {then.name!r}, is {today.name!r}"
    if then.kind == today.kind and have_different_schemes(then.identity, today.identity):
        return UNKNOWN
    return "its code, what it uses, or its version has changed"


def _scoring_changes(before: RunMetadata, now: RunMetadata) -> Iterator[Problem]:
    old_rubrics, new_rubrics = before.tags.get(RUBRICS_VERSION), now.tags.get(RUBRICS_VERSION)
    if old_rubrics is not None and old_rubrics != new_rubrics:
        # Every result names this version, also those that were scored before.
        yield Problem(RUBRICS_VERSION, f"was {old_rubrics or 'none'}, is {new_rubrics or 'none'}")
    if before.options.skipped != now.options.skipped:
        values = f"was {before.options.skipped!r}, is {now.options.skipped!r}"
        yield Problem("skipped", f"{values}: equal scores would pass or not")
    then = {spec.name: spec for spec in before.evaluators}
    today = {spec.name: spec for spec in now.evaluators}
    if then == today:
        return
    if incomparable := _incomparable_evaluators(then, today):
        yield Problem(EVALUATOR_CODE, f"{incomparable}: {UNKNOWN}")
        return
    # One list of names for each change that they share.
    changed: dict[str, list[str]] = {}
    for name in sorted(then.keys() & today.keys()):
        if then[name] != today[name]:
            changed.setdefault(_describe_evaluator_change(then[name], today[name]), []).append(name)
    groups = {
        "gone": ", ".join(sorted(then.keys() - today.keys())),
        "new": ", ".join(sorted(today.keys() - then.keys())),
        "changed": ", ".join(f"{', '.join(names)} ({change})" for change, names in changed.items()),
    }
    texts = [f"{group}: {names}" for group, names in groups.items() if names]
    yield Problem("evaluators", "; ".join(texts) or "their order has changed")


def _incomparable_evaluators(then: Mapping[str, EvaluatorSpec], today: Mapping[str, EvaluatorSpec]) -> str:
    """The evaluators whose code cannot be compared, if nothing else about them differs."""
    if list(then) != list(today):
        return ""
    names = [name for name in then if then[name] != today[name]]
    for name in names:
        is_other = have_different_schemes(then[name].identity, today[name].identity)
        if not is_other or diff_evaluators(then[name], today[name]):
            return ""
    return ", ".join(names)


def _describe_evaluator_change(then: EvaluatorSpec, today: EvaluatorSpec) -> str:
    texts = []
    for term in diff_evaluators(then, today):
        was, now = (
            value if len(value) <= MAX_VALUE_LENGTH else f"{value[:MAX_VALUE_LENGTH]}…"
            for value in (term.a_value, term.b_value)
        )
        texts.append(f"{term.path} reads otherwise" if was == now else f"{term.path} was {was}, is {now}")
    return "; ".join(texts) or describe_code_change(today)


def identity_warnings(
    run: RunMetadata, *, resumed: bool = False, evaluators: Sequence[EvaluatorSpec] | None = None
) -> tuple[str, ...]:
    """Warn about the target and each evaluator whose identity does not cover all its code.

    A target outside of this process is never covered; the warning appears only where its outputs may be reused.
    """
    is_outside = run.target.kind in ("http", "command")
    uncovered = run.target.uncovered if resumed or run.options.cache or not is_outside else ()
    warnings = []
    if uncovered and evaluators is None:
        warnings.append(
            f"target {run.target.name!r} depends on {'; '.join(uncovered)}: a change of it is not noticed by "
            "resume, cache, workers or comparisons; set a version of the target when it changes"
        )
    warnings += [
        f"evaluator {spec.name!r} depends on {'; '.join(spec.uncovered)}: a change of it is not noticed by "
        "resume or comparisons"
        for spec in (run.evaluators if evaluators is None else evaluators)
        if spec.uncovered
    ]
    return tuple(warnings)


def refuse_if_changed(before: RunMetadata, changes: Sequence[Problem], *, allowed: bool) -> None:
    """Refuse to mix results of different code; with different evaluators, always."""
    about_evaluators = any(change.where == "evaluators" for change in changes)
    if not changes or (allowed and not about_evaluators):
        return
    fix = "start a new run, or resume with --allow-changes (allow_changes=True) to mix old and new"
    if about_evaluators:
        fix = (
            "resume with the evaluators the run began with, then score its outputs "
            f"with the new ones: proctor rescore {before.run_id}"
        )
    raise ResumeRefused(
        f"run {before.run_id} cannot be resumed: it is not the same evaluation any more", problems=changes, fix=fix
    )


class Backend(Protocol):
    """Runs the trials of a run outside of this process."""

    def runner(
        self, plan: Plan, run: RunMetadata, progress: Progress, spending: Spending | None
    ) -> AbstractAsyncContextManager[Runner]: ...


class RunControls(msgspec.Struct, frozen=True):
    """How and where to execute a run and, for a resumed one, which changes to accept.

    `decide` may stop the run early: no further trial starts once it returns a reason. `on_result`
    receives every result as it is stored. `fresh` ignores cached responses of judges.
    """

    callbacks: Sequence[ProgressCallback] = ()
    watch: OpenDisplay | None = None
    allow_changes: bool = False
    retry_errors: bool = False
    place: Backend | None = None
    decide: StopRule | None = None
    on_result: Callable[[EvalResult], object] | None = None
    fresh: bool = False


def begin_run(plan: Plan, info: DatasetInfo, history: History, clock: Clock, controls: RunControls) -> RunExecution:
    """Start a new run."""
    now = clock.now()
    metadata = _describe_run(plan, info, RunMetadata(new_run_id(now), plan.name, now))
    metadata = msgspec.structs.replace(metadata, warnings=identity_warnings(metadata))
    progress = _create_progress(metadata, clock, controls, count_trials(plan, info))
    spending = restore_spending(metadata)
    samples, stop_check = order_samples(plan, controls.decide)
    jobs = Ledger(plan_jobs(plan, samples=samples), progress.total)
    return _execution(plan, metadata, history, clock, jobs, progress, controls, spending, stop_check)


def resume_run(
    plan: Plan, info: DatasetInfo, before: RunMetadata, history: History, clock: Clock, controls: RunControls
) -> RunExecution:
    """Continue a run: only missing trials are run. Refused if the evaluation has changed."""
    if before.rescored_from is not None:
        raise ResumeRefused(
            f"run {before.run_id} is a rescoring of {before.rescored_from}, which runs nothing",
            fix=f"rescore it again: proctor rescore {before.rescored_from}",
        )
    metadata = _describe_run(plan, info, before)
    changes = find_changes(before, metadata)
    refuse_if_changed(before, changes, allowed=controls.allow_changes)
    samples, stop_check = order_samples(plan, controls.decide, before, changes)
    # Before errors are deleted, because they cost money too.
    spending = restore_spending(metadata, history.results(before.run_id))
    is_done: IsDone
    if controls.retry_errors:
        history.delete_errors(before.run_id)
    finished = history.finished_trials(before.run_id)
    first_position = 0
    if changes:
        is_done, first_position = done_by_name(finished)
    else:
        is_done = done_by_position(finished)
    configurations = {c.name: c for c in (*before.configurations, *metadata.configurations)}
    warnings = (
        *(warning for warning in before.warnings if not is_missing_warning(warning)),
        *identity_warnings(metadata, resumed=True),
        *_resume_warnings(changes, before, metadata),
    )
    metadata = msgspec.structs.replace(
        metadata,
        status="running",
        finished_at=None,
        configurations=tuple(configurations.values()),
        warnings=tuple(dict.fromkeys(warnings)),
        stopped_early=None,
    )
    already_done = len(history.results(before.run_id))
    progress = _create_progress(metadata, clock, controls, count_trials(plan, info), already_done)
    done = DoneCounter(is_done)
    jobs = Ledger(plan_jobs(plan, done, first_position, samples), progress.total, done)
    return _execution(plan, metadata, history, clock, jobs, progress, controls, spending, stop_check, False)


def rescore_run(
    before: RunMetadata, plan: RescorePlan, history: History, clock: Clock, controls: RunControls
) -> RunExecution:
    """Start a new run that scores the trials of an earlier one, without calling a target."""
    now = clock.now()
    stored = StoredTrials(history.results(before.run_id), before)
    # The rubrics version of the earlier run does not apply to other evaluators.
    tags = {key: value for key, value in before.tags.items() if key != RUBRICS_VERSION}
    specs = tuple(evaluator.spec for evaluator in plan.evaluators)
    metadata = msgspec.structs.replace(
        before,
        run_id=new_run_id(now),
        started_at=now,
        finished_at=None,
        status="running",
        duration_seconds=0.0,
        name=plan.name or before.name,
        evaluators=specs,
        tags={**tags, **plan.tags},
        environment=_environment(),
        provenance=collect_provenance(),
        warnings=(
            *_incomplete_warnings(before, len(stored)),
            *redaction_warnings(before),
            *identity_warnings(before, evaluators=specs),
        ),
        rescored_from=before.run_id,
        stopped_early=None,
        spent=None,
        redacted={},
        # Failed trials are not run again, so they must not stop the rescoring.
        options=msgspec.structs.replace(
            before.options, on_error="continue", max_errors=None, budget=plan.budget or before.options.budget
        ),
        total=len(stored),
    )
    metadata = redact_metadata(metadata)
    progress = _create_progress(metadata, clock, controls, len(stored))

    @contextlib.asynccontextmanager
    async def open_runner(threads: CallThreads, writer: ResultWriter) -> AsyncIterator[Runner]:
        responses = _response_cache(metadata, history, writer, clock, controls)
        async with telemetry.observe_run(metadata) as observed:
            evaluators = observed.evaluators(plan.evaluators)
            scorer = Scorer(evaluators, metadata.options.evaluator_timeout, threads, progress, responses)
            needs = evaluator_needs(plan.evaluators)
            peers = select_peers(plan.evaluators, metadata.baseline, metadata.options) if needs else None
            yield observed.runner(stored.runner(scorer, peers, OutputLimits(metadata.options, threads)))

    return RunExecution(
        metadata,
        history,
        clock,
        Ledger(stored.jobs(), len(stored)),
        progress,
        open_runner,
        metrics=plan.metrics,
        open_display=controls.watch,
        spending=restore_spending(metadata),
    )


def _resume_warnings(changes: Sequence[Problem], before: RunMetadata, now: RunMetadata) -> Iterator[str]:
    if changes:
        listed = "; ".join(map(str, changes))
        yield f"resumed although something had changed, so old and new are mixed: {listed}"
    then, today = before.provenance, now.provenance
    if then.commit is not None and then.commit != today.commit:
        yield f"resumed with other code: begun at {then.code}, now {today.code or 'unknown'}"


def _incomplete_warnings(before: RunMetadata, stored: int) -> Iterator[str]:
    if before.status != "completed" or (before.total is not None and stored < before.total):
        planned = "" if before.total is None else f" of {before.total} planned"
        yield f"run {before.run_id} was not complete: {stored}{planned} results were scored"


def new_run_id(now: datetime) -> str:
    """Create the id of a run that starts now."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _describe_run(plan: Plan, info: DatasetInfo, run: RunMetadata) -> RunMetadata:
    metadata = msgspec.structs.replace(
        run,
        dataset=info,
        target=plan.target.spec,
        configurations=plan.configurations,
        evaluators=tuple(evaluator.spec for evaluator in plan.evaluators),
        options=plan.options,
        tags={**run.tags, **plan.tags},
        environment=_environment(),
        provenance=collect_provenance(),
        total=count_trials(plan, info),
        baseline=plan.baseline,
        fields=plan.fields,
    )
    return redact_metadata(metadata)


def _environment() -> dict[str, str]:
    return {"proctor": VERSION, "python": platform.python_version(), "platform": platform.platform(terse=True)}


def _execution(
    plan: Plan,
    metadata: RunMetadata,
    history: History,
    clock: Clock,
    jobs: Ledger,
    progress: Progress,
    controls: RunControls,
    spending: Spending | None,
    stop_check: StopCheck | None,
    is_new: bool = True,
) -> RunExecution:
    backend = controls.place
    if backend is not None and needs_peers(plan):
        raise ConfigError(NEEDS_LOCAL_RUN, where="baseline" if plan.baseline else "evaluators", fix=LOCAL_RUN_FIX)

    @contextlib.asynccontextmanager
    async def open_local_runner(threads: CallThreads, writer: ResultWriter) -> AsyncIterator[Runner]:
        cache = None
        if uses_cache(metadata):
            cache = OutputCache(plan.target.spec, history.get_cached_output, writer.cache_output)
        responses = _response_cache(metadata, history, writer, clock, controls)
        try:
            async with telemetry.observe_run(metadata) as observed:
                traced = dataclasses.replace(plan, evaluators=observed.evaluators(plan.evaluators))
                peers = shared_peers(plan, None if is_new else _load_finished(history, metadata))
                runner = TrialRunner(traced, clock, threads, progress, cache, responses, peers=peers)
                yield observed.runner(runner)
        finally:
            await plan.target.close()

    def open_remote_runner(_threads: CallThreads, _writer: ResultWriter) -> AbstractAsyncContextManager[Runner]:
        assert backend is not None
        return backend.runner(plan, metadata, progress, spending)

    return RunExecution(
        metadata,
        history,
        clock,
        jobs,
        progress,
        open_local_runner if backend is None else open_remote_runner,
        plan.metrics,
        controls.watch,
        is_new,
        spending,
        stop_check,
        () if is_new or stop_check is None else history.results(metadata.run_id, metadata),
        controls.on_result,
    )


def _load_finished(history: History, run: RunMetadata) -> LoadTrials:
    """Load the finished trials of samples that an earlier execution finished partly."""
    finished = Counter(sample_id for _, sample_id, _, _ in history.finished_trials(run.run_id))
    expected = len(run.configurations) * run.options.epochs
    partly = {sample_id for sample_id, count in finished.items() if count < expected}
    results = history.results(run.run_id, run)

    def load(sample_id: str) -> list[Trial]:
        return [result.trial for result in results.for_sample(sample_id)] if sample_id in partly else []

    return load


def _response_cache(
    run: RunMetadata, history: History, writer: ResultWriter, clock: Clock, controls: RunControls
) -> ResponseCache | None:
    if not run.options.cache:
        return None
    return ResponseCache(history.get_cached_output, writer.cache_output, clock, fresh=controls.fresh)


def _create_progress(
    run: RunMetadata, clock: Clock, controls: RunControls, total: int | None, already_done: int = 0
) -> Progress:
    return Progress(
        run.run_id,
        clock,
        total=total,
        already_done=already_done,
        evaluators=len(run.evaluators),
        configurations=[configuration.name for configuration in run.configurations],
        fields=run.fields,
        callbacks=controls.callbacks,
    )
