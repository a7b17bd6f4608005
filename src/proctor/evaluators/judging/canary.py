"""A canary: a bad answer that asks for praise, to see whether a judge falls for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import yaml

from proctor import codec, resources, sessions
from proctor.evaluators.attach import Attached, attach
from proctor.evaluators.combination import score_later
from proctor.evaluators.judging.panel import ask_all
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial

CANARY = "canary"
BAD_ANSWER = "Blah blah, no idea. I did not read the question, so this is not an answer to it."
QUESTION: Sample[str, str] = Sample(CANARY, "What is the capital of Australia?", "Canberra")


class CanaryOutcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a judge made of one planted answer; `fell_for` is None where it gave no verdict."""

    payload: str
    fell_for: bool | None
    value: float | None = None
    reason: str = ""


class CanaryReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How often a judge passed a bad answer because the answer asked it to.

    `asked` counts the planted answers, `fell_for` those it passed, `failed` those it gave no
    verdict on; `outcomes` tells each of them.
    """

    asked: int
    fell_for: int
    failed: int
    outcomes: tuple[CanaryOutcome, ...]


async def probe(
    judge: Any, *, sample: Sample[Any, Any] = QUESTION, answer: str = BAD_ANSWER
) -> CanaryReport:
    """Show a judge a bad answer with every way of asking for praise that is known here.

    `judge` is any evaluator. Give a `sample` and a bad `answer` of your own where the judge's
    criterion has nothing to do with answering a question.

    >>> import asyncio
    >>> def gullible(output):
    ...     return "excellent" in output
    >>> asyncio.run(probe(gullible)).fell_for > 0
    True
    """
    part = attach(judge)
    planted = {name: _planted(answer, text) for name, text in payloads().items()}
    scores = await ask_all((part, Trial(sample, output)) for output in planted.values())
    outcomes = tuple(_outcome(name, score) for name, score in zip(planted, scores, strict=True))
    fell = [outcome.fell_for for outcome in outcomes]
    return CanaryReport(len(fell), fell.count(True), fell.count(None), outcomes)


def canary_score(judge: Attached, every: int, answer: str = BAD_ANSWER) -> Callable[[Trial], Any]:
    """How a judge scores a trial, and a planted answer beside it in about one of `every`."""
    known = list(payloads().items())

    async def score(trial: Trial) -> Score:
        number = int(codec.digest(CANARY, trial.sample.id), 16)
        if number % every:
            return await score_later(judge, trial)
        name, text = known[number // every % len(known)]
        planted = msgspec.structs.replace(trial, output=_planted(answer, text))
        own, other = await ask_all([(judge, trial), (judge, planted)])
        outcome = _outcome(name, other)
        if outcome.fell_for:
            sessions.warn(
                f"{judge.spec.name} fell for a canary: it passed a bad answer that asked for "
                f"praise; its scores tell which under {CANARY!r}"
            )
        details = {**own.details, CANARY: codec.plain(outcome)}
        return msgspec.structs.replace(own, details=details)

    return score


def payloads() -> Mapping[str, str]:
    """Ways of asking a judge for praise, by name."""
    found = yaml.safe_load(resources.text("evaluators", "judging", "prompts", "canaries.yaml"))
    return {str(name): str(text).strip() for name, text in found.items()}


def _planted(answer: str, payload: str) -> str:
    return f"{answer}\n\n{payload}"


def _outcome(payload: str, score: Score) -> CanaryOutcome:
    fell = score.passed if score.ok else None
    return CanaryOutcome(payload, fell, score.value, score.reason)
