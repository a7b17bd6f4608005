"""What is to be said of a difference, with all that was compared in view."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import msgspec

from proctor.comparison.evidence import MCNEMAR
from proctor.core.stats.distributions import normal_cdf, normal_quantile
from proctor.core.stats.effects import holm
from proctor.core.stats.intervals import wilson_interval
from proctor.records.comparison import Interval, MetricDelta, Verdict
from proctor.records.wording import Kind

CONFIDENCE = 0.95
SURE = 0.8
# So many times as many samples settle nothing that anybody will see.
NEVER = 10**9


class Part(NamedTuple):
    """A group of samples, and the standard error of its mean."""

    n: int
    error: float


class Seen(NamedTuple):
    """What n samples have shown: the difference, its standard error, and what is worth the name.

    `level` is how little chance a difference must leave; `step` is by how many samples more than
    Student's t an exact test of yes and no wants; `jump` is how far a single sample may move that
    is unlike all that were seen. Of two groups n and the error are those of the smaller one, and
    `beside` is the other: both grow by as many.
    """

    n: int
    difference: float
    error: float
    worth: float
    level: float
    step: float = 0.0
    jump: float = 0.0
    beside: Part | None = None

    def chance(self, total: int) -> float:
        """How likely `total` samples, these among them, lead to a verdict."""
        error, unknown = ahead(self.n, self.error, total, self.beside)
        apart = normal_quantile(1 - self.level / 2) * error + self.step / total
        z = normal_quantile((1 + CONFIDENCE) / 2)
        alike = self.worth - max(z * error, _unseen(self.jump, z, total))
        if alike >= apart:
            return 1.0
        return 1 - self._within(apart, unknown) + self._within(alike, unknown)

    def _within(self, line: float, unknown: float) -> float:
        """How likely the mean of all samples will lie between -line and line."""
        if line <= 0:
            return 0.0
        return _below(line, self.difference, unknown) - _below(-line, self.difference, unknown)


class Held(NamedTuple):
    """What n samples have shown of a margin: how far from it they lie, above 0 is better.

    `passes` and `fails` are how likely each verdict may be wrong, `beside` as of what is seen.
    `halves` tells of so many samples in all how far their interval would reach to the worse and to
    the better if the others were like these; without it, it is that of a normal mean.
    """

    n: int
    room: float
    error: float
    passes: float
    fails: float
    beside: Part | None = None
    halves: Callable[[int], tuple[float, float]] | None = None

    def chance(self, total: int) -> float:
        """How likely `total` samples, these among them, lead to a verdict."""
        worse, better = self._reach(total)
        _, unknown = ahead(self.n, self.error, total, self.beside)
        return 1 - _below(worse, self.room, unknown) + _below(-better, self.room, unknown)

    def tells(self, total: int) -> bool:
        """True if `total` samples would lead to a verdict if the others were like these."""
        worse, better = self._reach(total)
        return self.room > worse or self.room < -better

    def _reach(self, total: int) -> tuple[float, float]:
        if self.halves is not None:
            return self.halves(total)
        error, _ = ahead(self.n, self.error, total, self.beside)
        worse, better = (normal_quantile(1 - wrong) for wrong in (self.passes, self.fails))
        return worse * error, better * error


def more_for_a_verdict(
    seen: Seen | Held, sure: float = SURE, tells: Callable[[int], bool] | None = None
) -> int:
    """About how many more samples lead to a verdict that often.

    A verdict is that there is a difference, or that there is none worth the name; of a margin, that
    it is kept or that it is not. It is not asked as if the difference were the one that was seen,
    which a few samples do not tell: the mean of all samples will lie around it, as far off as what
    is not known yet. `tells` says of so many samples in all whether they would lead to a verdict if
    the others were like these; fewer than that are never enough.

    >>> more_for_a_verdict(Seen(100, 0.08, 0.045, worth=0.01, level=0.05))
    233
    >>> more_for_a_verdict(Held(100, 0.08, 0.045, passes=0.025, fails=0.025))
    233
    """
    return _more(seen.n, lambda total: seen.chance(total) >= sure and (tells is None or tells(total)))


def ahead(n: int, error: float, total: int, beside: Part | None = None) -> tuple[float, float]:
    """The error of the mean of so many samples in all, and how far it may lie from that of n.

    >>> [round(one, 3) for one in ahead(100, 0.2, 400)]
    [0.1, 0.173]
    """
    parts = [Part(n, error), *([] if beside is None else [beside])]
    now = math.fsum(part.error**2 for part in parts)
    then = math.fsum(part.error**2 * part.n / (part.n + total - n) for part in parts)
    return math.sqrt(then), math.sqrt(max(0.0, now - then))


def _more(n: int, is_enough: Callable[[int], bool]) -> int:
    enough = n
    while enough < NEVER * n and not is_enough(enough):
        enough *= 2
    low = max(n, enough // 2)
    while low + 1 < enough:
        middle = (low + enough) // 2
        low, enough = (low, middle) if is_enough(middle) else (middle, enough)
    return max(1, enough - n)


def _unseen(jump: float, z: float, total: int) -> float:
    """How far samples may move the mean that are so rare that none is among so many (Wilson)."""
    return jump * z * z / (total + z * z)


def _below(line: float, centre: float, unknown: float) -> float:
    """How likely the mean of all samples will lie below a line."""
    return normal_cdf((line - centre) / unknown) if unknown else float(centre <= line)


# With less chance than this it is a difference.
LEVEL = 0.05
# A rate or a score that moves by less than a point is not worth the name, and so is any other
# number that moves by less than five percent.
WORTH = 0.01
WORTH_OF_NUMBERS = 0.05
# Trials of one run share their moment: what they say of times is said of that moment too.
TIMES_APART = (
    "the times of two runs were measured at different moments: samples cannot tell a slower system "
    "from a slower hour"
)
# So many samples that agree to the last digit are the same, whatever they measure.
PLENTY = 30


def smallest_worth(kind: Kind, b: float | None, worth: float = WORTH) -> float:
    """The smallest difference worth the name: in points of a share or score, else a part of b.

    >>> smallest_worth("rate", 0.8), smallest_worth("number", 400.0)
    (0.01, 20.0)
    """
    if kind != "number":
        return worth
    return WORTH_OF_NUMBERS * abs(b or 0.0)


def adjusted(deltas: Sequence[MetricDelta], tests: Sequence[Hashable]) -> list[MetricDelta]:
    """The same deltas with corrected probabilities and verdicts.

    `tests` says which of them are one test: what is the same as another, number for number, is not
    a further chance to be wrong. Nor is a test of pairs that all agree, which cannot find anything
    (Tarone 1990). Everything else is the family that the correction is for.
    """
    family: dict[Hashable, float] = {}
    for delta, test in zip(deltas, tests, strict=True):
        if delta.p is not None and not _cannot_differ(delta):
            family.setdefault(test, delta.p)
    corrected = dict(zip(family, holm([*family.values()], LEVEL), strict=True))
    return [
        _judged(delta, corrected[test].p if test in corrected else delta.p, len(family))
        for delta, test in zip(deltas, tests, strict=True)
    ]


def in_family(deltas: Sequence[MetricDelta], tests: Sequence[Hashable]) -> int:
    """For how many tests the probabilities of these are corrected."""
    told = zip(deltas, tests, strict=True)
    return len({test for one, test in told if one.p is not None and not _cannot_differ(one)})


def _cannot_differ(delta: MetricDelta) -> bool:
    return delta.paired and delta.absolute == 0 and delta.error is None


def _judged(delta: MetricDelta, p: float | None, family: int) -> MetricDelta:
    verdict = _verdict(delta, p)
    needed = _needed(delta, family) if verdict == "not enough evidence" else None
    return msgspec.structs.replace(delta, p_adjusted=p, verdict=verdict, more_samples=needed)


def _verdict(delta: MetricDelta, p: float | None) -> Verdict:
    if delta.method == TIMES_APART:
        return "not enough evidence"
    bounds = _bounds(delta)
    if bounds is not None and max(abs(bounds[0]), abs(bounds[1])) <= delta.worth:
        return "no difference worth the name"
    if p is None or p > LEVEL or not delta.absolute:
        return "not enough evidence"
    if delta.higher_is_better is None:
        return "different"
    return "better" if (delta.absolute > 0) is delta.higher_is_better else "worse"


def _bounds(delta: MetricDelta) -> Interval | None:
    """Between which the difference surely lies, also where all samples agree to the last digit."""
    units = _units(delta)
    if delta.interval is not None:
        return _with_rare_ones(delta, delta.interval)
    # Clusters that are too few tell nothing, also where all their samples agree.
    told = delta.clusters is None or delta.p is not None
    if not told or delta.absolute != 0 or units < 2 or not delta.paired:
        return None
    if delta.kind == "number":
        return (0.0, 0.0) if units >= PLENTY else None
    # At most so many of all samples differ, and no score by more than 1.
    most = _most_that_differ(units)
    return -most, most


def with_rare_ones(
    interval: Interval, means: tuple[float, float], n: float, confidence: float = 0.95
) -> Interval:
    """An interval of the difference of scores, no narrower than n samples of yes and no could tell.

    Scores that all stay near to each other do not rule out that a few others fall to 0: so many as
    may be there though none is among n.

    >>> [round(end, 3) for end in with_rare_ones((-0.01, 0.01), (0.8, 0.8), 40)]
    [-0.07, 0.07]
    """
    (a, b), most = means, _most_that_differ(n, confidence)
    return (min(interval[0], a - b - most * max(a, 1 - b)), max(interval[1], a - b + most * max(b, 1 - a)))


def _with_rare_ones(delta: MetricDelta, interval: Interval) -> Interval:
    if delta.a is None or delta.b is None or not has_rare_ones(delta):
        return interval
    # Of a cluster one is seen, however many samples it has.
    return with_rare_ones(interval, (delta.a, delta.b), delta.units or delta.n)


def has_rare_ones(delta: MetricDelta) -> bool:
    """True of scores whose interval goes by their spread: exact ones know what is rare."""
    return delta.kind != "number" and delta.paired and delta.method != MCNEMAR


def _units(delta: MetricDelta) -> float:
    """How many are independent of each other."""
    return delta.n if delta.units is None else delta.units


def _most_that_differ(n: float, confidence: float = 0.95) -> float:
    found = wilson_interval(0, n, confidence)
    return 1.0 if found is None else found[1]


def _needed(delta: MetricDelta, family: int) -> int | None:
    """About how many more samples lead to a verdict; None where that cannot be told."""
    if delta.n < 2 or delta.absolute is None or delta.method == TIMES_APART:
        return None
    if delta.clusters is not None and delta.p is None:
        return None
    level = LEVEL / max(1, family)
    if delta.error:
        return _needed_of(delta, delta.absolute, level)
    units = _units(delta)
    enough = _agreeing(delta, level) if delta.paired else None
    return None if enough is None else max(1, math.ceil((enough - units) * delta.n / units))


def _needed_of(delta: MetricDelta, difference: float, level: float) -> int | None:
    """The same where the difference has an error; None where that claims more than was found."""
    parts = parts_of(delta)
    if parts is None or delta.interval is None:
        return None
    first, *others = parts
    step = 1.0 if delta.method == MCNEMAR else 0.0
    jump = jump_of(delta) if has_rare_ones(delta) else 0.0
    beside = others[0] if others else None
    seen = Seen(delta.n, difference, first.error, delta.worth, level, step, jump, beside)
    # With fewer pairs no arrangement of them is rare enough.
    fewest = _fewest(level) - delta.n if delta.paired else 0
    if fewest <= 0 and seen.chance(delta.n) >= SURE:
        return None
    interval, z = delta.interval, normal_quantile(1 - level / 2) / normal_quantile(0.975)
    halves = difference - interval[0], interval[1] - difference

    def tells(total: int) -> bool:
        now, then = (ahead(first.n, first.error, n, beside)[0] for n in (delta.n, total))
        low, high = (half * then / now for half in halves)
        alike = max(low - difference, high + difference) <= delta.worth
        return alike or difference > z * low or difference < -z * high

    return max(fewest, more_for_a_verdict(seen, tells=tells))


def parts_of(delta: MetricDelta) -> tuple[Part, ...] | None:
    """What a difference is known by: its pairs, or two groups, the smaller first, each by itself.

    A group whose numbers are all equal is known no better than so many can tell. None where they
    tell nothing.
    """
    if delta.paired:
        return None if delta.error is None else (Part(delta.n, delta.error),)
    sides = (delta.only_a, delta.a, delta.a_interval), (delta.only_b, delta.b, delta.b_interval)
    errors = [_error_of(*side, kind=delta.kind) for side in sides]
    if None in errors:
        return None
    parts = [Part(side[0], error or 0.0) for side, error in zip(sides, errors, strict=True)]
    both = math.hypot(*(part.error for part in parts))
    # Not surer than the two are together, where they have something in common.
    more = max(1.0, (delta.error or 0.0) / both) if both else 1.0
    return tuple(sorted(Part(part.n, more * part.error) for part in parts))


def _error_of(n: int, mean: float | None, own: Interval | None, *, kind: Kind) -> float | None:
    """The standard error of one group's mean, as the width of its own interval has it."""
    if mean is None or (own is None and kind == "number"):
        return None
    wide = _most_that_differ(n) * max(mean, 1 - mean) if own is None else own[1] - own[0]
    return wide / 2 / normal_quantile(0.975)


def jump_of(delta: MetricDelta) -> float:
    """How far one sample may move the difference of two scores."""
    a, b = delta.a or 0.0, delta.b or 0.0
    return max(a, b, 1 - a, 1 - b)


def _fewest(level: float) -> int:
    """How many pairs must all go one way to be less likely than the level, by chance."""
    return math.ceil(1 - math.log2(level))


def _agreeing(delta: MetricDelta, level: float) -> float | None:
    """How many independent pairs make a verdict if all agree, or all differ by the same."""
    if delta.absolute:
        return _fewest(level)
    if delta.kind == "number":
        return PLENTY
    if not delta.worth:
        return None
    z = normal_quantile(0.975)
    # The ends of Bonett and Price's interval, and of Wilson's, if nothing differs.
    return z * math.sqrt(2) / delta.worth - 2 if delta.interval else z * z / delta.worth - z * z
