"""Models with a budget or with a fixed rate of calls."""

from __future__ import annotations

import asyncio
import heapq
import re
import threading
from collections.abc import Mapping
from typing import Any

from proctor.core import stopwatch
from proctor.core.aliases import accept_aliases
from proctor.core.clock import Clock, SystemClock
from proctor.errors import CallFailed, ModelError
from proctor.models.spending import Spending
from proctor.models.wrappers.cached import ModelWrapper
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.run import Budget

_RATE = re.compile(r"(\d+(?:\.\d+)?)/(s|min)")


class Budgeted(ModelWrapper):
    """A model with a budget; when it is spent, `StopRun` ends the run.

    Models that share a `Spending` share one budget.

    >>> spending = Spending(Budget(calls=100))
    >>> target = Budgeted(lambda messages: "Paris", spending)
    >>> judge = Budgeted(lambda messages: "RATING: good", spending)
    """

    @accept_aliases
    def __init__(self, model: Any, budget: Budget | Spending | Mapping[str, Any]) -> None:
        super().__init__(model)
        self.spending = budget if isinstance(budget, Spending) else Spending(budget)

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Call the model within the budget; a cached response is free."""
        self.spending.begin()
        response = await self._adapter.complete(request, timeout=timeout)
        if response.cached:
            self.spending.take_back()
        else:
            self.spending.end(self.model, response.usage)
        return response


def connect(address: str, *, source_model: Any) -> Paced:
    """Call the source model at the rate in the address: `paced:5/s`, `paced:300/min`."""
    match = _RATE.fullmatch(address.partition(":")[2].strip())
    if match is None:
        raise ModelError("the address has no rate", where=address, fix="write paced:5/s or paced:300/min")
    number = float(match[1])
    return Paced(source_model, per_second=number) if match[2] == "s" else Paced(source_model, per_minute=number)


class Paced(ModelWrapper):
    """A model that is called at an even rate by all users of this object.

    A call whose turn comes after its timeout fails immediately; the error contains the time to wait.

    >>> Paced(lambda messages: "yes", per_minute=300).interval
    0.2
    """

    @accept_aliases
    def __init__(
        self,
        model: Any,
        *,
        per_second: float | None = None,
        per_minute: float | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(model)
        rates = [rate for rate in (per_second, per_minute and per_minute / 60.0) if rate is not None]
        if len(rates) != 1 or not 0 < rates[0] < float("inf"):
            raise ModelError(
                "the rate must be a number greater than 0",
                fix="set either per_second or per_minute, as in per_second=5",
            )
        self.interval = 1.0 / rates[0]
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._next = self._clock.monotonic()
        # Turns of cancelled calls, for other calls to use.
        self._returned: list[float] = []

    async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> ModelResponse:
        """Call the model at its turn; the wait counts towards `timeout`, not towards a stopwatch."""
        started = self._clock.monotonic()
        turn = self._take_turn(started)
        wait = turn - started
        if timeout is not None and wait >= timeout:
            self._return_turn(turn)
            raise CallFailed(
                f"{self.model} has a fixed rate: the next call can start in {wait:.1f} s, and {timeout:g} s are left",
                retryable=True,
                retry_after=wait,
            )
        if wait > 0:
            try:
                with stopwatch.paused():
                    await self._clock.sleep(wait)
            except asyncio.CancelledError:
                self._return_turn(turn)
                raise
        left = None if timeout is None else max(0.0, started + timeout - self._clock.monotonic())
        return await self._adapter.complete(request, timeout=left)

    def _take_turn(self, now: float) -> float:
        with self._lock:
            while self._returned:
                turn = heapq.heappop(self._returned)
                if turn >= now:
                    return turn
            turn = max(now, self._next)
            self._next = turn + self.interval
            return turn

    def _return_turn(self, turn: float) -> None:
        with self._lock:
            heapq.heappush(self._returned, turn)
