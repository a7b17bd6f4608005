"""A number over many results, never alone: with its n, what is missing, and an interval."""

from __future__ import annotations

from typing import Literal

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
