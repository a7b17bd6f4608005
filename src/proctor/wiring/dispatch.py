"""Submit a run to workers, and collect its results later, even in another process.

The history connects the two steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from proctor.core.clock import Clock, SystemClock
from proctor.distributed.batches import split_batches
from proctor.distributed.check_requests import check_arrival, check_dataset
from proctor.distributed.dead_letters import DeadLetterPoller
from proctor.distributed.delivery_counts import join_labels, trial_label
from proctor.distributed.expected_results import describe_setup, refuse_cache, remove_mailbox
from proctor.distributed.remote_runner import create_request, parse_position, request_id, results_name
from proctor.distributed.result_collector import ResultCollector
from proctor.engine.finish import finish
from proctor.engine.progress import Progress
from proctor.engine.redaction import add_redaction_counts, create_redaction, redacting_writer
from proctor.engine.run import OpenDisplay
from proctor.engine.start import RunControls, begin_run
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
    """Store a run and send a request for each of its trials; `collect` receives the results."""
    clock = clock or SystemClock()
    plan = prepare(evaluation, registry or Registry.standard())
    info = plan.dataset.inspect()
    if info.length == 0:
        raise DatasetError("the dataset has no samples", where=info.name)
    if plan.options.shuffle is not None and plan.options.limit is not None:
        raise ConfigError(
            "a random subset of a dataset cannot be submitted",
            where="shuffle",
            fix="leave shuffle or limit out, or run it with `proctor run --workers`",
        )
    is_checked = check_dataset(requests, plan.dataset, plan.configurations, plan.options.limit)
    started = begin_run(plan, info, history, clock, RunControls())
    run = msgspec.structs.replace(started.metadata, status="submitted")
    refuse_cache(run)
    history.begin(run)
    expects = describe_setup(plan)
    reply_to = results_name(requests.name, run.run_id)
    sent = 0
    sample_ids: dict[int, str] = {}

    def build_requests() -> Iterator[EvalRequest[Any, Any]]:
        for job in started.jobs:
            sample_ids[job[0] // trials_per_sample(run)] = job[1].id
            yield create_request(job, run.run_id, clock.now(), expects)

    try:
        for batch in split_batches(build_requests()):
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
    watch: OpenDisplay | None = None,
    clock: Clock | None = None,
) -> EvalReport:
    """Store the results of a submitted run that arrive within `timeout` seconds.

    Collect the run again until it is complete. `metrics` are computed in addition to the standard
    ones.
    """
    clock = clock or SystemClock()
    run = history.find(reference)
    total = _count_sent(run)
    results = requests.open_mailbox(results_name(requests.name, run.run_id), EvalResult)
    before = clock.monotonic()
    redaction = create_redaction(run.options)
    with contextlib.closing(results), history.claim(run.run_id):
        done = {position for position, *_ in history.done(run.run_id)}
        progress = Progress(run.run_id, clock, total=run.total, already_done=len(done))
        display = contextlib.nullcontext() if watch is None else watch(progress)
        results_writer = history.writer(run.run_id)
        # Write at once: an acknowledged result must be durable.
        with (
            display,
            results_writer as writer,
            redacting_writer(writer, redaction, at_once=True) as guarded_writer,
        ):
            gathering = ResultCollector(
                results,
                total - len(done),
                clock,
                run_id=run.run_id,
                is_own=lambda result: _position(run, result) in range(total),
                known_ids=(request_id(run.run_id, position) for position in done),
                dead_letters=DeadLetterPoller(requests, lambda request: request.run_id == run.run_id),
                on_result=lambda result: progress.count(result.outcome),
                secure=writer.flush,
            )
            for result in gathering.take(timeout):
                position = _position(run, result)
                assert position is not None  # `is_own` accepts only results of this run
                guarded_writer.add(position, msgspec.structs.replace(result, skipped=run.options.skipped))
                done.add(position)
        missing = [position for position in range(total) if position not in done]
        warnings = gathering.account.warnings()
        if not missing:
            # All results are on disk.
            warnings += remove_mailbox(results)
        run = _update_status(run, bool(missing), warnings, clock, clock.monotonic() - before)
        run = add_redaction_counts(run, redaction)
        report = finish(history, run, metrics)
    # Not stored: a later collection may find the missing results.
    shown_warnings = (*run.warnings, *_describe_missing(run, missing))
    run = msgspec.structs.replace(run, warnings=shown_warnings, planned_samples=())
    return EvalReport(report.results, run, report.metrics, report.by_configuration)


def _update_status(
    run: RunMetadata, is_missing: bool, warnings: Sequence[str], clock: Clock, seconds: float
) -> RunMetadata:
    """Return the run after a collection; warnings of earlier collections are kept."""
    unsent = tuple(_describe_unsent(run))
    return msgspec.structs.replace(
        run,
        # Requests that were never sent cannot be collected; the run can be resumed.
        status="submitted" if is_missing else "interrupted" if unsent else "completed",
        planned_samples=run.planned_samples if is_missing else (),
        finished_at=clock.now(),
        duration_seconds=run.duration_seconds + seconds,
        warnings=tuple(dict.fromkeys((*run.warnings, *warnings, *unsent))),
    )


def _count_sent(run: RunMetadata) -> int:
    """Return the number of requests sent for a run; reject a run that was not submitted."""
    # A submission that failed halfway has no end time.
    is_partial = run.status == "failed" and run.finished_at is None
    if run.total is None or not (run.status == "submitted" or is_partial):
        raise UsageError(
            f"run {run.run_id} is {run.status}: there is nothing to collect",
            fix="name a run that `proctor submit` sent",
        )
    return run.total


def _position(run: RunMetadata, result: EvalResult) -> int | None:
    return parse_position(run.run_id, result.delivery)


def trials_per_sample(run: RunMetadata) -> int:
    """Return the number of trials of each sample of a run."""
    return len(run.configurations) * run.options.epochs


def _describe_unsent(run: RunMetadata) -> Iterator[str]:
    length = run.dataset.length
    if length is None:
        return
    planned = min(length, run.options.limit or length) * trials_per_sample(run)
    if run.total is not None and run.total != planned:
        yield (
            f"only {run.total} of {planned} requests were sent; run the others with "
            f"`proctor run --resume {run.run_id}`"
        )


def _describe_missing(run: RunMetadata, missing: list[int]) -> Iterator[str]:
    if missing:
        labels = join_labels([_label_trial(run, position) for position in missing])
        yield f"{len(missing)} of {run.total} results are missing: {labels}; they can be collected later"


def _label_trial(run: RunMetadata, position: int) -> str:
    """Name a trial by its position in the plan: sample, configuration and epoch."""
    number, offset = divmod(position, trials_per_sample(run))
    if number >= len(run.planned_samples):
        # An older version submitted the run and did not store the ids.
        return f"trial {position + 1}"
    ordered = sorted(run.configurations, key=lambda each: each.name != run.baseline)
    index, epoch = divmod(offset, run.options.epochs)
    return trial_label(run.planned_samples[number], ordered[index].name, epoch)
