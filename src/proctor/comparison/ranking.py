"""Configurations in a row: which is best by one field, and whether that is decided."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from proctor.comparison.readings import Reading, by_sample, interval_of, is_decided, known, pair
from proctor.errors import ConfigError, nearest
from proctor.statistics.differences import ROUNDING
from proctor.statistics.intervals import Interval
from proctor.statistics.moments import mean

Order = Literal["asc", "desc"]


class RankedPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One configuration's place: its mean, on how many numbers it rests, how many are missing.

    The epochs of a sample are averaged first; `interval` holds the true mean with 95 %.
    """

    configuration: str
    rank: int
    value: float | None = None
    n: int = 0
    missing: int = 0
    interval: Interval | None = None


class Ranking(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All configurations by one field, the best first and those without a number last.

    `decided` is True if the first differs from the second, on the samples that both have, by more
    than chance would give.
    """

    field: str
    order: Order
    places: tuple[RankedPlace, ...] = ()
    decided: bool = False

    @property
    def best(self) -> str | None:
        """The first that has a number."""
        return next((one.configuration for one in self.places if one.value is not None), None)

    @property
    def worst(self) -> str | None:
        """The last that has a number."""
        held = [one.configuration for one in self.places if one.value is not None]
        return held[-1] if held else None

    @property
    def data(self) -> list[dict[str, Any]]:
        """One plain mapping for each place, for a table or a plot."""
        return [
            {**msgspec.structs.asdict(one), "interval": one.interval and list(one.interval)}
            for one in self.places
        ]


def rank(field: str, order: str, by_configuration: Mapping[str, Sequence[Reading]]) -> Ranking:
    """Put the configurations in order of a field: "asc" has the lowest first, "desc" the highest.

    Equal ones, rounding aside, stand by name, those without a number last.

    >>> low, high = [Reading("1", 0, 450)], [Reading("1", 0, 500)]
    >>> ranking = rank("tokens", "asc", {"high": high, "low": low})
    >>> ranking.best, ranking.worst
    ('low', 'high')
    """
    if order not in get_args(Order):
        raise ConfigError(
            f"there is no order {order!r}: {nearest(str(order), get_args(Order))}",
            where=f"rank_by {field}",
            fix='"asc" has the lowest first, "desc" the highest',
        )
    means = {
        name: mean(by_sample((key[0], value) for key, value in known(readings).items()))
        for name, readings in by_configuration.items()
    }
    held = _in_order(means, upward=order == "asc")
    names = held + sorted(set(means) - set(held))
    places = tuple(
        _place(name, number, means[name], by_configuration[name])
        for number, name in enumerate(names, start=1)
    )
    decided = len(held) > 1 and _ahead(
        by_configuration[names[0]], by_configuration[names[1]], upward=order == "desc"
    )
    return Ranking(field, order, places, decided)  # type: ignore[arg-type]


def _place(name: str, number: int, value: float | None, readings: Sequence[Reading]) -> RankedPlace:
    numbers = known(readings)
    interval = interval_of(by_sample((key[0], one) for key, one in numbers.items()))
    return RankedPlace(name, number, value, len(numbers), len(readings) - len(numbers), interval)


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


def _ahead(first: Sequence[Reading], second: Sequence[Reading], *, upward: bool) -> bool:
    """True if the first lies ahead of the second on what both have, beyond doubt."""
    paired = pair(first, second)
    apart = mean(paired.apart)
    if not apart or (apart > 0) is not upward:
        return False
    return is_decided(paired.interval, paired.p)
