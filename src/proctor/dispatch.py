"""A run in two steps: its requests are sent now, its results are collected whenever they are there.

Both steps use the history, so that they may be done by different processes on different days.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from proctor.clock import Clock, SystemClock
from proctor.engine.finish import finish
from proctor.engine.progress import Progress
from proctor.engine.redacting import guarded, redaction_for, with_counts
from proctor.engine.run import Watch
from proctor.engine.start import Conduct, begin
from proctor.errors import SHOWN_AT_MOST, ConfigError, DatasetError, UsageError
from proctor.fleet.answered import refuse_cache, removed
from proctor.fleet.errands import position_in, request_id, request_of, results_name
from proctor.fleet.expectation import expectation
from proctor.fleet.gathering import Gathering
from proctor.fleet.letters import Letters
from proctor.fleet.sending import batches
from proctor.ports import History, Mailbox, Metric
from proctor.prepare import Evaluation, prepare
from proctor.records.mail import EvalRequest
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult
from proctor.registry import Registry


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
    sitting = begin(plan, info, history, clock, Conduct())
    run = msgspec.structs.replace(sitting.metadata, status="submitted")
    refuse_cache(run)
    history.begin(run)
    expects = expectation(plan)
    each = (request_of(job, run.run_id, clock.now(), expects) for job in sitting.jobs)
    reply_to = results_name(requests.name, run.run_id)
    sent = 0
    try:
        for batch in batches(each):
            requests.send_all(batch, reply_to=reply_to)
            sent += len(batch)
    except BaseException:
        history.update(msgspec.structs.replace(run, status="failed", total=sent))
        raise
    run = msgspec.structs.replace(run, total=sent)
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
        run = msgspec.structs.replace(
            run,
            status="submitted" if missing else "completed",
            finished_at=clock.now(),
            duration_seconds=run.duration_seconds + clock.monotonic() - before,
            warnings=(
                *gathering.account.sentences(),
                # What was collected is on disk.
                *(() if missing else removed(results)),
            ),
        )
        run = with_counts(run, redaction)
        report = finish(history, run, metrics)
    # Said, but not stored: it will not be true for long.
    run = msgspec.structs.replace(run, warnings=(*run.warnings, *_said(run, missing)))
    return EvalReport(report.results, run, report.metrics, report.by_configuration)


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


def _said(run: RunMetadata, missing: list[int]) -> Iterator[str]:
    planned = _planned(run)
    if planned is not None and run.total != planned:
        yield f"only {run.total} of {planned} requests were sent"
    if missing:
        numbers = ", ".join(str(position + 1) for position in missing[:SHOWN_AT_MOST])
        more = ", …" if len(missing) > SHOWN_AT_MOST else ""
        yield (
            f"{len(missing)} of {run.total} results are missing (trial {numbers}{more}); "
            "they can be collected later"
        )


def _planned(run: RunMetadata) -> int | None:
    """How many trials a run was to have, if its dataset knows its length."""
    length, options = run.dataset.length, run.options
    if length is None:
        return None
    return min(length, options.limit or length) * len(run.configurations) * options.epochs
