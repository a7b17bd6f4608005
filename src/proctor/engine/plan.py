"""What a run consists of: samples × configurations × epochs, streamed as jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from proctor.ports import AttachedEvaluator, Metric, SampleEvaluators, SampleSource, Target
from proctor.records.order import Positions, shuffle_key
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunOptions
from proctor.records.sample import Sample
from proctor.records.selection import SelectedSamples
from proctor.records.trial import Configuration

# The position in the plan, the sample, the configuration, the epoch.
Job = tuple[int, Sample[Any, Any], Configuration, int]
# The position in the dataset, from 0, and the sample.
NumberedSample = tuple[int, Sample[Any, Any]]
IsDone = Callable[[int, str, str, int], bool]


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Everything that a worker needs to run and score samples: target, evaluators and options.

    `checks` builds the evaluators of single samples; without it, they are ignored.
    """

    target: Target
    evaluators: tuple[AttachedEvaluator, ...]
    checks: SampleEvaluators | None = None
    options: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True, kw_only=True)
class Plan(Setup):
    """Everything a run consists of; `fields` are the paths that progress events report.

    `selected_ids` are the samples to run, None for all; `selected` describes them.
    """

    name: str
    dataset: SampleSource
    configurations: tuple[Configuration, ...] = (Configuration(),)
    metrics: tuple[Metric, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)
    baseline: str | None = None
    fields: dict[str, str] = field(default_factory=dict)
    selected_ids: frozenset[str] | None = None
    selected: SelectedSamples | None = None


def list_specs(evaluators: Iterable[AttachedEvaluator], checks: SampleEvaluators | None) -> tuple[EvaluatorSpec, ...]:
    """Return the descriptions of all evaluators of a run: those of all samples, then those of single samples."""
    return (*(evaluator.spec for evaluator in evaluators), *(checks.specs if checks is not None else ()))


def count_trials(plan: Plan, info: DatasetInfo) -> int | None:
    """Count the planned trials; None if the length of the dataset is unknown."""
    if info.length is None:
        return None
    length = info.length if plan.selected_ids is None else len(plan.selected_ids)
    samples = min(length, plan.options.limit or length)
    return samples * len(plan.configurations) * plan.options.epochs


def plan_jobs(
    plan: Plan, is_done: IsDone | None = None, first_position: int = 0, samples: Iterable[NumberedSample] | None = None
) -> Iterator[Job]:
    """Yield the trials to run: all configurations and epochs of a sample in a row.

    The baseline comes first, because the other configurations are compared with it. Positions follow the order
    of the dataset, even if samples run in another order.
    """
    configurations = sorted(plan.configurations, key=lambda c: c.name != plan.baseline)
    repeats = list(product(configurations, range(plan.options.epochs)))
    for number, sample in ordered_samples(plan) if samples is None else samples:
        position = first_position + number * len(repeats) - 1
        for configuration, epoch in repeats:
            position += 1
            if is_done is None or not is_done(position, sample.id, configuration.name, epoch):
                yield position, sample, configuration, epoch


def ordered_samples(plan: Plan) -> Iterable[NumberedSample]:
    """Return the samples in the order of the run; a shuffled dataset is loaded into memory."""
    numbered_samples: Iterable[NumberedSample] = enumerate(plan.dataset)
    limit, seed, selected_ids = plan.options.limit, plan.options.shuffle, plan.selected_ids
    if selected_ids is not None:
        # The positions in the dataset stay the same, so that a resumed run recognizes them.
        numbered_samples = ((number, sample) for number, sample in numbered_samples if sample.id in selected_ids)
    if seed is None:
        return islice(numbered_samples, limit)
    return sorted(numbered_samples, key=lambda pair: shuffle_key(seed, pair[1].id))[:limit]


def done_by_position(finished: Iterable[tuple[int, str, str, int]]) -> IsDone:
    """Recognize finished trials by their position in an unchanged plan: one bit each."""
    positions = Positions()
    for position, *_ in finished:
        positions.add(position)
    return lambda position, *_: position in positions


def done_by_name(finished: Iterable[tuple[int, str, str, int]]) -> tuple[IsDone, int]:
    """Recognize finished trials by sample, configuration and epoch, at any position.

    Also returns the first position after all finished trials.
    """
    names = set()
    free = 0
    for position, sample, configuration, epoch in finished:
        names.add((sample, configuration, epoch))
        free = max(free, position + 1)
    return lambda _position, *name: name in names, free
