"""Old outputs, new evaluators: the trials of a stored run are scored again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from proctor.engine.limits import Slot
from proctor.engine.plan import Job
from proctor.engine.trial import Scoring
from proctor.ports import AttachedEvaluator, Metric
from proctor.records.results import Results
from proctor.records.run import Budget, RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Configuration, EvalResult, Trial


@dataclass(frozen=True)
class Rescoring:
    """With what a stored run is to be scored."""

    evaluators: tuple[AttachedEvaluator, ...]
    metrics: tuple[Metric, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    budget: Budget | None = None


class StoredTrials:
    """The trials of a stored run as jobs. A trial is in memory only while it is being scored."""

    def __init__(self, results: Results, run: RunMetadata) -> None:
        self._results = results
        self._configurations = {c.name: c for c in run.configurations}
        self._taken: dict[int, Trial] = {}

    def __len__(self) -> int:
        return len(self._results)

    def jobs(self) -> Iterator[Job]:
        """One job for each trial, in the order of the stored run."""
        for position, result in enumerate(self._results):
            trial = result.trial
            self._taken[position] = trial
            yield position, trial.sample, self._configurations[trial.configuration], trial.epoch

    def runner(self, score: Scoring) -> Rescorer:
        """What scores the jobs."""
        return Rescorer(self._taken, score)


class Rescorer:
    """Scores a stored trial; one that failed stays as it is."""

    hands = None

    def __init__(self, trials: dict[int, Trial], score: Scoring) -> None:
        self._trials = trials
        self._score = score

    async def run(
        self, slot: Slot, _sample: Sample[Any, Any], _configuration: Configuration, _epoch: int
    ) -> EvalResult:
        assert slot.job is not None
        trial = self._trials.pop(slot.job[0])
        return EvalResult(trial) if trial.error else EvalResult(trial, *await self._score(trial))
