"""What stands beside a trial: its configuration's options, its baseline, its other epochs.

All trials of a sample stand together in the plan, the baseline's first and epochs in order. So
whatever a trial waits for was begun before it, and nobody waits for one that has no worker yet.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from proctor.engine.plan import Plan
from proctor.ports import AttachedEvaluator
from proctor.records.fields.view import SeenTrial, seen
from proctor.records.run import RunOptions
from proctor.records.trial import Configuration, Trial

NOT_ELSEWHERE = "workers see one trial at a time, but here trials are compared with each other"
RUN_HERE = (
    "run it here, without workers; or leave out the baseline configuration and the evaluators of "
    "repeats (consistency, statistical_significance, effect_size)"
)

Key = tuple[str, int]
Before = Callable[[str], Sequence[Trial]]


class Seat(Protocol):
    """The place of one trial among those of its sample."""

    async def joined(self, trial: Trial) -> Trial:
        """Tell the others of the trial, and give it with what stands beside it."""
        ...

    def leave(self) -> None:
        """It is over: nobody need wait for this trial any more."""
        ...


class Beside(Protocol):
    """What gives the trials of a run their seats."""

    def seat(self, sample_id: str, configuration: Configuration, epoch: int) -> Seat:
        """The place of a trial that begins."""
        ...


def alone(evaluators: Iterable[AttachedEvaluator]) -> Beside | None:
    """What is seen beside a trial where no other trial is known; None if nobody looks."""
    return Alone() if needs_of(evaluators) else None


def together(plan: Plan, before: Before | None = None) -> Beside | None:
    """The trials of a sample seen side by side; None if a plan's evaluators compare nothing.

    `before` gives the trials of a sample that an earlier sitting has finished.
    """
    if not needs_others(plan):
        return None
    company = company_of(plan.evaluators, plan.baseline, plan.options)
    epochs = range(plan.options.epochs)
    return Together(company, [(c.name, at) for c in plan.configurations for at in epochs], before)


def company_of(evaluators: Iterable[AttachedEvaluator], baseline: str | None, options: RunOptions) -> Company:
    """Which other trials of a sample these evaluators look at."""
    return Company(baseline, options.epochs if "epochs" in needs_of(evaluators) else 0)


def needs_of(evaluators: Iterable[AttachedEvaluator]) -> frozenset[str]:
    """What any of the evaluators looks at beside the trial itself."""
    return frozenset().union(*(evaluator.needs for evaluator in evaluators))


def needs_others(plan: Plan) -> bool:
    """True if scoring a trial takes other trials of its sample."""
    return plan.baseline is not None or "epochs" in needs_of(plan.evaluators)


class Alone(NamedTuple):
    """No other trial is looked at: a seat only knows the configuration."""

    def seat(self, _id: str, configuration: Configuration, _epoch: int) -> Seat:
        return _Single(configuration)


class _Single(NamedTuple):
    configuration: Configuration

    async def joined(self, trial: Trial) -> Trial:
        return seen(trial, options=self.configuration.options)

    def leave(self) -> None:
        """Nobody waits."""


class Together:
    """Trials of one sample are known to each other while any of them is being run."""

    def __init__(self, company: Company, expected: Iterable[Key], before: Before | None = None) -> None:
        self.company = company
        self._expected = frozenset(expected)
        self._before = before
        self._samples: dict[str, dict[Key, asyncio.Future[Trial]]] = {}
        self._left: Counter[str] = Counter()

    def seat(self, sample_id: str, configuration: Configuration, epoch: int) -> Seat:
        if sample_id not in self._samples:
            self._samples[sample_id] = self._finished(sample_id)
            # Of a run that has changed, some that are finished belong to the plan no more.
            self._left[sample_id] = len(self._expected - self._samples[sample_id].keys())
        table = self._samples[sample_id]
        key = (configuration.name, epoch)
        table[key] = asyncio.get_running_loop().create_future()
        return _Shared(self, sample_id, table, configuration, epoch)

    def left(self, sample_id: str) -> None:
        """One trial of a sample is over; after the last one the sample is forgotten."""
        self._left[sample_id] -= 1
        if self._left[sample_id] <= 0:
            del self._left[sample_id]
            self._samples.pop(sample_id, None)

    def _finished(self, sample_id: str) -> dict[Key, asyncio.Future[Trial]]:
        table: dict[Key, asyncio.Future[Trial]] = {}
        for trial in self._before(sample_id) if self._before else ():
            told: asyncio.Future[Trial] = asyncio.get_running_loop().create_future()
            told.set_result(trial)
            table[trial.configuration, trial.epoch] = told
        return table


class Company(NamedTuple):
    """Which other trials of a sample a trial is seen with.

    `epochs` is how many there are where evaluators look at all of them, else 0.
    """

    baseline: str | None
    epochs: int

    def of(self, name: str, epoch: int) -> list[Key]:
        """The trials that one trial is seen with."""
        compared = [self.baseline] if self.baseline not in (None, name) else []
        if self.epochs and epoch == self.epochs - 1:
            return [(one, at) for one in (name, *compared) if one for at in range(self.epochs)]
        return [(one, epoch) for one in compared if one]

    def seen(
        self, trial: Trial, configuration: Configuration, found: Mapping[Key, Trial | None]
    ) -> SeenTrial:
        """A trial with those that it is seen with, as far as they were found."""
        name, baseline, epoch = configuration.name, self.baseline, trial.epoch

        def repeats(of: str) -> tuple[Trial | None, ...]:
            return tuple(found.get((of, at)) for at in range(self.epochs))

        is_compared = baseline is not None
        # The baseline itself is compared with nothing, whatever its samples recorded.
        reference = baseline if baseline != name else None
        is_last = epoch == self.epochs - 1
        own = repeats(name) if is_last else None
        return seen(
            trial,
            options=configuration.options,
            is_compared=is_compared,
            baseline=found.get((reference, epoch)) if reference else None,
            epochs=own if self.epochs else (),
            baseline_epochs=repeats(reference) if reference and is_last else (),
            is_baseline=baseline == name,
        )


class _Shared(NamedTuple):
    """The seat of a trial that others may wait for, or that waits for others."""

    room: Together
    sample_id: str
    table: dict[Key, asyncio.Future[Trial]]
    configuration: Configuration
    epoch: int

    async def joined(self, trial: Trial) -> Trial:
        self._told.set_result(trial)
        if trial.error is not None:
            return trial
        company = self.room.company
        wanted = company.of(self.configuration.name, self.epoch)
        found = {key: await self._at(key) for key in wanted}
        return company.seen(trial, self.configuration, found)

    def leave(self) -> None:
        if not self._told.done():
            self._told.cancel()
        self.room.left(self.sample_id)

    @property
    def _told(self) -> asyncio.Future[Trial]:
        return self.table[self.configuration.name, self.epoch]

    async def _at(self, key: Key) -> Trial | None:
        """Another trial of the sample; None if there is none."""
        other = self.table.get(key)
        if other is None:
            return None
        # One that was dropped takes those along that cannot be scored without it.
        return await asyncio.shield(other)
