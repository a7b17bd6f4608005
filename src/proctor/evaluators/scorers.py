"""Call evaluators: read their arguments from a trial and turn their results into scores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from proctor.core.isolation import is_interrupt
from proctor.core.private_copy import private_copies
from proctor.errors import StopRun
from proctor.evaluators.score_conversion import as_error, as_score
from proctor.evaluators.signatures import Evidence
from proctor.records.fields.context import FieldContext
from proctor.records.fields.path import OUTPUT
from proctor.records.fields.view import Field, TrialView, make_context
from proctor.records.score import IS_BASELINE, NOT_LAST, Score
from proctor.records.session import SessionView
from proctor.records.trial import Trial
from proctor.sessions import current as sessions

NO_EXPECTED = "the sample has no expected value"
NO_ANSWER = "the agent ended without an answer: its last message is not from the assistant"
NO_SESSION = (
    "no session was recorded, so the tool calls and messages are unknown. Fix: return the agent's "
    "messages, call record(...) in its tools, return Reply(output, session=...), or record spans "
    "with OpenTelemetry"
)


class CallPlan(NamedTuple):
    """How a trial becomes the arguments of an evaluator, and when to skip the call."""

    readers: Sequence[Callable[[Trial], Any]]
    expects: bool
    threshold: float
    once_per_sample: bool
    needs_session: bool = False
    can_share: bool = False
    needs_answer: bool = False

    def read_arguments(self, trial: Trial) -> Sequence[Any]:
        """Return the arguments, as copies unless the evaluator is known not to modify them."""
        values = [read(trial) for read in self.readers]
        return values if self.can_share else _copy_values(values)

    def find_skip(self, trial: Trial) -> Score | None:
        """Return a skipped score if the trial lacks evidence that the evaluator needs."""
        if self.expects and trial.sample.expected is None:
            return Score.skipped(NO_EXPECTED)
        if self.needs_answer and trial.output is None and _lacks_answer(trial):
            return Score.skipped(NO_ANSWER)
        if self.needs_session and trial.session is None:
            return Score.skipped(NO_SESSION)
        if self.once_per_sample and isinstance(trial, TrialView) and trial.epochs is None:
            return Score.skipped(NOT_LAST)
        return None


def make_sync_scorer(call: Callable[..., Any], plan: CallPlan) -> Callable[[Trial], Score]:
    """Wrap a synchronous evaluator as a function of the trial that never raises."""

    def score(trial: Trial) -> Score:
        try:
            skip = plan.find_skip(trial)
            if skip is not None:
                return skip
            arguments = plan.read_arguments(trial)
            return _mark_baseline_skip(as_score(call(*arguments), plan.threshold), arguments)
        except BaseException as error:
            return _error_score(error)

    return score


def make_pair_scorer(
    call: Callable[..., Any], threshold: float, *, can_share: bool
) -> Callable[[Trial], Score]:
    """Wrap an evaluator of output and expected value; a fast path for the most common signature."""

    def score(trial: Trial) -> Score:
        expected = trial.sample.expected
        if expected is None:
            return Score.skipped(NO_EXPECTED)
        if trial.output is None and _lacks_answer(trial):
            return Score.skipped(NO_ANSWER)
        try:
            if can_share or type(trial.output) is type(expected) is str:
                return as_score(call(trial.output, expected), threshold)
            return as_score(call(*_copy_values((trial.output, expected))), threshold)
        except BaseException as error:
            return _error_score(error)

    return score


def make_async_scorer(call: Callable[..., Any], plan: CallPlan) -> Callable[[Trial], Any]:
    """Wrap an async evaluator as an async function of the trial that never raises."""

    async def score(trial: Trial) -> Score:
        try:
            skip = plan.find_skip(trial)
            if skip is not None:
                return skip
            arguments = plan.read_arguments(trial)
            return _mark_baseline_skip(as_score(await call(*arguments), plan.threshold), arguments)
        except asyncio.CancelledError:
            # The caller knows whether the evaluator cancelled itself or timed out.
            raise
        except BaseException as error:
            return _error_score(error)

    return score


def _lacks_answer(trial: Trial) -> bool:
    if isinstance(trial, TrialView) and trial.field is not None and trial.field.path != OUTPUT:
        return False
    return trial.output is None and trial.raw_output is not None


def _copy_values(values: Sequence[Any]) -> Sequence[Any]:
    try:
        return private_copies(values)
    except BaseException as error:
        if isinstance(error, StopRun) or is_interrupt(error):
            raise
        sessions.warn(
            "the arguments of an evaluator cannot be copied, so an evaluator that modifies them changes "
            f"them for other evaluators and in the stored result ({type(error).__name__})"
        )
        return values


def _error_score(error: BaseException) -> Score:
    if isinstance(error, StopRun) or is_interrupt(error):
        raise error
    return as_error(error)


def _mark_baseline_skip(score: Score, arguments: Sequence[Any]) -> Score:
    """Give a skip the reason IS_BASELINE if the evaluator asked for a baseline in the baseline itself."""
    if score.status != "skipped":
        return score
    contexts = (argument for argument in arguments if isinstance(argument, FieldContext))
    if any(context.looked_for_baseline for context in contexts):
        return Score.skipped(IS_BASELINE, score.details)
    return score


def make_reader(evidence: Evidence, default_field: Field) -> Callable[[Trial], Any]:
    """Return a function that reads one piece of evidence from a trial."""

    def read_expected(trial: Trial) -> Any:
        expected = trial.sample.expected
        return evidence.default if expected is None else expected

    def read_session(trial: Trial) -> SessionView:
        if trial.session is None:
            return SessionView((), trial.usage, recorded=False)
        return trial.session.view(trial.usage)

    readers: dict[str, Callable[[Trial], Any]] = {
        "output": lambda trial: trial.output,
        "expected": read_expected,
        "sample": lambda trial: trial.sample,
        "session": read_session,
        "context": lambda trial: make_context(trial, default_field),
        # A new dict for each call, because an evaluator may modify it.
        "config": lambda trial: dict(getattr(trial, "options", ())),
    }
    return readers[evidence.kind]
