"""One measured figure of the quality benchmark."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.quality.intervals import Interval


class Figure(NamedTuple):
    """A measured figure: its data, a reference value, and whether the requirement is met.

    A figure with `evaluator` and `interval` can be written to the card of that evaluator.
    """

    what: str
    data: str
    value: float
    reference: str = ""
    asked: str = ""
    holds: bool | None = None
    note: str = ""
    evaluator: str = ""
    interval: Interval | None = None
