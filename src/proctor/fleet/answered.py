"""A request's result, from elsewhere or made up here, becomes this run's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from proctor.engine.progress import Progress
from proctor.errors import ConfigError, MailboxError
from proctor.ports import Mailbox
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Delivery, EvalResult, Failure, Trial


def refuse_cache(run: RunMetadata) -> None:
    """Outputs are kept where the history is; trials that run elsewhere cannot look there."""
    if run.options.cache:
        raise ConfigError(
            "workers keep no outputs, so there is nothing to reuse",
            where="cache",
            fix="leave the cache out, or run without workers",
        )


def failed(request: EvalRequest[Any, Any], error: Failure, count: int = 1) -> EvalResult:
    """The result of a request that nobody answers: an error of its sample.

    >>> failed(EvalRequest(Sample("1", "2 + 2")), Failure("DeadLetter", "no memory")).error
    'DeadLetter: no memory'
    """
    return EvalResult(
        Trial(
            request.sample,
            error=error,
            latency_ms=None,
            configuration=request.configuration.name,
            epoch=request.epoch,
        ),
        delivery=Delivery(request.run_id, request.request_id, count=count),
    )


def is_answer(result: EvalResult, request: EvalRequest[Any, Any]) -> bool:
    """True if a result is of the sample, configuration and epoch that a request asks for.

    In a run that was resumed although something had changed, an id may mean another trial now.
    """
    trial = result.trial
    return (trial.sample.id, trial.configuration, trial.epoch) == (
        request.sample.id,
        request.configuration.name,
        request.epoch,
    )


def removed(results: Mailbox[EvalResult]) -> Iterator[str]:
    """Remove the mailbox of a run that is done; what is in the way is no failure, and is said."""
    try:
        results.remove(for_good=True)
    except MailboxError as error:
        yield f"workers: the mailbox {results.name!r} could not be removed: {error.what}"


def answered(result: EvalResult, sample: Sample[Any, Any], progress: Progress) -> EvalResult:
    """The result with the sample as this side knows it, told to those who listen.

    The sample is in its own types again, whatever JSON made of it.
    """
    trial = msgspec.structs.replace(result.trial, sample=sample)
    result = msgspec.structs.replace(result, trial=trial)
    if progress.has_listeners:
        for name, score in result.scores.items():
            progress.evaluator_start(trial, name)
            progress.evaluator_end(trial, name, score)
    return result
