"""A run observed: its spans go out, and spans of the program come into its sessions."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast

from proctor import sessions
from proctor.ports import AttachedEvaluator
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.telemetry.provider import Pipeline, is_installed, of_the_program, pipeline_for
from proctor.telemetry.spans_in import Hearing, Listener, hearing, listen_to
from proctor.telemetry.spans_out import Tracing


class Runner(Protocol):
    """What carries out a trial."""

    async def run(
        self, slot: Any, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult: ...


RunnerT = TypeVar("RunnerT", bound=Runner)


class Observed:
    """One run under observation, as long as the context lasts.

    Spans go to the tracer provider of the program if it has set one, or else where OpenTelemetry's
    environment variables say. With neither, everything is handed on as it is.
    """

    def __init__(
        self, run: RunMetadata, environment: Mapping[str, str], *, for_others: bool = False
    ) -> None:
        self._run = run
        self._for_others = for_others
        self._environment = environment
        self._is_possible = False
        self._pipeline: Pipeline | None = None
        self._listener: Listener | None = None
        self._unheard = 0
        self._tracing: Tracing | None = None
        self.late = 0
        self.unreadable = 0

    async def __aenter__(self) -> Self:
        self._is_possible = is_installed()
        self._look()
        if self._tracing is None:
            self._pipeline, problem = pipeline_for(self._environment)
            if problem is not None:
                sessions.warn(problem)
            if self._pipeline is not None:
                self._trace_with(self._pipeline.provider)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._tracing is not None:
            self._tracing.close()
        if self._listener is not None:
            self._listener.forget(self)
        if self._pipeline is not None:
            problem = await self._pipeline.close()
            if problem is not None:
                sessions.warn(problem)
        for text in self._warnings():
            sessions.warn(text)

    def runner(self, runner: RunnerT) -> RunnerT:
        """The same runner, its trials observed."""
        return cast("RunnerT", _Traced(runner, self)) if self._is_possible else runner

    def evaluators(self, evaluators: Sequence[AttachedEvaluator]) -> tuple[AttachedEvaluator, ...]:
        """The same evaluators, their verdicts observed."""
        if not self._is_possible:
            return tuple(evaluators)
        return tuple(_TracedEvaluator(evaluator) for evaluator in evaluators)

    def hear(self) -> tuple[Hearing, Tracing] | None:
        """A new trial begins: what hears and tells of it, or None if nobody wants to know."""
        if self._listener is None and "opentelemetry.trace" in sys.modules:
            self._look()
        if self._tracing is None:
            self._unheard += 1
            return None
        return Hearing(self), self._tracing

    def _look(self) -> None:
        """The program may set its provider at any time, and in another place than before."""
        provider = of_the_program()
        if provider is not None:
            self._listener = listen_to(provider)
            if self._tracing is None:
                self._trace_with(provider)

    def _trace_with(self, provider: Any) -> None:
        self._tracing = Tracing(provider, self._run, self._environment, for_others=self._for_others)

    def _warnings(self) -> list[str]:
        told = []
        if self.late:
            told.append(
                f"OpenTelemetry: {self.late} spans of model or tool calls ended after their trial, "
                "so they are not in its session"
            )
        if self.unreadable:
            told.append(f"OpenTelemetry: {self.unreadable} spans could not be read")
        if self._unheard and self._listener is not None:
            told.append(
                f"OpenTelemetry was set up after {self._unheard} trials had begun, which were not "
                "observed; set it up when your module is imported"
            )
        return told


def observing(
    run: RunMetadata,
    environment: Mapping[str, str] = os.environ,
    *,
    for_others: bool = False,
) -> Observed:
    """Observe a run: `async with observing(run) as observed`, then wrap what carries it out.

    With `for_others` the trials are those of runs elsewhere, which `belongs_to` names for each.

    >>> from datetime import UTC, datetime
    >>> run = RunMetadata("r1", "capitals", datetime(2026, 1, 1, tzinfo=UTC))
    >>> type(observing(run, {})).__name__
    'Observed'
    """
    return Observed(run, environment, for_others=for_others)


# What hears and tells of the trial that is running.
_watching: ContextVar[tuple[Hearing, Tracing] | None] = ContextVar("proctor_trial", default=None)


class _Traced:
    """A runner whose trials are observed; whatever else it offers is its own."""

    def __init__(self, runner: Runner, observed: Observed) -> None:
        self._runner = runner
        self._run = runner.run
        self._observed = observed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)

    def run(
        self, slot: Any, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> Awaitable[EvalResult]:
        # Not async itself: where nobody wants to know, a trial costs what it costs without us.
        watching = self._observed.hear()
        if watching is None:
            return self._run(slot, sample, configuration, epoch)
        return self._watched(watching, slot, sample, configuration, epoch)

    async def _watched(
        self,
        watching: tuple[Hearing, Tracing],
        slot: Any,
        sample: Sample[Any, Any],
        configuration: Configuration,
        epoch: int,
    ) -> EvalResult:
        heard, tracing = watching
        with tracing.trial(heard, sample, configuration.name, epoch) as results:
            # Not taken back if it fails: the next trial sets them anew, and a hearing that is over
            # takes nothing.
            hearing.set(heard)
            _watching.set(watching)
            try:
                results.append(await self._runner.run(slot, sample, configuration, epoch))
            finally:
                heard.over()
        hearing.set(None)
        _watching.set(None)
        return results[0]


class _TracedEvaluator:
    """An evaluator whose verdicts are observed, inside an observed trial."""

    def __init__(self, evaluator: AttachedEvaluator) -> None:
        self.spec = evaluator.spec
        self.mode = evaluator.mode
        self.needs = evaluator.needs
        self.group = evaluator.group
        self.is_own = evaluator.is_own
        self._score = evaluator.score
        if self.group is not None:
            parts = {name: _TracedEvaluator(part) for name, part in self.group.parts.items()}
            self.group = self.group._replace(parts=parts)

    def score(self, trial: Trial) -> Any:
        watching = _watching.get()
        if watching is None:
            return self._score(trial)
        if self.mode == "async":
            return self._score_later(trial, *watching)
        with _judging(self.spec, trial, *watching) as scores:
            scores.append(cast("Score", self._score(trial)))
        return scores[0]

    async def _score_later(self, trial: Trial, heard: Hearing, tracing: Tracing) -> Score:
        with _judging(self.spec, trial, heard, tracing) as scores:
            scores.append(await cast("Awaitable[Score]", self._score(trial)))
        return scores[0]


@contextmanager
def _judging(
    spec: EvaluatorSpec, trial: Trial, heard: Hearing, tracing: Tracing
) -> Iterator[list[Score]]:
    """While an evaluator is at work, what it asks goes into its session, if it has one."""
    session = sessions.current.get()
    own = None if session is trial.session else session
    heard.begin_judging(own)
    try:
        with tracing.evaluation(spec, heard, own) as scores:
            yield scores
    finally:
        heard.end_judging(own)
