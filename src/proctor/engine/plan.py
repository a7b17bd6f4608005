"""What is to be run: sample × configuration × epoch, streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from proctor.ports import AttachedEvaluator, Metric, SampleSource, Target
from proctor.records.order import Positions, drawn
from proctor.records.run import DatasetInfo, RunOptions
from proctor.records.sample import Sample
from proctor.records.trial import Configuration

# position in the plan, sample, configuration, epoch
Job = tuple[int, Sample[Any, Any], Configuration, int]
# a sample with its number in the dataset, from 0
Numbered = tuple[int, Sample[Any, Any]]
IsDone = Callable[[int, str, str, int], bool]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What runs a sample and scores what comes out, ready to be used: all that a worker needs."""

    target: Target
    evaluators: tuple[AttachedEvaluator, ...]
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True, kw_only=True)
class Plan(Setup):
    """Everything a run is made of; `fields` are the paths that are told of while it goes on."""

    name: str
    dataset: SampleSource
    configurations: tuple[Configuration, ...] = (Configuration(),)
    metrics: tuple[Metric, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    baseline: str | None = None
    fields: dict[str, str] = field(default_factory=dict)


def total_of(plan: Plan, info: DatasetInfo) -> int | None:
    """How many trials there will be, if the dataset knows its length."""
    if info.length is None:
        return None
    samples = min(info.length, plan.options.limit or info.length)
    return samples * len(plan.configurations) * plan.options.epochs


def jobs(
    plan: Plan,
    is_done: IsDone | None = None,
    first_position: int = 0,
    samples: Iterable[Numbered] | None = None,
) -> Iterator[Job]:
    """The trials to run, in turn: all configurations and epochs of a sample stand together.

    The baseline comes first, for the others are compared with it. Positions are those of the
    dataset's order, whatever the order in which samples are run.
    """
    epochs = range(plan.options.epochs)
    in_turn = sorted(plan.configurations, key=lambda one: one.name != plan.baseline)
    together = len(in_turn) * len(epochs)
    for number, sample in samples_in_turn(plan) if samples is None else samples:
        position = first_position + number * together - 1
        for configuration in in_turn:
            for epoch in epochs:
                position += 1
                if is_done is None or not is_done(position, sample.id, configuration.name, epoch):
                    yield position, sample, configuration, epoch


def samples_in_turn(plan: Plan) -> Iterable[Numbered]:
    """The samples that are run, in the order in which they are, each with its dataset's number.

    A shuffled dataset is held in memory.
    """
    numbered, limit, seed = enumerate(plan.dataset), plan.options.limit, plan.options.shuffle
    if seed is None:
        return islice(numbered, limit)
    return sorted(numbered, key=lambda one: drawn(seed, one[1].id))[:limit]


def done_by_position(finished: Iterable[tuple[int, str, str, int]]) -> IsDone:
    """Tell finished trials by their place in the plan: one bit each, for unchanged plans."""
    taken = Positions()
    for position, *_ in finished:
        taken.add(position)
    return lambda position, *_: position in taken


def done_by_name(finished: Iterable[tuple[int, str, str, int]]) -> tuple[IsDone, int]:
    """Tell finished trials by sample, configuration and epoch, wherever they stand in the plan.

    Gives also the first position that no finished trial has.
    """
    names = set()
    free = 0
    for position, sample, configuration, epoch in finished:
        names.add((sample, configuration, epoch))
        free = max(free, position + 1)
    return lambda _position, *name: name in names, free
