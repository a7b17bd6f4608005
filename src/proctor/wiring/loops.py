"""Evaluation by mailboxes, for programs: a loop that answers requests, to submit, to collect."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import msgspec

from proctor.comparison.report import FieldReport
from proctor.core import bridge
from proctor.core.clock import Clock, SystemClock
from proctor.datasets.source import as_source
from proctor.distributed.account import listed, trial_label
from proctor.distributed.arrival import check_arrival, check_dataset
from proctor.distributed.batches import batches
from proctor.distributed.collect import Gathering
from proctor.distributed.inbox import Until
from proctor.distributed.letters import Letters
from proctor.distributed.notices import notice_in
from proctor.distributed.outbox import Tally
from proctor.distributed.remote_runner import request_of
from proctor.distributed.worker import Post, Worker
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
from proctor.wiring.evaluate import Options, evaluate
from proctor.wiring.prepare import Configurations, Metrics, configurations_from, prepare_setup
from proctor.wiring.registry import Registry


class EvalRunner:
    """A target with its evaluators and metrics, ready for datasets.

    `continue_on_error=False` stops at the first failing sample; `timeout_seconds` is for each call
    of the target.
    """

    def __init__(
        self,
        target: Any,
        evaluators: Any,
        metrics: Metrics | None = None,
        *,
        timeout_seconds: float | None = 30.0,
        continue_on_error: bool = True,
        **options: Unpack[Options],
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
    # Only type checkers know defaults on Python 3.11; the output's type cannot be inferred.
    from typing_extensions import TypeVar as TypeVarWithDefault

    LoopInputT = TypeVarWithDefault("LoopInputT", default=Any)
    LoopOutputT = TypeVarWithDefault("LoopOutputT", default=Any)
    LoopExpectedT = TypeVarWithDefault("LoopExpectedT", default=Any)
else:
    LoopInputT = TypeVar("LoopInputT")
    LoopOutputT = TypeVar("LoopOutputT")
    LoopExpectedT = TypeVar("LoopExpectedT")


class EvalLoop(Generic[LoopInputT, LoopOutputT, LoopExpectedT]):
    """Answers requests out of a mailbox: runs each sample, scores it, and sends the result.

    `loop` is a main loop or any other target; `evaluator` one evaluator or several. Results go
    into `results`, or without it where each request says. `options` are those of `evaluate`
    (concurrency, timeout, retries …). A request stays with this loop for `lease_seconds` after its
    last sign of life; a poll takes at most `batch_size` requests.

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
        **options: Unpack[Options],
    ) -> None:
        if options.get("budget") is not None:
            raise ConfigError(
                "a loop has no budget: it answers requests of any run",
                where="EvalLoop",
                fix="give the budget to the run, as evaluate(…, workers=…, budget=…)",
            )
        for where, box in (("requests", requests), ("results", results)):
            if isinstance(box, str):
                raise ConfigError(
                    f"{box!r} is not a mailbox", where=where, fix="give one, such as RedisMailbox"
                )
        setup = prepare_setup(loop, evaluator, options, registry or Registry.standard())
        post = Post(requests, results, lease_seconds, name, trouble=_log.warning)
        self._worker = Worker(setup, post)
        self._until = Until(wait=wait_seconds, batch=batch_size)

    async def arun(self, *, max_iterations: int | None = None, until_empty: bool = False) -> Tally:
        """Work for so many polls, until the mailbox is empty, or until `stop`."""
        if max_iterations is not None and max_iterations < 1:
            raise ConfigError("max_iterations must be at least 1", where="EvalLoop.run")
        until = msgspec.structs.replace(self._until, polls=max_iterations, empty=until_empty)
        return await self._worker.run(until)

    run = bridge.synchronous(arun)

    def stop(self) -> None:
        """Finish what is being run, return the rest at once; from any thread.

        A second time it drops what is being run too; before `run` it ends the next one.
        """
        self._worker.stop()


class Submission(msgspec.Struct, frozen=True):
    """What was sent: the run it belongs to, and the request of each trial with its sample.

    `labels` name the trial of each request: its sample, and configuration and epoch if they are not
    the default.
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
    """Send every sample of a dataset, in every configuration and epoch, to be evaluated.

    Requests of one `run_id` have the same ids however often they are sent, so that a second
    answer is recognised.
    """
    clock = clock or SystemClock()
    run_id = run_id or new_run_id(clock.now())
    source = as_source(dataset)
    source.inspect()
    chosen = configurations_from(configurations)
    is_checked = check_dataset(requests, source, chosen)
    sent: dict[str, str] = {}
    labels: dict[str, str] = {}

    def each() -> Iterator[EvalRequest[Any, Any]]:
        for sample in source:
            for configuration in chosen:
                for epoch in range(epochs):
                    job = (len(sent), sample, configuration, epoch)
                    request = request_of(job, run_id, clock.now())
                    sent[request.request_id] = sample.id
                    labels[request.request_id] = trial_label(sample.id, configuration.name, epoch)
                    yield request

    done = 0
    for batch in batches(each()):
        try:
            if not is_checked:
                check_arrival(requests, batch)
            requests.send_all(batch, reply_to=reply_to)
        except MailboxFull as error:
            raise MailboxFull(
                f"{error.what}; {done} requests of run {run_id!r} were sent",
                where=error.where,
                fix=f"submit again with run_id={run_id!r} once there is room (what is sent "
                "twice is counted once), or give the mailbox a larger capacity",
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
    """Collect results into a report: each request once, a success before an error.

    When the time is up, the report holds what there is and its warnings name what is missing. Give
    what `submit_dataset` gave to leave other runs alone and to have missing samples named, and
    `requests` to learn of those that became dead letters there.
    """
    clock = clock or SystemClock()
    submission = None if isinstance(expected_count, int) else expected_count
    expected = expected_count if isinstance(expected_count, int) else len(expected_count)
    run_id = run_id if submission is None else submission.run_id
    letters = None if requests is None else _letters(requests, run_id)
    started = clock.now()
    callbacks = (on_progress,) if callable(on_progress) else tuple(on_progress)
    progress = Progress(run_id or "", clock, total=expected, callbacks=callbacks)
    progress.start()
    gathering = Gathering(
        results,
        expected,
        clock,
        run_id=run_id,
        own=lambda result: _is_own(result, run_id, submission),
        letters=letters,
        told=lambda result: _told(progress, result),
    )
    found = list(gathering.take(timeout_seconds))
    progress.end(failed=len(found) < expected)
    _sort(found, submission)
    names = dict.fromkeys(name for result in found for name in result.scores)
    options = dict.fromkeys(result.trial.configuration for result in found)
    run = RunMetadata(
        run_id or "",
        name=results.name,
        started_at=started,
        status="completed" if len(found) >= expected else "interrupted",
        finished_at=clock.now(),
        duration_seconds=progress.seconds,
        total=expected,
        configurations=tuple(map(Configuration, options)) or (Configuration(),),
        evaluators=tuple(EvaluatorSpec(name, name) for name in names),
        warnings=(*progress.warnings, *gathering.account.sentences(), *missing(found, expected, submission)),
    )
    kept = ResultList(found)
    return EvalReport(kept, run, *aggregate(kept, run))


def _letters(requests: Mailbox[Any], run_id: str | None) -> Letters:
    if run_id is None:
        raise ConfigError(
            "whose dead letters are meant is not known",
            where="collect_results",
            fix="give what submit_dataset gave in the place of the number, or run_id=",
        )
    return Letters(requests, lambda request: request.run_id == run_id)


def _sort(found: list[EvalResult], submission: Submission | None) -> None:
    """Put results into the order in which they were asked for, if it is known."""
    if submission is not None:
        places = {key: place for place, key in enumerate(submission.samples)}
        found.sort(key=lambda result: places.get(_request_id(result), len(places)))


def missing(found: Sequence[EvalResult], expected: int, submission: Submission | None) -> tuple[str, ...]:
    """What has not come, in words; nothing if all has."""
    if len(found) >= expected:
        return ()
    said = f"{expected - len(found)} of {expected} results are missing"
    if submission is None:
        return (said,)
    there = set(map(_request_id, found))
    labels = {**submission.samples, **submission.labels}
    names = [label for key, label in labels.items() if key not in there]
    return (f"{said}: {listed(names)}",)


def _is_own(result: EvalResult, run_id: str | None, submission: Submission | None) -> bool:
    """True if a result is one that was asked for; notices of workers are none."""
    if submission is not None:
        return _run_id(result) == run_id and _request_id(result) in submission.samples
    return notice_in(result) is None and (run_id is None or _run_id(result) == run_id)


def _run_id(result: EvalResult) -> str | None:
    return None if result.delivery is None else result.delivery.run_id


def _request_id(result: EvalResult) -> str:
    return "" if result.delivery is None else result.delivery.request_id


def _told(progress: Progress, result: EvalResult) -> None:
    progress.count(result.outcome)
    if progress.has_listeners:
        progress.expect(len(result.scores))
        progress.trial_start(result.trial.configuration)
        for name, score in result.scores.items():
            progress.evaluator_start(result.trial, name)
            progress.evaluator_end(result.trial, name, score)
        progress.trial_end(result.trial)
