"""Two configurations side by side: what the first is beside the second, field by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from proctor.comparison.readings import Reading, by_sample, is_decided, known, pair
from proctor.errors import ConfigError, nearest
from proctor.fields.direction import higher_is_better
from proctor.statistics.intervals import Interval
from proctor.statistics.moments import mean

Readings = Mapping[str, Mapping[str, Sequence[Reading]]]

_COLUMNS = ("difference", "%", "95 % interval", "pairs")


class FieldDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one field is in configuration a, beside what it is in b.

    `a` and `b` are means over the trials that both have a number for (`n` pairs of the same sample
    and epoch, of `samples` samples; the epochs of one sample count as one). `absolute` is a - b,
    `percentage` that of b, None where b is 0. `interval` holds the true difference with 95 %;
    None where the samples cannot tell it, as when they all differ by the same. `p` is how likely
    chance alone turns as many samples to one side (the exact sign test), where all that differ do
    so by the same, as passed and failed do.
    `only_a` and `only_b` count the numbers without a partner; where there are no pairs at all,
    `a` and `b` are means of what each has, and there is no difference.
    """

    field: str
    a: float | None = None
    b: float | None = None
    absolute: float | None = None
    percentage: float | None = None
    n: int = 0
    samples: int = 0
    interval: Interval | None = None
    only_a: int = 0
    only_b: int = 0
    higher_is_better: bool | None = None
    p: float | None = None

    @property
    def decided(self) -> bool:
        """True if the interval excludes that there is no difference, and p, if any, is small."""
        return is_decided(self.interval, self.p)

    @property
    def a_is_better(self) -> bool | None:
        """Whether a is better than b; None if it is not decided, or which way is better unknown."""
        if not self.decided or self.higher_is_better is None or self.absolute is None:
            return None
        return (self.absolute > 0) is self.higher_is_better


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Configuration `a` beside configuration `b`: their fields, and their evaluators' scores."""

    a: str
    b: str
    fields: dict[str, FieldDelta] = {}
    scores: dict[str, FieldDelta] = {}

    @property
    def deltas(self) -> dict[str, dict[str, float | None]]:
        """The difference of each field that has numbers, absolute and in percent of b."""
        return _plain_deltas(self.fields.values())

    @property
    def score_deltas(self) -> dict[str, dict[str, float | None]]:
        """The same of the evaluators' scores."""
        return _plain_deltas(self.scores.values())

    def rows(self) -> list[dict[str, Any]]:
        """One plain mapping for each field and score, for a table or a plot."""
        kinds = (("field", self.fields), ("score", self.scores))
        return [_row(kind, delta) for kind, held in kinds for delta in held.values()]

    def __str__(self) -> str:
        head = ("", self.a, self.b, *_COLUMNS)
        lines = [head, *map(_cells, (*self.fields.values(), *self.scores.values()))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )


def compare(
    a: str,
    b: str,
    fields: Readings,
    scores: Readings | None = None,
    *,
    better: Mapping[str, bool | None] | None = None,
) -> Comparison:
    """Say what configuration `a` is beside configuration `b`.

    `fields` and `scores` hold the readings by field and configuration. `better` says of a field
    whether higher is better, where its name does not tell; of scores it always is.

    >>> low, high = [Reading("1", 0, 450)], [Reading("1", 0, 500)]
    >>> compare("low", "high", {"tokens": {"low": low, "high": high}}).deltas
    {'tokens': {'absolute': -50.0, 'percentage': -10.0}}
    """
    scores = scores or {}
    _refuse_unknown((a, b), [*fields.values(), *scores.values()])
    told = better or {}
    found = {
        name: _delta(name, held.get(a, ()), held.get(b, ()), told.get(name, higher_is_better(name)))
        for name, held in fields.items()
    }
    scored = {
        name: _delta(name, held.get(a, ()), held.get(b, ()), True) for name, held in scores.items()
    }
    return Comparison(a, b, found, scored)


def _refuse_unknown(
    names: tuple[str, ...], held: Iterable[Mapping[str, Sequence[Reading]]]
) -> None:
    there = {name for each in held for name in each}
    for name in names:
        if name not in there:
            raise ConfigError(
                f"there is no configuration {name!r}: {nearest(name, there)}", where="compare"
            )


def _delta(
    name: str, mine: Sequence[Reading], theirs: Sequence[Reading], better: bool | None
) -> FieldDelta:
    paired, own, other = pair(mine, theirs), known(mine), known(theirs)
    n = len(paired.keys)
    apart = paired.apart
    a, b = map(mean, paired.sides)
    if not n:
        a, b = (mean(by_sample((key[0], v) for key, v in each.items())) for each in (own, other))
    absolute = mean(apart)
    return FieldDelta(
        name,
        a,
        b,
        absolute,
        100 * absolute / abs(b) if absolute is not None and b else None,
        n,
        len(apart),
        paired.interval,
        only_a=len(own) - n,
        only_b=len(other) - n,
        higher_is_better=better,
        p=paired.p,
    )


def _plain_deltas(deltas: Iterable[FieldDelta]) -> dict[str, dict[str, float | None]]:
    return {
        one.field: {"absolute": one.absolute, "percentage": one.percentage}
        for one in deltas
        if one.a is not None or one.b is not None
    }


def _row(kind: str, delta: FieldDelta) -> dict[str, Any]:
    low, high = delta.interval or (None, None)
    held = {name: getattr(delta, name) for name in delta.__struct_fields__ if name != "interval"}
    extra = {"low": low, "high": high, "a_is_better": delta.a_is_better}
    return {"kind": kind, **held, **extra}


def _cells(delta: FieldDelta) -> tuple[str, ...]:
    interval = delta.interval and f"{_text(delta.interval[0])} … {_text(delta.interval[1])}"
    percentage = None if delta.percentage is None else f"{delta.percentage:+.1f}"
    numbers = (_text(delta.a), _text(delta.b), _text(delta.absolute))
    return (delta.field, *numbers, percentage or "–", interval or "–", str(delta.n))


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
