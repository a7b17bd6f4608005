"""Submit samples to workers, and collect the results later, even in another process.

`submit` and `collect` store the run in a history; `submit_dataset` and `collect_results` need no history.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core.aliases import TimeoutAlias, accept_aliases
from proctor.core.clock import Clock, SystemClock
from proctor.datasets.dataset import make_source
from proctor.distributed.batches import split_batches
from proctor.distributed.check_requests import check_arrival, check_dataset
from proctor.distributed.delivery_counts import DeadLetterPoller, join_labels, trial_label
from proctor.distributed.expected_results import describe_setup, reject_cache, remove_mailbox
from proctor.distributed.notices import read_notice
from proctor.distributed.remote_runner import create_request, parse_position, request_id, results_name
from proctor.distributed.result_collector import ResultCollector
from proctor.engine.finish import aggregate, finish
from proctor.engine.progress import Progress
from proctor.engine.redaction import add_redaction_counts, create_redaction, redacting_writer
from proctor.engine.run import OpenDisplay
from proctor.engine.start import RunControls, begin_run, new_run_id
from proctor.errors import ConfigError, MailboxFull, UsageError
from proctor.ports import DatasetLike, History, Mailbox, Metric, ProgressCallback
from proctor.records.formatting import format_count
from proctor.records.mail import EvalRequest
from proctor.records.results import ResultList
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.trial import Configuration, EvalResult
from proctor.wiring.evaluate import list_callbacks
from proctor.wiring.prepare import Configurations, Evaluation, build_configurations, inspect_dataset, prepare
from proctor.wiring.registry import Registry


def _send_requests(
    requests: Mailbox[EvalRequest[Any, Any]],
    built: Iterable[EvalRequest[Any, Any]],
    reply_to: str | Mailbox[Any] | None,
    *,
    is_checked: bool,
) -> Iterator[int]:
    """Send requests in batches, and yield the size of each batch that was sent."""
    for batch in split_batches(built):
        if not is_checked:
            check_arrival(requests, batch)
        requests.send_all(batch, reply_to=reply_to)
        yield len(batch)


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
    info = inspect_dataset(plan, evaluation.places)
    if plan.options.shuffle is not None and plan.options.limit is not None:
        raise ConfigError(
            "a random subset of a dataset cannot be submitted",
            where="shuffle",
            fix="leave shuffle or limit out, or run it with `proctor run --workers`",
        )
    if plan.options.select is not None:
        raise ConfigError(
            "selected samples cannot be submitted",
            where="select",
            fix="leave select out, or run it with `proctor run --workers`",
        )
    is_checked = check_dataset(requests, plan.dataset, plan.configurations, plan.options.limit)
    started = begin_run(plan, info, history, clock, RunControls())
    run = msgspec.structs.replace(started.metadata, status="submitted")
    reject_cache(run)
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
        for count in _send_requests(requests, build_requests(), reply_to, is_checked=is_checked):
            sent += count
    except BaseException:
        if sent:
            history.update(msgspec.structs.replace(run, status="failed", total=sent))
        else:
            # Nothing of it can be collected, and it would be the latest run.
            history.delete(run.run_id)
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

    Collect the run again until it is complete. `metrics` are computed in addition to the standard metrics.
    """
    clock = clock or SystemClock()
    run = history.find(reference)
    total = _count_sent(run)
    results = requests.open_mailbox(results_name(requests.name, run.run_id), EvalResult)
    started = clock.monotonic()
    redaction = create_redaction(run.options)
    with contextlib.closing(results), history.claim(run.run_id):
        finished_positions = {position for position, *_ in history.finished_trials(run.run_id)}
        progress = Progress(run.run_id, clock, total=run.total, already_done=len(finished_positions))
        display = contextlib.nullcontext() if watch is None else watch(progress)
        # Write immediately, because an acknowledged result must be durable.
        with (
            display,
            history.writer(run.run_id) as writer,
            redacting_writer(writer, redaction, is_immediate=True) as guarded_writer,
        ):
            gathering = ResultCollector(
                results,
                total - len(finished_positions),
                clock,
                run_id=run.run_id,
                is_own=lambda result: _position(run, result) in range(total),
                known_ids=(request_id(run.run_id, position) for position in finished_positions),
                dead_letters=DeadLetterPoller(requests, lambda request: request.run_id == run.run_id),
                on_result=lambda result: progress.count(result.outcome),
                persist=writer.flush,
            )
            for result in gathering.take(timeout):
                position = _position(run, result)
                assert position is not None  # `is_own` accepts only results of this run.
                guarded_writer.add(position, msgspec.structs.replace(result, skipped=run.options.skipped))
                finished_positions.add(position)
        missing = [position for position in range(total) if position not in finished_positions]
        warnings = gathering.delivery_counts.warnings()
        if not missing:
            # All results are on disk.
            warnings += remove_mailbox(results)
        run = _update_status(run, bool(missing), warnings, clock, clock.monotonic() - started)
        run = add_redaction_counts(run, redaction)
        report = finish(history, run, metrics)
    # These warnings are not stored, because a later collection may find the missing results.
    labels = [_label_trial(run, position) for position in missing]
    later = (f"{_describe_missing(labels, total)}; they can be collected later",) if missing else ()
    run = msgspec.structs.replace(run, warnings=(*run.warnings, *later), planned_samples=())
    return dataclasses.replace(report, metadata=run)


def _update_status(
    run: RunMetadata, is_missing: bool, warnings: Sequence[str], clock: Clock, seconds: float
) -> RunMetadata:
    """Return the run after a collection; the warnings of earlier collections are preserved."""
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
            f"only {run.total} of {planned} requests were sent; run the others with `proctor run --resume {run.run_id}`"
        )


def _describe_missing(labels: list[str], total: int) -> str:
    return f"{len(labels)} of {total} results are missing: {join_labels(labels)}"


def _label_trial(run: RunMetadata, position: int) -> str:
    """Return the label of a trial by its position in the plan: sample, configuration and epoch."""
    number, offset = divmod(position, trials_per_sample(run))
    if number >= len(run.planned_samples):
        # An older version submitted the run and did not store the ids.
        return f"trial {position + 1}"
    ordered = sorted(run.configurations, key=lambda configuration: configuration.name != run.baseline)
    index, epoch = divmod(offset, run.options.epochs)
    return trial_label(run.planned_samples[number], ordered[index].name, epoch)


class Submission(msgspec.Struct, frozen=True):
    """The requests of a run: the sample of each request id.

    `labels` describes the trial of each request: its sample, and its configuration and epoch if they are not the
    default.
    """

    run_id: str
    samples: Mapping[str, str]
    labels: Mapping[str, str] = {}

    def __len__(self) -> int:
        return len(self.samples)


def submit_dataset(
    dataset: DatasetLike,
    requests: Mailbox[EvalRequest[Any, Any]],
    *,
    configurations: Configurations | None = None,
    epochs: int = 1,
    run_id: str | None = None,
    reply_to: str | Mailbox[Any] | None = None,
    clock: Clock | None = None,
) -> Submission:
    """Send every sample of a dataset to workers, in every configuration and epoch.

    Requests that are sent again with the same `run_id` have the same ids, so that duplicate results are recognized.
    """
    clock = clock or SystemClock()
    run_id = run_id or new_run_id(clock.now())
    source = make_source(dataset)
    source.inspect()
    expanded = build_configurations(configurations)
    is_checked = check_dataset(requests, source, expanded)
    sent: dict[str, str] = {}
    labels: dict[str, str] = {}

    def build_requests() -> Iterator[EvalRequest[Any, Any]]:
        trials = ((sample, option_set, n) for sample in source for option_set in expanded for n in range(epochs))
        for sample, configuration, epoch in trials:
            request = create_request((len(sent), sample, configuration, epoch), run_id, clock.now())
            sent[request.request_id] = sample.id
            labels[request.request_id] = trial_label(sample.id, configuration.name, epoch)
            yield request

    sent_count = 0
    try:
        for count in _send_requests(requests, build_requests(), reply_to, is_checked=is_checked):
            sent_count += count
    except MailboxFull as error:
        raise MailboxFull(
            f"{error.what}; sent {format_count(sent_count, 'request')} of run {run_id!r}",
            where=error.where,
            fix=f"submit again with run_id={run_id!r} when there is room (duplicates count once), "
            "or give the mailbox a larger capacity",
        ) from None
    return Submission(run_id, sent, labels)


@accept_aliases
def collect_results(
    results: Mailbox[EvalResult],
    expected_count: int | Submission,
    *,
    timeout: float = 300.0,
    run_id: str | None = None,
    requests: Mailbox[Any] | None = None,
    on_progress: ProgressCallback | Sequence[ProgressCallback] = (),
    clock: Clock | None = None,
    **_aliases: Unpack[TimeoutAlias],
) -> EvalReport:
    """Collect results into a report: one for each request; a success replaces an error.

    After `timeout` seconds the report has the results so far, and its warnings list the missing results. Pass the
    `Submission` of `submit_dataset` to ignore results of other runs and to list missing samples. Pass `requests` to
    report requests that became dead letters.
    """
    clock = clock or SystemClock()
    submission = None if isinstance(expected_count, int) else expected_count
    expected = expected_count if isinstance(expected_count, int) else len(expected_count)
    run_id = run_id if submission is None else submission.run_id
    letters = None if requests is None else _watch_letters(requests, run_id)
    started = clock.now()
    progress = Progress(run_id or "", clock, total=expected, callbacks=list_callbacks(on_progress))
    progress.start()
    gathering = ResultCollector(
        results,
        expected,
        clock,
        run_id=run_id,
        is_own=lambda result: _is_own(result, run_id, submission),
        dead_letters=letters,
        on_result=lambda result: _report_progress(progress, result),
    )
    collected = list(gathering.take(timeout))
    progress.end(failed=len(collected) < expected)
    if submission is not None:
        order = {request_id: position for position, request_id in enumerate(submission.samples)}
        collected.sort(key=lambda result: order.get(_request_id(result), len(order)))
    names = dict.fromkeys(name for result in collected for name in result.scores)
    configurations = dict.fromkeys(result.trial.configuration for result in collected)
    missing = _find_missing(collected, expected, submission)
    run = RunMetadata(
        run_id or "",
        name=results.name,
        started_at=started,
        status="completed" if len(collected) >= expected else "interrupted",
        finished_at=clock.now(),
        duration_seconds=progress.seconds,
        total=expected,
        configurations=tuple(map(Configuration, configurations)) or (Configuration(),),
        evaluators=tuple(EvaluatorSpec(name, name) for name in names),
        warnings=(*progress.warnings, *gathering.delivery_counts.warnings(), *missing),
    )
    result_list = ResultList(collected)
    return EvalReport(result_list, run, *aggregate(result_list, run))


def _watch_letters(requests: Mailbox[Any], run_id: str | None) -> DeadLetterPoller:
    if run_id is None:
        raise ConfigError(
            "requests= needs to know the run whose dead letters to report",
            where="collect_results",
            fix="pass the Submission of submit_dataset instead of a number, or run_id=…",
        )
    return DeadLetterPoller(requests, lambda request: request.run_id == run_id)


def _find_missing(collected: Sequence[EvalResult], expected: int, submission: Submission | None) -> Iterator[str]:
    count = expected - len(collected)
    if count <= 0:
        return
    if submission is None:
        yield f"{count} of {expected} results are missing"
        return
    received = set(map(_request_id, collected))
    labels = {**submission.samples, **submission.labels}
    yield _describe_missing([labels[request_id] for request_id in labels if request_id not in received], expected)


def _is_own(result: EvalResult, run_id: str | None, submission: Submission | None) -> bool:
    """True for a result of this run; false for notices of workers."""
    if submission is not None:
        return _run_id(result) == run_id and _request_id(result) in submission.samples
    return read_notice(result) is None and (run_id is None or _run_id(result) == run_id)


def _run_id(result: EvalResult) -> str | None:
    return None if result.delivery is None else result.delivery.run_id


def _request_id(result: EvalResult) -> str:
    return "" if result.delivery is None else result.delivery.request_id


def _report_progress(progress: Progress, result: EvalResult) -> None:
    progress.count(result.outcome)
    if progress.has_listeners:
        progress.expect(len(result.scores))
        progress.trial_start(result.trial.configuration)
        for name, score in result.scores.items():
            progress.evaluator_start(result.trial, name)
            progress.evaluator_end(result.trial, name, score)
        progress.trial_end(result.trial)
