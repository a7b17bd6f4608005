"""Several sides in a row: which is best by one number, and which places are decided."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, get_args

import msgspec

from proctor.comparison.deltas import evidence_of
from proctor.comparison.evidence import interval_of
from proctor.comparison.sides import Numbers, Side, clusters_of
from proctor.comparison.verdicts import LEVEL, TIMES_APART
from proctor.core.stats.descriptive import mean
from proctor.core.stats.differences import ROUNDING
from proctor.core.stats.effects import holm
from proctor.core.stats.intervals import too_few_clusters
from proctor.core.stats.ranks import chances_of_best
from proctor.errors import ConfigError, nearest
from proctor.records.comparison import Order, RankedPlace, Ranking

NOT_ALIKE = "They have not the same samples"


class Ranked(NamedTuple):
    """One to be ranked: its numbers by sample, the samples' clusters, how many lack a number.

    `run` is named where the numbers are times: each run has its own moment.
    """

    numbers: Numbers
    clusters: dict[str, str] | None = None
    missing: int = 0
    run: str = ""


def rank(field: str, order: str, by_name: Mapping[str, Ranked]) -> Ranking:
    """Put configurations in order of a number: "asc" has the lowest first, "desc" the highest.

    Equal ones, rounding aside, stand by name, those without a number last. Where not all have the
    same samples, and those in common contradict the order, only these are used. The order of times
    that were measured in several runs is never decided.

    >>> ranking = rank("tokens", "asc", {"high": Ranked({"1": 500}), "low": Ranked({"1": 450})})
    >>> ranking.best, ranking.worst
    ('low', 'high')
    """
    if order not in get_args(Order):
        raise ConfigError(
            f"there is no order {order!r}: {nearest(str(order), get_args(Order))}",
            where=f"rank_by {field}",
            fix='"asc" has the lowest first, "desc" the highest',
        )
    return Ranking(field, order, *_placed_and_noted(order, by_name))  # type: ignore[arg-type]


def _placed_and_noted(order: str, by_name: Mapping[str, Ranked]) -> tuple[tuple[RankedPlace, ...], str]:
    places = _placed(order, by_name)
    if len({one.run for one in by_name.values() if one.numbers}) > 1:
        return _open(places), f"{TIMES_APART[0].upper()}{TIMES_APART[1:]}."
    if all(one.ranks is None or one.ranks[0] <= one.rank <= one.ranks[1] for one in places):
        return places, ""
    shared = _in_common(by_name)
    if not shared:
        return _open(places), f"{NOT_ALIKE}."
    narrowed = {
        name: one._replace(numbers={s: v for s, v in one.numbers.items() if s in shared})
        for name, one in by_name.items()
    }
    note = f"{NOT_ALIKE}, and what all of them have contradicts the order by all: this is by these."
    return _placed(order, narrowed), note


def _placed(order: str, by_name: Mapping[str, Ranked]) -> tuple[RankedPlace, ...]:
    means = {name: mean([*one.numbers.values()]) for name, one in by_name.items()}
    held = _in_order(means, upward=order == "asc")
    names = held + sorted(set(means) - set(held))
    ranks = _ranks(held, by_name, upward=order == "asc")
    chances = _chances(held, by_name, highest=order == "desc")
    return tuple(
        _place(name, number, means[name], by_name[name], ranks.get(name), chances.get(name))
        for number, name in enumerate(names, start=1)
    )


def _in_common(by_name: Mapping[str, Ranked]) -> set[str]:
    """The samples that all have that have any."""
    each = [set(one.numbers) for one in by_name.values() if one.numbers]
    return set.intersection(*each) if each else set()


def _open(places: Sequence[RankedPlace]) -> tuple[RankedPlace, ...]:
    """The same places, none of which is decided."""
    count = sum(one.value is not None for one in places)
    return tuple(
        msgspec.structs.replace(one, ranks=one.ranks and (1, count), chance_of_best=None) for one in places
    )


def _place(
    name: str,
    number: int,
    value: float | None,
    ranked: Ranked,
    ranks: tuple[int, int] | None,
    chance: float | None,
) -> RankedPlace:
    values = [*ranked.numbers.values()]
    interval = interval_of(values, clusters_of([*ranked.numbers], ranked.clusters))
    return RankedPlace(name, number, value, len(values), ranked.missing, interval, ranks, chance)


def _in_order(means: Mapping[str, float | None], *, upward: bool) -> list[str]:
    """The names that have a mean, lowest first or highest first, equal ones by name."""
    sign = 1 if upward else -1
    held = sorted((sign * value, name) for name, value in means.items() if value is not None)
    keys: list[tuple[float, str]] = []
    for value, name in held:
        last = keys[-1][0] if keys else value
        # 0.1 + 0.2 is 0.3 to people, if not to the last binary digit.
        keys.append((last if math.isclose(value, last, rel_tol=ROUNDING) else value, name))
    return [name for _, name in sorted(keys)]


def _ranks(held: Sequence[str], by_name: Mapping[str, Ranked], *, upward: bool) -> dict[str, tuple[int, int]]:
    """The best and worst place of each that no comparison with another contradicts."""
    pairs = list(combinations(held, 2))
    found = [_compared(by_name[one], by_name[other]) for one, other in pairs]
    corrected = holm([1.0 if p is None else p for _, p in found], LEVEL)
    ahead, behind = dict.fromkeys(held, 0), dict.fromkeys(held, 0)
    for (one, other), (apart, _), verdict in zip(pairs, found, corrected, strict=True):
        if not verdict.rejected or not apart:
            continue
        first, last = (one, other) if (apart < 0) is upward else (other, one)
        ahead[last] += 1
        behind[first] += 1
    return {name: (1 + ahead[name], len(held) - behind[name]) for name in held}


def _compared(one: Ranked, other: Ranked) -> tuple[float | None, float | None]:
    a, b = Side("a", clusters=one.clusters), Side("b", clusters=other.clusters)
    found = evidence_of(a, b, one.numbers, other.numbers)
    return found.difference, found.probability()[0]


def _chances(held: Sequence[str], by_name: Mapping[str, Ranked], *, highest: bool) -> dict[str, float]:
    """How likely each comes first; nothing where their samples are not the same."""
    samples = list(by_name[held[0]].numbers) if held else []
    alike = all(by_name[name].numbers.keys() == by_name[held[0]].numbers.keys() for name in held)
    if len(held) < 2 or len(samples) < 2 or not alike:
        return {}
    columns = [[by_name[name].numbers[one] for one in samples] for name in held]
    clusters = clusters_of(samples, *(by_name[name].clusters for name in held))
    if clusters is not None:
        if too_few_clusters(clusters):
            return {}
        # What belongs together is drawn together.
        columns = [_totals(column, clusters) for column in columns]
    return dict(zip(held, chances_of_best(columns, highest=highest), strict=True))


def _totals(values: Sequence[float], clusters: Sequence[str]) -> list[float]:
    held = dict.fromkeys(clusters, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        held[cluster] += value
    return [*held.values()]
