"""Peer trials: the baseline and the other epochs that evaluators see with a trial.

The plan runs all trials of a sample in a row, the baseline first and epochs in order. So a trial
only waits for trials that a worker has already started.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from proctor.engine.plan import Plan
from proctor.ports import AttachedEvaluator, SampleEvaluators
from proctor.records.fields.view import TrialView, make_trial_view
from proctor.records.run import RunOptions
from proctor.records.trial import Configuration, Trial

NEEDS_LOCAL_RUN = "workers see one trial at a time, but this run compares trials with each other"
LOCAL_RUN_FIX = (
    "run it here, without workers; or leave out the baseline configuration and the evaluators of "
    "repeats (consistency, statistical_significance, effect_size)"
)

# Configuration and epoch of a trial.
Key = tuple[str, int]
LoadTrials = Callable[[str], Sequence[Trial]]


class PeerSlot(Protocol):
    """One trial among the trials of its sample."""

    async def add_peers(self, trial: Trial) -> Trial:
        """Publish the finished trial to its peers; return the trial with the peers that evaluators see."""
        ...

    def close(self) -> None:
        """Release the peers that still wait for this trial."""
        ...


class PeerTrials(Protocol):
    """Connects the trials of a run with their peers."""

    def open_slot(self, sample_id: str, configuration: Configuration, epoch: int) -> PeerSlot: ...


def configuration_only(evaluators: Iterable[AttachedEvaluator]) -> PeerTrials | None:
    """Return peer trials that add only the configuration; None if no evaluator needs it."""
    return NoPeers() if evaluator_needs(evaluators) else None


def shared_peers(plan: Plan, load_finished: LoadTrials | None = None) -> PeerTrials | None:
    """Return peer trials that connect the trials of a sample; None if no evaluator of the plan compares trials.

    `load_finished` returns the trials of a sample that an earlier execution of the run finished.
    """
    if not needs_peers(plan):
        return None
    selection = select_peers(find_needs(plan), plan.baseline, plan.options)
    keys = [(c.name, epoch) for c in plan.configurations for epoch in range(plan.options.epochs)]
    return SharedPeers(selection, keys, load_finished)


def select_peers(needs: frozenset[str], baseline: str | None, options: RunOptions) -> PeerSelection:
    return PeerSelection(baseline, options.epochs if "epochs" in needs else 0)


class HasEvaluators(Protocol):
    """A plan of a run, or of scoring a run again."""

    @property
    def evaluators(self) -> tuple[AttachedEvaluator, ...]: ...
    @property
    def checks(self) -> SampleEvaluators | None: ...


def find_needs(plan: HasEvaluators) -> frozenset[str]:
    """Return everything that the evaluators of a plan, and of its samples, need in addition to the trial itself."""
    return evaluator_needs(plan.evaluators) | (plan.checks.needs if plan.checks is not None else frozenset())


def evaluator_needs(evaluators: Iterable[AttachedEvaluator]) -> frozenset[str]:
    """Return everything that the evaluators need in addition to the trial itself."""
    return frozenset().union(*(evaluator.needs for evaluator in evaluators))


def needs_peers(plan: Plan) -> bool:
    """True if scoring a trial requires other trials of its sample."""
    return plan.baseline is not None or "epochs" in find_needs(plan)


class NoPeers(NamedTuple):
    """Shows evaluators the configuration and no other trial."""

    def open_slot(self, _id: str, configuration: Configuration, _epoch: int) -> PeerSlot:
        return _SingleSlot(configuration)


class _SingleSlot(NamedTuple):
    configuration: Configuration

    async def add_peers(self, trial: Trial) -> Trial:
        return make_trial_view(trial, options=self.configuration.options)

    def close(self) -> None:
        """Do nothing: no trial waits for this one."""


class SharedPeers:
    """Connects the trials of one sample while any of them runs."""

    def __init__(
        self, selection: PeerSelection, expected: Iterable[Key], load_finished: LoadTrials | None = None
    ) -> None:
        self.selection = selection
        self._expected = frozenset(expected)
        self._load_finished = load_finished
        self._samples: dict[str, dict[Key, asyncio.Future[Trial]]] = {}
        self._remaining: Counter[str] = Counter()

    def open_slot(self, sample_id: str, configuration: Configuration, epoch: int) -> PeerSlot:
        loop = asyncio.get_running_loop()
        if sample_id not in self._samples:
            futures: dict[Key, asyncio.Future[Trial]] = {}
            for trial in self._load_finished(sample_id) if self._load_finished else ():
                finished: asyncio.Future[Trial] = loop.create_future()
                finished.set_result(trial)
                futures[trial.configuration, trial.epoch] = finished
            self._samples[sample_id] = futures
            # After a change of the run, some finished trials are no longer in the plan.
            self._remaining[sample_id] = len(self._expected - futures.keys())
        futures = self._samples[sample_id]
        futures[configuration.name, epoch] = loop.create_future()
        return _SharedSlot(self, sample_id, futures, configuration, epoch)

    def release(self, sample_id: str) -> None:
        """Count one trial of a sample as finished; forget the sample after its last trial."""
        self._remaining[sample_id] -= 1
        if self._remaining[sample_id] <= 0:
            del self._remaining[sample_id]
            self._samples.pop(sample_id, None)


class PeerSelection(NamedTuple):
    """Selects the trials that evaluators see next to a trial.

    `epochs` is the number of epochs if evaluators compare all of them, else 0.
    """

    baseline: str | None
    epochs: int

    def keys_for(self, name: str, epoch: int) -> list[Key]:
        references = [self.baseline] if self.baseline not in (None, name) else []
        if self.epochs and epoch == self.epochs - 1:
            return [(peer, at) for peer in (name, *references) if peer for at in range(self.epochs)]
        return [(peer, epoch) for peer in references if peer]

    def attach(self, trial: Trial, configuration: Configuration, peers: Mapping[Key, Trial | None]) -> TrialView:
        """Return a trial with the selected peers that exist."""
        name, baseline, epoch = configuration.name, self.baseline, trial.epoch

        def repeats(peer_name: str) -> tuple[Trial | None, ...]:
            return tuple(peers.get((peer_name, at)) for at in range(self.epochs))

        # The baseline itself is not compared, even if its samples have recorded results.
        reference = baseline if baseline != name else None
        is_last = epoch == self.epochs - 1
        own_epochs = repeats(name) if is_last else None
        return make_trial_view(
            trial,
            options=configuration.options,
            is_compared=baseline is not None,
            baseline=peers.get((reference, epoch)) if reference else None,
            epochs=own_epochs if self.epochs else (),
            baseline_epochs=repeats(reference) if reference and is_last else (),
            is_baseline=baseline == name,
        )


class _SharedSlot(NamedTuple):
    """A trial that peers may wait for, or that waits for its peers."""

    peers: SharedPeers
    sample_id: str
    futures: dict[Key, asyncio.Future[Trial]]
    configuration: Configuration
    epoch: int

    async def add_peers(self, trial: Trial) -> Trial:
        self._future.set_result(trial)
        if trial.error is not None:
            return trial
        selection = self.peers.selection
        peers: dict[Key, Trial | None] = {}
        for key in selection.keys_for(self.configuration.name, self.epoch):
            future = self.futures.get(key)
            # A cancelled trial also cancels the trials that cannot be scored without it.
            peers[key] = None if future is None else await asyncio.shield(future)
        return selection.attach(trial, self.configuration, peers)

    def close(self) -> None:
        if not self._future.done():
            self._future.cancel()
        self.peers.release(self.sample_id)

    @property
    def _future(self) -> asyncio.Future[Trial]:
        return self.futures[self.configuration.name, self.epoch]
