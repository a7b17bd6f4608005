"""Old outputs, new evaluators: the trials of a stored run are scored again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from proctor.engine.beside import Company, Key
from proctor.engine.bounds import Bounds
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
    name: str | None = None


class Stored(NamedTuple):
    """A stored trial and the others of its sample that stand with it."""

    trial: Trial
    beside: Mapping[Key, Trial]


class StoredTrials:
    """The trials of a stored run as jobs. A sample is in memory only while it is being scored."""

    def __init__(self, results: Results, run: RunMetadata) -> None:
        self._results = results
        self._configurations = {c.name: c for c in run.configurations}
        self._taken: dict[int, Stored] = {}

    def __len__(self) -> int:
        return len(self._results)

    def jobs(self) -> Iterator[Job]:
        """One job for each trial, in the order of the stored run."""
        numbered = enumerate(result.trial for result in self._results)
        for _, together in groupby(numbered, key=lambda pair: pair[1].sample.id):
            trials = list(together)
            beside = {(trial.configuration, trial.epoch): trial for _, trial in trials}
            for position, trial in trials:
                self._taken[position] = Stored(trial, beside)
                yield position, trial.sample, self._configurations[trial.configuration], trial.epoch

    def runner(self, score: Scoring, company: Company | None, bounds: Bounds) -> Rescorer:
        """What scores the jobs."""
        return Rescorer(self._taken, score, company, bounds)


class Rescorer:
    """Scores a stored trial; one that failed stays as it is."""

    hands = None

    def __init__(
        self,
        trials: dict[int, Stored],
        score: Scoring,
        company: Company | None,
        bounds: Bounds,
    ) -> None:
        self._bounds = bounds
        self._trials = trials
        self._score = score
        self._company = company

    async def run(
        self, slot: Slot, _sample: Sample[Any, Any], configuration: Configuration, _epoch: int
    ) -> EvalResult:
        assert slot.job is not None
        trial, beside = self._trials.pop(slot.job[0])
        if trial.error is not None:
            return EvalResult(trial)
        as_seen: Trial = trial
        if self._company is not None:
            as_seen = self._company.seen(trial, configuration, beside)
        result = EvalResult(trial, *await self._score(as_seen))
        return await self._bounds.settle(result) if self._bounds.needs_a_look(result) else result
