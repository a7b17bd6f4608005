"""Calling an evaluator: what of a trial it is given, and how what it returns becomes a score."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from proctor.core.isolation import is_interrupt
from proctor.core.private_copy import private_copies
from proctor.errors import StopRun
from proctor.evaluators.evidence import Evidence
from proctor.evaluators.verdict import as_error, as_score
from proctor.records.fields.context import FieldContext
from proctor.records.fields.path import OUTPUT
from proctor.records.fields.view import Field, SeenTrial, context_of
from proctor.records.score import IS_BASELINE, NOT_LAST, Score
from proctor.records.session import SessionView
from proctor.records.trial import Trial
from proctor.sessions import current as sessions

NO_EXPECTED = "the sample has no expected value"
NO_ANSWER = (
    "the agent ended without an answer: the messages that it returned do not end with one of the assistant"
)
NO_SESSION = (
    "no session was recorded, so nothing is known of what the target did. Fix: return the agent's "
    "messages, call record(...) in its tools, return Reply(output, session=...), or record spans "
    "with OpenTelemetry"
)


class Way(NamedTuple):
    """How a trial becomes the arguments of an evaluator, and what it returns a score."""

    readers: Sequence[Callable[[Trial], Any]]
    expects: bool
    threshold: float
    once: bool
    needs_session: bool = False
    shares: bool = False
    needs_answer: bool = False

    def arguments(self, trial: Trial) -> Sequence[Any]:
        """What the evaluator is called with.

        Unless it may share them (`shares`), it gets values of its own: what it changes in them
        changes neither the verdicts of other evaluators nor the stored result nor the dataset.
        """
        values = [read(trial) for read in self.readers]
        return values if self.shares else own_values(values)

    def nothing_to_say(self, trial: Trial) -> Score | None:
        """Why it is not asked about this trial, if it is not."""
        if self.expects and trial.sample.expected is None:
            return Score.skipped(NO_EXPECTED)
        if self.needs_answer and trial.output is None and lacks_answer(trial):
            return Score.skipped(NO_ANSWER)
        if self.needs_session and trial.session is None:
            return Score.skipped(NO_SESSION)
        if self.once and isinstance(trial, SeenTrial) and trial.epochs is None:
            return Score.skipped(NOT_LAST)
        return None


def lacks_answer(trial: Trial) -> bool:
    """True if a trial has no output because its messages do not end with an answer."""
    if isinstance(trial, SeenTrial) and trial.field is not None and trial.field.path != OUTPUT:
        return False
    return trial.output is None and trial.raw_output is not None


def plain_score(call: Callable[..., Any], way: Way) -> Callable[[Trial], Score]:
    """A call that gives its answer at once, as a function of the trial that never raises."""

    def score(trial: Trial) -> Score:
        try:
            unasked = way.nothing_to_say(trial)
            if unasked is not None:
                return unasked
            given = way.arguments(trial)
            return _if_asked(as_score(call(*given), way.threshold), given)
        except BaseException as error:
            return error_score(error)

    return score


def score_of_two(call: Callable[..., Any], threshold: float, *, shares: bool) -> Callable[[Trial], Score]:
    """The usual shape, written out: this runs once for every evaluator and sample."""

    def score(trial: Trial) -> Score:
        expected = trial.sample.expected
        if expected is None:
            return Score.skipped(NO_EXPECTED)
        if trial.output is None and lacks_answer(trial):
            return Score.skipped(NO_ANSWER)
        try:
            if shares or type(trial.output) is type(expected) is str:
                return as_score(call(trial.output, expected), threshold)
            return as_score(call(*own_values((trial.output, expected))), threshold)
        except BaseException as error:
            return error_score(error)

    return score


def async_score(call: Callable[..., Any], way: Way) -> Callable[[Trial], Any]:
    """A call to be awaited, as a function of the trial that never raises."""

    async def score(trial: Trial) -> Score:
        try:
            unasked = way.nothing_to_say(trial)
            if unasked is not None:
                return unasked
            given = way.arguments(trial)
            return _if_asked(as_score(await call(*given), way.threshold), given)
        except asyncio.CancelledError:
            # Who awaits it knows whether it was cancelled from inside or ran out of time.
            raise
        except BaseException as error:
            return error_score(error)

    return score


def own_values(values: Sequence[Any]) -> Sequence[Any]:
    """Copies of the values that an evaluator is called with; the same ones if they have none."""
    try:
        return private_copies(values)
    except BaseException as error:
        if isinstance(error, StopRun) or is_interrupt(error):
            raise
        sessions.warn(
            "what an evaluator is given cannot be copied, so an evaluator that changes it changes "
            f"it for other evaluators and in the stored result as well ({type(error).__name__})"
        )
        return values


def error_score(error: BaseException) -> Score:
    """What an evaluator raised, as a score: any exception but Ctrl-C and the end of the run."""
    if isinstance(error, StopRun) or is_interrupt(error):
        raise error
    return as_error(error)


def _if_asked(score: Score, given: Sequence[Any]) -> Score:
    """The score; a skip for want of a baseline says so where the trial is the baseline itself."""
    if score.status != "skipped":
        return score
    contexts = (one for one in given if isinstance(one, FieldContext))
    if any(context.looked_for_baseline for context in contexts):
        return Score.skipped(IS_BASELINE, score.details)
    return score


def reader(piece: Evidence, own_field: Field) -> Callable[[Trial], Any]:
    """How one piece of evidence is read from a trial."""
    default = piece.default

    def expected(trial: Trial) -> Any:
        found = trial.sample.expected
        return default if found is None else found

    readers: dict[str, Callable[[Trial], Any]] = {
        "output": lambda trial: trial.output,
        "expected": expected,
        "sample": lambda trial: trial.sample,
        "session": _view_of,
        "context": lambda trial: context_of(trial, own_field),
        # A mapping of its own for each call: whatever an evaluator does to it, it stays there.
        "config": lambda trial: dict(getattr(trial, "options", ())),
    }
    return readers[piece.kind]


def _view_of(trial: Trial) -> SessionView:
    if trial.session is None:
        return SessionView((), trial.usage, recorded=False)
    return trial.session.view(trial.usage)
