"""How a sitting begins: a new run, or the rest of one that was stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

import msgspec

from proctor.comparison.compare import code_of, terms_apart
from proctor.core.clock import Clock
from proctor.core.identity import SCHEME, is_other_scheme
from proctor.core.threads import Threads
from proctor.engine.beside import (
    NOT_ELSEWHERE,
    RUN_HERE,
    Before,
    company_of,
    needs_of,
    needs_others,
    together,
)
from proctor.engine.bounds import Bounds
from proctor.engine.cache import KeptAnswers, OutputCache
from proctor.engine.crew import Hear
from proctor.engine.finish import uses_cache
from proctor.engine.ledger import Ledger, Skipped, says_missing
from proctor.engine.plan import IsDone, Plan, done_by_name, done_by_position, jobs, total_of
from proctor.engine.progress import Progress
from proctor.engine.provenance import gathered
from proctor.engine.redacting import described, of_what_is_left
from proctor.engine.rescore import Rescoring, StoredTrials
from proctor.engine.run import Sitting, Watch
from proctor.engine.stopping import Decide, in_turn, spending_of
from proctor.engine.trial import Runner, Scoring, TrialRunner
from proctor.errors import ConfigError, Problem, ResumeRefused
from proctor.models.spending import Spending
from proctor.ports import History, ProgressCallback, ResultWriter
from proctor.records.rubric import RUBRICS_VERSION
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata, TargetSpec
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.sessions import telemetry
from proctor.version import VERSION

LONGEST = 60
EVALUATOR_CODE = "evaluators' code"
UNKNOWN = (
    "the run was written by another version of Proctor, which identified code in another way "
    f"(this is scheme {SCHEME}), so it cannot be known whether the code is the same"
)


def differences(before: RunMetadata, now: RunMetadata) -> list[Problem]:
    """What is not the same as when the run began, in words."""
    changes = []
    if before.dataset.fingerprint is None or now.dataset.fingerprint is None:
        changes.append(Problem("dataset", "it can be read only once, so nothing tells if it is the same"))
    elif before.dataset.fingerprint != now.dataset.fingerprint:
        lengths = f"{before.dataset.length} samples then, {now.dataset.length} now"
        changes.append(Problem("dataset", f"its content has changed ({lengths})"))
    if before.target != now.target:
        changes.append(Problem("target", _target_difference(before.target, now.target)))
    if before.configurations != now.configurations:
        changes.append(Problem("configurations", "they or their options have changed"))
    if before.baseline != now.baseline:
        baselines = f"was {before.baseline or 'none'}, is {now.baseline or 'none'}"
        changes.append(Problem("baseline", baselines))
    if before.options.epochs != now.options.epochs:
        epochs = f"were {before.options.epochs}, are {now.options.epochs}"
        changes.append(Problem("epochs", epochs))
    if before.total is not None and now.total is not None and now.total < before.total:
        planned = f"{before.total} trials were planned, {now.total} are now"
        changes.append(Problem("limit", planned))
    if now.options.limit is not None and before.options.shuffle != now.options.shuffle:
        seeds = f"was {before.options.shuffle}, is {now.options.shuffle}"
        changes.append(Problem("shuffle", f"{seeds}; with a limit these are other samples"))
    versions = [run.tags.get(RUBRICS_VERSION) for run in (before, now)]
    if versions[0] is not None and versions[0] != versions[1]:
        # Results name it, also those that were scored before.
        told = "was {}, is {}".format(*(version or "none" for version in versions))
        changes.append(Problem(RUBRICS_VERSION, told))
    return [*changes, *_other_skipped(before, now), *_evaluator_differences(before, now)]


def _other_skipped(before: RunMetadata, now: RunMetadata) -> list[Problem]:
    was, is_now = before.options.skipped, now.options.skipped
    if was == is_now:
        return []
    return [Problem("skipped", f"was {was!r}, is {is_now!r}: equal scores would pass or not")]


def _target_difference(then: TargetSpec, today: TargetSpec) -> str:
    if then.name != today.name:
        return f"was {then.name!r}, is {today.name!r}"
    if then.kind == today.kind and is_other_scheme(then.identity, today.identity):
        return UNKNOWN
    return "its code, what it uses, or its version has changed"


def _evaluator_differences(before: RunMetadata, now: RunMetadata) -> list[Problem]:
    then = {spec.name: spec for spec in before.evaluators}
    today = {spec.name: spec for spec in now.evaluators}
    if then == today:
        return []
    if (unknown := _of_other_scheme(then, today)) is not None:
        return [Problem(EVALUATOR_CODE, f"{unknown}: {UNKNOWN}")]
    gone, new = sorted(then.keys() - today.keys()), sorted(today.keys() - then.keys())
    told = {"gone": ", ".join(gone), "new": ", ".join(new), "changed": _changed(then, today)}
    words = [f"{word}: {names}" for word, names in told.items() if names]
    return [Problem("evaluators", "; ".join(words) or "their order has changed")]


def _of_other_scheme(then: Mapping[str, EvaluatorSpec], today: Mapping[str, EvaluatorSpec]) -> str | None:
    """The evaluators whose code cannot be compared, if nothing else about them differs."""
    if list(then) != list(today):
        return None
    names = [name for name in then if then[name] != today[name]]
    for name in names:
        if terms_apart(then[name], today[name]):
            return None
        if not is_other_scheme(then[name].identity, today[name].identity):
            return None
    return ", ".join(names)


def uncovered_by_identity(
    run: RunMetadata, *, resumed: bool = False, evaluators: Sequence[EvaluatorSpec] | None = None
) -> tuple[str, ...]:
    """A warning for the target and each evaluator of which some changes go unnoticed.

    What runs outside of this process is never covered; that is said where it matters, which is
    where outputs of before are used again.
    """
    outside = run.target.kind in ("http", "command")
    target = run.target.uncovered if resumed or run.options.cache or not outside else ()
    named = [(f"target {run.target.name!r}", target)] if evaluators is None else []
    specs = run.evaluators if evaluators is None else evaluators
    named += [(f"evaluator {spec.name!r}", spec.uncovered) for spec in specs]
    return tuple(
        f"{name} depends on {'; '.join(uncovered)}: a change of it is not noticed by resume, "
        "cache, workers or comparisons; set a version of the target when it changes"
        if name.startswith("target")
        else f"{name} depends on {'; '.join(uncovered)}: a change of it is not noticed by resume "
        "or comparisons"
        for name, uncovered in named
        if uncovered
    )


def _changed(then: Mapping[str, EvaluatorSpec], today: Mapping[str, EvaluatorSpec]) -> str:
    """The evaluators that are not what they were, with the options that are others."""
    alike: dict[str, list[str]] = {}
    for name in sorted(then.keys() & today.keys()):
        if then[name] != today[name]:
            alike.setdefault(_how(then[name], today[name]), []).append(name)
    return ", ".join(f"{', '.join(names)} ({how})" for how, names in alike.items())


def _how(then: EvaluatorSpec, today: EvaluatorSpec) -> str:
    apart = terms_apart(then, today)
    told = (_told(term.path, term.mine, term.theirs) for term in apart)
    return "; ".join(told) or code_of(today)


def _told(path: str, then: str, today: str) -> str:
    """An option with both its values, as far as they can be told apart."""
    was, now = (said if len(said) <= LONGEST else f"{said[:LONGEST]}…" for said in (then, today))
    return f"{path} reads otherwise" if was == now else f"{path} was {was}, is {now}"


def refuse_if_changed(before: RunMetadata, changes: Sequence[Problem], *, allowed: bool) -> None:
    """Mixing results of two different things is refused; of two sets of evaluators, always."""
    about_evaluators = any(change.where == "evaluators" for change in changes)
    if not changes or (allowed and not about_evaluators):
        return
    fix = "run it anew, or resume with --allow-changes (allow_changes=True) to mix old and new"
    if about_evaluators:
        fix = (
            "resume with the evaluators the run began with, then score its outputs "
            f"with the new ones: proctor rescore {before.run_id}"
        )
    raise ResumeRefused(
        f"run {before.run_id} cannot be resumed: it is not the same evaluation any more",
        problems=changes,
        fix=fix,
    )


class Place(Protocol):
    """Where the trials of a run are carried out, if not here."""

    def runner(
        self, plan: Plan, run: RunMetadata, progress: Progress, spending: Spending | None
    ) -> AbstractAsyncContextManager[Runner]: ...


class Conduct(msgspec.Struct, frozen=True):
    """How and where a run is carried out and, where one is resumed, what may have changed since.

    `decide` may end it before its end: no further trial is begun once it gives a reason. `heard`
    is given every result as it is stored. With `fresh`, judges are asked again what is known.
    """

    callbacks: Sequence[ProgressCallback] = ()
    watch: Watch | None = None
    allow_changes: bool = False
    retry_errors: bool = False
    place: Place | None = None
    decide: Decide | None = None
    heard: Callable[[EvalResult], object] | None = None
    fresh: bool = False


def begin(plan: Plan, info: DatasetInfo, history: History, clock: Clock, how: Conduct) -> Sitting:
    """Open a new run."""
    now = clock.now()
    metadata = _describe(plan, info, RunMetadata(new_run_id(now), plan.name, now))
    metadata = msgspec.structs.replace(metadata, warnings=uncovered_by_identity(metadata))
    progress = _progress(metadata, clock, how, total_of(plan, info))
    spending = spending_of(metadata)
    samples, decide = in_turn(plan, how.decide)
    work = Ledger(jobs(plan, samples=samples), progress.total)
    return _sitting(plan, metadata, history, clock, work, progress, how, spending, decide)


def resume(
    plan: Plan, info: DatasetInfo, before: RunMetadata, history: History, clock: Clock, how: Conduct
) -> Sitting:
    """Go on with a run: only what is missing is run. Refused if it is not the same run any more."""
    if before.rescored_from is not None:
        raise ResumeRefused(
            f"run {before.run_id} is a rescoring of {before.rescored_from}, which runs nothing",
            fix=f"rescore it anew: proctor rescore {before.rescored_from}",
        )
    metadata = _describe(plan, info, before)
    changes = differences(before, metadata)
    refuse_if_changed(before, changes, allowed=how.allow_changes)
    samples, decide = in_turn(plan, how.decide, before, changes)
    # Before errors are forgotten, for they were paid for too.
    spending = spending_of(metadata, history.results(before.run_id))
    is_done: IsDone
    if how.retry_errors:
        history.forget_errors(before.run_id)
    finished = history.done(before.run_id)
    first_position = 0
    if changes:
        is_done, first_position = done_by_name(finished)
    else:
        is_done = done_by_position(finished)
    metadata = msgspec.structs.replace(
        metadata,
        status="running",
        finished_at=None,
        configurations=_merged(before.configurations, metadata.configurations),
        warnings=tuple(
            dict.fromkeys(
                (
                    *(warning for warning in before.warnings if not says_missing(warning)),
                    *uncovered_by_identity(metadata, resumed=True),
                    *_mixed(changes),
                    *_moved(before, metadata),
                )
            )
        ),
        stopped_early=None,
    )
    already = len(history.results(before.run_id))
    progress = _progress(metadata, clock, how, total_of(plan, info), already)
    skipped = Skipped(is_done)
    work = Ledger(jobs(plan, skipped, first_position, samples), progress.total, skipped)
    return _sitting(plan, metadata, history, clock, work, progress, how, spending, decide, False)


def rescore(before: RunMetadata, plan: Rescoring, history: History, clock: Clock, how: Conduct) -> Sitting:
    """Open a new run that scores the trials of an earlier one; no target is called."""
    now = clock.now()
    stored = StoredTrials(history.results(before.run_id), before)
    # Which version of its rubrics a run was scored by says nothing of other evaluators.
    tags = {key: told for key, told in before.tags.items() if key != RUBRICS_VERSION}
    metadata = msgspec.structs.replace(
        before,
        run_id=new_run_id(now),
        started_at=now,
        finished_at=None,
        status="running",
        duration_seconds=0.0,
        name=plan.name or before.name,
        evaluators=tuple(evaluator.spec for evaluator in plan.evaluators),
        tags={**tags, **plan.tags},
        environment=_environment(),
        provenance=gathered(),
        warnings=_warnings_of_rescoring(before, plan, len(stored)),
        rescored_from=before.run_id,
        stopped_early=None,
        spent=None,
        redacted={},
        # What failed then is not run again: it is no reason to stop now.
        options=msgspec.structs.replace(
            before.options, on_error="continue", max_errors=None, budget=plan.budget or before.options.budget
        ),
        total=len(stored),
    )
    metadata = described(metadata)
    progress = _progress(metadata, clock, how, len(stored))

    @contextlib.asynccontextmanager
    async def open_runner(threads: Threads, writer: ResultWriter) -> AsyncIterator[Runner]:
        timeout = metadata.options.evaluator_timeout
        kept = _kept(metadata, history, writer, clock, how)
        async with telemetry.observing(metadata) as observed:
            evaluators = observed.evaluators(plan.evaluators)
            scoring = Scoring(evaluators, timeout, threads, progress, kept)
            needs = needs_of(plan.evaluators)
            company = company_of(plan.evaluators, metadata.baseline, metadata.options)
            bounds = Bounds(metadata.options, threads)
            yield observed.runner(stored.runner(scoring, company if needs else None, bounds))

    return Sitting(
        metadata,
        history,
        clock,
        Ledger(stored.jobs(), len(stored)),
        progress,
        open_runner,
        metrics=plan.metrics,
        watch=how.watch,
        spending=spending_of(metadata),
    )


def _mixed(changes: Sequence[Problem]) -> list[str]:
    """What must be said of a run whose results are not all of the same thing."""
    if not changes:
        return []
    said = "; ".join(map(str, changes))
    return [f"resumed although something had changed, so old and new are mixed: {said}"]


def _moved(before: RunMetadata, now: RunMetadata) -> list[str]:
    """What must be said of a run that goes on at another commit."""
    then, today = before.provenance, now.provenance
    if then.commit is None or then.commit == today.commit:
        return []
    return [f"resumed with other code: begun at {then.code}, now {today.code or 'unknown'}"]


def _warnings_of_rescoring(before: RunMetadata, plan: Rescoring, found: int) -> tuple[str, ...]:
    evaluators = [evaluator.spec for evaluator in plan.evaluators]
    return (
        *_not_whole(before, found),
        *of_what_is_left(before),
        *uncovered_by_identity(before, evaluators=evaluators),
    )


def _not_whole(before: RunMetadata, found: int) -> tuple[str, ...]:
    """What must be said of a rescoring whose run had not come to its end."""
    if before.status == "completed" and (before.total is None or found >= before.total):
        return ()
    planned = "" if before.total is None else f" of {before.total} planned"
    return (f"run {before.run_id} was not complete: {found}{planned} results were scored",)


def _merged(before: Sequence[Configuration], now: Sequence[Configuration]) -> tuple[Configuration, ...]:
    """All configurations a run has results of: the stored ones keep their places."""
    names = {configuration.name: configuration for configuration in (*before, *now)}
    return tuple(names.values())


def new_run_id(now: datetime) -> str:
    """The id of a run that begins now."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _describe(plan: Plan, info: DatasetInfo, run: RunMetadata) -> RunMetadata:
    as_it_is = msgspec.structs.replace(
        run,
        dataset=info,
        target=plan.target.spec,
        configurations=plan.configurations,
        evaluators=tuple(evaluator.spec for evaluator in plan.evaluators),
        options=plan.options,
        tags={**run.tags, **plan.tags},
        environment=_environment(),
        provenance=gathered(),
        total=total_of(plan, info),
        baseline=plan.baseline,
        fields=plan.fields,
    )
    return described(as_it_is)


def _environment() -> dict[str, str]:
    return {
        "proctor": VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
    }


def _sitting(
    plan: Plan,
    metadata: RunMetadata,
    history: History,
    clock: Clock,
    work: Ledger,
    progress: Progress,
    how: Conduct,
    spending: Spending | None,
    decide: Hear | None,
    is_new: bool = True,
) -> Sitting:
    @contextlib.asynccontextmanager
    async def here(threads: Threads, writer: ResultWriter) -> AsyncIterator[Runner]:
        cache = None
        if uses_cache(metadata):
            cache = OutputCache(plan.target.spec, history.cached, writer.keep)
        kept = _kept(metadata, history, writer, clock, how)
        try:
            async with telemetry.observing(metadata) as observed:
                watched = dataclasses.replace(plan, evaluators=observed.evaluators(plan.evaluators))
                others = together(plan, _before(history, metadata, is_new=is_new))
                runner = TrialRunner(watched, clock, threads, progress, cache, kept, others=others)
                yield observed.runner(runner)
        finally:
            await plan.target.close()

    if how.place is not None and needs_others(plan):
        raise ConfigError(NOT_ELSEWHERE, where="baseline" if plan.baseline else "evaluators", fix=RUN_HERE)

    def away(_threads: Threads, _writer: ResultWriter) -> AbstractAsyncContextManager[Runner]:
        assert how.place is not None
        return how.place.runner(plan, metadata, progress, spending)

    return Sitting(
        metadata,
        history,
        clock,
        work,
        progress,
        here if how.place is None else away,
        plan.metrics,
        how.watch,
        is_new,
        spending,
        decide,
        () if is_new or decide is None else history.results(metadata.run_id, metadata),
        how.heard,
    )


def _before(history: History, run: RunMetadata, *, is_new: bool) -> Before | None:
    """The trials of a sample that an earlier sitting finished, where it did not finish all."""
    if is_new:
        return None
    found = Counter(sample_id for _, sample_id, _, _ in history.done(run.run_id))
    whole = len(run.configurations) * run.options.epochs
    partly = {sample_id for sample_id, count in found.items() if count < whole}
    results = history.results(run.run_id, run)

    def trials(sample_id: str) -> list[Trial]:
        stored = results.of_sample(sample_id) if sample_id in partly else ()
        return [result.trial for result in stored]

    return trials


def _kept(
    run: RunMetadata, history: History, writer: ResultWriter, clock: Clock, how: Conduct
) -> KeptAnswers | None:
    if not run.options.cache:
        return None
    return KeptAnswers(history.cached, writer.keep, clock, fresh=how.fresh)


def _progress(
    run: RunMetadata, clock: Clock, how: Conduct, total: int | None, already_done: int = 0
) -> Progress:
    return Progress(
        run.run_id,
        clock,
        total=total,
        already_done=already_done,
        evaluators=len(run.evaluators),
        configurations=[configuration.name for configuration in run.configurations],
        fields=run.fields,
        callbacks=how.callbacks,
    )
