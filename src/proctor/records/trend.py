"""A number over time: one point for each run and configuration."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from proctor.records.metric import MetricKind


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
