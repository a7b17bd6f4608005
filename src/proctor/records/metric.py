"""Metric values with their sample size and interval, and trends over runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Protocol

import msgspec

from proctor.records.results import Results

MetricKind = Literal["rate", "mean", "quantile", "count", "number"]


class MetricValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One aggregate number.

    `n` is the number of values it is computed from; `errors` and `skipped` count the values that it could not use.
    `partial` counts values that lack a failed part, such as a total without one of its rubrics. `interval` is the 95%
    confidence interval, if there is one. `value` is None if there are no values.
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
        """The number of missing values: errors and skips."""
        return self.errors + self.skipped

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The value of a rate or mean if all missing values were 0, and if they were 1."""
        total = self.n + self.missing
        if self.value is None or self.unit or self.kind not in ("rate", "mean") or not total:
            return None
        value_sum = self.value * self.n
        return value_sum / total, (value_sum + self.missing) / total


class Metric(Protocol):
    """Computes one number, or several by name, over the results of a run or configuration."""

    @property
    def name(self) -> str: ...

    def compute(
        self, results: Results
    ) -> float | int | MetricValue | Mapping[str, float | int | MetricValue | None] | None: ...


class TrendPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number of one run and configuration.

    `unfinished` describes how a run with missing trials ended, such as "stopped early".
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
    """A field or metric over time, the oldest run first; `kind` and `unit` come from the metric."""

    field: str
    points: tuple[TrendPoint, ...]
    kind: MetricKind = "number"
    unit: str = ""

    @property
    def data(self) -> list[dict[str, Any]]:
        """The points as mappings, for a table or a plot."""
        return [{**msgspec.structs.asdict(p), "date": p.date.isoformat()} for p in self.points]

    @property
    def series(self) -> dict[str, list[TrendPoint]]:
        """The points of each configuration by its name, with the run name if there are several."""
        has_several_names = len({point.name for point in self.points}) > 1
        series: dict[str, list[TrendPoint]] = {}
        for point in self.points:
            label = f"{point.name}: {point.configuration}" if has_several_names else point.configuration
            series.setdefault(label, []).append(point)
        return series
