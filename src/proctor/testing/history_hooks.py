"""What a history's author says about it, and what the tests of its contract start from."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from proctor.ports import History
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Failure, Trial

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class HistoryHooks:
    """How to make a history, and how to look at it as another process would."""

    def make(self) -> History:
        """A new, empty history at a place of its own."""
        raise NotImplementedError("say how to make a new, empty history")

    def again(self, history: History) -> History:
        """Another one at the same place, with connections of its own."""
        raise NotImplementedError("say how to open the same history again")

    @contextlib.contextmanager
    def history(self) -> Iterator[History]:
        """A history that is closed after the test."""
        made = self.make()
        try:
            yield made
        finally:
            made.close()

    @contextlib.contextmanager
    def other(self, history: History) -> Iterator[History]:
        """The same history, as somebody else sees it."""
        opened = self.again(history)
        try:
            yield opened
        finally:
            opened.close()


def a_run(
    run_id: str,
    name: str = "exam",
    *,
    hours: float = 0,
    tags: dict[str, str] | None = None,
    configurations: Sequence[str] = ("default",),
    evaluators: Sequence[str] = ("exact",),
) -> RunMetadata:
    """A run that began so many hours after noon."""
    return RunMetadata(
        run_id,
        name,
        NOON + timedelta(hours=hours),
        tags=tags or {},
        configurations=tuple(Configuration(each) for each in configurations),
        evaluators=tuple(EvaluatorSpec(each, "exact_match") for each in evaluators),
    )


def a_result(
    sample_id: str, value: float | None = 1.0, *, configuration: str = "default", text: str = "!"
) -> EvalResult:
    """A result that passes from 0.5 on; without a value its evaluator failed."""
    score = Score.error("no verdict") if value is None else Score(value, value >= 0.5)
    trial = Trial(
        Sample(sample_id, "?"), text, latency_ms=100.0, configuration=configuration, epoch=0
    )
    return EvalResult(trial, {"exact": score})


def a_failure(sample_id: str) -> EvalResult:
    """A result whose target gave no output."""
    return EvalResult(Trial(Sample(sample_id, "?"), error=Failure("TimeoutError", "too slow")))


def store(history: History, run: RunMetadata, results: Sequence[EvalResult] = ()) -> None:
    """Begin a run and write its results."""
    history.begin(run)
    with history.writer(run.run_id) as writer:
        for position, result in enumerate(results):
            writer.add(position, result)


def ids(runs: Sequence[RunMetadata]) -> list[str]:
    return [run.run_id for run in runs]
