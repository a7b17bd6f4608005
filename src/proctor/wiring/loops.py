"""`EvalRunner`, `EvalLoop`, `submit_dataset` and `collect_results`: evaluate by mailboxes in programs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import msgspec

from proctor.comparison.report import FieldReport
from proctor.core import bridge
from proctor.core.clock import Clock, SystemClock
from proctor.datasets.source import make_source
from proctor.distributed.batches import split_batches
from proctor.distributed.check_requests import check_arrival, check_dataset
from proctor.distributed.dead_letters import DeadLetterPoller
from proctor.distributed.delivery_counts import join_labels, trial_label
from proctor.distributed.inbox import StopCondition
from proctor.distributed.notices import read_notice
from proctor.distributed.outbox import WorkerSummary
from proctor.distributed.remote_runner import create_request
from proctor.distributed.result_collector import ResultCollector
from proctor.distributed.worker import Worker, WorkerConfig
from proctor.engine.finish import aggregate
from proctor.engine.progress import Progress
from proctor.engine.start import new_run_id
from proctor.errors import ConfigError, MailboxFull
from proctor.ports import Mailbox, ProgressCallback
from proctor.records.mail import EvalRequest
from proctor.records.report import EvalReport
from proctor.records.results import ResultList
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.trial import Configuration, EvalResult
from proctor.wiring.evaluate import RunOptionsKwargs, evaluate
from proctor.wiring.prepare import Configurations, Metrics, build_configurations, prepare_setup
from proctor.wiring.registry import Registry


class EvalRunner:
    """A target with its evaluators and metrics, to run on datasets.

    `continue_on_error=False` stops at the first failed sample; `timeout_seconds` applies to each
    call of the target.
    """

    def __init__(
        self,
        target: Any,
        evaluators: Any,
        metrics: Metrics | None = None,
        *,
        timeout_seconds: float | None = 30.0,
        continue_on_error: bool = True,
        **options: Unpack[RunOptionsKwargs],
    ) -> None:
        self.target = target
        self.evaluators = evaluators
        self.metrics = tuple(metrics or ())
        self.options = options
        self.options["timeout"] = timeout_seconds
        self.options["on_error"] = "continue" if continue_on_error else "raise"

    def run(self, dataset: Any, configurations: Any = None, **settings: Any) -> FieldReport:
        """Evaluate the target on a dataset; `settings` are those of `evaluate`."""
        return evaluate(
            self.target,
            dataset,
            self.evaluators,
            configurations=configurations,
            metrics=self.metrics,
            **{**self.options, **settings},
        )


_log = logging.getLogger("proctor.worker")


if TYPE_CHECKING:
    # Python 3.11 has no defaults of type variables; type checkers read them from here.
    from typing_extensions import TypeVar as TypeVarWithDefault

    LoopInputT = TypeVarWithDefault("LoopInputT", default=Any)
    LoopOutputT = TypeVarWithDefault("LoopOutputT", default=Any)
    LoopExpectedT = TypeVarWithDefault("LoopExpectedT", default=Any)
else:
    LoopInputT = TypeVar("LoopInputT")
    LoopOutputT = TypeVar("LoopOutputT")
    LoopExpectedT = TypeVar("LoopExpectedT")


class EvalLoop(Generic[LoopInputT, LoopOutputT, LoopExpectedT]):
    """Answers the requests of a mailbox: runs each sample, scores it, and sends the result.

    `loop` is a main loop or any other target; `evaluator` is one evaluator or several. Results go
    to `results`, or to the mailbox that each request names. `options` are those of `evaluate`
    (concurrency, timeout, retries …). If this process dies, others receive its requests after
    `lease_seconds`. A poll takes at most `batch_size` requests.

    >>> from proctor import InMemoryMailbox, Sample, exact_match
    >>> requests, results = InMemoryMailbox("requests"), InMemoryMailbox("results")
    >>> loop = EvalLoop(
    ...     loop=str.upper, evaluator=exact_match, requests=requests, results=results
    ... )
    >>> submission = submit_dataset([{"id": "1", "input": "yes", "expected": "YES"}], requests)
    >>> tally = loop.run(max_iterations=1)
    >>> collect_results(results, submission).pass_rate
    1.0
    """

    def __init__(
        self,
        *,
        loop: Any,
        evaluator: Any,
        requests: Mailbox[EvalRequest[LoopInputT, LoopExpectedT]],
        results: Mailbox[EvalResult] | None = None,
        lease_seconds: float = 30.0,
        batch_size: int = 1_000,
        wait_seconds: float = 20.0,
        name: str = "",
        registry: Registry | None = None,
        **options: Unpack[RunOptionsKwargs],
    ) -> None:
        if options.get("budget") is not None:
            raise ConfigError(
                "a loop cannot have a budget, because it answers requests of any run",
                where="EvalLoop",
                fix="pass the budget to the run: evaluate(…, workers=…, budget=…)",
            )
        for where, box in (("requests", requests), ("results", results)):
            if isinstance(box, str):
                raise ConfigError(
                    f"{box!r} is not a mailbox", where=where, fix="pass a mailbox, such as RedisMailbox(…)"
                )
        setup = prepare_setup(loop, evaluator, options, registry or Registry.standard())
        post = WorkerConfig(requests, results, lease_seconds, name, trouble=_log.warning)
        self._worker = Worker(setup, post)
        self._until = StopCondition(wait=wait_seconds, batch=batch_size)

    async def arun(self, *, max_iterations: int | None = None, until_empty: bool = False) -> WorkerSummary:
        """Answer requests for `max_iterations` polls, until the mailbox is empty, or until `stop`."""
        if max_iterations is not None and max_iterations < 1:
            raise ConfigError(
                "max_iterations must be at least 1", where="EvalLoop.run", fix="write max_iterations=1"
            )
        until = msgspec.structs.replace(self._until, polls=max_iterations, empty=until_empty)
        return await self._worker.run(until)

    run = bridge.synchronous(arun)

    def stop(self) -> None:
        """Finish the running samples and return the other requests; safe to call from any thread.

        A second call also stops the running samples. A call before `run` ends the next `run`.
        """
        self._worker.stop()


class Submission(msgspec.Struct, frozen=True):
    """The requests of a run: the sample of each request id.

    `labels` names the trial of each request: its sample, and its configuration and epoch if they
    are not the default.
    """

    run_id: str
    samples: Mapping[str, str]
    labels: Mapping[str, str] = {}

    def __len__(self) -> int:
        return len(self.samples)


def submit_dataset(
    dataset: Any,
    requests: Mailbox[EvalRequest[Any, Any]],
    *,
    configurations: Configurations | None = None,
    epochs: int = 1,
    run_id: str | None = None,
    reply_to: str | Mailbox[Any] | None = None,
    clock: Clock | None = None,
) -> Submission:
    """Send every sample of a dataset to workers, in every configuration and epoch.

    Requests that are sent again with the same `run_id` have the same ids, so that duplicate
    results are recognized.
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
        trials = ((sample, each, n) for sample in source for each in expanded for n in range(epochs))
        for sample, configuration, epoch in trials:
            request = create_request((len(sent), sample, configuration, epoch), run_id, clock.now())
            sent[request.request_id] = sample.id
            labels[request.request_id] = trial_label(sample.id, configuration.name, epoch)
            yield request

    done = 0
    for batch in split_batches(build_requests()):
        try:
            if not is_checked:
                check_arrival(requests, batch)
            requests.send_all(batch, reply_to=reply_to)
        except MailboxFull as error:
            raise MailboxFull(
                f"{error.what}; {done} requests of run {run_id!r} were sent",
                where=error.where,
                fix=f"submit again with run_id={run_id!r} when there is room (duplicates count once), "
                "or give the mailbox a larger capacity",
            ) from None
        done += len(batch)
    return Submission(run_id, sent, labels)


def collect_results(
    results: Mailbox[EvalResult],
    expected_count: int | Submission,
    *,
    timeout_seconds: float = 300.0,
    run_id: str | None = None,
    requests: Mailbox[Any] | None = None,
    on_progress: ProgressCallback | Sequence[ProgressCallback] = (),
    clock: Clock | None = None,
) -> EvalReport:
    """Collect results into a report: one for each request, a success in preference to an error.

    When the time is up, the report has the results so far and its warnings name the missing ones.
    Pass the `Submission` of `submit_dataset` to ignore results of other runs and to name missing
    samples. Pass `requests` to report requests that became dead letters.
    """
    clock = clock or SystemClock()
    submission = None if isinstance(expected_count, int) else expected_count
    expected = expected_count if isinstance(expected_count, int) else len(expected_count)
    run_id = run_id if submission is None else submission.run_id
    letters = None if requests is None else _watch_letters(requests, run_id)
    started = clock.now()
    callbacks = (on_progress,) if callable(on_progress) else tuple(on_progress)
    progress = Progress(run_id or "", clock, total=expected, callbacks=callbacks)
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
    collected = list(gathering.take(timeout_seconds))
    progress.end(failed=len(collected) < expected)
    if submission is not None:
        order = {request_id: position for position, request_id in enumerate(submission.samples)}
        collected.sort(key=lambda result: order.get(_request_id(result), len(order)))
    names = dict.fromkeys(name for result in collected for name in result.scores)
    configurations = dict.fromkeys(result.trial.configuration for result in collected)
    missing = _describe_missing(collected, expected, submission)
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
        warnings=(*progress.warnings, *gathering.account.warnings(), *missing),
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


def _describe_missing(
    collected: Sequence[EvalResult], expected: int, submission: Submission | None
) -> tuple[str, ...]:
    if len(collected) >= expected:
        return ()
    sentence = f"{expected - len(collected)} of {expected} results are missing"
    if submission is None:
        return (sentence,)
    received = set(map(_request_id, collected))
    labels = {**submission.samples, **submission.labels}
    names = [label for request_id, label in labels.items() if request_id not in received]
    return (f"{sentence}: {join_labels(names)}",)


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
