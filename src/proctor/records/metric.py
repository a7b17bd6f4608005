"""A number over many results, never alone: with its n, what is missing, and an interval."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

MetricKind = Literal["rate", "mean", "quantile", "count", "number"]


class MetricValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One aggregate number.

    `n` is how many values it rests on, `errors` and `skipped` how many it could not use. `partial`
    of the values lack a part that failed, such as a total without one of its rubrics. `interval` is
    the 95 % confidence interval where there is one. `value` is None when there was nothing to
    compute from.
    """

    value: float | None
    n: int
    errors: int = 0
    skipped: int = 0
    interval: tuple[float, float] | None = None
    kind: MetricKind = "number"
    unit: str = ""
    note: str = ""
    partial: int = 0

    @property
    def missing(self) -> int:
        """How many values are not in it: errors and skips together."""
        return self.errors + self.skipped

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Of a rate or mean: its value if everything missing were 0, and if it were 1."""
        total = self.n + self.missing
        if self.value is None or self.unit or self.kind not in ("rate", "mean") or not total:
            return None
        known = self.value * self.n
        return known / total, (known + self.missing) / total


class TrendPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number of one run: when it was, in which configuration, and what it rests on.

    `unfinished` says how a run ended that left some of its trials out: "stopped early".
    """

    date: datetime
    run_id: str
    configuration: str
    value: float
    n: int
    interval: tuple[float, float] | None = None
    name: str = ""
    unfinished: str = ""


class Trend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A field or metric over time, the oldest run first; `kind` and `unit` are the metric's."""

    field: str
    points: tuple[TrendPoint, ...]
    kind: MetricKind = "number"
    unit: str = ""

    @property
    def data(self) -> list[dict[str, Any]]:
        """One plain mapping for each point, for a table or a plot."""
        return [{**msgspec.structs.asdict(p), "date": p.date.isoformat()} for p in self.points]

    @property
    def series(self) -> dict[str, list[TrendPoint]]:
        """The points of each configuration, under its name; of runs with several names, of each.

        >>> Trend("pass_rate", ()).series
        {}
        """
        several = len({point.name for point in self.points}) > 1
        found: dict[str, list[TrendPoint]] = {}
        for point in self.points:
            label = f"{point.name}: {point.configuration}" if several else point.configuration
            found.setdefault(label, []).append(point)
        return found
