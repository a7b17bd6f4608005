"""What one execution may use: its own budget inside that of the run, and its time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from proctor.asking.spending import Spending
from proctor.clock import Clock
from proctor.errors import LoopStopped, StopRun, TargetError
from proctor.records.run import Budget
from proctor.records.session import Usage


class Allowance(Spending):
    """The budget of one execution; what it uses counts against the run's budget as well.

    Unlike that of a run, a budget that is spent ends only the execution.

    >>> allowance = Allowance(Budget(calls=1), None)
    >>> allowance.begin()
    >>> allowance.begin()
    Traceback (most recent call last):
        ...
    proctor.errors.LoopStopped: the budget is spent: 1 of 1 calls
    """

    def __init__(self, budget: Budget | Mapping[str, Any], around: Spending | None) -> None:
        super().__init__(budget)
        self._around = around

    def begin(self) -> None:
        """Take leave for one call, of the execution and of the run."""
        try:
            super().begin()
        except StopRun as spent:
            raise LoopStopped(spent.what, limit="budget") from None
        if self._around is not None:
            self._around.begin()

    def take_back(self) -> None:
        """Give the leave for a call back."""
        super().take_back()
        if self._around is not None:
            self._around.take_back()

    def end(self, model: str, usage: Usage) -> None:
        """Note what a call used."""
        if self._around is not None:
            self._around.end(model, usage)
        try:
            super().end(model, usage)
        except StopRun as unknown:
            raise LoopStopped(f"{unknown.what}; {unknown.fix}", limit="budget") from None


def seconds_until(deadline: datetime | float | None, clock: Clock) -> float | None:
    """How long an execution may take: up to a point in time, or so many seconds from now.

    >>> from proctor.clock import SystemClock
    >>> seconds_until(2.5, SystemClock())
    2.5
    """
    if deadline is None:
        return None
    if isinstance(deadline, datetime):
        if deadline.tzinfo is None:
            raise TargetError(
                "the deadline does not say in which time zone it is",
                fix="give an aware time, such as datetime.now(UTC) + timedelta(seconds=30)",
            )
        return (deadline - clock.now()).total_seconds()
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or math.isnan(deadline):
        raise TargetError(
            f"{deadline!r} is no deadline", fix="give an aware datetime, or seconds from now"
        )
    return float(deadline)
