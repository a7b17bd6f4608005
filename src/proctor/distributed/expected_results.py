"""A request's result, from elsewhere or made up here, becomes this run's own."""

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


def expectation(setup: Setup) -> str:
    """Target and evaluators with a digest of each, the same wherever the same code is installed.

    The digests cover what they reach in the project, wherever it lies.
    """
    target = setup.target.spec
    parts = [f"{target.name}@{codec.digest(target.kind, target.identity)[:DIGITS]}"]
    for evaluator in setup.evaluators:
        spec = evaluator.spec
        version = codec.digest(spec.parameters, spec.identity or spec.uses)
        parts.append(f"{spec.name}@{version[:DIGITS]}")
    return " ".join(parts)


def describe_difference(wanted: str, runs: str) -> str:
    """Say in which parts what a worker runs differs from what it should run.

    >>> describe_difference("answer@00000001 exact_match@00000002", "answer@0000000f")
    "its target 'answer' is another version; it lacks the evaluator 'exact_match'"
    """
    theirs, ours = _PART.findall(runs), _PART.findall(wanted)
    if not (theirs and ours):
        return f"it runs {runs!r}, not {wanted!r}"
    return "; ".join(_differences(ours, theirs)) or "its evaluators are in another order"


def _differences(ours: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> Iterator[str]:
    (target, digest), (their_target, their_digest) = ours[0], theirs[0]
    if their_target != target:
        yield f"its target is {their_target!r}, not {target!r}"
    elif their_digest != digest:
        yield f"its target {target!r} is another version"
    known, wanted = dict(theirs[1:]), dict(ours[1:])
    for name, version in wanted.items():
        if name not in known:
            yield f"it lacks the evaluator {name!r}"
        elif known[name] != version:
            yield f"its evaluator {name!r} is another version or has other parameters"
    for name in known.keys() - wanted.keys():
        yield f"its evaluator {name!r} is not one of the run's"


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
