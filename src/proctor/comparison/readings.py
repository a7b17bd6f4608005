"""Readings: the numbers that a field or an evaluator gave, trial by trial."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from proctor.fields.numbers import as_number
from proctor.statistics.differences import differences, interval_of_pairs, is_binary, spread
from proctor.statistics.intervals import Interval, mean_interval, wilson_interval
from proctor.statistics.moments import mean
from proctor.statistics.permutations import sign_test

# Beyond so little chance a difference is decided.
DECIDED = 0.05


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number of one trial: of which sample, in which epoch; None where there is none.

    >>> Reading("1", 0, 450.0).value
    450.0
    """

    sample_id: str
    epoch: int
    value: float | None = None

    @classmethod
    def of(cls, sample_id: str, epoch: int, value: Any) -> Reading:
        """A reading of any value: a boolean is 0 or 1, what is no finite number is missing.

        >>> Reading.of("1", 0, True).value, Reading.of("1", 0, "four").value
        (1.0, None)
        """
        return cls(sample_id, epoch, as_number(value))


def by_sample(numbers: Iterable[tuple[str, float]]) -> list[float]:
    """The mean of each sample's numbers, so that one with more epochs does not weigh more.

    >>> by_sample([("a", 1.0), ("a", 3.0), ("b", 5.0)])
    [2.0, 5.0]
    """
    held: dict[str, list[float]] = {}
    for sample_id, value in numbers:
        held.setdefault(sample_id, []).append(value)
    return [mean(values) or 0.0 for values in held.values()]


def known(readings: Sequence[Reading]) -> dict[tuple[str, int], float]:
    """The numbers there are, by sample and epoch."""
    return {
        (one.sample_id, one.epoch): one.value
        for one in readings
        if one.value is not None and math.isfinite(one.value)
    }


class Paired(msgspec.Struct, frozen=True):
    """The trials that two configurations have in common, and the difference of each sample."""

    keys: tuple[tuple[str, int], ...]
    firsts: tuple[float, ...]
    seconds: tuple[float, ...]

    @property
    def apart(self) -> list[float]:
        """By how much the first lies above the second, sample by sample."""
        each = differences(self.firsts, self.seconds)
        return by_sample((key[0], value) for key, value in zip(self.keys, each, strict=True))

    @property
    def sides(self) -> tuple[list[float], list[float]]:
        """The first's mean and the second's, sample by sample."""
        ids = [sample_id for sample_id, _ in self.keys]
        first, second = (zip(ids, side, strict=True) for side in (self.firsts, self.seconds))
        return by_sample(first), by_sample(second)

    @property
    def interval(self) -> Interval | None:
        """Where the true difference lies (95 %), the epochs of a sample taken for one.

        Where all are 0 or 1 it is Bonett and Price's, else Student's t; None below two samples,
        or where they all differ by the same, which says nothing of how far others may differ.
        """
        return interval_of_pairs(*self.sides)

    @property
    def p(self) -> float | None:
        """How likely chance alone turns as many samples to one side: the exact sign test.

        Only where all that differ do so by the same, as passed and failed do; else None.
        """
        apart = [value for value in self.apart if value]
        sizes = [abs(value) for value in apart]
        if not self.keys or (sizes and spread(sizes)[1]):
            return None
        up = sum(value > 0 for value in apart)
        return sign_test(up, len(apart) - up)


def pair(first: Sequence[Reading], second: Sequence[Reading]) -> Paired:
    """Put the numbers of the same sample and epoch together."""
    mine, theirs = known(first), known(second)
    keys = tuple(key for key in mine if key in theirs)
    return Paired(keys, tuple(mine[key] for key in keys), tuple(theirs[key] for key in keys))


def interval_of(samples: Sequence[float]) -> Interval | None:
    """Where the mean truly lies (95 %), None where it cannot be told.

    Of samples that are 0 or 1 it is Wilson's interval, else Student's t. Where all are equal, their
    spread is no measure of doubt.

    >>> interval_of([5.0] * 9) is None, interval_of([1.0, 3.0]) is None
    (True, False)
    """
    if len(samples) < 2:
        return None
    if is_binary(samples):
        return wilson_interval(sum(samples), len(samples))
    return mean_interval(samples) if spread(samples)[1] else None


def is_decided(interval: Interval | None, p: float | None) -> bool:
    """True if a difference is more than chance: both must say so, where there are both.

    >>> is_decided((0.1, 0.3), None), is_decided((0.1, 0.9), 0.125), is_decided(None, 0.03)
    (True, False, True)
    """
    if interval is not None and interval[0] <= 0 <= interval[1]:
        return False
    return interval is not None if p is None else p <= DECIDED
