"""A run in two steps: its requests are sent now, its results are collected whenever they are there.

Both steps use the history, so that they may be done by different processes on different days.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from proctor.core.clock import Clock, SystemClock
from proctor.distributed.account import listed, trial_label
from proctor.distributed.arrival import check_arrival, check_dataset
from proctor.distributed.batches import batches
from proctor.distributed.collect import Gathering
from proctor.distributed.expected_results import expectation, refuse_cache, removed
from proctor.distributed.letters import Letters
from proctor.distributed.remote_runner import position_in, request_id, request_of, results_name
from proctor.engine.finish import finish
from proctor.engine.progress import Progress
from proctor.engine.redacting import guarded, redaction_for, with_counts
from proctor.engine.run import Watch
from proctor.engine.start import Conduct, begin
from proctor.errors import ConfigError, DatasetError, UsageError
from proctor.ports import History, Mailbox, Metric
from proctor.records.mail import EvalRequest
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult
from proctor.wiring.prepare import Evaluation, prepare
from proctor.wiring.registry import Registry


def submit(
    evaluation: Evaluation,
    requests: Mailbox[EvalRequest[Any, Any]],
    history: History,
    *,
    registry: Registry | None = None,
    clock: Clock | None = None,
) -> RunMetadata:
    """Open a run and send a request for each of its trials; `collect` takes it from there."""
    clock = clock or SystemClock()
    plan = prepare(evaluation, registry or Registry.standard())
    info = plan.dataset.inspect()
    if info.length == 0:
        raise DatasetError("it holds no samples", where=info.name)
    if plan.options.shuffle is not None and plan.options.limit is not None:
        raise ConfigError(
            "a random part of a dataset cannot be submitted",
            where="shuffle",
            fix="leave shuffle or limit out, or run it with `proctor run --workers`",
        )
    is_checked = check_dataset(requests, plan.dataset, plan.configurations, plan.options.limit)
    sitting = begin(plan, info, history, clock, Conduct())
    run = msgspec.structs.replace(sitting.metadata, status="submitted")
    refuse_cache(run)
    history.begin(run)
    expects = expectation(plan)
    reply_to = results_name(requests.name, run.run_id)
    sent = 0
    sample_ids: dict[int, str] = {}

    def each() -> Iterator[EvalRequest[Any, Any]]:
        for job in sitting.jobs:
            sample_ids[job[0] // trials_per_sample(run)] = job[1].id
            yield request_of(job, run.run_id, clock.now(), expects)

    try:
        for batch in batches(each()):
            if not is_checked:
                check_arrival(requests, batch)
            requests.send_all(batch, reply_to=reply_to)
            sent += len(batch)
    except BaseException:
        history.update(msgspec.structs.replace(run, status="failed", total=sent))
        raise
    planned = tuple(sample_ids[number] for number in sorted(sample_ids))
    run = msgspec.structs.replace(run, total=sent, planned_samples=planned)
    history.update(run)
    return run


def collect(
    reference: str,
    requests: Mailbox[EvalRequest[Any, Any]],
    history: History,
    *,
    timeout: float = 300.0,
    metrics: Sequence[Metric] = (),
    watch: Watch | None = None,
    clock: Clock | None = None,
) -> EvalReport:
    """Put the results of a submitted run into the history, as many as come within `timeout`.

    The run is complete when all are there; until then it can be collected again. `metrics` are
    computed beside the standard ones.
    """
    clock = clock or SystemClock()
    run = history.find(reference)
    total = _sent_of(run)
    results = requests.beside(results_name(requests.name, run.run_id), EvalResult)
    before = clock.monotonic()
    redaction = redaction_for(run.options)
    with contextlib.closing(results), history.hold(run.run_id):
        done = {position for position, *_ in history.done(run.run_id)}
        counted = Progress(run.run_id, clock, total=run.total, already_done=len(done))
        watched = contextlib.nullcontext() if watch is None else watch(counted)
        opened = history.writer(run.run_id)
        # At once, for what is acknowledged must be durable.
        with watched, opened as writer, guarded(writer, redaction, at_once=True) as kept:
            gathering = Gathering(
                results,
                total - len(done),
                clock,
                run_id=run.run_id,
                own=lambda result: _position(run, result) in range(total),
                known=(request_id(run.run_id, position) for position in done),
                letters=Letters(requests, lambda request: request.run_id == run.run_id),
                told=lambda result: counted.count(result.outcome),
                secure=writer.flush,
            )
            for result in gathering.take(timeout):
                position = _position(run, result)
                assert position is not None  # else it is not its own
                kept.add(position, msgspec.structs.replace(result, skipped=run.options.skipped))
                done.add(position)
        missing = [position for position in range(total) if position not in done]
        warnings = gathering.account.sentences()
        if not missing:
            # What was collected is on disk.
            warnings += removed(results)
        run = _standing(run, bool(missing), warnings, clock, clock.monotonic() - before)
        run = with_counts(run, redaction)
        report = finish(history, run, metrics)
    # In this report only: it will not be true for long.
    said = (*run.warnings, *_missing(run, missing))
    run = msgspec.structs.replace(run, warnings=said, planned_samples=())
    return EvalReport(report.results, run, report.metrics, report.by_configuration)


def _standing(
    run: RunMetadata, is_missing: bool, warnings: Sequence[str], clock: Clock, seconds: float
) -> RunMetadata:
    """How a run stands after it was collected; what earlier collections said of it stays true."""
    unsent = tuple(_unsent(run))
    return msgspec.structs.replace(
        run,
        # What was never sent cannot be collected, but the run can be resumed.
        status="submitted" if is_missing else "interrupted" if unsent else "completed",
        planned_samples=run.planned_samples if is_missing else (),
        finished_at=clock.now(),
        duration_seconds=run.duration_seconds + seconds,
        warnings=tuple(dict.fromkeys((*run.warnings, *warnings, *unsent))),
    )


def _sent_of(run: RunMetadata) -> int:
    """How many requests were sent for a run, if it is one that can be collected."""
    # What ends here says when; a run that could not be sent whole has not come to an end.
    is_part = run.status == "failed" and run.finished_at is None
    if run.total is None or not (run.status == "submitted" or is_part):
        raise UsageError(
            f"run {run.run_id} is {run.status}: there is nothing to collect",
            fix="name a run that `proctor submit` has sent",
        )
    return run.total


def _position(run: RunMetadata, result: EvalResult) -> int | None:
    return position_in(run.run_id, result.delivery)


def trials_per_sample(run: RunMetadata) -> int:
    """How many trials of a run belong to one sample."""
    return len(run.configurations) * run.options.epochs


def _unsent(run: RunMetadata) -> Iterator[str]:
    """Say if requests of a run were never sent, and how to run their trials."""
    planned = _planned(run)
    if planned is not None and run.total is not None and run.total != planned:
        yield (
            f"only {run.total} of {planned} requests were sent; run the others with "
            f"`proctor run --resume {run.run_id}`"
        )


def _missing(run: RunMetadata, missing: list[int]) -> Iterator[str]:
    """Name the trials that have no result yet."""
    if missing:
        labels = listed([_label(run, position) for position in missing])
        yield (f"{len(missing)} of {run.total} results are missing: {labels}; they can be collected later")


def _label(run: RunMetadata, position: int) -> str:
    """A trial by its place in the plan: sample, configuration and epoch."""
    number, place = divmod(position, trials_per_sample(run))
    if number >= len(run.planned_samples):
        # Submitted by a version that did not keep the ids.
        return f"trial {position + 1}"
    in_turn = sorted(run.configurations, key=lambda one: one.name != run.baseline)
    which, epoch = divmod(place, run.options.epochs)
    return trial_label(run.planned_samples[number], in_turn[which].name, epoch)


def _planned(run: RunMetadata) -> int | None:
    """How many trials a run was to have, if its dataset knows its length."""
    length, options = run.dataset.length, run.options
    if length is None:
        return None
    return min(length, options.limit or length) * len(run.configurations) * options.epochs
