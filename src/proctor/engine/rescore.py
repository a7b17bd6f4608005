"""Old outputs, new evaluators: the trials of a stored run are scored again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from proctor.engine.beside import Company, Key
from proctor.engine.bounds import Bounds
from proctor.engine.limits import Slot
from proctor.engine.plan import Job
from proctor.engine.trial import Scoring
from proctor.ports import AttachedEvaluator, Metric
from proctor.records.lossless import DEEPEST
from proctor.records.results import Results
from proctor.records.run import Budget, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
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
        self, trials: dict[int, Stored], score: Scoring, company: Company | None, bounds: Bounds
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
        if (kind := described_only(trial.output)) is not None:
            lost = Score.skipped(
                f"the output holds an object of {kind}, of which the history has only a "
                "description. Fix: run the target again, or return data instead of the object"
            )
            return EvalResult(trial, dict.fromkeys(self._score.names, lost))
        as_seen: Trial = trial
        if self._company is not None:
            as_seen = self._company.seen(trial, configuration, beside)
        result = EvalResult(trial, *await self._score(as_seen))
        return await self._bounds.settle(result) if self._bounds.needs_a_look(result) else result


def described_only(value: Any, depth: int = 0) -> str | None:
    """The class of the first object in a stored value that could not be stored, or None.

    >>> described_only({"a": [{"$repr": "<Odd>", "$type": "Odd"}]}), described_only({"a": 1})
    ('Odd', None)
    """
    if depth > DEEPEST:
        return None
    if isinstance(value, dict):
        if value.keys() == {"$repr", "$type"}:
            return str(value["$type"])
        items: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple):
        items = value
    else:
        return None
    found = (described_only(item, depth + 1) for item in items)
    return next((kind for kind in found if kind is not None), None)
