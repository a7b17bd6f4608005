"""Start a run: a new run, the rest of a stopped run, or the rescoring of a stored run."""

from __future__ import annotations

import contextlib
import platform
import secrets
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import msgspec

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
    find_needs,
    needs_peers,
    select_peers,
    shared_peers,
)
from proctor.engine.plan import IsDone, Plan, count_trials, done_by_name, done_by_position, list_specs, plan_jobs
from proctor.engine.progress import Progress
from proctor.engine.provenance import collect_provenance
from proctor.engine.redaction import redact_metadata, redaction_warnings
from proctor.engine.run import OpenDisplay, RunExecution
from proctor.engine.trial import Runner, Scorer, TrialRunner
from proctor.engine.worker_pool import StopCheck
from proctor.errors import ConfigError, Problem, ResumeRefused
from proctor.models.spending import Spending
from proctor.ports import History, ProgressCallback, ResultWriter
from proctor.records.results import Results
from proctor.records.rubric import RUBRICS_VERSION
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata
from proctor.records.trial import EvalResult, Trial
from proctor.sessions import telemetry
from proctor.version import VERSION

if TYPE_CHECKING:
    from proctor.engine.rescore import RescorePlan

MAX_VALUE_LENGTH = 60
EVALUATOR_CODE = "evaluators' code"
OTHER_SCHEME = (
    "another version of Proctor stored the run and identified code in another way "
    f"(this is scheme {SCHEME}), so a change of the code cannot be detected"
)
OTHER_VERSION = (
    "another version of Python or Proctor stored the run, so Proctor cannot tell whether the evaluator's code or only "
    "the version changed"
)


def find_changes(stored: RunMetadata, current: RunMetadata) -> list[Problem]:
    """List the changes since the run started."""
    stored_options, options = stored.options, current.options
    changes = []
    if stored.dataset.fingerprint is None or current.dataset.fingerprint is None:
        changes.append(Problem("dataset", "it can be read only once, so a change cannot be detected"))
    elif stored.dataset.fingerprint != current.dataset.fingerprint:
        lengths = f"samples: {stored.dataset.length} at the start of the run, {current.dataset.length} now"
        changes.append(Problem("dataset", f"its content has changed ({lengths})"))
    # What the identity does not cover may change: a target may have created a file that it writes.
    if stored.target.essentials != current.target.essentials:
        changes.append(Problem("target", _describe_target_change(stored, current)))
    if stored.configurations != current.configurations:
        changes.append(Problem("configurations", "they or their options have changed"))
    if stored.baseline != current.baseline:
        changes.append(Problem("baseline", f"was {stored.baseline or 'none'}, is {current.baseline or 'none'}"))
    if stored_options.epochs != options.epochs:
        changes.append(Problem("epochs", f"were {stored_options.epochs}, are {options.epochs}"))
    if stored.total is not None and current.total is not None and current.total < stored.total:
        changes.append(Problem("limit", f"{stored.total} trials were planned, {current.total} are now"))
    if options.limit is not None and stored_options.shuffle != options.shuffle:
        seeds = f"was {stored_options.shuffle}, is {options.shuffle}"
        changes.append(Problem("shuffle", f"{seeds}; with a limit these are other samples"))
    if (stored_options.select, stored.selected) != (options.select, current.selected):
        changes.append(Problem("select", _selection_change(stored, current)))
    return [*changes, *_scoring_changes(stored, current)]


def _selection_change(stored: RunMetadata, current: RunMetadata) -> str:
    old, new = (run.options.select.describe() if run.options.select else "all samples" for run in (stored, current))
    if old == new:
        return f"the same rules ({old}) select other samples now"
    return f"was {old}, is {new}"


def _describe_target_change(stored_run: RunMetadata, current_run: RunMetadata) -> str:
    stored, current = stored_run.target, current_run.target
    if stored.name != current.name:
        return f"was {stored.name!r}, is {current.name!r}"
    if stored.kind == current.kind and have_different_schemes(stored.identity, current.identity):
        return OTHER_SCHEME
    return current_run.describe_target_change(stored_run) or "its code, what it uses, or its version has changed"


def _scoring_changes(stored: RunMetadata, current: RunMetadata) -> Iterator[Problem]:
    old_rubrics, new_rubrics = stored.tags.get(RUBRICS_VERSION), current.tags.get(RUBRICS_VERSION)
    if old_rubrics is not None and old_rubrics != new_rubrics:
        # Every result names this version, including results of earlier executions.
        yield Problem(RUBRICS_VERSION, f"was {old_rubrics or 'none'}, is {new_rubrics or 'none'}")
    if stored.options.skipped != current.options.skipped:
        values = f"was {stored.options.skipped!r}, is {current.options.skipped!r}"
        yield Problem("skipped", f"{values}: the same scores would get other verdicts")
    # The number of samples with an evaluator is part of the dataset.
    stored_specs, current_specs = (
        {spec.name: msgspec.structs.replace(spec, uncovered=(), samples=spec.samples and 1) for spec in run.evaluators}
        for run in (stored, current)
    )
    if stored_specs == current_specs:
        return
    is_upgraded = stored.identity_environment != current.identity_environment
    if incomparable_names := _incomparable_evaluators(stored_specs, current_specs, is_upgraded=is_upgraded):
        yield Problem(EVALUATOR_CODE, f"{incomparable_names}: {OTHER_VERSION if is_upgraded else OTHER_SCHEME}")
        return
    # Group the names that share a change.
    changed: dict[str, list[str]] = {}
    for name in sorted(stored_specs.keys() & current_specs.keys()):
        if stored_specs[name] != current_specs[name]:
            changed.setdefault(_describe_evaluator_change(stored_specs[name], current_specs[name]), []).append(name)
    groups = {
        "gone": ", ".join(sorted(stored_specs.keys() - current_specs.keys())),
        "new": ", ".join(sorted(current_specs.keys() - stored_specs.keys())),
        "changed": ", ".join(f"{', '.join(names)} ({change})" for change, names in changed.items()),
    }
    texts = [f"{group}: {names}" for group, names in groups.items() if names]
    yield Problem("evaluators", "; ".join(texts) or "their order has changed")


def _incomparable_evaluators(
    stored: Mapping[str, EvaluatorSpec], current: Mapping[str, EvaluatorSpec], *, is_upgraded: bool
) -> str:
    """Return the evaluators whose code cannot be compared, if nothing else about them differs."""
    if list(stored) != list(current):
        return ""
    from proctor.comparison.compare import diff_evaluators

    names = [name for name in stored if stored[name] != current[name]]
    for name in names:
        is_other = is_upgraded or have_different_schemes(stored[name].identity, current[name].identity)
        if not is_other or diff_evaluators(stored[name], current[name]):
            return ""
    return ", ".join(names)


def _describe_evaluator_change(stored: EvaluatorSpec, current: EvaluatorSpec) -> str:
    from proctor.comparison.compare import describe_code_change, diff_evaluators

    texts = []
    for term in diff_evaluators(stored, current):
        stored_text, current_text = (
            value if len(value) <= MAX_VALUE_LENGTH else f"{value[:MAX_VALUE_LENGTH]}…"
            for value in (term.a_value, term.b_value)
        )
        texts.append(
            f"{term.path} has changed"
            if stored_text == current_text
            else f"{term.path} was {stored_text}, is {current_text}"
        )
    return "; ".join(texts) or describe_code_change(current)


def identity_warnings(
    run: RunMetadata, *, resumed: bool = False, evaluators: Sequence[EvaluatorSpec] | None = None
) -> tuple[str, ...]:
    """Warn about the target and each evaluator whose identity does not cover all its code.

    A target outside this process is never covered; the warning appears only if its outputs may be reused.
    """
    is_outside = run.target.kind in ("http", "command")
    uncovered = run.target.uncovered if resumed or run.options.cache or not is_outside else ()
    warnings = []
    if uncovered and evaluators is None:
        warnings.append(
            f"target {run.target.name!r} depends on {'; '.join(uncovered)}: resume, cache, workers and comparisons "
            "do not notice changes there; set a version of the target when it changes"
        )
    warnings += [
        f"evaluator {spec.name!r} depends on {'; '.join(spec.uncovered)}: resume and comparisons do not notice "
        "changes there"
        for spec in (run.evaluators if evaluators is None else evaluators)
        if spec.uncovered
    ]
    return tuple(warnings)


def selection_warnings(run: RunMetadata) -> tuple[str, ...]:
    """Warn that a run has only some samples of its dataset, and which."""
    if run.selected is None or run.options.select is None:
        return ()
    total = "" if run.dataset.length is None else f" of {run.dataset.length:,}"
    return (f"only {run.selected.count:,}{total} samples were selected: {run.options.select.describe()}",)


def require_unchanged(stored_run: RunMetadata, changes: Sequence[Problem], *, allowed: bool) -> None:
    """Raise an error if the evaluation has changed; `allowed` accepts every change except changed evaluators."""
    about_evaluators = any(change.where == "evaluators" for change in changes)
    if not changes or (allowed and not about_evaluators):
        return
    fix = "start a new run, or resume with --allow-changes (allow_changes=True) to mix old and new"
    if about_evaluators:
        fix = (
            "resume with the evaluators the run began with, then score its outputs "
            f"with the new ones: proctor rescore {stored_run.run_id}"
        )
    raise ResumeRefused(
        f"run {stored_run.run_id} cannot be resumed: the evaluation has changed", problems=changes, fix=fix
    )


class Backend(Protocol):
    """Runs the trials of a run outside this process."""

    def runner(
        self, plan: Plan, run: RunMetadata, progress: Progress, spending: Spending | None
    ) -> AbstractAsyncContextManager[Runner]: ...


class RunControls(msgspec.Struct, frozen=True):
    """How and where to execute a run and, for a resumed run, which changes to accept.

    `decide` may stop the run early: no further trial starts once it returns a reason. `on_result`
    receives every result as it is stored. `fresh` ignores cached judge responses.
    """

    callbacks: Sequence[ProgressCallback] = ()
    watch: OpenDisplay | None = None
    allow_changes: bool = False
    retry_errors: bool = False
    backend: Backend | None = None
    decide: StopRule | None = None
    on_result: Callable[[EvalResult], object] | None = None
    fresh: bool = False


def begin_run(plan: Plan, info: DatasetInfo, history: History, clock: Clock, controls: RunControls) -> RunExecution:
    """Start a new run."""
    now = clock.now()
    metadata = _describe_run(plan, info, RunMetadata(new_run_id(now), plan.name, now))
    warnings = (*selection_warnings(metadata), *identity_warnings(metadata))
    metadata = msgspec.structs.replace(metadata, warnings=warnings)
    progress = _create_progress(metadata, clock, controls, count_trials(plan, info))
    spending = restore_spending(metadata)
    samples, stop_check = order_samples(plan, controls.decide)
    jobs = Ledger(plan_jobs(plan, samples=samples), progress.total)
    return _execution(plan, metadata, history, clock, jobs, progress, controls, spending, stop_check)


def resume_run(
    plan: Plan, info: DatasetInfo, stored_run: RunMetadata, history: History, clock: Clock, controls: RunControls
) -> RunExecution:
    """Continue a run with its missing trials; an evaluation that has changed is rejected."""
    if stored_run.rescored_from is not None:
        raise ResumeRefused(
            f"run {stored_run.run_id} is a rescoring of {stored_run.rescored_from}, which runs nothing",
            fix=f"rescore it again: proctor rescore {stored_run.rescored_from}",
        )
    metadata = _describe_run(plan, info, stored_run)
    changes = find_changes(stored_run, metadata)
    require_unchanged(stored_run, changes, allowed=controls.allow_changes)
    samples, stop_check = order_samples(plan, controls.decide, stored_run, changes)
    # Computed before errors are deleted, because failed calls cost money too.
    spending = restore_spending(metadata, history.results(stored_run.run_id))
    is_done: IsDone
    if controls.retry_errors:
        history.delete_errors(stored_run.run_id)
    finished = history.finished_trials(stored_run.run_id)
    first_position = 0
    if changes:
        is_done, first_position = done_by_name(finished)
    else:
        is_done = done_by_position(finished)
    configurations = {c.name: c for c in (*stored_run.configurations, *metadata.configurations)}
    warnings = (
        *(warning for warning in stored_run.warnings if not is_missing_warning(warning)),
        *selection_warnings(metadata),
        *identity_warnings(metadata, resumed=True),
        *_resume_warnings(changes, stored_run, metadata),
    )
    metadata = msgspec.structs.replace(
        metadata,
        status="running",
        finished_at=None,
        configurations=tuple(configurations.values()),
        warnings=tuple(dict.fromkeys(warnings)),
        stopped_early=None,
    )
    already_done = len(history.results(stored_run.run_id))
    progress = _create_progress(metadata, clock, controls, count_trials(plan, info), already_done)
    done = DoneCounter(is_done)
    jobs = Ledger(plan_jobs(plan, done, first_position, samples), progress.total, done)
    return _execution(plan, metadata, history, clock, jobs, progress, controls, spending, stop_check, False)


def rescore_run(
    stored_run: RunMetadata,
    plan: RescorePlan,
    history: History,
    clock: Clock,
    controls: RunControls,
    results: Results | None = None,
) -> RunExecution:
    """Start a new run that scores the trials of an earlier run, or of `results`, without calling a target."""
    from proctor.engine.rescore import StoredTrials

    now = clock.now()
    trials = StoredTrials(history.results(stored_run.run_id) if results is None else results, stored_run)
    metadata = _describe_rescoring(stored_run, plan, now, len(trials))
    progress = _create_progress(metadata, clock, controls, len(trials))

    @contextlib.asynccontextmanager
    async def open_runner(threads: CallThreads, writer: ResultWriter) -> AsyncIterator[Runner]:
        responses = _response_cache(metadata, history, writer, clock, controls)
        async with telemetry.observe_run(metadata) as observed:
            needs = find_needs(plan)
            peers = select_peers(needs, metadata.baseline, metadata.options) if needs or plan.checks else None
            limits = OutputLimits(metadata.options, threads)

            def make_runner(scoring: RescorePlan) -> Runner:
                timeout = metadata.options.evaluator_timeout
                scorer = Scorer(scoring.evaluators, timeout, threads, progress, responses, scoring.checks)
                return trials.runner(scorer, peers, limits)

            yield observed.make_runner(plan, make_runner)

    return RunExecution(
        metadata,
        history,
        clock,
        Ledger(trials.jobs(), len(trials)),
        progress,
        open_runner,
        metrics=plan.metrics,
        open_display=controls.watch,
        spending=restore_spending(metadata),
        source=stored_run,
    )


def _describe_rescoring(stored_run: RunMetadata, plan: RescorePlan, now: datetime, trial_count: int) -> RunMetadata:
    # The rubrics version of the earlier run does not apply to other evaluators.
    tags = {key: value for key, value in stored_run.tags.items() if key != RUBRICS_VERSION}
    specs = list_specs(plan.evaluators, plan.checks)
    metadata = msgspec.structs.replace(
        stored_run,
        run_id=new_run_id(now),
        started_at=now,
        finished_at=None,
        status="running",
        duration_seconds=0.0,
        name=plan.name or stored_run.name,
        evaluators=specs,
        tags={**tags, **plan.tags},
        environment=_environment(),
        provenance=collect_provenance(),
        warnings=(
            *_incomplete_warnings(stored_run, trial_count),
            *redaction_warnings(stored_run),
            *identity_warnings(stored_run, evaluators=specs),
        ),
        rescored_from=stored_run.run_id,
        spent=None,
        redacted={},
        # Failed trials are not run again, so they must not stop the rescoring.
        options=msgspec.structs.replace(
            stored_run.options, on_error="continue", max_errors=None, budget=plan.budget or stored_run.options.budget
        ),
        total=trial_count,
    )
    return redact_metadata(metadata)


def _resume_warnings(changes: Sequence[Problem], stored_run: RunMetadata, current_run: RunMetadata) -> Iterator[str]:
    if changes:
        change_list = "; ".join(map(str, changes))
        yield f"resumed after a change, so the results are mixed: {change_list}"
    if stored_run.status == "running":
        yield "the run was killed and resumed; its duration does not include the time before the kill"
    stored_origin, current_origin = stored_run.provenance, current_run.provenance
    if stored_origin.commit is not None and stored_origin.commit != current_origin.commit:
        yield f"resumed with other code: started at {stored_origin.code}, now {current_origin.code or 'unknown'}"


def _incomplete_warnings(stored_run: RunMetadata, result_count: int) -> Iterator[str]:
    if stored_run.status != "completed" or (stored_run.total is not None and result_count < stored_run.total):
        planned = "" if stored_run.total is None else f" of {stored_run.total} planned"
        yield f"run {stored_run.run_id} was not complete: {result_count}{planned} results were scored"


def new_run_id(now: datetime) -> str:
    """Create the id of a run that starts now."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _describe_run(plan: Plan, info: DatasetInfo, run: RunMetadata) -> RunMetadata:
    metadata = msgspec.structs.replace(
        run,
        dataset=info,
        target=plan.target.spec,
        configurations=plan.configurations,
        evaluators=list_specs(plan.evaluators, plan.checks),
        options=plan.options,
        tags={**run.tags, **plan.tags},
        environment=_environment(),
        provenance=collect_provenance(),
        total=count_trials(plan, info),
        baseline=plan.baseline,
        fields=plan.fields,
        selected=plan.selected,
    )
    return redact_metadata(metadata)


def _environment() -> dict[str, str]:
    # `platform.platform` would start a process to find the processor.
    system = f"{platform.system()}-{platform.release()}-{platform.machine()}"
    # `platform.python_version` would compile several patterns.
    return {"proctor": VERSION, "python": sys.version.split()[0], "platform": system}


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
    backend = controls.backend
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
                peers = shared_peers(plan, None if is_new else _load_finished(history, metadata))
                yield observed.make_runner(
                    plan, lambda plan: TrialRunner(plan, clock, threads, progress, cache, responses, peers=peers)
                )
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
    """Load the finished trials of samples that an earlier execution finished only in part."""
    finished = Counter(sample_id for _, sample_id, _, _ in history.finished_trials(run.run_id))
    expected = len(run.configurations) * run.options.epochs
    partial_samples = {sample_id for sample_id, count in finished.items() if count < expected}
    results = history.results(run.run_id, run)

    def load(sample_id: str) -> list[Trial]:
        return [result.trial for result in results.for_sample(sample_id)] if sample_id in partial_samples else []

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
