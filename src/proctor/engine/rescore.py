"""Score the trials of a stored run again, with other evaluators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from proctor.engine.output_limits import OutputLimits
from proctor.engine.peer_trials import Key, PeerSelection
from proctor.engine.plan import Job
from proctor.engine.timeouts import WorkerSlot
from proctor.engine.trial import Scorer
from proctor.ports import AttachedEvaluator, Metric, SampleEvaluators
from proctor.records.lossless import MAX_DEPTH
from proctor.records.results import Results
from proctor.records.run import Budget, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Trial


@dataclass(frozen=True)
class RescorePlan:
    """The evaluators, metrics and settings for scoring a stored run again."""

    evaluators: tuple[AttachedEvaluator, ...]
    metrics: tuple[Metric, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    budget: Budget | None = None
    name: str | None = None
    checks: SampleEvaluators | None = None


class StoredTrial(NamedTuple):
    """A stored trial and all trials of its sample."""

    trial: Trial
    peers: Mapping[Key, Trial]


class StoredTrials:
    """The trials of a stored run as jobs. A sample stays in memory only while it is scored."""

    def __init__(self, results: Results, run: RunMetadata) -> None:
        self._results = results
        self._configurations = {c.name: c for c in run.configurations}
        self._pending: dict[int, StoredTrial] = {}

    def __len__(self) -> int:
        return len(self._results)

    def jobs(self) -> Iterator[Job]:
        """Yield one job for each trial, in the order of the stored run."""
        numbered_trials = enumerate(result.trial for result in self._results)
        for _, group in groupby(numbered_trials, key=lambda pair: pair[1].sample.id):
            trials = list(group)
            peers = {(trial.configuration, trial.epoch): trial for _, trial in trials}
            for position, trial in trials:
                self._pending[position] = StoredTrial(trial, peers)
                yield position, trial.sample, self._configurations[trial.configuration], trial.epoch

    def runner(self, score: Scorer, peers: PeerSelection | None, limits: OutputLimits) -> Rescorer:
        return Rescorer(self._pending, score, peers, limits)


class Rescorer:
    """Scores stored trials; failed trials stay unchanged."""

    max_concurrency = None

    def __init__(
        self, trials: dict[int, StoredTrial], score: Scorer, selection: PeerSelection | None, limits: OutputLimits
    ) -> None:
        self._trials = trials
        self._score = score
        self._selection = selection
        self._limits = limits

    async def run(
        self, slot: WorkerSlot, _sample: Sample[Any, Any], configuration: Configuration, _epoch: int
    ) -> EvalResult:
        assert slot.job is not None
        trial, peers = self._trials.pop(slot.job[0])
        if trial.error is not None:
            return EvalResult(trial)
        score = self._score.for_sample(trial.sample)
        if (type_name := find_unstored_type(trial.output)) is not None:
            skipped = Score.skipped(
                f"the output contains an object of type {type_name}, which the history stored only as a "
                "description. Fix: run the target again, or return plain data instead of the object"
            )
            return EvalResult(trial, dict.fromkeys(score.names, skipped))
        visible: Trial = trial
        if self._selection is not None:
            visible = self._selection.attach(trial, configuration, peers)
        result = EvalResult(trial, *await score(visible))
        return await self._limits.limit_result(result) if self._limits.needs_check(result) else result


def find_unstored_type(value: Any, depth: int = 0) -> str | None:
    """Return the class of the first object that the history could store only as a description.

    >>> find_unstored_type({"a": [{"$repr": "<Odd>", "$type": "Odd"}]}), find_unstored_type({"a": 1})
    ('Odd', None)
    """
    if depth > MAX_DEPTH or not isinstance(value, dict | list | tuple):
        return None
    if isinstance(value, dict) and value.keys() == {"$repr", "$type"}:
        return str(value["$type"])
    items = value.values() if isinstance(value, dict) else value
    names = (find_unstored_type(item, depth + 1) for item in items)
    return next((name for name in names if name is not None), None)
