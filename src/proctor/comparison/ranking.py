"""Rank configurations or runs by one metric, and report which ranks are statistically certain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, get_args

import msgspec

from proctor.comparison.deltas import collect_evidence
from proctor.comparison.evidence import estimate_interval
from proctor.comparison.sides import Side, ValuesBySample, find_clusters
from proctor.comparison.verdicts import DIFFERENT_MOMENTS, LEVEL
from proctor.core.stats.descriptive import mean
from proctor.core.stats.differences import ROUNDING
from proctor.core.stats.effects import holm
from proctor.core.stats.intervals import find_cluster_problem
from proctor.core.stats.ranks import best_probabilities
from proctor.errors import ConfigError
from proctor.records.comparison import Order, RankedPlace, Ranking

DIFFERENT_SAMPLES = "They do not have the same samples"


class RankingEntry(NamedTuple):
    """The numbers of one configuration by sample, its clusters, and how many numbers are missing.

    `run` is set if the numbers are latencies, because latencies of different runs are not comparable. `trials` has the
    sample and the number of each trial, if samples were run several times.
    """

    numbers: ValuesBySample
    clusters: dict[str, str] | None = None
    missing: int = 0
    run: str = ""
    trials: Sequence[tuple[str, float]] = ()


def rank(field: str, order: str, by_name: Mapping[str, RankingEntry]) -> Ranking:
    """Rank configurations by a number: "asc" puts the lowest first, "desc" the highest.

    Ties are sorted by name; configurations without a number come last. If the configurations do not have the same
    samples, and the common samples contradict the order, only the common samples are used. Latencies of different runs
    never have certain ranks.
    """
    if order not in get_args(Order):
        raise ConfigError(
            f"unknown order {order!r}",
            where=f"rank_by {field}",
            fix='choose "asc" for the lowest first, or "desc" for the highest first',
        )
    return Ranking(field, order, *_rank_with_note(order, by_name))  # type: ignore[arg-type]


def _rank_with_note(order: str, by_name: Mapping[str, RankingEntry]) -> tuple[tuple[RankedPlace, ...], str]:
    places = _rank_all(order, by_name)
    if len({entry.run for entry in by_name.values() if entry.numbers}) > 1:
        return _clear_ranks(places), f"{DIFFERENT_MOMENTS[0].upper()}{DIFFERENT_MOMENTS[1:]}."
    if all(place.ranks is None or place.ranks[0] <= place.rank <= place.ranks[1] for place in places):
        return places, ""
    samples = [set(entry.numbers) for entry in by_name.values() if entry.numbers]
    shared = set.intersection(*samples) if samples else set()
    if not shared:
        return _clear_ranks(places), f"{DIFFERENT_SAMPLES}."
    narrowed = {
        name: entry._replace(numbers={s: v for s, v in entry.numbers.items() if s in shared})
        for name, entry in by_name.items()
    }
    note = f"{DIFFERENT_SAMPLES}, and the common samples contradict the order of all: only these are used."
    return _rank_all(order, narrowed), note


def _clear_ranks(places: Sequence[RankedPlace]) -> tuple[RankedPlace, ...]:
    count = sum(place.value is not None for place in places)
    return tuple(
        msgspec.structs.replace(place, ranks=place.ranks and (1, count), chance_of_best=None) for place in places
    )


def _rank_all(order: str, by_name: Mapping[str, RankingEntry]) -> tuple[RankedPlace, ...]:
    means = {name: mean([*entry.numbers.values()]) for name, entry in by_name.items()}
    ordered = _sort_by_mean(means, ascending=order == "asc")
    ranks = _find_possible_ranks(ordered, by_name, ascending=order == "asc")
    win_probabilities = _find_win_probabilities(ordered, by_name, highest=order == "desc")
    places = []
    for number, name in enumerate([*ordered, *sorted(set(means) - set(ordered))], start=1):
        entry = by_name[name]
        values = [*entry.numbers.values()]
        trials = [(sample, value) for sample, value in entry.trials if sample in entry.numbers]
        clusters = find_clusters([*entry.numbers], entry.clusters)
        interval = estimate_interval(values, clusters, trials, entry.clusters)
        place = (name, number, means[name], len(values), entry.missing, interval)
        places.append(RankedPlace(*place, ranks.get(name), win_probabilities.get(name)))
    return tuple(places)


def _sort_by_mean(means: Mapping[str, float | None], *, ascending: bool) -> list[str]:
    """Sort the names that have a mean; equal means are in order of their names."""
    sign = 1 if ascending else -1
    signed_means = sorted((sign * value, name) for name, value in means.items() if value is not None)
    keys: list[tuple[float, str]] = []
    for value, name in signed_means:
        last = keys[-1][0] if keys else value
        # Numbers that differ only by rounding are equal.
        keys.append((last if math.isclose(value, last, rel_tol=ROUNDING) else value, name))
    return [name for _, name in sorted(keys)]


def _find_possible_ranks(
    names: Sequence[str], by_name: Mapping[str, RankingEntry], *, ascending: bool
) -> dict[str, tuple[int, int]]:
    """Find the best and worst rank of each name that no pairwise comparison contradicts."""
    pairs = list(combinations(names, 2))
    tests = [_test_difference(by_name[a], by_name[b]) for a, b in pairs]
    corrected = holm([1.0 if p is None else p for _, p in tests], LEVEL)
    better, worse = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for (a, b), (difference, _), test in zip(pairs, tests, corrected, strict=True):
        if test.rejected and difference:
            first, last = (a, b) if (difference < 0) is ascending else (b, a)
            better[last] += 1
            worse[first] += 1
    return {name: (1 + better[name], len(names) - worse[name]) for name in names}


def _test_difference(a: RankingEntry, b: RankingEntry) -> tuple[float | None, float | None]:
    sides = Side("a", clusters=a.clusters), Side("b", clusters=b.clusters)
    evidence = collect_evidence(*sides, a.numbers, b.numbers)
    return evidence.difference, evidence.probability[0]


def _find_win_probabilities(
    names: Sequence[str], by_name: Mapping[str, RankingEntry], *, highest: bool
) -> dict[str, float]:
    """Estimate the probability that each name is first; empty if the samples are not the same."""
    samples = list(by_name[names[0]].numbers) if names else []
    has_same_samples = all(by_name[name].numbers.keys() == by_name[names[0]].numbers.keys() for name in names)
    if len(names) < 2 or len(samples) < 2 or not has_same_samples:
        return {}
    columns = [[by_name[name].numbers[sample] for sample in samples] for name in names]
    clusters = find_clusters(samples, *(by_name[name].clusters for name in names))
    if clusters is not None:
        if find_cluster_problem(clusters):
            return {}
        # The samples of a cluster are resampled together.
        columns = [_sum_by_cluster(column, clusters) for column in columns]
    return dict(zip(names, best_probabilities(columns, highest=highest), strict=True))


def _sum_by_cluster(values: Sequence[float], clusters: Sequence[str]) -> list[float]:
    sums = dict.fromkeys(clusters, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] += value
    return [*sums.values()]
