"""Check that workers run the same code as the run, and that results match their requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.errors import ConfigError, MailboxError
from proctor.ports import Mailbox
from proctor.records import codec
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Delivery, EvalResult, Failure, Trial

DIGITS = 8
_PART = re.compile(rf"(.+?)@([0-9a-f]{{{DIGITS}}})(?: |$)", re.DOTALL)


def describe_setup(setup: Setup) -> str:
    """List the target and the evaluators, each with a digest of its code.

    The string is the same on all machines that have the same code installed.
    """
    target = setup.target.spec
    parts = [f"{target.name}@{codec.digest(target.kind, target.identity)[:DIGITS]}"]
    for evaluator in setup.evaluators:
        spec = evaluator.spec
        version = codec.digest(spec.parameters, spec.identity or spec.uses)
        parts.append(f"{spec.name}@{version[:DIGITS]}")
    return " ".join(parts)


def describe_difference(expected: str, actual: str) -> str:
    """Describe how the code of a worker differs from the code that a run expects."""
    worker_parts, run_parts = _PART.findall(actual), _PART.findall(expected)
    if not (worker_parts and run_parts):
        return f"it runs {actual!r}, not {expected!r}"
    return "; ".join(_find_differences(run_parts, worker_parts)) or "its evaluators are in another order"


def _find_differences(run_parts: list[tuple[str, str]], worker_parts: list[tuple[str, str]]) -> Iterator[str]:
    (target, digest), (their_target, their_digest) = run_parts[0], worker_parts[0]
    if their_target != target:
        yield f"its target is {their_target!r}, not {target!r}"
    elif their_digest != digest:
        yield f"its target {target!r} is another version"
    available, expected = dict(worker_parts[1:]), dict(run_parts[1:])
    for name, version in expected.items():
        if name not in available:
            yield f"it does not have the evaluator {name!r}"
        elif available[name] != version:
            yield f"its evaluator {name!r} is another version or has other parameters"
    for name in available.keys() - expected.keys():
        yield f"it has the evaluator {name!r}, which the run does not use"


def reject_cache(run: RunMetadata) -> None:
    """Raise `ConfigError` if the run uses the output cache, which workers cannot reach."""
    if run.options.cache:
        raise ConfigError("workers do not cache outputs", where="cache", fix="leave out the cache, or run locally")


def failed_result(request: EvalRequest[Any, Any], error: Failure, count: int = 1) -> EvalResult:
    """Create the error result of a request that no worker answers."""
    name, epoch = request.configuration.name, request.epoch
    trial = Trial(request.sample, error=error, latency_ms=None, configuration=name, epoch=epoch)
    return EvalResult(trial, delivery=Delivery(request.run_id, request.request_id, count=count))


def matches_request(result: EvalResult, request: EvalRequest[Any, Any]) -> bool:
    """True if a result has the sample, configuration and epoch of a request.

    After a resume with changes, the same request id may belong to another trial.
    """
    trial, expected = result.trial, (request.sample.id, request.configuration.name, request.epoch)
    return (trial.sample.id, trial.configuration, trial.epoch) == expected


def remove_mailbox(results: Mailbox[EvalResult]) -> Iterator[str]:
    """Remove the mailbox of a finished run; yield a warning if that fails."""
    try:
        results.remove(for_good=True)
    except MailboxError as error:
        yield f"workers: the mailbox {results.name!r} could not be removed: {error.what}"


def restore_sample(result: EvalResult, sample: Sample[Any, Any], progress: Progress) -> EvalResult:
    """Put the original sample into a result, because JSON may have changed its types.

    Also reports the scores to progress callbacks.
    """
    trial = msgspec.structs.replace(result.trial, sample=sample)
    result = msgspec.structs.replace(result, trial=trial)
    if progress.has_listeners:
        for name, score in result.scores.items():
            progress.evaluator_start(trial, name)
            progress.evaluator_end(trial, name, score)
    return result
